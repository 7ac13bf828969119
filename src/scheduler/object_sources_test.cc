#include "scheduler/object_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/log.h"
#include "scheduler/object_sources_testing.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using ::testing::AllOf;
using testing::ChangingApi;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::yaml;

constexpr const char* kGroups = "podgroups.scheduling.volcano.sh";
constexpr const char* kClasses = "workloadpriorityclasses.kueue.x-k8s.io";
constexpr const char* kNative = "podgroups.scheduling.k8s.io";

kube::Object object(std::string_view kind, std::string_view name, std::string_view uid = "") {
  json::Value out;
  out.set("kind", kind);
  out.ref("metadata", "name") = name;
  out.ref("metadata", "uid") = uid.empty() ? name : uid;
  return kube::Object(out);
}

class ObjectSourcesTest : public ::testing::Test {
 protected:
  void start(uint64_t seed = 1) {
    sources = std::make_unique<ObjectSources>(
        api, loop, base::Random(seed), ObjectSources::Options{},
        ObjectSources::Handlers{
            [this](const kube::Object& before, const kube::Object& after) { on(before, after); },
            [this] { told.emplace_back("synced"); }});
    sources->start();
    loop.run_ready();
  }
  // "+v1beta1/PodGroup/a" came, "-" went, "~" changed; of an object that changed, what it is now.
  void on(const kube::Object& before, const kube::Object& after) {
    const kube::Object& any = after ? after : before;
    const std::string_view version = any.api_version();
    const std::string name =
        fmt::format("{}/{}/{}", version.substr(version.find('/') + 1), any.kind(), any.name());
    told.push_back((!before ? "+" : after ? "~" : "-") + name);
    const std::string slot = fmt::format("{}/{}/{}", group_of(any), any.kind(), any.key());
    // The two ends of a change fit what was told before.
    const auto known = held.find(slot);
    ASSERT_EQ(known != held.end(), static_cast<bool>(before)) << slot;
    if (before) {
      ASSERT_EQ(known->second.resource_version(), before.resource_version()) << slot;
      ASSERT_EQ(known->second.uid(), before.uid()) << slot;
      ASSERT_TRUE(!after || before.uid() == after.uid()) << slot;
    }
    if (after)
      held[slot] = after;
    else
      held.erase(slot);
  }
  static std::string_view group_of(const kube::Object& any) {
    return any.api_version().substr(0, any.api_version().find('/'));
  }
  std::vector<std::string> seen() { return std::exchange(told, {}); }
  size_t lists_of(std::string_view name) const {
    return static_cast<size_t>(std::ranges::count_if(
        api.lists, [name](const std::string& each) { return each.starts_with(name); }));
  }

  base::ManualLoop loop;
  ChangingApi api{loop};
  std::unique_ptr<ObjectSources> sources;
  std::vector<std::string> told;
  std::map<std::string, kube::Object> held;
};

TEST_F(ObjectSourcesTest, What_is_always_there_is_told_before_synced_and_after) {
  api.put("namespaces", object("Namespace", "a"));
  api.put("priorityclasses.scheduling.k8s.io", object("PriorityClass", "high"));
  start();
  EXPECT_THAT(seen(), ElementsAre("+v1/Namespace/a", "+v1/PriorityClass/high", "synced"));
  EXPECT_TRUE(sources->synced());
  api.put("jobs.batch", object("Job", "j"));
  api.put("namespaces", object("Namespace", "a"));
  api.erase("namespaces", "a");
  loop.run_ready();
  EXPECT_THAT(seen(), ElementsAre("+v1/Job/j", "~v1/Namespace/a", "-v1/Namespace/a"));
  EXPECT_EQ(sources->version("batch", "Job"), "v1");
}

