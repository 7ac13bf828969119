#include "scheduler/model.h"

#include <gmock/gmock.h>

#include "scheduler/queue_status.h"
#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using testing::bound;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::node_object;
using testing::pod_object;
using testing::with;
using testing::yaml;

constexpr base::Time kStart{1'767'225'600'000'000'000};

class ModelTest : public ::testing::Test {
 protected:
  void add_node(std::string_view name, int gpus = 8, std::string_view more = "{}") {
    model.on_node(node_object(name, gpus, more), name, now);
  }
  void see(const Object& pod) { model.on_pod(pod.key(), pod, now); }
  void gone(const std::string& name) { model.on_pod("default/" + name, {}, now); }
  void object(std::string_view text) {
    const Object made(yaml(text));
    const std::string key(made.name());
    const Object before = objects[key];
    model.on_object(before, made, now);
    objects[key] = made;
  }
  // What a cycle decides: "pod>node" and "!pod".
  std::vector<std::string> cycle() {
    const Decisions decisions = model.cycle(now);
    EXPECT_EQ(model.engine().audit(), "");
    std::vector<std::string> out;
    for (const BindDecision& bind : decisions.binds) {
      out.push_back(fmt::format("{}>{}", bind.pod.substr(8), model.node_name(bind.placement.node)));
    }
    for (const EvictDecision& evict : decisions.evicts) {
      out.push_back("!" + evict.pod.substr(8));
      why_evicted = evict.why;
    }
    std::ranges::sort(out);
    return out;
  }
  void bind_all() {
    for (const BindDecision& bind : model.cycle(now).binds) {
      const Object pod = model.find(bind.pod)->object;
      see(bound(pod, model.node_name(bind.placement.node)));
    }
  }
  core::NodeId id_of(std::string_view name) {
    const core::Cluster& cluster = model.engine().cluster();
    for (size_t n = 0; n < cluster.node_slots(); ++n) {
      const core::NodeId id(static_cast<int32_t>(n));
      if (cluster.present(id) && model.node_name(id) == name) return id;
    }
    return {};
  }
  uint32_t idle(std::string_view node) {
    return model.engine().cluster().load(id_of(node)).gpu_idle;
  }
  int free_gpus(std::string_view node) { return __builtin_popcount(idle(node)); }
  std::string why(const std::string& name) { return model.why(*model.find("default/" + name)); }
  size_t placed_pods() { return model.engine().cluster().pods(); }

  Model model{ModelOptions{}};
  base::Time now = kStart;
  std::string why_evicted;
  std::map<std::string, Object> objects;
};

