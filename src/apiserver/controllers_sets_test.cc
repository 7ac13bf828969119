// StatefulSets and DaemonSets as a user sees them: an Api in memory, also on a bad network and over restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apiserver/controllers.h"
#include "apiserver/controllers_fixture.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* kNewImage =
    R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"a:2"}]}}}})";
constexpr const char* kOldImage =
    R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"a:1"}]}}}})";

std::vector<std::string> names(const std::vector<Value>& objects) {
  std::vector<std::string> out;
  for (const Value& each : objects) out.push_back(each["metadata"]["name"].str());
  std::ranges::sort(out);
  return out;
}

std::string image(const Value& pod) {
  return pod["spec"]["containers"].at(0)["image"].str();
}

bool deleting(const Value& object) {
  return object["metadata"].contains("deletionTimestamp");
}

bool ready(const Value& pod) {
  for (const Value& each : pod["status"]["conditions"].items()) {
    if (each["type"].as_string() == "Ready") return each["status"].as_string() == "True";
  }
  return false;
}

void add_node(TestCluster& cluster, const std::string& name) {
  Value node = TestApi::parse(R"({"apiVersion":"v1","kind":"Node","metadata":{},
      "status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  node.ref("metadata").set("name", name);
  ASSERT_TRUE(cluster.api.create("nodes", node));
}

void change(TestCluster& cluster, const std::string& resource, const std::string& name,
            const char* patch) {
  ASSERT_TRUE(cluster.api.patch(resource, "default", name, patch, kube::PatchType::kStrategic));
}

TEST(StatefulSets, Pods_come_one_after_the_other_and_have_names_of_their_own) {
  TestCluster cluster;
  cluster.ready = false;
  ASSERT_TRUE(cluster.api.create(
      "statefulsets.apps",
      TestCluster::set("StatefulSet", "db", R"({"replicas":2,"serviceName":"svc"})")));
  cluster.run(base::seconds(10));
  ASSERT_THAT(names(cluster.list("pods")), ElementsAre("db-0"));
  cluster.ready = true;
  ASSERT_TRUE(cluster.api.remove("pods", "default", "db-0"));
  cluster.run(base::seconds(10));
  ASSERT_THAT(names(cluster.list("pods")), ElementsAre("db-0", "db-1"));
  const Value pod = cluster.get("pods", "db-1");
  const Value& labels = pod["metadata"]["labels"];
  EXPECT_EQ(labels["statefulset.kubernetes.io/pod-name"].as_string(), "db-1");
  EXPECT_EQ(labels["apps.kubernetes.io/pod-index"].as_string(), "1");
  EXPECT_EQ(pod["spec"]["hostname"].as_string(), "db-1");
  EXPECT_EQ(pod["spec"]["subdomain"].as_string(), "svc");
  const Value set = cluster.get("statefulsets.apps", "db");
  EXPECT_EQ(labels["controller-revision-hash"], set["status"]["updateRevision"]);
  EXPECT_EQ(set["status"]["currentRevision"], set["status"]["updateRevision"]);
  for (const char* count :
       {"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"}) {
    EXPECT_EQ(set["status"][count].as_int(), 2) << count;
  }
}

TEST(StatefulSets, A_parallel_set_makes_all_pods_at_once_from_its_first_ordinal) {
  TestCluster cluster;
  cluster.ready = false;
  ASSERT_TRUE(cluster.api.create(
      "statefulsets.apps",
      TestCluster::set(
          "StatefulSet", "db",
          R"({"replicas":3,"podManagementPolicy":"Parallel","ordinals":{"start":5}})")));
  cluster.run(base::seconds(5));
  EXPECT_THAT(names(cluster.list("pods")), ElementsAre("db-5", "db-6", "db-7"));
}

TEST(StatefulSets, A_set_shrinks_from_the_top_one_pod_at_a_time) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create("statefulsets.apps",
                                 TestCluster::set("StatefulSet", "db", R"({"replicas":4})")));
  cluster.run(base::seconds(20));
  cluster.check = [&] {
    int going = 0;
    for (const Value& pod : cluster.list("pods")) going += deleting(pod);
    EXPECT_LE(going, 1);
  };
  change(cluster, "statefulsets.apps", "db", R"({"spec":{"replicas":1}})");
  cluster.run(base::seconds(20));
  EXPECT_THAT(names(cluster.list("pods")), ElementsAre("db-0"));
}

