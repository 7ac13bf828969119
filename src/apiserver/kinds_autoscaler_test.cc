#include <gtest/gtest.h>

#include "apiserver/kinds_cases.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using namespace testing_kinds;

constexpr const char* kScaler =
    "{metadata: {name: h}, spec: {maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: "
    "Deployment, name: d}}}";

TEST(HorizontalPodAutoscaler, GetsItsDefaults) {
  const Kind& kind = kind_of("autoscaling", "HorizontalPodAutoscaler", "v2");
  const Value spec = stored(kind, kScaler)["spec"];
  EXPECT_EQ(spec["minReplicas"], Value(1));
  EXPECT_EQ(spec["metrics"].dump(),
            R"([{"resource":{"name":"cpu","target":{"averageUtilization":80,)"
            R"("type":"Utilization"}},"type":"Resource"}])");
  const Value rules = stored(kind,
                             "{metadata: {name: h}, spec: {maxReplicas: 4, behavior: {scaleDown: "
                             "{selectPolicy: Min}}, scaleTargetRef: {apiVersion: apps/v1, kind: "
                             "Deployment, name: d}}}")["spec"]["behavior"];
  EXPECT_EQ(rules["scaleDown"].dump(),
            R"({"policies":[{"periodSeconds":15,"type":"Percent","value":100}],)"
            R"("selectPolicy":"Min"})");
  EXPECT_EQ(rules["scaleUp"]["policies"].size(), 2U);
  EXPECT_EQ(rules["scaleUp"]["stabilizationWindowSeconds"], Value(0));
}

TEST(HorizontalPodAutoscaler, RefusesWhatCannotWork) {
  expect_rules(
      kind_of("autoscaling", "HorizontalPodAutoscaler", "v2"), kScaler,
      {{"{spec: {minReplicas: 0}}",
        "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"},
       {"{spec: {maxReplicas: 0}}",
        "spec.maxReplicas: Required value: must be set and greater than 0"},
       {"{spec: {maxReplicas: -1}}", "must be greater than or equal to 1"},
       {"{spec: {minReplicas: 9}}", "must be greater than or equal to `minReplicas`"},
       {"{spec: {scaleTargetRef: {kind: \"\"}}}", "spec.scaleTargetRef.kind: Required value"},
       {"{spec: {scaleTargetRef: {name: a/b}}}",
        "spec.scaleTargetRef.name: Invalid value: \"a/b\""},
       {"{spec: {scaleTargetRef: {apiVersion: v1}}}",
        "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group"},
       {"{spec: {scaleTargetRef: {apiVersion: v1, kind: ReplicationController}}}", ""},
       {"{spec: {scaleTargetRef: {apiVersion: a/b/c}}}", "unexpected GroupVersion string: a/b/c"},
       {"{spec: {behavior: {scaleUp: {policies: []}}}}", ""},
       {"{spec: {behavior: {scaleUp: {stabilizationWindowSeconds: 3601}}}}",
        "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than "
        "or equal to 3600"},
       {"{spec: {behavior: {scaleUp: {stabilizationWindowSeconds: -1}}}}",
        "must be greater than or equal to zero"},
       {"{spec: {behavior: {scaleUp: {selectPolicy: X}}}}",
        "spec.behavior.scaleUp.selectPolicy: Unsupported value: \"X\""},
       {"{spec: {behavior: {scaleUp: {tolerance: -1}}}}",
        "spec.behavior.scaleUp.tolerance: Invalid value: \"-1\""},
       {"{spec: {behavior: {scaleUp: {policies: [{type: X, value: 1, periodSeconds: 1}]}}}}",
        "spec.behavior.scaleUp.policies[0].type: Unsupported value: \"X\""},
       {"{spec: {behavior: {scaleUp: {policies: [{type: Pods, value: 0, periodSeconds: 0}]}}}}",
        "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero"},
       {"{spec: {behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1801}]}}}}",
        "must be less than or equal to 1800"}});
}

TEST(HorizontalPodAutoscaler, ChecksItsMetrics) {
  const auto with = [](const char* text) {
    return std::string("{spec: {metrics: [").append(text).append("]}}");
  };
  const std::pair<const char*, const char*> cases[] = {
      {"{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: "
       "50}}}",
       ""},
      {"{}", "spec.metrics[0].type: Required value: must specify a metric source type"},
      {"{type: Moon}", "spec.metrics[0].type: Unsupported value: \"Moon\""},
      {"{type: Pods}",
       "spec.metrics[0].pods: Required value: must populate information for the given metric "
       "source"},
      {"{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: "
       "50}}, pods: {metric: {name: m}, target: {type: Value}}}",
       "spec.metrics[0].pods: Forbidden: must populate the given metric source only"},
      {"{type: Resource, resource: {name: \"\", target: {type: Utilization}}}",
       "spec.metrics[0].resource.name: Required value: must specify a resource name"},
      {"{type: Resource, resource: {name: cpu, target: {type: X, averageUtilization: 0}}}",
       "spec.metrics[0].resource.target.type: Invalid value: \"X\": must be either Utilization, "
       "Value, or AverageValue"},
      {"{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: "
       "0}}}",
       "averageUtilization: Invalid value: 0: must be greater than 0"},
      {"{type: Resource, resource: {name: cpu, target: {type: Utilization}}}",
       "must set either a target raw value or a target utilization"},
      {"{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 5, "
       "averageValue: 1}}}",
       "may not set both a target raw value and a target utilization"},
      {"{type: ContainerResource, containerResource: {name: cpu, container: \"\", target: {type: "
       "Utilization, averageUtilization: 5}}}",
       "spec.metrics[0].containerResource.container: Required value: must specify a container"},
      {"{type: ContainerResource, containerResource: {name: gpus, container: A, target: {type: "
       "Utilization, averageUtilization: 5}}}",
       "spec.metrics[0].containerResource.container: Invalid value: \"A\""},
      {"{type: Pods, pods: {metric: {name: \"\"}, target: {type: AverageValue, averageValue: 1}}}",
       "spec.metrics[0].pods.metric.name: Required value: must specify a metric name"},
      {"{type: Pods, pods: {metric: {name: m}, target: {type: AverageValue}}}",
       "must specify a positive target averageValue"},
      {"{type: Pods, pods: {metric: {name: m}, target: {type: AverageValue, averageValue: 0}}}",
       "averageValue: Invalid value: \"0\": must be positive"},
      {"{type: Object, object: {describedObject: {kind: K, name: nn}, metric: {name: m}, target: "
       "{type: Value}}}",
       "must set either a target value or averageValue"},
      {"{type: External, external: {metric: {name: a/b}, target: {type: Value}}}",
       "spec.metrics[0].external.metric.name: Invalid value: \"a/b\""},
      {"{type: External, external: {metric: {name: m}, target: {type: Value}}}",
       "must set either a target value for metric or a per-pod target"},
      {"{type: External, external: {metric: {name: m}, target: {type: Value, value: 1, "
       "averageValue: 1}}}",
       "may not set both a target value for metric and a per-pod target"}};
  for (const auto& [text, wrong] : cases) {
    const std::string change = with(text);
    expect_rules(kind_of("autoscaling", "HorizontalPodAutoscaler", "v2"), kScaler,
                 {{change.c_str(), wrong}});
  }
}

}  // namespace
}  // namespace tessera::apiserver
