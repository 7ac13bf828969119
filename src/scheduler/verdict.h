// Why a job waits, as it is stored and shown: what binds it, what is nearest, what would mend it, and when it will start.
//
// Shape:   verdict_of() reads one gang of the engine; to_json() is what annotation tessera.dev/verdict of one of its waiting
//          pods holds (compact, at most kVerdictBytesMax: names and lists are cut, never the reason); to_text() is for a human.
//          Nothing in it moves with the clock alone, so that an unchanged state writes an unchanged annotation.
// Units:   amounts as users write them ("2.5", "500Mi"); times in whole seconds.
// Errors:  verdict_of never fails: what a verdict points at may be gone by now, and then it says so. parse_verdict answers
//          kBadRequest with the field.
// Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "scheduler/queueing/engine.h"

namespace tessera::scheduler {

inline constexpr std::string_view kVerdictAnnotation = "tessera.dev/verdict";
inline constexpr size_t kVerdictBytesMax = 2000;

// The first thing that binds. What does not apply is empty.
struct Constraint {
  std::string queue{};     // whose limit, or which queue is closed
  std::string resource{};  // "gpu", "gpu/H100", "memory"; "members" where pods are counted
  std::string need{};
  std::string have{};         // room left, or what there is
  std::string limit{};        // of the queue
  std::string job{};          // "namespace/name" of the one that goes first
  std::string reservation{};  // whose capacity it would take
  bool operator==(const Constraint&) const = default;
};

struct Verdict {
  std::string job{};  // "namespace/name"
  std::string queue{};
  std::string reason{};    // name_of(queueing::WaitReason), for tools
  std::string sentence{};  // for people
  Constraint constraint{};
  std::string nearest_node{};   // the node that comes nearest to holding a member
  std::string nearest_short{};  // what it is short of: "2 nvidia.com/gpu, 500m cpu"
  bool never = false;  // as things stand waiting will not help: something has to be changed
  std::vector<std::string> mends{};  // what has to become free, or to be done
  int64_t position = 0;              // jobs of its queue that are tried before it
  std::optional<base::Time> planned_start{};
  bool estimated = false;  // planned_start holds only if others end when they are expected to
  std::vector<std::string> planned_nodes{};
  int64_t planned_nodes_more = 0;  // beyond those named
  int64_t members = 0;             // pods that exist
  int64_t min_members = 0;
  int64_t placed = 0;
  base::Time since{};
  bool operator==(const Verdict&) const = default;
};

// A gang that does not wait has reason "None" and no sentence.
Verdict verdict_of(const queueing::Engine& engine, queueing::GangId id, base::Time now);

json::Value to_json(const Verdict& verdict);
base::Result<Verdict> parse_verdict(const json::Value& value);
// Several lines, each ended by a line feed.
std::string to_text(const Verdict& verdict);

}  // namespace tessera::scheduler