TEST_F(ModelTest, After_a_restart_bound_pods_hold_their_own_devices) {
  see(bound(pod_object("early", "{}", 2), "n", "6,7"));  // its node comes later
  add_node("n");
  EXPECT_EQ(idle("n"), 0b0011'1111U);
  see(bound(pod_object("late", "{}", 1), "n", "0"));
  EXPECT_EQ(idle("n"), 0b0011'1110U);
  EXPECT_EQ(model.engine().cluster().load(id_of("n")).cpu_free, 62'000);
}

TEST_F(ModelTest, A_node_that_comes_back_has_its_pods_again) {
  add_node("n");
  see(bound(pod_object("p", "{}", 3), "n", "0,1,2"));
  model.on_node({}, "n", now);
  EXPECT_EQ(model.nodes(), 0U);
  EXPECT_FALSE(id_of("n").valid());
  add_node("n");
  EXPECT_EQ(free_gpus("n"), 5);
  gone("p");
  EXPECT_EQ(free_gpus("n"), 8);
  EXPECT_EQ(placed_pods(), 0U);
}

TEST_F(ModelTest, Nodes_that_change_in_nothing_that_counts_ask_for_no_cycle) {
  EXPECT_TRUE(model.on_node(node_object("n"), "n", now));
  EXPECT_FALSE(
      model.on_node(node_object("n", 8, "status: {nodeInfo: {kubeletVersion: v1}}"), "n", now));
  EXPECT_TRUE(model.on_node(node_object("n", 8, "spec: {unschedulable: true}"), "n", now));
  EXPECT_FALSE(model.engine().cluster().load(id_of("n")).open);
}

TEST_F(ModelTest, An_assumed_pod_is_charged_once_and_confirmed_where_it_was_bound) {
  add_node("a");
  see(pod_object("p", "{}", 2));
  EXPECT_THAT(cycle(), ElementsAre("p>a"));
  EXPECT_EQ(model.assumed(), 1U);
  EXPECT_EQ(free_gpus("a"), 6);
  add_node("b");
  // The bind that counted was another one.
  see(bound(pod_object("p", "{}", 2), "b", "4,5"));
  EXPECT_EQ(model.assumed(), 0U);
  EXPECT_EQ(free_gpus("a"), 8);
  EXPECT_EQ(free_gpus("b"), 6);
  see(bound(pod_object("p", "{}", 2), "b", "6,7"));
  EXPECT_EQ(idle("b"), 0b0011'1111U) << "the devices it really got";
  EXPECT_THAT(cycle(), IsEmpty());
}

TEST_F(ModelTest, A_place_assumed_on_a_node_that_goes_is_not_lost_or_counted_twice) {
  add_node("a");
  see(pod_object("p", "{}", 8));
  cycle();
  model.on_node({}, "a", now);
  add_node("a");
  EXPECT_EQ(free_gpus("a"), 8) << "not yet known to be bound there";
  see(bound(pod_object("p", "{}", 8), "a", "0,1,2,3,4,5,6,7"));
  EXPECT_EQ(free_gpus("a"), 0);
  EXPECT_EQ(placed_pods(), 1U);
}

TEST_F(ModelTest, A_terminating_pod_keeps_its_gpus) {
  add_node("n");
  see(bound(pod_object("p", "{}", 8), "n"));
  see(with(bound(pod_object("p", "{}", 8), "n"),
           R"(metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"})"));
  EXPECT_EQ(free_gpus("n"), 0);
}

TEST_F(ModelTest, A_placed_pod_keeps_the_request_that_it_was_charged_with) {
  add_node("n");
  see(pod_object("p", "{}", 2));
  cycle();
  see(pod_object("p", R"(metadata: {annotations: {gpu-fraction: "0.5"}})", 2));
  EXPECT_EQ(free_gpus("n"), 6);
  model.bind_failed("default/p", "the test says so", now);
  EXPECT_EQ(free_gpus("n"), 8);
  EXPECT_THAT(why("p"), HasSubstr("a share of one")) << "once free, it is read again";
}

TEST_F(ModelTest, A_bound_pod_that_makes_no_sense_to_us_takes_its_place_all_the_same) {
  add_node("n");
  see(bound(pod_object("p", R"(metadata: {annotations: {gpu-fraction: "7"}})", 8), "n"));
  EXPECT_EQ(free_gpus("n"), 0);
}

TEST_F(ModelTest, Pods_without_annotations_take_the_least_used_devices) {
  add_node("n", 2);
  see(bound(pod_object("a", "{}", 1), "n"));
  see(bound(pod_object("b", "{}", 1), "n"));
  EXPECT_EQ(free_gpus("n"), 0);
}

TEST_F(ModelTest, Pods_that_others_bind_hold_their_place_and_are_nobodys_victims) {
  add_node("n", 2);
  see(bound(pod_object("theirs", "spec: {schedulerName: other}", 2), "n"));
  see(pod_object("p", "spec: {priority: 1000}", 2));
  EXPECT_THAT(cycle(), IsEmpty());
  EXPECT_EQ(model.engine().use(model.engine().queues().root()).used.at(queueing::kGpu), 0);
  gone("theirs");
  EXPECT_THAT(cycle(), ElementsAre("p>n"));
}

TEST_F(ModelTest, Higher_priority_evicts_and_has_the_place_when_the_other_has_gone) {
  add_node("n", 2);
  see(pod_object("low", "{}", 2));
  bind_all();
  now = now + base::seconds(60);
  see(pod_object("high", "spec: {priority: 10}", 1));
  EXPECT_THAT(cycle(), ElementsAre("!low"));
  EXPECT_THAT(why_evicted, HasSubstr("default/high of priority 10 takes the place of default/low"));
  EXPECT_THAT(why("high"), HasSubstr("is leaving"));
  EXPECT_THAT(cycle(), IsEmpty());
  gone("low");
  EXPECT_THAT(cycle(), ElementsAre("high>n"));
}

TEST_F(ModelTest, What_is_said_about_a_pod_does_not_cost_it_the_place_that_is_kept_for_it) {
  add_node("n", 4);
  for (const char* name : {"a", "b"}) see(pod_object(name, "{}", 2));
  bind_all();
  now = now + base::seconds(10);
  see(pod_object("high", "spec: {priority: 10}", 2));
  const auto victims = cycle();
  EXPECT_EQ(victims.size(), 1U);
  see(pod_object("high",
                 "{spec: {priority: 10}, metadata: {annotations: {tessera.dev/verdict: x}}}", 2));
  EXPECT_THAT(cycle(), IsEmpty()) << "nobody else has to go";
  see(pod_object("high", "{spec: {priority: 10}, metadata: {annotations: {note: y}}}", 2));
  EXPECT_THAT(cycle(), IsEmpty());
  gone(victims.front().substr(1));
  EXPECT_THAT(cycle(), ElementsAre("high>n"));
}

TEST_F(ModelTest, A_place_that_was_freed_for_a_pod_stays_its_own_when_a_budget_comes_to_cover_it) {
  add_node("n1");
  see(pod_object("low", "{}", 8));
  bind_all();
  const Object high = pod_object("high", "{metadata: {labels: {app: a}}, spec: {priority: 10}}", 4);
  see(high);
  EXPECT_THAT(cycle(), ElementsAre("!low"));
  object(
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: default}, "
      "spec: {selector: {matchLabels: {app: a}}}, status: {disruptionsAllowed: 1}}");
  see(with(high, "metadata: {annotations: {note: a}}"));
  EXPECT_THAT(cycle(), IsEmpty());
  gone("low");
  EXPECT_THAT(cycle(), ElementsAre("high>n1"));
}

TEST_F(ModelTest, A_refused_eviction_gives_nothing_away_and_is_not_asked_for_again_at_once) {
  add_node("n", 2);
  see(pod_object("low", "{}", 2));
  bind_all();
  see(pod_object("high", "spec: {priority: 10}", 1));
  EXPECT_THAT(cycle(), ElementsAre("!low"));
  model.evict_failed("default/low", now);
  EXPECT_THAT(cycle(), IsEmpty());
  EXPECT_EQ(free_gpus("n"), 0);
  model.may_be_victim("default/low");
  EXPECT_THAT(cycle(), ElementsAre("!low"));
}

TEST_F(ModelTest, A_disruption_budget_is_not_spent_twice_and_pods_that_two_cover_stay) {
  add_node("n", 2);
  for (const char* name : {"a", "b"}) see(pod_object(name, "metadata: {labels: {app: x}}", 1));
  bind_all();
  object(
      R"({apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: pdb, namespace: default},
             spec: {selector: {matchLabels: {app: x}}}, status: {disruptionsAllowed: 1}})");
  see(pod_object("high", "spec: {priority: 10}", 2));
  EXPECT_THAT(cycle(), IsEmpty()) << "both would have to go";
  see(pod_object("higher", "spec: {priority: 20}", 1));
  EXPECT_EQ(cycle().size(), 1U);
  see(pod_object("another", "spec: {priority: 20}", 1));
  EXPECT_THAT(cycle(), IsEmpty()) << "before the API says that the budget is spent";
  object(
      R"({apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: pdb, namespace: default},
             spec: {selector: {matchLabels: {app: x}}}, status: {disruptionsAllowed: 1}})");
  object(
      R"({apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: two, namespace: default},
             spec: {selector: {}}, status: {disruptionsAllowed: 5}})");
  EXPECT_THAT(cycle(), IsEmpty());
}

