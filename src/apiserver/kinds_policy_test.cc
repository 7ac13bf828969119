#include <gtest/gtest.h>

#include "apiserver/kinds_cases.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using namespace testing_kinds;

constexpr const char* kRbac = "rbac.authorization.k8s.io";
constexpr const char* kQuota =
    "{metadata: {name: q}, spec: {hard: {pods: 10, requests.nvidia.com/gpu: 8}}}";

TEST(ResourceQuota, RefusesWhatCannotWork) {
  expect_rules(
      kind_of("", "ResourceQuota"), kQuota,
      {{"{spec: {hard: {requests.cpu: 4, limits.memory: 1Gi, count/jobs.batch: 3}}}", ""},
       {"{spec: {hard: {gpus: 1}}}",
        "spec.hard[gpus]: Invalid value: \"gpus\": must be a standard resource type or fully "
        "qualified\nspec.hard[gpus]: Invalid value: \"gpus\": must be a standard resource for "
        "quota"},
       {"{spec: {hard: {storage: 1}}}",
        "spec.hard[storage]: Invalid value: \"storage\": must be a standard resource for quota"},
       {"{spec: {hard: {a/b/c: 1}}}", "spec.hard[a/b/c]: Invalid value: \"a/b/c\""},
       {"{spec: {hard: {pods: -1}}}",
        "spec.hard[pods]: Invalid value: \"-1\": must be greater than or equal to 0"},
       {"{spec: {hard: {pods: 500m}}}",
        "spec.hard[pods]: Invalid value: \"500m\": must be an integer"},
       {"{spec: {scopes: [Sometimes]}}",
        "spec.scopes: Invalid value: [\"Sometimes\"]: unsupported scope"},
       {"{spec: {scopes: [NotBestEffort]}}", ""},
       {"{spec: {hard: {services: 2}, scopes: [Terminating]}}",
        "spec.scopes: Invalid value: [\"Terminating\"]: unsupported scope applied to resource"},
       {"{spec: {hard: {cpu: 2}, scopes: [BestEffort]}}", "unsupported scope applied to resource"},
       {"{spec: {scopes: [Terminating, NotTerminating]}}",
        "spec.scopes: Invalid value: [\"Terminating\",\"NotTerminating\"]: conflicting scopes"},
       {"{spec: {scopes: [BestEffort, NotBestEffort]}}", "conflicting scopes"}});
}

TEST(ResourceQuota, ChecksItsScopeSelector) {
  const auto with = [](const char* text) {
    return std::string("{spec: {scopeSelector: {matchExpressions: [").append(text).append("]}}}");
  };
  const std::pair<const char*, const char*> cases[] = {
      {"{scopeName: PriorityClass, operator: In, values: [high]}", ""},
      {"{scopeName: X, operator: Exists}",
       "spec.scopeSelector.matchExpressions.scopeName: Invalid value: \"X\": unsupported scope"},
      {"{scopeName: VolumeAttributesClass, operator: Exists}",
       "unsupported scope applied to resource"},
      {"{scopeName: Terminating, operator: In, values: [a]}",
       "spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exists' when "
       "scope is any of"},
      {"{scopeName: PriorityClass, operator: In}",
       "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value"},
      {"{scopeName: PriorityClass, operator: Exists, values: [a]}",
       "spec.scopeSelector.matchExpressions.values: Invalid value: [\"a\"]: must be no value"},
      {"{scopeName: PriorityClass, operator: Near}",
       "spec.scopeSelector.matchExpressions.operator: Invalid value: \"Near\": not a valid "
       "selector operator"},
      {"{scopeName: Terminating, operator: Exists}, {scopeName: NotTerminating, operator: Exists}",
       "conflicting scopes"}};
  for (const auto& [text, wrong] : cases) {
    const std::string change = with(text);
    expect_rules(kind_of("", "ResourceQuota"), kQuota, {{change.c_str(), wrong}});
  }
}

TEST(ResourceQuota, KeepsItsScopes) {
  expect_update_rules(kind_of("", "ResourceQuota"),
                      "{metadata: {name: q}, spec: {hard: {pods: 1}, scopes: [Terminating]}}",
                      {{"{spec: {hard: {pods: 2}}}", ""},
                       {"{spec: {scopes: [Terminating, Terminating]}}", ""},
                       {"{spec: {scopes: [NotTerminating]}}",
                        "spec.scopes: Invalid value: [\"NotTerminating\"]: field is immutable"}});
}

TEST(LimitRange, FillsContainersFromTheMaxAlone) {
  const Kind& kind = kind_of("", "LimitRange");
  const Value range = stored(
      kind,
      "{metadata: {name: l}, spec: {limits: [{type: Container, max: {cpu: 2}, min: {memory: 1Mi}}, "
      "{type: Pod, max: {cpu: 4}}]}}");
  EXPECT_EQ(range["spec"]["limits"].at(0).dump(),
            R"({"default":{"cpu":"2"},"defaultRequest":{"cpu":"2","memory":"1Mi"},)"
            R"("max":{"cpu":"2"},"min":{"memory":"1Mi"},"type":"Container"})");
  EXPECT_EQ(range["spec"]["limits"].at(1).dump(), R"({"max":{"cpu":"4"},"type":"Pod"})");
}

