#include "sim/kubelet.h"

#include <gmock/gmock.h>

#include <set>

#include "base/file.h"
#include "sim/lab_testing.h"

namespace tessera::sim {
namespace {

using base::millis;
using base::seconds;
using ::testing::HasSubstr;

constexpr const char* kFleet = R"(
racks:
  - name: r1
    nodes: [{name: gpu, model: H200, gpus: 4, cpu: 16, memory: 64Gi, pods: 5}]
)";

std::string pod_text(std::string_view name, std::string_view resources,
                     std::string_view annotations = "{}", std::string_view more = "") {
  return fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: {}, annotations: {}}}
spec:
  restartPolicy: Never
  {}
  containers: [{{name: main, image: "registry.example/x:1", resources: {}}}]
)",
                     name, annotations, more, resources);
}

std::set<std::string> device_ids(const kube::Object& pod) {
  std::set<std::string> out;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& container : pod.get("status", list).items()) {
      for (const json::Value& resource : container["allocatedResourcesStatus"].items()) {
        for (const json::Value& device : resource["resources"].items())
          out.insert(device["resourceID"].str());
      }
    }
  }
  return out;
}

TEST(Kubelets, Nodes_are_registered_with_leases_that_are_renewed) {
  Lab lab(kFleet);
  EXPECT_TRUE(lab.kubelets().registered());
  const kube::Object node = lab.get("Node", "gpu-0");
  EXPECT_EQ(node.get("status", "capacity", "nvidia.com/gpu").as_string(), "4");
  kube::Request get;
  get.gvr = {"coordination.k8s.io", "v1", "leases"};
  get.ns = "kube-node-lease";
  get.name = "gpu-0";
  const auto first = lab.call(get);
  ASSERT_TRUE(first) << first.error().message;
  lab.advance(seconds(25));
  const auto later = lab.call(get);
  ASSERT_TRUE(later);
  EXPECT_LT((*first)["spec"]["renewTime"].as_string(), (*later)["spec"]["renewTime"].as_string());
}

TEST(Kubelets, A_pod_goes_from_pending_over_running_to_succeeded) {
  Lab lab(kFleet);
  lab.apply(pod_text("p", "{limits: {nvidia.com/gpu: 2}}", "{tessera.dev/run-for: 60s}"));
  lab.advance(seconds(2));
  const kube::Object running = lab.pod("p");
  EXPECT_EQ(running.get("status", "phase").as_string(), "Running");
  EXPECT_EQ(device_ids(running).size(), 2U);
  std::set<std::string> conditions;
  for (const json::Value& c : running.get("status", "conditions").items()) {
    EXPECT_EQ(c["status"].as_string(), "True") << c.dump();
    EXPECT_TRUE(conditions.insert(c["type"].str()).second) << c.dump();
  }
  EXPECT_THAT(conditions,
              ::testing::IsSupersetOf({"PodScheduled", "Initialized", "Ready", "ContainersReady",
                                       "PodReadyToStartContainers"}));
  EXPECT_EQ(lab.kubelets().running(), 1U);
  lab.advance(seconds(60));
  EXPECT_EQ(lab.phase("p"), "Succeeded");
  EXPECT_EQ(lab.kubelets().running(), 0U);
}

TEST(Kubelets, What_does_not_fit_is_refused_with_the_kubelets_reason) {
  struct Case {
    const char* resources;
    const char* annotations;
    const char* reason;
  };
  for (const Case& c :
       {Case{R"({requests: {cpu: "20"}})", "{}", "OutOfcpu"},
        Case{"{requests: {memory: 65Gi}}", "{}", "OutOfmemory"},
        Case{"{limits: {nvidia.com/gpu: 5}}", "{}", "UnexpectedAdmissionError"},
        Case{"{limits: {nvidia.com/mig-1g.5gb: 1}}", "{}", "UnexpectedAdmissionError"},
        Case{"{}", "{tessera.dev/share-milli: '600', tessera.dev/share-gpus: '5'}",
             "UnexpectedAdmissionError"},
        Case{"{}", "{tessera.dev/run-for: soon}", "InvalidPod"}}) {
    Lab lab(kFleet);
    lab.apply(pod_text("p", c.resources, c.annotations, "nodeName: gpu-0"));
    lab.advance(seconds(2));
    const kube::Object pod = lab.pod("p");
    EXPECT_EQ(pod.get("status", "phase").as_string(), "Failed") << c.reason;
    EXPECT_EQ(pod.get("status", "reason").as_string(), c.reason);
    EXPECT_FALSE(pod.get("status", "message").as_string().empty());
    // Nothing of it is left on the node.
    lab.apply(
        pod_text("q", R"({requests: {cpu: "16", memory: 64Gi}, limits: {nvidia.com/gpu: 4}})"));
    lab.advance(seconds(2));
    EXPECT_EQ(lab.phase("q"), "Running") << c.reason;
  }
}

