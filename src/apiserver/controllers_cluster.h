// What the built-in controllers see of the cluster and how they change it.
//
// Shape:   one Cache a kind: what the informer shows, brought forward by the replies to our own writes, so that a plan never
//          repeats what has been done already. A write whose answer is lost is settled by reading the object before the
//          caller hears of it: once a write is done, however it ended, the cache knows its outcome.
// Errors:  a write that was not done answers its error; deleting what is gone succeeds.
// Threads: the executor given, which is the client's. Callbacks end with the Cluster.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "apiserver/kind.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/informer.h"

namespace tessera::apiserver::controller {

using Done = std::function<void(base::Status)>;
using ObjectDone = std::function<void(base::Result<kube::Object>)>;
using Action = std::function<void(Done)>;

// All at once; answers when all have ended, with the first error.
void run_all(std::vector<Action> actions, Done done);
// 1, 2, 4, ... at once; stops after the batch in which something failed.
void run_slow_start(std::vector<Action> actions, Done done);
// One after the other, up to the first error.
void run_in_order(std::vector<Action> actions, Done done);

uint64_t version_of(const kube::Object& object);

class Cache {
 public:
  using Handler = std::function<void(const kube::Object& before, const kube::Object& after)>;
  using Objects = std::map<std::string, kube::Object, std::less<>>;

  explicit Cache(const Kind& kind) : kind_(kind) {}

  const Kind& kind() const { return kind_; }
  const Objects& objects() const { return objects_; }
  kube::Object find(std::string_view key) const;
  // Sees every change, with an empty `before` or `after` for what came or went; another object of the same name first
  // goes and then comes.
  void subscribe(Handler handler) { handlers_.push_back(std::move(handler)); }

  // What the informer shows.
  void observe(const kube::Object& before, const kube::Object& after);
  // What a reply showed. False: the informer has yet to show it.
  bool learn(const kube::Object& object);
  // The object is known to be gone.
  void forget(std::string_view key, std::string_view uid);

  // Written by us and not shown by the informer yet: key to uid.
  std::map<std::string, std::string, std::less<>>& unconfirmed() { return unconfirmed_; }

 private:
  void put(const kube::Object& object);
  void drop(std::string_view key);
  void bury(std::string_view uid);
  void emit(const kube::Object& before, const kube::Object& after);

  const Kind& kind_;
  Objects objects_;
  std::vector<Handler> handlers_;
  std::map<std::string, std::string, std::less<>> unconfirmed_;
  // Deleted by us, where the informer may still show them.
  std::unordered_set<std::string> gone_;
  std::deque<std::string> gone_by_age_;
};

// Each controller tells of what it does in its own name: that of the kind that the event is about.
class Events {
 public:
  Events(kube::Client& client, const base::Clock& clock, base::Random random)
      : client_(client), clock_(clock), random_(random) {}
  void normal(const kube::Object& about, std::string_view reason, std::string_view message);
  void warning(const kube::Object& about, std::string_view reason, std::string_view message);
  // In the name of `component`.
  void warning_of(const std::string& component, const kube::Object& about, std::string_view reason,
                  std::string_view message);

 private:
  kube::EventRecorder& recorder(const kube::Object& about);
  kube::EventRecorder& recorder(const std::string& component);

  kube::Client& client_;
  const base::Clock& clock_;
  base::Random random_;
  std::map<std::string, kube::EventRecorder, std::less<>> recorders_;
};

class Cluster : public std::enable_shared_from_this<Cluster> {
 public:
  Cluster(kube::Client& client, base::Executor& executor, const base::Clock& clock,
          base::Random random, const Kinds& kinds);

  // Lists all kinds, pods last; `ready` runs when everything is there.
  void start(std::function<void()> ready);
  bool ready() const { return ready_; }

  // Null for a kind that is not kept (events) or not known.
  Cache* find_cache(std::string_view group, std::string_view kind);
  Cache& cache(std::string_view group, std::string_view kind);
  std::vector<Cache*> caches();
  // A kind that came while the cluster runs, once ready; and one that went: its cache stays, empty, and is found no more.
  Cache& add(const Kind& kind);
  void drop(Cache& cache);

  void create(Cache& cache, json::Value object, ObjectDone done);
  // Replaces; the object's resourceVersion must be the current one.
  void update(Cache& cache, json::Value object, std::string subresource, ObjectDone done);
  // A strategic merge patch that holds for this object only (uid), not for another of its name.
  void patch(Cache& cache, const kube::Object& object, json::Value patch, std::string subresource,
             ObjectDone done);
  // Holds for this object only. `options`: DeleteOptions beyond the precondition.
  void remove(Cache& cache, const kube::Object& object, json::Value options, Done done);
  // Reads the object into the cache, however long that takes.
  void refresh(Cache& cache, std::string ns, std::string name, std::function<void()> done);
  // The reply as it is; the cache does not learn of it.
  void call(kube::Request request, std::function<void(kube::Reply)> done);
  void get(const Cache& cache, std::string ns, std::string name, ObjectDone done);

  void after(base::Duration delay, std::function<void()> task);
  base::Time now() const { return clock_.now(); }
  base::Random& random() { return random_; }
  base::Executor& executor() { return executor_; }
  Events& events() { return events_; }

 private:
  struct Entry {
    std::unique_ptr<Cache> cache;
    std::unique_ptr<kube::Informer> informer;
    bool dropped = false;
  };
  void start_informer(Entry& entry);
  void on_synced();

  void finish(Cache& cache, std::string ns, std::string name, kube::Reply reply, ObjectDone done);
  void learn(Cache& cache, const kube::Object& object);
  void refresh_again(Cache& cache, std::string ns, std::string name, base::Duration delay,
                     std::function<void()> done);
  void confirm(Cache& cache);

  kube::Client& client_;
  base::Executor& executor_;
  const base::Clock& clock_;
  base::Random random_;
  Events events_;
  std::vector<Entry> entries_;
  std::map<const Cache*, std::vector<std::string>> to_confirm_;
  size_t synced_ = 0;
  bool ready_ = false;
  std::function<void()> on_ready_;
};

}  // namespace tessera::apiserver::controller
