#include "scheduler/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "json/parse.h"
#include "scheduler/group_reading.h"
#include "scheduler/model_reading.h"
#include "scheduler/snapshot_fields.h"
#include "scheduler/verdict.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using json::Value;
using kube::Object;

constexpr std::string_view kFormat = "tessera-snapshot";
constexpr size_t kBytesMax = size_t{2} << 30;

base::Status check_object(const Object& object, size_t index, std::set<std::string>& seen) {
  const std::string where = fmt::format("objects[{}]", index);
  if (!object || object.kind().empty() || object.name().empty())
    return base::error(Code::kInvalid, "{}: has no kind or no metadata.name", where);
  if (!is_kept(group_of(object.api_version()), object.kind()))
    return base::error(Code::kInvalid,
                       "{}: a snapshot has no {} of {}: take it with this version of tessera",
                       where, object.kind(), object.api_version());
  if (!seen.insert(object_key(object)).second)
    return base::error(Code::kInvalid, "{}: {} {} stands there twice: keep one of them", where,
                       object.kind(), object.key());
  return {};
}

base::Result<std::vector<std::string>> texts(const Value& root, const char* key) {
  std::vector<std::string> out;
  const Value& list = root[key];
  if (!list.is_null() && !list.is_array())
    return base::error(Code::kInvalid, "{}: is not a list of texts", key);
  for (const Value& item : list.items()) {
    if (!item.is_string()) return base::error(Code::kInvalid, "{}: is not a list of texts", key);
    out.push_back(item.str());
  }
  return out;
}

base::Status check_header(const Value& root) {
  if (root["format"].as_string() != kFormat)
    return base::error(Code::kInvalid,
                       "format: \"{}\" is not \"{}\": give a file that `tessera snapshot` wrote",
                       root["format"].as_string().substr(0, 40), kFormat);
  const Value& version = root["version"];
  if (!version.is_int() || version.as_int() != kSnapshotVersion)
    return base::error(Code::kInvalid,
                       "version: {} is not {}: take the snapshot with this version of tessera",
                       version.dump(), kSnapshotVersion);
  constexpr std::string_view kKnown[] = {"format",  "version",        "taken",  "server",
                                         "leftOut", "schedulerNames", "objects"};
  for (const json::Member& member : root.members()) {
    if (std::ranges::find(kKnown, member.name()) == std::end(kKnown))
      return base::error(Code::kInvalid, "{}: is no field of a snapshot: take it out",
                         member.name());
  }
  if (!root["objects"].is_array())
    return base::error(Code::kInvalid, "objects: is not a list of objects");
  return {};
}

Value text_list(const std::vector<std::string>& items) {
  Value out = Value::array();
  for (const std::string& item : items) out.push_back(item);
  return out;
}

}  // namespace

void Snapshot::add(const Object& object) {
  if (Object some = keep_read_fields(object)) objects.push_back(std::move(some));
}

std::vector<std::string> served_names(const std::vector<Object>& pods) {
  std::set<std::string> out{"tessera"};
  for (const Object& pod : pods) {
    const std::string name = pod.get("spec", "schedulerName").str();
    if (!name.empty() && (!pod.annotation("tessera.dev/gpus").empty() ||
                          !pod.annotation(kVerdictAnnotation).empty()))
      out.insert(name);
  }
  return {out.begin(), out.end()};
}

std::string to_text(const Snapshot& snapshot) {
  std::string out =
      fmt::format("{{\"format\":\"{}\",\"version\":{},\"taken\":\"{}\",\"server\":", kFormat,
                  kSnapshotVersion, base::to_rfc3339(snapshot.taken));
  Value(snapshot.server).dump_to(out);
  out += ",\"schedulerNames\":";
  text_list(snapshot.scheduler_names).dump_to(out);
  out += ",\"leftOut\":";
  text_list(snapshot.left_out).dump_to(out);
  out += ",\"objects\":[";
  for (size_t i = 0; i < snapshot.objects.size(); ++i) {
    out += i > 0 ? ",\n" : "\n";
    snapshot.objects[i].json().dump_to(out);
  }
  return out + "\n]}\n";
}

base::Result<Snapshot> parse_snapshot(std::string_view text) {
  json::ParseOptions options;
  options.bytes_max = kBytesMax;
  TS_TRY(const Value root, json::parse(text, options));
  TS_TRY_STATUS(check_header(root));
  Snapshot out;
  const auto taken = base::parse_rfc3339(root["taken"].as_string());
  if (!taken)
    return base::error(Code::kInvalid, "taken: {} is no time such as 2026-11-30T09:27:03Z",
                       root["taken"].dump());
  out.taken = *taken;
  out.server = root["server"].str();
  TS_TRY(out.scheduler_names, texts(root, "schedulerNames"));
  TS_TRY(out.left_out, texts(root, "leftOut"));
  std::set<std::string> seen;
  for (const Value& item : root["objects"].items()) {
    const Object object(item);
    TS_TRY_STATUS(check_object(object, out.objects.size(), seen));
    out.objects.push_back(object);
  }
  return out;
}

bool VolumeObjects::put(const Object& object) {
  const std::string_view kind = object.kind();
  Objects* into = kind == "Node"                    ? &nodes
                  : kind == "PersistentVolumeClaim" ? &claims
                  : kind == "PersistentVolume"      ? &volumes
                  : kind == "StorageClass"          ? &classes
                                                    : nullptr;
  if (into == nullptr) return false;
  (*into)[object.key()] = object;
  return true;
}

void VolumeObjects::consider(Model& model, base::Time now) const {
  for (const std::string& key : std::set<std::string>(model.with_claims())) {
    const PodEntry* pod = model.find(key);
    if (pod == nullptr) continue;
    VolumeNeeds needs = volume_needs({claims, volumes, classes}, pod->object, nodes,
                                     model.engine().cluster().names());
    if (needs.problem.empty()) model.set_volumes(key, std::move(needs.rules), now);
    model.set_hold(key, std::move(needs.problem), now);
  }
}

void tell(Model& model, VolumeObjects& volumes, const Object& object, base::Time now) {
  const bool there = volumes.put(object);
  if (object.kind() == "Node") {
    model.on_node(object, object.name(), now);
  } else if (object.kind() == "Pod") {
    model.on_pod(object.key(), object, now);
  } else if (!there) {
    const Object before =
        model.object(group_of(object.api_version()), object.kind(), object.ns(), object.name());
    model.on_object(before, object, now);
  }
}

Model model_of(const Snapshot& snapshot, ModelOptions options, base::Time now,
               VolumeObjects* volumes) {
  Model model(std::move(options));
  VolumeObjects own;
  VolumeObjects& around = volumes != nullptr ? *volumes : own;
  // Pods last: what they are read with is there by then.
  for (const bool pods : {false, true}) {
    for (const Object& object : snapshot.objects) {
      if ((object.kind() == "Pod") == pods) tell(model, around, object, now);
    }
  }
  model.settle_found(now);
  around.consider(model, now);
  return model;
}

}  // namespace tessera::scheduler
