#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/kinds_fixture.h"
#include "json/patch.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using testing::HasSubstr;
using namespace testing_kinds;

const Kind& pods() {
  return kind_of("", "Pod");
}

Value pod(std::string_view spec) {
  return from_yaml(fmt::format("metadata: {{name: q}}\nspec: {}\n", spec));
}

Value plain_pod() {
  return pod("{containers: [{name: c, image: x}]}");
}

TEST(PodDefaults, AreThoseOfKubernetes) {
  const Outcome outcome = create(pods(), plain_pod());
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  EXPECT_EQ(
      outcome.object["spec"].dump(),
      R"({"containers":[{"image":"x","imagePullPolicy":"Always","name":"c","resources":{},)"
      R"("terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],)"
      R"("dnsPolicy":"ClusterFirst","enableServiceLinks":true,"restartPolicy":"Always",)"
      R"("schedulerName":"default-scheduler","securityContext":{},)"
      R"("terminationGracePeriodSeconds":30})");
  EXPECT_EQ(outcome.object["status"].dump(), R"({"phase":"Pending","qosClass":"BestEffort"})");
}

TEST(PodDefaults, PullPolicyFollowsTheTag) {
  const struct {
    const char* image;
    const char* policy;
  } cases[] = {{"x", "Always"},
               {"x:latest", "Always"},
               {"x:1", "IfNotPresent"},
               {"registry.example:5000/x", "Always"},
               {"registry.example:5000/x:1", "IfNotPresent"},
               {"x@sha256:0000", "IfNotPresent"},
               {"x:latest@sha256:0000", "Always"}};
  for (const auto& c : cases) {
    const Outcome outcome =
        create(pods(), pod(fmt::format("{{containers: [{{name: c, image: \"{}\"}}]}}", c.image)));
    EXPECT_EQ(outcome.object["spec"]["containers"].at(0)["imagePullPolicy"].as_string(), c.policy)
        << c.image;
  }
}

TEST(PodDefaults, FillProbesPortsVolumesAndHostNetwork) {
  const Outcome outcome = create(pods(), pod(R"({hostNetwork: true,
    containers: [{name: c, image: x, ports: [{containerPort: 80}],
      livenessProbe: {httpGet: {port: 80}}, volumeMounts: [{name: v, mountPath: /v}]}],
    volumes: [{name: v}, {name: s, secret: {secretName: s}}]})"));
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  const Value& container = outcome.object["spec"]["containers"].at(0);
  EXPECT_EQ(container["ports"].dump(), R"([{"containerPort":80,"hostPort":80,"protocol":"TCP"}])");
  EXPECT_EQ(container["livenessProbe"].dump(),
            R"({"failureThreshold":3,"httpGet":{"path":"/","port":80,"scheme":"HTTP"},)"
            R"("periodSeconds":10,"successThreshold":1,"timeoutSeconds":1})");
  EXPECT_EQ(outcome.object["spec"]["volumes"].dump(),
            R"([{"emptyDir":{},"name":"v"},{"name":"s","secret":{"defaultMode":420,)"
            R"("secretName":"s"}}])");
}

TEST(PodDefaults, RequestsFollowLimitsAndDecideTheClass) {
  const Outcome outcome = create(pods(), pod(R"({containers: [{name: c, image: x,
    resources: {limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 2}}}]})"));
  EXPECT_EQ(outcome.object["spec"]["containers"].at(0)["resources"]["requests"].dump(),
            R"({"cpu":"1","memory":"1Gi","nvidia.com/gpu":"2"})");
  EXPECT_EQ(outcome.object["status"]["qosClass"].as_string(), "Guaranteed");
}

TEST(PodDefaults, AreStableWhenAppliedTwice) {
  const Outcome once = create(pods(), plain_pod());
  Value again = once.object;
  pods().defaults(again);
  EXPECT_TRUE(again.same_node(once.object) || again == once.object);
}

