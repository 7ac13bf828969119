// The plans of StatefulSets and DaemonSets, from tables: no API, no clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/controller_daemon_set_plan.h"
#include "apiserver/controller_revisions.h"
#include "apiserver/controller_stateful_set_plan.h"
#include "json/parse.h"

namespace tessera::apiserver::controller {
namespace {

using json::Value;
using kube::Object;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr base::Time kNow{1'767'225'600'000'000'000};

Value parse(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : Value();
}

const Kind& kind_of(std::string_view kind) {
  return *Kinds::builtin().find_kind("apps", "v1", kind);
}

struct PodSpec {
  std::string name;
  std::string revision = "new";
  std::string phase = "Running";
  bool ready = true;
  bool deleting = false;
  std::string node = "n1";
  int age_seconds = 100;
};

Object pod(const PodSpec& spec) {
  Value out = parse(R"({"metadata":{"namespace":"default","labels":{"app":"a"}}})");
  Value& meta = out.ref("metadata");
  meta.set("name", spec.name);
  meta.set("uid", "uid-" + spec.name);
  meta.ref("labels").set("statefulset.kubernetes.io/pod-name", spec.name);
  meta.ref("labels").set(kRevisionHash, spec.revision);
  const std::string since = base::to_rfc3339(kNow - base::seconds(spec.age_seconds));
  meta.set("creationTimestamp", since);
  if (spec.deleting) meta.set("deletionTimestamp", base::to_rfc3339(kNow));
  out.ref("spec").set("nodeName", spec.node);
  out.ref("status").set("phase", spec.phase);
  Value ready = Value::object({{"type", "Ready"}, {"lastTransitionTime", since}});
  ready.set("status", spec.ready && spec.phase == "Running" ? "True" : "False");
  out.ref("status", "conditions").push_back(std::move(ready));
  return Object(out);
}

StatefulSet stateful_set(std::string_view spec) {
  Value out = parse(R"({"metadata":{"namespace":"default","name":"a","uid":"uid-a"}})");
  out.set("spec", parse(spec));
  out.ref("spec", "selector", "matchLabels").set("app", "a");
  auto set = read_stateful_set(Object(out));
  EXPECT_TRUE(set);
  return *set;
}

Object revision(std::string_view name, std::string_view image) {
  Value out;
  out.ref("metadata").set("name", name);
  Value pod_template = parse(R"({"metadata":{"labels":{"app":"a"}},"spec":{}})");
  pod_template.ref("spec").set("image", image);
  out.set("data", revision_data(pod_template));
  return Object(out);
}

StatefulRevisions rollout() {
  return {revision("old", "a:1"), revision("new", "a:2"), 0};
}

// "+a-1" makes it, "-a-1" deletes it, "~a-1" mends it.
std::vector<std::string> turns(std::string_view spec, const std::vector<Object>& pods) {
  const StatefulPlan plan = plan_stateful_set(
      stateful_set(spec), rollout(), pods, [](std::string_view) { return Object(); },
      kind_of("StatefulSet"), kNow);
  std::vector<std::string> out;
  for (const auto& stage : plan.stages) {
    for (const StatefulTurn& turn : stage) {
      const std::string name(turn.pod.name());
      if (turn.create) out.push_back("+" + name);
      if (turn.repair) out.push_back("~" + name);
      if (turn.remove) out.push_back("-" + name);
    }
  }
  return out;
}

TEST(StatefulSetPlan, The_ordinal_stands_at_the_end_of_the_name) {
  EXPECT_EQ(ordinal_of("a", "a-0"), 0);
  EXPECT_EQ(ordinal_of("a-1", "a-1-12"), 12);
  for (const char* other :
       {"a", "a-", "b-0", "a-x", "a-0x", "a-01", "a--1", "ab-0", "a-99999999999"}) {
    EXPECT_FALSE(ordinal_of("a", other)) << other;
  }
}

TEST(StatefulSetPlan, One_pod_after_the_other_is_made_and_deleted) {
  EXPECT_THAT(turns(R"({"replicas":3})", {}), ElementsAre("+a-0"));
  EXPECT_THAT(turns(R"({"replicas":3})", {pod({.name = "a-0"})}), ElementsAre("+a-1"));
  EXPECT_THAT(turns(R"({"replicas":3})", {pod({.name = "a-0", .ready = false})}), IsEmpty());
  EXPECT_THAT(turns(R"({"replicas":3})", {pod({.name = "a-0", .deleting = true})}), IsEmpty());
  EXPECT_THAT(turns(R"({"replicas":1,"minReadySeconds":200})", {pod({.name = "a-0"})}), IsEmpty());
  EXPECT_THAT(turns(R"({"replicas":2})", {pod({.name = "a-0", .phase = "Failed"})}),
              ElementsAre("-a-0"));
  const std::vector<Object> three = {pod({.name = "a-0"}), pod({.name = "a-1"}),
                                     pod({.name = "a-2"})};
  EXPECT_THAT(turns(R"({"replicas":1})", three), ElementsAre("-a-2"));
  EXPECT_THAT(turns(R"({"replicas":2,"ordinals":{"start":1}})", three), ElementsAre("-a-0"));
}

TEST(StatefulSetPlan, Only_a_pod_that_is_itself_unwell_goes_before_all_are_well) {
  EXPECT_THAT(
      turns(R"({"replicas":0})", {pod({.name = "a-0"}), pod({.name = "a-1", .ready = false})}),
      ElementsAre("-a-1"));
  EXPECT_THAT(turns(R"({"replicas":0})",
                    {pod({.name = "a-0", .ready = false}), pod({.name = "a-1", .ready = false})}),
              IsEmpty());
  EXPECT_THAT(
      turns(R"({"replicas":0})", {pod({.name = "a-0", .ready = false}), pod({.name = "a-1"})}),
      ElementsAre("-a-1"));
  EXPECT_THAT(
      turns(R"({"replicas":1})", {pod({.name = "a-0", .ready = false}), pod({.name = "a-1"})}),
      IsEmpty());
}

TEST(StatefulSetPlan, A_parallel_set_waits_for_nobody) {
  EXPECT_THAT(turns(R"({"replicas":3,"podManagementPolicy":"Parallel"})",
                    {pod({.name = "a-1", .ready = false})}),
              ElementsAre("+a-0", "+a-2"));
  EXPECT_THAT(turns(R"({"replicas":0,"podManagementPolicy":"Parallel"})",
                    {pod({.name = "a-0", .ready = false}), pod({.name = "a-1"})}),
              ElementsAre("-a-1", "-a-0"));
  EXPECT_EQ(turns(R"({"replicas":2000000000,"podManagementPolicy":"Parallel"})", {}).size(),
            kBurstPods);
}

TEST(StatefulSetPlan, An_update_takes_the_highest_old_pod_when_all_above_are_well) {
  const std::vector<Object> pods = {pod({.name = "a-0", .revision = "old"}),
                                    pod({.name = "a-1", .revision = "old"}), pod({.name = "a-2"})};
  EXPECT_THAT(turns(R"({"replicas":3})", pods), ElementsAre("-a-1"));
  EXPECT_THAT(turns(R"({"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":2}}})", pods),
              IsEmpty());
  EXPECT_THAT(turns(R"({"replicas":3,"updateStrategy":{"type":"OnDelete"}})", pods), IsEmpty());
  EXPECT_THAT(turns(R"({"replicas":3,"podManagementPolicy":"Parallel"})",
                    {pods[0], pods[1], pod({.name = "a-2", .ready = false})}),
              IsEmpty());
}

TEST(StatefulSetPlan, A_pod_below_the_partition_is_made_of_the_current_template) {
  const StatefulSet set =
      stateful_set(R"({"replicas":2,"updateStrategy":{"rollingUpdate":{"partition":1}}})");
  const auto made = [&](const std::vector<Object>& pods) {
    const StatefulPlan plan = plan_stateful_set(
        set, rollout(), pods, [](std::string_view) { return Object(); }, kind_of("StatefulSet"),
        kNow);
    return std::string(plan.stages.at(0).at(0).pod.label(kRevisionHash));
  };
  EXPECT_EQ(made({}), "old");
  EXPECT_EQ(made({pod({.name = "a-0", .revision = "old"})}), "new");
}

struct ClaimCase {
  const char* scaled;
  const char* deleted;
  const char* pod;
  const char* owner;  // of the claim, after
};

TEST(StatefulSetPlan, Claims_belong_to_whom_the_policy_says) {
  for (const ClaimCase& each : std::vector<ClaimCase>{{"Retain", "Retain", "a-0", ""},
                                                      {"Retain", "Delete", "a-0", "StatefulSet"},
                                                      {"Retain", "Delete", "a-9", "StatefulSet"},
                                                      {"Delete", "Retain", "a-0", ""},
                                                      {"Delete", "Retain", "a-9", "Pod"},
                                                      {"Delete", "Delete", "a-0", "StatefulSet"},
                                                      {"Delete", "Delete", "a-9", "Pod"}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", each.scaled, each.deleted, each.pod));
    Value spec = parse(R"({"replicas":1})");
    Value& policy = spec.ref("persistentVolumeClaimRetentionPolicy");
    policy.set("whenScaled", each.scaled);
    policy.set("whenDeleted", each.deleted);
    const StatefulSet set = stateful_set(spec.dump());
    const Object owner = pod({.name = each.pod});
    Value claim = parse(R"({"metadata":{"name":"c"}})");
    for (const auto& before :
         {std::string("[]"), std::string(R"([{"apiVersion":"apps/v1","kind":"StatefulSet",
                                   "name":"a","uid":"uid-a","controller":true}])")}) {
      claim.ref("metadata").set("ownerReferences", parse(before));
      const auto changed = claim_owners(set, Object(claim), owner);
      const Value owners = changed ? *changed : claim["metadata"]["ownerReferences"];
      EXPECT_EQ(owners.at(0)["kind"].as_string(), each.owner);
      EXPECT_LE(owners.size(), 1U);
      claim.ref("metadata").set("ownerReferences", owners);
      EXPECT_FALSE(claim_owners(set, Object(claim), owner)) << "nothing is left to change";
    }
    claim.ref("metadata")
        .set("ownerReferences",
             parse(R"([{"apiVersion":"apps/v1","kind":"StatefulSet","name":"a","uid":"gone"}])"));
    EXPECT_FALSE(claim_owners(set, Object(claim), owner)) << "of a set that is gone";
  }
}

TEST(Revisions, Old_ones_go_but_for_those_that_live) {
  std::vector<Object> all;
  for (int i = 1; i <= 5; ++i) {
    Value one = parse(R"({"metadata":{}})");
    one.ref("metadata").set("name", fmt::format("r{}", i));
    one.set("revision", i);
    all.emplace_back(one);
  }
  const auto names = [&](int64_t limit) {
    std::vector<std::string> out;
    for (const Object& each : past_revisions(
             all, [](const Object& one) { return one.name() == "r5" || one.name() == "r1"; },
             limit)) {
      out.emplace_back(each.name());
    }
    return out;
  };
  EXPECT_THAT(names(2), ElementsAre("r2"));
  EXPECT_THAT(names(0), ElementsAre("r2", "r3", "r4"));
  EXPECT_THAT(names(10), IsEmpty());
}

DaemonSet daemon_set(std::string_view spec) {
  Value out = parse(R"({"metadata":{"namespace":"default","name":"d","uid":"uid-d"}})");
  out.set("spec", parse(spec));
  out.ref("spec", "selector", "matchLabels").set("app", "a");
  auto set = read_daemon_set(Object(out));
  EXPECT_TRUE(set);
  return *set;
}

struct Daemons {
  std::string_view spec;
  std::vector<Object> pods;
  int nodes = 3;
  base::Time now = kNow;
};

// "+n1" makes a pod there, "-x" deletes one.
std::vector<std::string> told(const DaemonPlan& plan) {
  std::vector<std::string> out;
  for (const std::string& node : plan.create_on) out.push_back("+" + node);
  for (const Object& each : plan.remove) out.push_back("-" + std::string(each.name()));
  return out;
}

std::vector<std::string> plan_of(const Daemons& daemons, const FailureBackoff& backoff = {}) {
  const DaemonSet set = daemon_set(daemons.spec);
  std::vector<DaemonNode> nodes;
  for (int i = 1; i <= daemons.nodes; ++i) nodes.push_back({fmt::format("n{}", i), {}, {}});
  const DaemonView view{set, nodes, daemons.pods, "new", daemons.now};
  const DaemonPlan plan = plan_daemon_pods(view, backoff);
  return told(plan.empty() ? plan_daemon_rollout(view) : plan);
}

TEST(DaemonSetPlan, A_rollout_deletes_as_many_as_may_be_down_and_those_that_are_down_anyhow) {
  const Object one = pod({.name = "a", .revision = "old", .node = "n1"});
  const Object two = pod({.name = "b", .revision = "old", .node = "n2"});
  const Object three = pod({.name = "c", .revision = "old", .node = "n3"});
  constexpr const char* kOne = R"({"updateStrategy":{"rollingUpdate":{"maxUnavailable":1}}})";
  EXPECT_THAT(plan_of({.spec = kOne, .pods = {one, two, three}}), ElementsAre("-a"));
  const Object sick = pod({.name = "c", .revision = "old", .ready = false, .node = "n3"});
  EXPECT_THAT(plan_of({.spec = kOne, .pods = {one, two, sick}}), ElementsAre("-c"));
  const Object fresh = pod({.name = "c", .ready = false, .node = "n3"});
  EXPECT_THAT(plan_of({.spec = kOne, .pods = {one, two, fresh}}), IsEmpty());
  const Object going = pod({.name = "c", .revision = "old", .deleting = true, .node = "n3"});
  EXPECT_THAT(plan_of({.spec = kOne, .pods = {one, two, going}}), IsEmpty());
  EXPECT_THAT(
      plan_of({.spec = R"({"updateStrategy":{"type":"OnDelete"}})", .pods = {one, two, three}}),
      IsEmpty());
  EXPECT_THAT(plan_of({.spec = R"({"updateStrategy":{"rollingUpdate":{"maxUnavailable":"50%"}}})",
                       .pods = {one, two, three}}),
              ElementsAre("-a", "-b"));
}

TEST(DaemonSetPlan, A_surge_adds_a_pod_before_it_deletes_one) {
  constexpr const char* kSurge =
      R"({"updateStrategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}})";
  const Object one = pod({.name = "a", .revision = "old", .node = "n1"});
  const Object two = pod({.name = "b", .revision = "old", .node = "n2"});
  EXPECT_THAT(plan_of({.spec = kSurge, .pods = {one, two}, .nodes = 2}), ElementsAre("+n1"));
  const Object coming = pod({.name = "c", .ready = false, .node = "n1"});
  EXPECT_THAT(plan_of({.spec = kSurge, .pods = {one, two, coming}, .nodes = 2}), IsEmpty());
  const Object fresh = pod({.name = "c", .node = "n1"});
  EXPECT_THAT(plan_of({.spec = kSurge, .pods = {one, two, fresh}, .nodes = 2}), ElementsAre("-a"));
  const Object sick = pod({.name = "a", .revision = "old", .ready = false, .node = "n1"});
  EXPECT_THAT(plan_of({.spec = kSurge, .pods = {sick, two}, .nodes = 2}),
              ElementsAre("+n1", "+n2"));
}

