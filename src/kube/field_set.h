// A set of fields of an object, in the form in which metadata.managedFields keeps it (FieldsV1).
//
// Shape:   a tree of JSON objects: "f:name" is a field, k:{"name":"a"} an element of a list that is a map, v:"x" one of
//          a set, "i:0" a place; a node is itself in the set where it is empty or has ".". Sets share nodes, and an
//          operation that changes nothing answers the same node, so that comparing and storing them is cheap.
// Errors:  from_fields_v1 answers kBadRequest naming the key that it cannot read; unknown kinds of keys are left out.
// Threads: plain values.
// Source:  sigs.k8s.io/structured-merge-diff/v6/fieldpath (set.go, serialize.go, serialize-pe.go).
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace tessera::kube {

// Steps as keys of FieldsV1: {"f:spec", "f:containers", "k:{\"name\":\"a\"}"}.
using FieldPath = std::vector<std::string>;

class FieldSet {
 public:
  FieldSet() = default;
  FieldSet(std::initializer_list<FieldPath> paths);
  static base::Result<FieldSet> from_fields_v1(const json::Value& fields);
  // What to_fields_v1() or an operation on canonical sets made.
  static FieldSet of_node(json::Value node) { return FieldSet(std::move(node)); }

  json::Value to_fields_v1() const { return empty() ? json::Value::object() : node_; }
  // null where empty
  const json::Value& node() const { return node_; }
  bool empty() const { return node_.is_null(); }
  size_t size() const;
  bool has(const FieldPath& path) const;
  void insert(const FieldPath& path);
  // Each member, parents before their children, in the order in which Kubernetes names them.
  void each(const std::function<void(const FieldPath&)>& visit) const;

  FieldSet united_with(const FieldSet& other) const;
  FieldSet intersected_with(const FieldSet& other) const;
  FieldSet without(const FieldSet& other) const;
  // Without the members of the other set and all that is below them.
  FieldSet without_trees(const FieldSet& other) const;

  bool same_node(const FieldSet& other) const {
    return (empty() && other.empty()) || node_.same_node(other.node_);
  }
  friend bool operator==(const FieldSet& a, const FieldSet& b) noexcept {
    return a.node_ == b.node_;
  }

 private:
  explicit FieldSet(json::Value node) : node_(std::move(node)) {}
  json::Value node_;
};

// ".spec.containers[name=\"a\"].image", as Kubernetes prints paths.
std::string to_string(const FieldPath& path);
// The key of a step; canonical, so that equal elements have equal keys.
json::Value field_key(std::string_view name);
std::string map_element_key(const std::vector<std::pair<std::string_view, json::Value>>& keys);
std::string set_element_key(const json::Value& element);
// JSON as Go writes it: with <, > and & escaped.
std::string go_json(const json::Value& value);

namespace field_node {

// A node is null (nothing), or an object as above.
bool is_member(const json::Value& node) noexcept;
json::Value leaf();
json::Value made(bool member, std::vector<json::Member>&& children);
// The node, itself in the set.
json::Value marked(json::Value node);
json::Value united(const json::Value& a, const json::Value& b);
json::Value intersected(const json::Value& a, const json::Value& b);
json::Value without(const json::Value& a, const json::Value& b);
json::Value without_trees(const json::Value& a, const json::Value& b);
bool is_self(const json::Member& member) noexcept;

}  // namespace field_node
}  // namespace tessera::kube
