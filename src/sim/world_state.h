// Inside of world.h: what world.cc and world_queues.cc share.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/api.h"
#include "apiserver/controllers.h"
#include "apiserver/local_client.h"
#include "base/executor.h"
#include "base/loop_clock.h"
#include "base/random.h"
#include "scheduler/scheduler.h"
#include "sim/invariants.h"
#include "sim/kubelet.h"
#include "sim/queue_invariants.h"
#include "sim/queue_workload.h"
#include "sim/workload.h"
#include "sim/world.h"

namespace tessera::sim {

inline constexpr base::Duration kNewsTake =
    base::seconds(15);  // until all have heard, on the bad network

class World {
 public:
  explicit World(WorldOptions options)
      : options_(std::move(options)), clock_(loop_), random_(options_.seed) {}

  base::Result<WorldReport> run();

 private:
  base::Status boot();
  std::unique_ptr<FaultyClient> client(std::string_view name);
  base::Status watch_all();
  void watch_kind(const apiserver::Kind& kind, std::string resource);
  void on_event(std::string_view resource, const kube::WatchEvent& event);
  base::Status see_refusal(const kube::Object& pod);
  void set_gpu(size_t node, int gpu, bool healthy);
  void apply_workload();
  void inject();
  void inject_one();
  void change_node(const std::string& name, json::Value patch);
  void heal();
  base::Status run_until(base::Duration end);
  base::Status at_rest();
  std::vector<kube::Object> list(std::string_view group, std::string_view resource,
                                 std::string_view version = "v1");
  void start_scheduler();
  // world_queues.cc
  void define_kinds();
  void create_all(std::vector<Drawn> objects);
  void change_something();
  void see_acknowledged(const kube::Request& request);
  void restart_scheduler(base::Duration away);
  std::vector<kube::Object> scheduling_objects();

  WorldOptions options_;
  base::ManualLoop loop_;
  base::LoopClock clock_;
  base::Random random_;
  NetworkFaults faults_;
  std::vector<std::string> node_names_;
  std::vector<int> node_gpus_;
  struct GpuHealth {
    bool healthy = true;
    base::Duration since;
  };
  std::map<std::string, std::map<int, GpuHealth>, std::less<>>
      health_;                     // GPUs that were ever sick, by node
  std::set<std::string> refused_;  // uids of pods
  std::unique_ptr<apiserver::Api> api_;
  std::vector<std::unique_ptr<apiserver::LocalClient>> locals_;
  std::vector<std::unique_ptr<FaultyClient>> clients_;
  std::unique_ptr<apiserver::LocalClient> user_;
  std::unique_ptr<apiserver::Controllers> controllers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<Kubelets> kubelets_;
  std::unique_ptr<Workload> workload_;
  std::vector<std::unique_ptr<base::Subscription>> watches_;
  std::unique_ptr<QueueWorkload> queue_workload_;
  Invariants invariants_{kNewsTake};
  std::unique_ptr<QueueInvariants> queue_invariants_;  // where there are queues
  base::Status broken_;
  WorldReport report_;
};

}  // namespace tessera::sim