TEST(DaemonSetPlan, Of_several_on_a_node_the_oldest_stays) {
  EXPECT_THAT(plan_of({.spec = "{}",
                       .pods = {pod({.name = "a", .age_seconds = 5}),
                                pod({.name = "b", .age_seconds = 50})},
                       .nodes = 1}),
              ElementsAre("-a"));
}

TEST(DaemonSetPlan, Failed_pods_are_left_alone_longer_and_longer) {
  FailureBackoff backoff;
  const std::vector<Object> failed = {pod({.name = "a", .phase = "Failed"})};
  const std::string key = failure_key(daemon_set("{}"), "n1");
  base::Time now = kNow;
  for (const int seconds : {1, 2, 4, 8}) {
    EXPECT_THAT(plan_of({.spec = "{}", .pods = failed, .nodes = 1, .now = now}, backoff),
                ElementsAre("-a"));
    backoff.count(key, now);
    EXPECT_EQ(backoff.wait(key, now), base::seconds(seconds));
    EXPECT_THAT(plan_of({.spec = "{}", .pods = failed, .nodes = 1, .now = now}, backoff),
                IsEmpty());
    now = now + base::seconds(seconds);
  }
}

TEST(DaemonSetPlan, Taints_and_labels_say_where_daemons_run) {
  const DaemonSet set = daemon_set(
      R"({"template":{"spec":{"nodeSelector":{"gpu":"yes"},
          "tolerations":[{"key":"mine","operator":"Exists"}]}}})");
  const auto fit = [&](const kube::StringMap& labels, std::vector<kube::Taint> taints) {
    const DaemonFit out = fit_on_node(set, {"n1", labels, std::move(taints)});
    return std::pair(out.should_run, out.may_stay);
  };
  const kube::StringMap gpu = {{"gpu", "yes"}};
  using kube::TaintEffect;
  EXPECT_EQ(fit(gpu, {}), std::pair(true, true));
  EXPECT_EQ(fit({}, {}), std::pair(false, false));
  EXPECT_EQ(fit(gpu, {{"mine", "", TaintEffect::kNoSchedule}}), std::pair(true, true));
  EXPECT_EQ(fit(gpu, {{"other", "", TaintEffect::kNoSchedule}}), std::pair(false, true));
  EXPECT_EQ(fit(gpu, {{"other", "", TaintEffect::kPreferNoSchedule}}), std::pair(true, true));
  EXPECT_EQ(fit(gpu, {{"other", "", TaintEffect::kNoExecute}}), std::pair(false, false));
  EXPECT_EQ(fit(gpu, {{"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule}}),
            std::pair(true, true));
  EXPECT_EQ(fit(gpu, {{"node.kubernetes.io/not-ready", "", TaintEffect::kNoSchedule}}),
            std::pair(false, true));
}

}  // namespace
}  // namespace tessera::apiserver::controller
