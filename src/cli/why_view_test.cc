#include "cli/why_view.h"

#include <gmock/gmock.h>

#include "json/yaml.h"

namespace tessera::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

kube::Object object(std::string_view text) {
  auto root = json::parse_yaml(text);
  EXPECT_TRUE(root) << root.error().message;
  return kube::Object(*root);
}

// A pod that a Job owns where `job` is set.
kube::Object pod(std::string_view name, std::string_view job = "", std::string_view node = "",
                 std::string_view status = "{phase: Pending}",
                 std::string_view annotations = "{}") {
  const std::string owner =
      job.empty()
          ? ""
          : fmt::format("{{apiVersion: batch/v1, kind: Job, name: {}, uid: u, controller: true}}",
                        job);
  return object(fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: {0}, uid: uid-{0}, namespace: ml, ownerReferences: [{1}], annotations: {4}}}
spec: {{schedulerName: tessera, nodeName: '{2}', containers: [{{name: a}}]}}
status: {3}
)",
                            name, owner, node, status, annotations));
}

std::string verdict_annotation(std::string_view job, std::string_view sentence,
                               int64_t members = 0) {
  scheduler::Verdict verdict;
  verdict.job = job;
  verdict.queue = "default";
  verdict.members = members;
  verdict.reason = "Capacity";
  verdict.sentence = sentence;
  const json::Value text(scheduler::to_json(verdict).dump());
  return json::Value::object({{"tessera.dev/verdict", text}}).dump();
}

class Why : public ::testing::Test {
 protected:
  std::string ask(std::string_view what) {
    const auto target = parse_target(what);
    if (!target) return target.error().message;
    const auto answer = explain(*target, world);
    return answer ? render(*answer) : answer.error().message;
  }
  json::Value json(std::string_view what) {
    return to_json(explain(*parse_target(what), world).value());
  }

  WhyWorld world{.ns = "ml"};
};

TEST_F(Why, Shows_the_verdict_that_is_stored_on_one_pod_of_the_gang) {
  world.pods = {pod("a", "", "", "{phase: Pending}", verdict_annotation("ml/a", "no GPU is free"))};
  EXPECT_THAT(ask("a"), HasSubstr("ml/a waits in queue \"default\" (Capacity)\n"));
  EXPECT_THAT(ask("pod/a"), HasSubstr("no GPU is free"));
  EXPECT_EQ(json("a").get("gangs").at(0).get("verdict", "sentence").as_string(), "no GPU is free");
  EXPECT_EQ(json("a").get("gangs").at(0)["state"].as_string(), "waiting");
}

TEST_F(Why, A_verdict_from_before_some_of_its_pods_is_told_as_such) {
  world.pods = {pod("a", "", "", "{phase: Pending}", verdict_annotation("ml/a", "too few"))};
  EXPECT_THAT(ask("a"), HasSubstr("this counts 0 of its 1 pods"));
  world.pods = {pod("a", "", "", "{phase: Pending}", verdict_annotation("ml/a", "no room", 1))};
  EXPECT_THAT(ask("a"), Not(HasSubstr("this counts")));
}

TEST_F(Why, A_job_is_found_by_its_name_its_kind_and_its_pods) {
  world.pods = {pod("train-x1", "train"), pod("train-x2", "train"), pod("other")};
  for (const char* name : {"train", "job/train", "jobs/train", "Job.batch/train"}) {
    EXPECT_THAT(ask(name), HasSubstr("Job ml/train has 2 parts that are placed each on its own"))
        << name;
    EXPECT_THAT(ask(name), Not(HasSubstr("other"))) << name;
  }
  EXPECT_THAT(ask("deploy/train"), HasSubstr("has no deployment \"train\""));
  EXPECT_THAT(ask("job.batch.volcano.sh/train"), HasSubstr("has no job \"train\""));
}

TEST_F(Why, A_pod_goes_before_a_job_of_the_same_name) {
  world.pods = {pod("train", "", "n"), pod("train-x1", "train")};
  EXPECT_THAT(ask("train"), HasSubstr("n: train"));
  EXPECT_THAT(ask("train"), Not(HasSubstr("train-x1")));
}