TEST_F(ObjectSourcesTest, With_nothing_served_beyond_Kubernetes_it_is_synced_at_once) {
  ::testing::internal::CaptureStderr();
  start();
  EXPECT_THAT(seen(), ElementsAre("synced"));
  loop.advance(base::seconds(3600));
  EXPECT_THAT(seen(), IsEmpty());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(ObjectSourcesTest, A_kind_defined_before_is_listed_before_synced) {
  api.define(kGroups, {"v1beta1"});
  api.put(kGroups, object("PodGroup", "a"));
  start();
  EXPECT_THAT(seen(), ElementsAre("+v1beta1/PodGroup/a", "synced"));
  EXPECT_EQ(sources->version("scheduling.volcano.sh", "PodGroup"), "v1beta1");
  EXPECT_EQ(sources->version("scheduling.x-k8s.io", "PodGroup"), "");
}

TEST_F(ObjectSourcesTest, A_kind_comes_with_its_definition_and_its_objects_go_with_it) {
  start();
  api.define(kGroups, {"v1beta1"});
  api.put(kGroups, object("PodGroup", "a"));
  loop.run_ready();
  api.put(kGroups, object("PodGroup", "b"));
  loop.run_ready();
  EXPECT_THAT(seen(), ElementsAre("synced", "+v1beta1/PodGroup/a", "+v1beta1/PodGroup/b"));
  const size_t watches = api.watches();
  api.undefine(kGroups);
  loop.advance(base::seconds(60));
  EXPECT_THAT(seen(), ElementsAre("-v1beta1/PodGroup/a", "-v1beta1/PodGroup/b"));
  EXPECT_EQ(sources->version("scheduling.volcano.sh", "PodGroup"), "");
  EXPECT_EQ(api.watches(), watches - 1);
  const size_t lists = lists_of(kGroups);
  loop.advance(base::seconds(600));
  EXPECT_EQ(lists_of(kGroups), lists);
  api.define(kGroups, {"v1beta1"});
  api.put(kGroups, object("PodGroup", "b", "another"));
  loop.run_ready();
  EXPECT_THAT(seen(), ElementsAre("+v1beta1/PodGroup/b"));
}

TEST_F(ObjectSourcesTest, A_definition_that_is_not_established_serves_nothing) {
  start();
  json::Value definition = yaml(
      "{spec: {versions: [{name: v1beta1, served: true}]}, "
      "status: {conditions: [{type: Established, status: 'False'}]}}");
  definition.ref("metadata", "name") = kGroups;
  api.put(ChangingApi::kDefinitions, kube::Object(definition));
  loop.run_ready();
  EXPECT_EQ(lists_of(kGroups), 0U);
}

TEST_F(ObjectSourcesTest, Objects_pass_over_to_the_version_that_is_preferred_without_going) {
  api.define(kClasses, {"v1beta1"});
  for (const char* name : {"a", "b", "c"}) api.put(kClasses, object("WorkloadPriorityClass", name));
  start();
  seen();
  api.define(kClasses, {"v1beta1", "v1beta2"});
  // While the new version is listed the old one still tells.
  api.put(kClasses, object("WorkloadPriorityClass", "d"));
  loop.run_ready();
  EXPECT_THAT(seen(),
              ElementsAre("+v1beta1/WorkloadPriorityClass/d", "~v1beta2/WorkloadPriorityClass/a",
                          "~v1beta2/WorkloadPriorityClass/b", "~v1beta2/WorkloadPriorityClass/c",
                          "~v1beta2/WorkloadPriorityClass/d"));
  EXPECT_EQ(sources->version("kueue.x-k8s.io", "WorkloadPriorityClass"), "v1beta2");
  api.erase(kClasses, "a");
  loop.run_ready();
  EXPECT_THAT(seen(), ElementsAre("-v1beta2/WorkloadPriorityClass/a"));
  // And back, when the preferred one goes.
  api.define(kClasses, {"v1beta1"});
  loop.run_ready();
  EXPECT_THAT(seen(),
              ElementsAre("~v1beta1/WorkloadPriorityClass/b", "~v1beta1/WorkloadPriorityClass/c",
                          "~v1beta1/WorkloadPriorityClass/d"));
  loop.advance(base::seconds(600));
  EXPECT_THAT(seen(), IsEmpty());
}

TEST_F(ObjectSourcesTest, What_changed_while_versions_changed_is_told_as_it_was) {
  api.define(kClasses, {"v1beta1"});
  for (const char* name : {"a", "b", "c"}) api.put(kClasses, object("WorkloadPriorityClass", name));
  start();
  seen();
  // The old version ends first, so that its watch misses what comes then.
  api.refused[kClasses] = Code::kUnavailable;
  api.cut(kClasses, Code::kUnavailable);
  loop.run_ready();
  api.erase(kClasses, "a");
  api.erase(kClasses, "b");
  api.put(kClasses, object("WorkloadPriorityClass", "b", "another"));
  api.define(kClasses, {"v1beta2"});
  loop.advance(base::seconds(1));
  EXPECT_THAT(seen(), IsEmpty());
  api.refused.clear();
  loop.advance(base::seconds(60));
  EXPECT_THAT(seen(),
              ElementsAre("-v1beta1/WorkloadPriorityClass/b", "+v1beta2/WorkloadPriorityClass/b",
                          "~v1beta2/WorkloadPriorityClass/c", "-v1beta1/WorkloadPriorityClass/a"));
}

TEST_F(ObjectSourcesTest, A_version_that_nobody_here_can_read_is_said_once_and_not_read) {
  api.define(kGroups, {"v1beta1"});
  api.put(kGroups, object("PodGroup", "a"));
  start();
  seen();
  ::testing::internal::CaptureStderr();
  api.define(kGroups, {"v9", "v8"});
  loop.run_ready();
  api.define(kGroups, {"v9", "v8"});
  loop.advance(base::seconds(600));
  EXPECT_THAT(seen(), ElementsAre("-v1beta1/PodGroup/a"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("served as v9, v8 alone"), log.rfind("served as v9, v8 alone"));
  EXPECT_THAT(log, HasSubstr("podgroups.scheduling.volcano.sh is served as v9, v8 alone"));
}

TEST_F(ObjectSourcesTest, Where_definitions_may_not_be_read_each_kind_is_tried_by_itself) {
  api.refused[ChangingApi::kDefinitions] = Code::kForbidden;
  api.define(kGroups, {"v1beta1"});
  api.define(kClasses, {"v1beta1"});
  api.put(kGroups, object("PodGroup", "a"));
  api.put(kClasses, object("WorkloadPriorityClass", "w"));
  start();
  EXPECT_THAT(seen(),
              ElementsAre("+v1beta1/PodGroup/a", "+v1beta1/WorkloadPriorityClass/w", "synced"));
  // A better version is found, a kind that ends is given up, one that comes is found.
  api.define(kClasses, {"v1beta1", "v1beta2"});
  api.undefine(kGroups);
  api.define("queues.tessera.dev", {"v1alpha1"});
  api.put("queues.tessera.dev", object("Queue", "q"));
  loop.advance(base::seconds(31));
  EXPECT_THAT(seen(), ElementsAre("-v1beta1/PodGroup/a", "+v1alpha1/Queue/q",
                                  "~v1beta2/WorkloadPriorityClass/w"));
  // Once they may be read, they say it at once.
  api.refused.clear();
  loop.advance(base::seconds(60));
  EXPECT_THAT(seen(), IsEmpty());
  api.undefine(kClasses);
  api.define(kGroups, {"v1beta1"});
  loop.run_ready();
  EXPECT_THAT(seen(), ElementsAre("-v1beta2/WorkloadPriorityClass/w"));
  api.put(kGroups, object("PodGroup", "b"));
  loop.run_ready();
  EXPECT_THAT(seen(), ElementsAre("+v1beta1/PodGroup/b"));
  api.lists.clear();
  loop.advance(base::seconds(300));
  EXPECT_EQ(lists_of("queues.scheduling.run.ai"), 0U);
}

TEST_F(ObjectSourcesTest, Kinds_that_nobody_announces_are_asked_for_again_and_again) {
  start();
  EXPECT_THAT(seen(), ElementsAre("synced"));
  loop.advance(base::seconds(299));
  EXPECT_EQ(lists_of(kNative), 10U * 4);
  api.serve(kNative, "v1alpha2");
  api.put(kNative, object("PodGroup", "a"));
  loop.advance(base::seconds(30));
  EXPECT_THAT(seen(), ElementsAre("+v1alpha2/PodGroup/a"));
  // A server of a later release.
  api.serve(kNative, "v1beta1");
  loop.advance(base::seconds(30));
  EXPECT_THAT(seen(), ElementsAre("~v1beta1/PodGroup/a"));
  api.end(kNative, "v1alpha2");
  const size_t lists = lists_of(kNative);
  loop.advance(base::seconds(600));
  EXPECT_THAT(seen(), IsEmpty());
  EXPECT_LE(lists_of(kNative), lists + 1);
  api.end(kNative, "v1beta1");
  loop.advance(base::seconds(60));
  EXPECT_THAT(seen(), ElementsAre("-v1beta1/PodGroup/a"));
  api.serve(kNative, "v1beta1");
  loop.advance(base::seconds(60));
  EXPECT_THAT(seen(), ElementsAre("+v1beta1/PodGroup/a"));
}

TEST_F(ObjectSourcesTest, A_moment_without_a_kind_does_not_end_its_objects) {
  api.serve(kNative, "v1beta1");
  api.put(kNative, object("PodGroup", "a"));
  start();
  seen();
  api.end(kNative, "v1beta1");
  loop.run_ready();
  api.serve(kNative, "v1beta1");
  api.put(kNative, object("PodGroup", "b"));
  loop.advance(base::seconds(120));
  EXPECT_THAT(seen(), ElementsAre("+v1beta1/PodGroup/b"));
}

TEST_F(ObjectSourcesTest, A_kind_that_may_not_be_read_is_waited_for_only_so_long) {
  api.refused["poddisruptionbudgets.policy"] = Code::kForbidden;
  api.put("poddisruptionbudgets.policy", object("PodDisruptionBudget", "p"));
  api.put("namespaces", object("Namespace", "a"));
  ::testing::internal::CaptureStderr();
  start();
  loop.advance(base::millis(9999));
  EXPECT_THAT(seen(), ElementsAre("+v1/Namespace/a"));
  EXPECT_FALSE(sources->synced());
  loop.advance(base::seconds(1));
  EXPECT_THAT(seen(), ElementsAre("synced"));
  loop.advance(base::seconds(600));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log,
              AllOf(HasSubstr("cannot read poddisruptionbudgets.policy: refused by the test"),
                    HasSubstr("let the scheduler get, list and watch them (RBAC ClusterRole)")));
  EXPECT_EQ(log.find("cannot read"), log.rfind("cannot read"));
  api.refused.clear();
  loop.advance(base::seconds(60));
  EXPECT_THAT(seen(), ElementsAre("+v1/PodDisruptionBudget/p"));
}

TEST_F(ObjectSourcesTest, Forbidden_unannounced_kinds_hold_nothing_up_and_are_named_once) {
  api.refused[kNative] = Code::kForbidden;
  api.refused["workloads.scheduling.k8s.io"] = Code::kForbidden;
  ::testing::internal::CaptureStderr();
  start();
  EXPECT_THAT(seen(), ElementsAre("synced"));
  loop.advance(base::seconds(3600));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("may not read podgroups.scheduling.k8s.io, "
                             "workloads.scheduling.k8s.io: they count as absent"));
  EXPECT_EQ(log.find("may not read"), log.rfind("may not read"));
  api.refused.clear();
  api.serve(kNative, "v1beta1");
  api.put(kNative, object("PodGroup", "a"));
  loop.advance(base::seconds(31));
  EXPECT_THAT(seen(), ElementsAre("+v1beta1/PodGroup/a"));
  // One that may not be read any longer is not gone for that.
  api.refused[kNative] = Code::kForbidden;
  api.cut(kNative, Code::kForbidden);
  loop.advance(base::seconds(600));
  EXPECT_THAT(seen(), IsEmpty());
}