const char* const kGroup = R"(
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g, namespace: default}
spec: {minMember: 3}
)";
const char* const kInGroup = "metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}";

TEST_F(ModelTest, A_gang_starts_as_a_whole_or_not_at_all) {
  add_node("n", 4);
  object(kGroup);
  see(pod_object("other", "{}", 2));
  bind_all();
  for (const char* name : {"a", "b"}) see(pod_object(name, kInGroup, 1));
  EXPECT_THAT(cycle(), IsEmpty());
  EXPECT_THAT(why("a"), HasSubstr("3 members must start together and 2 exist"));
  see(pod_object("c", kInGroup, 1));
  EXPECT_THAT(cycle(), IsEmpty()) << "room for two";
  EXPECT_THAT(why("c"), HasSubstr("1 of its 3 members that must start together have no place"));
  gone("other");
  EXPECT_THAT(cycle(), ElementsAre("a>n", "b>n", "c>n"));
}

TEST_F(ModelTest, A_group_that_comes_after_its_pods_or_changes_is_read_anew) {
  add_node("n", 4);
  for (const char* name : {"a", "b"}) see(pod_object(name, kInGroup, 1));
  EXPECT_THAT(cycle(), IsEmpty()) << "a group that is not there yet";
  EXPECT_THAT(why("a"), HasSubstr("PodGroup"));
  object(kGroup);
  EXPECT_THAT(cycle(), IsEmpty());
  json::Value smaller = yaml(kGroup);
  smaller.ref("spec", "minMember") = 2;
  model.on_object({}, Object(smaller), now);
  EXPECT_THAT(cycle(), ElementsAre("a>n", "b>n"));
}

