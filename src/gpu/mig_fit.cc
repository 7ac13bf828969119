#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "gpu/mig.h"
#include "gpu/mig_name.h"

namespace tessera::gpu {
namespace {

using base::Code;

constexpr int kCountMax = 64;  // more instances than any board holds; keeps sums small

std::string profile_list(const MigTable& table) {
  std::string list;
  for (const MigProfile& profile : table.profiles) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", profile.name);
  }
  return list;
}

// Why `more` does not fit beside `base`, where its last instance is the one too many.
tl::unexpected<base::Error> refusal(const MigLayout& base, const MigCounts& more,
                                    std::string_view profile) {
  const std::string on = base.empty() ? "" : fmt::format(" beside {}", to_text(base));
  const MigRule rule = broken_rule(base.table(), sum(base.counts(), more));
  return base::error(base.empty() ? Code::kNever : Code::kBusy, "{}: does not fit on {}{}: {}",
                     profile, base.model().name, on, to_text(rule));
}

// The same for one instance of one profile, told as kNever where an empty GPU would not take it.
tl::unexpected<base::Error> refusal(const MigLayout& base, int profile) {
  MigCounts one{};
  one[static_cast<size_t>(profile)] = 1;
  const MigLayout empty(base.model());
  return refusal(fit_counts(empty, one) ? base : empty, one,
                 base.table().profiles[static_cast<size_t>(profile)].name);
}

// The profiles from the largest to the smallest.
std::vector<uint8_t> by_size(const MigTable& table) {
  std::vector<uint8_t> order;
  for (size_t p = 0; p < table.profiles.size(); ++p) order.push_back(static_cast<uint8_t>(p));
  const auto rank = [&](uint8_t p) {
    const MigProfile& profile = table.profiles[p];
    return std::tuple(-profile.compute_slices, -profile.memory_slices, p);
  };
  std::ranges::sort(order, {}, rank);
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

// The wanted instances as profile indices, in the order given, and how many of each.
struct Wanted {
  std::vector<std::pair<int, int>> items;
  MigCounts counts{};
};

base::Result<Wanted> read_counts(const Model& model, std::span<const ProfileCount> list) {
  Wanted wanted;
  for (const ProfileCount& item : list) {
    TS_TRY(const int profile, profile_index(model, item.profile));
    uint8_t& count = wanted.counts[static_cast<size_t>(profile)];
    if (item.count < 0) {
      return base::error(Code::kInvalid, "{}: count {} is below zero", item.profile, item.count);
    }
    if (item.count > kCountMax - count) {
      return base::error(Code::kNever, "{}: does not fit on {}: {} instances asked, at most {}",
                         item.profile, model.name, int64_t{count} + item.count,
                         model.mig->profiles[static_cast<size_t>(profile)].instances_max);
    }
    wanted.items.emplace_back(profile, item.count);
    count = static_cast<uint8_t>(count + item.count);
  }
  return wanted;
}

// Adds one instance after the other until the first that does not fit.
tl::unexpected<base::Error> first_refusal(const MigLayout& base, const Wanted& wanted) {
  MigCounts prefix{};
  for (const auto& [profile, count] : wanted.items) {
    const auto p = static_cast<size_t>(profile);
    for (int k = 0; k < count; ++k) {
      ++prefix[p];
      if (!fit_counts(base, prefix)) return refusal(base, prefix, base.table().profiles[p].name);
    }
  }
  TS_CHECK(false, "the whole does not fit but each part does");
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

base::Result<MigLayout> fit(const MigLayout& base, std::span<const ProfileCount> more) {
  TS_TRY(const Wanted wanted, read_counts(base.model(), more));
  if (auto layout = fit_counts(base, wanted.counts)) return *layout;
  const MigLayout empty(base.model());
  return first_refusal(fit_counts(empty, wanted.counts) ? base : empty, wanted);
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
  return refusal(layout, profile);
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
