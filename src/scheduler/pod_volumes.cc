#include "scheduler/pod_volumes.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "kube/volumes.h"
#include "scheduler/translate_rules.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using base::error;
using json::Value;
using kube::Object;

Object find_in(const Objects& objects, std::string_view key) {
  const auto it = objects.find(key);
  return it != objects.end() ? it->second : Object();
}

std::string key_of(const Object& pod, const kube::ClaimUse& use) {
  return std::string(pod.ns()) + "/" + use.name;
}

bool fully_bound(const Object& claim) {
  return !claim.get("spec", "volumeName").as_string().empty() &&
         kube::has_annotation(claim, kube::kBindCompleted);
}

bool delayed(const VolumeWorld& world, const Object& claim) {
  const Object found = find_in(world.classes, kube::storage_class_of(claim.json()));
  return found && kube::waits_for_consumer(found.json()) &&
         claim.get("spec", "volumeName").as_string().empty();
}

bool is_owned_by(const Object& claim, const Object& pod) {
  const auto owners = claim.metadata()["ownerReferences"].items();
  return std::ranges::any_of(owners, [&](const Value& owner) {
    return owner["controller"].as_bool() && owner["uid"].as_string() == pod.uid();
  });
}

// Why the claim keeps the pod from every node; empty: it does not.
std::string trouble_of(const Object& claim, const Object& pod, const kube::ClaimUse& use) {
  if (!claim) {
    return use.ephemeral
               ? fmt::format(
                     "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                     "\"{}\"",
                     use.name)
               : fmt::format("persistentvolumeclaim \"{}\" not found", use.name);
  }
  if (claim.get("status", "phase").as_string() == "Lost") {
    return fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"",
                       use.name, claim.get("spec", "volumeName").as_string());
  }
  if (claim.deleting()) {
    return fmt::format("persistentvolumeclaim \"{}\" is being deleted", use.name);
  }
  if (use.ephemeral && !is_owned_by(claim, pod)) {
    return fmt::format("PVC {} was not created for pod {} (pod is not owner)", claim.key(),
                       pod.key());
  }
  return {};
}

struct Sorted {
  std::string problem;
  std::vector<Object> bound;
  std::vector<Object> unbound;  // smallest first
};

Sorted sort_claims(const VolumeWorld& world, const Object& pod) {
  Sorted out;
  bool immediate = false;
  for (const kube::ClaimUse& use : kube::claims_of(pod)) {
    const Object claim = find_in(world.claims, key_of(pod, use));
    out.problem = trouble_of(claim, pod, use);
    if (!out.problem.empty()) return out;
    const bool bound = fully_bound(claim);
    immediate |= !bound && !delayed(world, claim);
    std::vector<Object>& list = bound ? out.bound : out.unbound;
    const bool twice =
        std::ranges::any_of(list, [&](const Object& o) { return o.name() == claim.name(); });
    if (!twice) list.push_back(claim);
  }
  if (immediate) out.problem = "pod has unbound immediate PersistentVolumeClaims";
  std::ranges::sort(out.unbound, [](const Object& a, const Object& b) {
    const kube::Quantity of_a = kube::storage_of(a);
    const kube::Quantity of_b = kube::storage_of(b);
    return of_a < of_b || (!(of_b < of_a) && a.name() < b.name());
  });
  return out;
}

bool makes_volumes(const Value& storage_class) {
  const std::string_view by = storage_class["provisioner"].as_string();
  return !by.empty() && by != kube::kNoProvisioner;
}

// One of the class' topologies, where it lists some, is the node's.
bool in_topology(const Value& storage_class, const Object& node) {
  const auto terms = storage_class["allowedTopologies"].items();
  if (terms.empty()) return true;
  const Value& labels = node.metadata()["labels"];
  return std::ranges::any_of(terms, [&](const Value& term) {
    const auto wanted = term["matchLabelExpressions"].items();
    return !wanted.empty() && std::ranges::all_of(wanted, [&](const Value& one) {
      const auto values = one["values"].items();
      const Value* label = labels.find(one["key"].as_string());
      return label != nullptr && std::ranges::find(values, *label) != values.end();
    });
  });
}

std::string_view selected_node(const Object& claim) {
  return claim.annotation(kube::kSelectedNode);
}

// A volume for every claim, or the class that makes one for the node.
std::optional<std::vector<std::pair<Object, Object>>> assign(const VolumeWorld& world,
                                                             const std::vector<Object>& claims,
                                                             const std::vector<Object>& volumes,
                                                             const Object& node) {
  std::vector<std::pair<Object, Object>> out;
  std::set<std::string> taken;
  for (const Object& claim : claims) {
    Object volume;
    if (selected_node(claim).empty()) {
      volume = kube::match_volume(claim, volumes, node, taken, true);
    } else if (selected_node(claim) != node.name()) {
      return std::nullopt;
    }
    if (volume) {
      taken.emplace(volume.name());
    } else {
      const Object found = find_in(world.classes, kube::storage_class_of(claim.json()));
      if (!makes_volumes(found.json()) || !in_topology(found.json(), node)) return std::nullopt;
    }
    out.emplace_back(claim, volume);
  }
  return out;
}

// Volumes of the classes that the claims ask for.
std::vector<Object> candidates(const VolumeWorld& world, const std::vector<Object>& claims) {
  std::set<std::string> wanted;
  for (const Object& claim : claims) wanted.insert(kube::storage_class_of(claim.json()));
  std::vector<Object> out;
  for (const auto& [name, volume] : world.volumes) {
    if (wanted.contains(kube::storage_class_of(volume.json()))) out.push_back(volume);
  }
  return out;
}

