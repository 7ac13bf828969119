// The cluster as the API tells it, in the engine's terms: objects in, decisions out. No I/O, no clock.
//
// Shape:   on_node, on_pod and on_object take each change of an object; cycle() decides. A pod holds its place from the moment
//          it is told to be bound until the API shows it finished or gone; a terminating pod holds it too. A model can be
//          copied: a what-if is a copy. Pods that are bound by others hold their places and belong to no queue.
//          A queue "default" is there without an object: unlimited, nothing guaranteed, and nobody reclaims from it.
// Units:   as in queueing/amounts.h; times are handed in.
// Errors:  none: what cannot be read is the reason why its pod waits.
// Threads: one (the scheduler's strand).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kube/labels.h"
#include "kube/object.h"
#include "scheduler/groups.h"
#include "scheduler/queue_objects.h"
#include "scheduler/queueing/engine.h"
#include "scheduler/runtime_history.h"
#include "scheduler/translate.h"

namespace tessera::scheduler {

struct ModelOptions {
  std::vector<std::string> names = {"tessera"};  // schedulerName values served
  queueing::EngineOptions engine{};
  // The mix that FGD measures against, made with the model's own interner; empty: learned from arrivals.
  std::function<core::TypicalMix(core::Interner&)> mix{};
  // Only nodes and pods with this label and value are served; an empty value: those without the label. Empty key: all.
  std::string shard_key{};
  std::string shard_value{};
};

struct BindDecision {
  std::string pod;  // key
  core::Placement placement{};
};

struct EvictDecision {
  std::string pod;  // key
  std::string uid;
  std::string why;  // a sentence that names who needs the place
  queueing::EvictReason reason = queueing::EvictReason::kPreempted;
  bool budgeted =
      false;  // a disruption budget may refuse it: to be asked before the others of its batch
  std::string batch;  // the group it goes for, or that is released: all of one batch go together
  std::string for_group{};  // key; empty where it goes for none
};

struct Decisions {
  std::vector<BindDecision> binds;
  std::vector<EvictDecision> evicts;
};

// A pod that is or may be placed.
struct PodEntry {
  kube::Object object{};  // newest seen; empty: a free slot
  std::string uid{};
  std::shared_ptr<const core::PodRequest>
      request{};  // null: could not be translated, see `problem`
  std::string problem{};
  std::string hold{};  // why it must not be placed for now although it could be; its mend wakes it
  uint64_t arrival = 0;
  std::string node{};    // of a pod seen bound
  bool assumed = false;  // told to be bound, not yet seen bound
  bool leaving = false;  // told to be evicted
  bool foreign = false;  // bound by others
  bool finished = false;
  bool no_victim = false;  // its eviction was refused not long ago
  std::string group{};     // key; empty: in none
  int32_t subgroup = 0;
  queueing::MemberId member{};
};

struct GroupEntry {
  Group reading{};
  queueing::GangId gang{};
  std::set<std::pair<uint64_t, int32_t>> pods{};  // arrival and slot; finished ones too
  int32_t live = 0;                               // not finished
  std::vector<int32_t> succeeded{};               // by sub-group
  int32_t failed = 0;
  // What another pod says of the group that its first pod, whose reading counts, does not; and which.
  std::string differs{};
  int32_t differs_slot = -1;
};

class Model {
 public:
  explicit Model(ModelOptions options);
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;

  // An empty `after`: gone. True where a cycle may now decide something that it could not before.
  bool on_node(const kube::Object& after, std::string_view name, base::Time now);
  bool on_pod(const std::string& key, const kube::Object& after, base::Time now);
  // Queues, Reservations, PodGroups, owners, Namespaces, PriorityClasses, PodDisruptionBudgets.
  bool on_object(const kube::Object& before, const kube::Object& after, base::Time now);
  // All that was there at the start of a term has been told of. Every group counts as touched.
  void settle_found(base::Time now);
  // What has been promised, and who was asked to go, is taken back. Binds are not: they come by bind_failed or on_pod.
  void take_back(base::Time now);
  // In the place of a cycle, while somebody else decides.
  void look_on(base::Time now);

  Decisions cycle(base::Time now);
  bool restless() const { return engine_.restless(); }

  // What became of decisions. The pod must be known; nothing happens where the decision is no longer true.
  void bind_failed(const std::string& key, std::string hold, base::Time now);
  void evict_failed(const std::string& key, base::Time now);
  void may_be_victim(const std::string& key);
  // A reason of the bridge's own why the pod must not be placed, such as claims that are not there; empty lets it go.
  bool set_hold(const std::string& key, std::string hold, base::Time now);
  // What its claims ask of a node.
  void set_volumes(const std::string& key, std::vector<core::VolumeRule> rules, base::Time now);

  const PodEntry* find(const std::string& key) const;
  const GroupEntry* group_with(const PodEntry& pod) const;
  const std::map<std::string, GroupEntry, std::less<>>& groups() const { return groups_; }
  const PodEntry& pod_at(int32_t slot) const { return pods_[static_cast<size_t>(slot)]; }
  // Where its place is kept until others have gone; empty where none is.
  std::string_view claimed_node(const PodEntry& pod) const;
  // Why the pod has no place; empty where it has one or nothing has been decided yet.
  std::string why(const PodEntry& pod) const;
  std::vector<std::pair<std::string, std::string>> annotations_of(const BindDecision& bind) const;
  // Of pods that wait, those that name claims.
  const std::set<std::string>& with_claims() const { return with_claims_; }
  // Groups that changed since the last call, by key.
  std::set<std::string> take_touched() { return std::exchange(touched_, {}); }