TEST_F(ModelTest, A_member_that_may_not_be_placed_is_named_as_the_reason) {
  add_node("n", 4);
  object(kGroup);
  see(pod_object("a", kInGroup, 1));
  see(pod_object("b", kInGroup, 1));
  see(with(pod_object("c", kInGroup, 1), R"(metadata: {annotations: {gpu-fraction: "two"}})"));
  EXPECT_THAT(cycle(), IsEmpty());
  EXPECT_THAT(why("a"), HasSubstr("pod c is not counted: annotation gpu-fraction"));
}

TEST_F(ModelTest, A_gang_that_was_bound_in_part_is_completed_or_released_after_a_restart) {
  add_node("n", 4);
  object(kGroup);
  see(bound(pod_object("a", kInGroup, 1), "n"));
  see(pod_object("b", kInGroup, 1));
  see(pod_object("c", kInGroup, 4));
  see(pod_object("first", "spec: {priority: 100}", 2));
  model.settle_found(now);
  EXPECT_THAT(cycle(), ElementsAre("first>n")) << "no room for c";
  now = now + base::seconds(61);
  EXPECT_THAT(cycle(), ElementsAre("!a"));
  EXPECT_THAT(why_evicted, HasSubstr("released as a whole"));
}

TEST_F(ModelTest, Members_that_have_finished_well_are_not_missed) {
  add_node("n", 4);
  object(kGroup);
  for (const char* name : {"a", "b", "c"}) see(pod_object(name, kInGroup, 1));
  bind_all();
  see(with(model.find("default/a")->object, "status: {phase: Succeeded}"));
  now = now + base::seconds(600);
  EXPECT_THAT(cycle(), IsEmpty());
  gone("a");
  now = now + base::seconds(600);
  EXPECT_THAT(cycle(), IsEmpty());
  see(with(model.find("default/b")->object, "status: {phase: Failed}"));
  EXPECT_THAT(cycle(), IsEmpty());
  now = now + base::seconds(61);
  EXPECT_THAT(cycle(), ElementsAre("!c")) << "nobody replaced b";
}

TEST_F(ModelTest, A_job_keeps_its_minimum_while_it_has_work_for_so_many) {
  add_node("n", 4);
  const char* job = R"(
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: default, uid: ju, annotations: {tessera.dev/min-members: "all"}}
spec: {parallelism: 2, completions: 5}
status: {succeeded: 0}
)";
  object(job);
  const char* of_job = R"(metadata: {ownerReferences: [
      {apiVersion: batch/v1, kind: Job, name: j, uid: ju, controller: true}]})";
  see(pod_object("a", of_job, 1));
  EXPECT_THAT(cycle(), IsEmpty());
  see(pod_object("b", of_job, 1));
  bind_all();
  EXPECT_EQ(free_gpus("n"), 2);
  see(with(model.find("default/a")->object, "status: {phase: Succeeded}"));
  const GroupEntry* group = model.group_with(*model.find("default/b"));
  EXPECT_EQ(model.engine().gang(group->gang).spec.min_members, 2) << "another takes its place";
  object(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: default, uid: ju, annotations: {tessera.dev/min-members: "all"}}
spec: {parallelism: 2, completions: 5}
status: {succeeded: 4}
)");
  cycle();
  EXPECT_EQ(model.engine().gang(group->gang).spec.min_members, 1) << "the last one";
}

