#include "scheduler/group_status.h"

#include <gmock/gmock.h>

#include "json/patch.h"
#include "scheduler/conditions.h"
#include "scheduler/queueing/engine_testing.h"
#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using queueing::WaitReason;
using queueing::testing::Lab;
using queueing::testing::limited;
using queueing::testing::queue;
using ::testing::HasSubstr;
using testing::yaml;

// One group whose status is written, again and again, as the world goes on.
class Written {
 public:
  Written(Dialect dialect, std::string_view api_version) {
    group.dialect = dialect;
    object = yaml("{kind: PodGroup, metadata: {name: g, namespace: ns, uid: u}}");
    object.set("apiVersion", api_version);
    now.min = 4;
    now.now = base::Time{base::seconds(1'000'000).ns};
  }
  std::optional<json::Value> ask() const { return group_status(group, kube::Object(object), now); }
  // Writes what there is to write, sees that nothing is left, and lets ten seconds pass. Whether anything was written.
  bool write() {
    const auto patch = ask();
    if (patch) object = json::apply_merge_patch(object, *patch);
    const auto again = ask();
    EXPECT_FALSE(again) << again->dump();
    now.now = now.now + base::seconds(10);
    const auto later = ask();
    EXPECT_FALSE(later) << later->dump();
    return patch.has_value();
  }
  // Members that exist, wait, have a place and run.
  Written& pods(int members, int waiting, int placed, int running) {
    now.members = members;
    now.waiting = waiting;
    now.placed = placed;
    now.running = running;
    now.ever_started |= placed >= now.min;
    return *this;
  }
  Written& ended(int succeeded, int failed) {
    now.succeeded = succeeded;
    now.failed = failed;
    return *this;
  }
  Written& waits(WaitReason reason, std::string why) {
    now.reason = reason;
    now.why = std::move(why);
    return *this;
  }
  Written& goes_on() { return waits(WaitReason::kNone, ""); }
  const json::Value& status() const { return object["status"]; }
  std::string phase() {
    write();
    return status()["phase"].str();
  }
  // "True Reason", or "" where there is none.
  std::string condition(std::string_view type) const {
    const json::Value& found = condition_of(status(), type);
    if (found.is_null()) return "";
    return found["status"].str() + " " + found["reason"].str();
  }
  std::string message(std::string_view type) const {
    return condition_of(status(), type)["message"].str();
  }
  std::string since(std::string_view type) const {
    return condition_of(status(), type)["lastTransitionTime"].str();
  }

  Group group{};
  json::Value object{};
  GroupProgress now{};
};

constexpr const char* kVolcano = "scheduling.volcano.sh/v1beta1";
constexpr const char* kPlugins = "scheduling.x-k8s.io/v1alpha1";

TEST(GroupStatusVolcano, Phases_from_pending_to_completed) {
  Written g(Dialect::kVolcano, kVolcano);
  g.now.barred = "queue \"q\" does not exist: create it, or name another";
  EXPECT_EQ(g.phase(), "Pending");
  EXPECT_EQ(g.condition("Unschedulable"), "True NotEnoughResources");
  EXPECT_THAT(g.message("Unschedulable"), HasSubstr("create it"));
  g.now.barred.clear();
  EXPECT_EQ(g.phase(), "Inqueue");  // no pod exists yet: its controller may make them now
  EXPECT_EQ(g.condition("Unschedulable"), "False Scheduled");
  g.pods(2, 2, 0, 0).waits(WaitReason::kMembers, "4 members must start together and 2 exist");
  EXPECT_EQ(g.phase(), "Inqueue");
  EXPECT_EQ(g.condition("Unschedulable"), "True NotEnoughTasks");
  g.pods(4, 4, 0, 0).waits(WaitReason::kCapacity, "no room");
  EXPECT_EQ(g.phase(), "Inqueue");
  EXPECT_EQ(g.condition("Unschedulable"), "True NotEnoughResources");
  EXPECT_EQ(g.condition("Scheduled"), "");
  g.pods(4, 0, 4, 0).goes_on();
  EXPECT_EQ(g.phase(), "Inqueue");
  EXPECT_EQ(g.condition("Scheduled"), "True Scheduled");
  EXPECT_EQ(g.condition("Unschedulable"), "False Scheduled");
  EXPECT_EQ(g.pods(4, 0, 4, 2).phase(), "Inqueue");  // its kubelets are at it
  EXPECT_EQ(g.pods(4, 0, 4, 4).phase(), "Running");
  EXPECT_EQ(g.status()["running"].as_int(), 4);
  g.pods(4, 1, 3, 3).waits(WaitReason::kCapacity, "no room");
  EXPECT_EQ(g.phase(), "Unknown");
  EXPECT_EQ(g.condition("Scheduled"), "False NotEnoughResources");
  EXPECT_EQ(g.pods(4, 0, 4, 3).goes_on().phase(), "Unknown");
  EXPECT_EQ(g.pods(4, 0, 4, 4).phase(), "Running");
  EXPECT_EQ(g.pods(2, 0, 2, 2).ended(2, 0).phase(), "Running");
  EXPECT_EQ(g.pods(0, 0, 0, 0).ended(3, 1).phase(), "Completed");
  EXPECT_EQ(g.status()["succeeded"].as_int(), 3);
  EXPECT_EQ(g.status()["failed"].as_int(), 1);
  EXPECT_EQ(g.status()["running"].as_int(), 0);
  EXPECT_EQ(g.ended(0, 0).phase(), "Completed");     // its pods are cleared away
  EXPECT_EQ(g.pods(4, 4, 0, 0).phase(), "Inqueue");  // and made anew
}