TEST_F(ObjectSourcesTest, An_API_that_does_not_answer_is_waited_for_only_so_long) {
  for (const WatchedKind& kind : watched_kinds()) api.silent.insert(kind.name());
  api.silent.insert(ChangingApi::kDefinitions);
  start();
  loop.advance(base::seconds(11));
  EXPECT_THAT(seen(), ElementsAre("synced"));
}

TEST_F(ObjectSourcesTest, What_is_forbidden_is_named_even_where_definitions_never_come) {
  api.silent.insert(ChangingApi::kDefinitions);
  api.refused[kNative] = Code::kForbidden;
  ::testing::internal::CaptureStderr();
  start();
  loop.advance(base::seconds(60));
  EXPECT_THAT(seen(), ElementsAre("synced"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("cannot read customresourcedefinitions"),
                         HasSubstr("cannot read podgroups.scheduling.k8s.io"),
                         Not(HasSubstr("queues.tessera.dev"))));
}

TEST_F(ObjectSourcesTest, An_API_that_fails_at_first_is_asked_again_before_that) {
  api.refused[kNative] = Code::kUnavailable;
  api.serve(kNative, "v1beta1");
  api.put(kNative, object("PodGroup", "a"));
  start();
  EXPECT_THAT(seen(), IsEmpty());
  api.refused.clear();
  loop.advance(base::seconds(2));
  EXPECT_THAT(seen(), ElementsAre("+v1beta1/PodGroup/a", "synced"));
}

