#include "scheduler/queue_status.h"

#include <gmock/gmock.h>

#include "json/patch.h"
#include "scheduler/conditions.h"
#include "scheduler/queueing/engine_testing.h"
#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using queueing::kUnitsPerGpu;
using queueing::testing::Lab;
using queueing::testing::limited;
using queueing::testing::queue;
using testing::yaml;

// One queue object and the engine behind it.
class Written {
 public:
  explicit Written(std::string_view text) : object(yaml(text)) {}
  std::optional<json::Value> ask() const {
    return queue_status(kube::Object(object), lab.engine,
                        lab.engine.queues().find(object["metadata"]["name"].as_string()), problem,
                        jobs, lab.now);
  }
  bool write() {
    const auto patch = ask();
    if (patch) object = json::apply_merge_patch(object, *patch);
    const auto again = ask();
    EXPECT_FALSE(again) << again->dump();
    lab.pass(base::seconds(10));
    EXPECT_FALSE(ask());
    return patch.has_value();
  }
  std::string status() {
    write();
    json::Value out = object["status"];
    out.erase("conditions");
    return out.dump();
  }
  std::string ready() {
    write();
    const json::Value& found = condition_of(object["status"], "Ready");
    return found["status"].str() + " " + found["reason"].str() + ": " + found["message"].str();
  }

  json::Value object{};
  Lab lab{};
  QueueJobs jobs{};
  std::string problem{};
};

TEST(QueueStatusOurs, What_it_has_wants_and_is_due) {
  Written q("{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: q, generation: 3}}");
  q.lab.nodes(1, 4).queues({limited(queue("q", 2), 4), queue("other", 2)});
  EXPECT_EQ(q.status(),
            R"({"observedGeneration":3,"running":0,"share":{"gpu":"0"},"used":{"gpu":"0"},)"
            R"("waiting":0,"wanted":{}})");
  q.lab.gang("ns/a", "q", 1, 1, 2);
  q.lab.gang("ns/b", "q", 1, 1, 3);
  q.lab.settle();
  q.jobs.running = 1;
  EXPECT_TRUE(q.write());
  const json::Value& status = q.object["status"];
  EXPECT_EQ(status["used"]["gpu"].as_string(), "2");
  EXPECT_EQ(status["used"]["gpu/H100"].as_string(), "2");
  EXPECT_EQ(status["used"]["cpu"].as_string(), "100m");
  EXPECT_EQ(status["wanted"]["gpu"].as_string(), "3");
  EXPECT_EQ(status["share"]["gpu"].as_string(), "4");
  EXPECT_EQ(status["running"].as_int(), 1);
  EXPECT_EQ(status["waiting"].as_int(), 1);
  q.object.ref("metadata").set("generation", 4);
  EXPECT_TRUE(q.write());
  EXPECT_EQ(q.object["status"]["observedGeneration"].as_int(), 4);
}

TEST(QueueStatusOurs, Amounts_that_are_gone_are_taken_out) {
  Written q("{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: q}}");
  q.lab.nodes(1, 4).queues({queue("q", 0)});
  const auto id = q.lab.gang("ns/a", "q", 1, 1, 2);
  q.lab.settle();
  q.write();
  EXPECT_EQ(q.object["status"]["used"].size(), 3U);
  q.lab.engine.remove_gang(id, q.lab.now);
  q.write();
  EXPECT_EQ(q.object["status"]["used"].dump(), R"({"gpu":"0"})");
}

TEST(QueueStatusOurs, Gpus_have_three_decimals_at_most_and_memory_its_unit) {
  Written q("{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: q}}");
  q.lab.nodes(1, 4).queues({queue("q", 0)});
  queueing::GangSpec spec;
  spec.name = "ns/a";
  spec.queue = "q";
  queueing::MemberSpec member = q.lab.pod(0);
  member.amounts.add(queueing::kGpu, kUnitsPerGpu / 7);
  member.amounts.add(queueing::kMemory, 1536);
  member.amounts.add(q.lab.engine.dims().intern("nvidia.com/mig-1g.10gb"), 1);
  q.lab.engine.add_member(q.lab.engine.add_gang(spec), member);
  q.write();
  EXPECT_EQ(q.object["status"]["wanted"].dump(),
            R"({"cpu":"100m","gpu":"142m","memory":"1536Mi","nvidia.com/mig-1g.10gb":"1"})");
}

