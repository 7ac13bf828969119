// The half of node_access.h that looks at objects.
#include <algorithm>
#include <array>
#include <set>

#include "apiserver/api_errors.h"
#include "apiserver/auth.h"
#include "apiserver/node_access.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using Labels = std::set<std::string>;

base::Status refuse(const Call& call, const Value& object, std::string_view why) {
  std::string name = object["metadata"]["name"].str();
  if (name.empty()) name = call.request.name;
  return base::error(forbidden(*call.kind, name, why));
}

std::string_view owner_fault(const Value& owner, const std::string& node) {
  if (owner["apiVersion"].as_string() != "v1" || owner["kind"].as_string() != "Node" ||
      owner["name"].as_string() != node) {
    return "can only create pods with an owner reference set to itself";
  }
  if (!owner["controller"].as_bool()) {
    return "can only create pods with a controller owner reference set to itself";
  }
  if (owner["blockOwnerDeletion"].as_bool()) {
    return "must not set blockOwnerDeletion on an owner reference";
  }
  return {};
}

base::Status admit_mirror(const Core& core, const Call& call, const std::string& node,
                          const Value& pod) {
  const auto no = [&](std::string_view why) {
    return refuse(call, pod, fmt::format("node \"{}\" {}", node, why));
  };
  if (!pod["metadata"]["annotations"].contains("kubernetes.io/config.mirror")) {
    return refuse(call, pod,
                  fmt::format("pod does not have \"kubernetes.io/config.mirror\" annotation, node "
                              "\"{}\" can only create mirror pods",
                              node));
  }
  if (pod["spec"]["nodeName"].as_string() != node) {
    return no("can only create pods with spec.nodeName set to itself");
  }
  const Value& owners = pod["metadata"]["ownerReferences"];
  if (owners.size() > 1) {
    return no("can only create pods with a single owner reference set to itself");
  }
  if (owners.empty()) return no("can only create pods with an owner reference set to itself");
  const Value& owner = owners.at(0);
  if (const std::string_view fault = owner_fault(owner, node); !fault.empty()) return no(fault);
  const Value found = core.access->find("", "nodes", "", node);
  if (found.is_null()) {
    return base::error(base::Code::kNotFound, "nodes \"{}\" not found", node);
  }
  const std::string_view uid = found["metadata"]["uid"].as_string();
  if (owner["uid"].as_string() != uid) {
    return refuse(call, pod,
                  fmt::format("node {} UID mismatch: expected {} got {}", node,
                              owner["uid"].as_string(), uid));
  }
  if (const std::string_view kind = pod_reference(pod); !kind.empty()) {
    return no(fmt::format("can not create pods that reference {}", kind));
  }
  return {};
}

base::Status admit_pod_write(const Core& core, const Call& call, const std::string& node,
                             const Value& before, const Value& after) {
  const std::string& sub = call.request.subresource;
  const bool own = before["spec"]["nodeName"].as_string() == node;
  if (sub == "status") {
    if (!own) {
      return refuse(call, before,
                    fmt::format("node \"{}\" can only update pod status for pods with "
                                "spec.nodeName set to itself",
                                node));
    }
    if (!(before["metadata"]["labels"] == after["metadata"]["labels"])) {
      return refuse(call, before,
                    fmt::format("node \"{}\" cannot update labels through pod status", node));
    }
    return {};
  }
  if (!sub.empty()) {
    return refuse(call, before,
                  fmt::format("unexpected pod subresource \"{}\", only 'status' and 'eviction' "
                              "are allowed",
                              sub));
  }
  if (before.is_null()) return admit_mirror(core, call, node, after);
  if (after.is_null()) {
    if (own) return {};
    return refuse(
        call, before,
        fmt::format("node \"{}\" can only delete pods with spec.nodeName set to itself", node));
  }
  return refuse(call, before,
                fmt::format("unexpected operation \"UPDATE\", node \"{}\" can only create and "
                            "delete mirror pods",
                            node));
}

Labels changed_labels(const Value& before, const Value& after) {
  Labels out;
  for (const json::Member& one : after.members()) {
    if (!(before[one.name()] == one.value)) out.emplace(one.name());
  }
  for (const json::Member& one : before.members()) {
    if (!after.contains(one.name())) out.emplace(one.name());
  }
  return out;
}