TEST(StatefulSets, A_new_template_is_rolled_out_from_the_top_down_to_the_partition) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create(
      "statefulsets.apps",
      TestCluster::set(
          "StatefulSet", "db",
          R"({"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}})")));
  cluster.run(base::seconds(20));
  cluster.check = [&] {
    int up = 0;
    for (const Value& pod : cluster.list("pods")) up += ready(pod) && !deleting(pod);
    EXPECT_GE(up, 2);
  };
  change(cluster, "statefulsets.apps", "db", kNewImage);
  cluster.run(base::seconds(30));
  EXPECT_EQ(image(cluster.get("pods", "db-0")), "a:1");
  EXPECT_EQ(image(cluster.get("pods", "db-1")), "a:2");
  EXPECT_EQ(image(cluster.get("pods", "db-2")), "a:2");
  Value set = cluster.get("statefulsets.apps", "db");
  EXPECT_EQ(set["status"]["currentReplicas"].as_int(), 1);
  EXPECT_EQ(set["status"]["updatedReplicas"].as_int(), 2);
  EXPECT_NE(set["status"]["currentRevision"], set["status"]["updateRevision"]);
  // A pod below the partition comes back as it was.
  cluster.check = nullptr;
  ASSERT_TRUE(cluster.api.remove("pods", "default", "db-0"));
  cluster.run(base::seconds(10));
  EXPECT_EQ(image(cluster.get("pods", "db-0")), "a:1");
  change(cluster, "statefulsets.apps", "db",
         R"({"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}})");
  cluster.run(base::seconds(20));
  set = cluster.get("statefulsets.apps", "db");
  EXPECT_EQ(image(cluster.get("pods", "db-0")), "a:2");
  EXPECT_EQ(set["status"]["currentRevision"], set["status"]["updateRevision"]);
}

TEST(StatefulSets, An_old_template_gets_its_revision_back_with_a_new_number) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create(
      "statefulsets.apps",
      TestCluster::set("StatefulSet", "db", R"({"replicas":1,"revisionHistoryLimit":1})")));
  cluster.run(base::seconds(10));
  change(cluster, "statefulsets.apps", "db", kNewImage);
  cluster.run(base::seconds(10));
  change(cluster, "statefulsets.apps", "db", kOldImage);
  cluster.run(base::seconds(10));
  const auto revisions = cluster.list("controllerrevisions.apps");
  ASSERT_EQ(revisions.size(), 2U);
  std::vector<int64_t> numbers;
  for (const Value& each : revisions) {
    numbers.push_back(each["revision"].as_int());
    EXPECT_EQ(each["data"]["spec"]["template"]["$patch"].as_string(), "replace");
  }
  EXPECT_THAT(numbers, UnorderedElementsAre(2, 3));
  for (int i = 3; i < 7; ++i) {
    const std::string patch = fmt::format(
        R"({{"spec":{{"template":{{"spec":{{"containers":[{{"name":"c","image":"a:{}"}}]}}}}}}}})",
        i);
    change(cluster, "statefulsets.apps", "db", patch.c_str());
    cluster.run(base::seconds(10));
  }
  EXPECT_EQ(cluster.list("controllerrevisions.apps").size(), 2U);
}

TEST(StatefulSets, OnDelete_leaves_old_pods_until_someone_deletes_them) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create(
      "statefulsets.apps",
      TestCluster::set("StatefulSet", "db",
                       R"({"replicas":2,"updateStrategy":{"type":"OnDelete"}})")));
  cluster.run(base::seconds(10));
  change(cluster, "statefulsets.apps", "db", kNewImage);
  cluster.run(base::seconds(10));
  EXPECT_EQ(image(cluster.get("pods", "db-1")), "a:1");
  ASSERT_TRUE(cluster.api.remove("pods", "default", "db-1"));
  cluster.run(base::seconds(10));
  EXPECT_EQ(image(cluster.get("pods", "db-1")), "a:2");
  EXPECT_EQ(image(cluster.get("pods", "db-0")), "a:1");
}

