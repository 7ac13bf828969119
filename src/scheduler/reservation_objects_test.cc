#include "scheduler/reservation_objects.h"

#include <gtest/gtest.h>

#include "json/patch.h"
#include "scheduler/conditions.h"
#include "scheduler/queueing/engine_testing.h"
#include "scheduler/reservation_status.h"
#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using testing::yaml;

constexpr const char* kGood =
    "{apiVersion: tessera.dev/v1alpha1, kind: Reservation, metadata: {name: r, generation: 3}, "
    "spec: {queue: q, resources: {gpu: 4, memory: 64Gi}, "
    "start: \"2026-01-01T10:00:00Z\", duration: 1h30m}, status: {nodes: [n2, n1]}}";

TEST(ReservationObjects, all_fields_are_read) {
  queueing::Dims dims;
  const auto spec = read_reservation(Object(yaml(kGood)), dims, {});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->problem, "");
  EXPECT_EQ(spec->name, "r");
  EXPECT_EQ(spec->queue, "q");
  EXPECT_EQ(spec->amounts.at(queueing::kGpu), 4 * queueing::kUnitsPerGpu);
  EXPECT_EQ(spec->amounts.at(queueing::kMemory), 64 * 1024);
  EXPECT_EQ(base::to_rfc3339(spec->start), "2026-01-01T10:00:00Z");
  EXPECT_EQ(spec->duration, base::seconds(5400));
  EXPECT_EQ(spec->nodes, (std::vector<std::string>{"n2", "n1"}));
}

TEST(ReservationObjects, what_makes_no_sense_is_its_problem) {
  queueing::Dims dims;
  const auto problem = [&](std::string_view spec) {
    const Object object(yaml(fmt::format(
        "{{apiVersion: tessera.dev/v1alpha1, kind: Reservation, metadata: {{name: r}}, spec: {}}}",
        spec)));
    const auto read = read_reservation(object, dims, {});
    return read ? read->problem : "nothing";
  };
  EXPECT_EQ(
      problem("{queue: q, resources: {gpu: 1}, start: \"2026-01-01T10:00:00Z\", duration: 0s}"),
      "spec.duration: \"0s\" is no time above 0: write it as 2h or 1h30m");
  EXPECT_EQ(problem("{queue: q, resources: {gpu: 1}, start: soon, duration: 1h}"),
            "spec.start: \"soon\" is no time: write it as 2030-01-31T08:00:00Z");
  EXPECT_EQ(
      problem("{queue: q, resources: {gpu: 0}, start: \"2026-01-01T10:00:00Z\", duration: 1h}"),
      "spec.resources: it asks for nothing: name an amount above 0");
  EXPECT_EQ(
      problem("{queue: q, resources: {gpu: many}, start: \"2026-01-01T10:00:00Z\", duration: 1h}"),
      "spec.resources.gpu: \"many\" is no amount: write it as 4, 500m or 64Gi");
  EXPECT_EQ(problem("{resources: {gpu: 1}, start: \"2026-01-01T10:00:00Z\", duration: 1h}"),
            "spec.queue: it is empty: name a queue");
  EXPECT_FALSE(read_reservation(Object(yaml("{apiVersion: v1, kind: Pod}")), dims, {}));
}

TEST(ReservationStatus, phase_nodes_and_condition_are_written_once) {
  queueing::testing::Lab lab;
  lab.nodes(3, 4).queues({queueing::testing::queue("q", 0)});
  Object object(yaml(kGood));
  auto spec = read_reservation(object, lab.engine.dims(), {});
  spec->start = lab.now + base::seconds(10);
  lab.engine.set_reservations({*spec});
  EXPECT_FALSE(reservation_status(object, lab.engine, lab.now));
  lab.settle();
  const auto write = [&] {
    const auto patch = reservation_status(object, lab.engine, lab.now);
    ASSERT_TRUE(patch);
    json::Value next = object.json();
    next.set("status", json::apply_merge_patch(object["status"], (*patch)["status"]));
    object = Object(next);
    EXPECT_FALSE(reservation_status(object, lab.engine, lab.now));
  };
  write();
  EXPECT_EQ(object["status"]["phase"].as_string(), "Planned");
  EXPECT_EQ(object["status"]["observedGeneration"].as_int(), 3);
  EXPECT_EQ(condition_of(object["status"], "Held")["status"].as_string(), "True");
  EXPECT_EQ(object.get("status", "nodes").size(), 1U);
  EXPECT_EQ(object.get("status", "nodes").items()[0].as_string(), "n1");
  lab.pass(base::seconds(10));
  lab.settle();
  write();
  EXPECT_EQ(object["status"]["phase"].as_string(), "Active");
  lab.pass(base::seconds(5400));
  lab.settle();
  write();
  EXPECT_EQ(object["status"]["phase"].as_string(), "Ended");
  EXPECT_EQ(object.get("status", "nodes").size(), 0U);
  EXPECT_EQ(condition_of(object["status"], "Held")["status"].as_string(), "False");
}

}  // namespace
}  // namespace tessera::scheduler
