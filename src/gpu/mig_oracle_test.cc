// The search of MIG layouts against every layout there is, found by another road.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/random.h"
#include "gpu/mig.h"

namespace tessera::gpu {
namespace {

// Every valid layout of a model, found by walking the memory slices: at each one nothing starts or
// one of the profiles.
class Oracle {
 public:
  explicit Oracle(const Model& model) : table_(*model.mig) { walk(0, 0, {}); }

  const std::vector<uint64_t>& layouts() const { return layouts_; }
  bool some(const MigCounts& counts) const { return multisets_.contains(counts); }
  // A layout that contains `base` and has exactly these counts.
  bool extends(uint64_t base, const MigCounts& counts) const {
    for (size_t i = 0; i < layouts_.size(); ++i) {
      if ((layouts_[i] & base) == base && counts_[i] == counts) return true;
    }
    return false;
  }

 private:
  bool valid(const MigCounts& counts) const {
    int compute = 0;
    int extended = 0;
    int all = 0;
    int media = 0;
    for (size_t p = 0; p < table_.profiles.size(); ++p) {
      const MigProfile& profile = table_.profiles[p];
      if (counts[p] > profile.instances_max) return false;
      compute += counts[p] * profile.compute_slices;
      if (profile.name.find("+me") != std::string_view::npos) extended += counts[p];
      if (profile.media == Media::kAll) all += counts[p];
      if (!profile.name.ends_with("-me")) media += counts[p];
    }
    return compute <= table_.compute_slices && extended <= 1 && (all == 0 || media == 1);
  }

  void walk(int slice, uint64_t slots, MigCounts counts) {
    if (slice == table_.memory_slices) {
      if (!valid(counts)) return;
      layouts_.push_back(slots);
      counts_.push_back(counts);
      multisets_.insert(counts);
      return;
    }
    walk(slice + 1, slots, counts);
    for (size_t s = 0; s < table_.slots.size(); ++s) {
      if (table_.slots[s].start != slice) continue;
      MigCounts more = counts;
      ++more[table_.slots[s].profile];
      walk(slice + table_.slots[s].size, slots | uint64_t{1} << s, more);
    }
  }