  queueing::Engine& engine() { return engine_; }
  const queueing::Engine& engine() const { return engine_; }
  std::string_view node_name(core::NodeId id) const;
  size_t nodes() const { return by_name_.size(); }
  size_t waiting() const;  // counted anew
  size_t assumed() const { return assumed_; }
  struct QueueObject {
    kube::Object object{};
    QueueReading reading{};
  };
  const std::map<std::string, QueueObject>& queues() const { return queues_; }
  // Grows whenever queues have been read anew.
  uint64_t queues_read() const { return queues_read_; }
  const std::map<std::string, kube::Object>& reservations() const { return reservations_; }
  kube::Object object(std::string_view group, std::string_view kind, std::string_view ns,
                      std::string_view name) const;
  template <class Visit>
  void each_object(std::string_view group, std::string_view kind, Visit visit) const {
    const std::string prefix = std::string(group) + "/" + std::string(kind) + "/";
    for (auto at = objects_.lower_bound(prefix);
         at != objects_.end() && at->first.starts_with(prefix); ++at)
      visit(at->second);
  }
  // Reads from this model: not to outlive it.
  GroupSources sources() const { return sources(nullptr); }
  const ShareRules& rules() const { return rules_; }
  void set_options(queueing::EngineOptions options);

 private:
  struct Node {
    NodeView view{};
    std::string name{};
  };
  struct Budget {
    queueing::BudgetId id{};
    kube::LabelSelector selector{};
    int64_t told = 0;     // by the API
    int64_t allowed = 0;  // less what has been decided since
  };

  PodEntry& entry(int32_t slot) { return pods_[static_cast<size_t>(slot)]; }
  int32_t slot_of(const std::string& key) const;
  int32_t make_slot(const std::string& key);
  bool ours(const kube::Object& pod) const;
  bool in_shard(const kube::Object& object) const;
  bool forget(int32_t slot, base::Time now);
  bool finish(int32_t slot, base::Time now);
  void read_request(PodEntry& pod);
  bool see_bound(int32_t slot, base::Time now);
  bool see_waiting(int32_t slot, base::Time now);
  void read_group_of(int32_t slot, base::Time now);
  void join(int32_t slot, Group reading, base::Time now);
  void compare(GroupEntry& group, int32_t slot, const Group& reading);
  void leave(int32_t slot, base::Time now);
  void drop_member(PodEntry& pod, base::Time now);
  bool seat(int32_t slot, base::Time now);
  void reseat_on(const std::string& node, base::Time now);
  void note_member(int32_t slot);
  bool has_place(const PodEntry& pod) const;
  void reads(int32_t slot, std::vector<uint64_t> objects);
  // Those that cover the pod.
  template <class Self, class Visit>
  static void each_budget(Self& self, const PodEntry& pod, Visit visit) {
    const auto here = self.budgets_.find(std::string(pod.object.ns()));
    if (here == self.budgets_.end()) return;
    for (auto& [name, budget] : here->second) {
      if (budget.selector.matches(pod.object.metadata()["labels"])) visit(budget);
    }
  }
  void spend_budgets(const PodEntry& pod);
  void restore_budgets(const PodEntry& pod);
  queueing::MemberSpec member_spec(const PodEntry& pod);
  queueing::GangSpec gang_spec(const GroupEntry& group) const;
  std::optional<base::Duration> estimate_for(const GroupEntry& group) const;
  std::vector<queueing::BudgetId> budgets_of(const PodEntry& pod) const;
  void refresh(base::Time now);
  void refresh_group(GroupEntry& group);
  void refresh_queues(base::Time now);
  void restore_history(base::Time now);
  void refresh_reservations();
  void refresh_rules(base::Time now);
  bool on_budget(const kube::Object& after, const std::string& ns, const std::string& name);
  void rebudget(const std::string& ns);
  GroupSources sources(std::vector<uint64_t>* asked) const;

  ModelOptions options_;
  queueing::Engine engine_;
  std::unordered_map<std::string, core::NodeId> by_name_;
  std::map<core::NodeId, Node> nodes_;
  std::vector<PodEntry> pods_;
  std::vector<int32_t> pods_free_;
  std::unordered_map<std::string, int32_t> by_key_;
  std::vector<int32_t> pod_of_member_;
  std::map<std::string, GroupEntry, std::less<>> groups_;
  std::unordered_map<std::string, std::set<int32_t>> unseated_;  // bound, by a node not known
  std::map<std::string, kube::Object> objects_;
  // Pods by the objects that their groups were read from, and the other way round.
  std::unordered_map<uint64_t, std::set<int32_t>> readers_;
  std::vector<std::vector<uint64_t>> asked_of_;
  std::map<std::string, QueueObject> queues_;                     // by kind and name
  std::map<std::string, std::map<std::string, Budget>> budgets_;  // by namespace and name
  int32_t budgets_made_ = 1;  // 0 is the one that never allows anything
  ShareRules rules_;
  std::set<std::string> remembered_;  // queues whose past use has been read
  std::set<int32_t> to_read_;
  std::set<std::string> to_refresh_;
  std::set<std::string> with_claims_;
  std::set<std::string> touched_;
  std::map<std::string, kube::Object> reservations_;  // by name
  RuntimeHistory runs_;
  bool queues_changed_ = true;
  uint64_t queues_read_ = 0;
  bool reservations_changed_ = false;
  bool rules_changed_ = false;
  uint64_t arrivals_ = 0;
  size_t assumed_ = 0;
};

}  // namespace tessera::scheduler
