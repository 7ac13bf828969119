#include "gpu/mig.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "gpu/mig_name.h"

namespace tessera::gpu {
namespace {

using base::Code;

constexpr int kCountMax = 64;  // more instances than any board holds; keeps sums small

template <class Visit>
void each_slot(const MigTable& table, uint64_t slots, Visit visit) {
  for (; slots != 0; slots &= slots - 1) {
    visit(table.slots[static_cast<size_t>(std::countr_zero(slots))]);
  }
}

// Rules that do not depend on where instances stand. Returns why not, or nothing.
std::optional<std::string> broken_total(const MigTable& table, const MigCounts& counts) {
  int compute = 0;
  int memory = 0;
  int extended = 0;  // instances with the media extensions, of which a board has one set
  int users = 0;     // instances with any media engine
  bool all = false;
  for (size_t p = 0; p < table.profiles.size(); ++p) {
    const MigProfile& profile = table.profiles[p];
    if (counts[p] > profile.instances_max) {
      return fmt::format("{} instances asked, at most {}", counts[p], profile.instances_max);
    }
    compute += counts[p] * profile.compute_slices;
    memory += counts[p] * profile.memory_slices;
    if (profile.media != Media::kNone) users += counts[p];
    if (profile.media == Media::kExtended || profile.media == Media::kAll) extended += counts[p];
    all = all || (profile.media == Media::kAll && counts[p] > 0);
  }
  if (compute > table.compute_slices) {
    return fmt::format("{} of {} compute slices asked", compute, table.compute_slices);
  }
  if (memory > table.memory_slices) {
    return fmt::format("{} of {} memory slices asked", memory, table.memory_slices);
  }
  if (extended > 1) return "only one instance may have the media extensions";
  if (all && users > 1) {
    return "an instance with all media engines leaves none for others; take -me profiles beside it";
  }
  return std::nullopt;
}

// Depth-first search over the memory slices: profiles with the largest instances first, each from
// its highest start, equal instances in falling order so that no arrangement is tried twice.
class Search {
 public:
  Search(const MigTable& table, uint32_t taken, const MigCounts& more)
      : table_(table), taken_(taken), left_(more) {
    for (size_t p = 0; p < table.profiles.size(); ++p) order_[p] = static_cast<uint8_t>(p);
    const auto size = [&](uint8_t p) { return table.profiles[p].memory_slices; };
    const auto end = order_.begin() + static_cast<ptrdiff_t>(table.profiles.size());
    std::sort(order_.begin(), end,
              [&](uint8_t a, uint8_t b) { return size(a) != size(b) ? size(a) > size(b) : a < b; });
    // Slots of one profile lie together, by start.
    for (size_t s = 0; s < table.slots.size(); ++s)
      last_slot_[table.slots[s].profile] = static_cast<int>(s);
  }

  std::optional<uint64_t> run() {
    if (descend(0, -1)) return found_;
    return std::nullopt;
  }

 private:
  bool descend(size_t at, int below) {
    while (at < table_.profiles.size() && left_[order_[at]] == 0) {
      ++at;
      below = -1;
    }
    if (at == table_.profiles.size()) return true;
    const uint8_t profile = order_[at];
    --left_[profile];
    for (int s = below < 0 ? last_slot_[profile] : below - 1; s >= 0; --s) {
      const MigSlot& slot = table_.slots[static_cast<size_t>(s)];
      if (slot.profile != profile) break;
      if ((slot.memory_mask & taken_) != 0) continue;
      taken_ |= slot.memory_mask;
      found_ |= uint64_t{1} << s;
      if (descend(at, s)) return true;
      taken_ &= ~slot.memory_mask;
      found_ &= ~(uint64_t{1} << s);
    }
    ++left_[profile];
    return false;
  }

  const MigTable& table_;
  uint32_t taken_;
  uint64_t found_ = 0;
  MigCounts left_;
  std::array<uint8_t, kMigProfilesMax> order_{};
  std::array<int, kMigProfilesMax> last_slot_{};
};

// Index in MigTable::slots, or -1.
int slot_of(const MigTable& table, int profile, int start) {
  for (size_t s = 0; s < table.slots.size(); ++s) {
    if (table.slots[s].profile == profile && table.slots[s].start == start)
      return static_cast<int>(s);
  }
  return -1;
}

std::string profile_list(const MigTable& table) {
  std::string list;
  for (const MigProfile& profile : table.profiles) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", profile.name);
  }
  return list;
}

std::string where(const MigLayout& layout) {
  std::string text;
  for (const MigPlacement& place : layout.placements()) {
    text +=
        fmt::format("{}{} at {}", text.empty() ? "" : ", ",
                    layout.table().profiles[static_cast<size_t>(place.profile)].name, place.start);
  }
  return text;
}

MigCounts sum(const MigCounts& a, const MigCounts& b) {
  MigCounts both{};
  for (size_t p = 0; p < both.size(); ++p)
    both[p] = static_cast<uint8_t>(std::min(255, a[p] + b[p]));
  return both;
}

// Why `more` does not fit, where its last instance is the one too many. kBusy where an empty GPU
// would take it.
tl::unexpected<base::Error> refusal(const MigLayout& base, const MigCounts& more,
                                    std::string_view profile) {
  const bool never = !fit_counts(MigLayout(base.model()), more);
  const Code code = never ? Code::kNever : Code::kBusy;
  const std::string on = never || base.empty() ? "" : fmt::format(" beside {}", where(base));
  const MigCounts all = never ? more : sum(base.counts(), more);
  const auto reason = broken_total(base.table(), all);
  return base::error(
      code, "{}: does not fit on {}{}: {}", profile, base.model().name, on,
      reason ? *reason : "no start is free in any arrangement of the other instances");
}

// The profiles from the largest to the smallest.
std::vector<uint8_t> by_size(const MigTable& table) {
  std::vector<uint8_t> order;
  for (size_t p = 0; p < table.profiles.size(); ++p) order.push_back(static_cast<uint8_t>(p));
  std::stable_sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) {
    const MigProfile& x = table.profiles[a];
    const MigProfile& y = table.profiles[b];
    return x.compute_slices != y.compute_slices ? x.compute_slices > y.compute_slices
                                                : x.memory_slices > y.memory_slices;
  });
  return order;
}

