// Random clusters, queues, jobs and faults, with every promise of engine.h checked after each cycle; and small cases against
// a search of all possibilities. A failing seed is named; TESSERA_QUEUE_SEEDS asks for more than the default.

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/random.h"
#include "scheduler/queueing/engine_testing.h"
#include "scheduler/queueing/shares.h"

namespace tessera::scheduler::queueing {
namespace {

using testing::Lab;
using testing::limited;
using testing::queue;

uint64_t seeds() {
  const char* text = std::getenv("TESSERA_QUEUE_SEEDS");
  return text ? std::strtoull(text, nullptr, 10) : 200;
}

class World {
 public:
  explicit World(uint64_t seed) : random_(seed), lab_(options(random_)) {
    int nodes = 1 + below(6);
    for (int n = 0; n < nodes; ++n) lab_.nodes(1, 1 << below(4));
    lab_.queues(some_queues());
    lab_.engine.set_budget(BudgetId(0), below(4));
  }

  // "" or what went wrong.
  std::string run(int steps) {
    for (int i = 0; i < steps; ++i) {
      change();
      lab_.pass(base::seconds(1 + below(40)));
      std::string wrong = settle();
      if (!wrong.empty()) return "step " + std::to_string(i) + ": " + wrong;
    }
    return {};
  }

 private:
  int below(int n) { return static_cast<int>(random_.below(static_cast<uint64_t>(n))); }

  static EngineOptions options(base::Random& random) {
    EngineOptions options;
    if (random.below(2) == 0) options.half_life = base::seconds(600);
    if (random.below(3) == 0) options.patience = base::seconds(300);
    return options;
  }

  std::vector<QueueSpec> some_queues() {
    std::vector<QueueSpec> specs;
    int tops = 1 + below(3);
    for (int t = 0; t < tops; ++t) {
      std::string top = "t" + std::to_string(t);
      specs.push_back(queue(top, below(6), 1 + below(3), 100 * (1 + below(2))));
      int leaves = below(3);
      for (int l = 0; l < leaves; ++l) {
        specs.push_back(queue(top + "-" + std::to_string(l), below(4), below(3), 100, top));
        if (below(3) == 0) specs.back() = limited(specs.back(), 3 + below(6));
        specs.back().strict_fifo = below(4) == 0;
        specs.back().reservations = below(3);
      }
    }
    specs.push_back(queue("bad", 0, -1));
    return specs;
  }

  std::string some_queue() {
    size_t at = 1 + random_.below(lab_.engine.queues().size());
    if (at >= lab_.engine.queues().size()) return "missing";
    return lab_.engine.queues().at(QueueId(static_cast<int32_t>(at))).spec.name;
  }

  void submit() {
    GangSpec spec;
    spec.name = "j" + std::to_string(++jobs_);
    spec.queue = some_queue();
    spec.priority = below(3) * 10;
    spec.created = lab_.now;
    spec.min_members = 1 + below(4);
    int pods = spec.min_members + below(3);
    if (below(4) == 0) spec.subgroup_mins = {1, below(2)};
    if (below(2) == 0) {
      spec.runtime = base::seconds(10 + below(200));
    } else if (below(2) == 0) {
      spec.estimate = base::seconds(10 + below(200));
    }
    spec.preemptible = below(5) != 0;
    spec.evict_whole = below(4) == 0;
    GangId id = lab_.engine.add_gang(spec);
    int gpus = 1 << below(3);
    for (int p = 0; p < pods; ++p) {
      MemberSpec member = lab_.pod(gpus, below(3) - 1);
      if (below(6) == 0) member.budgets = {BudgetId(0)};
      lab_.engine.add_member(id, member);
    }
    alive_.push_back(id);
  }

  void change() {
    evicted_by_.clear();
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        submit();
        break;
      case 3:
        if (!alive_.empty()) {
          size_t at = random_.below(alive_.size());
          lab_.engine.remove_gang(alive_[at], lab_.now);
          alive_.erase(alive_.begin() + static_cast<long>(at));
        }
        break;
      case 4:  // a member is lost, or finishes
        if (!alive_.empty()) {
          GangId id = alive_[random_.below(alive_.size())];
          const auto& members = lab_.engine.gang(id).members;
          if (!members.empty())
            lab_.engine.remove_member(members[random_.below(members.size())], lab_.now);
          if (below(2) == 0) lab_.engine.add_member(id, lab_.pod(1));
        }
        break;
      case 5: {  // a node comes and goes
        core::NodeId node = lab_.node_ids[random_.below(lab_.node_ids.size())];
        auto spec = lab_.engine.cluster().spec(node);
        spec.unschedulable = !spec.unschedulable;
        lab_.engine.cluster().update_node(node, spec);
        break;
      }
      case 6:
        lab_.engine.set_budget(BudgetId(0), below(4));
        break;
      default:
        if (below(3) == 0) lab_.queues(some_queues());
    }
  }

