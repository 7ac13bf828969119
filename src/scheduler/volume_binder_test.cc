// The scheduler as a whole on pods with claims.

#include "scheduler/volume_binder.h"

#include <gmock/gmock.h>

#include "kube/volumes.h"
#include "scheduler/fake_api_testing.h"
#include "scheduler/scheduler.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using ::testing::HasSubstr;
using testing::node_object;
using testing::pod_object;
using testing::with;
using testing::yaml;

class PodsWithClaims : public ::testing::Test {
 protected:
  void SetUp() override {
    api.put("storageclasses", Object(yaml("{apiVersion: storage.k8s.io/v1, kind: StorageClass, "
                                          "metadata: {name: waits}, provisioner: example.com/p, "
                                          "volumeBindingMode: WaitForFirstConsumer}")));
    Scheduler::Options options;
    options.volume_timeout = base::seconds(60);
    scheduler = std::make_unique<Scheduler>(api, loop, clock, base::Random(1), options);
    scheduler->start();
    settle();
  }
  void settle(base::Duration d = base::millis(10)) { loop.advance(d); }
  void put(const char* resource, const Object& object) {
    api.put(resource, object);
    settle();
  }
  void put_claim(std::string_view more = "{}") {
    put("persistentvolumeclaims",
        with(Object(yaml("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, "
                         "namespace: default, uid: u-x}, spec: {accessModes: [ReadWriteOnce], "
                         "storageClassName: waits, resources: {requests: {storage: 1Gi}}}}")),
             more));
  }
  void put_volume(std::string_view more = "{}") {
    put("persistentvolumes",
        with(Object(yaml("{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: "
                         "{accessModes: [ReadWriteOnce], storageClassName: waits, capacity: "
                         "{storage: 1Gi}}, status: {phase: Available}}")),
             more));
  }
  // As the controller does once the volume is there.
  void bind_claim() {
    put("persistentvolumeclaims",
        with(claim(),
             "{metadata: {annotations: {pv.kubernetes.io/bind-completed: \"yes\"}}, spec: "
             "{volumeName: v}, status: {phase: Bound}}"));
  }
  Object claim() { return api.object("persistentvolumeclaims", "default/x"); }
  std::string chosen() { return std::string(claim().annotation(kube::kSelectedNode)); }
  Object pod(const std::string& name, int gpus = 1) {
    return pod_object(
        name, "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: x}}]}", gpus);
  }

  base::ManualLoop loop;
  base::LoopClock clock{loop};
  testing::FakeApi api{loop};
  std::unique_ptr<Scheduler> scheduler;
};

constexpr const char* kOnB =
    "spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "
    "kubernetes.io/hostname, operator: In, values: [b]}]}]}}}";

