// Builders for the tests of the bridge: objects from short YAML, decoded where that is wanted.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "json/yaml.h"
#include "kube/node.h"
#include "kube/pod.h"

namespace tessera::scheduler::testing {

inline json::Value yaml(std::string_view text) {
  auto value = json::parse_yaml(text);
  EXPECT_TRUE(value) << value.error().message << "\n" << text;
  return value ? *value : json::Value();
}

inline void merge(json::Value& into, const json::Value& from) {
  for (const json::Member& member : from.members()) {
    json::Value& slot = into.ref(member.name());
    if (member.value.is_object() && slot.is_object()) {
      merge(slot, member.value);
    } else {
      slot = member.value;
    }
  }
}

// A node of `gpus` H200 with 64 cores and 512Gi; `more` is merged over it, level by level.
inline kube::Object node_object(std::string_view name, int gpus = 8, std::string_view more = "{}") {
  const std::string count = std::to_string(gpus);
  json::Value node = yaml(R"(
apiVersion: v1
kind: Node
metadata:
  labels: {nvidia.com/gpu.product: NVIDIA-H200}
status:
  capacity: {cpu: "64", memory: 512Gi, pods: "110", ephemeral-storage: 1Ti}
  conditions: [{type: Ready, status: "True"}]
)");
  node.ref("metadata", "name") = name;
  node.ref("metadata", "labels", "kubernetes.io/hostname") = name;
  if (gpus > 0) node.ref("status", "capacity", "nvidia.com/gpu") = count;
  const json::Value capacity = node["status"]["capacity"];
  node.ref("status", "allocatable") = capacity;
  merge(node, yaml(more));
  return kube::Object(node);
}

// A pod of one container in namespace "default", with `more` merged over it.
inline kube::Object pod_object(std::string_view name, std::string_view more = "{}", int gpus = 0) {
  json::Value pod = yaml(R"(
apiVersion: v1
kind: Pod
metadata: {namespace: default}
spec:
  schedulerName: tessera
  containers: [{name: main, image: "registry.example/x:1", resources: {requests: {cpu: "1", memory: 1Gi}}}]
status: {phase: Pending}
)");
  pod.ref("metadata", "name") = name;
  pod.ref("metadata", "uid") = std::string("uid-") + std::string(name);
  if (gpus > 0) {
    json::Value& container = pod.ref("spec").ref("containers").ref_at(0);
    container.ref("resources", "limits", "nvidia.com/gpu") = std::to_string(gpus);
  }
  merge(pod, yaml(more));
  return kube::Object(pod);
}

inline kube::Object bound(kube::Object pod, std::string_view node, std::string_view gpus = "") {
  json::Value root = pod.json();
  root.ref("spec", "nodeName") = node;
  if (!gpus.empty()) root.ref("metadata", "annotations", "tessera.dev/gpus") = gpus;
  return kube::Object(root);
}

inline kube::Object with(const kube::Object& object, std::string_view more) {
  json::Value root = object.json();
  merge(root, yaml(more));
  return kube::Object(root);
}

inline kube::Pod decoded_pod(const kube::Object& object) {
  auto pod = kube::decode_pod(object);
  EXPECT_TRUE(pod) << pod.error().message;
  return pod ? *pod : kube::Pod();
}

inline kube::Node decoded_node(const kube::Object& object) {
  auto node = kube::decode_node(object);
  EXPECT_TRUE(node) << node.error().message;
  return node ? *node : kube::Node();
}

}  // namespace tessera::scheduler::testing
