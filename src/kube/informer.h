// A local copy of one kind of object, kept true by list and watch.
//
// Shape:   start() lists in pages, then watches from the list's resourceVersion with bookmarks; a closed watch resumes from
//          the last seen version; 410 (Expired) lists again and reports the differences. Handlers see every change in
//          order: on_change(old, new) with an empty old for an added and an empty new for a deleted object, and on_synced
//          once after the first list. Errors back off (200 ms doubling to 30 s, with jitter from Random) and never end it;
//          on_error hears of each list or watch that failed, but for a version that expired.
//          refresh() lists anew, at once: what was under way may have begun before. Its `done` runs when the copy holds all that
//          the API had when refresh() was called, and the differences have been told.
//          `keep` says what is held of an object, so that memory goes to what is read: handlers see only that. An empty
//          Object leaves it out as if it were not there. Metadata that names it and its resourceVersion must stay.
// Threads: everything runs on the executor given, which must be the client's.
// Source:  client-go's reflector (semantics only).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"

namespace tessera::kube {

class Informer {
 public:
  struct Options {
    Gvr gvr;
    std::string ns;
    std::string label_selector;
    std::string field_selector;
    std::function<Object(Object)> keep{};
    int page_size = 500;  // objects a page of a list: what lies in memory whole at one time
  };
  struct Handlers {
    std::function<void(const Object& before, const Object& after)> on_change;
    std::function<void()> on_synced;
    std::function<void(const base::Error&)> on_error{};
  };

  Informer(Client& client, base::Executor& executor, base::Random random, Options options,
           Handlers handlers);
  ~Informer();

  void start();
  void refresh(std::function<void()> done);
  bool synced() const;
  // By Object::key().
  const std::map<std::string, Object, std::less<>>& objects() const;
  Object find(std::string_view key) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// For `keep`: all but metadata.managedFields and what kubectl apply wrote down of its last manifest.
Object without_bookkeeping(Object object);

}  // namespace tessera::kube