TEST(Kubelets, The_pods_limit_counts) {
  Lab lab(kFleet);
  for (int i = 0; i < 6; ++i)
    lab.apply(pod_text(fmt::format("p{}", i), "{}", "{}", "nodeName: gpu-0"));
  lab.advance(seconds(2));
  EXPECT_EQ(lab.kubelets().running(), 5U);
  EXPECT_EQ(lab.pod("p5").get("status", "reason").as_string(), "OutOfpods");
}

TEST(Kubelets, A_deleted_pod_has_its_grace_and_then_its_object_goes) {
  Lab lab(kFleet);
  lab.apply(pod_text("p", "{limits: {nvidia.com/gpu: 4}}", "{tessera.dev/stop-after: 20s}"));
  lab.apply(pod_text("next", "{limits: {nvidia.com/gpu: 1}}"));
  lab.advance(seconds(2));
  ASSERT_TRUE(lab.remove("Pod", "p"));
  lab.advance(seconds(19));
  EXPECT_TRUE(lab.pod("p").deleting());
  EXPECT_EQ(lab.node_of("next"), "") << "a terminating pod still holds its GPUs";
  lab.advance(seconds(2));
  EXPECT_FALSE(lab.pod("p"));
  EXPECT_EQ(lab.phase("next"), "Running");
  EXPECT_EQ(lab.kubelets().pods(), 1U);
}

TEST(Kubelets, A_second_deletion_may_shorten_the_grace) {
  Lab lab(kFleet);
  lab.apply(
      pod_text("p", "{}", "{tessera.dev/stop-after: 500s}", "terminationGracePeriodSeconds: 300"));
  lab.advance(seconds(2));
  ASSERT_TRUE(lab.remove("Pod", "p"));
  lab.advance(seconds(10));
  EXPECT_TRUE(lab.pod("p").deleting());
  ASSERT_TRUE(lab.remove("Pod", "p", json::Value::object({{"gracePeriodSeconds", 2}})));
  lab.advance(seconds(4));
  EXPECT_FALSE(lab.pod("p"));
}

TEST(Kubelets, Forced_deletion_frees_the_devices_at_once) {
  Lab lab(kFleet);
  lab.apply(pod_text("p", "{limits: {nvidia.com/gpu: 4}}", "{tessera.dev/stop-after: 500s}"));
  lab.advance(seconds(2));
  ASSERT_TRUE(lab.remove("Pod", "p", json::Value::object({{"gracePeriodSeconds", 0}})));
  EXPECT_FALSE(lab.pod("p"));
  lab.apply(pod_text("q", "{limits: {nvidia.com/gpu: 4}}"));
  lab.advance(seconds(2));
  EXPECT_EQ(lab.phase("q"), "Running");
}

TEST(Kubelets, A_failed_node_reports_nothing_and_its_containers_start_again_after_it) {
  Lab lab(kFleet);
  lab.apply(pod_text("job", "{}", "{}"));
  lab.apply(R"(
apiVersion: v1
kind: Pod
metadata: {name: service}
spec: {containers: [{name: main, image: "registry.example/x:1"}]}
)");
  lab.advance(seconds(2));
  lab.kubelets().fail_node("gpu-0");
  EXPECT_TRUE(lab.kubelets().node_failed("gpu-0"));
  lab.apply(pod_text("late", "{}", "{}", "nodeName: gpu-0"));
  lab.advance(seconds(30));
  EXPECT_EQ(lab.phase("service"), "Running") << "nobody knows yet";
  EXPECT_EQ(lab.phase("late"), "Pending");
  lab.kubelets().restore_node("gpu-0");
  lab.advance(seconds(2));
  EXPECT_EQ(lab.phase("job"), "Failed");
  EXPECT_EQ(lab.phase("late"), "Running");
  const kube::Object service = lab.pod("service");
  EXPECT_EQ(service.get("status", "phase").as_string(), "Running");
  EXPECT_EQ(service.get("status", "containerStatuses").at(0)["restartCount"].as_int(), 1);
}

