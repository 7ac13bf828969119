#include "apiserver/node_access.h"

#include <algorithm>
#include <array>

#include "apiserver/auth.h"
#include "apiserver/rbac_defaults.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr std::array<std::string_view, 3> kContainerLists = {"containers", "initContainers",
                                                             "ephemeralContainers"};

// What a part of a pod names: an object at `path` below it.
bool names(const Value& part, std::initializer_list<std::string_view> path, std::string_view name) {
  const Value* at = &part;
  for (const std::string_view step : path) at = &(*at)[step];
  return at->as_string() == name;
}

bool containers_name(const Value& pod, std::string_view from, std::string_view key,
                     std::string_view name) {
  for (const std::string_view list : kContainerLists) {
    for (const Value& container : pod["spec"][list].items()) {
      for (const Value& source : container["envFrom"].items()) {
        if (names(source, {from, "name"}, name)) return true;
      }
      for (const Value& variable : container["env"].items()) {
        if (names(variable, {"valueFrom", key, "name"}, name)) return true;
      }
    }
  }
  return false;
}

bool volumes_name(const Value& pod, std::string_view type, std::string_view member,
                  std::string_view name) {
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    if (names(volume, {type, member}, name)) return true;
    for (const Value& source : volume["projected"]["sources"].items()) {
      if (names(source, {type, "name"}, name)) return true;
    }
  }
  return false;
}

bool names_secret(const Value& pod, std::string_view name) {
  for (const Value& secret : pod["spec"]["imagePullSecrets"].items()) {
    if (names(secret, {"name"}, name)) return true;
  }
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    if (names(volume, {"azureFile", "secretName"}, name)) return true;
    if (names(volume, {"csi", "nodePublishSecretRef", "name"}, name)) return true;
    for (const char* type : {"cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"}) {
      if (names(volume, {type, "secretRef", "name"}, name)) return true;
    }
  }
  return volumes_name(pod, "secret", "secretName", name) ||
         containers_name(pod, "secretRef", "secretKeyRef", name);
}

bool names_claim(const Value& pod, std::string_view name) {
  const std::string_view owner = pod["metadata"]["name"].as_string();
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    if (names(volume, {"persistentVolumeClaim", "claimName"}, name)) return true;
    if (volume.contains("ephemeral") && name == std::string(owner) + "-" + volume["name"].str()) {
      return true;
    }
  }
  return false;
}

NodeDecision no(std::string reason = {}) {
  return {false, std::move(reason)};
}