TEST_F(Why, A_group_is_found_by_the_label_of_its_pods) {
  const auto member = [](std::string_view name) {
    json::Value root = pod(name).json();
    root.ref("metadata", "labels").set("scheduling.x-k8s.io/pod-group", "pg1");
    return kube::Object(root);
  };
  world.pods = {member("a"), member("b")};
  world.sources.object = [](auto, auto kind, auto, auto name) {
    return kind == "PodGroup" && name == "pg1" ? object(R"(
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: pg1, namespace: ml}
spec: {minMember: 2}
)")
                                               : kube::Object();
  };
  for (const char* name : {"pg1", "podgroup/pg1", "pg/pg1"}) {
    EXPECT_THAT(ask(name), HasSubstr("ml/pg1 waits\n")) << name;
    EXPECT_THAT(ask(name), HasSubstr("2 waiting")) << name;
  }
  EXPECT_THAT(ask("a"), HasSubstr("ml/pg1 waits\n"));  // one of its pods
}

TEST_F(Why, Without_a_verdict_the_condition_is_shown_and_that_it_is_one) {
  world.pods = {pod("a", "", "",
                    "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: "
                    "Unschedulable, message: 0/3 nodes}]}")};
  EXPECT_THAT(ask("a"), HasSubstr("the scheduler has not written a verdict"));
  EXPECT_THAT(ask("a"), HasSubstr("Unschedulable: 0/3 nodes"));
  world.pods = {pod("a", "", "", "{phase: Pending}", "{tessera.dev/verdict: '{broken'}")};
  EXPECT_THAT(ask("a"), HasSubstr("has no PodScheduled condition yet"));
}

TEST_F(Why, Names_the_other_scheduler_and_the_gates_that_keep_a_pod) {
  json::Value root = pod("a").json();
  root.ref("spec").set("schedulerName", "other");
  world.pods = {kube::Object(root)};
  EXPECT_THAT(ask("a"), HasSubstr("schedulerName is \"other\""));
  root.ref("spec").set("schedulingGates",
                       json::Value::array({json::Value::object({{"name", "quota"}})}));
  world.pods = {kube::Object(root)};
  EXPECT_THAT(ask("a"), HasSubstr("until they are taken off: quota"));
}

TEST_F(Why, A_job_that_runs_is_told_with_nodes_gpus_and_since_when) {
  world.pods = {pod("a", "", "gpu-1",
                    "{phase: Running, conditions: [{type: PodScheduled, status: 'True', "
                    "lastTransitionTime: '2026-01-02T03:04:05Z'}]}",
                    "{tessera.dev/gpus: '0,3'}")};
  EXPECT_EQ(ask("a"),
            "ml/a runs\n"
            "  On:            gpu-1: a with GPU 0,3\n"
            "  Since:         2026-01-02T03:04:05Z\n");
}

TEST_F(Why, A_finished_job_is_told_so) {
  world.pods = {pod("t-1", "t", "n", "{phase: Succeeded}")};
  EXPECT_EQ(ask("t"), "ml/t-1 has finished\n  Pods:          1 succeeded\n");
}

TEST_F(Why, A_job_without_pods_is_told_from_its_object) {
  world.named = {object(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: t, namespace: ml}
spec: {suspend: true}
)")};
  EXPECT_EQ(ask("t"), "Job ml/t is suspended: it has no pods until spec.suspend is false\n");
}

TEST_F(Why, Shows_who_evicted_a_job) {
  world.pods = {pod("t-new", "t"), pod("x")};
  world.events = {object(R"(
reason: Preempted
message: ml/urgent of priority 9 takes the place of ml/t-old
lastTimestamp: '2026-01-02T03:04:05Z'
involvedObject: {kind: Pod, name: t-old, namespace: ml}
)")};
  EXPECT_THAT(ask("t"), HasSubstr("Evicted:       2026-01-02T03:04:05Z t-old (Preempted): "
                                  "ml/urgent of priority 9 takes the place"));
  EXPECT_THAT(ask("x"), Not(HasSubstr("Evicted")));
}

TEST_F(Why, What_names_nothing_is_refused_with_the_mend) {
  EXPECT_THAT(ask("nobody"), HasSubstr("has no pod, job, PodGroup or owner \"nobody\""));
  for (const char* text : {"", "/", "job/", "/x", "a/b/c"})
    EXPECT_THAT(ask(text), HasSubstr("give a name, or kind/name")) << text;
}

}  // namespace
}  // namespace tessera::cli