TEST(Kubelets, A_node_away_for_long_is_not_ready_and_comes_back) {
  Lab lab(kFleet);
  auto ready = [&] {
    const kube::Object node = lab.get("Node", "gpu-0");
    for (const json::Value& c : node.get("status", "conditions").items()) {
      if (c["type"].as_string() == "Ready") return c["status"].str();
    }
    return std::string();
  };
  EXPECT_EQ(ready(), "True");
  lab.kubelets().fail_node("gpu-0");
  lab.advance(seconds(90));
  EXPECT_EQ(ready(), "Unknown");
  lab.apply(pod_text("p", "{}"));
  lab.advance(seconds(5));
  EXPECT_EQ(lab.node_of("p"), "");
  lab.kubelets().restore_node("gpu-0");
  lab.advance(seconds(30));
  EXPECT_EQ(ready(), "True");
  EXPECT_EQ(lab.phase("p"), "Running");
}

TEST(Kubelets, A_sick_gpu_gets_nothing_new_and_keeps_what_it_has) {
  Lab lab(kFleet);
  lab.apply(pod_text("old", "{limits: {nvidia.com/gpu: 1}}"));
  lab.advance(seconds(2));
  ASSERT_EQ(lab.pod("old").annotation("tessera.dev/gpus"), "0");
  lab.kubelets().set_gpu_healthy("gpu-0", 0, false);
  lab.kubelets().set_gpu_healthy("gpu-0", 2, false);
  lab.advance(seconds(2));
  const kube::Object node = lab.get("Node", "gpu-0");
  EXPECT_EQ(node.get("status", "allocatable", "nvidia.com/gpu").as_string(), "2");
  EXPECT_EQ(node.get("status", "capacity", "nvidia.com/gpu").as_string(), "4");
  EXPECT_EQ(node.annotation("tessera.dev/unhealthy-gpus"), "0,2");
  EXPECT_EQ(lab.phase("old"), "Running");
  lab.apply(pod_text("a", "{limits: {nvidia.com/gpu: 2}}"));
  lab.apply(pod_text("b", "{limits: {nvidia.com/gpu: 1}}"));
  lab.advance(seconds(2));
  EXPECT_EQ(lab.pod("a").annotation("tessera.dev/gpus"), "1,3");
  EXPECT_EQ(lab.node_of("b"), "");
  lab.kubelets().set_gpu_healthy("gpu-0", 2, true);
  lab.advance(seconds(2));
  EXPECT_EQ(lab.pod("b").annotation("tessera.dev/gpus"), "2");
}

// cases/C13, point 1 and 4: the whole way from the API to the devices.
struct C13Row {
  const char* name;
  const char* spec;
  int needs;
};
class C13 : public ::testing::TestWithParam<C13Row> {};