TEST(PodCreate, GatedPodsSayThatTheyAre) {
  const Outcome outcome =
      create(pods(), pod("{schedulingGates: [{name: example.com/g}], containers: [{name: c, image: "
                         "x}]}"));
  ASSERT_TRUE(outcome.accepted()) << outcome.text();
  EXPECT_EQ(outcome.object["status"]["conditions"].at(0)["reason"].as_string(), "SchedulingGated");
  EXPECT_EQ(cell(pods(), outcome.object, "Status"), "SchedulingGated");
}

struct Refused {
  const char* spec;
  const char* line;
};

TEST(PodValidation, NamesWhatIsWrong) {
  const Refused cases[] = {
      {"{}", "spec.containers: Required value"},
      {"{containers: [{image: x}]}", "spec.containers[0].name: Required value"},
      {"{containers: [{name: A_b, image: x}]}",
       "spec.containers[0].name: Invalid value: \"A_b\": a "
       "lowercase RFC 1123 label must consist"},
      {"{containers: [{name: c}]}", "spec.containers[0].image: Required value"},
      {"{containers: [{name: c, image: x}, {name: c, image: z}]}",
       "spec.containers[1].name: Duplicate value: \"c\""},
      {"{restartPolicy: Sometimes, containers: [{name: c, image: x}]}",
       "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", "
       "\"OnFailure\", \"Never\""},
      {"{containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]}",
       "spec.containers[0].volumeMounts[0].name: Not found: \"v\""},
      {"{containers: [{name: c, image: x, ports: [{containerPort: 70000}]}]}",
       "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and "
       "65535, inclusive"},
      {"{containers: [{name: c, image: x, env: [{name: A, value: b, valueFrom: {fieldRef: "
       "{fieldPath: metadata.name}}}]}]}",
       "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when "
       "`value` "
       "is not empty"},
      {"{containers: [{name: c, image: x, livenessProbe: {periodSeconds: 3}}]}",
       "spec.containers[0].livenessProbe: Required value: must specify a handler type"},
      {"{containers: [{name: c, image: x}], initContainers: [{name: i, image: x, readinessProbe: "
       "{exec: {command: [a]}}}]}",
       "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers "
       "without "
       "restartPolicy=Always"},
      {"{containers: [{name: c, image: x}], volumes: [{name: v, emptyDir: {}, hostPath: {path: "
       "/x}}]}",
       "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"},
      {"{containers: [{name: c, image: x, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}",
       "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to "
       "cpu limit of 1"},
      {"{containers: [{name: c, image: x}], tolerations: [{key: a, operator: Exists, value: b}]}",
       "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is "
       "'Exists'"},
      {"{containers: [{name: c, image: x}], tolerations: [{key: a, operator: Has}]}",
       "spec.tolerations[0].operator: Unsupported value: \"Has\": supported values: \"Equal\", "
       "\"Exists\""},
      {"{containers: [{name: c, image: x}], tolerations: [{effect: NoSchedule}]}",
       "operator must be Exists when `key` is empty"},
      {"{containers: [{name: c, image: x}], affinity: {nodeAffinity: "
       "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
       "[{key: a, operator: In}]}]}}}}",
       "nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when "
       "`operator` is 'In' or 'NotIn'"},
      {"{containers: [{name: c, image: x}], affinity: {podAntiAffinity: "
       "{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, podAffinityTerm: "
       "{topologyKey: a}}]}}}",
       "weight: Invalid value: 0: must be in the range 1-100"},
      {"{containers: [{name: c, image: x}], topologySpreadConstraints: [{maxSkew: 0, topologyKey: "
       "a, "
       "whenUnsatisfiable: X}]}",
       "whenUnsatisfiable: Unsupported value: \"X\": supported values: \"DoNotSchedule\", "
       "\"ScheduleAnyway\""},
      {"{containers: [{name: c, image: x}], nodeSelector: {\"a b\": c}}",
       "spec.nodeSelector: Invalid value: \"a b\": name part must consist"},
      {"{nodeName: n1, schedulingGates: [{name: g}], containers: [{name: c, image: x}]}",
       "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"},
      {"{preemptionPolicy: Maybe, containers: [{name: c, image: x}]}",
       "spec.preemptionPolicy: Unsupported value: \"Maybe\""},
  };
  for (const Refused& c : cases) {
    const Outcome outcome = create(pods(), pod(c.spec));
    EXPECT_THAT(outcome.text(), HasSubstr(c.line)) << c.spec;
  }
}