TEST(GroupStatusVolcano, Once_in_its_queue_it_never_goes_back_to_pending) {
  Written g(Dialect::kVolcano, kVolcano);
  EXPECT_EQ(g.phase(), "Inqueue");
  g.now.barred = "queue \"q\" is closed";
  EXPECT_EQ(g.phase(), "Inqueue");
  EXPECT_EQ(g.pods(4, 0, 4, 4).phase(), "Running");
  EXPECT_EQ(g.pods(4, 4, 0, 0).phase(), "Inqueue");  // evicted as a whole
  EXPECT_EQ(g.pods(0, 0, 0, 0).phase(), "Inqueue");
}

TEST(GroupStatusVolcano, A_role_that_is_short_of_pods_has_a_reason_of_its_own) {
  Written g(Dialect::kVolcano, kVolcano);
  g.group.spec.subgroup_mins = {1, 3, 0};
  g.pods(4, 4, 0, 0).waits(WaitReason::kMembers, "5 members must start together and 4 exist");
  g.write();
  EXPECT_EQ(g.condition("Unschedulable"), "True NotEnoughPodsOfTask");
}

TEST(GroupStatusVolcano, A_condition_keeps_its_time_and_its_number_until_it_turns) {
  Written g(Dialect::kVolcano, kVolcano);
  g.pods(4, 4, 0, 0).waits(WaitReason::kCapacity, "0/24 nodes are available");
  EXPECT_TRUE(g.write());
  const std::string since = g.since("Unschedulable");
  auto id = [&] { return condition_of(g.status(), "Unschedulable")["transitionID"].str(); };
  EXPECT_EQ(id(), "1");
  g.waits(WaitReason::kCapacity, "0/23 nodes are available");
  EXPECT_FALSE(g.write());  // numbers come and go
  g.waits(WaitReason::kClosed, "queue \"q\" is closed");
  EXPECT_TRUE(g.write());
  EXPECT_EQ(g.since("Unschedulable"), since);
  EXPECT_EQ(id(), "1");
  g.pods(4, 0, 4, 0).goes_on();
  EXPECT_TRUE(g.write());
  EXPECT_NE(g.since("Unschedulable"), since);
  EXPECT_EQ(id(), "2");
}

TEST(GroupStatusVolcano, Conditions_of_others_stay) {
  Written g(Dialect::kVolcano, kVolcano);
  g.object.set("status",
               yaml("{phase: Pending, conditions: [{type: Theirs, status: 'True'}, "
                    "{type: Scheduled, status: 'False', transitionID: a-uid}], extra: 1}"));
  g.pods(4, 0, 4, 4);
  g.write();
  EXPECT_EQ(g.status()["conditions"].at(0)["type"].as_string(), "Theirs");
  EXPECT_EQ(g.status()["conditions"].size(), 2U);
  EXPECT_EQ(g.condition("Scheduled"), "True Scheduled");
  EXPECT_EQ(g.status()["extra"].as_int(), 1);
}

