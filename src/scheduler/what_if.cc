#include "scheduler/what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "scheduler/group_reading.h"
#include "scheduler/pod_makers.h"
#include "scheduler/what_if_world.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using json::Value;
using kube::Object;

PodMaker maker_for(const WhatIfWorld& world, const Changes& changes,
                   const std::vector<std::string>& names) {
  PodMaker::Options out;
  out.ns = changes.ns;
  out.now = world.now();
  const bool ours = std::ranges::find(names, "default-scheduler") != names.end();
  if (!ours && !names.empty()) out.scheduler_name = names.front();
  out.priority_class = [&world](std::string_view name) {
    return world.find("scheduling.k8s.io", "PriorityClass", "", name);
  };
  for (const Object& known : world.priority_classes()) {
    if (known["globalDefault"].as_bool()) out.default_priority_class = known;
  }
  for (const auto& [name, node] : world.nodes()) out.nodes.push_back(name);
  return PodMaker(std::move(out));
}

// One that is there already is made anew.
void remove_old(const Made& made, WhatIfWorld& world, std::vector<std::string>& notes) {
  std::set<std::string> gone;
  std::set<std::string> uids;
  for (const Object& object : made.objects) {
    const Object old =
        world.find(group_of(object.api_version()), object.kind(), object.ns(), object.name());
    if (old && !old.uid().empty()) uids.emplace(old.uid());
  }
  if (uids.empty() && std::ranges::none_of(made.pods, [&](const Object& p) {
        return world.pods().contains(p.key());
      }))
    return;
  // Through what stands in between, such as a ReplicaSet of the Deployment.
  const GroupSources sources = world.model().sources();
  for (const auto& [key, pod] : world.pods()) {
    for (const Value& owner : pod.metadata()["ownerReferences"].items()) {
      bool theirs = uids.contains(owner["uid"].str());
      const Object parent =
          sources.object(group_of(owner["apiVersion"].as_string()), owner["kind"].as_string(),
                         pod.ns(), owner["name"].as_string());
      for (const Value& above : parent.metadata()["ownerReferences"].items())
        theirs |= uids.contains(above["uid"].str());
      if (theirs) gone.insert(key);
    }
  }
  for (const Object& pod : made.pods) {
    if (world.pods().contains(pod.key())) gone.insert(pod.key());
  }
  if (gone.empty()) return;
  notes.push_back(
      fmt::format("{} is there already: it is planned as deleted, with {} {}, and "
                  "created anew",
                  made.title, gone.size(), gone.size() == 1 ? "pod" : "pods"));
  for (const std::string& key : gone) world.remove(key);
}

// The pods of one manifest, by their job: those of a group that has others too stand under its name.
struct NewPod {
  std::string key{};
  std::string title{};
};

base::Result<std::vector<NewPod>> create(const Changes& changes, const WhatIfOptions& options,
                                         WhatIfWorld& world, std::vector<std::string>& notes) {
  std::vector<NewPod> out;
  // Classes are there before the pods that name them.
  for (const Value& manifest : changes.manifests) {
    if (manifest["kind"].as_string() == "PriorityClass") world.put(Object(manifest));
  }
  PodMaker maker = maker_for(world, changes, options.model.names);
  std::vector<Object> pods;
  for (const Value& manifest : changes.manifests) {
    Made made = maker.make(manifest);
    if (!made.problem.empty())
      return base::error(Code::kInvalid, "{}: {}", made.title.empty() ? "a manifest" : made.title,
                         made.problem);
    notes.insert(notes.end(), made.notes.begin(), made.notes.end());
    remove_old(made, world, notes);
    for (const Object& object : made.objects) world.put(object);
    for (const Object& pod : made.pods) {
      out.push_back({pod.key(), made.title});
      pods.push_back(pod);
    }
  }
  std::set<std::string> others;
  for (const Object& pod : pods) {
    const std::string name = pod.get("spec", "schedulerName").str();
    if (std::ranges::find(options.model.names, name) == options.model.names.end())
      others.insert(name);
    world.put(pod);
  }
  for (const std::string& name : others)
    notes.push_back(
        fmt::format("schedulerName \"{}\" is not one that tessera serves there ({}): "
                    "such pods are left to the other scheduler",
                    name, fmt::join(options.model.names, ", ")));
  return out;
}

