// A node, decoded.
//
// Errors:  decode_node answers kInvalid naming the field; unknown fields are skipped.
// Source:  Kubernetes API reference, Node (v1.36).
#pragma once

#include <string>
#include <vector>

#include "kube/meta.h"
#include "kube/quantity.h"
#include "kube/taints.h"

namespace tessera::kube {

struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;
  std::string message;
  bool is_true() const { return status == "True"; }
};

struct Node {
  Meta meta;
  std::vector<Taint> taints;
  bool unschedulable = false;
  ResourceList capacity;
  ResourceList allocatable;
  std::vector<Condition> conditions;

  const Condition* condition(std::string_view type) const;
  bool ready() const;
};

base::Result<Node> decode_node(const Object& object);
std::vector<Condition> decode_conditions(const json::Value& conditions);
base::Result<ResourceList> decode_resource_list(const json::Value& list, std::string_view path);

}  // namespace tessera::kube