  std::string check_plan(const Plan& plan) {
    for (const Evict& evict : plan.evicts) {
      const Member& member = lab_.engine.member(evict.member);
      if (member.state != MemberState::kLeaving) return "one who was evicted is not leaving";
      if (!evict.for_gang.valid()) continue;
      // Evictions of a gang that has no use for them: its members must all have a place.
      const Gang& gang = lab_.engine.gang(evict.for_gang);
      if (gang.placed < gang.spec.min_members) return "evicted for a gang that does not start";
      if (evicted_by_.contains({evict.for_gang.value, member.gang.value}))
        return lab_.engine.gang(member.gang).spec.name + " and " + gang.spec.name +
               " evict each other";
      evicted_by_.insert({member.gang.value, evict.for_gang.value});
    }
    return {};
  }

  std::string check_state(bool told = false) {
    if (std::string wrong = lab_.engine.audit(); !wrong.empty()) return wrong;
    const QueueTree& tree = lab_.engine.queues();
    for (GangId id : alive_) {
      const Gang& gang = lab_.engine.gang(id);
      if (gang.placed > 0 && gang.placed < gang.spec.min_members && !gang.broken_since)
        return gang.spec.name + " has " + std::to_string(gang.placed) + " of " +
               std::to_string(gang.spec.min_members);
      if (told && gang.waiting > 0 && gang.placed == 0 && gang.wait.reason == WaitReason::kNone)
        return gang.spec.name + " waits in " + gang.spec.queue + " and nobody says why";
      if (gang.waiting > 0 && gang.wait.reason != WaitReason::kNone && lab_.engine.why(id).empty())
        return gang.spec.name + " waits without a sentence";
    }
    for (size_t n = 0; n < lab_.engine.cluster().node_slots(); ++n) {
      core::NodeId node(static_cast<int32_t>(n));
      int32_t used = 0;
      for (core::PodId pod : lab_.engine.cluster().pods_on(node))
        used += __builtin_popcount(lab_.engine.cluster().pod(pod).placement.devices);
      if (used > lab_.engine.cluster().spec(node).gpus) return "a device is given twice";
    }
    if (lowered_) return {};  // a limit below what runs already evicts nobody
    for (size_t q = 1; q < tree.size(); ++q) {
      QueueId id(static_cast<int32_t>(q));
      int64_t limit = tree.at(id).spec.limit.at(kGpu, kUnlimited);
      if (lab_.engine.use(id).used.at(kGpu) > limit)
        return tree.at(id).spec.name + " is over its limit";
    }
    return {};
  }

  std::string settle() {
    for (int cycle = 0; cycle < 60; ++cycle) {
      Plan plan = lab_.engine.cycle(lab_.now);
      if (std::string wrong = check_plan(plan); !wrong.empty()) return wrong;
      if (std::string wrong = check_state(true); !wrong.empty()) return wrong;
      for (const Bind& bind : plan.binds) {
        if (below(20) == 0) lab_.engine.bind_failed(bind.member, lab_.now);
      }
      std::vector<std::pair<GangId, MemberSpec>> anew;
      for (const Evict& evict : plan.evicts) {
        const Member& member = lab_.engine.member(evict.member);
        anew.emplace_back(member.gang, member.spec);
        lab_.engine.remove_member(evict.member, lab_.now);
      }
      for (auto& [gang, spec] : anew) lab_.engine.add_member(gang, spec);
      if (std::string wrong = check_state(); !wrong.empty()) return wrong;
      if (plan.binds.empty() && plan.evicts.empty()) return {};
    }
    return "it never comes to rest";
  }

