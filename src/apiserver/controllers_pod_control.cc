#include "apiserver/controllers_pod_control.h"

#include <utility>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr int kParallelSyncs = 8;

}  // namespace

ObjectDone as_status(Done done) {
  return [done = std::move(done)](base::Result<Object> result) {
    done(result ? base::Status() : base::Status(base::error(result.error())));
  };
}

Done unless_gone(Done done) {
  return [done = std::move(done)](base::Status status) {
    if (!status && status.error().code == base::Code::kNotFound) return done({});
    done(std::move(status));
  };
}

Reconciler::Reconciler(Cluster& cluster, std::string name, Sync sync)
    : cluster_(cluster),
      queue_(cluster.executor(),
             kube::WorkQueue::Options{.name = std::move(name),
                                      .parallel = kParallelSyncs,
                                      .delay_first = base::millis(5),
                                      .delay_max = base::seconds(60)},
             std::move(sync)) {}

void Reconciler::enqueue(std::string key) {
  if (cluster_.ready()) queue_.add(std::move(key));
}

void Reconciler::enqueue_after(std::string key, base::Duration delay) {
  if (cluster_.ready()) queue_.add_after(std::move(key), delay);
}

void Reconciler::enqueue_all(const Cache& cache) {
  for (const auto& [key, object] : cache.objects()) enqueue(key);
}

bool is_namespace_terminating(const base::Error& error) {
  return error.code == base::Code::kForbidden &&
         error.message.find("because it is being terminated") != std::string::npos;
}

void create_pods(Cluster& cluster, const Object& owner, std::vector<Value> pods, Done done) {
  std::vector<Action> actions;
  for (Value& pod : pods) {
    actions.push_back([&cluster, owner, pod = std::move(pod)](const Done& each) mutable {
      const std::string name = pod.get("metadata", "name").str();
      cluster.create(cluster.cache("", "Pod"), std::move(pod),
                     [&cluster, owner, name, each](const base::Result<Object>& made) {
                       if (made) {
                         cluster.events().normal(owner, "SuccessfulCreate", "Created pod: " + name);
                         return each({});
                       }
                       if (!is_namespace_terminating(made.error())) {
                         cluster.events().warning(owner, "FailedCreate",
                                                  "Error creating: " + made.error().message);
                       }
                       each(base::error(made.error()));
                     });
    });
  }
  run_slow_start(std::move(actions), [done = std::move(done)](base::Status status) {
    if (!status && is_namespace_terminating(status.error())) return done({});
    done(std::move(status));
  });
}

void delete_pods(Cluster& cluster, const Object& owner, std::vector<Object> pods, Done done) {
  std::vector<Action> actions;
  for (const Object& pod : pods) {
    actions.push_back([&cluster, owner, pod](const Done& each) {
      cluster.remove(cluster.cache("", "Pod"), pod, {},
                     [&cluster, owner, pod, each](base::Status status) {
                       if (status) {
                         cluster.events().normal(owner, "SuccessfulDelete",
                                                 "Deleted pod: " + std::string(pod.name()));
                       }
                       each(std::move(status));
                     });
    });
  }
  run_all(std::move(actions), std::move(done));
}

void adopt(Cluster& cluster, Cache& dependents, const Cache& owners, const Object& owner,
           std::vector<Object> objects, Done done, std::string_view finalizer) {
  if (objects.empty()) return done({});
  cluster.get(
      owners, std::string(owner.ns()), std::string(owner.name()),
      [&cluster, at = &dependents, kind = &owners.kind(), owner, objects = std::move(objects),
       done = std::move(done), finalizer = std::string(finalizer)](base::Result<Object> fresh) {
        if (!fresh) return done(base::error(fresh.error()));
        if (fresh->uid() != owner.uid() || fresh->deleting()) return done({});
        std::vector<Action> actions;
        for (const Object& object : objects) {
          Value patch;
          patch.ref("metadata", "ownerReferences").push_back(controller_reference(owner, *kind));
          if (!finalizer.empty()) patch.ref("metadata", "finalizers").push_back(finalizer);
          actions.push_back([&cluster, at, object, patch](Done each) {
            cluster.patch(*at, object, patch, {}, as_status(std::move(each)));
          });
        }
        run_all(std::move(actions), done);
      });
}

void release(Cluster& cluster, Cache& dependents, const Object& owner, std::vector<Object> objects,
             Done done) {
  std::vector<Action> actions;
  for (const Object& object : objects) {
    Value patch;
    patch.ref("metadata", "ownerReferences")
        .push_back(Value::object({{"$patch", "delete"}, {"uid", owner.uid()}}));
    actions.push_back([&cluster, at = &dependents, object, patch](Done each) {
      cluster.patch(*at, object, patch, {}, as_status(std::move(each)));
    });
  }
  run_all(std::move(actions), std::move(done));
}

void claim(Cluster& cluster, Cache& dependents, const Cache& owners, const OwnerIndex& index,
           const Object& owner, const std::function<bool(const Object&)>& mine, Done done) {
  std::vector<Object> released = index.of_owner(owner.uid());
  std::erase_if(released, mine);
  std::vector<Object> adopted = index.orphans(owner.ns());
  std::erase_if(adopted, [&](const Object& each) { return each.deleting() || !mine(each); });
  if (released.empty() && adopted.empty()) return done({});
  std::vector<Action> actions;
  actions.push_back([&cluster, &dependents, owner, released = std::move(released)](Done each) {
    release(cluster, dependents, owner, released, unless_gone(std::move(each)));
  });
  actions.push_back(
      [&cluster, &dependents, &owners, owner, adopted = std::move(adopted)](Done each) {
        adopt(cluster, dependents, owners, owner, adopted, unless_gone(std::move(each)));
      });
  run_in_order(std::move(actions), std::move(done));
}

void write_status(Cluster& cluster, Cache& cache, const Object& object, Value status, Done done) {
  if (object["status"] == status) return done({});
  Value next = object.json();
  next.set("status", std::move(status));
  cluster.update(cache, std::move(next), "status", as_status(std::move(done)));
}

}  // namespace tessera::apiserver::controller
