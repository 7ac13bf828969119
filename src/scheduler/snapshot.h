// What the scheduler knows of a cluster, as one file: for questions asked elsewhere, later, or by somebody who may not look.
//
// Shape:   JSON, one object a line:
//            {"format": "tessera-snapshot", "version": 1, "taken": TIME, "server": "v1.36.3", "schedulerNames": [...],
//             "leftOut": ["jobs.batch: ..."], "objects": [OBJECT, ...]}
//          Objects hold the fields that the Model reads (snapshot_fields.h) and no others: no env, no commands, no secrets,
//          no annotations of others. Labels of nodes, pods and volumes, names and selectors are in it, as they are read.
//          model_of() makes the Model that a scheduler with these objects would have.
// Errors:  parse_snapshot: kBadRequest or kInvalid, naming the field and the mend. What is not known is refused.
// Threads: pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "scheduler/model.h"
#include "scheduler/pod_volumes.h"

namespace tessera::scheduler {

inline constexpr int64_t kSnapshotVersion = 1;

struct Snapshot {
  base::Time taken{};
  std::string server{};
  std::vector<std::string> scheduler_names{};  // that tessera serves there
  std::vector<std::string> left_out{};         // kinds that could not be read, and why
  std::vector<kube::Object> objects{};

  // Keeps what is read of it; what is of no kind that is kept is passed over.
  void add(const kube::Object& object);
};

// Names whose pods carry what only tessera writes, and "tessera".
std::vector<std::string> served_names(const std::vector<kube::Object>& pods);

std::string to_text(const Snapshot& snapshot);
base::Result<Snapshot> parse_snapshot(std::string_view text);

// The objects around pods that volumes are chosen from.
struct VolumeObjects {
  Objects nodes{};
  Objects claims{};
  Objects volumes{};
  Objects classes{};
  // An object of these kinds; one without a spec or provisioner of its own is gone. False: it is of another kind.
  bool put(const kube::Object& object);
  // What the claims of waiting pods ask of nodes becomes part of the model.
  void consider(Model& model, base::Time now) const;
};

// Tells the model of one object, whatever its kind.
void tell(Model& model, VolumeObjects& volumes, const kube::Object& object, base::Time now);
Model model_of(const Snapshot& snapshot, ModelOptions options, base::Time now,
               VolumeObjects* volumes = nullptr);

}  // namespace tessera::scheduler