TEST_F(ModelTest, Queues_limit_and_reclaim) {
  add_node("n", 4);
  object(
      R"({apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: a}, spec: {quota: {gpu: 2}}})");
  object(
      R"({apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: b}, spec: {limit: {gpu: 3}}})");
  for (int i = 0; i < 4; ++i)
    see(pod_object(fmt::format("b{}", i), "metadata: {labels: {tessera.dev/queue: b}}", 1));
  cycle();
  EXPECT_EQ(free_gpus("n"), 1);
  EXPECT_THAT(why("b3"), HasSubstr("queue \"b\" has 0 left of its limit of 3"));
  see(pod_object("big", "metadata: {labels: {tessera.dev/queue: a}}", 2));
  EXPECT_EQ(cycle().size(), 1U) << "one goes: a is owed two";
  EXPECT_THAT(why_evicted, HasSubstr("queue \"a\" takes back its share for default/big"));
  see(pod_object("lost", "metadata: {labels: {tessera.dev/queue: nowhere}}", 1));
  cycle();
  EXPECT_THAT(why("lost"), HasSubstr("queue \"nowhere\" does not exist"));
}

TEST_F(ModelTest, A_queue_that_makes_no_sense_is_closed_with_the_reason) {
  add_node("n", 4);
  object(
      R"({apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: a}, spec: {parent: b}})");
  object(
      R"({apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: b}, spec: {parent: a}})");
  object(
      R"({apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: c}, spec: {quota: {gpu: many}}})");
  for (const char* queue : {"a", "c"})
    see(pod_object(queue, fmt::format("metadata: {{labels: {{tessera.dev/queue: {}}}}}", queue),
                   1));
  see(pod_object("fine", "{}", 1));
  EXPECT_THAT(cycle(), ElementsAre("fine>n"));
  EXPECT_THAT(why("a"), HasSubstr("loop"));
  EXPECT_THAT(why("c"), HasSubstr("many"));
}

TEST_F(ModelTest, Past_use_is_written_with_the_queue_and_survives_a_restart) {
  ModelOptions options;
  options.engine.half_life = base::seconds(3600);
  model = Model(options);
  add_node("n", 4);
  const char* const text =
      "{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: a}, spec: {}}";
  object(text);
  see(pod_object("p", "metadata: {labels: {tessera.dev/queue: a}}", 4));
  cycle();
  now = now + base::seconds(7200);
  cycle();
  const auto use = [&] {
    const queueing::Engine& engine = model.engine();
    return engine.use(engine.queues().find("a")).history.sum();
  };
  const double before = use();
  EXPECT_GT(before, 0);
  const auto status = [&] {
    return queue_status(Object(yaml(text)), model.engine(), model.engine().queues().find("a"), "",
                        {}, now);
  };
  const auto patch = status();
  ASSERT_TRUE(patch);
  json::Value written = yaml(text);
  written.set("status", (*patch)["status"]);
  now = now + base::seconds(3600);
  model = Model(options);
  objects.clear();
  model.on_object({}, Object(written), now);
  cycle();
  EXPECT_NEAR(use(), before / 2, before / 1000) << "an hour later half of it counts";
  cycle();
  model.on_object({}, Object(written), now);
  cycle();
  EXPECT_NEAR(use(), before / 2, before / 1000) << "and it counts once";
}

TEST_F(ModelTest, A_reservation_keeps_its_nodes_for_its_queue_where_its_status_says) {
  add_node("n", 4);
  add_node("m", 4);
  object(R"({apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: a}})");
  object(
      fmt::format(R"({{apiVersion: tessera.dev/v1alpha1, kind: Reservation, metadata: {{name: r}},
            spec: {{queue: a, resources: {{gpu: 4}}, start: "{}", duration: 1h}},
            status: {{nodes: ["n"]}}}})",
                  base::to_rfc3339(now)));
  see(pod_object("other", "{}", 4));
  see(pod_object("late", "{}", 1));
  see(pod_object("own", "metadata: {labels: {tessera.dev/queue: a}}", 4));
  EXPECT_THAT(cycle(), ElementsAre("other>m", "own>n"));
  EXPECT_EQ(model.engine().reservations().at(0).phase, queueing::ReservationPhase::kActive);
  gone("own");
  EXPECT_THAT(cycle(), IsEmpty());
  EXPECT_THAT(why("late"), HasSubstr("held by reservation \"r\""));
  Model without = model;
  const Object reservation = objects["r"];
  EXPECT_TRUE(without.on_object(reservation, {}, now));
  EXPECT_EQ(without.cycle(now).binds.size(), 1U);
  now = now + base::seconds(3600);
  EXPECT_THAT(cycle(), ElementsAre("late>n"));
}

