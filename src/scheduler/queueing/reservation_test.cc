#include "scheduler/queueing/reservation.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/random.h"
#include "scheduler/queueing/engine_testing.h"

namespace tessera::scheduler::queueing {
namespace {

using testing::Lab;
using testing::queue;

struct World {
  explicit World(int nodes = 3, int gpus = 4) {
    lab.nodes(nodes, gpus).queues({queue("a", 0), queue("b", 0), queue("a1", 0, 1, 100, "a")});
  }
  ReservationSpec spec(std::string name, std::string queue, int gpus, int start, int seconds) {
    ReservationSpec out;
    out.name = std::move(name);
    out.queue = std::move(queue);
    out.amounts = Amounts{{kGpu, gpus * kUnitsPerGpu}};
    out.start = begin + base::seconds(start);
    out.duration = base::seconds(seconds);
    return out;
  }
  void reserve(std::vector<ReservationSpec> specs) {
    lab.engine.set_reservations(std::move(specs));
    lab.settle();
  }
  GangId job(const std::string& queue, int pods, int gpus, int seconds = 0) {
    GangSpec spec;
    spec.name = queue + "-" + std::to_string(++jobs);
    spec.queue = queue;
    spec.created = lab.now;
    spec.min_members = pods;
    if (seconds > 0) spec.runtime = base::seconds(seconds);
    const GangId id = lab.engine.add_gang(spec);
    for (int p = 0; p < pods; ++p) lab.engine.add_member(id, lab.pod(gpus));
    return id;
  }
  void at(int seconds) {
    lab.now = begin + base::seconds(seconds);
    lab.settle();
  }
  const Reservation& reservation(size_t at = 0) const { return lab.engine.reservations()[at]; }
  std::vector<std::string> nodes(size_t at = 0) const {
    std::vector<std::string> out;
    for (const auto& [node, room] : reservation(at).held)
      out.push_back(
          std::string(lab.engine.cluster().names().text(lab.engine.cluster().spec(node).name)) +
          ":" + std::to_string(room.gpu_milli / 1000));
    return out;
  }
  const Wait& wait(GangId id) const { return lab.engine.gang(id).wait; }
  std::string why(GangId id) const { return lab.engine.why(id); }

