#include <gtest/gtest.h>

#include "apiserver/kinds_cases.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using namespace testing_kinds;

constexpr const char* kStatefulSet = R"(
metadata: {name: web}
spec:
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "x:1", volumeMounts: [{name: data, mountPath: /d}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}})";

TEST(StatefulSet, GetsItsDefaults) {
  const Value set = stored(kind_of("apps", "StatefulSet"), kStatefulSet);
  const Value& spec = set["spec"];
  EXPECT_EQ(spec["podManagementPolicy"].as_string(), "OrderedReady");
  EXPECT_EQ(spec["updateStrategy"].dump(),
            R"({"rollingUpdate":{"partition":0},"type":"RollingUpdate"})");
  EXPECT_EQ(spec["persistentVolumeClaimRetentionPolicy"].dump(),
            R"({"whenDeleted":"Retain","whenScaled":"Retain"})");
  EXPECT_EQ(spec["replicas"], Value(1));
  EXPECT_EQ(spec["revisionHistoryLimit"], Value(10));
  const Value& claim = spec["volumeClaimTemplates"].at(0);
  EXPECT_EQ(claim["kind"].as_string(), "PersistentVolumeClaim");
  EXPECT_EQ(claim["apiVersion"].as_string(), "v1");
  EXPECT_EQ(claim["spec"]["volumeMode"].as_string(), "Filesystem");
  EXPECT_EQ(claim["status"].dump(), R"({"phase":"Pending"})");
  EXPECT_EQ(set["status"].dump(), R"({"availableReplicas":0,"replicas":0})");
}

TEST(StatefulSet, RefusesWhatCannotWork) {
  expect_rules(
      kind_of("apps", "StatefulSet"), kStatefulSet,
      {{"{metadata: {name: a.b}}", "metadata.name: Invalid value: \"a.b\""},
       {"{spec: {podManagementPolicy: X}}",
        "spec.podManagementPolicy: Invalid value: \"X\": must be 'OrderedReady' or 'Parallel'"},
       {"{spec: {updateStrategy: {type: Recreate}}}",
        "spec.updateStrategy: Invalid value: {\"type\":\"Recreate\"}: must be 'RollingUpdate' or "
        "'OnDelete'"},
       {"{spec: {updateStrategy: {type: OnDelete, rollingUpdate: {partition: 1}}}}",
        "spec.updateStrategy.rollingUpdate: Invalid value: {\"partition\":1}: only allowed for "
        "updateStrategy 'RollingUpdate'"},
       {"{spec: {updateStrategy: {type: OnDelete}}}", ""},
       {"{spec: {updateStrategy: {rollingUpdate: {partition: -1}}}}",
        "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or "
        "equal to 0"},
       {"{spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Keep}}}",
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: \"Keep\": "
        "supported values: \"Retain\", \"Delete\""},
       {"{spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: "
        "{storage: 1Gi}}}}]}}",
        "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is "
        "required"},
       {"{spec: {replicas: -1}}", "spec.replicas: Invalid value: -1"},
       {"{spec: {minReadySeconds: -1}}", "spec.minReadySeconds: Invalid value: -1"},
       {"{spec: {ordinals: {start: -1}}}", "spec.ordinals.start: Invalid value: -1"},
       {"{spec: {serviceName: A}}", "spec.serviceName: Invalid value: \"A\""},
       {"{spec: {selector: null}}", "spec.selector: Required value"},
       {"{spec: {selector: {matchLabels: null}}}",
        "spec.selector: Invalid value: {}: empty selector is invalid for statefulset"},
       {"{spec: {selector: {matchLabels: {app: b}}}}",
        "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not "
        "match template `labels`"},
       {"{spec: {template: {spec: {restartPolicy: Never}}}}",
        "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: "
        "\"Always\""},
       {"{spec: {template: {spec: {activeDeadlineSeconds: 5}}}}",
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet "
        "is not Supported"},
       {"{spec: {volumeClaimTemplates: []}}",
        "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\""},
       {"{spec: {template: {spec: {hostname: A, subdomain: B}}}}", ""}});
}

TEST(StatefulSet, ChangesOnlyWhatItMay) {
  expect_update_rules(
      kind_of("apps", "StatefulSet"), kStatefulSet,
      {{"{spec: {replicas: 3, minReadySeconds: 1, revisionHistoryLimit: 2, ordinals: {start: 1}}}",
        ""},
       {"{spec: {template: {spec: {nodeSelector: {a: b}}}, updateStrategy: {type: OnDelete, "
        "rollingUpdate: null}}}",
        ""},
       {"{spec: {serviceName: other}}",
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
        "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"}});
}

constexpr const char* kDaemonSet = R"(
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: x}]}})";

TEST(DaemonSet, GetsItsDefaultsAndCountsItsTemplates) {
  const Kind& kind = kind_of("apps", "DaemonSet");
  const Value set = stored(kind, kDaemonSet);
  EXPECT_EQ(set["spec"]["updateStrategy"].dump(),
            R"({"rollingUpdate":{"maxSurge":0,"maxUnavailable":1},"type":"RollingUpdate"})");
  EXPECT_EQ(set["spec"]["revisionHistoryLimit"], Value(10));
  constexpr const char* kCount = "deprecated.daemonset.template.generation";
  EXPECT_EQ(set["metadata"]["annotations"][kCount].as_string(), "1");
  const auto changed = [&](const char* patch) {
    return update(kind, json::apply_merge_patch(set, from_yaml(patch)), set).object;
  };
  EXPECT_EQ(changed("{spec: {template: {spec: {nodeSelector: {a: b}}}}, metadata: {annotations: "
                    "null}}")["metadata"]["annotations"][kCount]
                .as_string(),
            "2");
  EXPECT_EQ(changed("{spec: {minReadySeconds: 3}}")["metadata"]["annotations"][kCount].as_string(),
            "1");
}