std::string c13_pod(const C13Row& row) {
  std::string init;
  std::string apps;
  int count = 0;
  for (const char* at = row.spec; *at != '\0'; at += at[2] == ' ' ? 3 : 2) {
    const std::string limits = at[1] == '0' ? "{}" : fmt::format("{{nvidia.com/gpu: {}}}", at[1]);
    const std::string container = fmt::format(
        "    - {{name: c{}, image: \"registry.example/x:1\", resources: {{limits: {}}}{}}}\n",
        count++, limits, at[0] == 'S' ? ", restartPolicy: Always" : "");
    (at[0] == 'A' ? apps : init) += container;
  }
  if (!init.empty()) init = "  initContainers:\n" + init;
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, annotations: {{tessera.dev/init-run-for: "
      "5s}}}}\n"
      "spec:\n  restartPolicy: Never\n{}  containers:\n{}",
      init, apps);
}

std::string node_of_gpus(int gpus) {
  return fmt::format("racks: [{{name: r, nodes: [{{name: node, {}}}]}}]",
                     gpus > 0 ? fmt::format("model: H200, gpus: {}", gpus) : "cpu: 8");
}

TEST_P(C13, C13_runs_on_as_many_gpus_as_it_needs_and_waits_on_one_less) {
  Lab enough(node_of_gpus(GetParam().needs));
  enough.apply(c13_pod(GetParam()));
  for (int i = 0; i < 40; ++i) {
    enough.advance(millis(500));
    EXPECT_LE(static_cast<int>(device_ids(enough.pod("p")).size()), GetParam().needs);
  }
  EXPECT_EQ(enough.phase("p"), "Running");

  Lab short_of_one(node_of_gpus(GetParam().needs - 1));
  short_of_one.apply(c13_pod(GetParam()));
  short_of_one.advance(seconds(120));
  EXPECT_EQ(short_of_one.phase("p"), "Pending");
  EXPECT_EQ(short_of_one.node_of("p"), "");
  EXPECT_THAT(short_of_one.why("p"), HasSubstr("Insufficient nvidia.com/gpu"));
}

INSTANTIATE_TEST_SUITE_P(Rows, C13,
                         ::testing::Values(C13Row{"p1", "I4 A1 A1", 4}, C13Row{"p2", "I1 I2 A1", 2},
                                           C13Row{"p3", "S1 A2", 3}, C13Row{"p4", "I1 S1 I2 A1", 3},
                                           C13Row{"p5", "I2 S1 A1", 2}, C13Row{"p6", "A1 A1", 2},
                                           C13Row{"p7", "S1 S1 I1 A0", 3},
                                           C13Row{"p8", "I3 A0", 3}),
                         [](const auto& row) { return row.param.name; });

TEST(Kubelets, C13_a_reservation_keeps_its_size_until_the_pod_is_finished) {
  Lab lab(node_of_gpus(4));
  lab.apply(c13_pod({"p1", "I4 A1 A1", 4}));
  lab.advance(seconds(1));
  lab.apply(pod_text("x", "{limits: {nvidia.com/gpu: 1}}"));
  lab.advance(seconds(300));
  EXPECT_EQ(lab.phase("p"), "Running") << "its init container has ended";
  EXPECT_EQ(lab.phase("x"), "Pending");
  ASSERT_TRUE(lab.remove("Pod", "p"));
  lab.advance(seconds(5));
  EXPECT_EQ(lab.phase("x"), "Running");
}

TEST(Kubelets, C39_huge_amounts_wait_for_ever_and_change_no_counter) {
  Lab lab(kFleet);
  const std::string before = lab.get("Node", "gpu-0").get("status", "allocatable").dump();
  for (const char* amount : {"3Ki", "9223372036854775807", "9223372036854775808"}) {
    const std::string text =
        pod_text("p", fmt::format("{{limits: {{nvidia.com/gpu: \"{}\"}}}}", amount));
    auto made = lab.create(*json::parse_yaml(text));
    if (!made) {
      EXPECT_THAT(base::http_status_of(made.error().code), ::testing::AnyOf(400, 422)) << amount;
      continue;
    }
    lab.advance(seconds(600));
    EXPECT_EQ(lab.phase("p"), "Pending") << amount;
    EXPECT_EQ(lab.node_of("p"), "") << amount;
    lab.apply(pod_text("q", "{limits: {nvidia.com/gpu: 4}}"));
    lab.advance(seconds(2));
    EXPECT_EQ(lab.phase("q"), "Running") << "all four are free beside " << amount;
    ASSERT_TRUE(lab.remove("Pod", "q"));
    ASSERT_TRUE(lab.remove("Pod", "p"));
    lab.advance(seconds(5));
  }
  EXPECT_EQ(lab.get("Node", "gpu-0").get("status", "allocatable").dump(), before);
}

TEST(Kubelets, After_a_restart_of_everything_pods_keep_their_places) {
  const base::TempDir dir;
  std::string gpus;
  {
    Lab lab(kFleet, dir.path());
    lab.apply(R"(
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: main, image: "registry.example/x:1", resources: {limits: {nvidia.com/gpu: 2}}}]}
)");
    lab.advance(seconds(2));
    gpus = lab.pod("p").annotation("tessera.dev/gpus");
    EXPECT_EQ(lab.phase("p"), "Running");
  }
  Lab lab(kFleet, dir.path());
  lab.advance(seconds(5));
  EXPECT_TRUE(lab.kubelets().registered());
  const kube::Object pod = lab.pod("p");
  EXPECT_EQ(pod.get("status", "phase").as_string(), "Running");
  EXPECT_EQ(pod.annotation("tessera.dev/gpus"), gpus);
  EXPECT_EQ(pod.get("status", "containerStatuses").at(0)["restartCount"].as_int(), 1);
  lab.apply(pod_text("q", "{limits: {nvidia.com/gpu: 3}}"));
  lab.advance(seconds(2));
  EXPECT_EQ(lab.node_of("q"), "") << "two of four are taken";
}

}  // namespace
}  // namespace tessera::sim