TEST(GroupStatusPlugins, Phases_from_pending_to_finished) {
  Written g(Dialect::kPlugins, kPlugins);
  g.pods(2, 2, 0, 0).waits(WaitReason::kMembers, "4 members must start together and 2 exist");
  g.now.owners = {"job-b", "job-a", "job-b"};
  EXPECT_EQ(g.phase(), "Pending");
  EXPECT_FALSE(g.status().contains("scheduleStartTime"));
  EXPECT_EQ(g.condition("Unschedulable"), "True NotEnoughMembers");
  EXPECT_EQ(g.pods(4, 4, 0, 0).phase(), "Scheduling");
  const std::string start = g.status()["scheduleStartTime"].str();
  EXPECT_EQ(g.status()["occupiedBy"].as_string(), "ns/job-a,ns/job-b");
  EXPECT_EQ(g.pods(4, 0, 4, 1).goes_on().phase(), "Scheduling");
  EXPECT_EQ(g.status()["scheduled"].as_int(), 4);
  EXPECT_EQ(g.condition("Unschedulable"), "False Scheduled");
  EXPECT_EQ(g.pods(4, 0, 4, 4).phase(), "Running");
  EXPECT_EQ(g.pods(4, 1, 3, 3).ended(0, 1).phase(), "Unknown");
  EXPECT_EQ(g.pods(4, 0, 4, 4).phase(), "Running");
  EXPECT_EQ(g.pods(1, 0, 1, 1).ended(3, 0).phase(), "Running");
  EXPECT_EQ(g.pods(0, 0, 0, 0).ended(4, 0).phase(), "Finished");
  EXPECT_EQ(g.status()["scheduleStartTime"].str(), start);
  EXPECT_EQ(g.ended(0, 0).phase(), "Finished");
  EXPECT_EQ(g.pods(1, 1, 0, 0).phase(), "Pending");
}

TEST(GroupStatusPlugins, It_fails_where_what_is_left_cannot_make_the_minimum) {
  Written g(Dialect::kPlugins, kPlugins);
  EXPECT_EQ(g.pods(4, 0, 4, 4).phase(), "Running");
  EXPECT_EQ(g.pods(3, 0, 3, 3).ended(0, 1).phase(), "Failed");
  EXPECT_EQ(g.pods(0, 0, 0, 0).ended(0, 4).phase(), "Failed");
  EXPECT_EQ(g.ended(0, 0).phase(), "Failed");
}

TEST(GroupStatusPlugins, A_definition_without_conditions_is_not_written_for_their_sake) {
  Written g(Dialect::kPlugins, kPlugins);
  g.pods(4, 4, 0, 0).waits(WaitReason::kCapacity, "no room");
  const auto patch = g.ask();
  ASSERT_TRUE(patch);
  EXPECT_TRUE((*patch)["status"].contains("conditions"));
  g.object = json::apply_merge_patch(g.object, *patch);
  g.object.ref("status").erase("conditions");  // pruned
  g.waits(WaitReason::kCapacity, "still no room");
  EXPECT_FALSE(g.ask());
}

TEST(GroupStatusPlugins, A_definition_without_the_field_scheduled_is_not_written_for_ever) {
  Written g(Dialect::kPlugins, kPlugins);
  g.pods(4, 0, 4, 0);
  const auto patch = g.ask();
  ASSERT_TRUE(patch);
  EXPECT_EQ((*patch)["status"]["scheduled"].as_int(), 4);
  g.object = json::apply_merge_patch(g.object, *patch);
  g.object.ref("status").erase("scheduled");  // pruned
  EXPECT_FALSE(g.ask());
}

TEST(GroupStatusKubernetes, The_condition_is_named_by_the_version_and_stays_true) {
  for (const auto& [version, type] :
       {std::pair{"scheduling.k8s.io/v1alpha2", "PodGroupScheduled"},
        std::pair{"scheduling.k8s.io/v1alpha3", "PodGroupInitiallyScheduled"},
        std::pair{"scheduling.k8s.io/v1beta1", "PodGroupInitiallyScheduled"}}) {
    Written g(Dialect::kKubernetes, version);
    EXPECT_FALSE(g.write());  // nothing is known yet
    g.pods(4, 4, 0, 0).waits(WaitReason::kCapacity, "no room");
    EXPECT_TRUE(g.write());
    EXPECT_EQ(g.condition(type), "False Unschedulable") << version;
    EXPECT_EQ(g.message(type), "no room");
    g.now.error = "the model is out of step";
    g.write();
    EXPECT_EQ(g.condition(type), "False SchedulerError");
    g.now.error.clear();
    g.pods(4, 0, 4, 0).goes_on().write();
    EXPECT_EQ(g.condition(type), "True Scheduled");
    g.pods(4, 2, 2, 2).waits(WaitReason::kCapacity, "no room");
    EXPECT_FALSE(g.write());
    EXPECT_EQ(g.condition(type), "True Scheduled");
    EXPECT_EQ(g.status()["conditions"].size(), 1U);
    EXPECT_EQ(g.status().size(), 1U);
  }
}