core::VolumeRule on_nodes(const std::vector<std::string_view>& nodes, core::Interner& names) {
  core::VolumeRule rule{core::VolumeRule::Why::kBind, {}};
  if (nodes.empty()) return rule;
  core::Expression name{names.string("metadata.name"), core::Op::kIn, {}, 0};
  for (const std::string_view node : nodes) name.values.push_back(names.string(node));
  std::ranges::sort(name.values);
  rule.terms.push_back({{}, {std::move(name)}});
  return rule;
}

void add_unbound(const VolumeWorld& world, const std::vector<Object>& claims, const Objects& nodes,
                 core::Interner& names, VolumeNeeds& out) {
  const bool everywhere = std::ranges::all_of(claims, [&](const Object& claim) {
    const Object found = find_in(world.classes, kube::storage_class_of(claim.json()));
    return selected_node(claim).empty() && makes_volumes(found.json()) &&
           found["allowedTopologies"].empty();
  });
  if (everywhere) return;
  const std::vector<Object> volumes = candidates(world, claims);
  std::vector<std::string_view> fit;
  for (const auto& [name, node] : nodes) {
    if (assign(world, claims, volumes, node)) fit.push_back(name);
  }
  out.rules.push_back(on_nodes(fit, names));
}

base::Status check_promise(const VolumeWorld& world, const Object& claim, const Object& node,
                           const VolumePromise& promise) {
  if (promise.volume.empty()) {
    // Whoever makes volumes takes the node's name off where it cannot make one there.
    const bool old = version_of(claim.json()) < promise.version;
    if (old || selected_node(claim) == node.name()) return {};
    return error(Code::kConflict, "provisioning failed for PVC \"{}\"", claim.name());
  }
  const Object volume = find_in(world.volumes, promise.volume);
  if (volume && version_of(volume.json()) < promise.version) return {};
  if (!volume || volume.get("spec", "claimRef")["uid"].as_string() != claim.uid()) {
    return error(Code::kConflict, "ClaimRef got reset for pv \"{}\"", promise.volume);
  }
  return {};
}

}  // namespace

uint64_t version_of(const Value& object) {
  const std::string_view text = object["metadata"]["resourceVersion"].as_string();
  uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

VolumeNeeds volume_needs(const VolumeWorld& world, const Object& pod, const Objects& nodes,
                         core::Interner& names) {
  VolumeNeeds out;
  const Sorted claims = sort_claims(world, pod);
  out.problem = claims.problem;
  if (!out.problem.empty()) return out;
  for (const Object& claim : claims.bound) {
    const Object volume = find_in(world.volumes, claim.get("spec", "volumeName").as_string());
    if (!volume) {
      out.rules.push_back({core::VolumeRule::Why::kMissing, {}});
      continue;
    }
    const kube::Affinity reach = kube::reach_of(volume);
    if (!reach.has_required_node_terms) continue;
    out.rules.push_back(
        {core::VolumeRule::Why::kReach, translate_node_terms(reach.required_node_terms, names)});
  }
  if (!claims.unbound.empty()) add_unbound(world, claims.unbound, nodes, names, out);
  return out;
}

base::Result<std::vector<VolumePromise>> volume_promises(const VolumeWorld& world,
                                                         const Object& pod, const Object& node) {
  const Sorted claims = sort_claims(world, pod);
  if (!claims.problem.empty()) return error(Code::kConflict, "{}", claims.problem);
  const auto found = assign(world, claims.unbound, candidates(world, claims.unbound), node);
  if (!found) {
    return error(Code::kConflict, "node(s) didn't find available persistent volumes to bind");
  }
  std::vector<VolumePromise> out;
  for (const auto& [claim, volume] : *found) {
    VolumePromise promise{claim.key(), std::string(volume.name())};
    if (volume) {
      promise.write = kube::bound_to(volume, claim);
    } else if (selected_node(claim).empty()) {
      promise.write = claim.json();
      promise.write.ref("metadata", "annotations").set(kube::kSelectedNode, node.name());
    }
    out.push_back(std::move(promise));
  }
  return out;
}

base::Result<bool> volumes_ready(const VolumeWorld& world, const Object& pod, const Object& node,
                                 const std::vector<VolumePromise>& promises) {
  bool ready = true;
  for (const kube::ClaimUse& use : kube::claims_of(pod)) {
    const std::string key = key_of(pod, use);
    const Object claim = find_in(world.claims, key);
    const std::string trouble = trouble_of(claim, pod, use);
    if (!trouble.empty()) return error(Code::kConflict, "{}", trouble);
    const auto promise = std::ranges::find(promises, key, &VolumePromise::claim);
    if (!fully_bound(claim)) {
      ready = false;
      if (promise == promises.end()) continue;
      TS_TRY_STATUS(check_promise(world, claim, node, *promise));
      continue;
    }
    const Object volume = find_in(world.volumes, claim.get("spec", "volumeName").as_string());
    if (!volume) {
      ready = false;  // it may be seen a moment later than its claim
    } else if (!kube::reaches(volume, node)) {
      return error(Code::kConflict, "pv \"{}\" node affinity doesn't match node \"{}\"",
                   volume.name(), node.name());
    }
  }
  return ready;
}

}  // namespace tessera::scheduler
