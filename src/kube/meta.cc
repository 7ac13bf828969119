#include "kube/meta.h"

namespace tessera::kube {

const OwnerReference* Meta::controller() const {
  for (const OwnerReference& owner : owners) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

StringMap decode_string_map(const json::Value& map) {
  StringMap out;
  for (const json::Member& member : map.members()) {
    out.emplace_hint(out.end(), member.name(), member.value.as_string());
  }
  return out;
}

std::vector<std::string> decode_strings(const json::Value& list) {
  std::vector<std::string> out;
  out.reserve(list.size());
  for (const json::Value& item : list.items()) out.push_back(item.str());
  return out;
}

base::Result<std::optional<base::Time>> decode_time(const json::Value& value,
                                                    std::string_view path) {
  if (value.is_null()) return std::optional<base::Time>();
  auto time = base::parse_rfc3339(value.as_string());
  if (!time) return base::error(base::Code::kInvalid, "{}: {}", path, time.error().message);
  return std::optional<base::Time>(*time);
}

base::Result<Meta> decode_meta(const Object& object) {
  const json::Value& meta = object.metadata();
  Meta out;
  out.ns = meta["namespace"].as_string();
  out.name = meta["name"].as_string();
  out.uid = meta["uid"].as_string();
  out.resource_version = meta["resourceVersion"].as_string();
  out.generation = meta["generation"].as_int();
  out.labels = decode_string_map(meta["labels"]);
  out.annotations = decode_string_map(meta["annotations"]);
  for (const json::Value& owner : meta["ownerReferences"].items()) {
    out.owners.push_back({owner["apiVersion"].str(), owner["kind"].str(), owner["name"].str(),
                          owner["uid"].str(), owner["controller"].as_bool()});
  }
  out.finalizers = decode_strings(meta["finalizers"]);
  TS_TRY(const auto created, decode_time(meta["creationTimestamp"], "metadata.creationTimestamp"));
  out.created = created.value_or(base::Time{});
  TS_TRY(out.deleted, decode_time(meta["deletionTimestamp"], "metadata.deletionTimestamp"));
  if (const json::Value* grace = meta.find("deletionGracePeriodSeconds")) {
    out.deletion_grace_seconds = grace->as_int();
  }
  return out;
}

}  // namespace tessera::kube