constexpr const char* kClaims =
    R"({"replicas":2,"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{
        "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}],
        "persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete","whenDeleted":"Retain"}})";

TEST(StatefulSets, Claims_are_made_for_each_pod_and_go_as_the_policy_says) {
  TestCluster cluster;
  ASSERT_TRUE(
      cluster.api.create("statefulsets.apps", TestCluster::set("StatefulSet", "db", kClaims)));
  cluster.run(base::seconds(10));
  ASSERT_THAT(names(cluster.list("persistentvolumeclaims")), ElementsAre("data-db-0", "data-db-1"));
  const Value pod = cluster.get("pods", "db-1");
  EXPECT_EQ(pod["spec"]["volumes"].at(0)["persistentVolumeClaim"]["claimName"].as_string(),
            "data-db-1");
  EXPECT_EQ(
      cluster.get("persistentvolumeclaims", "data-db-1")["metadata"]["labels"]["app"].as_string(),
      "db");
  change(cluster, "statefulsets.apps", "db", R"({"spec":{"replicas":1}})");
  cluster.run(base::seconds(20));
  EXPECT_THAT(names(cluster.list("pods")), ElementsAre("db-0"));
  EXPECT_FALSE(cluster.get("persistentvolumeclaims", "data-db-0").is_null());
  const Value scaled = cluster.get("persistentvolumeclaims", "data-db-1");
  EXPECT_TRUE(scaled.is_null() || deleting(scaled)) << scaled.dump();
  ASSERT_TRUE(cluster.api.remove("statefulsets.apps", "default", "db"));
  cluster.run(base::seconds(20));
  EXPECT_THAT(cluster.list("pods"), IsEmpty());
  EXPECT_THAT(cluster.list("controllerrevisions.apps"), IsEmpty());
  EXPECT_FALSE(cluster.get("persistentvolumeclaims", "data-db-0").is_null());
}

TEST(DaemonSets, A_pod_runs_on_each_node_that_fits) {
  TestCluster cluster;
  add_node(cluster, "n2");
  add_node(cluster, "n3");
  ASSERT_TRUE(cluster.api.patch("nodes", "", "n3",
                                R"({"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}})"));
  ASSERT_TRUE(cluster.api.create("daemonsets.apps", TestCluster::set("DaemonSet", "agent", "{}")));
  cluster.run(base::seconds(10));
  std::vector<std::string> on;
  for (const Value& pod : cluster.list("pods")) {
    on.push_back(pod["spec"]["nodeName"].str());
    EXPECT_EQ(pod["metadata"]["generateName"].as_string(), "agent-");
    EXPECT_EQ(pod["metadata"]["labels"]["pod-template-generation"].as_string(), "1");
    EXPECT_EQ(pod["spec"]["tolerations"].size(), 6U) << pod["spec"]["tolerations"].dump();
  }
  EXPECT_THAT(on, UnorderedElementsAre("n1", "n2"));
  const Value status = cluster.get("daemonsets.apps", "agent")["status"];
  for (const char* count : {"desiredNumberScheduled", "currentNumberScheduled", "numberReady",
                            "numberAvailable", "updatedNumberScheduled"}) {
    EXPECT_EQ(status[count].as_int(), 2) << count;
  }
  // A node that is allowed, one more, and one that is gone.
  ASSERT_TRUE(cluster.api.patch("nodes", "", "n3", R"({"spec":{"taints":null}})"));
  add_node(cluster, "n4");
  ASSERT_TRUE(cluster.api.remove("nodes", "", "n1"));
  cluster.run(base::seconds(60));
  on.clear();
  for (const Value& pod : cluster.list("pods")) on.push_back(pod["spec"]["nodeName"].str());
  EXPECT_THAT(on, UnorderedElementsAre("n2", "n3", "n4"));
  EXPECT_EQ(cluster.get("daemonsets.apps", "agent")["status"]["numberReady"].as_int(), 3);
}

