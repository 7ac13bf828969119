#include "apiserver/controllers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/controllers_fixture.h"

namespace tessera::apiserver {
namespace {

using json::Value;

size_t active_pods(TestCluster& cluster) {
  size_t active = 0;
  for (const Value& pod : cluster.list("pods")) {
    const std::string phase = pod["status"]["phase"].str();
    active +=
        phase != "Succeeded" && phase != "Failed" && !pod["metadata"].contains("deletionTimestamp");
  }
  return active;
}

std::string condition(const Value& object, std::string_view type, const char* field = "status") {
  for (const Value& each : object["status"]["conditions"].items()) {
    if (each["type"].as_string() == type) return each[field].str();
  }
  return {};
}

TEST(Controllers, A_deployment_becomes_a_replica_set_and_its_pods) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create("deployments.apps", TestCluster::deployment("web", 3)));
  cluster.run(base::seconds(10));
  const auto sets = cluster.list("replicasets.apps");
  ASSERT_EQ(sets.size(), 1U);
  EXPECT_TRUE(sets[0]["metadata"]["name"].as_string().starts_with("web-"));
  EXPECT_EQ(active_pods(cluster), 3U);
  const Value web = cluster.get("deployments.apps", "web");
  EXPECT_EQ(web["status"]["readyReplicas"].as_int(), 3);
  EXPECT_EQ(web["status"]["updatedReplicas"].as_int(), 3);
  EXPECT_EQ(web["status"]["observedGeneration"], web["metadata"]["generation"]);
  EXPECT_EQ(condition(web, "Available"), "True");
  EXPECT_EQ(condition(web, "Progressing", "reason"), "NewReplicaSetAvailable");
  EXPECT_EQ(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_string(), "1");
}

TEST(Controllers, A_group_of_pods_stays_until_they_have_ended) {
  for (const double faults : {0.0, 0.3}) {
    TestCluster cluster(3, faults);
    const kube::Gvr groups{"scheduling.k8s.io", "v1beta1", "podgroups"};
    const auto ask = [&](kube::Verb verb, std::string name, Value body = {}) {
      kube::Request request;
      request.verb = verb;
      request.gvr = groups;
      request.ns = "default";
      request.name = std::move(name);
      request.body = std::move(body);
      return cluster.api.reply(std::move(request)).result;
    };
    for (const char* name : {"used", "free"}) {
      Value group = TestApi::parse(R"({"apiVersion":"scheduling.k8s.io/v1beta1","kind":"PodGroup",
        "metadata":{},"spec":{"schedulingPolicy":{"gang":{"minCount":2}}}})");
      group.ref("metadata").set("name", name);
      ASSERT_TRUE(ask(kube::Verb::kCreate, {}, group));
    }
    for (const char* name : {"a", "b"}) {
      Value pod = TestApi::pod(name);
      pod.ref("spec", "schedulingGroup").set("podGroupName", "used");
      ASSERT_TRUE(cluster.api.create("pods", pod));
    }
    cluster.run(base::seconds(5));
    ASSERT_TRUE(ask(kube::Verb::kDelete, "used"));
    ASSERT_TRUE(ask(kube::Verb::kDelete, "free"));
    cluster.run(base::seconds(60));
    EXPECT_FALSE(ask(kube::Verb::kGet, "free"));
    ASSERT_TRUE(ask(kube::Verb::kGet, "used"));
    ASSERT_TRUE(cluster.api.patch("pods", "default", "a", R"({"status":{"phase":"Succeeded"}})",
                                  kube::PatchType::kMerge, "status"));
    cluster.restart();
    cluster.run(base::seconds(60));
    ASSERT_TRUE(ask(kube::Verb::kGet, "used"));
    ASSERT_TRUE(cluster.api.remove("pods", "default", "b", R"({"gracePeriodSeconds":0})"));
    cluster.run(base::seconds(60));
    EXPECT_FALSE(ask(kube::Verb::kGet, "used"));
  }
}

