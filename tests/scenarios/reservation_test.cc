// A Reservation as its users meet it: through the API, with controllers, kubelets and time that passes.

#include <gmock/gmock.h>

#include "gang_lab_testing.h"
#include "scheduler/conditions.h"

namespace tessera::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwo = "racks: [{name: r, nodes: [{name: a, model: L4, gpus: 2, count: 2}]}]";

std::string pod_of(std::string_view name, std::string_view queue, int gpus,
                   std::string_view run_for, std::string_view deadline = "") {
  return fmt::format(
      R"(
apiVersion: v1
kind: Pod
metadata: {{name: {}, labels: {{tessera.dev/queue: {}}}, annotations: {{tessera.dev/run-for: {}}}}}
spec:
  {}
  restartPolicy: Never
  containers: [{{name: c, image: "registry.example/c:1", resources: {{limits: {{nvidia.com/gpu: {}}}}}}}]
)",
      name, queue, run_for,
      deadline.empty() ? std::string() : fmt::format("activeDeadlineSeconds: {}", deadline), gpus);
}

TEST(Reservations, capacity_is_there_for_its_queue_from_its_start_and_for_all_after_its_end) {
  GangLab lab(kTwo);
  lab.make(R"(
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {name: review}
spec: {}
---
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {name: rest}
spec: {}
)");
  const auto queue = lab.read(lab.named("tessera.dev/v1alpha1", "Queue", "review"));
  const auto begin = base::parse_rfc3339(queue.metadata()["creationTimestamp"].as_string());
  ASSERT_TRUE(begin);
  lab.make(fmt::format(R"(
apiVersion: tessera.dev/v1alpha1
kind: Reservation
metadata: {{name: demo}}
spec: {{queue: review, resources: {{gpu: 4}}, start: "{}", duration: 60s}}
---
apiVersion: tessera.dev/v1alpha1
kind: Reservation
metadata: {{name: dream}}
spec: {{queue: review, resources: {{gpu: 40}}, start: "{}", duration: 60s}}
)",
                       base::to_rfc3339(*begin + base::seconds(100)),
                       base::to_rfc3339(*begin + base::seconds(100))));
  lab.advance(base::seconds(10));
  const auto status = [&](std::string_view name) {
    return lab.read(lab.named("tessera.dev/v1alpha1", "Reservation", name))["status"];
  };
  EXPECT_EQ(status("demo")["phase"].as_string(), "Planned");
  EXPECT_EQ(status("demo")["nodes"].size(), 2U);
  EXPECT_EQ(status("dream")["phase"].as_string(), "Refused");
  EXPECT_THAT(std::string(scheduler::condition_of(status("dream"), "Held")["message"].as_string()),
              HasSubstr("it asks for 40 GPUs and the cluster has 4 GPUs"));
  lab.make(pod_of("endless", "rest", 2, "1000s"));
  lab.make(pod_of("short", "rest", 2, "50s", "60"));
  lab.advance(base::seconds(20));
  EXPECT_EQ(lab.pod("short").get("status", "phase").as_string(), "Running");
  EXPECT_EQ(lab.pod("endless").get("status", "phase").as_string(), "Pending");
  EXPECT_THAT(lab.why("endless"), HasSubstr("held by reservation \"demo\""));
  EXPECT_THAT(std::string(lab.pod("endless").annotation("tessera.dev/verdict")),
              HasSubstr("\"reservation\":\"demo\""));
  lab.advance(base::seconds(75));  // past the start
  EXPECT_EQ(status("demo")["phase"].as_string(), "Active");
  lab.make(pod_of("show-a", "review", 2, "20s"));
  lab.make(pod_of("show-b", "review", 2, "20s"));
  lab.advance(base::seconds(10));
  EXPECT_EQ(lab.pod("show-a").get("status", "phase").as_string(), "Running");
  EXPECT_EQ(lab.pod("show-b").get("status", "phase").as_string(), "Running");
  lab.advance(base::seconds(25));
  EXPECT_EQ(lab.pod("endless").get("status", "phase").as_string(), "Pending");
  lab.advance(base::seconds(40));  // past the end
  EXPECT_EQ(status("demo")["phase"].as_string(), "Ended");
  EXPECT_EQ(lab.pod("endless").get("status", "phase").as_string(), "Running");
}

}  // namespace
}  // namespace tessera::sim