TEST(GroupStatusKubernetes, A_group_that_is_evicted_says_so_until_it_is_over) {
  Written g(Dialect::kKubernetes, "scheduling.k8s.io/v1beta1");
  g.pods(4, 0, 4, 4).write();
  g.now.evicting = "it makes room for \"ns/high\" of queue \"q\"";
  EXPECT_TRUE(g.write());
  EXPECT_EQ(g.condition("DisruptionTarget"), "True PreemptionByScheduler");
  g.now.evicting.clear();
  g.pods(4, 4, 0, 0);
  EXPECT_TRUE(g.write());
  EXPECT_EQ(g.condition("DisruptionTarget"), "False EvictionEnded");
}

TEST(GroupStatus, A_planned_start_is_told_and_taken_back_where_there_are_conditions) {
  for (const auto& [dialect, version] :
       {std::pair{Dialect::kVolcano, kVolcano},
        std::pair{Dialect::kKubernetes, "scheduling.k8s.io/v1beta1"}}) {
    Written g(dialect, version);
    g.pods(4, 4, 0, 0).waits(WaitReason::kCapacity, "no room").write();
    EXPECT_EQ(g.condition(kPlannedStart), "");
    g.now.planned_start = base::Time{base::seconds(1'010'000).ns};
    g.now.planned_nodes = {"n1", "n2"};
    EXPECT_TRUE(g.write());
    EXPECT_EQ(g.condition(kPlannedStart), "True Reserved");
    EXPECT_EQ(g.message(kPlannedStart), "1970-01-12T16:33:20Z on n1, n2");
    const std::string since = g.since(kPlannedStart);
    g.now.planned_start = *g.now.planned_start + base::seconds(59);
    EXPECT_FALSE(g.write());
    g.now.planned_start = *g.now.planned_start + base::seconds(1);
    EXPECT_TRUE(g.write());
    EXPECT_EQ(g.message(kPlannedStart), "1970-01-12T16:34:20Z on n1, n2");
    g.now.planned_nodes = {"n1", "n3"};
    EXPECT_TRUE(g.write());
    EXPECT_EQ(g.since(kPlannedStart), since);
    g.pods(4, 0, 4, 0).goes_on();
    EXPECT_TRUE(g.write());
    EXPECT_EQ(g.condition(kPlannedStart), "False NotReserved");
    g.now.planned_start.reset();
    EXPECT_FALSE(g.write());
  }
}

TEST(GroupStatus, Many_planned_nodes_are_counted_beyond_the_first) {
  Written g(Dialect::kKubernetes, "scheduling.k8s.io/v1beta1");
  g.now.planned_start = base::Time{base::seconds(1'010'000).ns};
  for (int i = 0; i < 1000; ++i) g.now.planned_nodes.push_back("node");
  g.write();
  EXPECT_THAT(g.message(kPlannedStart), ::testing::EndsWith("node, node and 984 more"));
}

TEST(GroupStatus, What_is_not_ours_to_write_is_left_alone) {
  for (const Dialect dialect :
       {Dialect::kWorkload, Dialect::kKai, Dialect::kKueue, Dialect::kOwner, Dialect::kAlone}) {
    Written g(dialect, "scheduling.run.ai/v2alpha2");
    g.pods(4, 4, 0, 0).waits(WaitReason::kCapacity, "no room");
    EXPECT_FALSE(g.ask());
  }
  Written gone(Dialect::kVolcano, kVolcano);
  gone.object = json::Value();
  EXPECT_FALSE(gone.ask());
}