TEST(Controllers, A_rollout_keeps_between_its_bounds_and_ends_with_new_pods_only) {
  TestCluster cluster;
  Value web = TestCluster::deployment("web", 4);
  ASSERT_TRUE(cluster.api.create("deployments.apps", web));
  cluster.run(base::seconds(10));
  cluster.check = [&] {
    size_t running = 0;
    for (const Value& pod : cluster.list("pods")) {
      running += pod["status"]["phase"].as_string() == "Running" &&
                 !pod["metadata"].contains("deletionTimestamp");
    }
    EXPECT_GE(running, 3U) << cluster.dump();
    EXPECT_LE(active_pods(cluster), 5U);
  };
  ASSERT_TRUE(cluster.api.patch(
      "deployments.apps", "default", "web",
      R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"a:2"}]}}}})",
      kube::PatchType::kStrategic));
  cluster.run(base::seconds(40));
  for (const Value& pod : cluster.list("pods")) {
    EXPECT_EQ(pod["spec"]["containers"].at(0)["image"].as_string(), "a:2");
  }
  EXPECT_EQ(active_pods(cluster), 4U);
  EXPECT_EQ(cluster.list("replicasets.apps").size(), 2U);
  web = cluster.get("deployments.apps", "web");
  EXPECT_EQ(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_string(), "2");
  EXPECT_EQ(condition(web, "Progressing", "reason"), "NewReplicaSetAvailable");
}

TEST(Controllers, A_rollout_that_stands_still_is_reported_after_its_deadline) {
  TestCluster cluster;
  cluster.ready = false;
  Value web = TestCluster::deployment("web", 2);
  web.ref("spec").set("progressDeadlineSeconds", 30);
  ASSERT_TRUE(cluster.api.create("deployments.apps", web));
  cluster.run(base::seconds(20));
  EXPECT_EQ(condition(cluster.get("deployments.apps", "web"), "Progressing"), "True");
  cluster.run(base::seconds(20));
  EXPECT_EQ(condition(cluster.get("deployments.apps", "web"), "Progressing", "reason"),
            "ProgressDeadlineExceeded");
}

TEST(Controllers, A_deployment_that_waits_for_old_pods_has_its_new_revision_with_the_set) {
  TestCluster cluster;
  const auto revision = [&] {
    return cluster
        .get("deployments.apps",
             "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
        .str();
  };
  Value web = TestCluster::deployment("web", 2);
  web.ref("spec", "strategy").set("type", "Recreate");
  ASSERT_TRUE(cluster.api.create("deployments.apps", web));
  cluster.run(base::seconds(5));
  cluster.node_works = false;
  ASSERT_TRUE(cluster.api.patch(
      "deployments.apps", "default", "web",
      R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"a:2"}]}}}})"));
  cluster.run(base::seconds(5));
  EXPECT_EQ(revision(), "1") << cluster.dump();
  EXPECT_EQ(cluster.list("replicasets.apps").size(), 1U) << cluster.dump();
  cluster.node_works = true;
  cluster.run(base::seconds(5));
  EXPECT_EQ(revision(), "2") << cluster.dump();
  EXPECT_EQ(cluster.list("replicasets.apps").size(), 2U) << cluster.dump();
}

TEST(Controllers, Scaling_follows_the_deployment) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create("deployments.apps", TestCluster::deployment("web", 2)));
  cluster.run(base::seconds(5));
  ASSERT_TRUE(
      cluster.api.patch("deployments.apps", "default", "web", R"({"spec":{"replicas":5}})"));
  cluster.run(base::seconds(5));
  EXPECT_EQ(active_pods(cluster), 5U);
  ASSERT_TRUE(
      cluster.api.patch("deployments.apps", "default", "web", R"({"spec":{"replicas":0}})"));
  cluster.run(base::seconds(5));
  EXPECT_TRUE(cluster.list("pods").empty());
}

TEST(Controllers, What_a_deleted_owner_had_is_collected) {
  for (const char* policy : {"Background", "Foreground"}) {
    TestCluster cluster;
    ASSERT_TRUE(cluster.api.create("deployments.apps", TestCluster::deployment("web", 3)));
    cluster.run(base::seconds(5));
    ASSERT_TRUE(cluster.api.remove("deployments.apps", "default", "web",
                                   fmt::format(R"({{"propagationPolicy":"{}"}})", policy)));
    cluster.run(base::seconds(20));
    EXPECT_TRUE(cluster.get("deployments.apps", "web").is_null()) << policy;
    EXPECT_TRUE(cluster.list("replicasets.apps").empty()) << policy;
    EXPECT_TRUE(cluster.list("pods").empty()) << policy;
  }
}

