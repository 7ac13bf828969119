// PodGroups and Workloads through the verbs.
#include "apiserver/pod_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"
#include "apiserver/discovery.h"
#include "apiserver/kinds_cases.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::PatchType;
using kube::Verb;
using ::testing::HasSubstr;
using testing_kinds::from_yaml;
using testing_kinds::kind_of;

constexpr const char* kGroup = "scheduling.k8s.io";

class PodGroups : public ::testing::Test {
 protected:
  base::Result<Value> ask(Verb verb, const char* plural, std::string name, Value body = {},
                          std::string subresource = {}, PatchType type = PatchType::kMerge,
                          TestApi::Query query = {}) {
    auto request = TestApi::request(verb, "", "default", std::move(name), std::move(body));
    request.gvr = {kGroup, "v1beta1", plural};
    request.subresource = std::move(subresource);
    request.patch_type = type;
    request.query = std::move(query);
    return api.reply(std::move(request)).result;
  }
  base::Result<Value> create(const char* kind, std::string_view spec) {
    const std::string name = fmt::format("g{}", ++made_);
    Value object = from_yaml(fmt::format(
        "{{apiVersion: scheduling.k8s.io/v1beta1, kind: {}, metadata: {{name: {}}}, spec: {}}}",
        kind, name, spec));
    return ask(Verb::kCreate, std::string_view(kind) == "PodGroup" ? "podgroups" : "workloads", {},
               std::move(object));
  }
  base::Result<Value> group(std::string_view spec) { return create("PodGroup", spec); }
  base::Result<Value> patch(const char* plural, const Value& object, std::string_view change,
                            std::string subresource = {}) {
    return ask(Verb::kPatch, plural, object["metadata"]["name"].str(), from_yaml(change),
               std::move(subresource));
  }
  void make_class(const char* name, const char* rest) {
    ASSERT_TRUE(api.create("priorityclasses.scheduling.k8s.io",
                           from_yaml(fmt::format("{{apiVersion: scheduling.k8s.io/v1, kind: "
                                                 "PriorityClass, metadata: {{name: {}}}, {}}}",
                                                 name, rest))));
  }

  TestApi api;
  int made_ = 0;
};

TEST_F(PodGroups, A_gang_gets_its_defaults_and_a_priority) {
  make_class("high", "value: 7, preemptionPolicy: Never");
  const auto made = group("{schedulingPolicy: {gang: {minCount: 4}}, priorityClassName: high}");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["spec"].dump(),
            R"({"disruptionMode":{"single":{}},"preemptionPolicy":"Never","priority":7,)"
            R"("priorityClassName":"high","schedulingPolicy":{"gang":{"minCount":4}}})");
  EXPECT_EQ((*made)["status"].dump(), "{}");
  EXPECT_FALSE((*made)["metadata"].contains("generation"));
  EXPECT_EQ((*made)["metadata"]["finalizers"].dump(),
            R"(["scheduling.k8s.io/podgroup-protection"])");
  const auto plain = group("{schedulingPolicy: {basic: {}}, disruptionMode: {all: {}}}");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(
      (*plain)["spec"].dump(),
      R"({"disruptionMode":{"all":{}},"preemptionPolicy":"PreemptLowerPriority","priority":0,)"
      R"("schedulingPolicy":{"basic":{}}})");
}

TEST_F(PodGroups, Priorities_other_than_the_class_are_refused) {
  make_class("high", "value: 7");
  EXPECT_THAT(group("{schedulingPolicy: {basic: {}}, priorityClassName: high, priority: 8}")
                  .error()
                  .message,
              HasSubstr("priority set in the pod group (8) must match the priority computed (7)"));
  EXPECT_THAT(group("{schedulingPolicy: {basic: {}}, priorityClassName: low}").error().message,
              HasSubstr("podgroups.scheduling.k8s.io \"g2\" is forbidden: no PriorityClass with "
                        "name low was found"));
  EXPECT_THAT(group("{schedulingPolicy: {basic: {}}, preemptionPolicy: Never}").error().message,
              HasSubstr("(Never) must not be provided in pod group spec"));
}

