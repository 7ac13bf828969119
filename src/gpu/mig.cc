#include "gpu/mig.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace tessera::gpu {
namespace {

using base::Code;

template <class Visit>
void each_slot(const MigTable& table, uint64_t slots, Visit visit) {
  for (; slots != 0; slots &= slots - 1) {
    visit(table.slots[static_cast<size_t>(std::countr_zero(slots))]);
  }
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

}  // namespace

MigRule broken_rule(const MigTable& table, const MigCounts& counts) {
  using Kind = MigRule::Kind;
  int compute = 0;
  int memory = 0;
  int extended = 0;  // instances with the media extensions, of which a board has one set
  int users = 0;     // instances with any media engine
  bool all = false;
  for (size_t p = 0; p < table.profiles.size(); ++p) {
    const MigProfile& profile = table.profiles[p];
    if (counts[p] > profile.instances_max)
      return {Kind::kInstances, counts[p], profile.instances_max};
    compute += counts[p] * profile.compute_slices;
    memory += counts[p] * profile.memory_slices;
    if (profile.media != Media::kNone) users += counts[p];
    if (profile.media == Media::kExtended || profile.media == Media::kAll) extended += counts[p];
    all = all || (profile.media == Media::kAll && counts[p] > 0);
  }
  if (compute > table.compute_slices) return {Kind::kCompute, compute, table.compute_slices};
  if (memory > table.memory_slices) return {Kind::kMemory, memory, table.memory_slices};
  if (extended > 1) return {Kind::kOneExtended, extended, 1};
  if (all && users > 1) return {Kind::kNoMediaLeft, users, 1};
  return {};
}

std::string to_text(const MigRule& rule) {
  switch (rule.kind) {
    case MigRule::Kind::kInstances:
      return fmt::format("{} instances asked, at most {}", rule.asked, rule.limit);
    case MigRule::Kind::kCompute:
      return fmt::format("{} of {} compute slices asked", rule.asked, rule.limit);
    case MigRule::Kind::kMemory:
      return fmt::format("{} of {} memory slices asked", rule.asked, rule.limit);
    case MigRule::Kind::kOneExtended:
      return "only one instance may have the media extensions";
    case MigRule::Kind::kNoMediaLeft:
      return "an instance with all media engines leaves none for others; take -me profiles beside "
             "it";
    case MigRule::Kind::kNone:
      break;
  }
  return "no start is free in any arrangement of the other instances";
}

MigCounts sum(const MigCounts& a, const MigCounts& b) {
  MigCounts both{};
  for (size_t p = 0; p < both.size(); ++p)
    both[p] = static_cast<uint8_t>(std::min(255, a[p] + b[p]));
  return both;
}

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
                       at.start, at.start + at.size - 1, model_->name, to_text(*this));
  }
  MigCounts more{};
  more[at.profile] = 1;
  if (const MigRule rule = broken_rule(table(), sum(counts(), more))) {
    return base::error(Code::kBusy, "{}: does not fit on {} beside {}: {}", name, model_->name,
                       to_text(*this), to_text(rule));
  }
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
  if (broken_rule(table(), sum(counts(), more))) return 0;
  const uint32_t taken = memory_mask();
  uint32_t starts = 0;
  for (const MigSlot& slot : table().slots) {
    if (slot.profile == profile && (slot.memory_mask & taken) == 0)
      starts |= uint32_t{1} << slot.start;
  }
  return starts;
}

std::optional<MigLayout> fit_counts(const MigLayout& base, const MigCounts& more) {
  for (size_t p = base.table().profiles.size(); p < more.size(); ++p) {
    if (more[p] != 0) return std::nullopt;
  }
  if (broken_rule(base.table(), sum(base.counts(), more))) return std::nullopt;
  const auto found = Search(base.table(), base.memory_mask(), more).run();
  if (!found) return std::nullopt;
  MigLayout layout = base;
  layout.slots_ |= *found;
  return layout;
}

std::string to_text(const MigLayout& layout) {
  std::string text;
  for (const MigPlacement& place : layout.placements()) {
    text +=
        fmt::format("{}{} at {}", text.empty() ? "" : ", ",
                    layout.table().profiles[static_cast<size_t>(place.profile)].name, place.start);
  }
  return text;
}

}  // namespace tessera::gpu
