#include <algorithm>
#include <utility>

#include "apiserver/controller_stateful_set_plan.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

// Whom the claim may belong to.
struct Owner {
  const Object& object;
  std::string_view api_version;
  std::string_view kind;

  // By name; of this object or of one that had its name before.
  bool named_by(const Value& reference) const {
    return reference["apiVersion"].as_string() == api_version &&
           reference["kind"].as_string() == kind && reference["name"].as_string() == object.name();
  }
  bool is(const Value& reference) const { return reference["uid"].as_string() == object.uid(); }
  bool owns(const Object& claim) const {
    return std::ranges::any_of(claim.metadata()["ownerReferences"].items(),
                               [&](const Value& reference) { return is(reference); });
  }
  bool is_stale_in(const Object& claim) const {
    for (const Value& reference : claim.metadata()["ownerReferences"].items()) {
      if (named_by(reference)) return !is(reference);
    }
    return false;
  }
  Value reference() const {
    return Value::object({{"apiVersion", api_version},
                          {"kind", kind},
                          {"name", object.name()},
                          {"uid", object.uid()},
                          {"controller", true},
                          {"blockOwnerDeletion", true}});
  }
};

Owner set_owner(const StatefulSet& set) {
  return {set.object, "apps/v1", "StatefulSet"};
}

Owner pod_owner(const Object& pod) {
  return {pod, "v1", "Pod"};
}

}  // namespace

bool claim_is_contested(const StatefulSet& set, const Object& claim, const Object& pod) {
  if (!set.delete_scaled && !set.delete_deleted) return false;
  const Owner ours = set_owner(set);
  const Owner theirs = pod_owner(pod);
  return std::ranges::any_of(claim.metadata()["ownerReferences"].items(),
                             [&](const Value& reference) {
                               if (ours.named_by(reference)) return !ours.is(reference);
                               if (theirs.named_by(reference)) return !theirs.is(reference);
                               return reference["controller"].as_bool();
                             });
}

std::optional<Value> claim_owners(const StatefulSet& set, const Object& claim, const Object& pod) {
  const Owner ours = set_owner(set);
  const Owner theirs = pod_owner(pod);
  // Of a set or pod that is gone: whoever collects it deals with it.
  if (ours.is_stale_in(claim) || theirs.is_stale_in(claim)) return std::nullopt;
  const bool contested = claim_is_contested(set, claim, pod);
  const bool scaled_away =
      !set.in_range(ordinal_of(set.name(), pod.name()).value_or(set.start - 1));
  const bool by_pod = !contested && set.delete_scaled && scaled_away;
  const bool by_set = !contested && set.delete_deleted && !(set.delete_scaled && scaled_away);
  const bool has_plain_owner =
      std::ranges::any_of(claim.metadata()["ownerReferences"].items(), [&](const Value& reference) {
        return (ours.is(reference) || theirs.is(reference)) && !reference["controller"].as_bool();
      });
  if (ours.owns(claim) == by_set && theirs.owns(claim) == by_pod &&
      (contested || !has_plain_owner)) {
    return std::nullopt;
  }
  Value owners = Value::array();
  for (const Value& reference : claim.metadata()["ownerReferences"].items()) {
    if (!ours.named_by(reference) && !theirs.named_by(reference)) owners.push_back(reference);
  }
  if (by_pod) owners.push_back(theirs.reference());
  if (by_set) owners.push_back(ours.reference());
  return owners;
}

std::vector<Value> claims_of(const StatefulSet& set, int64_t ordinal) {
  std::vector<Value> out;
  for (const Value& pattern : set.claims().items()) {
    Value claim = pattern;
    const std::string name =
        fmt::format("{}-{}-{}", pattern["metadata"]["name"].as_string(), set.name(), ordinal);
    claim.ref("metadata").set("name", name);
    claim.ref("metadata").set("namespace", set.object.ns());
    for (const json::Member& label : set.object.get("spec", "selector", "matchLabels").members()) {
      claim.ref("metadata", "labels").set(label.name(), label.value);
    }
    claim.erase("status");
    out.push_back(std::move(claim));
  }
  return out;
}

}  // namespace tessera::apiserver::controller