  Lab lab;
  base::Time begin = lab.now;
  int jobs = 0;
};

TEST(Reservation, whole_nodes_are_held_first_and_the_rest_where_it_fits_best) {
  World world;
  world.lab.nodes(1, 2);
  world.reserve({world.spec("r", "a1", 10, 100, 50)});
  EXPECT_EQ(world.nodes(), (std::vector<std::string>{"n1:4", "n2:4", "n4:2"}));
  EXPECT_EQ(world.reservation().phase, ReservationPhase::kPlanned);
  EXPECT_EQ(world.reservation().message, "3 nodes are free for it in time");
}

TEST(Reservation, before_its_start_only_jobs_that_end_in_time_run_there) {
  World world(1);
  world.reserve({world.spec("r", "a1", 4, 100, 50)});
  const GangId endless = world.job("b", 1, 1);
  const GangId late = world.job("b", 1, 1, 101);
  const GangId in_time = world.job("b", 1, 1, 100);
  world.lab.settle();
  EXPECT_EQ(world.lab.placed(endless), 0);
  EXPECT_EQ(world.lab.placed(late), 0);
  EXPECT_EQ(world.lab.placed(in_time), 1);
  EXPECT_EQ(world.wait(endless).reason, WaitReason::kReserved);
  EXPECT_EQ(world.wait(endless).reservation, "r");
  EXPECT_EQ(world.why(endless), "the room that it would fit into is held by reservation \"r\"");
  ASSERT_TRUE(world.wait(endless).planned_start);
  EXPECT_EQ(*world.wait(endless).planned_start, world.begin + base::seconds(150));
}

TEST(Reservation, a_job_of_a_queue_under_it_starts_at_its_start_and_others_after_its_end) {
  World world(1);
  world.reserve({world.spec("r", "a", 4, 100, 50)});
  const GangId other = world.job("b", 1, 4);
  world.at(99);
  EXPECT_EQ(world.lab.placed(other), 0);
  world.at(100);
  EXPECT_EQ(world.reservation().phase, ReservationPhase::kActive);
  EXPECT_EQ(world.lab.placed(other), 0);
  EXPECT_EQ(world.wait(other).reservation, "r");
  const GangId own = world.job("a1", 2, 2, 20);
  world.at(101);
  EXPECT_EQ(world.lab.placed(own), 2);
  world.lab.engine.remove_gang(own, world.lab.now);
  world.at(149);
  EXPECT_EQ(world.lab.placed(other), 0);
  world.at(150);
  EXPECT_EQ(world.reservation().phase, ReservationPhase::kEnded);
  EXPECT_EQ(world.lab.placed(other), 1);
}

TEST(Reservation, what_is_not_held_of_a_node_stays_open_to_all) {
  World world(1);
  world.reserve({world.spec("r", "a1", 2, 0, 50)});
  const GangId one = world.job("b", 1, 2);
  const GangId two = world.job("b", 1, 1);
  const GangId own = world.job("a1", 1, 2);
  world.lab.settle();
  EXPECT_EQ(world.lab.placed(one), 1);
  EXPECT_EQ(world.lab.placed(two), 0);
  EXPECT_EQ(world.lab.placed(own), 1);
}

TEST(Reservation, what_its_own_queue_uses_counts_for_it_wherever_on_the_node) {
  World world(1);
  world.lab.engine.add_running(world.lab.gang("own", "a1", 0, 1, 0), world.lab.pod(2),
                               {world.lab.node_ids[0], 3, 1000}, world.lab.now);
  world.reserve({world.spec("r", "a1", 2, 0, 50)});
  const GangId other = world.job("b", 1, 2);
  world.lab.settle();
  EXPECT_EQ(world.lab.placed(other), 1);
}

TEST(Reservation, nodes_that_are_free_in_time_are_chosen_and_nobody_is_evicted) {
  World world;
  const GangId endless = world.job("b", 1, 4);
  world.lab.settle();
  const GangId ends = world.job("b", 1, 4, 90);
  world.lab.settle();
  world.reserve({world.spec("r", "a1", 8, 100, 50)});
  EXPECT_EQ(world.nodes(), (std::vector<std::string>{"n2:4", "n3:4"}));
  world.lab.engine.remove_gang(ends, world.lab.now);
  world.at(100);
  const GangId own = world.job("a1", 2, 4);
  world.at(101);
  EXPECT_EQ(world.lab.placed(own), 2);
  EXPECT_EQ(world.lab.placed(endless), 1);
}

TEST(Reservation, a_busy_node_is_left_for_a_free_one_and_the_choice_is_stable_otherwise) {
  World world(2);
  const GangId endless = world.job("b", 1, 4);
  const GangId second = world.job("b", 1, 4);
  world.lab.settle();
  world.reserve({world.spec("r", "a1", 4, 100, 50)});
  const auto busy = world.nodes();
  EXPECT_EQ(busy.size(), 1U);
  EXPECT_EQ(world.reservation().reason, "Occupied");
  EXPECT_EQ(world.reservation().message,
            "4 GPUs are used by jobs that have no time limit, or one beyond its start: nobody is "
            "evicted for a "
            "reservation");
  const bool first_held = busy[0] == "n1:4";
  const core::NodeId free_later = world.lab.node_ids[first_held ? 1 : 0];
  const GangId leaver =
      world.lab.engine.member(world.lab.engine.gang(endless).members[0]).placement.node ==
              free_later
          ? endless
          : second;
  world.lab.engine.remove_gang(leaver, world.lab.now);
  world.lab.settle();
  EXPECT_EQ(world.nodes(), (std::vector<std::string>{first_held ? "n2:4" : "n1:4"}));
  EXPECT_EQ(world.reservation().reason, "PlaceFound");
  world.lab.engine.remove_gang(leaver == endless ? second : endless, world.lab.now);
  world.lab.settle();
  EXPECT_EQ(world.nodes(), (std::vector<std::string>{first_held ? "n2:4" : "n1:4"}));
}

TEST(Reservation, it_goes_on_where_its_status_says_and_leaves_a_node_that_fails) {
  World world;
  ReservationSpec spec = world.spec("r", "a1", 4, 100, 50);
  spec.nodes = {"n3"};
  world.reserve({spec});
  EXPECT_EQ(world.nodes(), (std::vector<std::string>{"n3:4"}));
  auto node = world.lab.engine.cluster().spec(world.lab.node_ids[2]);
  node.ready = false;
  world.lab.engine.cluster().update_node(world.lab.node_ids[2], node);
  world.lab.settle();
  EXPECT_EQ(world.nodes(), (std::vector<std::string>{"n1:4"}));
  node.ready = true;
  world.lab.engine.cluster().update_node(world.lab.node_ids[2], node);
  world.lab.settle();
  EXPECT_EQ(world.nodes(), (std::vector<std::string>{"n1:4"}));
}

TEST(Reservation, reservations_of_the_same_time_add_up_and_one_too_many_is_refused) {
  World world;
  world.reserve({world.spec("r", "a1", 8, 100, 50), world.spec("s", "b", 4, 120, 50),
                 world.spec("t", "b", 4, 140, 50), world.spec("u", "b", 12, 200, 50),
                 world.spec("v", "b", 13, 300, 50)});
  EXPECT_EQ(world.nodes(0), (std::vector<std::string>{"n1:4", "n2:4"}));
  EXPECT_EQ(world.nodes(1), (std::vector<std::string>{"n3:4"}));
  EXPECT_EQ(world.reservation(2).phase, ReservationPhase::kRefused);
  EXPECT_EQ(world.reservation(2).message,
            "it asks for 4 GPUs and \"r\", \"s\" leave 0 of 12 GPUs at that time");
  EXPECT_EQ(world.reservation(3).phase, ReservationPhase::kPlanned);
  EXPECT_EQ(world.reservation(4).phase, ReservationPhase::kRefused);
  EXPECT_EQ(world.reservation(4).message, "it asks for 13 GPUs and the cluster has 12 GPUs");
}

TEST(Reservation, one_without_a_queue_waits_and_one_that_makes_no_sense_is_refused) {
  World world;
  ReservationSpec bad = world.spec("bad", "a1", 4, 100, 50);
  bad.problem = "spec.duration: it is 0";
  world.reserve({world.spec("r", "nowhere", 4, 100, 50), bad});
  EXPECT_EQ(world.reservation(0).phase, ReservationPhase::kPending);
  EXPECT_EQ(world.reservation(0).reason, "QueueNotFound");
  EXPECT_EQ(world.reservation(1).phase, ReservationPhase::kRefused);
  EXPECT_EQ(world.reservation(1).message, "spec.duration: it is 0");
  EXPECT_TRUE(world.reservation(0).held.empty());
}

TEST(Reservation, GPUs_of_a_model_cores_and_memory_are_held_where_they_are) {
  World world(2);
  auto spec = core::testing::node_spec(world.lab.engine.cluster(), "x1", 8);
  spec.model = world.lab.engine.cluster().names().model("A100");
  world.lab.engine.cluster().add_node(spec);
  ReservationSpec ask = world.spec("r", "a1", 0, 10, 50);
  Dims& dims = world.lab.engine.dims();
  ask.amounts = Amounts{{dims.model("A100"), 4 * kUnitsPerGpu}, {kCpu, 10'000}};
  world.reserve({ask});
  EXPECT_EQ(world.nodes(), (std::vector<std::string>{"x1:4"}));
  const Room& room = world.reservation().held.begin()->second;
  EXPECT_EQ(room.cpu_milli, 10'000);
  EXPECT_EQ(room.memory_bytes, 256 * core::testing::kGi);
  ask.amounts = Amounts{{kCpu, 100'000}, {kMemory, 2048}};
  world.reserve({ask});
  EXPECT_EQ(world.reservation().held.size(), 2U);
  EXPECT_EQ(world.reservation().phase, ReservationPhase::kPlanned);
}

TEST(Reservation, shares_of_devices_are_held_as_well) {
  World world(1, 1);
  ReservationSpec ask = world.spec("r", "a1", 0, 0, 50);
  ask.amounts = Amounts{{kGpu, kUnitsPerGpu / 2}};
  world.reserve({ask});
  auto share = [&](const std::string& queue, int milli) {
    const GangId id = world.lab.gang(queue + std::to_string(milli), queue, 0, 1, 0);
    MemberSpec spec;
    spec.request = core::testing::shared(core::testing::pod(100, 1, milli));
    spec.amounts.add(kGpu, milli * 7);
    world.lab.engine.add_member(id, spec);
    return id;
  };
  const GangId large = share("b", 600);
  const GangId small = share("b", 500);
  const GangId own = share("a1", 450);
  world.lab.settle();
  EXPECT_EQ(world.lab.placed(large), 0);
  EXPECT_EQ(world.lab.placed(small), 1);
  EXPECT_EQ(world.lab.placed(own), 1);
}

TEST(Reservation, what_others_plan_for_afterwards_does_not_keep_its_own_queue_off) {
  World world(1);
  world.reserve({world.spec("r", "a1", 4, 0, 50)});
  const GangId planned = world.job("b", 1, 4);
  world.lab.settle();
  ASSERT_TRUE(world.wait(planned).planned_start);
  const GangId own = world.job("a1", 2, 2);  // without a time limit
  const GangId more = world.job("a1", 1, 1);
  world.lab.settle();
  EXPECT_EQ(world.lab.placed(own), 2);
  EXPECT_EQ(world.lab.placed(more), 0);
}

TEST(Reservation, a_queue_takes_its_share_elsewhere_and_not_from_jobs_in_their_reserved_place) {
  World world(2);
  world.lab.queues({queue("a", 0, 1), queue("b", 4, 1)});
  world.reserve({world.spec("r", "a", 4, 0, 500)});
  const GangId held = world.job("a", 1, 4);
  const GangId more = world.job("a", 1, 4);
  world.lab.settle();
  EXPECT_EQ(world.lab.placed(held) + world.lab.placed(more), 2);
  world.lab.pass(base::seconds(10));
  const GangId claims = world.job("b", 1, 4);
  world.lab.settle();
  EXPECT_EQ(world.lab.placed(claims), 1);
  const core::NodeId node =
      world.lab.engine.member(world.lab.engine.gang(claims).members[0]).placement.node;
  EXPECT_FALSE(world.reservation().held.contains(node));
}

// Whatever happens: during a reservation nobody else starts on what it holds; at its start its queue's jobs start, on what
// is free in time; and what they hold together is never more than there is.
class RandomWorld {
 public:
  explicit RandomWorld(uint64_t seed) : random_(seed), world_(2 + below(3), 4) {}

  std::string run() {
    for (int step = 0; step < 60; ++step) {
      change();
      world_.lab.pass(base::seconds(1 + below(20)));
      end_jobs();
      for (int cycle = 0; cycle < 20; ++cycle) {
        const Plan plan = world_.lab.engine.cycle(world_.lab.now);
        if (std::string wrong = check(plan); !wrong.empty())
          return "step " + std::to_string(step) + ": " + wrong;
        for (const Evict& evict : plan.evicts)
          world_.lab.engine.remove_member(evict.member, world_.lab.now);
        if (plan.binds.empty() && plan.evicts.empty()) break;
        if (cycle == 19) return "it never comes to rest";
      }
    }
    return {};
  }

 private:
  int below(int n) { return static_cast<int>(random_.below(static_cast<uint64_t>(n))); }

  void change() {
    const char* queues[] = {"a", "b", "a1", "b"};
    switch (below(6)) {
      case 0: {
        const int from = static_cast<int>((world_.lab.now - world_.begin).ns / 1'000'000'000);
        specs_.push_back(world_.spec("r" + std::to_string(specs_.size()), below(2) ? "a" : "a1",
                                     1 + below(8), from + below(200), 20 + below(200)));
        world_.lab.engine.set_reservations(specs_);
        break;
      }
      case 1: {
        const core::NodeId node = world_.lab.node_ids[random_.below(world_.lab.node_ids.size())];
        auto spec = world_.lab.engine.cluster().spec(node);
        if (below(2) == 0)
          spec.gpus_unhealthy = spec.gpus_unhealthy ? 0 : 1u << below(4);
        else
          spec.ready = !spec.ready;
        world_.lab.engine.cluster().update_node(node, spec);
        break;
      }
      default:
        jobs_.push_back(world_.job(queues[below(4)], 1 + below(3), 1 + below(4),
                                   below(3) ? 10 + below(150) : 0));
    }
  }

  void end_jobs() {
    std::erase_if(jobs_, [&](GangId id) {
      const Gang& gang = world_.lab.engine.gang(id);
      bool over = below(60) == 0;
      for (MemberId m : gang.members) {
        const Member& member = world_.lab.engine.member(m);
        over |= member.pod.valid() && gang.spec.runtime &&
                world_.lab.now - member.started >= *gang.spec.runtime;
      }
      if (over) world_.lab.engine.remove_gang(id, world_.lab.now);
      return over;
    });
  }

  std::string check(const Plan& plan) {
    if (std::string wrong = world_.lab.engine.audit(); !wrong.empty()) return wrong;
    const Engine& engine = world_.lab.engine;
    for (const Bind& bind : plan.binds) {
      const Gang& gang = engine.gang(engine.member(bind.member).gang);
      if (gang.spec.queue != "b") continue;
      // What b's jobs have on the node and what is held there must fit in it, now and as long as the job may run.
      const core::NodeId node = bind.placement.node;
      int64_t others = 0;
      for (const core::PodId pod : engine.cluster().pods_on(node))
        others += __builtin_popcount(engine.cluster().pod(pod).placement.devices &
                                     ~engine.cluster().spec(node).gpus_unhealthy) *
                  (engine_queue(pod) == "b" ? 1 : 0);
      int64_t held = 0;
      for (const Reservation& r : engine.reservations()) {
        const auto found = r.held.find(node);
        if (found != r.held.end() && r.in_force(world_.lab.now)) held += found->second.gpu_milli;
      }
      const auto& spec = engine.cluster().spec(node);
      // What its own jobs have is theirs, on devices that have fallen ill too.
      uint32_t usable = ((1u << spec.gpus) - 1) & ~spec.gpus_unhealthy;
      for (const core::PodId pod : engine.cluster().pods_on(node)) {
        if (engine_queue(pod) != "b") usable |= engine.cluster().pod(pod).placement.devices;
      }
      const int64_t healthy = __builtin_popcount(usable);
      if (held > 0 && others * 1000 + held > healthy * 1000)
        return gang.spec.name + " runs on what is held";
    }
    return {};
  }

  std::string engine_queue(core::PodId pod) {
    for (GangId id : jobs_) {
      for (MemberId m : world_.lab.engine.gang(id).members) {
        if (world_.lab.engine.member(m).pod == pod) return world_.lab.engine.gang(id).spec.queue;
      }
    }
    return {};
  }

  base::Random random_;
  World world_;
  std::vector<ReservationSpec> specs_;
  std::vector<GangId> jobs_;
};

TEST(ReservationProperty, nobody_else_starts_on_what_is_held) {
  const char* text = std::getenv("TESSERA_QUEUE_SEEDS");
  const uint64_t seeds = text ? std::strtoull(text, nullptr, 10) : 100;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::string wrong = RandomWorld(seed).run();
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

// Jobs that keep their limits are never in the way of a reserved job at the start.
TEST(ReservationProperty, a_reserved_job_starts_at_its_start) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    base::Random random(seed);
    auto below = [&](int n) { return static_cast<int>(random.below(static_cast<uint64_t>(n))); };
    World world(3);
    world.reserve({world.spec("r", "a1", 8, 400, 100)});
    std::vector<GangId> jobs;
    for (int second = 0; second < 400; second += 10) {
      if (below(2) == 0)
        jobs.push_back(world.job("b", 1 + below(2), 1 + below(4), 10 + below(300)));
      for (size_t j = 0; j < jobs.size();) {
        const Gang& gang = world.lab.engine.gang(jobs[j]);
        if (gang.placed > 0 && world.lab.now - world.lab.engine.member(gang.members[0]).started >=
                                   *gang.spec.runtime) {
          world.lab.engine.remove_gang(jobs[j], world.lab.now);
          jobs.erase(jobs.begin() + static_cast<ptrdiff_t>(j));
        } else {
          ++j;
        }
      }
      world.at(second);
    }
    for (GangId id : jobs) {
      const Gang& gang = world.lab.engine.gang(id);
      if (gang.placed > 0 &&
          world.lab.engine.member(gang.members[0]).started + *gang.spec.runtime <=
              world.begin + base::seconds(400))
        world.lab.engine.remove_gang(id, world.begin + base::seconds(400));
    }
    const GangId own = world.job("a1", 2, 4);
    world.at(400);
    ASSERT_EQ(world.lab.placed(own), 2) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tessera::scheduler::queueing