// How many instances of each profile, largest first, could still be added: compared as a list, more
// is better.
std::vector<int> room(const MigLayout& layout, std::span<const uint8_t> order) {
  std::vector<int> left;
  for (const uint8_t profile : order) {
    MigCounts more{};
    int most = 0;
    while (++more[profile] <= layout.table().profiles[profile].instances_max &&
           fit_counts(layout, more)) {
      ++most;
    }
    left.push_back(most);
  }
  return left;
}

base::Result<DeviceLayout> plan_device(const DeviceWish& wish) {
  if (!wish.mig_enabled) {
    if (!wish.profiles.empty()) {
      return base::error(Code::kInvalid,
                         "{}: MIG is off for this device; enable it or leave the profiles out",
                         wish.profiles.front().profile);
    }
    return DeviceLayout{wish.device, std::nullopt};
  }
  TS_TRY(MigLayout layout, fit(*wish.model, wish.profiles));
  return DeviceLayout{wish.device, layout};
}

}  // namespace

MigLayout::MigLayout(const Model& model) : model_(&model) {
  TS_CHECK(model.mig != nullptr, "{} has no MIG", model.name);
}

uint32_t MigLayout::memory_mask() const {
  uint32_t mask = 0;
  each_slot(table(), slots_, [&](const MigSlot& slot) { mask |= slot.memory_mask; });
  return mask;
}

int MigLayout::compute_slices() const {
  int slices = 0;
  each_slot(table(), slots_,
            [&](const MigSlot& slot) { slices += table().profiles[slot.profile].compute_slices; });
  return slices;
}

MigCounts MigLayout::counts() const {
  MigCounts counts{};
  each_slot(table(), slots_, [&](const MigSlot& slot) { ++counts[slot.profile]; });
  return counts;
}

std::vector<MigPlacement> MigLayout::placements() const {
  std::vector<MigPlacement> list;
  each_slot(table(), slots_,
            [&](const MigSlot& slot) { list.push_back({slot.profile, slot.start, slot.size}); });
  std::ranges::sort(list, {}, &MigPlacement::start);
  return list;
}

base::Status MigLayout::add(int profile, int start) {
  const int slot = slot_of(table(), profile, start);
  if (slot < 0) {
    return base::error(Code::kInvalid, "no profile {} starts at memory slice {} on {}", profile,
                       start, model_->name);
  }
  const MigSlot& at = table().slots[static_cast<size_t>(slot)];
  const std::string_view name = table().profiles[at.profile].name;
  if ((at.memory_mask & memory_mask()) != 0) {
    return base::error(Code::kBusy, "{}: memory slices {} to {} of {} are taken by {}", name,
                       at.start, at.start + at.size - 1, model_->name, where(*this));
  }
  MigCounts more{};
  more[at.profile] = 1;
  if (broken_total(table(), sum(counts(), more))) return refusal(*this, more, name);
  slots_ |= uint64_t{1} << slot;
  return {};
}

base::Status MigLayout::remove(int profile, int start) {
  const int slot = slot_of(table(), profile, start);
  if (slot < 0 || (slots_ >> slot & 1) == 0) {
    return base::error(Code::kNotFound,
                       "no instance of profile {} stands at memory slice {} of this {}", profile,
                       start, model_->name);
  }
  slots_ &= ~(uint64_t{1} << slot);
  return {};
}

uint32_t MigLayout::free_starts(int profile) const {
  if (profile < 0 || static_cast<size_t>(profile) >= table().profiles.size()) return 0;
  MigCounts more{};
  more[static_cast<size_t>(profile)] = 1;
  if (broken_total(table(), sum(counts(), more))) return 0;
  const uint32_t taken = memory_mask();
  uint32_t starts = 0;
  for (const MigSlot& slot : table().slots) {
    if (slot.profile == profile && (slot.memory_mask & taken) == 0)
      starts |= uint32_t{1} << slot.start;
  }
  return starts;
}

