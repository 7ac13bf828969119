#include <gtest/gtest.h>

#include "apiserver/kinds_cases.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using namespace testing_kinds;

constexpr const char* kStorage = "storage.k8s.io";
constexpr const char* kVolume =
    "{metadata: {name: v}, spec: {capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], "
    "hostPath: {path: /data}}}";
constexpr const char* kClaim =
    "{metadata: {name: c}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "
    "1Gi}}}}";

TEST(PersistentVolume, GetsItsDefaults) {
  const Value volume = stored(kind_of("", "PersistentVolume"), kVolume);
  EXPECT_EQ(volume["spec"]["persistentVolumeReclaimPolicy"].as_string(), "Retain");
  EXPECT_EQ(volume["spec"]["volumeMode"].as_string(), "Filesystem");
  EXPECT_EQ(volume["spec"]["hostPath"].dump(), R"({"path":"/data","type":""})");
  EXPECT_EQ(volume["status"]["phase"].as_string(), "Pending");
}

TEST(PersistentVolume, RefusesWhatCannotWork) {
  expect_rules(
      kind_of("", "PersistentVolume"), kVolume,
      {{"{spec: {accessModes: []}}", "spec.accessModes: Required value"},
       {"{spec: {accessModes: [Any]}}",
        "spec.accessModes: Unsupported value: \"Any\": supported values: \"ReadOnlyMany\", "
        "\"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\""},
       {"{spec: {accessModes: [ReadWriteOnce, ReadWriteOncePod]}}",
        "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"},
       {"{spec: {capacity: null}}", "spec.capacity: Required value"},
       {"{spec: {capacity: {cpu: 1}}}", "spec.capacity: Unsupported value"},
       {"{spec: {capacity: {storage: 0}}}",
        "spec.capacity[storage]: Invalid value: \"0\": must be greater than zero"},
       {"{spec: {persistentVolumeReclaimPolicy: Burn}}",
        "spec.persistentVolumeReclaimPolicy: Unsupported value: \"Burn\""},
       {"{spec: {nodeAffinity: {}}}",
        "spec.nodeAffinity.required: Required value: must specify required node constraints"},
       {"{spec: {nodeAffinity: {required: {nodeSelectorTerms: []}}}}",
        "spec.nodeAffinity.required.nodeSelectorTerms: Required value"},
       {"{spec: {hostPath: null}}", "spec: Required value: must specify a volume type"},
       {"{spec: {nfs: {server: s, path: /p}}}",
        "spec.nfs: Forbidden: may not specify more than 1 volume type"},
       {"{spec: {hostPath: {path: /a/../b}}}",
        "spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"},
       {"{spec: {hostPath: {type: Door}}}", "spec.hostPath.type: Unsupported value: \"Door\""},
       {"{spec: {hostPath: {path: \"\"}}}", "spec.hostPath.path: Required value"},
       {"{spec: {hostPath: null, local: {path: /d}}}",
        "spec.nodeAffinity: Required value: Local volume requires node affinity"},
       {"{spec: {hostPath: null, local: {path: ../d}}}",
        "spec.local.path: Invalid value: \"../d\": must not contain '..'"},
       {"{spec: {hostPath: null, nfs: {server: \"\", path: p}}}",
        "spec.nfs.server: Required value\nspec.nfs.path: Invalid value: \"p\": must be an absolute "
        "path"},
       {"{spec: {hostPath: null, csi: {driver: \"\", volumeHandle: \"\"}}}",
        "spec.csi.driver: Required value\nspec.csi.volumeHandle: Required value"},
       {"{spec: {hostPath: null, csi: {driver: a b, volumeHandle: h}}}",
        "spec.csi.driver: Invalid value: \"a b\""},
       {"{spec: {hostPath: null, csi: {driver: d.io, volumeHandle: h, nodePublishSecretRef: {name: "
        "nn}}}}",
        "spec.csi.nodePublishSecretRef.namespace: Required value"},
       {"{spec: {hostPath: {path: /}, persistentVolumeReclaimPolicy: Recycle}}",
        "may not be 'recycle' for a hostPath mount of '/'"},
       {"{spec: {storageClassName: A}}", "spec.storageClassName: Invalid value: \"A\""},
       {"{spec: {volumeMode: Tape}}", "spec.volumeMode: Unsupported value: \"Tape\""},
       {"{spec: {volumeAttributesClassName: \"\"}}", "an empty string is disallowed"},
       {"{spec: {volumeAttributesClassName: a}}",
        "spec.csi: Required value: has to be specified when using volumeAttributesClassName"}});
}