TEST_F(PodsWithClaims, Wait_for_a_claim_that_is_missing_or_unbound_and_wake_with_it) {
  put("nodes", node_object("a"));
  put("pods", pod("p"));
  EXPECT_EQ(api.why("p"), "0/1 nodes are available: persistentvolumeclaim \"x\" not found.");
  put_claim("spec: {storageClassName: other}");
  settle(base::seconds(15));
  EXPECT_EQ(api.why("p"),
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
  put_volume();
  EXPECT_EQ(api.node_of("p"), "");
  bind_claim();
  EXPECT_EQ(api.node_of("p"), "a");
}

TEST_F(PodsWithClaims, Go_where_their_volume_is) {
  put("nodes", node_object("a"));
  put_claim();
  put_volume(kOnB);
  bind_claim();
  put("pods", pod("p"));
  EXPECT_EQ(api.why("p"),
            "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity.");
  put("nodes", node_object("b"));
  EXPECT_EQ(api.node_of("p"), "b");
}

TEST_F(PodsWithClaims, Get_a_place_then_a_volume_then_are_bound) {
  put("nodes", node_object("a", 1));
  put_claim();
  put("pods", pod("p"));
  EXPECT_EQ(chosen(), "a");
  EXPECT_EQ(api.node_of("p"), "");
  EXPECT_EQ(scheduler->stats().assumed, 1U);
  put("pods", pod_object("other", "{}", 1));
  EXPECT_THAT(api.why("other"), HasSubstr("Insufficient nvidia.com/gpu")) << "the place is taken";
  put_volume();
  bind_claim();
  EXPECT_EQ(api.node_of("p"), "a");
  EXPECT_EQ(api.pod("p").annotation("tessera.dev/gpus"), "0");
  EXPECT_EQ(scheduler->stats().assumed, 0U);
}

TEST_F(PodsWithClaims, Take_a_volume_that_is_there_already) {
  put("nodes", node_object("a"));
  put("nodes", node_object("b"));
  put("storageclasses", Object(yaml("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: "
                                    "{name: waits}, provisioner: kubernetes.io/no-provisioner, "
                                    "volumeBindingMode: WaitForFirstConsumer}")));
  put_claim();
  put("pods", pod("p"));
  EXPECT_THAT(api.why("p"),
              HasSubstr("2 node(s) didn't find available persistent volumes to bind"));
  put_volume(kOnB);
  const Object volume = api.object("persistentvolumes", "v");
  EXPECT_EQ(volume.get("spec", "claimRef")["uid"].as_string(), "u-x");
  EXPECT_EQ(chosen(), "");
  bind_claim();
  EXPECT_EQ(api.node_of("p"), "b");
}

TEST_F(PodsWithClaims, Give_the_place_back_when_nothing_comes_in_time) {
  put("nodes", node_object("a", 1));
  put_claim();
  put("pods", pod("p"));
  put("pods", pod_object("other", "{}", 1));
  settle(base::seconds(61));
  EXPECT_EQ(api.node_of("other"), "a");
  EXPECT_EQ(api.node_of("p"), "");
}

TEST_F(PodsWithClaims, Give_the_place_back_when_the_pod_or_the_node_goes) {
  put("nodes", node_object("a", 1));
  put_claim();
  put("pods", pod("p"));
  ASSERT_EQ(scheduler->stats().assumed, 1U);
  api.erase("pods", "default/p");
  settle();
  EXPECT_EQ(scheduler->stats().assumed, 0U);
  put("pods", pod("q"));
  ASSERT_EQ(scheduler->stats().assumed, 1U);
  api.erase("nodes", "a");
  settle();
  EXPECT_EQ(scheduler->stats().assumed, 0U);
}

TEST_F(PodsWithClaims, Choose_again_when_no_volume_can_be_made_there) {
  put("nodes", node_object("a", 1));
  put_claim();
  put("pods", pod("p"));
  ASSERT_EQ(chosen(), "a");
  put("nodes", node_object("b", 1));
  json::Value refused = claim().json();
  refused.ref("metadata", "annotations").erase(kube::kSelectedNode);
  put("nodes", node_object("a", 1, "spec: {unschedulable: true}"));
  put("persistentvolumeclaims", Object(refused));
  EXPECT_THAT(api.why("p"), HasSubstr("provisioning failed for PVC \"x\""));
  settle(base::seconds(5));
  EXPECT_EQ(chosen(), "b");
  put_volume();
  bind_claim();
  EXPECT_EQ(api.node_of("p"), "b");
}

TEST_F(PodsWithClaims, Survive_a_write_whose_answer_is_lost_or_refused) {
  put("nodes", node_object("a", 1));
  int faults = 2;
  api.lose = [&](const kube::Request& r) {
    return r.verb == kube::Verb::kUpdate && faults == 1 && faults-- > 0;
  };
  api.refuse = [&](const kube::Request& r) -> std::optional<base::Code> {
    if (r.verb != kube::Verb::kUpdate || faults != 2) return std::nullopt;
    --faults;
    return base::Code::kConflict;
  };
  put_claim();
  put("pods", pod("p"));
  settle(base::seconds(20));
  EXPECT_EQ(chosen(), "a");
  put_volume();
  bind_claim();
  EXPECT_EQ(api.node_of("p"), "a");
  EXPECT_EQ(api.binds.size(), 1U);
}

}  // namespace
}  // namespace tessera::scheduler
