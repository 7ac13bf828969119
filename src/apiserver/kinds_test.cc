#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/kinds_fixture.h"
#include "json/patch.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using testing::HasSubstr;
using namespace testing_kinds;

Outcome create_yaml(std::string_view group, std::string_view kind, std::string_view text) {
  return create(kind_of(group, kind), from_yaml(text));
}

Outcome patched(std::string_view group, std::string_view kind, std::string_view start,
                std::string_view patch) {
  const Outcome before = create_yaml(group, kind, start);
  EXPECT_TRUE(before.accepted()) << before.text();
  return update(kind_of(group, kind), json::apply_merge_patch(before.object, from_yaml(patch)),
                before.object);
}

TEST(Kinds, EveryKindHasASchemaColumnsAndIsFound) {
  EXPECT_GE(Kinds::builtin().all().size(), 39U);
  for (const Kind* kind : Kinds::builtin().all()) {
    EXPECT_NE(kind->schema, nullptr) << kind->kind;
    EXPECT_FALSE(kind->columns.empty() && !kind->virtual_create) << kind->kind;
    EXPECT_EQ(Kinds::builtin().find(kind->gvr()), kind);
    EXPECT_EQ(Kinds::builtin().find_kind(kind->group, kind->version, kind->kind), kind);
  }
  EXPECT_EQ(Kinds::builtin().find({"apps", "v1", "pods"}), nullptr);
}

TEST(FieldErrors, AreWordedAsKubernetesDoes) {
  FieldErrors errors;
  errors.required("a");
  errors.required("a", "why");
  errors.invalid("a", Value("x"), "must be y");
  errors.not_supported("a", Value("x"), {"A", "B"});
  errors.duplicate("a", Value(1));
  errors.forbidden("a", "no");
  errors.not_found("a", Value("x"));
  errors.too_long("a", 5);
  std::vector<std::string> lines;
  for (const base::Cause& cause : errors.causes()) {
    lines.push_back(cause.reason + " " + cause.message);
  }
  EXPECT_THAT(lines,
              testing::ElementsAre(
                  "FieldValueRequired Required value", "FieldValueRequired Required value: why",
                  "FieldValueInvalid Invalid value: \"x\": must be y",
                  "FieldValueNotSupported Unsupported value: \"x\": supported values: \"A\", \"B\"",
                  "FieldValueDuplicate Duplicate value: 1", "FieldValueForbidden Forbidden: no",
                  "FieldValueNotFound Not found: \"x\"",
                  "FieldValueTooLong Too long: may not be more than 5 bytes"));
}

constexpr const char* kDeployment = R"(
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "x:1"}]})";

TEST(Deployment, GetsItsDefaults) {
  const Outcome outcome = create_yaml("apps", "Deployment", kDeployment);
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  const Value& spec = outcome.object["spec"];
  EXPECT_EQ(spec["replicas"], Value(1));
  EXPECT_EQ(spec["revisionHistoryLimit"], Value(10));
  EXPECT_EQ(spec["progressDeadlineSeconds"], Value(600));
  EXPECT_EQ(
      spec["strategy"].dump(),
      R"({"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"})");
  EXPECT_EQ(spec["template"]["spec"]["restartPolicy"].as_string(), "Always");
  EXPECT_FALSE(spec["template"]["spec"].contains("enableServiceLinks")) << "only pods get it";
  EXPECT_EQ(outcome.object["status"].dump(), "{}");
}

TEST(Deployment, RefusesWhatCannotWork) {
  EXPECT_THAT(create_yaml("apps", "Deployment", R"(
metadata: {name: web}
spec:
  replicas: -1
  selector: {matchLabels: {app: other}}
  strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}
  template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: c, image: x}]}})")
                  .text(),
              testing::AllOf(
                  HasSubstr("spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
                  HasSubstr("spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: "
                            "`selector` does not match template `labels`"),
                  HasSubstr("spec.template.spec.restartPolicy: Unsupported value: \"Never\""),
                  HasSubstr("spec.strategy.rollingUpdate: Forbidden: may not be specified when "
                            "strategy `type` is 'Recreate'")));
  EXPECT_THAT(create_yaml("apps", "Deployment",
                          "{metadata: {name: web}, spec: {template: {spec: {containers: [{name: c, "
                          "image: x}]}}}}")
                  .text(),
              HasSubstr("spec.selector: Required value"));
}

