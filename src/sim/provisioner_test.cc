#include "sim/provisioner.h"

#include <gmock/gmock.h>

#include "sim/lab_testing.h"

namespace tessera::sim {
namespace {

using kube::Object;
using ::testing::HasSubstr;

constexpr const char* kFleet = R"(
racks:
  - name: r1
    nodes: [{name: node, count: 3, cpu: 8, memory: 32Gi}]
)";

std::string storage_class(const std::string& name, const std::string& more) {
  return "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: " + name +
         "}, provisioner: tessera.dev/simulated, " + more + "}\n";
}

std::string claim(const std::string& name, const std::string& cls, const std::string& more = "") {
  return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + name +
         ", namespace: default}, spec: {accessModes: [ReadWriteOnce], storageClassName: " + cls +
         ", resources: {requests: {storage: 1Gi}}" + more + "}}\n";
}

std::string pod(const std::string& name, const std::string& claim_name,
                const std::string& more = "") {
  return "{apiVersion: v1, kind: Pod, metadata: {name: " + name +
         ", namespace: default}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, "
         "image: x}], volumes: [{name: data, persistentVolumeClaim: {claimName: " +
         claim_name + "}}]" + more + "}}\n";
}

class ProvisionerTest : public ::testing::Test {
 protected:
  std::string phase(const std::string& name) {
    return lab.get("PersistentVolumeClaim", name).get("status", "phase").str();
  }
  Object volume_of(const std::string& name) {
    return lab.get("PersistentVolume",
                   lab.get("PersistentVolumeClaim", name).get("spec", "volumeName").str());
  }
  std::string events(const std::string& about) {
    std::string out;
    for (const Object& event : lab.list("Event")) {
      if (event["involvedObject"]["name"].as_string() != about) continue;
      out += event["reason"].str() + ": " + event["message"].str() + "\n";
    }
    return out;
  }

  Lab lab{kFleet};
};

TEST_F(ProvisionerTest, An_immediate_claim_gets_a_volume_of_its_size) {
  lab.apply(storage_class("now", "volumeBindingMode: Immediate, mountOptions: [ro]"));
  lab.apply(claim("c", "now"));
  lab.advance(base::millis(300));
  EXPECT_EQ(phase("c"), "Pending") << "it takes its time";
  lab.advance(base::seconds(2));
  EXPECT_EQ(phase("c"), "Bound");
  const Object volume = volume_of("c");
  EXPECT_EQ(volume.get("spec", "capacity")["storage"].as_string(), "1Gi");
  EXPECT_EQ(volume.get("spec", "persistentVolumeReclaimPolicy").as_string(), "Delete");
  EXPECT_EQ(volume.get("spec", "mountOptions").size(), 1U);
  EXPECT_FALSE(volume["spec"].contains("nodeAffinity"));
  EXPECT_EQ(volume.get("status", "phase").as_string(), "Bound");
}

TEST_F(ProvisionerTest, A_claim_that_waits_gets_its_volume_with_its_pod) {
  lab.apply(storage_class("late", "volumeBindingMode: WaitForFirstConsumer"));
  lab.apply(claim("c", "late"));
  lab.advance(base::seconds(30));
  EXPECT_EQ(phase("c"), "Pending");
  lab.apply(pod("p", "c"));
  lab.advance(base::seconds(5));
  EXPECT_EQ(phase("c"), "Bound");
  EXPECT_EQ(lab.phase("p"), "Running");
}

TEST_F(ProvisionerTest, A_local_volume_is_reached_from_its_node_alone) {
  lab.apply(storage_class("near",
                          "volumeBindingMode: WaitForFirstConsumer, parameters: {local: 'true'}"));
  lab.apply(claim("c", "near") + "---\n" + pod("p", "c"));
  lab.advance(base::seconds(5));
  const std::string node = lab.node_of("p");
  ASSERT_EQ(lab.phase("p"), "Running");
  EXPECT_THAT(volume_of("c").get("spec", "nodeAffinity").dump(), HasSubstr(node));
  ASSERT_TRUE(lab.remove("Pod", "p"));
  lab.advance(base::seconds(2));
  lab.apply(pod("q", "c"));
  lab.advance(base::seconds(5));
  EXPECT_EQ(lab.node_of("q"), node);
}

TEST_F(ProvisionerTest, A_volume_goes_with_its_claim_or_stays_as_its_class_says) {
  lab.apply(storage_class("gone", "reclaimPolicy: Delete"));
  lab.apply(storage_class("kept", "reclaimPolicy: Retain"));
  lab.apply(claim("a", "gone") + "---\n" + claim("b", "kept"));
  lab.advance(base::seconds(3));
  ASSERT_EQ(phase("a"), "Bound");
  ASSERT_EQ(phase("b"), "Bound");
  ASSERT_TRUE(lab.remove("PersistentVolumeClaim", "a"));
  ASSERT_TRUE(lab.remove("PersistentVolumeClaim", "b"));
  lab.advance(base::seconds(30));
  const auto left = lab.list("PersistentVolume");
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].get("spec", "storageClassName").as_string(), "kept");
  EXPECT_EQ(left[0].get("status", "phase").as_string(), "Released");
}