TEST(PersistentVolume, KeepsWhatItIsMadeOf) {
  expect_update_rules(
      kind_of("", "PersistentVolume"), kVolume,
      {{"{spec: {capacity: {storage: 20Gi}, claimRef: {name: c, namespace: nn}}}", ""},
       {"{spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, "
        "operator: Exists}]}]}}}}",
        ""},
       {"{spec: {hostPath: {path: /other}}}",
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after "
        "creation"},
       {"{spec: {volumeMode: Block}}",
        "volumeMode: Invalid value: \"Block\": field is immutable"}});
  const std::string placed =
      "{metadata: {name: v}, spec: {capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], "
      "local: "
      "{path: /d}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, "
      "operator: Exists}]}]}}}}";
  expect_update_rules(kind_of("", "PersistentVolume"), placed.c_str(),
                      {{"{spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: "
                        "[{key: b, operator: Exists}]}]}}}}",
                        "nodeAffinity: Invalid value"}});
}

TEST(PersistentVolumeClaim, GetsItsDefaults) {
  const Kind& kind = kind_of("", "PersistentVolumeClaim");
  const Value claim = stored(kind, kClaim);
  EXPECT_EQ(claim["spec"]["volumeMode"].as_string(), "Filesystem");
  EXPECT_EQ(claim["status"].dump(), R"({"phase":"Pending"})");
  const Value copied = stored(
      kind,
      "{metadata: {name: c}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "
      "1Gi}}, dataSource: {kind: PersistentVolumeClaim, name: old}}}");
  EXPECT_EQ(copied["spec"]["dataSourceRef"].dump(),
            R"({"kind":"PersistentVolumeClaim","name":"old"})");
}

TEST(PersistentVolumeClaim, RefusesWhatCannotWork) {
  expect_rules(
      kind_of("", "PersistentVolumeClaim"), kClaim,
      {{"{spec: {accessModes: []}}",
        "spec.accessModes: Required value: at least 1 access mode is required"},
       {"{spec: {accessModes: [X]}}", "spec.accessModes: Unsupported value: \"X\""},
       {"{spec: {resources: {requests: null}}}", "spec.resources[storage]: Required value"},
       {"{spec: {resources: {requests: {storage: -1}}}}",
        "spec.resources[storage]: Invalid value: \"-1\": must be greater than zero"},
       {"{spec: {selector: {matchLabels: {a: \"b c\"}}}}", "spec.selector.matchLabels"},
       {"{spec: {storageClassName: \"\"}}", ""},
       {"{spec: {storageClassName: A}}", "spec.storageClassName: Invalid value: \"A\""},
       {"{spec: {volumeMode: X}}", "spec.volumeMode: Unsupported value: \"X\""},
       {"{spec: {dataSource: {kind: Pod, name: p}}}",
        "spec.dataSource: Invalid value: \"Pod\": must be 'PersistentVolumeClaim' when referencing "
        "the default apiGroup"},
       {"{spec: {dataSource: {kind: PersistentVolumeClaim, name: \"\"}}}",
        "spec.dataSource.name: Required value"},
       {"{spec: {dataSourceRef: {kind: K, name: nn, apiGroup: A}}}",
        "spec.dataSourceRef.apiGroup: Invalid value: \"A\""},
       {"{spec: {dataSourceRef: {kind: K, name: nn, apiGroup: a.b, namespace: A}}}",
        "spec.dataSourceRef.namespace: Invalid value: \"A\""},
       {"{spec: {dataSource: {kind: K, name: nn, apiGroup: a.b}, dataSourceRef: {kind: K, name: m, "
        "apiGroup: a.b}}}",
        "must match dataSourceRef"},
       {"{spec: {dataSource: {kind: K, name: nn, apiGroup: a.b}, dataSourceRef: {kind: K, name: "
        "nn, "
        "apiGroup: a.b, namespace: x}}}",
        "may not be specified when dataSourceRef.namespace is specified"}});
}