bool within(std::string_view domain, std::string_view of) {
  return domain == of || (domain.size() > of.size() && domain.ends_with(of) &&
                          domain[domain.size() - of.size() - 1] == '.');
}

bool is_kubelets_label(std::string_view label, std::string_view domain) {
  static constexpr std::array<std::string_view, 12> kOwn = {
      "kubernetes.io/hostname",
      "topology.kubernetes.io/zone",
      "topology.kubernetes.io/region",
      "failure-domain.beta.kubernetes.io/zone",
      "failure-domain.beta.kubernetes.io/region",
      "node.kubernetes.io/instance-type",
      "beta.kubernetes.io/instance-type",
      "kubernetes.io/os",
      "kubernetes.io/arch",
      "beta.kubernetes.io/os",
      "beta.kubernetes.io/arch",
      "beta.kubernetes.io/instance-type"};
  return std::ranges::find(kOwn, label) != kOwn.end() || within(domain, "kubelet.kubernetes.io") ||
         within(domain, "node.kubernetes.io");
}

std::string forbidden_labels(const Value& before, const Value& after) {
  std::string out;
  for (const std::string& label : changed_labels(before, after)) {
    const size_t slash = label.find('/');
    const std::string_view domain =
        slash == std::string::npos ? std::string_view() : std::string_view(label).substr(0, slash);
    const bool kubernetes = within(domain, "kubernetes.io") || within(domain, "k8s.io");
    if (!within(domain, "node-restriction.kubernetes.io") &&
        (!kubernetes || is_kubelets_label(label, domain))) {
      continue;
    }
    out.append(out.empty() ? "" : ", ").append(label);
  }
  return out;
}

base::Status admit_node_write(const Call& call, const std::string& node, const Value& before,
                              const Value& after) {
  std::string name = (before.is_null() ? after : before)["metadata"]["name"].str();
  if (name != node) {
    return refuse(call, before.is_null() ? after : before,
                  fmt::format("node \"{}\" is not allowed to modify node \"{}\"", node, name));
  }
  if (after.is_null()) return {};
  const auto differs = [&](std::string_view half, std::string_view field) {
    const Value& old = before[half][field];
    const Value& now = after[half][field];
    return !(old == now) && !(old.empty() && now.empty());
  };
  if (!after["spec"]["configSource"].is_null() && differs("spec", "configSource")) {
    return refuse(
        call, after,
        fmt::format("node \"{}\" is not allowed to {}", node,
                    before.is_null() ? "create pods with a non-nil configSource"
                                     : "update configSource to a new non-nil configSource"));
  }
  if (!before.is_null() && differs("spec", "taints")) {
    return refuse(call, after, fmt::format("node \"{}\" is not allowed to modify taints", node));
  }
  if (!before.is_null() && differs("metadata", "ownerReferences")) {
    return refuse(call, after,
                  fmt::format("node \"{}\" is not allowed to modify ownerReferences", node));
  }
  const std::string labels =
      forbidden_labels(before["metadata"]["labels"], after["metadata"]["labels"]);
  if (labels.empty()) return {};
  return refuse(
      call, after,
      before.is_null()
          ? fmt::format("node \"{}\" is not allowed to set the following labels: {}", node, labels)
          : fmt::format("is not allowed to modify labels: {}", labels));
}

// All but what a kubelet tells of a claim.
Value without_claim_news(Value claim) {
  for (const char* field :
       {"capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"}) {
    claim.ref("status").erase(field);
  }
  claim.ref("metadata").erase("resourceVersion");
  claim.ref("metadata").erase("managedFields");
  return claim;
}

base::Status admit_claim_write(const Call& call, const std::string& node, const Value& before,
                               const Value& after) {
  if (call.request.subresource != "status") {
    return refuse(call, before.is_null() ? after : before, "may only update PVC status");
  }
  if (without_claim_news(before) == without_claim_news(after)) return {};
  return refuse(call, before,
                fmt::format("node \"{}\" is not allowed to update fields other than "
                            "status.quantity and status.conditions",
                            node));
}

bool volumes_ask_for(const Value& pod, std::string_view audience) {
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    for (const Value& source : volume["projected"]["sources"].items()) {
      const Value& token = source["serviceAccountToken"];
      if (!token.is_null() && token["audience"].as_string() == audience) return true;
    }
  }
  return false;
}

}  // namespace