TEST(LimitRange, RefusesWhatCannotWork) {
  const auto with = [](const char* text) {
    return std::string("{spec: {limits: [").append(text).append("]}}");
  };
  const std::pair<const char*, const char*> cases[] = {
      {"{type: Node}",
       "spec.limits[0].type: Invalid value: \"Node\": must be a standard limit type or fully "
       "qualified"},
      {"{type: example.com/x}", ""},
      {"{type: Pod}, {type: Pod}", "spec.limits[1].type: Duplicate value: \"Pod\""},
      {"{type: Container, max: {gpus: 1}}", "spec.limits[0].max[gpus]: Invalid value: \"gpus\""},
      {"{type: Container, min: {storage: 1}}",
       "spec.limits[0].min[storage]: Invalid value: \"storage\": must be a standard resource for "
       "containers"},
      {"{type: Pod, default: {cpu: 1}}",
       "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"},
      {"{type: Pod, defaultRequest: {cpu: 1}}", "spec.limits[0].defaultRequest: Forbidden"},
      {"{type: PersistentVolumeClaim, default: {storage: 1Gi}}",
       "spec.limits[0].limits: Required value: either minimum or maximum storage value is "
       "required"},
      {"{type: PersistentVolumeClaim, max: {storage: 1Gi}}", ""},
      {"{type: Container, min: {cpu: 2}, max: {cpu: 1}}",
       "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1"},
      {"{type: Container, min: {cpu: 2}, defaultRequest: {cpu: 1}}",
       "min value 2 is greater than default request value 1"},
      {"{type: Container, max: {cpu: 2}, defaultRequest: {cpu: 3}}",
       "default request value 3 is greater than max value 2"},
      {"{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 3}}",
       "default request value 3 is greater than default limit value 2"},
      {"{type: Container, min: {cpu: 3}, default: {cpu: 2}}",
       "min value 3 is greater than default value 2"},
      {"{type: Container, max: {cpu: 1}, default: {cpu: 2}}",
       "default value 2 is greater than max value 1"},
      {"{type: Pod, maxLimitRequestRatio: {cpu: 500m}}", "ratio 500m is less than 1"},
      {"{type: Pod, min: {cpu: 1}, max: {cpu: 2}, maxLimitRequestRatio: {cpu: 3}}",
       "ratio 3 is greater than max/min = 2.000000"},
      {"{type: Container, default: {nvidia.com/gpu: 2}, defaultRequest: {nvidia.com/gpu: 1}}",
       "default value 2 must equal to defaultRequest value 1 in nvidia.com/gpu"}};
  for (const auto& [text, wrong] : cases) {
    const std::string change = with(text);
    expect_rules(kind_of("", "LimitRange"), "{metadata: {name: l}, spec: {limits: []}}",
                 {{change.c_str(), wrong}});
  }
}

TEST(PodDisruptionBudget, RefusesWhatCannotWork) {
  constexpr const char* kBase =
      "{metadata: {name: b}, spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}";
  const Kind& kind = kind_of("policy", "PodDisruptionBudget");
  EXPECT_EQ(stored(kind, kBase)["status"].dump(),
            R"({"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0})");
  expect_rules(
      kind, kBase,
      {{"{spec: {maxUnavailable: 1}}", "minAvailable and maxUnavailable cannot be both set"},
       {"{spec: {minAvailable: -1}}", "spec.minAvailable: Invalid value: -1"},
       {"{spec: {minAvailable: \"120%\"}}", "must not be greater than 100%"},
       {"{spec: {minAvailable: null, maxUnavailable: ten}}",
        "spec.maxUnavailable: Invalid value: \"ten\": a valid percent string"},
       {"{spec: {selector: {matchExpressions: [{key: a, operator: In}]}}}",
        "spec.selector.matchExpressions[0].values: Required value"},
       {"{spec: {unhealthyPodEvictionPolicy: Never}}",
        "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: "
        "\"AlwaysAllow\", \"IfHealthyBudget\""}});
}

TEST(RuntimeClass, RefusesWhatCannotWork) {
  constexpr const char* kBase = "{metadata: {name: nvidia}, handler: nvidia}";
  const Kind& kind = kind_of("node.k8s.io", "RuntimeClass");
  expect_rules(
      kind, kBase,
      {{"{handler: \"\"}", "handler: Required value"},
       {"{handler: A}", "handler: Invalid value: \"A\""},
       {"{overhead: {podFixed: {gpus: 1}}}", "overhead.limits[gpus]: Invalid value"},
       {"{scheduling: {nodeSelector: {a: \"b c\"}}}", "scheduling.nodeSelector"},
       {"{scheduling: {tolerations: [{key: a, operator: X}]}}",
        "scheduling.tolerations[0].operator"},
       {"{scheduling: {tolerations: [{key: a, operator: Exists}, {key: a, operator: Exists}]}}",
        "scheduling.tolerations[1]: Duplicate value"}});
  expect_update_rules(kind, kBase, {{"{handler: other}", "handler: Invalid value: \"other\""}});
}

