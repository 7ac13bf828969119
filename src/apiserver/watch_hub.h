// Watches: everyone who wants the changes of a kind, and how each gets them once and in order.
//
// Shape:   a watch starts by a task on the executor, between two changes: it first gets what the store had at the last change
//          shown to all (its objects, or the changes since its resourceVersion), then every later change. Watches that ask
//          for one value of a field (pods of one node) stand in an index, so that a change costs what it concerns.
// Errors:  kExpired and kTimeout ("Too large resource version") through on_close when the start is no longer kept.
// Threads: subscribe and destruction of subscriptions from any; the rest on the executor.
// Source:  Kubernetes API concepts (watch, bookmarks, sendInitialEvents).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/registry_selection.h"
#include "apiserver/store.h"
#include "base/executor.h"
#include "base/time.h"
#include "kube/client.h"

namespace tessera::apiserver {

class WatchHub : public std::enable_shared_from_this<WatchHub> {
 public:
  struct Wanted {
    const Kind* kind = nullptr;
    const Kind* view = nullptr;  // as which the objects are shown; null: as they are
    Selection selection;
    uint64_t since =
        0;  // changes after this revision, which may yet have to come; 0: the objects first
    bool only_new = false;  // changes from now on
    bool at_least = false;  // `since` only says how fresh the objects must be (sendInitialEvents)
    bool bookmarks = false;
    bool initial_bookmark = false;  // the bookmark that ends the initial events
    base::Duration timeout;         // 0: none
    std::function<void(kube::WatchEvent)> on_event;
    std::function<void(base::Status)> on_close;
  };

  WatchHub(base::Executor& executor, std::shared_ptr<Store> store, base::Duration bookmark_period);

  std::unique_ptr<base::Subscription> subscribe(Wanted wanted);
  // A change became durable: the store's observer.
  void dispatch(const Store::Change& change);
  // Ends the watches of a kind that is no longer served. On the executor.
  void end_all(const Kind* table);
  // Ends all watches.
  void close();
  size_t size() const;

 private:
  struct Watcher;
  class Handle;
  using WatcherPtr = std::shared_ptr<Watcher>;
  struct Lane {
    std::vector<WatcherPtr> all;
    // field path -> value -> watchers
    std::map<std::string, std::unordered_map<std::string, std::vector<WatcherPtr>>> by_field;
  };

  void start(const WatcherPtr& watcher);
  bool send_start(Watcher& watcher, uint64_t now);
  void enlist(const WatcherPtr& watcher);
  void remove(const WatcherPtr& watcher);
  std::vector<WatcherPtr> targets(const Store::Change& change);
  std::vector<WatcherPtr> all_by_age() const;
  void end(const WatcherPtr& watcher, const base::Status& why);
  void start_bookmarks();
  void send_bookmarks();
  void send_last_bookmark(Watcher& watcher);
  static void send_change(Watcher& watcher, const Store::Change& change);
  static void send_bookmark(Watcher& watcher, uint64_t revision, bool initial_end);

  base::Executor& executor_;
  const std::shared_ptr<Store> store_;
  const base::Duration bookmark_period_;
  mutable std::mutex mutex_;
  std::unordered_map<const Kind*, Lane> lanes_;
  uint64_t numbered_ = 0;
  size_t live_ = 0;
  size_t with_bookmarks_ = 0;
  bool bookmarks_run_ = false;
  bool closed_ = false;
};

}  // namespace tessera::apiserver