std::string_view pod_reference(const Value& pod) {
  if (!pod["spec"]["serviceAccountName"].as_string().empty()) return "serviceaccounts";
  const std::string text = pod["spec"].dump();
  static constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"\"secretRef\":", "secrets"},
      {"\"secretKeyRef\":", "secrets"},
      {"\"imagePullSecrets\":", "secrets"},
      {"\"secret\":", "secrets"},
      {"\"secretName\":", "secrets"},
      {"\"configMapRef\":", "configmaps"},
      {"\"configMapKeyRef\":", "configmaps"},
      {"\"configMap\":", "configmaps"},
      {"\"persistentVolumeClaim\":", "persistentvolumeclaims"},
      {"\"ephemeral\":", "persistentvolumeclaims"},
      {"\"serviceAccountToken\":", "serviceaccounts"},
      {"\"resourceClaims\":", "resourceclaims"}};
  for (const auto& [sign, kind] : kSigns) {
    if (text.find(sign) != std::string::npos) return kind;
  }
  return {};
}

base::Status admit_node_caller(const Core& core, const Call& call, const Value& before,
                               const Value& after) {
  const auto node = node_of(call.caller);
  if (!node) return {};
  const Kind& kind = *call.kind;
  const Value& shown = before.is_null() ? after : before;
  if (node->empty()) {
    return refuse(call, shown,
                  fmt::format("could not determine node from user \"{}\"", call.caller.user));
  }
  if (&kind == core.pods) return admit_pod_write(core, call, *node, before, after);
  if (&kind == core.claims) return admit_claim_write(call, *node, before, after);
  if (kind.group.empty() && kind.plural == "nodes") {
    return admit_node_write(call, *node, before, after);
  }
  const bool own = shown["metadata"]["name"].as_string() == *node;
  if (kind.plural == "leases" && !own) {
    return refuse(call, shown,
                  "can only access node lease with the same name as the requesting node");
  }
  if (kind.plural == "csinodes" && !own) {
    return refuse(call, shown, "can only access CSINode with the same name as the requesting node");
  }
  return {};
}

base::Status admit_node_eviction(const Core& /*core*/, const Call& call, const Value& pod) {
  const auto node = node_of(call.caller);
  if (!node || pod["spec"]["nodeName"].as_string() == *node) return {};
  return refuse(call, pod,
                fmt::format("node {} can only evict pods with spec.nodeName set to itself", *node));
}

base::Status admit_node_token(const Core& core, const Call& call) {
  const auto node = node_of(call.caller);
  if (!node) return {};
  const Value& spec = call.request.body["spec"];
  const Value& ref = spec["boundObjectRef"];
  const auto no = [&](std::string_view why) { return refuse(call, Value(), why); };
  const std::string_view pod_name = ref["name"].as_string();
  if (ref["kind"].as_string() != "Pod" || ref["apiVersion"].as_string() != "v1" ||
      pod_name.empty()) {
    return no("node requested token not bound to a pod");
  }
  const std::string_view uid = ref["uid"].as_string();
  if (uid.empty()) return no("node requested token with a pod binding without a uid");
  const Value pod = core.access->find("", "pods", call.request.ns, pod_name);
  if (pod.is_null()) {
    return base::error(base::Code::kNotFound, "pods \"{}\" not found", pod_name);
  }
  if (pod["metadata"]["uid"].as_string() != uid) {
    return no(
        fmt::format("the UID in the bound object reference ({}) does not match the UID in "
                    "record. The object might have been deleted and then recreated",
                    uid));
  }
  if (pod["spec"]["nodeName"].as_string() != *node) {
    return no("node requested token bound to a pod scheduled on a different node");
  }
  const Value& audiences = spec["audiences"];
  if (audiences.size() > 1) return no("node may only request 0 or 1 audiences");
  const std::string audience = audiences.empty() ? std::string() : audiences.at(0).str();
  if (volumes_ask_for(pod, audience)) return {};
  Attributes wanted;
  wanted.verb = "request-serviceaccounts-token-audience";
  wanted.resource = audience;
  wanted.ns = call.request.ns;
  wanted.name = call.request.name;
  if (core.access->rbac().decide(call.caller, wanted).allowed) return {};
  return no(
      fmt::format("audience \"{}\" not found in pod spec volume, {} is not authorized to "
                  "request tokens for this audience",
                  audience, call.caller.user));
}

}  // namespace tessera::apiserver