TEST_F(PodGroups, Groups_that_cannot_work_are_refused_with_the_field) {
  struct Case {
    const char* spec;
    const char* wrong;
  };
  for (const Case& c : {
           Case{"{}",
                "spec.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`"},
           Case{"{schedulingPolicy: {basic: {}, gang: {minCount: 1}}}",
                "spec.schedulingPolicy: Invalid value: \"{basic, gang}\": must specify exactly one "
                "of: `basic`, `gang`"},
           Case{"{schedulingPolicy: {gang: {}}}",
                "spec.schedulingPolicy.gang.minCount: Required value"},
           Case{"{schedulingPolicy: {gang: {minCount: -2}}}",
                "spec.schedulingPolicy.gang.minCount: Invalid value: -2: must be greater than or "
                "equal to 1"},
           Case{"{schedulingPolicy: {basic: {}}, disruptionMode: {}}",
                "spec.disruptionMode: Invalid value: \"\": must specify one of: `single`, `all`"},
           Case{"{schedulingPolicy: {basic: {}}, disruptionMode: {single: {}, all: {}}}",
                "spec.disruptionMode: Invalid value: \"{single, all}\""},
           Case{"{schedulingPolicy: {basic: {}}, workloadRef: {workloadName: w}}",
                "spec.workloadRef.templateName: Required value"},
           Case{
               "{schedulingPolicy: {basic: {}}, workloadRef: {workloadName: W, templateName: a.b}}",
               "spec.workloadRef.workloadName: Invalid value: \"W\""},
           Case{"{schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: a}, "
                "{key: b}]}}",
                "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item"},
           Case{
               "{schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: 'a b'}]}}",
               "spec.schedulingConstraints.topology[0].key: Invalid value: \"a b\""},
           Case{"{schedulingPolicy: {basic: {}}, preemptionPolicy: Sometimes}",
                "PreemptionPolicy (Sometimes)"},
       }) {
    const auto made = group(c.spec);
    ASSERT_FALSE(made) << c.spec;
    EXPECT_THAT(made.error().message, HasSubstr(c.wrong)) << c.spec;
  }
}

TEST_F(PodGroups, What_other_gates_guard_is_left_out) {
  const auto made = group(
      "{schedulingPolicy: {basic: {}}, resourceClaims: [{name: c, resourceClaimName: x}], "
      "parentCompositePodGroupName: p}");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE((*made)["spec"].contains("resourceClaims"));
  EXPECT_FALSE((*made)["spec"].contains("parentCompositePodGroupName"));
}

TEST_F(PodGroups, Only_the_count_of_a_gang_changes) {
  const auto made = group("{schedulingPolicy: {gang: {minCount: 4}}}");
  ASSERT_TRUE(made);
  const auto more = patch("podgroups", *made, "{spec: {schedulingPolicy: {gang: {minCount: 6}}}}");
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(more->get("spec", "schedulingPolicy", "gang")["minCount"].as_int(), 6);
  struct Case {
    const char* change;
    const char* wrong;
  };
  for (const Case& c :
       {Case{"{spec: {schedulingPolicy: {gang: {minCount: -1}}}}",
             "gang.minCount: Invalid value: -1: must be greater than or equal to 1"},
        Case{"{spec: {schedulingPolicy: {gang: null, basic: {}}}}",
             "[spec.schedulingPolicy.basic: Invalid value: null: field is immutable, "
             "spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set]"},
        Case{"{spec: {disruptionMode: {single: null, all: {}}}}",
             "spec.disruptionMode: Invalid value: null: field is immutable"},
        Case{"{spec: {priority: 3}}", "spec.priority: Invalid value: null: field is immutable"},
        Case{"{spec: {workloadRef: {workloadName: w, templateName: t}}}",
             "spec.workloadRef: Invalid value: null: field is immutable"},
        Case{"{spec: {schedulingConstraints: {topology: [{key: rack}]}}}",
             "spec.schedulingConstraints: Invalid value: null: field is immutable"}}) {
    const auto changed = patch("podgroups", *made, c.change);
    ASSERT_FALSE(changed) << c.change;
    EXPECT_THAT(changed.error().message, HasSubstr(c.wrong)) << c.change;
  }
}

TEST_F(PodGroups, A_replacement_says_what_it_has_seen) {
  auto made = group("{schedulingPolicy: {gang: {minCount: 4}}}");
  ASSERT_TRUE(made);
  const std::string name = (*made)["metadata"]["name"].str();
  made->ref("spec").erase("preemptionPolicy");
  EXPECT_TRUE(ask(Verb::kUpdate, "podgroups", name, *made));
  made->ref("metadata").erase("resourceVersion");
  EXPECT_THAT(ask(Verb::kUpdate, "podgroups", name, *made).error().message,
              HasSubstr("must be specified for an update"));
}

