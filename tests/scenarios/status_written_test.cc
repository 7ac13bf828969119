// What the scheduler writes about queues and groups is taken by the API as it stands, and read back says the same.

#include <gmock/gmock.h>

#include "base/file.h"
#include "json/yaml.h"
#include "scheduler/conditions.h"
#include "scheduler/group_status.h"
#include "scheduler/queue_status.h"
#include "scheduler/queueing/engine_testing.h"
#include "sim/lab_testing.h"
#include "source_dir.h"

namespace tessera::sim {
namespace {

namespace queueing = scheduler::queueing;

constexpr const char* kFleet = "name: lab\nracks: [{name: r1, nodes: [{name: a}]}]";

class StatusWritten : public ::testing::Test {
 protected:
  json::Value must(kube::Verb verb, const kube::Gvr& gvr, const json::Value& object,
                   std::string_view subresource = {}) {
    kube::Request request;
    request.verb = verb;
    request.gvr = gvr;
    request.subresource = subresource;
    request.body = object;
    request.ns = ns;
    if (verb != kube::Verb::kCreate) request.name = "o";
    request.query = {{"fieldValidation", "Strict"}};
    const auto reply = lab.call(std::move(request));
    EXPECT_TRUE(reply) << reply.error().message << "\n" << object.dump();
    return reply.value_or(json::Value());
  }
  static json::Value yaml(const std::string& text) {
    const auto value = json::parse_yaml(text);
    EXPECT_TRUE(value) << text;
    return value.value_or(json::Value());
  }

  Lab lab{kFleet};
  std::string ns{};
};

TEST_F(StatusWritten, A_queue_keeps_what_is_written_of_it) {
  const auto crd = base::read_file(TESSERA_SOURCE_DIR "/config/crd/queue.yaml");
  ASSERT_TRUE(crd);
  must(kube::Verb::kCreate, {"apiextensions.k8s.io", "v1", "customresourcedefinitions"},
       yaml(*crd));
  lab.advance(base::seconds(1));
  const kube::Gvr queues{"tessera.dev", "v1alpha1", "queues"};
  json::Value object =
      must(kube::Verb::kCreate, queues,
           yaml("{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: o}, "
                "spec: {quota: {gpu: 2}, limit: {gpu: 4, memory: 64Gi}}}"));
  queueing::testing::Lab engine;
  const auto write = [&](std::string_view problem) {
    const auto id = engine.engine.queues().find("o");
    const auto ask = [&] {
      return scheduler::queue_status(kube::Object(object), engine.engine, id, problem, {},
                                     engine.now);
    };
    const auto patch = ask();
    ASSERT_TRUE(patch);
    object = must(kube::Verb::kPatch, queues, *patch, "status");
    const auto again = ask();
    EXPECT_FALSE(again) << again->dump();
  };
  write("");
  queueing::QueueSpec spec = queueing::testing::limited(queueing::testing::queue("o", 2), 4);
  spec.limit.add(queueing::kMemory, 65536);
  engine.nodes(1, 8).queues({spec});
  engine.gang("ns/a", "o", 1, 1, 2);
  engine.gang("ns/b", "o", 1, 1, 4);
  engine.settle();
  write("");
  EXPECT_EQ(object["status"]["used"]["gpu"].as_string(), "2");
  EXPECT_EQ(object["status"]["waiting"].as_int(), 1);
  write("spec.limit.gpu: it makes no sense");
}

TEST_F(StatusWritten, A_group_of_Kubernetes_keeps_its_conditions) {
  ns = "default";
  const kube::Gvr groups{"scheduling.k8s.io", "v1beta1", "podgroups"};
  json::Value object =
      must(kube::Verb::kCreate, groups,
           yaml("{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: o}, "
                "spec: {schedulingPolicy: {gang: {minCount: 2}}}}"));
  scheduler::Group group;
  group.dialect = scheduler::Dialect::kKubernetes;
  scheduler::GroupProgress progress;
  progress.min = 2;
  progress.now = base::Time{base::seconds(1'000'000).ns};
  const auto write = [&] {
    const auto patch = scheduler::group_status(group, kube::Object(object), progress);
    ASSERT_TRUE(patch);
    object = must(kube::Verb::kPatch, groups, *patch, "status");
    const auto again = scheduler::group_status(group, kube::Object(object), progress);
    EXPECT_FALSE(again) << again->dump();
  };
  progress.members = progress.waiting = 2;
  progress.reason = queueing::WaitReason::kCapacity;
  progress.why = "no room";
  progress.planned_start = progress.now + base::seconds(100);
  progress.planned_nodes = {"a"};
  write();
  progress.waiting = 0;
  progress.placed = 2;
  progress.why.clear();
  write();
  progress.evicting = "another needs its place";
  write();
  const json::Value& status = object["status"];
  EXPECT_EQ(status["conditions"].size(), 3U) << status.dump();
  EXPECT_EQ(scheduler::condition_of(status, "PodGroupInitiallyScheduled")["status"].as_string(),
            "True");
  EXPECT_EQ(scheduler::condition_of(status, "DisruptionTarget")["status"].as_string(), "True");
  EXPECT_EQ(scheduler::condition_of(status, scheduler::kPlannedStart)["status"].as_string(),
            "False");
}

}  // namespace
}  // namespace tessera::sim
