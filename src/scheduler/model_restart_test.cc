// Whatever moment a scheduler is killed at, the next one reads the same state from the API: the same queues are charged the
// same, and where no place is being freed just then the same gangs are placed, wait in the same order, and what is decided next
// is the same. By seed, against a twin that lives on.

#include <gmock/gmock.h>

#include "base/random.h"
#include "scheduler/model.h"
#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using base::seconds;
using kube::Object;
using queueing::MemberState;
using testing::node_object;
using testing::pod_object;
using testing::yaml;

constexpr base::Time kStart{1'767'225'600'000'000'000};

ModelOptions model_options() {
  ModelOptions options;
  options.engine.scheduler.policy = core::Policy::kBestFit;  // FGD learns what comes: not the same
  options.engine.broken_after = seconds(1'000'000);
  return options;
}

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 4; ++i) put(node_object(fmt::format("n{}", i), 4));
    put(queue("a", 6));
    put(queue("b", 6));
    put(
        Object(yaml("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}, "
                    "value: 5}")));
  }

  void turn() {
    now_ = now_ + seconds(1 + static_cast<int64_t>(random_.below(20)));
    switch (random_.below(7)) {
      case 0:
      case 1:
      case 2:
        submit();
        break;
      case 3:
        remove_some();
        break;
      case 4:
        let_go();
        break;
      default:
        break;
    }
    const Decisions decisions = twin_.cycle(now_);
    // Killed between two binds, or two evictions: what was not written is as if it had not been decided.
    for (const BindDecision& bind : decisions.binds) write_bind(bind);
    for (const EvictDecision& evict : decisions.evicts) write_eviction(evict);
    // What has been seen may have mended or opened something.
    if (random_.chance(0.5)) return;
    compare();
  }

  void compare() {
    Model fresh = restarted();
    Model twin = twin_;
    ASSERT_EQ(twin.engine().audit(), "");
    ASSERT_EQ(fresh.engine().audit(), "");
    ASSERT_EQ(queues_of(fresh), queues_of(twin));
    // For whom places are being freed is not in the API: they are claimed anew, and may fall otherwise.
    const bool leaving =
        std::ranges::any_of(pods(), [](const Object& pod) { return pod.deleting(); });
    if (leaving || claiming(twin) > 0) return;
    ++compared_;
    const Decisions expected = twin.cycle(now_);
    const Decisions found = fresh.cycle(now_);
    ASSERT_EQ(fresh.engine().audit(), "");
    EXPECT_EQ(binds_of(fresh, found), binds_of(twin, expected));
    EXPECT_EQ(evicts_of(found), evicts_of(expected));
    ASSERT_EQ(gangs_of(fresh), gangs_of(twin));
  }
  // Killed after a part of what was decided was written: the next one makes gangs whole, and asks nobody more to go.
  void kill_half_way() {
    for (int i = 0; i < 3; ++i) submit();
    const Decisions decisions = twin_.cycle(now_);
    const size_t binds = random_.below(decisions.binds.size() + 1);
    for (size_t i = 0; i < binds; ++i) write_bind(decisions.binds[i]);
    twin_ = restarted();
    for (int i = 0; i < 4; ++i) {
      const Decisions next = twin_.cycle(now_);
      for (const BindDecision& bind : next.binds) write_bind(bind);
      for (const EvictDecision& evict : next.evicts) write_eviction(evict);
      ASSERT_EQ(twin_.engine().audit(), "");
    }
    for (const auto& [name, group] : twin_.groups()) {
      const queueing::Gang& gang = twin_.engine().gang(group.gang);
      EXPECT_TRUE(gang.placed == 0 || gang.placed >= gang.spec.min_members) << name;
    }
  }
  uint64_t compared() const { return compared_; }

 private:
  static Object queue(std::string_view name, int quota) {
    return Object(
        yaml(fmt::format("{{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: "
                         "{{name: {}}}, spec: {{quota: {{gpu: {}}}}}}}",
                         name, quota)));
  }
  static std::string id_of(const Object& object) {
    return fmt::format("{}/{}", object.kind(), object.key());
  }
  static void tell(Model& model, const Object& before, const Object& after, base::Time now) {
    const Object& object = after ? after : before;
    if (object.kind() == "Node") {
      model.on_node(after, object.name(), now);
    } else if (object.kind() == "Pod") {
      model.on_pod(object.key(), after, now);
    } else {
      model.on_object(before, after, now);
    }
  }
  void put(const Object& object) {
    Object& slot = store_[id_of(object)];
    tell(twin_, slot, object, now_);
    slot = object;
  }
  void erase(const std::string& id) {
    const auto found = store_.find(id);
    if (found == store_.end()) return;
    tell(twin_, found->second, {}, now_);
    store_.erase(found);
  }
  Model restarted() {
    Model fresh(model_options());
    for (const auto& [id, object] : store_) tell(fresh, {}, object, now_);
    fresh.settle_found(now_);
    return fresh;
  }

  void submit() {
    const int gang = ++made_;
    const int size = 1 + static_cast<int>(random_.below(4));
    const std::string created = base::to_rfc3339(now_ = now_ + seconds(1));
    if (size > 1) {
      put(Object(yaml(fmt::format(
          R"({{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {{namespace: default,
              name: g{:03}, creationTimestamp: "{}"}}, spec: {{schedulingPolicy: {{gang: {{minCount: {}}}}}}}}})",
          gang, created, size))));
    }
    const char* queue = random_.chance(0.5) ? "a" : "b";
    const int priority = random_.chance(0.3) ? 5 : 0;
    const int gpus = 1 + static_cast<int>(random_.below(3));
    for (int i = 0; i < size; ++i) {
      put(pod_object(
          fmt::format("g{:03}-{}", gang, i),
          fmt::format(R"({{metadata: {{creationTimestamp: "{}", labels: {{tessera.dev/queue: {}}}}},
                     spec: {{priority: {}{}}}}})",
                      created, queue, priority,
                      size > 1 ? fmt::format(", schedulingGroup: {{podGroupName: g{:03}}}", gang)
                               : std::string()),
          gpus));
    }
  }
  std::vector<Object> pods() const {
    std::vector<Object> out;
    for (const auto& [id, object] : store_) {
      if (object.kind() == "Pod") out.push_back(object);
    }
    return out;
  }
  // The pods of one gang end.
  void remove_some() {
    const std::vector<Object> all = pods();
    if (all.empty()) return;
    const std::string name(all[random_.below(all.size())].name());
    for (const Object& pod : all) {
      if (pod.name().substr(0, 4) == name.substr(0, 4)) erase(id_of(pod));
    }
  }
  // Those that were evicted go.
  void let_go() {
    for (const Object& pod : pods()) {
      if (pod.deleting()) erase(id_of(pod));
    }
  }
  void write_bind(const BindDecision& bind) {
    const PodEntry* pod = twin_.find(bind.pod);
    ASSERT_NE(pod, nullptr);
    json::Value root = pod->object.json();
    root.ref("spec", "nodeName") = twin_.node_name(bind.placement.node);
    for (const auto& [key, value] : twin_.annotations_of(bind))
      root.ref("metadata", "annotations", key) = value;
    root.ref("status", "startTime") = base::to_rfc3339(now_);
    put(Object(root));
  }
  void write_eviction(const EvictDecision& evict) {
    const PodEntry* pod = twin_.find(evict.pod);
    ASSERT_NE(pod, nullptr);
    json::Value root = pod->object.json();
    root.ref("metadata", "deletionTimestamp") = base::to_rfc3339(now_);
    put(Object(root));
  }

  // Used and wanted, by queue; of those that are leaving for somebody the one who claims the place is charged already.
  static std::map<std::string, std::pair<int64_t, int64_t>> queues_of(Model& model) {
    std::map<std::string, std::pair<int64_t, int64_t>> out;
    const queueing::Engine& engine = model.engine();
    for (const char* name : {"a", "b", "default"}) {
      const queueing::QueueUse& use = engine.use(engine.queues().find(name));
      int64_t leaving = 0;
      int64_t claimed = 0;
      for (const auto& [key, group] : model.groups()) {
        const queueing::Gang& gang = engine.gang(group.gang);
        if (gang.spec.queue != name) continue;
        for (const queueing::MemberId id : gang.members) {
          const queueing::Member& member = engine.member(id);
          const int64_t gpus = member.spec.amounts.at(queueing::kGpu);
          if (member.state == MemberState::kLeaving && !member.pod.valid()) leaving += gpus;
          if (member.state == MemberState::kClaimed) claimed += gpus;
        }
      }
      out[name] = {use.used.at(queueing::kGpu) + leaving - claimed,
                   use.wanted.at(queueing::kGpu) + claimed};
    }
    return out;
  }
  static std::vector<std::string> gangs_of(const Model& model) {
    std::vector<std::string> out;
    for (const auto& [key, group] : model.groups()) {
      const queueing::Gang& gang = model.engine().gang(group.gang);
      int claimed = 0;
      for (const queueing::MemberId id : gang.members)
        claimed += model.engine().member(id).state == MemberState::kClaimed ? 1 : 0;
      out.push_back(fmt::format("{}: {} placed, {} claimed, {} wait, position {}", key, gang.placed,
                                claimed, gang.waiting,
                                gang.waiting > 0 ? model.engine().position(group.gang) : 0));
    }
    return out;
  }
  static int claiming(const Model& model) {
    int out = 0;
    for (const auto& [key, group] : model.groups()) {
      for (const queueing::MemberId id : model.engine().gang(group.gang).members) {
        if (model.engine().member(id).state != MemberState::kClaimed) continue;
        ++out;
        break;
      }
    }
    return out;
  }
  static std::set<std::string> binds_of(const Model& model, const Decisions& decisions) {
    std::set<std::string> out;
    for (const BindDecision& bind : decisions.binds)
      out.insert(fmt::format("{}>{}", bind.pod, model.node_name(bind.placement.node)));
    return out;
  }
  static std::set<std::string> evicts_of(const Decisions& decisions) {
    std::set<std::string> out;
    for (const EvictDecision& evict : decisions.evicts) out.insert(evict.pod);
    return out;
  }

  base::Random random_;
  base::Time now_ = kStart;
  Model twin_{model_options()};
  std::map<std::string, Object> store_;
  int made_ = 0;
  uint64_t compared_ = 0;
};

TEST(ModelRestart, Another_that_reads_the_api_is_the_same_as_one_that_lived_on) {
  uint64_t compared = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    for (int i = 0; i < 40 && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(i);
      world.turn();
    }
    compared += world.compared();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(compared, 200U);
}

TEST(ModelRestart, Killed_half_way_gangs_are_made_whole_by_the_next) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    for (int i = 0; i < 10; ++i) {
      world.kill_half_way();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tessera::scheduler