TEST(PersistentVolumeClaim, GrowsOnlyWhenBound) {
  const Kind& kind = kind_of("", "PersistentVolumeClaim");
  expect_update_rules(
      kind, kClaim,
      {{"{spec: {volumeName: v}}", ""},
       {"{spec: {resources: {requests: {storage: 2Gi}}}}",
        "spec: Forbidden: spec is immutable after creation except resources.requests and "
        "volumeAttributesClassName for bound claims"},
       {"{spec: {volumeMode: Block}}",
        "volumeMode: Invalid value: \"Block\": field is immutable"}});
  Value bound = stored(kind, kClaim);
  bound.set("status", from_yaml("{phase: Bound, capacity: {storage: 1Gi}}"));
  bound.ref("spec").set("volumeName", "v");
  const auto changed = [&](const char* patch) {
    return update(kind, json::apply_merge_patch(bound, from_yaml(patch)), bound).text();
  };
  EXPECT_EQ(changed("{spec: {resources: {requests: {storage: 2Gi}}}}"), "");
  EXPECT_EQ(changed("{spec: {resources: {requests: {storage: 512Mi}}}}"),
            "spec.resources.requests.storage: Forbidden: field can not be less than "
            "status.capacity");
  EXPECT_THAT(changed("{spec: {volumeName: w}}"), testing::HasSubstr("spec is immutable"));
}

TEST(StorageClass, DefaultsRulesAndWhatStays) {
  const Kind& kind = kind_of(kStorage, "StorageClass");
  constexpr const char* kBase =
      "{metadata: {name: fast}, provisioner: example.com/disk, parameters: {a: b}}";
  const Value made = stored(kind, kBase);
  EXPECT_EQ(made["reclaimPolicy"].as_string(), "Delete");
  EXPECT_EQ(made["volumeBindingMode"].as_string(), "Immediate");
  expect_rules(
      kind, kBase,
      {{"{provisioner: \"\"}", "provisioner: Required value"},
       {"{provisioner: a/b/c}", "provisioner: Invalid value: \"a/b/c\""},
       {"{parameters: {\"\": x}}", "parameters: Invalid value: \"\": field can not be empty."},
       {"{reclaimPolicy: Recycle}",
        "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\""},
       {"{volumeBindingMode: Later}",
        "volumeBindingMode: Unsupported value: \"Later\": supported values: \"Immediate\", "
        "\"WaitForFirstConsumer\""},
       {"{allowedTopologies: [{matchLabelExpressions: [{key: a, values: []}]}]}",
        "allowedTopologies[0].matchLabelExpressions[0].values: Required value"},
       {"{allowedTopologies: [{matchLabelExpressions: [{key: a, values: [x, x]}]}]}",
        "allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: \"x\""},
       {"{allowedTopologies: [{matchLabelExpressions: [{key: a, values: [x]}, {key: a, values: "
        "[z]}]}]}",
        "allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: \"a\""},
       {"{allowedTopologies: [{matchLabelExpressions: [{key: a, values: [x]}]}, "
        "{matchLabelExpressions: [{key: a, values: [x]}]}]}",
        "allowedTopologies[1].matchLabelExpressions: Duplicate value: \"\""}});
  expect_update_rules(kind, kBase,
                      {{"{allowVolumeExpansion: true}", ""},
                       {"{provisioner: other.io/x}", "provisioner: Invalid value"},
                       {"{parameters: {a: c}}", "parameters: Invalid value"},
                       {"{reclaimPolicy: Retain}", "reclaimPolicy: Invalid value"},
                       {"{volumeBindingMode: WaitForFirstConsumer}",
                        "volumeBindingMode: Invalid value: \"WaitForFirstConsumer\": field is "
                        "immutable"}});
}