TEST_F(ObjectSourcesTest, Nothing_runs_after_destruction) {
  api.define(kGroups, {"v1beta1"});
  start();
  seen();
  api.put(kGroups, object("PodGroup", "a"));
  sources.reset();
  EXPECT_EQ(api.watches(), 0U);
  api.lists.clear();
  loop.advance(base::seconds(600));
  EXPECT_THAT(seen(), IsEmpty());
  EXPECT_THAT(api.lists, IsEmpty());
}

// Whatever happens to kinds and objects, what was told adds up to what is served; and a seed tells the same twice.
TEST(ObjectSourcesSeeds, Ends_with_the_truth_after_any_sequence_and_by_seed) {
  const auto run = [](uint64_t seed) {
    base::ManualLoop loop;
    ChangingApi api{loop};
    base::Random random(seed);
    if (random.chance(0.3)) api.refused[ChangingApi::kDefinitions] = Code::kForbidden;
    std::map<std::string, std::string> held;
    std::vector<std::string> told;
    ObjectSources sources(
        api, loop, random.fork(), {},
        {[&](const kube::Object& before, const kube::Object& after) {
           const std::string key = (after ? after : before).key();
           EXPECT_EQ(held.contains(key), static_cast<bool>(before)) << "seed " << seed;
           held.erase(key);
           if (after) held[key] = after.uid();
           told.push_back(fmt::format("{} {}", before.json().dump(), after.json().dump()));
         },
         [&] { told.emplace_back("synced"); }});
    sources.start();
    std::set<std::string> versions;
    for (int step = 0; step < 60; ++step) {
      const std::string name = fmt::format("{}", random.below(5));
      if (random.chance(0.2)) {
        if (!versions.empty() && random.chance(0.3)) {
          api.undefine(kClasses, random.chance(0.5));
          versions.clear();
        } else {
          versions.clear();
          for (const char* version : {"v1beta1", "v1beta2", "v3"})
            if (random.chance(0.5)) versions.insert(version);
          if (versions.empty()) versions.insert("v1beta2");
          api.define(kClasses, {versions.begin(), versions.end()});
        }
      } else if (!versions.empty()) {
        if (api.objects(kClasses).contains(name) && random.chance(0.4))
          api.erase(kClasses, name);
        else if (!api.objects(kClasses).contains(name))
          api.put(kClasses, object("WorkloadPriorityClass", name, fmt::format("{}", step)));
        else
          api.put(kClasses, api.objects(kClasses).at(name));
      }
      if (random.chance(0.1)) api.cut(kClasses, Code::kUnavailable);
      if (random.chance(0.5)) loop.advance(base::millis(static_cast<int64_t>(random.below(40000))));
    }
    loop.advance(base::seconds(120));
    std::map<std::string, std::string> truth;
    if (versions.contains("v1beta1") || versions.contains("v1beta2")) {
      for (const auto& [key, each] : api.objects(kClasses)) truth[key] = each.uid();
    }
    EXPECT_EQ(held, truth) << "seed " << seed;
    return told;
  };
  base::set_log_level(base::LogLevel::kOff);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto first = run(seed);
    EXPECT_EQ(first, run(seed)) << "seed " << seed;
    if (::testing::Test::HasFailure()) break;
  }
  base::set_log_level(base::LogLevel::kInfo);
}