TEST(Deployment, KeepsItsSelectorAndStatus) {
  EXPECT_THAT(patched("apps", "Deployment", kDeployment,
                      "{spec: {selector: {matchLabels: {tier: x}}, template: {metadata: {labels: "
                      "{tier: x}}}}}")
                  .text(),
              HasSubstr("spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"web\","
                        "\"tier\":\"x\"}}: field is immutable"));
  const Outcome outcome =
      patched("apps", "Deployment", kDeployment, "{spec: {replicas: 3}, status: {replicas: 7}}");
  EXPECT_TRUE(outcome.accepted()) << outcome.text();
  EXPECT_EQ(outcome.object["status"].dump(), "{}");
}

constexpr const char* kJob = R"(
metadata: {name: train}
spec:
  template:
    metadata: {labels: {app: t}}
    spec: {restartPolicy: Never, containers: [{name: c, image: x}]})";

TEST(Job, GetsDefaultsSelectorAndLabels) {
  const Outcome outcome = create_yaml("batch", "Job", kJob);
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  const Value& spec = outcome.object["spec"];
  EXPECT_EQ(spec["completions"], Value(1));
  EXPECT_EQ(spec["parallelism"], Value(1));
  EXPECT_EQ(spec["backoffLimit"], Value(6));
  EXPECT_EQ(spec["completionMode"].as_string(), "NonIndexed");
  EXPECT_EQ(spec["podReplacementPolicy"].as_string(), "TerminatingOrFailed");
  EXPECT_EQ(spec["suspend"], Value(false));
  EXPECT_EQ(spec["selector"].dump(),
            R"({"matchLabels":{"batch.kubernetes.io/controller-uid":"0000-uid"}})");
  EXPECT_EQ(spec["template"]["metadata"]["labels"].dump(),
            R"({"app":"t","batch.kubernetes.io/controller-uid":"0000-uid",)"
            R"("batch.kubernetes.io/job-name":"train","controller-uid":"0000-uid",)"
            R"("job-name":"train"})");
  EXPECT_EQ(outcome.object["metadata"]["labels"].dump(), R"({"app":"t"})");
}

TEST(Job, WithoutLabelsShowsTheGeneratedOnes) {
  const auto outcome =
      create_yaml("batch", "Job",
                  "{metadata: {name: t}, spec: {template: {spec: {restartPolicy: Never, "
                  "containers: [{name: c, image: x}]}}}}");
  EXPECT_EQ(outcome.object["metadata"]["labels"],
            outcome.object["spec"]["template"]["metadata"]["labels"]);
  EXPECT_EQ(outcome.object["metadata"]["labels"]["job-name"].as_string(), "t");
}

TEST(Job, HasNoSelectorOfTheUsers) {
  EXPECT_THAT(create_yaml("batch", "Job",
                          "{metadata: {name: t}, spec: {selector: {matchLabels: {x: v}}, template: "
                          "{spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}")
                  .text(),
              HasSubstr("`selector` not auto-generated"));
}

TEST(Deployment, WithoutSelectorDoesNotMatchItsTemplate) {
  EXPECT_THAT(
      create_yaml("apps", "Deployment",
                  "{metadata: {name: t}, spec: {strategy: {type: Some}, template: {metadata: "
                  "{labels: {app: a}}, spec: {containers: [{name: c, image: x}]}}}}")
          .text(),
      AllOf(
          HasSubstr("Invalid value: {\"app\":\"a\"}: `selector` does not match template `labels`"),
          HasSubstr("Unsupported value: {\"Type\":\"Some\",\"RollingUpdate\":null}: supported "
                    "values: \"Recreate\", \"RollingUpdate\"")));
}

TEST(Pod, ComesWithoutEphemeralContainersAndWithAGrace) {
  EXPECT_THAT(create_yaml("", "Pod",
                          "{metadata: {name: t}, spec: {containers: [{name: c, image: x}], "
                          "ephemeralContainers: [{name: e, image: x}]}}")
                  .text(),
              HasSubstr("spec.ephemeralContainers: Forbidden: cannot be set on create"));
  EXPECT_EQ(create_yaml("", "Pod",
                        "{metadata: {name: t}, spec: {terminationGracePeriodSeconds: -1, "
                        "containers: [{name: c, image: x}]}}")
                .object["spec"]["terminationGracePeriodSeconds"],
            Value(1));
}

TEST(Node, HasATaintOnce) {
  EXPECT_THAT(create_yaml("", "Node",
                          "{metadata: {name: t}, spec: {taints: [{key: a, effect: NoSchedule}, "
                          "{key: a, effect: NoSchedule}]}}")
                  .text(),
              HasSubstr("Duplicate value: {\"Key\":\"a\",\"Value\":\"\",\"Effect\":"
                        "\"NoSchedule\",\"TimeAdded\":null}: taints must be unique"));
}

