// A Kubernetes object of any kind: an immutable JSON document with names for its metadata.
//
// Shape:   16 bytes, copies share the document. Unknown fields survive. Typed structs (pod.h, node.h) are decoded from it
//          once a revision, at the informer.
// Errors:  readers never fail; a missing field reads as empty.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "json/value.h"

namespace tessera::kube {

// Names a resource in the API: {"apps", "v1", "deployments"}; the core group is "".
struct Gvr {
  std::string group;
  std::string version;
  std::string resource;
  bool operator==(const Gvr&) const = default;
  // "apps/v1" or "v1".
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
};

inline Gvr core_v1(std::string resource) {
  return {"", "v1", std::move(resource)};
}

class Object {
 public:
  Object() = default;
  explicit Object(json::Value root) : root_(std::move(root)) {}

  const json::Value& json() const { return root_; }
  const json::Value& operator[](std::string_view key) const { return root_[key]; }
  template <class... Keys>
  const json::Value& get(std::string_view key, Keys... rest) const {
    return root_.get(key, rest...);
  }
  explicit operator bool() const { return root_.is_object(); }

  std::string_view kind() const { return root_["kind"].as_string(); }
  std::string_view api_version() const { return root_["apiVersion"].as_string(); }
  const json::Value& metadata() const { return root_["metadata"]; }
  std::string_view name() const { return metadata()["name"].as_string(); }
  std::string_view ns() const { return metadata()["namespace"].as_string(); }
  std::string_view uid() const { return metadata()["uid"].as_string(); }
  std::string_view resource_version() const { return metadata()["resourceVersion"].as_string(); }
  std::string_view label(std::string_view key) const {
    return metadata()["labels"][key].as_string();
  }
  std::string_view annotation(std::string_view key) const {
    return metadata()["annotations"][key].as_string();
  }
  bool deleting() const { return metadata().contains("deletionTimestamp"); }
  // "namespace/name", or "name" where there is no namespace: the key of informers and work queues.
  std::string key() const {
    std::string out(ns());
    if (!out.empty()) out += '/';
    return out.append(name());
  }

 private:
  json::Value root_;
};

}  // namespace tessera::kube
