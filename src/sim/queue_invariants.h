// What must hold of gangs, queues and evictions after every change, from the objects alone.
//
// Shape:   see() takes each change of any object, see_eviction() each eviction that the API accepted, tick() the time. Rules:
//          - a gang starts only when members enough exist, its group says nothing against it and its queue is open;
//          - a gang that has fewer than its minimum running (bound, neither finished nor terminating), but some, is whole again
//            or released before kMend has passed in which nothing happened to it. Tolerated: binds on their way, members that
//            failed, finished well or terminate; a minimum that was raised while it ran (the least since it last had nobody
//            counts); a gang that lost members for good while the
//            scheduler was away, who cannot know; one of whose members a disruption budget covers, since its release may be refused;
//          - a bind never brings a queue, nor one above it, beyond its limit, whatever the limit was `news` ago;
//          - nobody of another scheduler and no daemon's pod is evicted, and never more than a budget allows;
//          - an eviction tells for whom it is: of higher priority in the same queue, or of another queue where the victim's may
//            be reclaimed from; whoever it is has been bound kPaid later, if nothing else happened meanwhile;
//          - of two jobs neither evicts the other after it was evicted by it, while nothing else happens.
// Errors:  kInternal with a sentence naming the objects.
// Threads: one owner.
// Source:  docs/design.md, section 9.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/job_facts.h"

namespace tessera::sim {

class QueueInvariants {
 public:
  struct Options {
    base::Duration news{};  // how long the components may act on what they knew
    bool all_told = false;  // no event gets lost: each eviction has one
  };
  explicit QueueInvariants(Options options) : options_(options), facts_(options.news) {}

  base::Status see(const kube::WatchEvent& event, base::Time now);
  base::Status see_eviction(const std::string& pod, base::Time now);
  base::Status tick(base::Time now);
  // The scheduler was away until now: what it did not see, it could not mend.
  void see_outage(base::Time now) { outage_ = now; }
  // Half of a gang, whatever the reason: for the end, when all is at rest.
  base::Status at_rest(base::Time now) const;

  uint64_t evictions() const { return evictions_; }
  uint64_t gangs_started() const { return gangs_started_; }

 private:
  struct Eviction {
    std::string pod{};  // key
    std::string uid{};
    std::string gang{};
    std::string job{};
    base::Time at{};
    bool told = false;
    bool paid = false;
    std::string winner{};  // name of its gang
    uint64_t winner_changes = 0;
  };

  base::Status check_bind(const PodFact& pod, base::Time now);
  base::Status check_start(const PodFact& pod, const GangFact& gang, base::Time now) const;
  base::Status check_limits(const PodFact& pod, const GangFact& gang, base::Time now) const;
  base::Status check_budgets(const PodFact& pod, base::Time now) const;
  base::Status check_event(const kube::Object& event, base::Time now);
  base::Status check_reason(const Eviction& eviction, const PodFact& victim, const GangFact& winner,
                            std::string_view reason, base::Time now) const;
  base::Status check_turns(const Eviction& eviction, const GangFact& winner);
  base::Status check_paid(Eviction& eviction, base::Time now) const;
  base::Status check_whole(const std::string& key, const GangFact& gang, base::Time now) const;
  bool under_budget(const GangFact& gang) const;
  std::string job_of(const GangFact& gang) const;

  Options options_;
  JobFacts facts_;
  base::Time outage_{};
  std::vector<Eviction> open_;  // not over yet
  std::set<std::string> evicted_;
  std::map<std::pair<std::string, std::string>, uint64_t> turns_;  // victim's and winner's jobs
  std::map<std::string, base::Time> sick_;  // pods that ceased to be ready, by key
  uint64_t evictions_ = 0;
  uint64_t gangs_started_ = 0;
};

}  // namespace tessera::sim