TEST_F(ProvisionerTest, A_claim_grows_where_its_class_allows_it) {
  lab.apply(storage_class("grows", "allowVolumeExpansion: true"));
  lab.apply(claim("c", "grows"));
  lab.advance(base::seconds(3));
  ASSERT_EQ(phase("c"), "Bound");
  ASSERT_TRUE(lab.patch("PersistentVolumeClaim", "c",
                        *json::parse_yaml("{spec: {resources: {requests: {storage: 5Gi}}}}")));
  lab.advance(base::seconds(3));
  EXPECT_EQ(volume_of("c").get("spec", "capacity")["storage"].as_string(), "5Gi");
  EXPECT_EQ(lab.get("PersistentVolumeClaim", "c").get("status", "capacity")["storage"].as_string(),
            "5Gi");
  EXPECT_THAT(events("c"), HasSubstr("VolumeResizeSuccessful"));
}

TEST_F(ProvisionerTest, What_it_cannot_make_it_says) {
  lab.apply(storage_class("a", "parameters: {speed: high}"));
  lab.apply(storage_class("b", "parameters: {local: 'true'}"));
  lab.apply(storage_class("c", "volumeBindingMode: Immediate"));
  lab.apply(claim("a", "a") + "---\n" + claim("b", "b") + "---\n" +
            claim("c", "c", ", selector: {matchLabels: {x: z1}}"));
  lab.advance(base::seconds(5));
  EXPECT_THAT(events("a"), HasSubstr("parameter \"speed\" is not known"));
  EXPECT_THAT(events("b"), HasSubstr("needs volumeBindingMode WaitForFirstConsumer"));
  EXPECT_THAT(events("c"), HasSubstr("claim Selector is not supported"));
  EXPECT_TRUE(lab.list("PersistentVolume").empty());
}

TEST_F(ProvisionerTest, A_default_class_is_made_only_where_there_is_none) {
  Provisioner first(lab.client(), lab.loop(), lab.clock(), base::Random(7),
                    {.delay = base::millis(1), .default_class = true});
  first.start();
  lab.advance(base::seconds(1));
  EXPECT_TRUE(lab.get("StorageClass", "simulated"));
  ASSERT_TRUE(lab.remove("StorageClass", "simulated"));
  lab.apply(
      "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: mine, annotations: "
      "{storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: example.com/p}");
  Provisioner second(lab.client(), lab.loop(), lab.clock(), base::Random(8),
                     {.delay = base::millis(1), .default_class = true});
  second.start();
  lab.advance(base::seconds(1));
  EXPECT_FALSE(lab.get("StorageClass", "simulated"));
}

TEST_F(ProvisionerTest, A_set_of_pods_gets_a_volume_each) {
  lab.apply(storage_class("late", "volumeBindingMode: WaitForFirstConsumer"));
  lab.apply(R"(
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: default}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: x}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {storageClassName: late, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
)");
  lab.advance(base::seconds(20));
  for (const char* name : {"db-0", "db-1"}) {
    EXPECT_EQ(lab.phase(name), "Running");
    EXPECT_EQ(phase(std::string("data-") + name), "Bound");
  }
  EXPECT_EQ(lab.list("PersistentVolume").size(), 2U);
}

TEST_F(ProvisionerTest, An_ephemeral_volume_lives_with_its_pod) {
  lab.apply(storage_class("late", "volumeBindingMode: WaitForFirstConsumer"));
  lab.apply(R"(
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: x}]
  volumes:
    - name: tmp
      ephemeral:
        volumeClaimTemplate:
          metadata: {labels: {of: p}}
          spec: {storageClassName: late, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
)");
  lab.advance(base::seconds(10));
  EXPECT_EQ(lab.phase("p"), "Running") << lab.why("p");
  EXPECT_EQ(phase("p-tmp"), "Bound");
  EXPECT_EQ(lab.get("PersistentVolumeClaim", "p-tmp").metadata()["labels"]["of"].as_string(), "p");
  ASSERT_TRUE(lab.remove("Pod", "p"));
  lab.advance(base::seconds(30));
  EXPECT_FALSE(lab.get("PersistentVolumeClaim", "p-tmp"));
  EXPECT_TRUE(lab.list("PersistentVolume").empty());
}

TEST_F(ProvisionerTest, A_claim_of_someone_else_is_no_ephemeral_volume) {
  lab.apply(claim("p-tmp", "none"));
  lab.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: "
      "[{name: c, image: x}], volumes: [{name: tmp, ephemeral: {volumeClaimTemplate: {spec: "
      "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}");
  lab.advance(base::seconds(10));
  EXPECT_THAT(lab.why("p"), HasSubstr("PVC default/p-tmp was not created for pod default/p"));
  EXPECT_THAT(events("p"), HasSubstr("FailedBinding: ephemeral volume tmp: PVC default/p-tmp"));
}

// Whoever names the node without the scheduler leaves the waiting to the kubelet.
TEST_F(ProvisionerTest, Containers_start_once_the_claims_are_bound) {
  lab.apply(pod("p", "c", ", nodeName: node-0"));
  lab.advance(base::seconds(10));
  EXPECT_EQ(lab.phase("p"), "Pending");
  const Object waits = lab.pod("p");
  EXPECT_EQ(
      waits.get("status", "containerStatuses").at(0)["state"]["waiting"]["reason"].as_string(),
      "ContainerCreating");
  lab.apply(storage_class("now", "volumeBindingMode: Immediate"));
  lab.apply(claim("c", "now"));
  lab.advance(base::seconds(3));
  EXPECT_EQ(lab.phase("p"), "Running");
  lab.apply(pod("q", "none", ", nodeName: node-0"));
  lab.advance(base::seconds(2));
  ASSERT_TRUE(lab.remove("Pod", "q"));
  lab.advance(base::seconds(5));
  EXPECT_FALSE(lab.pod("q")) << "one that never started goes all the same";
}

}  // namespace
}  // namespace tessera::sim