TEST_F(ModelTest,
       A_job_without_a_limit_is_expected_to_take_as_long_as_those_before_also_after_a_restart) {
  add_node("n", 8);
  const auto at = [&](int seconds) { return base::to_rfc3339(kStart + base::seconds(seconds)); };
  const auto ended = [&](const char* name, int from, int to) {
    return with(
        bound(pod_object(name, "{}", 8), "n"),
        fmt::format("status: {{phase: Succeeded, conditions: [{{type: PodScheduled, status: "
                    "\"True\", lastTransitionTime: \"{}\"}}], containerStatuses: [{{state: "
                    "{{terminated: {{finishedAt: \"{}\"}}}}}}]}}",
                    at(from), at(to)));
  };
  see(ended("train-1", 0, 1000));
  see(ended("train-2", 1000, 3000));
  now = kStart + base::seconds(4000);
  see(pod_object("train-3", "{}", 8));
  EXPECT_THAT(cycle(), ElementsAre("train-3>n"));
  now = now + base::seconds(10);
  see(pod_object("other", "{}", 8));
  cycle();
  const auto wait_of = [&](const Model& of) {
    return of.engine().gang(of.group_with(*of.find("default/other"))->gang).wait;
  };
  ASSERT_TRUE(wait_of(model).planned_start);
  EXPECT_EQ(*wait_of(model).planned_start, kStart + base::seconds(4000 + 1500));
  EXPECT_TRUE(wait_of(model).estimated);

  // Another that reads the same in another order plans the same.
  Model again{ModelOptions{}};
  again.on_node(node_object("n", 8), "n", now);
  const Object running = with(bound(pod_object("train-3", "{}", 8), "n"),
                              fmt::format("status: {{conditions: [{{type: PodScheduled, status: "
                                          "\"True\", lastTransitionTime: \"{}\"}}]}}",
                                          at(4000)));
  for (const Object& pod : {running, pod_object("other", "{}", 8), ended("train-2", 1000, 3000),
                            ended("train-1", 0, 1000)})
    again.on_pod(pod.key(), pod, now);
  again.settle_found(now);
  again.cycle(now);
  EXPECT_EQ(wait_of(again).planned_start, wait_of(model).planned_start);
  EXPECT_TRUE(wait_of(again).estimated);
}

// Found by the simulated world with queues, seed 100141.
TEST_F(ModelTest, A_victim_that_another_group_claims_meanwhile_has_not_gone) {
  add_node("n", 2);
  const auto job = [](const char* annotations) {
    return fmt::format(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: j, namespace: default, uid: ju, "
        "annotations: {}}}, spec: {{parallelism: 1}}}}",
        annotations);
  };
  object(job("{tessera.dev/min-members: '1'}"));
  see(pod_object("low", R"(metadata: {ownerReferences: [
      {apiVersion: batch/v1, kind: Job, name: j, uid: ju, controller: true}]})",
                 2));
  bind_all();
  see(pod_object("high", "spec: {priority: 10}", 2));
  ASSERT_THAT(cycle(), ElementsAre("!low"));
  object(job("{}"));
  EXPECT_THAT(cycle(), IsEmpty()) << "it still runs";
  gone("low");
  EXPECT_THAT(cycle(), ElementsAre("high>n"));
}

TEST_F(ModelTest, A_copy_decides_for_itself) {
  add_node("n", 4);
  see(pod_object("p", "{}", 4));
  Model what_if = model;
  what_if.on_node({}, "n", now);
  EXPECT_TRUE(what_if.cycle(now).binds.empty());
  EXPECT_THAT(cycle(), ElementsAre("p>n"));
}

TEST_F(ModelTest, Shards_divide_nodes_and_pods) {
  ModelOptions options;
  options.shard_key = "tessera.dev/pool";
  options.shard_value = "h200";
  model = Model(options);
  add_node("other");
  add_node("mine", 8, "metadata: {labels: {tessera.dev/pool: h200}}");
  see(pod_object("elsewhere", "{}", 1));
  see(pod_object("p", "metadata: {labels: {tessera.dev/pool: h200}}", 1));
  EXPECT_THAT(cycle(), ElementsAre("p>mine"));
  EXPECT_EQ(model.nodes(), 1U);
}

}  // namespace
}  // namespace tessera::scheduler