TEST(Controllers, Orphans_stay_and_are_adopted_by_the_next_deployment) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create("deployments.apps", TestCluster::deployment("web", 3)));
  cluster.run(base::seconds(5));
  ASSERT_TRUE(cluster.api.remove("deployments.apps", "default", "web",
                                 R"({"propagationPolicy":"Orphan"})"));
  cluster.run(base::seconds(20));
  const auto sets = cluster.list("replicasets.apps");
  ASSERT_EQ(sets.size(), 1U);
  EXPECT_TRUE(sets[0]["metadata"]["ownerReferences"].empty());
  EXPECT_EQ(active_pods(cluster), 3U);
  ASSERT_TRUE(cluster.api.create("deployments.apps", TestCluster::deployment("web", 3)));
  cluster.run(base::seconds(20));
  EXPECT_EQ(cluster.list("replicasets.apps").size(), 1U);
  EXPECT_EQ(active_pods(cluster), 3U);
}

TEST(Controllers, A_job_runs_to_completion_and_counts_its_pods) {
  TestCluster cluster;
  cluster.check = [&] { EXPECT_LE(active_pods(cluster), 2U); };
  ASSERT_TRUE(cluster.api.create("jobs.batch", TestCluster::job("train", 2, 5)));
  cluster.run(base::seconds(30));
  const Value job = cluster.get("jobs.batch", "train");
  EXPECT_EQ(job["status"]["succeeded"].as_int(), 5) << job.dump();
  EXPECT_EQ(condition(job, "Complete"), "True");
  EXPECT_EQ(condition(job, "SuccessCriteriaMet"), "True");
  EXPECT_TRUE(job["status"].contains("completionTime"));
  EXPECT_EQ(cluster.list("pods").size(), 5U);
  for (const Value& pod : cluster.list("pods")) {
    EXPECT_TRUE(pod["metadata"]["finalizers"].empty());
  }
}

TEST(Controllers, A_job_gives_up_after_its_limit_with_growing_pauses) {
  TestCluster cluster;
  cluster.ends = [](const Value&) { return std::string("Failed"); };
  Value job = TestCluster::job("bad", 1, 1);
  job.ref("spec").set("backoffLimit", 2);
  ASSERT_TRUE(cluster.api.create("jobs.batch", job));
  cluster.run(base::seconds(9));
  EXPECT_EQ(cluster.list("pods").size(), 1U);
  cluster.run(base::seconds(60));
  job = cluster.get("jobs.batch", "bad");
  EXPECT_EQ(job["status"]["failed"].as_int(), 3) << job.dump();
  EXPECT_EQ(condition(job, "Failed"), "True");
  EXPECT_EQ(condition(job, "Failed", "reason"), "BackoffLimitExceeded");
  EXPECT_EQ(condition(job, "FailureTarget"), "True");
}

TEST(Controllers, A_job_past_its_deadline_stops_its_pods) {
  TestCluster cluster;
  cluster.ends = [](const Value&) { return std::string(); };
  Value job = TestCluster::job("slow", 2, 2);
  job.ref("spec").set("activeDeadlineSeconds", 20);
  job.ref("spec").set("ttlSecondsAfterFinished", 60);
  ASSERT_TRUE(cluster.api.create("jobs.batch", job));
  cluster.run(base::seconds(15));
  EXPECT_EQ(active_pods(cluster), 2U);
  cluster.run(base::seconds(15));
  EXPECT_EQ(active_pods(cluster), 0U);
  EXPECT_EQ(condition(cluster.get("jobs.batch", "slow"), "Failed", "reason"), "DeadlineExceeded");
  cluster.run(base::seconds(60));
  EXPECT_TRUE(cluster.get("jobs.batch", "slow").is_null());
}

