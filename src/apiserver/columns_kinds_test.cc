#include <gtest/gtest.h>

#include "apiserver/columns.h"
#include "apiserver/kinds_cases.h"

namespace tessera::apiserver {
namespace {

using namespace testing_kinds;

const base::Time kNow = *base::parse_rfc3339("2026-01-01T01:00:00Z");

// What `kubectl get` shows of an object made an hour ago; narrow columns | wide ones.
struct ColumnCase {
  const char* group;
  const char* kind;
  const char* object;  // without metadata
  const char* row;
};

std::string row_of(const ColumnCase& c) {
  json::Value object = from_yaml(c.object);
  object.ref("metadata").set("name", "x");
  object.ref("metadata").set("creationTimestamp", "2026-01-01T00:00:00Z");
  const bool v2 = std::string_view(c.group) == "autoscaling";
  return row(kind_of(c.group, c.kind, v2 ? "v2" : "v1"), object, kNow);
}

void expect_rows(std::initializer_list<ColumnCase> cases) {
  for (const ColumnCase& c : cases) EXPECT_EQ(row_of(c), c.row) << c.kind;
}

TEST(ColumnsOfKinds, Workloads) {
  constexpr const char* kSet =
      "{spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {spec: {nodeSelector: {gpu: "
      "\"yes\"}, containers: [{name: c, image: i}]}}}, status: {readyReplicas: 2, "
      "desiredNumberScheduled: 5, currentNumberScheduled: 4, numberReady: 3, "
      "updatedNumberScheduled: 2, numberAvailable: 1}}";
  expect_rows({
      {"apps", "StatefulSet", kSet, "Name=x; Ready=2/3; Age=60m | Containers=c; Images=i"},
      {"apps", "DaemonSet", kSet,
       "Name=x; Desired=5; Current=4; Ready=3; Up-to-date=2; Available=1; Node Selector=gpu=yes; "
       "Age=60m | Containers=c; Images=i; Selector=a=b"},
      {"apps", "ControllerRevision",
       "{revision: 7, metadata: {ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: "
       "web, controller: true}]}}",
       "Name=x; Controller=statefulset.apps/web; Revision=7; Age=60m"},
      {"apps", "ControllerRevision", "{revision: 1}",
       "Name=x; Controller=<none>; Revision=1; Age=60m"},
      {"batch", "CronJob",
       "{spec: {schedule: \"* * * * *\", suspend: false, jobTemplate: {spec: {template: {spec: "
       "{containers: [{name: c, image: i}]}}}}}, status: {active: [{name: j}], lastScheduleTime: "
       "\"2026-01-01T00:59:30Z\"}}",
       "Name=x; Schedule=* * * * *; Timezone=<none>; Suspend=False; Active=1; Last Schedule=30s; "
       "Age=60m | Containers=c; Images=i; Selector=<none>"},
      {"batch", "CronJob", "{spec: {schedule: \"@daily\", timeZone: UTC}}",
       "Name=x; Schedule=@daily; Timezone=UTC; Suspend=<unset>; Active=0; Last Schedule=<none>; "
       "Age=60m | Containers=; Images=; Selector=<none>"},
      {"", "PodTemplate",
       "{template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}",
       "Name=x; Containers=c; Images=i; Pod Labels=a=b"},
      {"", "ReplicationController",
       "{spec: {replicas: 2, selector: {a: b}, template: {spec: {containers: [{name: c, image: "
       "i}]}}}, status: {replicas: 1}}",
       "Name=x; Desired=2; Current=1; Ready=0; Age=60m | Containers=c; Images=i; Selector=a=b"},
  });
}

TEST(ColumnsOfKinds, LimitsAndPolicies) {
  expect_rows({
      {"", "ResourceQuota",
       "{status: {hard: {pods: \"10\", requests.nvidia.com/gpu: \"8\", limits.cpu: \"4\"}, used: "
       "{pods: \"2\", limits.cpu: \"1\"}}}",
       "Name=x; Request=pods: 2/10, requests.nvidia.com/gpu: 0/8; Limit=limits.cpu: 1/4; Age=60m"},
      {"", "LimitRange", "{}", "Name=x; Created At=2026-01-01T00:00:00Z"},
      {"policy", "PodDisruptionBudget",
       "{spec: {minAvailable: \"50%\"}, status: {disruptionsAllowed: 1}}",
       "Name=x; Min Available=50%; Max Unavailable=N/A; Allowed Disruptions=1; Age=60m"},
      {"node.k8s.io", "RuntimeClass", "{handler: nvidia}", "Name=x; Handler=nvidia; Age=60m"},
      {"rbac.authorization.k8s.io", "Role", "{}", "Name=x; Created At=2026-01-01T00:00:00Z"},
      {"rbac.authorization.k8s.io", "ClusterRole", "{}", "Name=x; Created At=2026-01-01T00:00:00Z"},
      {"rbac.authorization.k8s.io", "RoleBinding",
       "{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: User, name: v}, "
       "{kind: Group, name: g}, {kind: ServiceAccount, name: s, namespace: nn}]}",
       "Name=x; Role=Role/r; Age=60m | Users=u, v; Groups=g; ServiceAccounts=nn/s"},
      {"rbac.authorization.k8s.io", "ClusterRoleBinding", "{roleRef: {kind: ClusterRole, name: r}}",
       "Name=x; Role=ClusterRole/r; Age=60m | Users=; Groups=; ServiceAccounts="},
  });
}

TEST(ColumnsOfKinds, Autoscalers) {
  expect_rows({
      {"autoscaling", "HorizontalPodAutoscaler",
       "{spec: {minReplicas: 1, maxReplicas: 4, scaleTargetRef: {kind: Deployment, name: d}, "
       "metrics: [{type: Resource, resource: {name: cpu, target: {averageUtilization: 80}}}]}, "
       "status: {currentReplicas: 2, currentMetrics: [{resource: {current: {averageUtilization: "
       "30}}}]}}",
       "Name=x; Reference=Deployment/d; Targets=cpu: 30%/80%; MinPods=1; MaxPods=4; Replicas=2; "
       "Age=60m"},
      {"autoscaling", "HorizontalPodAutoscaler",
       "{spec: {metrics: [{type: Pods, pods: {target: {averageValue: 5}}}, {type: Object, object: "
       "{target: {value: \"9\"}}}, {type: External, external: {target: {averageValue: \"1\"}}}]}}",
       "Name=x; Reference=/; Targets=<unknown>/5, <unknown>/9 + 1 more...; MinPods=<unset>; "
       "MaxPods=0; Replicas=0; Age=60m"},
  });
}

TEST(ColumnsOfKinds, Storage) {
  constexpr const char* kStorage = "storage.k8s.io";
  expect_rows({
      {"", "PersistentVolume",
       "{spec: {capacity: {storage: 10Gi}, accessModes: [ReadWriteMany, ReadWriteOnce], "
       "persistentVolumeReclaimPolicy: Retain, storageClassName: fast, claimRef: {namespace: nn, "
       "name: c}, volumeMode: Block}, status: {phase: Bound}}",
       "Name=x; Capacity=10Gi; Access Modes=RWO,RWX; Reclaim Policy=Retain; Status=Bound; "
       "Claim=nn/c; StorageClass=fast; VolumeAttributesClass=<unset>; Reason=; Age=60m | "
       "VolumeMode=Block"},
      {"", "PersistentVolumeClaim",
       "{spec: {volumeName: v, storageClassName: fast, volumeMode: Filesystem}, status: {phase: "
       "Bound, capacity: {storage: 1Gi}, accessModes: [ReadOnlyMany, ReadWriteOncePod]}}",
       "Name=x; Status=Bound; Volume=v; Capacity=1Gi; Access Modes=ROX,RWOP; StorageClass=fast; "
       "VolumeAttributesClass=<unset>; Age=60m | VolumeMode=Filesystem"},
      {"", "PersistentVolumeClaim",
       "{spec: {accessModes: [ReadWriteOnce]}, status: {phase: Pending}}",
       "Name=x; Status=Pending; Volume=; Capacity=; Access Modes=; StorageClass=; "
       "VolumeAttributesClass=<unset>; Age=60m | VolumeMode=<unset>"},
      {kStorage, "StorageClass",
       "{provisioner: p, reclaimPolicy: Delete, volumeBindingMode: WaitForFirstConsumer, "
       "allowVolumeExpansion: true, metadata: {annotations: "
       "{storageclass.kubernetes.io/is-default-class: \"true\"}}}",
       "Name=x (default); Provisioner=p; ReclaimPolicy=Delete; "
       "VolumeBindingMode=WaitForFirstConsumer; AllowVolumeExpansion=true; Age=60m"},
      {kStorage, "CSINode", "{spec: {drivers: [{name: a}]}}", "Name=x; Drivers=1; Age=60m"},
      {kStorage, "CSIDriver",
       "{spec: {attachRequired: false, volumeLifecycleModes: [Persistent, Ephemeral], "
       "tokenRequests: [{audience: a}]}}",
       "Name=x; AttachRequired=false; PodInfoOnMount=false; StorageCapacity=false; "
       "TokenRequests=a; "
       "RequiresRepublish=false; Modes=Persistent,Ephemeral; Age=60m"},
      {kStorage, "VolumeAttachment",
       "{spec: {attacher: a, nodeName: nn, source: {persistentVolumeName: v}}, status: {attached: "
       "true}}",
       "Name=x; Attacher=a; PV=v; Node=nn; Attached=true; Age=60m"},
  });
}

TEST(ColumnsOfKinds, Network) {
  constexpr const char* kNetworking = "networking.k8s.io";
  expect_rows({
      {kNetworking, "NetworkPolicy", "{spec: {podSelector: {}}}",
       "Name=x; Pod-Selector=<none>; Age=60m"},
      {kNetworking, "NetworkPolicy", "{spec: {podSelector: {matchLabels: {a: b}}}}",
       "Name=x; Pod-Selector=a=b; Age=60m"},
      {kNetworking, "Ingress",
       "{spec: {ingressClassName: nn, tls: [{}], rules: [{host: a}, {host: b}, {host: c}, {host: "
       "d}]}, status: {loadBalancer: {ingress: [{ip: 10.0.0.2}, {ip: 10.0.0.1}]}}}",
       "Name=x; Class=nn; Hosts=a,b,c + 1 more...; Address=10.0.0.1,10.0.0.2; Ports=80, 443; "
       "Age=60m"},
      {kNetworking, "Ingress", "{spec: {rules: [{}]}}",
       "Name=x; Class=<none>; Hosts=*; Address=; Ports=80; Age=60m"},
      {kNetworking, "IngressClass",
       "{spec: {controller: c.io/x, parameters: {apiGroup: g, kind: K, name: nn}}}",
       "Name=x; Controller=c.io/x; Parameters=K.g/nn; Age=60m"},
      {"", "Endpoints",
       "{subsets: [{addresses: [{ip: 10.0.0.1}, {ip: \"::1\"}], ports: [{port: 80}, {port: 81}]}]}",
       "Name=x; Endpoints=10.0.0.1:80,[::1]:80,10.0.0.1:81 + 1 more...; Age=60m"},
      {"", "Endpoints", "{}", "Name=x; Endpoints=<none>; Age=60m"},
      {"discovery.k8s.io", "EndpointSlice",
       "{addressType: IPv4, ports: [{port: 80}, {name: http}], endpoints: [{addresses: "
       "[10.0.0.1]}, "
       "{addresses: [10.0.0.2]}]}",
       "Name=x; AddressType=IPv4; Ports=80,http; Endpoints=10.0.0.1,10.0.0.2; Age=60m"},
      {"discovery.k8s.io", "EndpointSlice", "{addressType: IPv4}",
       "Name=x; AddressType=IPv4; Ports=<unset>; Endpoints=<unset>; Age=60m"},
  });
}

}  // namespace
}  // namespace tessera::apiserver