TEST(Job, RefusesWhatCannotWork) {
  EXPECT_THAT(create_yaml("batch", "Job",
                          "{metadata: {name: t}, spec: {template: {spec: {containers: [{name: c, "
                          "image: x}]}}}}")
                  .text(),
              HasSubstr("spec.template.spec.restartPolicy: Required value: valid values: "
                        "\"OnFailure\", \"Never\""));
  EXPECT_THAT(create_yaml("batch", "Job", R"(
metadata: {name: t}
spec: {completionMode: Indexed, parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}})")
                  .text(),
              HasSubstr("spec.completions: Required value: when completion mode is Indexed"));
  EXPECT_THAT(
      create_yaml("batch", "Job", R"(
metadata: {name: t}
spec: {template: {metadata: {labels: {job-name: other}}, spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}})")
          .text(),
      HasSubstr("spec.template.metadata.labels[job-name]: Invalid value: \"other\": must be "
                "'t'"));
  EXPECT_THAT(create_yaml("batch", "Job", R"(
metadata: {name: t}
spec: {podFailurePolicy: {rules: [{action: Stop}]}, template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: x}]}}})")
                  .text(),
              testing::AllOf(HasSubstr("rules[0].action: Unsupported value: \"Stop\""),
                             HasSubstr("only \"Never\" is supported when podFailurePolicy")));
}

TEST(Job, TemplateAndSelectorAreFixed) {
  EXPECT_THAT(patched("batch", "Job", kJob, "{spec: {template: {spec: {priority: 5}}}}").text(),
              HasSubstr("spec.template: Invalid value: "));
  EXPECT_THAT(patched("batch", "Job", kJob, "{spec: {completions: 5}}").text(),
              HasSubstr("spec.completions: Invalid value: 5: field is immutable"));
  EXPECT_TRUE(patched("batch", "Job", kJob, "{spec: {parallelism: 5, suspend: true}}").accepted());
  const std::string suspended = std::string(kJob) + "\n  suspend: true";
  EXPECT_TRUE(
      patched("batch", "Job", suspended, "{spec: {template: {spec: {nodeSelector: {a: b}}}}}")
          .accepted());
}

TEST(Service, GetsDefaultsAndRefusesBadPorts) {
  const Outcome outcome = create_yaml(
      "", "Service", "{metadata: {name: s}, spec: {selector: {a: b}, ports: [{port: 80}]}}");
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  EXPECT_EQ(outcome.object["spec"].dump(),
            R"({"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],)"
            R"("ipFamilyPolicy":"SingleStack","ports":[{"port":80,"protocol":"TCP",)"
            R"("targetPort":80}],"selector":{"a":"b"},"sessionAffinity":"None",)"
            R"("type":"ClusterIP"})");
  EXPECT_EQ(outcome.object["status"].dump(), R"({"loadBalancer":{}})");
  EXPECT_THAT(
      create_yaml("", "Service",
                  "{metadata: {name: s.1}, spec: {clusterIP: x, ports: "
                  "[{port: 0}, {port: 80, nodePort: 30000}]}}")
          .text(),
      testing::AllOf(HasSubstr("metadata.name: Invalid value: \"s.1\": must not contain dots"),
                     HasSubstr("spec.ports[0].name: Required value"),
                     HasSubstr("spec.ports[0].port: Invalid value: 0"),
                     HasSubstr("spec.clusterIPs[0]: Invalid value: \"x\""),
                     HasSubstr("spec.ports[1].nodePort: Forbidden")));
}

TEST(Secret, FoldsStringDataAndStaysFixedWhenImmutable) {
  const Outcome outcome = create_yaml(
      "", "Secret", "{metadata: {name: s}, stringData: {a: hello, b: \"\", c: ab, d: abc}}");
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  EXPECT_EQ(outcome.object["data"].dump(), R"({"a":"aGVsbG8=","b":"","c":"YWI=","d":"YWJj"})");
  EXPECT_FALSE(outcome.object.contains("stringData"));
  EXPECT_EQ(outcome.object["type"].as_string(), "Opaque");
  EXPECT_THAT(patched("", "Secret", "{metadata: {name: s}, immutable: true, data: {a: YQ==}}",
                      "{immutable: false, data: {a: Yg==}}")
                  .text(),
              testing::AllOf(HasSubstr("immutable: Forbidden: field is immutable when `immutable` "
                                       "is set"),
                             HasSubstr("data: Forbidden")));
  EXPECT_THAT(create_yaml("", "Secret", "{metadata: {name: s}, type: kubernetes.io/tls}").text(),
              HasSubstr("data[tls.crt]: Required value"));
}

