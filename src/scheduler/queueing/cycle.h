// One pass over all that waits.
//
// Shape:   claims that took too long fall back; shares are divided; broken gangs are mended or released; then, in turn by
//          turns.h, each gang is placed, or makes room for itself, or gets a planned start, or is told why not.
// Errors:  none.
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "scheduler/queueing/backfill.h"
#include "scheduler/queueing/turns.h"
#include "scheduler/queueing/victims.h"

namespace tessera::scheduler::queueing {

class Cycle {
 public:
  Cycle(Engine& engine, base::Time now)
      : engine_(engine), now_(now), victims_(engine, now), backfill_(engine, now) {}
  Plan run();

 private:
  struct Choice {
    std::vector<MemberId> members{};
    Amounts need{};
    bool starts = false;  // brings the gang to its minimum
    uint64_t signature = 0;
    bool alike = false;  // the signature says all there is to say
  };

  void expire_claims();
  void check_ready();
  bool still_good(const Bind& bind) const;
  void hold_reservations();
  void share_out();
  void mend_broken();
  void release(GangId gang);
  void tell_strays();
  void serve_oldest();
  bool open(QueueId leaf);
  void step(QueueId leaf, Turns& turns);
  bool choose(GangId gang, Choice& choice, Wait& wait) const;
  bool attempt(GangId gang, const Choice& choice, Turns* turns);
  void commit(Trial& trial, Turns* turns);
  void reserve(GangId gang, const Choice& choice, Wait& wait);
  void tell(GangId gang, Wait wait) { engine_.gang_of(gang).wait = std::move(wait); }
  void tell_rest(QueueId leaf, const Engine::Turn& after, const Wait& wait);

  Engine& engine_;
  base::Time now_;
  Plan plan_;
  Victims victims_;
  Backfill backfill_;
  std::unordered_map<int32_t, Engine::Turn> passed_;  // by leaf: the last gang that did not start
  std::unordered_map<int32_t, int32_t> reserved_;     // by leaf
  std::unordered_map<uint64_t, Wait> failed_;  // by signature: what the same ask was told before
};

}  // namespace tessera::scheduler::queueing