TEST(Csi, NodesListTheirDrivers) {
  const Kind& kind = kind_of(kStorage, "CSINode");
  constexpr const char* kBase =
      "{metadata: {name: n1}, spec: {drivers: [{name: d.io, nodeID: x, topologyKeys: [a/b]}]}}";
  expect_rules(
      kind, kBase,
      {{"{spec: {drivers: [{name: \"\", nodeID: x}]}}", "spec.drivers[0].name: Required value"},
       {"{spec: {drivers: [{name: d.io, nodeID: \"\"}]}}",
        "spec.drivers[0].nodeID: Required value"},
       {"{spec: {drivers: [{name: d.io, nodeID: x}, {name: d.io, nodeID: z}]}}",
        "spec.drivers[1].name: Duplicate value: \"d.io\""},
       {"{spec: {drivers: [{name: d.io, nodeID: x, allocatable: {count: -1}}]}}",
        "spec.drivers[0].allocatable.count: Invalid value: -1"},
       {"{spec: {drivers: [{name: d.io, nodeID: x, topologyKeys: [a, a]}]}}",
        "spec.drivers[0]: Duplicate value: \"a\""}});
  expect_update_rules(kind, kBase,
                      {{"{spec: {drivers: [{name: d.io, nodeID: x, topologyKeys: [a/b], "
                        "allocatable: {count: 4}}]}}",
                        ""},
                       {"{spec: {drivers: [{name: d.io, nodeID: z, topologyKeys: [a/b]}]}}",
                        "spec.drivers: Invalid value"}});
}

TEST(Csi, DriversSayWhatTheyNeed) {
  const Kind& kind = kind_of(kStorage, "CSIDriver");
  constexpr const char* kBase = "{metadata: {name: d.io}, spec: {}}";
  EXPECT_EQ(stored(kind, kBase)["spec"].dump(),
            R"({"attachRequired":true,"fsGroupPolicy":"ReadWriteOnceWithFSType",)"
            R"("podInfoOnMount":false,"requiresRepublish":false,"seLinuxMount":false,)"
            R"("storageCapacity":false,"volumeLifecycleModes":["Persistent"]})");
  expect_rules(kind, kBase,
               {{"{spec: {fsGroupPolicy: X}}", "spec.fsGroupPolicy: Unsupported value: \"X\""},
                {"{spec: {volumeLifecycleModes: [X]}}",
                 "spec.volumeLifecycleModes: Unsupported value: \"X\""},
                {"{spec: {tokenRequests: [{audience: a}, {audience: a}]}}",
                 "spec.tokenRequests[1].audience: Duplicate value: \"a\""},
                {"{spec: {tokenRequests: [{audience: a, expirationSeconds: 5}]}}",
                 "may not specify a duration less than 10 minutes"},
                {"{spec: {tokenRequests: [{audience: a, expirationSeconds: 4294967297}]}}",
                 "may not specify a duration larger than 2^32 seconds"}});
  expect_update_rules(kind, kBase,
                      {{"{spec: {attachRequired: false}}",
                        "spec.attachedRequired: Invalid value: false: field is immutable"},
                       {"{spec: {volumeLifecycleModes: [Ephemeral]}}",
                        "spec.volumeLifecycleModes: Invalid value"}});
}

TEST(Csi, AttachmentsNameOneVolume) {
  const Kind& kind = kind_of(kStorage, "VolumeAttachment");
  constexpr const char* kBase =
      "{metadata: {name: a}, spec: {attacher: d.io, nodeName: n1, source: {persistentVolumeName: "
      "v}}}";
  EXPECT_EQ(stored(kind, kBase)["status"].dump(), R"({"attached":false})");
  expect_rules(kind, kBase,
               {{"{spec: {attacher: \"\"}}", "spec.attacher: Required value"},
                {"{spec: {nodeName: A}}", "spec.nodeName: Invalid value: \"A\""},
                {"{spec: {source: {persistentVolumeName: \"\"}}}",
                 "must specify non empty persistentVolumeName"},
                {"{spec: {source: {persistentVolumeName: null}}}",
                 "spec.source: Required value: must specify exactly one of"},
                {"{spec: {source: {inlineVolumeSpec: {}}}}",
                 "spec.source: Forbidden: must specify exactly one of"}});
  expect_update_rules(kind, kBase, {{"{spec: {nodeName: n2}}", "spec: Invalid value"}});
}

}  // namespace
}  // namespace tessera::apiserver