TEST(Roles, RefuseRulesThatSayNothing) {
  constexpr const char* kBase =
      "{metadata: {name: \"system:x\"}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: "
      "[get]}]}";
  EXPECT_TRUE(stored(kind_of(kRbac, "Role"), "{metadata: {name: r}}").contains("rules"));
  const std::vector<RuleCase> both = {
      {"{metadata: {name: a/b}}", "metadata.name: Invalid value: \"a/b\": may not contain '/'"},
      {"{rules: [{apiGroups: [\"\"], resources: [pods]}]}",
       "rules[0].verbs: Required value: verbs must contain at least one value"},
      {"{rules: [{resources: [pods], verbs: [get]}]}",
       "rules[0].apiGroups: Required value: resource rules must supply at least one api group"},
      {"{rules: [{apiGroups: [\"\"], verbs: [get]}]}",
       "rules[0].resources: Required value: resource rules must supply at least one resource"},
      {"{rules: [{apiGroups: [\"\"], resources: [p], verbs: [get], nonResourceURLs: [/x]}]}",
       "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular "
       "resources and non-resource URLs"}};
  expect_rules(kind_of(kRbac, "Role"), kBase, both);
  expect_rules(kind_of(kRbac, "ClusterRole"), kBase, both);
  expect_rules(kind_of(kRbac, "Role"), kBase,
               {{"{rules: [{verbs: [get], nonResourceURLs: [/x]}]}",
                 "namespaced rules cannot apply to non-resource URLs"}});
  expect_rules(kind_of(kRbac, "ClusterRole"), kBase,
               {{"{rules: [{verbs: [get], nonResourceURLs: [/x]}]}", ""},
                {"{aggregationRule: {clusterRoleSelectors: []}}",
                 "aggregationRule.clusterRoleSelectors: Required value"},
                {"{aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: \"b c\"}}]}}",
                 "aggregationRule.clusterRoleSelectors[0].matchLabels"}});
}

TEST(RoleBindings, NameARoleThatStaysAndSubjects) {
  constexpr const char* kBase =
      "{metadata: {name: b}, roleRef: {kind: ClusterRole, name: \"system:view\"}, subjects: "
      "[{kind: "
      "User, name: u}, {kind: ServiceAccount, name: s, namespace: nn}]}";
  const Value binding = stored(kind_of(kRbac, "RoleBinding"), kBase);
  EXPECT_EQ(binding["roleRef"]["apiGroup"].as_string(), kRbac);
  EXPECT_EQ(binding["subjects"].at(0)["apiGroup"].as_string(), kRbac);
  EXPECT_FALSE(binding["subjects"].at(1).contains("apiGroup"));
  const std::vector<RuleCase> both = {
      {"{roleRef: {apiGroup: x}}",
       "roleRef.apiGroup: Unsupported value: \"x\": supported values: "
       "\"rbac.authorization.k8s.io\""},
      {"{roleRef: {kind: Pod}}", "roleRef.kind: Unsupported value: \"Pod\""},
      {"{roleRef: {name: \"\"}}", "roleRef.name: Required value"},
      {"{roleRef: {name: a%b}}", "roleRef.name: Invalid value: \"a%b\": may not contain '%'"},
      {"{subjects: [{kind: User, name: \"\"}]}", "subjects[0].name: Required value"},
      {"{subjects: [{kind: Robot, name: r}]}",
       "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", "
       "\"User\", \"Group\""},
      {"{subjects: [{kind: Group, name: g, apiGroup: x}]}",
       "subjects[0].apiGroup: Unsupported value: \"x\""},
      {"{subjects: [{kind: ServiceAccount, name: A, namespace: nn}]}",
       "subjects[0].name: Invalid value: \"A\""},
      {"{subjects: [{kind: ServiceAccount, name: a, namespace: nn, apiGroup: x}]}",
       "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"\""}};
  for (const char* name : {"RoleBinding", "ClusterRoleBinding"}) {
    expect_rules(kind_of(kRbac, name), kBase, both);
    expect_update_rules(
        kind_of(kRbac, name), kBase,
        {{"{subjects: []}", ""}, {"{roleRef: {name: other}}", "roleRef: Invalid value"}});
  }
  expect_rules(kind_of(kRbac, "RoleBinding"), kBase, {{"{roleRef: {kind: Role}}", ""}});
  expect_rules(
      kind_of(kRbac, "ClusterRoleBinding"), kBase,
      {{"{roleRef: {kind: Role}}", "roleRef.kind: Unsupported value: \"Role\""},
       {"{subjects: [{kind: ServiceAccount, name: a}]}", "subjects[0].namespace: Required value"}});
}

}  // namespace
}  // namespace tessera::apiserver