TEST(Controllers, A_suspended_job_runs_nothing_until_resumed) {
  TestCluster cluster;
  cluster.ends = [](const Value&) { return std::string(); };
  ASSERT_TRUE(cluster.api.create("jobs.batch", TestCluster::job("train", 2, 2)));
  cluster.run(base::seconds(5));
  ASSERT_TRUE(cluster.api.patch("jobs.batch", "default", "train", R"({"spec":{"suspend":true}})"));
  cluster.run(base::seconds(5));
  EXPECT_TRUE(cluster.list("pods").empty());
  Value job = cluster.get("jobs.batch", "train");
  EXPECT_EQ(condition(job, "Suspended"), "True");
  EXPECT_EQ(job["status"]["failed"].as_int(), 0);
  cluster.ends = [](const Value&) { return std::string("Succeeded"); };
  ASSERT_TRUE(cluster.api.patch("jobs.batch", "default", "train", R"({"spec":{"suspend":false}})"));
  cluster.run(base::seconds(20));
  EXPECT_EQ(condition(cluster.get("jobs.batch", "train"), "Complete"), "True");
}

TEST(Controllers, An_indexed_job_completes_every_index_once) {
  TestCluster cluster;
  Value job = TestCluster::job("array", 3, 4);
  job.ref("spec").set("completionMode", "Indexed");
  ASSERT_TRUE(cluster.api.create("jobs.batch", job));
  cluster.run(base::seconds(30));
  job = cluster.get("jobs.batch", "array");
  EXPECT_EQ(job["status"]["completedIndexes"].as_string(), "0-3") << job.dump();
  EXPECT_EQ(job["status"]["succeeded"].as_int(), 4);
  EXPECT_EQ(condition(job, "Complete"), "True");
}

TEST(Controllers, A_deleted_namespace_is_emptied_and_goes) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create(
      "namespaces",
      TestApi::parse(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"lab"}})")));
  cluster.run(base::seconds(2));
  EXPECT_FALSE(cluster.get("serviceaccounts", "default", "lab").is_null());
  Value web = TestCluster::deployment("web", 2);
  web.ref("metadata").set("namespace", "lab");
  ASSERT_TRUE(cluster.api.create("deployments.apps", web));
  cluster.run(base::seconds(5));
  EXPECT_EQ(cluster.list("pods", "lab").size(), 2U);
  ASSERT_TRUE(cluster.api.remove("namespaces", "", "lab"));
  cluster.run(base::seconds(20));
  EXPECT_TRUE(cluster.get("namespaces", "lab", "").is_null());
  EXPECT_TRUE(cluster.list("pods", "lab").empty());
}

Value lease(const std::string& node, base::Time at) {
  Value out = TestApi::parse(
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
          "metadata":{"name":"n1","namespace":"kube-node-lease"},"spec":{}})");
  out.ref("spec").set("holderIdentity", node);
  out.ref("spec").set("renewTime", base::to_rfc3339_micro(at));
  return out;
}

std::vector<std::string> taints(const Value& node) {
  std::vector<std::string> out;
  for (const Value& taint : node["spec"]["taints"].items()) {
    out.push_back(taint["key"].str() + ":" + taint["effect"].str());
  }
  return out;
}

TEST(Controllers, A_silent_node_is_tainted_and_its_pods_go_elsewhere) {
  TestCluster cluster;
  cluster.ends = [](const Value&) { return std::string(); };
  ASSERT_TRUE(
      cluster.api.create("leases.coordination.k8s.io", lease("n1", cluster.api.clock().now())));
  ASSERT_TRUE(cluster.api.create("deployments.apps", TestCluster::deployment("web", 1)));
  cluster.run(base::seconds(30));
  EXPECT_EQ(condition(cluster.get("nodes", "n1", ""), "Ready"), "True");
  const std::string pod = cluster.list("pods")[0]["metadata"]["name"].str();
  cluster.node_works = false;
  cluster.run(base::seconds(40));
  const Value node = cluster.get("nodes", "n1", "");
  EXPECT_EQ(condition(node, "Ready"), "Unknown");
  EXPECT_EQ(condition(node, "Ready", "reason"), "NodeStatusUnknown");
  EXPECT_THAT(taints(node),
              testing::UnorderedElementsAre("node.kubernetes.io/unreachable:NoSchedule",
                                            "node.kubernetes.io/unreachable:NoExecute"));
  EXPECT_EQ(condition(cluster.get("pods", pod), "Ready"), "False");
  EXPECT_FALSE(cluster.get("pods", pod)["metadata"].contains("deletionTimestamp"));
  cluster.run(base::seconds(300));
  EXPECT_TRUE(cluster.get("pods", pod)["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(condition(cluster.get("pods", pod), "DisruptionTarget", "reason"),
            "DeletionByTaintManager");
  EXPECT_EQ(active_pods(cluster), 1U);
  // It comes back.
  const std::string now = base::to_rfc3339(cluster.api.clock().now());
  ASSERT_TRUE(cluster.api.patch(
      "nodes", "", "n1",
      R"({"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":")" + now +
          R"("}]}})",
      kube::PatchType::kStrategic, "status"));
  cluster.run(base::seconds(10));
  EXPECT_THAT(taints(cluster.get("nodes", "n1", "")), testing::IsEmpty());
}

