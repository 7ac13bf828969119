// Inside of scheduler.h: the driver around a Model. What it decides is carried out by three parts, each in its own file:
// scheduler_bind.cc, evictor.h, scheduler_explain.cc; scheduler_lead.cc says whether it may.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "kube/events.h"
#include "kube/informer.h"
#include "scheduler/evictor.h"
#include "scheduler/guarded_client.h"
#include "scheduler/model.h"
#include "scheduler/object_sources.h"
#include "scheduler/pod_requests.h"
#include "scheduler/scheduler.h"
#include "scheduler/status_writer.h"
#include "scheduler/verdict.h"
#include "scheduler/volume_binder.h"

namespace tessera::scheduler {

// What was said about a waiting pod.
struct Telling {
  std::string told{};     // the reason last written to the API
  std::string verdict{};  // and the verdict, where the pod holds its group's; without the position
  base::Time written_at{INT64_MIN / 2};
  queueing::WaitReason reason{};  // of the group when it was told
  size_t members = 0;
  int64_t position = 0;
  bool urgent = false;  // it is another reason by now, or of other members
  base::Time told_at{INT64_MIN / 2};
  bool queued = false;
  int failures = 0;  // of binds, in a row
};

// One whose answer says no, or is not known.
struct FailedBind {
  kube::Request binding{};
  base::Error error{};
  uint64_t term = 0;  // in which it was decided
};

struct Scheduler::State : std::enable_shared_from_this<Scheduler::State> {
  State(kube::Client& c, base::Executor& e, const base::Clock& k, base::Random r, Options o);

  void start();
  void start_informers();
  void start_evictor();
  void start_sources();
  void start_volumes();
  std::unique_ptr<kube::Informer> informer(
      const char* resource,
      std::function<void(const kube::Object&, const kube::Object&)> on_change);
  void on_node(const kube::Object& before, const kube::Object& after);
  void on_pod(const kube::Object& before, const kube::Object& after);
  void forget_volumes(const std::string& key, const kube::Object& pod);
  void lead();
  void take_over();
  void stand_by();
  void reconfigure(Options next);
  bool acting() const;

  // Time that goes on evenly, whatever the wall clock does.
  base::Time now() const;
  bool ready() const;
  void request_cycle();
  void cycle();
  void look_again_later();
  void consider_volumes();

  void place(const BindDecision& decision);
  void volumes_done(const std::string& key, const std::string& uid, kube::Request binding,
                    const base::Status& status);
  kube::Request binding_of(const PodEntry& pod, const BindDecision& decision) const;
  void bind(kube::Request binding);
  void send_binds();
  void bind_done(const std::string& key, const kube::Request& binding, uint64_t term,
                 const kube::Reply& reply);
  void settle(const std::string& key, const FailedBind& bind, base::Duration wait);
  void settled(const std::string& key, const FailedBind& failed, base::Duration wait,
               const kube::Reply& reply);
  void give_up(const std::string& key, const std::string& problem);

  // Decided, and waiting for the Jobs of its pods to be told.
  struct Eviction {
    std::vector<EvictDecision> decisions;
    size_t jobs = 0;
  };
  void evict(const std::vector<EvictDecision>& decisions);
  void evict_now(const Eviction& batch);
  void nominate();
  bool nominate_in(const GroupEntry& group);
  void write_nomination(const PodEntry& pod, const std::string& node);

  void explain_touched();
  void note_groups(const std::set<std::string>& touched);
  void note_queues();
  void explain_later(const std::string& key);
  void explain_some();
  void explain_next();
  bool waits(const PodEntry* pod) const;
  void tell(const PodEntry& pod, const std::string& why);
  std::optional<Verdict> verdict_for(const PodEntry& pod, const std::string& why) const;

  template <class F>
  void after(base::Duration delay, F task) {
    executor.post_after(delay, [weak = weak_from_this(), task = std::move(task)] {
      if (auto self = weak.lock()) task(*self);
    });
  }

  // Taking over: leads, and reads anew what it is to decide on.
  enum class Role { kStandby, kTaking, kLeading };

  GuardedClient client;
  base::Executor& executor;
  const base::Clock& clock;
  base::Random random;
  Options options;
  base::Time wall_at_start;
  base::Duration monotonic_at_start;
  Model model;
  kube::EventRecorder recorder;
  std::unique_ptr<kube::Informer> nodes;
  std::unique_ptr<kube::Informer> pods;
  std::unique_ptr<VolumeBinder> volumes;
  std::unique_ptr<Evictor> evictor;
  std::unique_ptr<ObjectSources> sources;
  std::unique_ptr<StatusWriter> statuses;
  std::unordered_map<std::string, Telling> tellings;
  std::unordered_map<std::string, std::string> noted;  // of groups
  std::map<std::string, std::string> noted_queues;
  uint64_t queues_noted = 0;
  std::set<std::string> claiming;  // groups with pods whose place is kept until others have gone
  std::unordered_map<std::string, std::string> nominated;  // pods, and the node that was written
  std::deque<std::string> to_explain;                      // never told, oldest first
  std::deque<std::string> to_explain_again;                // told before
  std::deque<kube::Request> binds;                         // to be sent
  std::unordered_map<std::string, int64_t> allowances;     // evictions by uid of the Job
  Role role = Role::kLeading;
  uint64_t terms = 0;  // what an older one has begun is void
  bool settled_found = false;
  bool cycle_posted = false;
  bool look_posted = false;
  std::optional<base::Duration> explain_at{};  // when reasons are looked at next
  int explained = 0;                           // since explained_since
  base::Duration explained_since{};
  base::Duration cycle_not_before{};
  size_t binds_in_flight = 0;
  Stats counts;
};

}  // namespace tessera::scheduler