TEST(ConfigMap, ChecksKeysSizeAndImmutability) {
  EXPECT_THAT(create_yaml("", "ConfigMap",
                          "{metadata: {name: c}, data: {\"a b\": x, k: z}, binaryData: {k: YQ==}}")
                  .text(),
              testing::AllOf(HasSubstr("data[a b]: Invalid value: \"a b\": a valid config key"),
                             HasSubstr("data[k]: Invalid value: \"k\": duplicate of key present in "
                                       "binaryData")));
  Value big = from_yaml("{metadata: {name: c}}");
  big.ref("data").set("k", std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(create(kind_of("", "ConfigMap"), big).text(), HasSubstr("Too long"));
}

TEST(Namespace, IsActiveWithFinalizerAndLabel) {
  const Outcome outcome = create_yaml("", "Namespace", "{metadata: {name: team-a}}");
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  EXPECT_EQ(outcome.object["spec"].dump(), R"({"finalizers":["kubernetes"]})");
  EXPECT_EQ(outcome.object["status"].dump(), R"({"phase":"Active"})");
  EXPECT_EQ(outcome.object["metadata"]["labels"]["kubernetes.io/metadata.name"].as_string(),
            "team-a");
  EXPECT_FALSE(create_yaml("", "Namespace", "{metadata: {name: a.b}}").accepted());
}

TEST(Node, AllocatableFollowsCapacityAndTaintsAreChecked) {
  const Outcome outcome = create_yaml(
      "", "Node", "{metadata: {name: n1}, status: {capacity: {cpu: 4, nvidia.com/gpu: 8}}}");
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  EXPECT_EQ(outcome.object["status"]["allocatable"].dump(), R"({"cpu":"4","nvidia.com/gpu":"8"})");
  EXPECT_THAT(
      create_yaml("", "Node",
                  "{metadata: {name: n1}, spec: {taints: [{key: a, effect: NoSchedule}, {key: "
                  "a, effect: NoSchedule}, {key: b, effect: Never}]}}")
          .text(),
      testing::AllOf(HasSubstr("taints must be unique by key and effect pair"),
                     HasSubstr("effect: Unsupported value: \"Never\"")));
}

TEST(PriorityClass, ValueIsBoundedAndFixed) {
  const Outcome outcome =
      create_yaml("scheduling.k8s.io", "PriorityClass", "{metadata: {name: high}, value: 1000}");
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  EXPECT_EQ(outcome.object["preemptionPolicy"].as_string(), "PreemptLowerPriority");
  EXPECT_THAT(create_yaml("scheduling.k8s.io", "PriorityClass",
                          "{metadata: {name: high}, value: 2000000000}")
                  .text(),
              HasSubstr("value: Forbidden: maximum allowed value of a user defined priority is "
                        "1000000000"));
  EXPECT_THAT(patched("scheduling.k8s.io", "PriorityClass", "{metadata: {name: high}, value: 1000}",
                      "{value: 2000}")
                  .text(),
              HasSubstr("value: Forbidden: may not be changed in an update."));
}

TEST(Event, MustBeInTheNamespaceOfItsObject) {
  EXPECT_TRUE(create_yaml("", "Event",
                          "{metadata: {name: e}, involvedObject: {kind: Pod, name: p, namespace: "
                          "default}, reason: R, message: m}")
                  .accepted());
  EXPECT_THAT(create_yaml("", "Event",
                          "{metadata: {name: e}, involvedObject: {kind: Pod, namespace: other}}")
                  .text(),
              HasSubstr("involvedObject.namespace: Invalid value: \"other\": does not match "
                        "event.namespace"));
}

TEST(FieldValues, FollowKubernetesWhereThePathDoesNot) {
  const Kind& events = kind_of("", "Event");
  EXPECT_EQ(events.field_value(from_yaml("{reportingComponent: s}"), "source"), "s");
  EXPECT_EQ(events.field_value(from_yaml("{reason: s}"), "reason"), std::nullopt);
  EXPECT_EQ(kind_of("", "Node").field_value(Value::object(), "spec.unschedulable"), "false");
  EXPECT_EQ(kind_of("batch", "Job")
                .field_value(from_yaml("{status: {succeeded: 2}}"), "status.successful"),
            "2");
}

}  // namespace
}  // namespace tessera::apiserver