TEST(GroupStatus, A_status_of_another_shape_is_written_over) {
  for (const char* status :
       {"7", "[]", "{phase: [], conditions: x, running: many, scheduled: {}}",
        "{conditions: [1, {type: []}, {}], scheduleStartTime: null, occupiedBy: 3}"}) {
    for (const auto& [dialect, version] :
         {std::pair{Dialect::kVolcano, kVolcano}, std::pair{Dialect::kPlugins, kPlugins},
          std::pair{Dialect::kKubernetes, "scheduling.k8s.io/v1beta1"}}) {
      Written g(dialect, version);
      g.object.set("status", yaml(status));
      g.pods(4, 0, 4, 4);
      EXPECT_TRUE(g.write()) << status;
    }
  }
}

TEST(WhyBarred, Only_what_can_never_start_keeps_a_group_out_of_its_queue) {
  Lab lab;
  queueing::QueueSpec shut = queue("shut", 0);
  shut.open = false;
  queueing::QueueSpec leaf = queue("leaf", 0, 1, 100, "top");
  leaf.limit.add(queueing::kCpu, 2000);
  leaf.limit.add(queueing::kMemory, 1024);
  leaf.limit.add(lab.engine.dims().intern("example.com/x"), 3);
  lab.queues({limited(queue("top", 0), 4), leaf, shut, queue("orphan", 0, 1, 100, "gone")});
  struct Case {
    const char* queue;
    const char* resources;
    const char* why;
  };
  for (const Case& c :
       {Case{"leaf", "{}", ""}, Case{"leaf", "{nvidia.com/gpu: 4, cpu: 2, memory: 1Gi}", ""},
        Case{"leaf", "{nvidia.com/gpu: 5}", "5 gpu is more than the limit of queue \"top\", 4"},
        Case{"leaf", "{amd.com/gpu: '5'}", "queue \"top\""},
        Case{"leaf", "{nvidia.com/mig-7g.80gb: 5}", "queue \"top\""},
        Case{"leaf", "{cpu: 2001m}", "2.001 cpu is more than the limit of queue \"leaf\", 2"},
        Case{"leaf", "{memory: 1025Mi}", "1025Mi memory"},
        Case{"leaf", "{example.com/x: 4}", "4 example.com/x"},
        Case{"leaf", "{example.com/other: 1000000, pods: 7}", ""},
        Case{"leaf", "{cpu: many, memory: -3, nvidia.com/gpu: []}", ""}, Case{"leaf", "7", ""},
        Case{"nowhere", "{}", "does not exist"}, Case{"shut", "{}", "is closed"},
        Case{"orphan", "{}", "is closed: "}, Case{"top", "{}", "has queues under it"}}) {
    json::Value object = yaml("{kind: PodGroup, spec: {}}");
    object.ref("spec").set("minResources", yaml(c.resources));
    const std::string why = why_barred(kube::Object(object), c.queue, lab.engine, ShareRules{});
    EXPECT_EQ(why.empty(), *c.why == '\0') << c.resources << ": " << why;
    EXPECT_THAT(why, HasSubstr(c.why)) << c.resources;
  }
}

TEST(GroupWithoutPods, It_reads_as_its_pods_would) {
  struct Case {
    const char* object;
    Dialect dialect;
    int32_t min;
    const char* queue;
  };
  for (const Case& c :
       {Case{"{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, "
             "namespace: ns}, spec: {minMember: 4, queue: q}}",
             Dialect::kVolcano, 4, "q"},
        Case{"{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g, "
             "namespace: ns, labels: {tessera.dev/queue: q2}}, spec: {minMember: 3}}",
             Dialect::kPlugins, 3, "q2"},
        Case{"{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g, "
             "namespace: ns}, spec: {schedulingPolicy: {gang: {minCount: 2}}}}",
             Dialect::kKubernetes, 2, "default"},
        Case{"{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {name: g}}",
             Dialect::kAlone, 1, ""},
        Case{"{}", Dialect::kAlone, 1, ""}}) {
    const kube::Object object(yaml(c.object));
    GroupSources sources;
    sources.object = [&](std::string_view, std::string_view, std::string_view, std::string_view) {
      return object;
    };
    const Group group = group_without_pods(object, sources);
    EXPECT_EQ(group.dialect, c.dialect) << c.object;
    EXPECT_EQ(group.spec.min_members, c.min) << c.object;
    EXPECT_EQ(group.spec.queue, c.queue) << c.object;
    EXPECT_EQ(group.waits, "") << c.object;
  }
}

}  // namespace
}  // namespace tessera::scheduler