void explain(const WhatIfWorld& world, const std::string& key, PlannedJob& out) {
  const Model& model = world.model();
  const PodEntry* pod = model.find(key);
  const GroupEntry* group = pod == nullptr ? nullptr : model.group_with(*pod);
  out.waiting.push_back(key);
  std::string problem;
  if (group != nullptr && pod->member.valid()) {
    Verdict verdict = verdict_of(model.engine(), group->gang, world.now());
    const bool known = std::ranges::any_of(
        out.verdicts, [&](const Verdict& other) { return other.sentence == verdict.sentence; });
    if (!verdict.sentence.empty()) {
      if (!known) out.verdicts.push_back(std::move(verdict));
      return;
    }
  }
  if (pod == nullptr) {
    problem = "its schedulerName is not one that tessera serves there";
  } else if (!pod->problem.empty() || !pod->hold.empty()) {
    problem = pod->problem.empty() ? pod->hold : pod->problem;
  } else if (!pod->object.get("spec", "schedulingGates").empty()) {
    problem = "scheduling gates keep it from every scheduler until they are taken off";
  } else {
    problem = model.why(*pod);
  }
  if (std::ranges::find(out.problems, problem) == out.problems.end())
    out.problems.push_back(problem);
}

PlannedPod placed_pod(const WhatIfWorld& world, const std::string& key) {
  const Object& pod = world.pods().find(key)->second;
  std::string gpus(pod.annotation("tessera.dev/gpus"));
  if (const std::string_view share = pod.annotation("tessera.dev/share-milli"); !share.empty())
    gpus += fmt::format(" ({}/1000 of each)", share);
  return {key, world.node_of(key), gpus};
}

std::vector<PlannedJob> jobs_of(const std::vector<NewPod>& pods, const WhatIfWorld& world) {
  std::vector<PlannedJob> out;
  std::map<std::string, size_t> index;
  for (const NewPod& pod : pods) {
    const PodEntry* entry = world.model().find(pod.key);
    const GroupEntry* group = entry == nullptr ? nullptr : world.model().group_with(*entry);
    std::string title = pod.title;
    if (group != nullptr && title.starts_with("Pod ") &&
        group->reading.dialect != Dialect::kAlone && group->reading.dialect != Dialect::kOwner)
      title = fmt::format("PodGroup {}", group->reading.spec.name);
    const auto [at, added] = index.emplace(title, out.size());
    if (added) out.push_back({title, {}, {}, {}, {}});
    PlannedJob& job = out[at->second];
    if (world.node_of(pod.key).empty()) {
      explain(world, pod.key, job);
    } else {
      job.placed.push_back(placed_pod(world, pod.key));
    }
  }
  return out;
}

// What is different for pods that were there before.
void compare(const WhatIfWorld& before, const WhatIfWorld& after,
             const std::vector<NewPod>& new_pods, WhatIfAnswer& out) {
  std::set<std::string> added;
  for (const NewPod& pod : new_pods) added.insert(pod.key);
  for (const auto& [key, pod] : after.pods()) {
    if (added.contains(key) || !before.pods().contains(key)) continue;
    const std::string then = before.node_of(key);
    const std::string now = after.node_of(key);
    if (then.empty() == now.empty()) continue;
    if (then.empty()) out.start.push_back({key, now, {}});
    if (!now.empty()) continue;
    const PodEntry* entry = after.model().find(key);
    std::string why = entry == nullptr ? std::string() : after.model().why(*entry);
    if (why.empty() && entry != nullptr) why = entry->hold.empty() ? entry->problem : entry->hold;
    out.wait.push_back({key, then, why});
  }
  std::set<std::string> anyway;
  for (const PlannedEviction& each : before.evictions()) anyway.insert(each.pod);
  for (PlannedEviction each : after.evictions()) {
    if (anyway.contains(each.pod)) continue;
    if (each.comes_back) each.then = after.node_of(each.pod);
    out.evictions.push_back(std::move(each));
  }
}

}  // namespace

base::Result<WhatIfAnswer> what_if(const Snapshot& snapshot, const Changes& changes,
                                   const WhatIfOptions& options) {
  WhatIfAnswer out;
  WhatIfWorld before(snapshot, options);
  WhatIfWorld after = before;
  TS_TRY_STATUS(apply(changes, after, out.notes));
  TS_TRY(const std::vector<NewPod> pods, create(changes, options, after, out.notes));
  for (WhatIfWorld* world : {&before, &after}) {
    if (!world->settle())
      out.notes.push_back(
          fmt::format("{} the changes it does not come to rest within {} rounds: "
                      "what is told is where it stood then",
                      world == &before ? "without" : "with", kRoundsMax));
  }
  for (const std::string& kind : snapshot.left_out)
    out.notes.push_back(fmt::format("not in the snapshot: {}", kind));
  out.jobs = jobs_of(pods, after);
  compare(before, after, pods, out);
  return out;
}

}  // namespace tessera::scheduler
