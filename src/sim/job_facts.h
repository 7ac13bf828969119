// What the objects say about gangs and queues: who belongs to which gang, how many of it must run together, which queue it
// waits in and what its pods take. Kept up from watches alone, for the rules of queue_invariants.h.
//
// Shape:   see() takes each change of any object; unknown kinds are skipped. Gangs are read with scheduler/groups.h.
// Units:   GPUs and cores in thousandths, memory in bytes. Of GPUs only whole ones and shares by thousandths are counted: never
//          more than what is charged.
// Threads: one owner.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "kube/client.h"
#include "scheduler/groups.h"

namespace tessera::sim {

struct Taken {
  int64_t gpu = 0;
  int64_t cpu = 0;
  int64_t memory = 0;
  void add(const Taken& other);
};

struct PodFact {
  kube::Object object{};
  std::string node{};
  bool finished = false;
  bool deleting = false;
  bool gone = false;
  std::string gang{};  // key; empty: not ours
  Taken taken{};
  bool runs() const { return !node.empty() && !finished && !deleting; }
  // The same for all pods that one controller makes.
  std::string job() const;
};

struct GangFact {
  scheduler::Group reading{};
  std::vector<std::string> pods{};  // keys, oldest first
  int32_t succeeded = 0;
  base::Time changed{};  // a member came, went, was bound or finished, or the reading is another
  base::Time moved{INT64_MIN / 2};                        // its queue is another
  base::Time held_since{};                                // where the reading says that it waits
  std::deque<std::pair<base::Time, int32_t>> minimums{};  // what was asked for since when
  std::deque<base::Time> gone{};                          // members that went or finished
  int32_t least = 0;   // the least minimum since it last had nobody running
  base::Time ran{};    // when a member last was seen to run that does so no more
  base::Time whole{};  // when it last had its minimum running
  uint64_t changes = 0;
};

class JobFacts {
 public:
  // `news`: how long the components may act on what they knew.
  explicit JobFacts(base::Duration news) : news_(news) {}

  void see(const kube::WatchEvent& event, base::Time now);

  const std::map<std::string, PodFact>& pods() const { return pods_; }
  const std::map<std::string, GangFact>& gangs() const { return gangs_; }
  const PodFact* by_uid(std::string_view uid) const;  // gone ones too
  const GangFact* gang_named(std::string_view name) const;
  kube::Object object(std::string_view group, std::string_view kind, std::string_view ns,
                      std::string_view name) const;
  std::vector<kube::Object> all(std::string_view group, std::string_view kind) const;
  // Members that run, and those that exist and have not finished, without and with those that went a moment ago.
  int running(const GangFact& gang) const;
  int present(const GangFact& gang, base::Time now, bool lately) const;
  bool leaving(const GangFact& gang) const;
  // Of `asked`, what must still run together.
  int32_t minimum_left(const GangFact& gang, int32_t asked) const;
  int32_t least_minimum_lately(const GangFact& gang, base::Time now) const;
  // From the queue up; stops at what is missing and at loops.
  std::vector<std::string> queues_above(const std::string& queue) const;
  Taken taken_in(const std::string& queue) const;
  // All that has been done to nodes, queues, groups, budgets, namespaces and pods, in the order of a counter.
  uint64_t changes() const { return changes_; }
  base::Time rules_changed() const { return rules_changed_; }  // anything but pods
  base::Time queues_changed() const { return queues_changed_; }
  base::Duration news() const { return news_; }

 private:
  void see_pod(const kube::WatchEvent& event, base::Time now);
  void see_object(const kube::WatchEvent& event, base::Time now);
  void reread(std::string_view ns, base::Time now);
  void read(const std::string& key, base::Time now);
  void leave(const std::string& key, base::Time now);
  void touch(GangFact& gang, base::Time now);
  scheduler::GroupSources sources() const;

  base::Duration news_;
  std::map<std::string, kube::Object> objects_;
  std::map<std::string, PodFact> pods_;
  std::map<std::string, PodFact, std::less<>> by_uid_;
  std::map<std::string, GangFact> gangs_;
  uint64_t changes_ = 0;
  base::Time rules_changed_{};
  base::Time queues_changed_{};
};

}  // namespace tessera::sim
