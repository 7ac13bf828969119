#include "scheduler/pod_volumes.h"

#include <gmock/gmock.h>

#include "kube/volumes.h"
#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using testing::node_object;
using testing::pod_object;
using testing::with;
using testing::yaml;
using Why = core::VolumeRule::Why;

Object claim(const std::string& name, std::string_view more = "{}") {
  return with(Object(yaml("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + name +
                          ", namespace: default, uid: u-" + name +
                          ", resourceVersion: \"5\"}, spec: {accessModes: [ReadWriteOnce], "
                          "storageClassName: local, resources: {requests: {storage: 1Gi}}}, "
                          "status: {phase: Pending}}")),
              more);
}

Object bound_claim(const std::string& name, const std::string& volume) {
  return claim(name,
               "{metadata: {annotations: {pv.kubernetes.io/bind-completed: \"yes\"}}, spec: "
               "{volumeName: " +
                   volume + "}, status: {phase: Bound}}");
}

// A volume of class "local" that only `node` reaches.
Object volume(const std::string& name, const std::string& node, std::string_view more = "{}") {
  return with(Object(yaml("{apiVersion: v1, kind: PersistentVolume, metadata: {name: " + name +
                          ", uid: u-" + name +
                          ", resourceVersion: \"7\"}, spec: {accessModes: [ReadWriteOnce], "
                          "storageClassName: local, capacity: {storage: 1Gi}, nodeAffinity: "
                          "{required: {nodeSelectorTerms: [{matchExpressions: [{key: "
                          "kubernetes.io/hostname, operator: In, values: [" +
                          node + "]}]}]}}}, status: {phase: Available}}")),
              more);
}

Object pod_with(const std::string& name, std::string_view claims) {
  std::string volumes;
  const json::Value list = yaml(claims);
  for (const json::Value& one : list.items()) {
    volumes += fmt::format("{{name: v{}, persistentVolumeClaim: {{claimName: {}}}}}, ",
                           volumes.size(), one.as_string());
  }
  return pod_object(name, "spec: {volumes: [" + volumes + "]}");
}

class PodVolumes : public ::testing::Test {
 protected:
  void put(const Object& object) {
    (object.kind() == "PersistentVolume"        ? volumes
     : object.kind() == "PersistentVolumeClaim" ? claims
     : object.kind() == "Node"                  ? nodes
                                                : classes)[object.key()] = object;
  }
  void put_class(const std::string& name, std::string_view more) {
    put(with(Object(yaml("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: " +
                         name + "}, volumeBindingMode: WaitForFirstConsumer}")),
             more));
  }
  VolumeWorld world() const { return {claims, volumes, classes}; }
  VolumeNeeds needs(const Object& pod) { return volume_needs(world(), pod, nodes, names); }
  std::string problem(const Object& pod) { return needs(pod).problem; }
  // The nodes that every rule lets the pod go to.
  std::vector<std::string> open_to(const Object& pod) {
    const VolumeNeeds found = needs(pod);
    EXPECT_EQ(found.problem, "");
    std::vector<std::string> out;
    for (const auto& [name, node] : nodes) {
      const core::StringId host = names.string("kubernetes.io/hostname");
      const core::Labels labels = {{host, names.string(name)}};
      const bool open = std::ranges::all_of(found.rules, [&](const core::VolumeRule& rule) {
        return std::ranges::any_of(rule.terms, [&](const core::NodeTerm& term) {
          return core::matches(term, labels, names.string(name), names);
        });
      });
      if (open) out.push_back(name);
    }
    return out;
  }
  void SetUp() override {
    for (const char* name : {"a", "b", "c"}) put(node_object(name));
    put_class("local", "provisioner: kubernetes.io/no-provisioner");
    put_class("made", "provisioner: example.com/p");
  }

