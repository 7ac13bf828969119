// The live objects that the scheduler reads beside nodes, pods and volumes: namespaces, classes, budgets, owners, groups and
// queues of every dialect that the API serves, whenever it begins or ceases to.
//
// Shape:   start() watches the kinds of watched_kinds.h. Those with a CustomResourceDefinition come and go with it; where the
//          definitions may not be read, and for kinds without one, a list is tried every probe_period. on_change(old, new)
//          tells every change of every kind, in order for each object: an empty old is an object that came, an empty new one
//          that went, be it alone or with its kind. When another version becomes the one to read, objects pass over to it
//          without going in between. on_synced comes once, when all that was served at the start is listed, at the latest
//          after sync_timeout. Objects are held by the informers alone, without what keep_object() drops.
// Errors:  never fails. What cannot be read by then counts as absent, is logged once with the mend, and is still tried.
// Threads: everything runs on the executor given, which must be the client's. Not to be destroyed from inside a handler.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"
#include "kube/object.h"

namespace tessera::scheduler {

class ObjectSources {
 public:
  struct Options {
    base::Duration sync_timeout = base::seconds(10);
    base::Duration probe_period = base::seconds(30);
  };
  struct Handlers {
    std::function<void(const kube::Object& before, const kube::Object& after)> on_change{};
    std::function<void()> on_synced{};
  };

  ObjectSources(kube::Client& client, base::Executor& executor, base::Random random,
                Options options, Handlers handlers);
  ~ObjectSources();

  void start();
  bool synced() const;
  // The version that is read of a kind ("v1beta1"), "" while there is none.
  std::string version(std::string_view group, std::string_view kind) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::scheduler
