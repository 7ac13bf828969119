// MIG layouts: which instances stand where on one GPU, whether a set of profiles fits, where to put
// the next one.
//
// Shape:   a MigLayout is a set of slots (profile, start) of its model's table, kept as one 64-bit
//          mask; it is always valid: instances do not overlap on the memory slices, their compute
//          slices, media engines and numbers stay within the board. fit() searches all placements,
//          so it says no only where none exists.
// Errors:  kInvalid for what is no profile name; kNever where the model can never hold it; kBusy
//          where only the instances already there are in the way. Messages begin with the profile
//          and say which limit.
// Threads: plain values.
// Source:  NVIDIA MIG user guide; nvidia-smi mig -lgipp; NVIDIA/mig-parted issues 18, 29, 100.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/catalog.h"

namespace tessera::gpu {

inline constexpr size_t kMigProfilesMax = 16;

// Instances of each profile, by its index in MigTable::profiles.
using MigCounts = std::array<uint8_t, kMigProfilesMax>;
// Sums stop at 255.
MigCounts sum(const MigCounts& a, const MigCounts& b);

struct ProfileCount {
  std::string profile;
  int count = 0;
};

struct MigPlacement {
  int profile = 0;  // index in MigTable::profiles
  int start = 0;
  int size = 0;
  bool operator==(const MigPlacement&) const = default;
};

// A rule of a board that a multiset of instances breaks, wherever they would stand.
struct MigRule {
  enum class Kind : uint8_t { kNone, kInstances, kCompute, kMemory, kOneExtended, kNoMediaLeft };
  Kind kind = Kind::kNone;
  int asked = 0;
  int limit = 0;
  explicit operator bool() const { return kind != Kind::kNone; }
};

MigRule broken_rule(const MigTable& table, const MigCounts& counts);
std::string to_text(const MigRule& rule);

class MigLayout {
 public:
  // An empty layout. The model must be one that can be cut (Model::mig).
  explicit MigLayout(const Model& model);

  const Model& model() const { return *model_; }
  const MigTable& table() const { return *model_->mig; }
  // Bit i: MigTable::slots[i] is taken. The identity of a layout of a model.
  uint64_t slots() const { return slots_; }
  bool empty() const { return slots_ == 0; }
  uint32_t memory_mask() const;
  int compute_slices() const;
  MigCounts counts() const;
  std::vector<MigPlacement> placements() const;  // by start

  // kInvalid where the profile has no such start; kBusy where the instance breaks a rule.
  base::Status add(int profile, int start);
  // kNotFound where no such instance stands there.
  base::Status remove(int profile, int start);
  // Starts (bit s: slice s) where one more instance of the profile could stand now.
  uint32_t free_starts(int profile) const;

  bool operator==(const MigLayout&) const = default;

 private:
  friend std::optional<MigLayout> fit_counts(const MigLayout& base, const MigCounts& more);
  const Model* model_;
  uint64_t slots_ = 0;
};

// "2g.10gb at 0, 3g.20gb at 4".
std::string to_text(const MigLayout& layout);

// Index of a profile by its name; kNever with the names there are where the model lacks it.
base::Result<int> profile_index(const Model& model, std::string_view profile);

// A layout that keeps what stands in `base` and adds `more`; nothing where there is none. The fast
// path: no allocation.
std::optional<MigLayout> fit_counts(const MigLayout& base, const MigCounts& more);
// The same by name, with the reason: the error names the first profile, in the order given, that no
// longer fits.
base::Result<MigLayout> fit(const MigLayout& base, std::span<const ProfileCount> more);
base::Result<MigLayout> fit(const Model& model, std::span<const ProfileCount> wanted);

// Where to put one more instance so that the most room stays for the largest profiles: of all
// starts the one after which most instances of the largest profile still fit, then of the next, and
// so on; then the highest start.
base::Result<MigPlacement> best_placement(const MigLayout& layout, int profile);

// What one device of a node is to look like.
struct DeviceWish {
  int device = 0;
  const Model* model = nullptr;
  bool mig_enabled = false;
  std::vector<ProfileCount> profiles;
};

struct DeviceLayout {
  int device = 0;
  std::optional<MigLayout> layout;  // nothing: MIG is off
};

// Decides for a whole node before anything is touched: the layouts of all devices, or one error
// whose causes name each device that cannot be cut so (field "devices[1]"); its message is that of
// the first.
base::Result<std::vector<DeviceLayout>> plan_node(std::span<const DeviceWish> wishes);

}  // namespace tessera::gpu