base::Result<int> profile_index(const Model& model, std::string_view profile) {
  if (model.mig == nullptr) {
    return base::error(Code::kNever, "{}: {} cannot be cut by MIG", profile.substr(0, 64),
                       model.name);
  }
  TS_TRY(const ProfileName name, parse_profile_name(profile));
  const std::string text = to_text(name);
  const auto& profiles = model.mig->profiles;
  const auto at = std::ranges::find(profiles, std::string_view(text), &MigProfile::name);
  if (at == profiles.end()) {
    return base::error(Code::kNever, "{}: no such profile on {}; it has {}", text, model.name,
                       profile_list(*model.mig));
  }
  return static_cast<int>(at - profiles.begin());
}

std::optional<MigLayout> fit_counts(const MigLayout& base, const MigCounts& more) {
  for (size_t p = base.table().profiles.size(); p < more.size(); ++p) {
    if (more[p] != 0) return std::nullopt;
  }
  if (broken_total(base.table(), sum(base.counts(), more))) return std::nullopt;
  const auto found = Search(base.table(), base.memory_mask(), more).run();
  if (!found) return std::nullopt;
  MigLayout layout = base;
  layout.slots_ |= *found;
  return layout;
}

base::Result<MigLayout> fit(const MigLayout& base, std::span<const ProfileCount> more) {
  MigCounts counts{};
  std::vector<int> indices;
  for (const ProfileCount& item : more) {
    TS_TRY(const int profile, profile_index(base.model(), item.profile));
    const int before = counts[static_cast<size_t>(profile)];
    if (item.count < 0) {
      return base::error(Code::kInvalid, "{}: count {} is below zero", item.profile, item.count);
    }
    if (item.count > kCountMax || before + item.count > kCountMax) {
      return base::error(Code::kNever, "{}: does not fit on {}: {} instances asked, at most {}",
                         item.profile, base.model().name, int64_t{before} + item.count,
                         base.table().profiles[static_cast<size_t>(profile)].instances_max);
    }
    indices.push_back(profile);
    counts[static_cast<size_t>(profile)] = static_cast<uint8_t>(before + item.count);
  }
  if (auto layout = fit_counts(base, counts)) return *layout;
  MigCounts prefix{};
  for (size_t i = 0; i < more.size(); ++i) {
    for (int k = 0; k < more[i].count; ++k) {
      ++prefix[static_cast<size_t>(indices[i])];
      if (!fit_counts(base, prefix)) return refusal(base, prefix, more[i].profile);
    }
  }
  TS_CHECK(false, "the whole does not fit but each part does");
}

base::Result<MigLayout> fit(const Model& model, std::span<const ProfileCount> wanted) {
  if (model.mig == nullptr) {
    return base::error(Code::kNever, "{} cannot be cut by MIG; take MIG off for it", model.name);
  }
  return fit(MigLayout(model), wanted);
}

base::Result<MigPlacement> best_placement(const MigLayout& layout, int profile) {
  const MigTable& table = layout.table();
  if (profile < 0 || static_cast<size_t>(profile) >= table.profiles.size()) {
    return base::error(Code::kInvalid, "{} has no profile number {}", layout.model().name, profile);
  }
  const std::vector<uint8_t> order = by_size(table);
  const uint32_t starts = layout.free_starts(profile);
  std::optional<MigPlacement> best;
  std::vector<int> best_room;
  for (int start = table.memory_slices - 1; start >= 0; --start) {
    if ((starts >> start & 1) == 0) continue;
    MigLayout with = layout;
    if (!with.add(profile, start)) continue;
    std::vector<int> left = room(with, order);
    if (!best || left > best_room) {
      best =
          MigPlacement{profile, start, table.profiles[static_cast<size_t>(profile)].memory_slices};
      best_room = std::move(left);
    }
  }
  if (best) return *best;
  MigCounts more{};
  more[static_cast<size_t>(profile)] = 1;
  return refusal(layout, more, table.profiles[static_cast<size_t>(profile)].name);
}

base::Result<std::vector<DeviceLayout>> plan_node(std::span<const DeviceWish> wishes) {
  std::vector<DeviceLayout> layouts;
  base::Error problem{Code::kInvalid, "", {}};
  std::vector<int> seen;
  for (const DeviceWish& wish : wishes) {
    TS_CHECK(wish.model != nullptr, "device {} has no model", wish.device);
    base::Result<DeviceLayout> one = plan_device(wish);
    if (std::ranges::find(seen, wish.device) != seen.end()) {
      one = base::error(Code::kInvalid, "is named twice; give each device one layout");
    }
    seen.push_back(wish.device);
    if (one) {
      layouts.push_back(*one);
      continue;
    }
    const std::string message = fmt::format("device {}: {}", wish.device, one.error().message);
    if (problem.causes.empty()) {
      problem.code = one.error().code;
      problem.message = message;
    }
    problem.causes.push_back(
        {"FieldValueInvalid", message, fmt::format("devices[{}]", wish.device)});
  }
  if (!problem.causes.empty()) return base::error(std::move(problem));
  return layouts;
}

}  // namespace tessera::gpu
