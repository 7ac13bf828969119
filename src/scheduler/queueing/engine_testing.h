// Builders for the tests of the queues: a cluster of equal nodes, queues, gangs of equal pods.
#pragma once

#include <string>
#include <vector>

#include "scheduler/core/core_testing.h"
#include "scheduler/queueing/engine.h"

namespace tessera::scheduler::queueing::testing {

struct Lab {
  explicit Lab(EngineOptions options = {}) : engine(options) {}

  Lab& nodes(int count, int gpus) {
    for (int n = 0; n < count; ++n) {
      node_ids.push_back(engine.cluster().add_node(core::testing::node_spec(
          engine.cluster(), "n" + std::to_string(node_ids.size() + 1), gpus)));
    }
    return *this;
  }
  Lab& queues(std::vector<QueueSpec> specs) {
    engine.set_queues(std::move(specs), now);
    return *this;
  }
  MemberSpec pod(int gpus, int32_t subgroup = 0) {
    MemberSpec spec;
    spec.request = core::testing::shared(core::testing::pod(100, gpus));
    if (gpus > 0) spec.amounts.add(kGpu, gpus * kUnitsPerGpu);
    spec.amounts.add(kCpu, 100);
    spec.subgroup = subgroup;
    return spec;
  }
  GangId gang(std::string name, std::string queue, int pods, int min, int gpus,
              int32_t priority = 0) {
    GangSpec spec;
    spec.name = std::move(name);
    spec.queue = std::move(queue);
    spec.min_members = min;
    spec.priority = priority;
    spec.created = now;
    GangId id = engine.add_gang(spec);
    for (int p = 0; p < pods; ++p) engine.add_member(id, pod(gpus));
    return id;
  }
  std::vector<GangId> singles(const std::string& queue, int count, int gpus = 1,
                              int32_t priority = 0) {
    std::vector<GangId> made;
    for (int i = 0; i < count; ++i)
      made.push_back(gang(queue + "-" + std::to_string(engine.use(engine.queues().root()).waiting) +
                              "-" + std::to_string(i),
                          queue, 1, 1, gpus, priority));
    return made;
  }
  // One cycle; whoever is evicted goes at once.
  Plan cycle() {
    Plan plan = engine.cycle(now);
    for (const Evict& evict : plan.evicts) engine.remove_member(evict.member, now);
    return plan;
  }
  // Cycles until nothing changes.
  Plan settle() {
    Plan all;
    for (int i = 0; i < 100; ++i) {
      Plan plan = cycle();
      if (plan.binds.empty() && plan.evicts.empty()) break;
      all.binds.insert(all.binds.end(), plan.binds.begin(), plan.binds.end());
      all.evicts.insert(all.evicts.end(), plan.evicts.begin(), plan.evicts.end());
    }
    return all;
  }
  int gpus_of(const std::string& queue) const {
    return static_cast<int>(engine.use(engine.queues().find(queue)).used.at(kGpu) / kUnitsPerGpu);
  }
  int placed(GangId id) const { return engine.gang(id).placed; }
  void pass(base::Duration time) { now = now + time; }

  Engine engine;
  base::Time now{base::seconds(1'000'000).ns};
  std::vector<core::NodeId> node_ids;
};

inline QueueSpec queue(std::string name, int quota, int64_t weight = 1, int32_t priority = 100,
                       std::string parent = {}) {
  QueueSpec spec;
  spec.name = std::move(name);
  spec.parent = std::move(parent);
  if (quota > 0) spec.quota = Amounts{{kGpu, quota * kUnitsPerGpu}};
  spec.weight = weight;
  spec.priority = priority;
  return spec;
}

inline QueueSpec limited(QueueSpec spec, int gpus) {
  spec.limit.add(kGpu, gpus * kUnitsPerGpu);
  return spec;
}

}  // namespace tessera::scheduler::queueing::testing