TEST(Controllers, A_cordoned_node_is_tainted) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.patch("nodes", "", "n1", R"({"spec":{"unschedulable":true}})"));
  cluster.run(base::seconds(2));
  EXPECT_THAT(taints(cluster.get("nodes", "n1", "")),
              testing::ElementsAre("node.kubernetes.io/unschedulable:NoSchedule"));
  ASSERT_TRUE(cluster.api.patch("nodes", "", "n1", R"({"spec":{"unschedulable":null}})"));
  cluster.run(base::seconds(2));
  EXPECT_THAT(taints(cluster.get("nodes", "n1", "")), testing::IsEmpty());
}

TEST(Controllers, Pods_of_a_node_that_is_gone_go) {
  TestCluster cluster;
  cluster.node_works = false;
  ASSERT_TRUE(cluster.api.create("pods", TestApi::pod("x")));
  ASSERT_TRUE(cluster.api.bind("default", "x", "n1"));
  cluster.run(base::seconds(5));
  ASSERT_TRUE(cluster.api.remove("nodes", "", "n1"));
  cluster.run(base::seconds(30));
  EXPECT_FALSE(cluster.get("pods", "x").is_null());
  cluster.run(base::seconds(30));
  EXPECT_TRUE(cluster.get("pods", "x").is_null());
}

// Every sort of network fault, and controllers that die now and then.
TEST(Controllers, Counts_stay_true_on_a_bad_network_and_over_restarts) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    TestCluster cluster(seed, 0.04);
    base::Random random(seed);
    ASSERT_TRUE(cluster.api.create("jobs.batch", TestCluster::job("train", 3, 9)));
    ASSERT_TRUE(cluster.api.create("deployments.apps", TestCluster::deployment("web", 4)));
    cluster.check = [&] {
      size_t of_job = 0;
      size_t of_set = 0;
      for (const Value& pod : cluster.list("pods")) {
        const std::string phase = pod["status"]["phase"].str();
        if (phase == "Succeeded" || phase == "Failed" ||
            pod["metadata"].contains("deletionTimestamp")) {
          continue;
        }
        const Value& owner = pod["metadata"]["ownerReferences"].at(0);
        (owner["kind"].as_string() == "Job" ? of_job : of_set) += 1;
      }
      EXPECT_LE(of_job, 3U);
      EXPECT_LE(of_set, 5U);
      EXPECT_LE(cluster.get("jobs.batch", "train")["status"]["succeeded"].as_int(), 9);
      if (random.chance(0.01)) cluster.restart();
    };
    cluster.run(base::seconds(120));
    cluster.flaky.faults = 0;
    cluster.run(base::seconds(120));
    const Value job = cluster.get("jobs.batch", "train");
    EXPECT_EQ(job["status"]["succeeded"].as_int(), 9) << job.dump();
    EXPECT_EQ(condition(job, "Complete"), "True");
    const Value web = cluster.get("deployments.apps", "web");
    EXPECT_EQ(web["status"]["availableReplicas"].as_int(), 4) << web.dump();
    EXPECT_EQ(cluster.list("replicasets.apps").size(), 1U);
  }
}

}  // namespace
}  // namespace tessera::apiserver