TEST_F(PodGroups, The_status_is_written_apart_and_its_conditions_join_by_type) {
  const auto made = group("{schedulingPolicy: {gang: {minCount: 4}}}");
  ASSERT_TRUE(made);
  const std::string name = (*made)["metadata"]["name"].str();
  const auto tell = [&](const char* manager, const char* type) {
    return ask(Verb::kPatch, "podgroups", name,
               from_yaml(fmt::format(
                   "{{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {{name: "
                   "{}}}, status: {{conditions: [{{type: {}, status: 'True', reason: R, message: m,"
                   " lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}",
                   name, type)),
               "status", PatchType::kApply, {{"fieldManager", manager}});
  };
  ASSERT_TRUE(tell("scheduler", "PodGroupInitiallyScheduled"));
  const auto both = tell("other", "DisruptionTarget");
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ((*both)["status"]["conditions"].size(), 2u);
  EXPECT_EQ(both->get("spec", "schedulingPolicy", "gang")["minCount"].as_int(), 4);
  // By the spec's way the status stays as it is.
  const auto same = patch("podgroups", *made, "{status: {conditions: []}}");
  ASSERT_TRUE(same);
  EXPECT_EQ((*same)["status"]["conditions"].size(), 2u);
}

TEST_F(PodGroups, A_bad_status_is_refused_with_the_field) {
  const auto made = group("{schedulingPolicy: {basic: {}}}");
  ASSERT_TRUE(made);
  const auto refused = patch("podgroups", *made,
                             "{status: {conditions: [{type: 'a b', status: 'Yes', reason: '1'}], "
                             "resourceClaimStatuses: [{name: c}]}}",
                             "status");
  ASSERT_FALSE(refused);
  for (const char* wrong :
       {"status.conditions[0].type: Invalid value: \"a b\"",
        "status.conditions[0].status: Unsupported value: \"Yes\": supported values: \"False\", "
        "\"True\", \"Unknown\"",
        "status.conditions[0].lastTransitionTime: Required value",
        "status.conditions[0].reason: Invalid value: \"1\": a condition reason must start with",
        "status.resourceClaimStatuses[0].name: Invalid value: \"c\": must match the name of an "
        "entry"}) {
    EXPECT_THAT(refused.error().message, HasSubstr(wrong));
  }
}

TEST_F(PodGroups, Columns_tell_policy_workload_and_state) {
  const Kind& kind = kind_of(kGroup, "PodGroup", "v1beta1");
  const base::Time now = *base::parse_rfc3339("2026-01-01T01:00:00Z");
  const auto row = [&](const char* rest) {
    Value object = from_yaml(rest);
    object.ref("metadata") = from_yaml("{name: x, creationTimestamp: '2026-01-01T00:00:00Z'}");
    return testing_kinds::row(kind, object, now);
  };
  EXPECT_EQ(row("{spec: {schedulingPolicy: {basic: {}}}}"),
            "Name=x; Policy=Basic; Workload=<none>; Status=Pending; Age=60m");
  EXPECT_EQ(row("{spec: {schedulingPolicy: {gang: {minCount: 2}}, workloadRef: {workloadName: w}}, "
                "status: {conditions: [{type: PodGroupInitiallyScheduled, status: 'False'}]}}"),
            "Name=x; Policy=Gang; Workload=w; Status=Unschedulable; Age=60m");
  EXPECT_EQ(row("{status: {conditions: [{type: PodGroupInitiallyScheduled, status: 'True'}]}}"),
            "Name=x; Policy=Basic; Workload=<none>; Status=Scheduled; Age=60m");
  EXPECT_EQ(row("{status: {conditions: [{type: DisruptionTarget, reason: PreemptionByScheduler}, "
                "{type: PodGroupInitiallyScheduled, status: 'True'}]}}"),
            "Name=x; Policy=Basic; Workload=<none>; Status=PreemptionByScheduler; Age=60m");
}

TEST_F(PodGroups, A_workload_keeps_its_templates) {
  const auto made = create("Workload", R"({controllerRef: {apiGroup: batch, kind: Job, name: j},
    podGroupTemplates: [{name: a, schedulingPolicy: {gang: {minCount: 2}}},
                        {name: b, schedulingPolicy: {basic: {}}}]})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE((*made)["spec"]["podGroupTemplates"].at(0).contains("disruptionMode"));
  struct Case {
    const char* change;
    const char* wrong;
  };
  for (const Case& c :
       {Case{"{spec: {podGroupTemplates: [{name: b, schedulingPolicy: {basic: {}}}, {name: a, "
             "schedulingPolicy: {gang: {minCount: 5}}}]}}",
             ""},
        Case{"{spec: {controllerRef: null}}",
             "spec.controllerRef: Invalid value: null: field is immutable"},
        Case{"{spec: {podGroupTemplates: [{name: c, schedulingPolicy: {basic: {}}}, {name: b, "
             "schedulingPolicy: {basic: {}}}]}}",
             "[spec.podGroupTemplates[0]: Forbidden: item may not be added, "
             "spec.podGroupTemplates: Forbidden: item may not be removed]"},
        Case{"{spec: {podGroupTemplates: [{name: a, schedulingPolicy: {gang: {minCount: 5}}, "
             "priority: 3}, {name: b, schedulingPolicy: {basic: {}}}]}}",
             "spec.podGroupTemplates[0].priority: Invalid value: null: field is immutable"}}) {
    const auto changed = patch("workloads", *made, c.change);
    EXPECT_EQ(bool(changed), std::string_view(c.wrong).empty()) << c.change;
    if (changed) continue;
    EXPECT_THAT(changed.error().message, HasSubstr(c.wrong)) << c.change;
  }
}