  base::Random random_;
  Lab lab_;
  std::vector<GangId> alive_;
  std::set<std::pair<int32_t, int32_t>> evicted_by_;  // victim, by
  int jobs_ = 0;
  bool lowered_ = true;
};

TEST(EngineProperty, every_promise_holds_after_every_cycle) {
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    std::string wrong = World(seed).run(40);
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

TEST(EngineProperty, the_same_seed_gives_the_same_decisions) {
  auto run = [] {
    Lab lab;
    lab.nodes(5, 4).queues({queue("a", 4, 2), queue("b", 4, 1)});
    lab.gang("big", "a", 6, 4, 2);
    lab.singles("b", 15);
    lab.settle();
    lab.pass(base::seconds(9));
    lab.singles("a", 9, 1, 5);
    lab.settle();
    return lab.engine.cluster().state_hash();
  };
  EXPECT_EQ(run(), run());
}

// All subsets of the victims: none that is smaller makes room as well.
TEST(EngineProperty, no_part_of_the_victims_would_have_done) {
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    base::Random random(seed);
    Lab lab;
    lab.nodes(1 + static_cast<int>(random.below(3)), 4).queues({queue("q", 0)});
    for (int i = 0; i < 8; ++i)
      lab.gang("low" + std::to_string(i), "q", 1, 1, 1 + static_cast<int>(random.below(3)),
               static_cast<int32_t>(random.below(3)));
    lab.settle();
    lab.pass(base::seconds(60));
    int pods = 1 + static_cast<int>(random.below(2));
    int gpus = 1 + static_cast<int>(random.below(4));
    Lab before = lab;
    GangId high = lab.gang("high", "q", pods, pods, gpus, 100);
    Plan plan = lab.engine.cycle(lab.now);
    std::erase_if(plan.evicts, [&](const Evict& evict) { return evict.for_gang != high; });
    if (lab.placed(high) == 0 || plan.evicts.empty()) continue;
    ASSERT_LE(plan.evicts.size(), 12u);
    auto all = (uint32_t{1} << plan.evicts.size()) - 1;
    for (uint32_t part = 0; part < all; ++part) {
      Lab trial = before;
      for (size_t e = 0; e < plan.evicts.size(); ++e) {
        if ((part >> e & 1) != 0) trial.engine.remove_member(plan.evicts[e].member, trial.now);
      }
      GangSpec polite;
      polite.name = "polite";
      polite.queue = "q";
      polite.priority = 100;
      polite.min_members = pods;
      polite.preempts = false;
      GangId id = trial.engine.add_gang(polite);
      for (int p = 0; p < pods; ++p) trial.engine.add_member(id, trial.pod(gpus));
      trial.engine.cycle(trial.now);
      ASSERT_EQ(trial.placed(id), 0)
          << "seed " << seed << ": " << part << " of " << all << " would do";
    }
  }
}

// Jobs that keep their limits never make a planned start late.
TEST(EngineProperty, a_planned_start_is_kept) {
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    base::Random random(seed);
    Lab lab;
    lab.nodes(3, 4).queues({queue("q", 0)});
    std::vector<std::pair<base::Time, GangId>> running;
    std::optional<base::Time> promised;
    GangId big;
    auto submit = [&](int pods, int gpus, int seconds) {
      GangSpec spec;
      spec.name = "j";
      spec.queue = "q";
      spec.created = lab.now;
      spec.min_members = pods;
      spec.preempts = false;
      spec.runtime = base::seconds(seconds);
      GangId id = lab.engine.add_gang(spec);
      for (int p = 0; p < pods; ++p) lab.engine.add_member(id, lab.pod(gpus));
      return id;
    };
    std::vector<GangId> jobs;
    for (int i = 0; i < 8; ++i)
      jobs.push_back(submit(1, 1 + static_cast<int>(random.below(4)),
                            50 + static_cast<int>(random.below(500))));
    lab.settle();
    lab.pass(base::seconds(1));
    big = submit(3, 3, 100);
    for (int step = 0; step < 400 && lab.placed(big) == 0; ++step) {
      if (random.below(3) == 0)
        jobs.push_back(submit(1, 1 + static_cast<int>(random.below(2)),
                              20 + static_cast<int>(random.below(700))));
      for (GangId job : jobs) {
        const Gang& gang = lab.engine.gang(job);
        if (!gang.present || gang.placed == 0) continue;
        const Member& member = lab.engine.member(gang.members[0]);
        if (lab.now - member.started >= *gang.spec.runtime)
          lab.engine.remove_member(gang.members[0], lab.now);
      }
      lab.settle();
      const Wait& wait = lab.engine.gang(big).wait;
      if (wait.planned_start) {
        if (promised) {
          ASSERT_LE(wait.planned_start->ns, promised->ns) << "seed " << seed << " step " << step;
        }
        promised = wait.planned_start;
      }
      if (lab.placed(big) == 0) lab.pass(base::seconds(5));
    }
    ASSERT_EQ(lab.placed(big), 3) << "seed " << seed;
    if (promised) {
      ASSERT_LE(lab.now.ns, promised->ns + base::seconds(5).ns) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tessera::scheduler::queueing
