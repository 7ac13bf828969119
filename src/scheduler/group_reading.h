// Inside of groups.h: the pod with its owners, and the steps that fill in a Group.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/groups.h"

namespace tessera::scheduler {

struct Owner {
  ObjectName name{};
  std::string uid{};
  kube::Object object{};  // empty where it is not known
};

// A pod and what stands above it: owners from the nearest up.
struct PodContext {
  const kube::Object& pod;
  const GroupSources& sources;
  std::vector<Owner> owners{};
  kube::Object ns{};

  kube::Object find(std::string_view group, std::string_view kind, std::string_view name) const;
  // The label or annotation of the pod, else of its nearest owner that has it.
  std::string_view mark(std::string_view key) const;
};
PodContext context_of(const kube::Object& pod, const GroupSources& sources);

// The label, or the annotation of that name.
std::string_view mark_of(const kube::Object& object, std::string_view key);
std::string_view group_of(std::string_view api_version);

// A whole number from 0 to int32's end, as JSON or text; the problem says "field: what is wrong: the mend".
struct Count {
  std::optional<int32_t> value{};
  std::string problem{};
};
Count read_count(const json::Value& value, std::string_view field);
Count read_count(std::string_view text, std::string_view field);

// The pods that an owner makes at one time, where that can be told. For a LeaderWorkerSet: of one of its groups.
// Nothing for a TrainJob, whose JobSet says it.
std::optional<int64_t> pods_of(const Owner& owner);
// What its pods call their roles by, "" where there are none.
std::string_view role_label(std::string_view kind);

// Steps of a TrainJob before the training itself: they run before its gang and are none of it.
bool is_initializer(const PodContext& pod);
// Pods of such steps that the owners make.
int64_t initializers_of(const PodContext& pod);

// "field: why", behind what is there already.
void wait_with(Group& out, std::string why);

// Fills in key, object, minimum, sub-groups and what else the group's own object says. False: the pod names no such group.
// `object` becomes the group as it was found, or stays empty.
bool read_kubernetes(const PodContext& pod, Group& out, kube::Object& object);
bool read_workload(const PodContext& pod, Group& out, kube::Object& object);
bool read_volcano(const PodContext& pod, Group& out, kube::Object& object);
bool read_plugins(const PodContext& pod, Group& out, kube::Object& object);
bool read_kai(const PodContext& pod, Group& out, kube::Object& object);
bool read_kueue(const PodContext& pod, Group& out);
bool read_owner(const PodContext& pod, Group& out);

// Queue, priority, time limit and who may evict whom. `object` is the group's own, or empty.
void read_terms(const PodContext& pod, const kube::Object& object, Group& out);
// Slurm's ways to write a time: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S; nothing for 0 and for what is none of them.
std::optional<base::Duration> slurm_time(std::string_view text);

}  // namespace tessera::scheduler