TEST(PodValidation, ChecksMetadata) {
  const Outcome outcome = create(pods(), from_yaml(R"(
metadata: {name: Bad_Name, labels: {a: "b c"}, finalizers: [x], ownerReferences: [{kind: Job}]}
spec: {containers: [{name: c, image: x}]})"));
  for (const char* line :
       {"metadata.name: Invalid value: \"Bad_Name\"", "metadata.labels: Invalid value: \"b c\"",
        "metadata.finalizers[0]: Invalid value: \"x\": name is neither",
        "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"}) {
    EXPECT_THAT(outcome.text(), HasSubstr(line)) << line;
  }
}

Outcome changed(std::string_view patch, const Value& start = plain_pod()) {
  const Value before = create(pods(), start).object;
  return update(pods(), json::apply_merge_patch(before, from_yaml(patch)), before);
}

TEST(PodUpdate, AllowsWhatKubernetesAllows) {
  for (const char* patch :
       {"{metadata: {labels: {a: b}}}", "{spec: {activeDeadlineSeconds: 5}}",
        "{spec: {tolerations: [{key: a, operator: Exists}]}}", "{status: {phase: Running}}",
        "{spec: {containers: [{name: c, image: \"y:2\", imagePullPolicy: Always, "
        "terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, "
        "resources: {}}]}}"}) {
    const Outcome outcome = changed(patch);
    EXPECT_TRUE(outcome.accepted()) << patch << "\n" << outcome.text();
    EXPECT_EQ(outcome.object["status"]["phase"].as_string(), "Pending") << "status is not its own";
  }
}

TEST(PodUpdate, RefusesTheRestAndSaysWhatChanged) {
  const Outcome outcome = changed("{spec: {nodeName: n1}}");
  ASSERT_EQ(outcome.causes.size(), 1U) << outcome.text();
  EXPECT_EQ(outcome.causes[0].field, "spec");
  EXPECT_THAT(outcome.causes[0].message,
              HasSubstr("Forbidden: pod updates may not change fields other than "
                        "`spec.containers[*].image`,`spec.initContainers[*].image`"));
  EXPECT_THAT(outcome.causes[0].message,
              HasSubstr("\n- \"NodeName\": \"\",\n+ \"NodeName\": \"n1\",\n"));
  EXPECT_THAT(
      changed("{spec: {containers: [{name: c, image: x}, {name: d, image: x}]}}").text(),
      HasSubstr("spec.containers: Forbidden: pod updates may not add or remove containers"));
  EXPECT_THAT(changed("{metadata: {uid: other}}").text(),
              HasSubstr("metadata.uid: Invalid value: \"other\": field is immutable"));
  EXPECT_THAT(changed("{spec: {schedulingGates: [{name: g}]}}").text(),
              HasSubstr("only deletion is allowed, but found new scheduling gate 'g'"));
}

TEST(PodUpdate, GatedPodsMayGetMoreNodeSelectors) {
  const Value gated = pod(
      "{schedulingGates: [{name: g}], nodeSelector: {a: b}, containers: [{name: c, image: x}]}");
  EXPECT_TRUE(changed("{spec: {nodeSelector: {c: d}}}", gated).accepted());
  EXPECT_TRUE(changed("{spec: {schedulingGates: null}}", gated).accepted());
  EXPECT_THAT(changed("{spec: {nodeSelector: {a: c}}}", gated).text(),
              HasSubstr("only additions to spec.nodeSelector are allowed"));
  EXPECT_FALSE(changed("{spec: {nodeSelector: {c: d}}}").accepted());
}

}  // namespace
}  // namespace tessera::apiserver
