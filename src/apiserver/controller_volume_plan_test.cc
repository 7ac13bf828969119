#include "apiserver/controller_volume_plan.h"

#include <gtest/gtest.h>

#include "json/yaml.h"

namespace tessera::apiserver::controller {
namespace {

using kube::Object;
using What = VolumeStep::What;

Object object(std::string_view yaml) {
  const auto parsed = json::parse_yaml(yaml);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return Object(parsed.value_or(json::Value()));
}

// A cluster of which the plans are carried out at once, until nothing is left to do.
class Bench {
 public:
  void put(std::string_view yaml) { put(object(yaml)); }
  void put(const Object& item) {
    const std::string_view kind = item.kind();
    (kind == "PersistentVolume" ? volumes
     : kind == "StorageClass"   ? classes
                                : claims)[item.key()] = item;
  }
  VolumeWorld world() const { return {volumes, claims, classes, users, base::Time{}}; }

  void run_claim(const std::string& key) {
    for (int i = 0; i < 20; ++i) {
      const auto it = claims.find(key);
      if (it == claims.end() || !apply(plan_claim(world(), it->second))) return;
    }
    ADD_FAILURE() << key << " never comes to rest";
  }
  void run_volume(const std::string& name) {
    for (int i = 0; i < 20; ++i) {
      const auto it = volumes.find(name);
      if (it == volumes.end() || !apply(plan_volume(world(), it->second, true))) return;
    }
    ADD_FAILURE() << name << " never comes to rest";
  }
  std::string claim(const std::string& name, const char* field = "phase") {
    const Object found = claims["ns/" + name];
    return found.get("status", field).is_string() ? found.get("status", field).str()
                                                  : found.get("spec", field).str();
  }
  std::string volume(const std::string& name) { return volumes[name].get("status", "phase").str(); }

  Cache::Objects volumes;
  Cache::Objects claims;
  Cache::Objects classes;
  std::vector<Object> users;
  std::string last;  // reason of the last event