TEST(WatchedKinds, Each_is_there_once_with_a_version) {
  std::set<std::string> names;
  for (const WatchedKind& kind : watched_kinds()) {
    EXPECT_TRUE(names.insert(kind.name()).second) << kind.name();
    EXPECT_FALSE(kind.known_versions().empty()) << kind.name();
  }
}

TEST(WatchedKinds, Objects_are_held_without_what_nobody_reads) {
  const kube::Object job(yaml(R"(
apiVersion: batch/v1
kind: Job
metadata:
  name: j
  managedFields: [{manager: x}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", tessera.dev/queue: q}
spec: {parallelism: 2, template: {spec: {containers: []}}}
)"));
  EXPECT_EQ(keep_object(job).json(), yaml(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: j, annotations: {tessera.dev/queue: q}}
spec: {parallelism: 2}
)"));
  const kube::Object set(
      yaml("{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {template: {a: 1}}}"));
  EXPECT_EQ(keep_object(set).json(), set.json());
}

TEST(WatchedKinds, Definitions_are_held_without_their_schemas) {
  const kube::Object definition(yaml(R"(
metadata: {name: podgroups.scheduling.volcano.sh, uid: u, resourceVersion: "3", labels: {a: b}}
spec: {names: {kind: PodGroup}, versions: [{name: v1beta1, served: true, schema: {large: 1}}]}
status: {conditions: [{type: Established, status: "True"}]}
)"));
  const kube::Object kept = keep_definition(definition);
  EXPECT_EQ(kept.json(), yaml(R"(
metadata: {name: podgroups.scheduling.volcano.sh, uid: u, resourceVersion: "3"}
spec: {versions: [{name: v1beta1, served: true}]}
status: {conditions: [{type: Established, status: "True"}]}
)"));
  json::Value other = definition.json();
  other.ref("metadata", "name") = "widgets.example.com";
  EXPECT_FALSE(keep_definition(kube::Object(other)));
}

}  // namespace
}  // namespace tessera::scheduler