  Objects claims, volumes, classes, nodes;
  core::Interner names;
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(PodVolumes, What_keeps_a_pod_from_every_node_is_said_as_kubernetes_says_it) {
  EXPECT_EQ(problem(pod_with("p", "[x]")), "persistentvolumeclaim \"x\" not found");
  put(claim("x", "spec: {storageClassName: fast}"));
  EXPECT_EQ(problem(pod_with("p", "[x]")), "pod has unbound immediate PersistentVolumeClaims");
  put(claim("x", "spec: {volumeName: v}"));
  EXPECT_EQ(problem(pod_with("p", "[x]")), "pod has unbound immediate PersistentVolumeClaims")
      << "a claim that names its volume does not wait for a pod";
  put(claim("x", R"(metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"})"));
  EXPECT_EQ(problem(pod_with("p", "[x]")), "persistentvolumeclaim \"x\" is being deleted");
  put(claim("x", "{spec: {volumeName: v}, status: {phase: Lost}}"));
  EXPECT_EQ(problem(pod_with("p", "[x]")),
            "persistentvolumeclaim \"x\" bound to non-existent persistentvolume \"v\"");
}

TEST_F(PodVolumes, An_ephemeral_volume_is_a_claim_of_the_pods_own) {
  const Object pod = pod_object("p", "spec: {volumes: [{name: tmp, ephemeral: {}}]}");
  EXPECT_EQ(problem(pod),
            "waiting for ephemeral volume controller to create the persistentvolumeclaim "
            "\"p-tmp\"");
  put(claim("p-tmp", "spec: {storageClassName: made}"));
  EXPECT_EQ(problem(pod), "PVC default/p-tmp was not created for pod default/p (pod is not owner)");
  put(claim("p-tmp",
            "{metadata: {ownerReferences: [{uid: uid-p, controller: true}]}, spec: "
            "{storageClassName: made}}"));
  EXPECT_EQ(problem(pod), "");
}

TEST_F(PodVolumes, A_bound_volume_opens_the_nodes_that_it_reaches) {
  put(bound_claim("x", "v"));
  EXPECT_THAT(open_to(pod_with("p", "[x]")), IsEmpty());
  EXPECT_EQ(needs(pod_with("p", "[x]")).rules.at(0).why, Why::kMissing);
  put(volume("v", "b"));
  EXPECT_THAT(open_to(pod_with("p", "[x]")), ElementsAre("b"));
  put(bound_claim("z", "w"));
  put(volume("w", "c"));
  EXPECT_THAT(open_to(pod_with("p", "[x, z]")), IsEmpty()) << "no node reaches both";
}

TEST_F(PodVolumes, A_claim_that_waits_opens_the_nodes_with_a_volume_for_it) {
  put(claim("x"));
  EXPECT_THAT(open_to(pod_with("p", "[x]")), IsEmpty());
  EXPECT_EQ(needs(pod_with("p", "[x]")).rules.at(0).why, Why::kBind);
  put(volume("small", "a", "spec: {capacity: {storage: 1Mi}}"));
  put(volume("right", "b"));
  EXPECT_THAT(open_to(pod_with("p", "[x]")), ElementsAre("b"));
  put(claim("z"));
  EXPECT_THAT(open_to(pod_with("p", "[x, z]")), IsEmpty()) << "one volume is not two";
  put(volume("other", "b"));
  EXPECT_THAT(open_to(pod_with("p", "[x, z]")), ElementsAre("b"));
}

TEST_F(PodVolumes, A_class_that_makes_volumes_opens_every_node_of_its_topologies) {
  put(claim("x", "spec: {storageClassName: made}"));
  EXPECT_THAT(needs(pod_with("p", "[x]")).rules, IsEmpty());
  put_class("made",
            "{provisioner: example.com/p, allowedTopologies: [{matchLabelExpressions: [{key: "
            "kubernetes.io/hostname, values: [a, c]}]}]}");
  EXPECT_THAT(open_to(pod_with("p", "[x]")), ElementsAre("a", "c"));
  put(claim("x",
            "{metadata: {annotations: {volume.kubernetes.io/selected-node: c}}, spec: "
            "{storageClassName: made}}"));
  EXPECT_THAT(open_to(pod_with("p", "[x]")), ElementsAre("c")) << "chosen before";
}

TEST_F(PodVolumes, A_promise_is_a_volume_that_is_there_or_the_name_of_the_node) {
  put(claim("x"));
  put(claim("z", "spec: {storageClassName: made}"));
  put(volume("v", "b"));
  const Object pod = pod_with("p", "[x, z]");
  EXPECT_FALSE(volume_promises(world(), pod, nodes["a"]));
  const auto found = volume_promises(world(), pod, nodes["b"]);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ((*found)[0].volume, "v");
  EXPECT_EQ((*found)[0].write["spec"]["claimRef"]["uid"].as_string(), "u-x");
  EXPECT_EQ((*found)[1].volume, "");
  EXPECT_EQ(Object((*found)[1].write).annotation(kube::kSelectedNode), "b");
}

TEST_F(PodVolumes, The_place_is_kept_until_the_claims_are_bound_or_cannot_be) {
  put(claim("z", "spec: {storageClassName: made}"));
  const Object pod = pod_with("p", "[z]");
  auto promises = volume_promises(world(), pod, nodes["b"]);
  ASSERT_TRUE(promises);
  (*promises)[0].version = 8;
  const auto ready = [&] { return volumes_ready(world(), pod, nodes["b"], *promises); };
  EXPECT_EQ(ready().value_or(true), false) << "what was written is not to be seen yet";
  put(claim("z", "{metadata: {resourceVersion: \"9\"}, spec: {storageClassName: made}}"));
  EXPECT_FALSE(ready()) << "the name of the node was taken off";
  put(with(Object((*promises)[0].write), "metadata: {resourceVersion: \"8\"}"));
  EXPECT_EQ(ready().value_or(true), false);
  put(bound_claim("z", "v"));
  EXPECT_EQ(ready().value_or(true), false) << "the volume is not to be seen yet";
  put(volume("v", "b"));
  EXPECT_EQ(ready().value_or(false), true);
  put(volume("v", "c"));
  EXPECT_FALSE(ready()) << "it came up elsewhere";
  claims.clear();
  EXPECT_FALSE(ready());
}

}  // namespace
}  // namespace tessera::scheduler