TEST(DaemonSets, An_untolerated_NoExecute_taint_drives_the_pod_away) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create("daemonsets.apps", TestCluster::set("DaemonSet", "agent", "{}")));
  cluster.run(base::seconds(5));
  ASSERT_TRUE(cluster.api.patch("nodes", "", "n1",
                                R"({"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}})"));
  cluster.run(base::seconds(5));
  EXPECT_EQ(cluster.list("pods").size(), 1U);
  EXPECT_EQ(cluster.get("daemonsets.apps", "agent")["status"]["numberMisscheduled"].as_int(), 1);
  ASSERT_TRUE(cluster.api.patch("nodes", "", "n1",
                                R"({"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}})"));
  cluster.run(base::seconds(5));
  EXPECT_THAT(cluster.list("pods"), IsEmpty());
}

// How many daemons are up, how many there are at most on a node.
struct Daemons {
  int up = 0;
  int most_on_node = 0;
};

Daemons count_daemons(TestCluster& cluster) {
  Daemons out;
  std::map<std::string, int> on;
  for (const Value& pod : cluster.list("pods")) {
    if (deleting(pod)) continue;
    out.up += ready(pod);
    const Value& terms =
        pod.get("spec", "affinity", "nodeAffinity",
                "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms");
    const int there = ++on[terms.at(0)["matchFields"].at(0)["values"].at(0).str()];
    out.most_on_node = std::max(out.most_on_node, there);
  }
  return out;
}

TEST(DaemonSets, A_rollout_keeps_to_maxUnavailable) {
  TestCluster cluster;
  for (const char* name : {"n2", "n3", "n4", "n5"}) add_node(cluster, name);
  ASSERT_TRUE(cluster.api.create(
      "daemonsets.apps",
      TestCluster::set(
          "DaemonSet", "agent",
          R"({"minReadySeconds":3,"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}})")));
  cluster.run(base::seconds(20));
  cluster.check = [&] {
    const Daemons daemons = count_daemons(cluster);
    EXPECT_GE(daemons.up, 3) << cluster.dump();
    EXPECT_LE(daemons.most_on_node, 1);
  };
  change(cluster, "daemonsets.apps", "agent", kNewImage);
  cluster.run(base::seconds(60));
  for (const Value& pod : cluster.list("pods")) EXPECT_EQ(image(pod), "a:2");
  EXPECT_EQ(cluster.get("daemonsets.apps", "agent")["status"]["updatedNumberScheduled"].as_int(),
            5);
  EXPECT_EQ(cluster.list("controllerrevisions.apps").size(), 2U);
}

TEST(DaemonSets, A_rollout_that_surges_keeps_every_node_served) {
  TestCluster cluster;
  for (const char* name : {"n2", "n3"}) add_node(cluster, name);
  ASSERT_TRUE(cluster.api.create(
      "daemonsets.apps",
      TestCluster::set(
          "DaemonSet", "agent",
          R"({"updateStrategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}})")));
  cluster.run(base::seconds(10));
  cluster.check = [&] {
    const Daemons daemons = count_daemons(cluster);
    EXPECT_GE(daemons.up, 3) << cluster.dump();
    EXPECT_LE(daemons.most_on_node, 2);
    EXPECT_LE(cluster.list("pods").size(), 5U);
  };
  change(cluster, "daemonsets.apps", "agent", kNewImage);
  cluster.run(base::seconds(30));
  EXPECT_EQ(cluster.list("pods").size(), 3U);
  for (const Value& pod : cluster.list("pods")) EXPECT_EQ(image(pod), "a:2");
}