 private:
  bool apply(VolumeStep step) {
    for (const VolumeEvent& event : step.events) last = event.reason;
    if (step.what == What::kNothing || step.what == What::kSyncClaim ||
        step.what == What::kLookUpClaim) {
      return false;
    }
    const Object item(std::move(step.object));
    const bool gone = step.what == What::kDeleteVolume ||
                      (item.deleting() && item.metadata()["finalizers"].empty());
    if (!gone) {
      put(item);
    } else {
      (item.kind() == "PersistentVolume" ? volumes : claims).erase(item.key());
    }
    return true;
  }
};

Object a_claim(const std::string& name, const std::string& size,
               const std::string& rest = "storageClassName: fast") {
  return object(
      "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + name +
      ", namespace: ns, uid: u-" + name +
      ", finalizers: [kubernetes.io/pvc-protection]}, spec: {accessModes: [ReadWriteOnce], "
      "resources: {requests: {storage: " +
      size + "}}, " + rest + "}, status: {phase: Pending}}");
}

Object a_volume(const std::string& name, const std::string& size,
                const std::string& rest = "persistentVolumeReclaimPolicy: Retain") {
  return object("{apiVersion: v1, kind: PersistentVolume, metadata: {name: " + name + ", uid: u-" +
                name +
                ", finalizers: [kubernetes.io/pv-protection]}, spec: {accessModes: "
                "[ReadWriteOnce], storageClassName: fast, hostPath: {path: /tmp/x}, capacity: "
                "{storage: " +
                size + "}, " + rest + "}, status: {phase: Available}}");
}

TEST(VolumePlan, TheSmallestThatIsLargeEnoughIsBound) {
  Bench bench;
  bench.put(a_volume("big", "9Gi"));
  bench.put(a_volume("right", "3Gi"));
  bench.put(a_volume("small", "1Gi"));
  bench.put(a_claim("c", "2Gi"));
  bench.run_claim("ns/c");
  EXPECT_EQ(bench.claim("c"), "Bound");
  EXPECT_EQ(bench.claim("c", "volumeName"), "right");
  EXPECT_EQ(bench.volume("right"), "Bound");
  EXPECT_EQ(bench.volume("big"), "Available");
  EXPECT_EQ(bench.claims["ns/c"].get("status", "capacity", "storage").as_string(), "3Gi");
}

TEST(VolumePlan, OneVolumeIsNeverPromisedTwice) {
  Bench bench;
  bench.put(a_volume("v", "1Gi"));
  bench.put(a_claim("a", "1Gi"));
  bench.put(a_claim("b", "1Gi"));
  bench.run_claim("ns/a");
  bench.run_claim("ns/b");
  EXPECT_EQ(bench.claim("a"), "Bound");
  EXPECT_EQ(bench.claim("b"), "Pending");
}

TEST(VolumePlan, WhatDoesNotFitIsSaid) {
  Bench bench;
  bench.put(a_volume("v", "1Gi"));
  bench.put(a_claim("c", "2Gi", "storageClassName: fast, volumeName: v"));
  bench.run_claim("ns/c");
  EXPECT_EQ(bench.last, "VolumeMismatch");
  EXPECT_EQ(bench.claim("c"), "Pending");
}

TEST(VolumePlan, AReleasedVolumeStaysOrGoesAsItsPolicySays) {
  for (const char* policy : {"Retain", "Delete"}) {
    Bench bench;
    bench.put(a_volume("v", "1Gi", std::string("persistentVolumeReclaimPolicy: ") + policy));
    bench.put(a_claim("c", "1Gi"));
    bench.run_claim("ns/c");
    ASSERT_EQ(bench.claim("c"), "Bound");
    bench.claims.clear();
    bench.run_volume("v");
    if (std::string_view(policy) == "Retain") {
      EXPECT_EQ(bench.volume("v"), "Released");
    } else {
      EXPECT_FALSE(bench.volumes.contains("v"));
    }
  }
}

TEST(VolumePlan, AVolumeCountsAsReleasedOnlyOnceTheApiWasAsked) {
  Bench bench;
  bench.put(a_volume("v", "1Gi", "claimRef: {namespace: ns, name: c, uid: u-c}"));
  EXPECT_EQ(plan_volume(bench.world(), bench.volumes["v"], false).what, What::kLookUpClaim);
  EXPECT_EQ(plan_volume(bench.world(), bench.volumes["v"], true).what, What::kVolumeStatus);
}

TEST(VolumePlan, AClassThatWaitsBindsNothingBeforeTheConsumer) {
  Bench bench;
  bench.put(
      "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: "
      "example.com/p, volumeBindingMode: WaitForFirstConsumer}");
  bench.put(a_volume("v", "1Gi"));
  bench.put(a_claim("c", "1Gi"));
  bench.run_claim("ns/c");
  EXPECT_EQ(bench.last, "WaitForFirstConsumer");
  EXPECT_EQ(bench.claim("c"), "Pending");
  EXPECT_EQ(bench.volume("v"), "Available");
}

TEST(VolumePlan, AClaimThatNamesNoClassGetsTheDefaultOneLater) {
  Bench bench;
  bench.put(a_claim("c", "1Gi", "volumeMode: Filesystem"));
  bench.run_claim("ns/c");
  EXPECT_EQ(bench.last, "FailedBinding");
  bench.put(
      "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: std, annotations: "
      "{storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: example.com/p}");
  bench.run_claim("ns/c");
  EXPECT_EQ(bench.claim("c", "storageClassName"), "std");
  EXPECT_EQ(bench.last, "ExternalProvisioning");
}

TEST(VolumePlan, AClaimWhoseVolumeIsGoneIsLost) {
  Bench bench;
  bench.put(a_volume("v", "1Gi"));
  bench.put(a_claim("c", "1Gi"));
  bench.run_claim("ns/c");
  bench.volumes.clear();
  bench.run_claim("ns/c");
  EXPECT_EQ(bench.claim("c"), "Lost");
  EXPECT_EQ(bench.last, "ClaimLost");
}

TEST(VolumePlan, AClaimInUseIsKeptUntilItsPodIsGone) {
  Bench bench;
  json::Value claim = a_claim("c", "1Gi").json();
  claim.ref("metadata").set("deletionTimestamp", "2026-01-01T00:00:00Z");
  bench.put(Object(claim));
  bench.users = {object("{metadata: {name: p, namespace: ns}, spec: {nodeName: n1}}")};
  bench.run_claim("ns/c");
  EXPECT_TRUE(bench.claims.contains("ns/c"));
  bench.users.clear();
  bench.run_claim("ns/c");
  EXPECT_FALSE(bench.claims.contains("ns/c"));
}

}  // namespace
}  // namespace tessera::apiserver::controller
