// What is divided between queues: GPUs (all, and by model), cores, memory, and whatever else a quota names.
//
// Shape:   a Dim is a small integer given out by Dims; Amounts is a short sorted list of (Dim, amount); Totals is dense.
// Units:   GPUs in kUnitsPerGpu-ths of a device, so that a thousandth, a seventh, a quarter and an eighth of a device are all
//          exact: a 1g slice of an H100 counts 1000, the whole device 7000. Cores in thousandths, memory in MiB.
// Errors:  none: sums saturate (scheduler/core/amount.h) and never go below zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/core/amount.h"

namespace tessera::scheduler::queueing {

using Dim = uint32_t;
inline constexpr Dim kGpu = 0;
inline constexpr Dim kCpu = 1;
inline constexpr Dim kMemory = 2;
inline constexpr int64_t kUnitsPerGpu = 7000;
inline constexpr int64_t kUnlimited = core::kAmountMax;

class Amounts {
 public:
  Amounts() = default;
  Amounts(std::initializer_list<std::pair<Dim, int64_t>> items) {
    for (const auto& [dim, amount] : items) add(dim, amount);
  }
  void add(Dim dim, int64_t amount) {
    auto at = place(dim);
    if (at == items_.end() || at->first != dim) at = items_.insert(at, {dim, 0});
    at->second = core::sat_add(at->second, amount);
  }
  void add(const Amounts& other) {
    for (const auto& [dim, amount] : other.items_) add(dim, amount);
  }
  int64_t at(Dim dim, int64_t otherwise = 0) const {
    auto found = const_cast<Amounts*>(this)->place(dim);
    return found == items_.end() || found->first != dim ? otherwise : found->second;
  }
  bool has(Dim dim) const { return at(dim, -1) >= 0; }
  bool empty() const { return items_.empty(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool operator==(const Amounts&) const = default;

 private:
  std::vector<std::pair<Dim, int64_t>>::iterator place(Dim dim) {
    return std::lower_bound(items_.begin(), items_.end(), dim,
                            [](const auto& item, Dim d) { return item.first < d; });
  }
  std::vector<std::pair<Dim, int64_t>> items_;
};

// One sum a dimension. What was added can be taken away again exactly, however large.
class Totals {
 public:
  void add(const Amounts& amounts, int sign) {
    for (const auto& [dim, amount] : amounts) {
      if (dim >= sums_.size()) sums_.resize(dim + 1);
      sign > 0 ? sums_[dim].add(amount) : sums_[dim].sub(amount);
    }
  }
  int64_t at(Dim dim) const { return dim < sums_.size() ? sums_[dim].saturated() : 0; }
  size_t size() const { return sums_.size(); }
  bool operator==(const Totals& other) const {
    size_t dims = std::max(sums_.size(), other.sums_.size());
    for (Dim dim = 0; dim < dims; ++dim) {
      if (at(dim) != other.at(dim)) return false;
    }
    return true;
  }

 private:
  std::vector<core::ExactSum> sums_;
};

// The names of dimensions: "gpu", "cpu", "memory", "gpu/H100", or a resource by its own name.
class Dims {
 public:
  Dim intern(std::string_view name) {
    for (Dim dim = 0; dim < names_.size(); ++dim) {
      if (names_[dim] == name) return dim;
    }
    names_.emplace_back(name);
    return static_cast<Dim>(names_.size() - 1);
  }
  Dim model(std::string_view name) { return intern("gpu/" + std::string(name)); }
  std::string_view name(Dim dim) const { return names_[dim]; }
  size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_ = {"gpu", "cpu", "memory"};
};

// An amount as users write it: GPUs and cores with at most three decimals, memory in MiB.
std::string amount_text(const Dims& dims, Dim dim, int64_t amount);

}  // namespace tessera::scheduler::queueing
