#include "scheduler/verdict.h"

#include <gmock/gmock.h>

#include "scheduler/queueing/engine_testing.h"

namespace tessera::scheduler {
namespace {

using namespace queueing;
using queueing::testing::Lab;
using queueing::testing::limited;
using queueing::testing::queue;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The verdict, after it was seen to survive its own JSON.
Verdict told(const Lab& lab, GangId id) {
  const Verdict out = verdict_of(lab.engine, id, lab.now);
  const json::Value stored = to_json(out);
  EXPECT_LE(stored.dump().size(), kVerdictBytesMax);
  const auto read = parse_verdict(stored);
  EXPECT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value_or(Verdict()), out) << stored.dump();
  return out;
}

TEST(Verdict, A_gang_that_runs_does_not_wait) {
  Lab lab;
  lab.nodes(1, 8).queues({queue("a", 0)});
  const GangId id = lab.gang("ns/job", "a", 1, 1, 1);
  lab.settle();
  const Verdict verdict = told(lab, id);
  EXPECT_EQ(verdict.reason, "None");
  EXPECT_EQ(verdict.sentence, "");
  EXPECT_EQ(to_text(verdict), "ns/job does not wait\n");
}

TEST(Verdict, A_queue_that_does_not_exist_has_to_be_made) {
  Lab lab;
  lab.nodes(1, 8).queues({queue("a", 0)});
  const GangId id = lab.gang("ns/job", "b", 1, 1, 1);
  lab.cycle();
  const Verdict verdict = told(lab, id);
  EXPECT_EQ(verdict.reason, "NoQueue");
  EXPECT_EQ(verdict.constraint.queue, "b");
  EXPECT_TRUE(verdict.never);
  EXPECT_THAT(verdict.mends, ElementsAre("create queue \"b\", or name one that exists"));
}

TEST(Verdict, A_closed_queue_has_to_be_opened_and_a_broken_one_mended) {
  Lab lab;
  QueueSpec shut = queue("shut", 0);
  shut.open = false;
  lab.nodes(1, 8).queues({shut, queue("orphan", 0, 1, 100, "gone")});
  const GangId in_shut = lab.gang("ns/a", "shut", 1, 1, 1);
  const GangId in_orphan = lab.gang("ns/b", "orphan", 1, 1, 1);
  lab.cycle();
  EXPECT_EQ(told(lab, in_shut).reason, "QueueClosed");
  EXPECT_THAT(told(lab, in_shut).mends, ElementsAre("open queue \"shut\""));
  EXPECT_THAT(told(lab, in_orphan).mends, ElementsAre(HasSubstr("mend queue \"orphan\": ")));
  EXPECT_THAT(told(lab, in_orphan).mends, ElementsAre(HasSubstr("gone")));
}

TEST(Verdict, A_queue_with_queues_under_it_takes_no_jobs) {
  Lab lab;
  lab.nodes(1, 8).queues({queue("top", 0), queue("leaf", 0, 1, 100, "top")});
  const GangId id = lab.gang("ns/job", "top", 1, 1, 1);
  lab.cycle();
  const Verdict verdict = told(lab, id);
  EXPECT_EQ(verdict.reason, "QueueNotLeaf");
  EXPECT_THAT(verdict.mends, ElementsAre("name one of the queues under \"top\""));
}

TEST(Verdict, Members_that_do_not_exist_yet_are_counted) {
  Lab lab;
  lab.nodes(1, 8).queues({queue("a", 0)});
  const GangId id = lab.gang("ns/job", "a", 2, 4, 1);
  lab.cycle();
  const Verdict verdict = told(lab, id);
  EXPECT_EQ(verdict.reason, "NotEnoughMembers");
  EXPECT_EQ(verdict.constraint.resource, "members");
  EXPECT_EQ(verdict.constraint.need, "4");
  EXPECT_EQ(verdict.constraint.have, "2");
  EXPECT_THAT(verdict.mends, ElementsAre("2 more members to be created, or a lower minimum"));
  EXPECT_FALSE(verdict.never);
}

TEST(Verdict, A_limit_tells_whose_it_is_and_how_much_must_come_free) {
  Lab lab;
  lab.nodes(2, 8).queues({limited(queue("b", 0), 4)});
  lab.gang("ns/first", "b", 1, 1, 2);
  lab.settle();
  const GangId id = lab.gang("ns/job", "b", 1, 1, 4);
  const GangId too_large = lab.gang("ns/large", "b", 1, 1, 8);
  lab.cycle();
  const Verdict verdict = told(lab, id);
  EXPECT_EQ(verdict.reason, "QueueLimit");
  EXPECT_EQ(verdict.constraint.queue, "b");
  EXPECT_EQ(verdict.constraint.resource, "gpu");
  EXPECT_EQ(verdict.constraint.need, "4");
  EXPECT_EQ(verdict.constraint.have, "2");
  EXPECT_EQ(verdict.constraint.limit, "4");
  EXPECT_THAT(verdict.mends, ElementsAre("2 GPUs of queue \"b\"'s limit"));
  EXPECT_FALSE(verdict.never);
  const Verdict never = told(lab, too_large);
  EXPECT_TRUE(never.never);
  EXPECT_EQ(never.position, 1);
  EXPECT_THAT(never.mends,
              ElementsAre("raise the limit of queue \"b\" to 8 GPUs, or ask for less"));
}

TEST(Verdict, Behind_another_in_a_strict_queue_names_it) {
  Lab lab;
  QueueSpec strict = queue("a", 0);
  strict.strict_fifo = true;
  lab.nodes(1, 8).queues({strict});
  lab.gang("ns/held", "a", 1, 1, 6);
  lab.settle();
  lab.gang("ns/first", "a", 1, 1, 8);
  const GangId id = lab.gang("ns/second", "a", 1, 1, 1);
  lab.cycle();
  const Verdict verdict = told(lab, id);
  EXPECT_EQ(verdict.reason, "BehindOther");
  EXPECT_EQ(verdict.constraint.job, "ns/first");
  EXPECT_EQ(verdict.position, 1);
  EXPECT_THAT(verdict.mends, ElementsAre("the start of \"ns/first\", which is first in line"));
}

TEST(Verdict, No_room_names_the_nearest_node_and_how_many_members_lack_a_place) {
  Lab lab;
  lab.nodes(2, 8).queues({queue("a", 0)});
  lab.gang("ns/first", "a", 1, 1, 6);
  lab.settle();
  const GangId id = lab.gang("ns/job", "a", 3, 3, 8);
  const GangId single = lab.gang("ns/single", "a", 1, 1, 16);
  lab.cycle();
  const Verdict verdict = told(lab, id);
  EXPECT_EQ(verdict.reason, "NoCapacity");
  EXPECT_EQ(verdict.constraint.need, "3");
  EXPECT_EQ(verdict.constraint.have, "1");
  EXPECT_EQ(verdict.nearest_node, "n1");
  EXPECT_EQ(verdict.nearest_short, "6 nvidia.com/gpu");
  EXPECT_THAT(verdict.mends, ElementsAre("room for 2 more members with 8 GPUs each"));
  EXPECT_EQ(verdict.members, 3);
  EXPECT_EQ(verdict.placed, 0);
  const Verdict never = told(lab, single);
  EXPECT_TRUE(never.never);
  EXPECT_THAT(never.mends,
              ElementsAre("ask for less than 16 GPUs a member, or add a node that can hold it"));
}

// A queue whose first job ends in 1000 s, a wide job with a planned start then, and one that would delay it.
struct Planned {
  Planned() {
    lab.nodes(2, 8).queues({queue("a", 0)});
    GangSpec spec;
    spec.name = "ns/running";
    spec.queue = "a";
    spec.runtime = base::seconds(1000);
    spec.created = lab.now;
    lab.engine.add_member(lab.engine.add_gang(spec), lab.pod(8));
    lab.settle();
    wide = lab.gang("ns/wide", "a", 2, 2, 8);
    late = lab.gang("ns/late", "a", 1, 1, 1);
    lab.cycle();
  }
  Lab lab;
  GangId wide{};
  GangId late{};
};

TEST(Verdict, A_planned_start_is_told_with_its_nodes_until_it_has_passed) {
  Planned world;
  const Verdict verdict = told(world.lab, world.wide);
  ASSERT_TRUE(verdict.planned_start);
  EXPECT_EQ(*verdict.planned_start, world.lab.now + base::seconds(1000));
  EXPECT_THAT(verdict.planned_nodes, ElementsAre("n1", "n2"));
  EXPECT_THAT(to_text(verdict), HasSubstr(" on n1, n2\n"));
  world.lab.pass(base::seconds(1001));
  EXPECT_FALSE(verdict_of(world.lab.engine, world.wide, world.lab.now).planned_start);
}

TEST(Verdict, One_that_would_delay_a_planned_start_is_told_whose) {
  Planned world;
  const Verdict verdict = told(world.lab, world.late);
  EXPECT_EQ(verdict.reason, "Reserved");
  EXPECT_EQ(verdict.constraint.job, "ns/wide");
  EXPECT_THAT(verdict.mends, ElementsAre("the start of \"ns/wide\"",
                                         "or a time limit that ends this job before then"));
}

TEST(Verdict, A_place_that_is_being_freed_waits_for_those_who_leave) {
  Lab lab;
  lab.nodes(1, 8).queues({queue("a", 0)});
  lab.gang("ns/low", "a", 1, 1, 8);
  lab.settle();
  const GangId id = lab.gang("ns/high", "a", 1, 1, 8, 10);
  lab.engine.cycle(lab.now);
  const Verdict verdict = told(lab, id);
  EXPECT_EQ(verdict.reason, "WaitingForEviction");
  EXPECT_THAT(verdict.mends, ElementsAre("the end of 1 pod that is leaving"));
}

TEST(Verdict, What_a_verdict_points_at_may_be_gone) {
  Lab lab;
  lab.nodes(1, 8).queues({queue("a", 0), queue("z", 0)});
  lab.gang("ns/first", "a", 1, 1, 8);
  lab.settle();
  const GangId capacity = lab.gang("ns/job", "a", 2, 1, 8);
  lab.cycle();
  const MemberId pointed = lab.engine.gang(capacity).wait.member;
  lab.engine.remove_member(pointed, lab.now);
  const Verdict verdict = told(lab, capacity);
  EXPECT_EQ(verdict.reason, "NoCapacity");
  EXPECT_THAT(verdict.sentence, HasSubstr("has changed"));

  QueueSpec shut = queue("shut", 0);
  shut.open = false;
  lab.queues({queue("a", 0), queue("z", 0), shut});
  const GangId closed = lab.gang("ns/closed", "shut", 1, 1, 1);
  lab.cycle();
  lab.queues({});
  EXPECT_EQ(told(lab, closed).reason, "None") << "it is to be looked at anew";
}

TEST(Verdict, A_reason_that_is_new_is_told_by_its_sentence) {
  Verdict verdict;
  verdict.job = "ns/job";
  verdict.queue = "a";
  verdict.reason = "Held";
  verdict.sentence = "PodGroup g does not exist: create it";
  const auto read = parse_verdict(to_json(verdict));
  ASSERT_TRUE(read);
  EXPECT_THAT(to_text(*read), HasSubstr("(Held)\n  Why:           PodGroup g does not exist"));
}

TEST(Verdict, An_unchanged_state_says_the_same_a_day_later) {
  Lab lab;
  lab.nodes(1, 8).queues({limited(queue("b", 0), 4)});
  const GangId id = lab.gang("ns/job", "b", 1, 1, 8);
  lab.cycle();
  const std::string before = to_json(told(lab, id)).dump();
  lab.pass(base::seconds(86400));
  EXPECT_EQ(to_json(told(lab, id)).dump(), before);
}

TEST(Verdict, Whatever_the_names_the_annotation_stays_short) {
  Verdict verdict;
  const std::string nasty(100'000, '\x01');
  verdict.job = verdict.queue = verdict.sentence = verdict.nearest_node = nasty;
  verdict.nearest_short = verdict.constraint.queue = verdict.constraint.job = nasty;
  verdict.reason = "NoCapacity";
  for (int i = 0; i < 1000; ++i) verdict.planned_nodes.push_back(nasty);
  for (int i = 0; i < 1000; ++i) verdict.mends.push_back(nasty);
  const json::Value stored = to_json(verdict);
  EXPECT_LE(stored.dump().size(), kVerdictBytesMax);
  const auto read = parse_verdict(stored);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->reason, "NoCapacity");
  EXPECT_EQ(read->planned_nodes.size() + static_cast<size_t>(read->planned_nodes_more), 1000U);
}

TEST(Verdict, Text_is_cut_between_characters) {
  Verdict verdict;
  verdict.reason = "Held";
  for (int i = 0; i < 400; ++i) verdict.sentence += "\u00e9";
  const auto read = parse_verdict(to_json(verdict));
  ASSERT_TRUE(read);
  EXPECT_THAT(read->sentence, ::testing::EndsWith("\u00e9..."));
}

TEST(Verdict, What_is_no_verdict_is_refused_with_the_field) {
  struct Case {
    json::Value value;
    const char* problem;
  };
  auto with = [](const char* key, json::Value value) {
    json::Value out = json::Value::object({{"reason", "Held"}});
    out.set(key, std::move(value));
    return out;
  };
  for (const Case& c :
       {Case{json::Value("x"), "not an object"}, Case{json::Value::object(), "reason is not given"},
        Case{with("sentence", 3), "sentence is not text"},
        Case{with("position", -1), "position is not a whole number"},
        Case{with("mends", "x"), "mends is not a list"},
        Case{with("plannedNodes", json::Value::array({1})), "plannedNodes is not"},
        Case{with("plannedStart", "soon"), "plannedStart is not a time"},
        Case{with("since", true), "since is not a time"}}) {
    const auto read = parse_verdict(c.value);
    ASSERT_FALSE(read) << c.value.dump();
    EXPECT_EQ(read.error().code, base::Code::kBadRequest);
    EXPECT_THAT(read.error().message, HasSubstr(c.problem));
  }
}

TEST(Verdict, The_text_says_why_what_is_needed_and_where_it_stands) {
  Lab lab;
  lab.nodes(1, 8).queues({limited(queue("b", 0), 4)});
  lab.gang("ns/first", "b", 1, 1, 2);
  lab.settle();
  const GangId id = lab.gang("ns/job", "b", 2, 2, 2);
  lab.cycle();
  EXPECT_EQ(to_text(told(lab, id)),
            "ns/job waits in queue \"b\" (QueueLimit)\n"
            "  Why:           it needs 4 GPUs and queue \"b\" has 2 left of its limit of 4\n"
            "  Needs:         2 GPUs of queue \"b\"'s limit\n"
            "  In line:       first\n"
            "  Members:       2 exist, 2 must start together, 0 have a place\n"
            "  Waiting since: 1970-01-12T13:46:40Z\n");
}

}  // namespace
}  // namespace tessera::scheduler