TEST(DaemonSet, RefusesWhatCannotWork) {
  expect_rules(
      kind_of("apps", "DaemonSet"), kDaemonSet,
      {{"{spec: {selector: null}}", "spec.selector: Required value"},
       {"{spec: {selector: {matchLabels: null}}}",
        "spec.selector: Invalid value: {}: empty selector is invalid for daemonset"},
       {"{spec: {selector: {matchLabels: {app: b}}}}",
        "`selector` does not match template `labels`"},
       {"{spec: {minReadySeconds: -1}}", "spec.minReadySeconds: Invalid value: -1"},
       {"{spec: {revisionHistoryLimit: -1}}", "spec.revisionHistoryLimit: Invalid value: -1"},
       {"{spec: {template: {spec: {restartPolicy: OnFailure}}}}",
        "spec.template.spec.restartPolicy: Unsupported value: \"OnFailure\""},
       {"{spec: {template: {spec: {activeDeadlineSeconds: 5}}}}",
        "activeDeadlineSeconds in DaemonSet is not Supported"},
       {"{spec: {updateStrategy: {type: X}}}",
        "spec.updateStrategy: Unsupported value: {\"Type\":\"X\",\"RollingUpdate\":null}: "
        "supported values: "
        "\"RollingUpdate\", \"OnDelete\""},
       {"{spec: {updateStrategy: {type: OnDelete}}}", ""},
       {"{spec: {updateStrategy: {rollingUpdate: {maxUnavailable: \"x%\"}}}}",
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"x%\": a valid percent "
        "string"},
       {"{spec: {updateStrategy: {rollingUpdate: {maxUnavailable: \"110%\"}}}}",
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"110%\": must not be "
        "greater than 100%"},
       {"{spec: {updateStrategy: {rollingUpdate: {maxSurge: 1}}}}",
        "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when "
        "maxUnavailable is non-zero"},
       {"{spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 0}}}}",
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when "
        "maxSurge is 0"},
       {"{spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: \"10%\"}}}}", ""}});
  expect_update_rules(kind_of("apps", "DaemonSet"), kDaemonSet,
                      {{"{spec: {selector: {matchLabels: {b: c}}, template: {metadata: {labels: "
                        "{b: c}}}}}",
                        "field is immutable"}});
}

TEST(ControllerRevision, HoldsDataThatStays) {
  const Kind& kind = kind_of("apps", "ControllerRevision");
  constexpr const char* kBase = "{metadata: {name: r1}, revision: 1, data: {spec: {a: 1}}}";
  expect_rules(kind, kBase,
               {{"{data: null}", "data: Required value: data is mandatory"},
                {"{data: [1]}", "data"},
                {"{revision: -1}", "revision: Invalid value: -1"}});
  expect_update_rules(kind, kBase,
                      {{"{revision: 2}", ""}, {"{data: {spec: {a: 2}}}", "field is immutable"}});
}

TEST(PodTemplate, DefaultsAndChecksItsPods) {
  const Kind& kind = kind_of("", "PodTemplate");
  constexpr const char* kBase =
      "{metadata: {name: t}, template: {spec: {containers: [{name: c, image: x}]}}}";
  EXPECT_EQ(stored(kind, kBase)["template"]["spec"]["restartPolicy"].as_string(), "Always");
  expect_rules(
      kind, kBase,
      {{"{template: {spec: {containers: []}}}", "template.spec.containers: Required value"}});
}

TEST(ReplicationController, TakesItsSelectorFromTheTemplate) {
  const Kind& kind = kind_of("", "ReplicationController");
  constexpr const char* kBase =
      "{metadata: {name: rc}, spec: {template: {metadata: {labels: {a: b}}, spec: {containers: "
      "[{name: c, image: x}]}}}}";
  const Value controller = stored(kind, kBase);
  EXPECT_EQ(controller["spec"]["selector"].dump(), R"({"a":"b"})");
  EXPECT_EQ(controller["spec"]["replicas"], Value(1));
  EXPECT_EQ(controller["metadata"]["labels"].dump(), R"({"a":"b"})");
  expect_rules(kind, kBase,
               {{"{spec: {replicas: -1}}", "spec.replicas: Invalid value: -1"},
                {"{spec: {minReadySeconds: -1}}", "spec.minReadySeconds: Invalid value: -1"},
                {"{spec: {selector: {a: c}}}", "`selector` does not match template `labels`"},
                {"{spec: {template: {metadata: null}}}", "spec.selector: Required value"},
                {"{spec: {template: null}}", "spec.template: Required value"},
                {"{spec: {template: {spec: {restartPolicy: Never}}}}",
                 "spec.template.spec.restartPolicy: Unsupported value: \"Never\""}});
}

}  // namespace
}  // namespace tessera::apiserver
