// Inside of model.h: what single objects say.
#pragma once

#include <string>

#include "base/time.h"
#include "kube/object.h"
#include "scheduler/groups.h"
#include "scheduler/queueing/engine.h"

namespace tessera::scheduler {

// When a bound pod was given its place; `otherwise` where it does not say.
base::Time started_at(const kube::Object& pod, base::Time otherwise);
// Its last checkpoint by annotation tessera.dev/checkpointed-at; the beginning of time where there is none.
base::Time saved_at(const kube::Object& pod);
// Nobody gains by evicting such a pod: a daemon's, a static one, or one without which the node or the cluster does not work.
bool never_a_victim(const kube::Object& pod);
// Members that must still start together, of `asked`, when some have finished well.
int32_t minimum_left(int32_t asked, int32_t succeeded, const kube::Object& job);
std::string evict_text(const queueing::Engine& engine, const queueing::Evict& evict);

// "group/kind/namespace/name".
std::string object_key(std::string_view group, std::string_view kind, std::string_view ns,
                       std::string_view name);
std::string object_key(const kube::Object& object);
// Group::key of the pods that name this PodGroup, in any dialect that has objects for it.
std::string pod_group_key(const kube::Object& pod_group);
std::string_view api_group_of(const kube::Object& object);

}  // namespace tessera::scheduler