TEST_F(PodGroups, Workloads_that_cannot_work_are_refused_with_the_field) {
  struct Case {
    const char* spec;
    const char* wrong;
  };
  std::string nine;
  for (int i = 0; i < 9; ++i)
    nine += fmt::format("{{name: t{}, schedulingPolicy: {{basic: {{}}}}}},", i);
  const std::string too_many = "{podGroupTemplates: [" + nine + "]}";
  for (const Case& c :
       {Case{"{}",
             "spec: Invalid value: \"\": must specify one of: `podGroupTemplates`, "
             "`compositePodGroupTemplates`"},
        Case{"{compositePodGroupTemplates: [{name: c}]}", "must specify one of"},
        Case{"{podGroupTemplates: [{name: A, schedulingPolicy: {basic: {}}}]}",
             "spec.podGroupTemplates[0].name: Invalid value: \"A\""},
        Case{"{podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}, {name: a, "
             "schedulingPolicy: {basic: {}}}]}",
             "spec.podGroupTemplates[1]: Duplicate value"},
        Case{
            "{podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}, priority: 2000000000}]}",
            "spec.podGroupTemplates[0].priority: Invalid value: 2000000000: must be less than or "
            "equal to 1000000000"},
        Case{"{podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}, preemptionPolicy: x}]}",
             "spec.podGroupTemplates[0].preemptionPolicy: Unsupported value: \"x\": supported "
             "values: \"Never\", \"PreemptLowerPriority\""},
        Case{"{podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}, priority: 1}, {name: b,"
             " schedulingPolicy: {basic: {}}, priority: 2}]}",
             "spec: Invalid value: null: detected multiple priority configurations"},
        Case{"{controllerRef: {}, podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}]}",
             "[spec.controllerRef.kind: Required value, spec.controllerRef.name: Required value]"},
        Case{too_many.c_str(), "spec.podGroupTemplates: Too many: 9: must have at most 8 items"}}) {
    const auto made = create("Workload", c.spec);
    ASSERT_FALSE(made) << c.spec;
    EXPECT_THAT(made.error().message, HasSubstr(c.wrong)) << c.spec;
  }
}

TEST_F(PodGroups, A_pod_names_its_group_for_good) {
  Value pod = TestApi::pod("p");
  pod.ref("spec").set("schedulingGroup", from_yaml("{podGroupName: g}"));
  const auto made = api.create("pods", pod);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->get("spec", "schedulingGroup", "podGroupName").as_string(), "g");
  const auto moved =
      api.patch("pods", "default", "p", R"({"spec":{"schedulingGroup":{"podGroupName":"h"}}})");
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().message, HasSubstr("pod updates may not change fields other than"));
  for (const auto& [group, wrong] :
       {std::pair{"{podGroupName: 'G g'}",
                  "spec.schedulingGroup.podGroupName: Invalid value: \"G g\""},
        std::pair{"{}",
                  "spec.schedulingGroup.podGroupName: Invalid value: null: must specify one "
                  "of: `podGroupName`"}}) {
    Value bad = TestApi::pod("bad");
    bad.ref("spec").set("schedulingGroup", from_yaml(group));
    const auto refused = api.create("pods", bad);
    ASSERT_FALSE(refused) << group;
    EXPECT_THAT(refused.error().message, HasSubstr(wrong));
  }
}

TEST_F(PodGroups, Discovery_lists_both_versions_of_the_group) {
  const auto groups = group_versions(Kinds::builtin());
  const auto found = std::ranges::find(groups, kGroup, &GroupVersions::group);
  ASSERT_NE(found, groups.end());
  EXPECT_EQ(found->versions, (std::vector<std::string>{"v1", "v1beta1"}));
}

}  // namespace
}  // namespace tessera::apiserver
