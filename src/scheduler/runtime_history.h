// How long jobs are likely to run, from those of the same user before: for jobs that say nothing about it.
//
// Shape:   a run is a pod from its binding to its end; the members of one gang count as one run, the longest. An estimate is
//          the average of the last two runs in the same namespace and queue whose owner has the same name but for numbers and
//          hashes at its end; where there is none, of those of the same namespace and queue that asked for the same.
//          Only so many names are remembered: those without a run for longest are forgotten.
// Units:   estimates are kept within kEstimateMin to kEstimateMax.
// Errors:  none.
// Threads: one. The same runs in any order give the same estimates, as long as nothing was forgotten.
// Source:  Tsafrir, Etsion and Feitelson 2007: the average of a user's last two runs beats the users' own estimates.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/time.h"
#include "kube/object.h"

namespace tessera::scheduler {

inline constexpr base::Duration kEstimateMin = base::seconds(60);
inline constexpr base::Duration kEstimateMax = base::seconds(int64_t{30} * 86'400);

// "train-28934710", "train-7f9c4" and "train12" are all "train".
std::string stem_of(std::string_view name);

struct RunKeys {
  std::string owner{};  // namespace, queue and stem
  std::string ask{};    // namespace, queue and what it asks for
};
RunKeys run_keys(const kube::Object& pod, std::string_view queue);

struct Run {
  base::Time start{};
  base::Time end{};
};
// Of a finished pod; nothing where it does not say so, or did not end by itself.
std::optional<Run> run_of(const kube::Object& pod);

class RuntimeHistory {
 public:
  explicit RuntimeHistory(size_t names_max = 20'000) : names_max_(names_max) {}

  // `gang`: a name that no other gang has had.
  void add(const RunKeys& keys, std::string_view gang, const Run& run);
  std::optional<base::Duration> estimate(const RunKeys& keys) const;
  size_t size() const { return names_.size(); }

 private:
  struct Past {
    std::string gang{};
    base::Time end{};
    base::Duration length{};
  };
  struct Name {
    std::array<Past, 2> last{};  // the latest first; of the longest member each
    int runs = 0;
  };
  void add_to(const std::string& name, std::string_view gang, const Run& run);

  size_t names_max_;
  std::map<std::string, Name> names_;
  std::set<std::pair<base::Time, std::string>> by_end_;
};

}  // namespace tessera::scheduler