TEST(QueueStatusOurs, It_is_ready_or_says_why_not) {
  Written q("{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: q}}");
  EXPECT_THAT(q.ready(), ::testing::StartsWith("False NotLoaded: "));
  q.lab.queues({queue("q", 0)});
  EXPECT_EQ(q.ready(), "True Open: jobs may wait in it");
  const std::string since = condition_of(q.object["status"], "Ready")["lastTransitionTime"].str();
  q.lab.queues({queue("q", 0), queue("under", 0, 1, 100, "q")});
  EXPECT_EQ(q.ready(), "True Open: jobs may wait in the queues under it");
  EXPECT_EQ(condition_of(q.object["status"], "Ready")["lastTransitionTime"].str(), since);
  queueing::QueueSpec shut = queue("q", 0);
  shut.open = false;
  q.lab.queues({shut});
  EXPECT_EQ(q.ready(), "False Closed: it takes no new jobs; those that run go on");
  EXPECT_NE(condition_of(q.object["status"], "Ready")["lastTransitionTime"].str(), since);
  q.lab.queues({queue("q", 0, 1, 100, "gone")});
  EXPECT_THAT(q.ready(), ::testing::StartsWith("False InvalidDefinition: its parent \"gone\""));
  q.problem = "spec.quota.gpu: -1 is negative: give 0 or more, or leave it out";
  EXPECT_EQ(q.ready(), "False InvalidDefinition: " + q.problem);
}

TEST(QueueStatusVolcano, State_amounts_and_groups_by_phase) {
  Written q("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}}");
  q.lab.nodes(1, 4).queues({queue("q", 0)});
  EXPECT_EQ(q.status(), R"({"allocated":{"cpu":"0","memory":"0"},"state":"Open"})");
  q.lab.gang("ns/a", "q", 1, 1, 2);
  q.lab.settle();
  for (const char* phase : {"", "Pending", "Inqueue", "Running", "Unknown", "Completed", "Odd"})
    count_phase(q.jobs, phase);
  EXPECT_EQ(q.status(),
            R"({"allocated":{"cpu":"100m","memory":"0","nvidia.com/gpu":"2"},"completed":1,)"
            R"("inqueue":1,"pending":2,"running":1,"state":"Open","unknown":1})");
  q.problem = "spec.weight: it makes no sense";
  q.write();
  EXPECT_EQ(q.object["status"]["state"].as_string(), "Unknown");
  q.problem.clear();
  q.write();
  EXPECT_EQ(q.object["status"]["state"].as_string(), "Open");
}

TEST(QueueStatusVolcano, One_that_is_closed_stays_closed) {
  Written q(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, "
      "spec: {capability: {amd.com/gpu: 4}}, status: {state: Closing}}");
  q.lab.nodes(1, 4).queues({queue("q", 0)});
  q.lab.gang("ns/a", "q", 1, 1, 2);
  q.lab.settle();
  count_phase(q.jobs, "Running");
  q.write();
  EXPECT_EQ(q.object["status"]["state"].as_string(), "Closing");
  EXPECT_EQ(q.object["status"]["allocated"]["amd.com/gpu"].as_string(), "2");
  q.jobs = {};
  q.write();
  EXPECT_EQ(q.object["status"]["state"].as_string(), "Closed");
  EXPECT_FALSE(q.write());
}

TEST(QueueStatusKai, Allocated_requested_and_the_queues_under_it) {
  Written q("{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: q}}");
  q.lab.nodes(1, 4).queues({queue("q", 0), queue("b", 0, 1, 100, "q"), queue("a", 0, 1, 100, "q")});
  q.lab.gang("ns/a", "a", 1, 1, 3);
  q.lab.gang("ns/b", "b", 1, 1, 3);
  q.lab.settle();
  EXPECT_EQ(q.status(), R"({"allocated":{"cpu":"100m","memory":"0","nvidia.com/gpu":"3"},)"
                        R"("childQueues":["a","b"],)"
                        R"("requested":{"cpu":"200m","memory":"0","nvidia.com/gpu":"6"}})");
  q.jobs.kept = queueing::Amounts{{queueing::kGpu, kUnitsPerGpu / 2}};
  q.lab.queues({queue("q", 0)});
  q.write();
  EXPECT_EQ(q.object["status"]["allocatedNonPreemptible"].dump(),
            R"({"cpu":"0","memory":"0","nvidia.com/gpu":"500m"})");
  EXPECT_EQ(q.object["status"]["childQueues"].size(), 0U);
}

TEST(QueueStatus, What_is_no_queue_of_a_known_kind_is_left_alone) {
  for (const char* text : {"{}", "{apiVersion: tessera.dev/v1alpha1, kind: Tenant}",
                           "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Queue}"}) {
    Written q(text);
    EXPECT_FALSE(q.ask());
  }
}

}  // namespace
}  // namespace tessera::scheduler
