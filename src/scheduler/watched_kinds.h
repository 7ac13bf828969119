// Which kinds the scheduler reads beside nodes, pods and volumes, in which versions, and what of their objects.
//
// Shape:   one table. A kind is always there, or defined by a CustomResourceDefinition, or served where the API server was
//          told so. Versions stand in the order in which our readers like them. What owns pods is here as far as groups.h
//          reads its fields, or its labels and annotations.
// Threads: plain functions.
// Source:  as groups.h and queue_objects.h; LeaderWorkerSet 0.9, Kueue 0.19, KubeRay 1.7.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kube/object.h"

namespace tessera::scheduler {

enum class Served : uint8_t {
  kAlways,
  kByDefinition,  // while its CustomResourceDefinition is established
  kPerhaps,       // nothing says so but an answer
};

struct WatchedKind {
  std::string_view group;
  std::string_view kind;
  std::string_view resource;
  Served served;
  std::string_view versions[4];  // the best first; empty ones are none

  std::span<const std::string_view> known_versions() const;
  kube::Gvr gvr(std::string_view version) const;
  // "podgroups.scheduling.volcano.sh": the name of its definition, and as roles name it.
  std::string name() const;
};

std::span<const WatchedKind> watched_kinds();

// The version of the kind that is to be read by this definition; "" where there is none. A definition that is missing or
// not established serves nothing.
std::string_view version_of(const WatchedKind& kind, const kube::Object& definition);
// Versions that the definition serves, "v1, v2".
std::string served_versions(const kube::Object& definition);

// What is held of an object (`keep` of an informer): no bookkeeping, no pod template of a built-in kind.
kube::Object keep_object(kube::Object object);
// What version_of reads of a definition of a kind that is watched, nothing of others: their schemas are large.
kube::Object keep_definition(const kube::Object& definition);

}  // namespace tessera::scheduler
