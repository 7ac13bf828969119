#include "scheduler/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

constexpr size_t kTextShown = 40;

struct Source {
  Dialect dialect;
  bool (*read)(const PodContext& pod, Group& out, kube::Object& object);
};
constexpr Source kSources[] = {
    {Dialect::kKubernetes, read_kubernetes},
    {Dialect::kWorkload, read_workload},
    {Dialect::kVolcano, read_volcano},
    {Dialect::kPlugins, read_plugins},
    {Dialect::kKai, read_kai},
    {Dialect::kKueue,
     [](const PodContext& pod, Group& out, kube::Object&) { return read_kueue(pod, out); }},
    {Dialect::kOwner,
     [](const PodContext& pod, Group& out, kube::Object&) { return read_owner(pod, out); }},
};

void read_alone(const PodContext& pod, Group& out) {
  out = Group();
  out.key = fmt::format("Pod/{}/{}", pod.pod.key(), pod.pod.uid());
  out.object = {"v1", "Pod", std::string(pod.pod.ns()), std::string(pod.pod.name())};
}

// What the pod says in other words than those that count. An owner is no contradiction to a PodGroup of its own.
void note_conflict(const Group& winner, const Group& other, std::vector<std::string>& notes) {
  if (other.dialect == Dialect::kOwner) return;
  const bool same_name = winner.object.name == other.object.name;
  if (same_name && (!other.waits.empty() || winner.spec.min_members == other.spec.min_members))
    return;
  notes.push_back(
      same_name
          ? fmt::format("{} {} says a minimum of {}, {} says {}: the first counts; make them agree",
                        name_of(winner.dialect), winner.object.name, winner.spec.min_members,
                        name_of(other.dialect), other.spec.min_members)
          : fmt::format("the pod names {} {} and {} {}: the first counts; keep one of them",
                        name_of(winner.dialect), winner.object.name, name_of(other.dialect),
                        other.object.name));
}

base::Time created_of(const kube::Object& object, const kube::Object& pod) {
  for (const kube::Object* each : {&object, &pod}) {
    const auto time = base::parse_rfc3339(each->metadata()["creationTimestamp"].as_string());
    if (time) return *time;
  }
  return {};
}

// Where the group has no object of its own: that of the owner it is named after.
kube::Object object_behind(const PodContext& pod, const Group& group) {
  for (const Owner& owner : pod.owners) {
    if (owner.name == group.object) return owner.object;
  }
  return {};
}

}  // namespace

std::string_view name_of(Dialect dialect) {
  switch (dialect) {
    case Dialect::kKubernetes:
      return "PodGroup of scheduling.k8s.io";
    case Dialect::kWorkload:
      return "Workload of scheduling.k8s.io";
    case Dialect::kVolcano:
      return "PodGroup of scheduling.volcano.sh";
    case Dialect::kPlugins:
      return "PodGroup of scheduling.x-k8s.io";
    case Dialect::kKai:
      return "PodGroup of scheduling.run.ai";
    case Dialect::kKueue:
      return "pod group of kueue.x-k8s.io";
    case Dialect::kOwner:
      return "the owner";
    case Dialect::kAlone:
      return "the pod";
  }
  return "";
}

std::string_view group_of(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

std::string_view mark_of(const kube::Object& object, std::string_view key) {
  const std::string_view label = object.label(key);
  return label.empty() ? object.annotation(key) : label;
}

std::string_view PodContext::mark(std::string_view key) const {
  std::string_view found = mark_of(pod, key);
  for (size_t i = 0; found.empty() && i < owners.size(); ++i)
    found = mark_of(owners[i].object, key);
  return found;
}

kube::Object PodContext::find(std::string_view group, std::string_view kind,
                              std::string_view name) const {
  return sources.object ? sources.object(group, kind, pod.ns(), name) : kube::Object();
}

Count read_count(std::string_view text, std::string_view field) {
  int32_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec == std::errc() && end == text.data() + text.size() && value >= 0) return {value, {}};
  return {std::nullopt,
          fmt::format("{}: \"{}\" is no whole number from 0 to {}: give one", field,
                      text.substr(0, kTextShown), std::numeric_limits<int32_t>::max())};
}

Count read_count(const json::Value& value, std::string_view field) {
  if (value.is_null()) return {std::nullopt, fmt::format("{} is missing: give one", field)};
  const std::string text = value.is_string() ? value.str() : value.dump();
  return read_count(std::string_view(text), field);
}

void wait_with(Group& out, std::string why) {
  if (!out.waits.empty()) out.waits += "; ";
  out.waits += why;
}

Group read_group(const kube::Object& pod, const GroupSources& sources) {
  const PodContext context = context_of(pod, sources);
  Group out;
  kube::Object object;
  read_alone(context, out);
  if (!is_initializer(context)) {
    bool found = false;
    std::vector<std::string> conflicts;
    for (const Source& source : kSources) {
      Group group;
      group.dialect = source.dialect;
      kube::Object its_object;
      if (!source.read(context, group, its_object)) continue;
      if (found) {
        note_conflict(out, group, conflicts);
        continue;
      }
      found = true;
      out = std::move(group);
      object = std::move(its_object);
    }
    out.notes.insert(out.notes.end(), conflicts.begin(), conflicts.end());
  }
  out.spec.name = fmt::format("{}/{}", pod.ns(), out.object.name);
  const kube::Object behind = object ? object : object_behind(context, out);
  out.spec.created = created_of(behind, pod);
  read_terms(context, object, out);
  return out;
}

}  // namespace tessera::scheduler