NodeDecision unrelated(const std::string& node) {
  return no(fmt::format("no relationship found between node '{}' and this object", node));
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Is it needed by a pod that is bound to the node?
NodeDecision related(const Access& access, const std::string& node, std::string_view resource,
                     std::string_view ns, std::string_view name) {
  if (name.empty()) return no("No Object name found");
  if (resource == "pods") {
    const Value pod = access.find("", "pods", ns, name);
    return names(pod, {"spec", "nodeName"}, node) ? NodeDecision{true} : unrelated(node);
  }
  if (resource == "persistentvolumes") {
    const Value claim = access.find("", "persistentvolumes", "", name)["spec"]["claimRef"];
    if (claim.is_null()) return unrelated(node);
    return related(access, node, "persistentvolumeclaims", claim["namespace"].as_string(),
                   claim["name"].as_string());
  }
  const bool found = access.any_pod(ns, [&](const Value& pod) {
    return names(pod, {"spec", "nodeName"}, node) && pod_refers_to(pod, resource, name);
  });
  return found ? NodeDecision{true} : unrelated(node);
}

NodeDecision may_read(const Access& access, const std::string& node, const Attributes& wanted) {
  if (!one_of(wanted.verb, {"get", "list", "watch"})) {
    return no("can only read resources of this type");
  }
  if (!wanted.subresource.empty()) return no("cannot read subresource");
  if (wanted.ns.empty()) return no("can only read namespaced object of this type");
  return related(access, node, wanted.resource, wanted.ns, wanted.name);
}

NodeDecision may_get(const Access& access, const std::string& node, const Attributes& wanted) {
  if (wanted.resource == "persistentvolumeclaims" && wanted.subresource == "status") {
    if (!one_of(wanted.verb, {"update", "patch"})) {
      return no("can only get/update/patch this type");
    }
    return related(access, node, wanted.resource, wanted.ns, wanted.name);
  }
  if (wanted.verb != "get") return no("can only get individual resources of this type");
  if (!wanted.subresource.empty()) return no("cannot get subresource");
  return related(access, node, wanted.resource, wanted.ns, wanted.name);
}

NodeDecision on_accounts(const Access& access, const std::string& node, const Attributes& wanted) {
  if (wanted.verb == "get" && wanted.subresource.empty()) return may_read(access, node, wanted);
  if (wanted.verb != "create" || wanted.name.empty()) {
    return no("can only create tokens for individual service accounts");
  }
  if (wanted.subresource != "token") {
    return no("can only create token subresource of serviceaccount");
  }
  return related(access, node, wanted.resource, wanted.ns, wanted.name);
}

NodeDecision on_own(const std::string& node, const Attributes& wanted, std::string_view what,
                    std::string_view named) {
  if (!one_of(wanted.verb, {"get", "create", "update", "patch", "delete"})) {
    return no(fmt::format("can only get, create, update, patch, or delete a {}", what));
  }
  if (wanted.resource == "leases" && wanted.ns != "kube-node-lease") {
    return no("can only access leases in the \"kube-node-lease\" system namespace");
  }
  if (wanted.resource == "csinodes" && !wanted.subresource.empty()) {
    return no("cannot authorize CSINode subresources");
  }
  if (wanted.verb != "create" && wanted.name != node) {
    return no(fmt::format("can only access {} with the same name as the requesting node", named));
  }
  return {true};
}

NodeDecision on_nodes(const std::string& node, const Attributes& wanted) {
  if (wanted.subresource == "status") return {one_of(wanted.verb, {"update", "patch"})};
  if (!wanted.subresource.empty()) return no();
  if (one_of(wanted.verb, {"create", "update", "patch"})) return {true};
  if (!one_of(wanted.verb, {"get", "list", "watch"})) return no();
  if (wanted.name == node) return {true};
  if (wanted.name.empty()) {
    return no(fmt::format("node '{}' cannot read all nodes, only its own Node object", node));
  }
  return no(fmt::format("node '{}' cannot read '{}', only its own Node object", node, wanted.name));
}

NodeDecision on_pods(const Access& access, const std::string& node, const Attributes& wanted) {
  if (wanted.subresource == "status") return {one_of(wanted.verb, {"update", "patch"})};
  if (wanted.subresource == "eviction") return {wanted.verb == "create"};
  if (!wanted.subresource.empty()) return no();
  if (wanted.verb == "get") return may_get(access, node, wanted);
  if (one_of(wanted.verb, {"create", "delete"})) return {true};
  if (!one_of(wanted.verb, {"list", "watch"})) return no();
  if (wanted.on_node == node) return {true};
  if (!wanted.name.empty()) return related(access, node, wanted.resource, wanted.ns, wanted.name);
  return no("can only list/watch pods with spec.nodeName field selector");
}

// What the role system:node holds in a new cluster, whatever has been made of it since.
const std::vector<PolicyRule>& node_rules() {
  static const std::vector<PolicyRule> kRules = [] {
    for (const DefaultRole& role : default_roles()) {
      const bool own = role.object["metadata"]["name"].as_string() == "system:node";
      if (own && role.plural == "clusterroles") return policy_rules(role.object["rules"]);
    }
    return std::vector<PolicyRule>();
  }();
  return kRules;
}

}  // namespace

std::optional<std::string> node_of(const Caller& caller) {
  constexpr std::string_view kPrefix = "system:node:";
  if (!caller.user.starts_with(kPrefix)) return std::nullopt;
  if (std::ranges::find(caller.groups, "system:nodes") == caller.groups.end()) return std::nullopt;
  return caller.user.substr(kPrefix.size());
}

bool pod_refers_to(const Value& pod, std::string_view resource, std::string_view name) {
  // Mirrors of what a node runs by itself show nothing of the cluster to it.
  if (pod["metadata"]["annotations"].contains("kubernetes.io/config.mirror")) return false;
  if (resource == "secrets") return names_secret(pod, name);
  if (resource == "configmaps") {
    return volumes_name(pod, "configMap", "name", name) ||
           containers_name(pod, "configMapRef", "configMapKeyRef", name);
  }
  if (resource == "persistentvolumeclaims") return names_claim(pod, name);
  return resource == "serviceaccounts" && names(pod, {"spec", "serviceAccountName"}, name);
}

NodeDecision node_decide(const Access& access, const std::string& node, const Attributes& wanted) {
  if (node.empty()) return no("unknown node for user \"system:node:\"");
  if (!wanted.on_path && wanted.group.empty()) {
    if (one_of(wanted.resource, {"secrets", "configmaps"})) return may_read(access, node, wanted);
    if (one_of(wanted.resource, {"persistentvolumeclaims", "persistentvolumes"})) {
      return may_get(access, node, wanted);
    }
    if (wanted.resource == "serviceaccounts") return on_accounts(access, node, wanted);
    if (wanted.resource == "nodes") return on_nodes(node, wanted);
    if (wanted.resource == "pods") return on_pods(access, node, wanted);
  }
  if (wanted.group == "coordination.k8s.io" && wanted.resource == "leases") {
    return on_own(node, wanted, "node lease", "node lease");
  }
  if (wanted.group == "storage.k8s.io" && wanted.resource == "csinodes") {
    return on_own(node, wanted, "CSINode", "CSINode");
  }
  const bool may = std::ranges::any_of(
      node_rules(), [&](const PolicyRule& rule) { return allows(rule, wanted); });
  return {may};
}

}  // namespace tessera::apiserver