  const MigTable& table_;
  std::vector<uint64_t> layouts_;
  std::vector<MigCounts> counts_;
  std::set<MigCounts> multisets_;
};

// One model a grid: the others of the grid have the same shapes.
std::vector<const Model*> grids() {
  std::vector<const Model*> list;
  for (const char* name : {"A100-40", "A30", "RTX-PRO-6000"}) list.push_back(find_model(name));
  return list;
}

MigLayout layout_of(const Model& model, uint64_t slots) {
  MigLayout layout(model);
  for (uint64_t rest = slots; rest != 0; rest &= rest - 1) {
    const MigSlot& slot = model.mig->slots[static_cast<size_t>(std::countr_zero(rest))];
    EXPECT_TRUE(layout.add(slot.profile, slot.start));
  }
  return layout;
}

TEST(MigOracle, Fit_agrees_for_every_multiset_of_every_grid) {
  for (const Model* model : grids()) {
    const Oracle oracle(*model);
    const size_t profiles = model->mig->profiles.size();
    const MigLayout empty(*model);
    MigCounts counts{};
    uint64_t checked = 0;
    while (true) {
      const auto found = fit_counts(empty, counts);
      ASSERT_EQ(found.has_value(), oracle.some(counts)) << model->name << " multiset " << checked;
      if (found) {
        ASSERT_EQ(found->counts(), counts);
      }
      ++checked;
      size_t p = 0;
      while (p < profiles && counts[p] == model->mig->profiles[p].instances_max) counts[p++] = 0;
      if (p == profiles) break;
      ++counts[p];
    }
    EXPECT_GE(checked, 120U);
  }
}

TEST(MigOracle, Fit_agrees_for_random_multisets_on_every_model) {
  base::Random random(7);
  for (const Model& model : models()) {
    if (model.mig == nullptr) continue;
    const Oracle oracle(model);
    for (int round = 0; round < 2000; ++round) {
      MigCounts counts{};
      const uint64_t draws = random.below(9);
      for (uint64_t i = 0; i < draws; ++i) ++counts[random.below(model.mig->profiles.size())];
      const auto found = fit_counts(MigLayout(model), counts);
      ASSERT_EQ(found.has_value(), oracle.some(counts)) << model.name << " round " << round;
    }
  }
}

TEST(MigOracle, Fit_beside_running_instances_moves_none_and_misses_nothing) {
  base::Random random(11);
  for (const Model* model : grids()) {
    const Oracle oracle(*model);
    for (int round = 0; round < 400; ++round) {
      const MigLayout base =
          layout_of(*model, oracle.layouts()[random.below(oracle.layouts().size())]);
      MigCounts more{};
      const uint64_t draws = 1 + random.below(3);
      for (uint64_t i = 0; i < draws; ++i) ++more[random.below(model->mig->profiles.size())];
      MigCounts both = base.counts();
      for (size_t p = 0; p < both.size(); ++p) both[p] = static_cast<uint8_t>(both[p] + more[p]);
      const auto found = fit_counts(base, more);
      ASSERT_EQ(found.has_value(), oracle.extends(base.slots(), both))
          << model->name << " round " << round;
      if (found) {
        ASSERT_EQ(found->slots() & base.slots(), base.slots());
      }
    }
  }
}

// Size of the largest profile that could still be added; 0: none.
int largest_next(const MigLayout& layout) {
  int largest = 0;
  for (size_t p = 0; p < layout.table().profiles.size(); ++p) {
    if (layout.free_starts(static_cast<int>(p)) == 0) continue;
    largest = std::max<int>(largest, layout.table().profiles[p].compute_slices);
  }
  return largest;
}

TEST(MigOracle, Best_placement_never_costs_the_largest_next_profile) {
  base::Random random(13);
  for (const Model* model : grids()) {
    const Oracle oracle(*model);
    for (int round = 0; round < 300; ++round) {
      const MigLayout base =
          layout_of(*model, oracle.layouts()[random.below(oracle.layouts().size())]);
      const auto profile = static_cast<int>(random.below(model->mig->profiles.size()));
      const auto best = best_placement(base, profile);
      ASSERT_EQ(best.has_value(), base.free_starts(profile) != 0);
      if (!best) continue;
      int most = 0;
      int chosen = -1;
      for (int start = 0; start < model->mig->memory_slices; ++start) {
        MigLayout with = base;
        if (!with.add(profile, start)) continue;
        most = std::max(most, largest_next(with));
        if (start == best->start) chosen = largest_next(with);
      }
      EXPECT_EQ(chosen, most) << model->name << " round " << round;
    }
  }
}

// Where a board's engines are known, no valid layout asks for more of them than the whole board
// has.
TEST(MigOracle, Valid_layouts_keep_within_the_media_engines) {
  for (const char* name : {"H100-80", "H200", "RTX-PRO-6000"}) {
    const Model& model = *find_model(name);
    const auto whole = std::ranges::max_element(
        model.mig->profiles, {}, [](const MigProfile& profile) { return profile.memory_slices; });
    const Oracle oracle(model);
    for (const uint64_t slots : oracle.layouts()) {
      int decoder = 0;
      int jpeg = 0;
      int ofa = 0;
      for (const MigPlacement& place : layout_of(model, slots).placements()) {
        const Engines& engines = model.mig->profiles[static_cast<size_t>(place.profile)].engines;
        decoder += engines.decoder;
        jpeg += engines.jpeg;
        ofa += engines.ofa;
      }
      ASSERT_LE(decoder, whole->engines.decoder) << name << " " << slots;
      ASSERT_LE(jpeg, whole->engines.jpeg) << name << " " << slots;
      ASSERT_LE(ofa, whole->engines.ofa) << name << " " << slots;
    }
  }
}

}  // namespace
}  // namespace tessera::gpu