TEST(DaemonSets, A_failed_pod_is_replaced_with_growing_pauses) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create("daemonsets.apps", TestCluster::set("DaemonSet", "agent", "{}")));
  cluster.run(base::seconds(5));
  std::set<std::string> seen;
  cluster.check = [&] {
    for (const Value& pod : cluster.list("pods")) {
      if (deleting(pod) || pod["status"]["phase"].as_string() != "Running") continue;
      seen.insert(pod["metadata"]["name"].str());
      ASSERT_TRUE(cluster.api.patch("pods", "default", pod["metadata"]["name"].str(),
                                    R"({"status":{"phase":"Failed"}})", kube::PatchType::kStrategic,
                                    "status"));
    }
  };
  cluster.run(base::seconds(60));
  EXPECT_GE(seen.size(), 4U);
  EXPECT_LE(seen.size(), 8U);
}

// Every sort of network fault, and controllers that die now and then.
TEST(StatefulSets, Order_and_bounds_hold_on_a_bad_network_and_over_restarts) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    TestCluster cluster(seed, 0.04);
    base::Random random(seed);
    ASSERT_TRUE(
        cluster.api.create("statefulsets.apps", TestCluster::set("StatefulSet", "db", kClaims)));
    change(cluster, "statefulsets.apps", "db", R"({"spec":{"replicas":4}})");
    bool whole = false;
    cluster.check = [&] {
      int up = 0;
      std::set<std::string> made;
      for (const Value& pod : cluster.list("pods")) {
        up += ready(pod) && !deleting(pod);
        EXPECT_TRUE(
            made.insert(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"].str()).second);
      }
      // No pod is there before the one below it, and an update takes down one at a time.
      for (const std::string& index : made) {
        for (int below = 0; !whole && below < std::stoi(index); ++below) {
          EXPECT_TRUE(made.contains(std::to_string(below)));
        }
      }
      whole = whole || up == 4;
      if (whole) {
        EXPECT_GE(up, 3);
      }
      if (random.chance(0.01)) cluster.restart();
    };
    cluster.run(base::seconds(120));
    EXPECT_TRUE(whole);
    change(cluster, "statefulsets.apps", "db", kNewImage);
    cluster.run(base::seconds(120));
    cluster.flaky.faults = 0;
    cluster.run(base::seconds(120));
    const Value set = cluster.get("statefulsets.apps", "db");
    EXPECT_EQ(set["status"]["updatedReplicas"].as_int(), 4) << set["status"].dump();
    EXPECT_EQ(set["status"]["currentRevision"], set["status"]["updateRevision"]);
    EXPECT_EQ(cluster.list("controllerrevisions.apps").size(), 2U);
    EXPECT_EQ(cluster.list("persistentvolumeclaims").size(), 4U);
  }
}

TEST(DaemonSets, Bounds_hold_on_a_bad_network_and_over_restarts) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    TestCluster cluster(seed, 0.04);
    base::Random random(seed);
    for (const char* name : {"n2", "n3", "n4", "n5"}) add_node(cluster, name);
    ASSERT_TRUE(cluster.api.create(
        "daemonsets.apps",
        TestCluster::set("DaemonSet", "agent",
                         R"({"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}})")));
    bool whole = false;
    cluster.check = [&] {
      const Daemons daemons = count_daemons(cluster);
      EXPECT_LE(daemons.most_on_node, 1) << cluster.dump();
      whole = whole || daemons.up == 5;
      if (whole) {
        EXPECT_GE(daemons.up, 3) << cluster.dump();
      }
      if (random.chance(0.01)) cluster.restart();
    };
    cluster.run(base::seconds(60));
    EXPECT_TRUE(whole);
    change(cluster, "daemonsets.apps", "agent", kNewImage);
    cluster.run(base::seconds(120));
    cluster.flaky.faults = 0;
    cluster.run(base::seconds(120));
    const Value status = cluster.get("daemonsets.apps", "agent")["status"];
    EXPECT_EQ(status["updatedNumberScheduled"].as_int(), 5) << status.dump();
    EXPECT_EQ(status["numberAvailable"].as_int(), 5);
    EXPECT_EQ(cluster.list("pods").size(), 5U);
    EXPECT_EQ(cluster.list("controllerrevisions.apps").size(), 2U);
  }
}

}  // namespace
}  // namespace tessera::apiserver
