#include "scheduler/mirror.h"

#include <gtest/gtest.h>

#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using testing::bound;
using testing::node_object;
using testing::pod_object;
using testing::with;

class MirrorTest : public ::testing::Test {
 protected:
  void add_node(std::string_view name, int gpus = 8, std::string_view more = "{}") {
    mirror.on_node({}, node_object(name, gpus, more));
  }
  // As the scheduler does on news of a bound pod.
  Tracked& see_bound(const kube::Object& pod, const std::string& node) {
    Tracked& tracked = mirror.track(pod);
    mirror.confirm(tracked, node);
    return tracked;
  }
  core::NodeId id_of(std::string_view name) {
    for (size_t n = 0; n < mirror.cluster().node_slots(); ++n) {
      const core::NodeId id(static_cast<int32_t>(n));
      if (mirror.cluster().present(id) && mirror.node_name(id) == name) return id;
    }
    return {};
  }
  int free_gpus(std::string_view node) {
    return __builtin_popcount(mirror.cluster().load(id_of(node)).gpu_idle);
  }

  Mirror mirror;
};

TEST_F(MirrorTest, After_a_restart_bound_pods_hold_their_own_devices) {
  see_bound(bound(pod_object("early", "{}", 2), "n", "6,7"), "n");  // its node comes later
  add_node("n");
  EXPECT_EQ(mirror.cluster().load(id_of("n")).gpu_idle, 0b0011'1111U);
  see_bound(bound(pod_object("late", "{}", 1), "n", "0"), "n");
  EXPECT_EQ(mirror.cluster().load(id_of("n")).gpu_idle, 0b0011'1110U);
  EXPECT_EQ(mirror.cluster().load(id_of("n")).cpu_free, 62'000);
}

TEST_F(MirrorTest, A_node_that_comes_back_has_its_pods_again) {
  add_node("n");
  see_bound(bound(pod_object("p", "{}", 3), "n", "0,1,2"), "n");
  mirror.on_node(node_object("n"), {});
  EXPECT_EQ(mirror.nodes(), 0U);
  EXPECT_FALSE(id_of("n").valid());
  add_node("n");
  EXPECT_EQ(free_gpus("n"), 5);
  EXPECT_TRUE(mirror.forget("default/p"));
  EXPECT_EQ(free_gpus("n"), 8);
  EXPECT_EQ(mirror.cluster().pods(), 0U);
}

TEST_F(MirrorTest, Nodes_that_change_in_nothing_that_counts_wake_nobody) {
  EXPECT_TRUE(mirror.on_node({}, node_object("n")));
  EXPECT_FALSE(
      mirror.on_node({}, node_object("n", 8, R"(status: {nodeInfo: {kubeletVersion: v1}})")));
  EXPECT_TRUE(mirror.on_node({}, node_object("n", 8, "spec: {unschedulable: true}")));
  EXPECT_FALSE(mirror.cluster().load(id_of("n")).open);
}

TEST_F(MirrorTest, An_assumed_pod_is_charged_once_and_confirmed_where_it_was_bound) {
  add_node("a");
  add_node("b");
  Tracked& pod = mirror.track(pod_object("p", "{}", 2));
  mirror.assume(pod, {id_of("a"), 0b11, 1000});
  EXPECT_EQ(mirror.assumed(), 1U);
  EXPECT_EQ(free_gpus("a"), 6);
  // The bind that counted was another one.
  see_bound(bound(pod_object("p", "{}", 2), "b", "4,5"), "b");
  EXPECT_EQ(mirror.assumed(), 0U);
  EXPECT_EQ(free_gpus("a"), 8);
  EXPECT_EQ(free_gpus("b"), 6);
  see_bound(bound(pod_object("p", "{}", 2), "b", "6,7"), "b");
  EXPECT_EQ(mirror.cluster().load(id_of("b")).gpu_idle, 0b0011'1111U)
      << "the devices it really got";
}

TEST_F(MirrorTest, A_pod_deleted_while_its_bind_is_under_way_gives_its_place_back) {
  add_node("a");
  mirror.assume(mirror.track(pod_object("p", "{}", 8)), {id_of("a"), 0xff, 1000});
  EXPECT_EQ(free_gpus("a"), 0);
  EXPECT_TRUE(mirror.forget("default/p"));
  EXPECT_EQ(mirror.assumed(), 0U);
  EXPECT_EQ(free_gpus("a"), 8);
  EXPECT_FALSE(mirror.forget("default/p"));
}

TEST_F(MirrorTest, A_place_assumed_on_a_node_that_goes_is_not_lost_or_counted_twice) {
  add_node("a");
  Tracked& pod = mirror.track(pod_object("p", "{}", 8));
  mirror.assume(pod, {id_of("a"), 0xff, 1000});
  mirror.on_node(node_object("a"), {});
  add_node("a");
  EXPECT_EQ(free_gpus("a"), 8) << "not yet known to be bound there";
  see_bound(bound(pod_object("p", "{}", 8), "a", "0,1,2,3,4,5,6,7"), "a");
  EXPECT_EQ(free_gpus("a"), 0);
  EXPECT_EQ(mirror.cluster().pods(), 1U);
}

TEST_F(MirrorTest, A_terminating_pod_keeps_its_gpus) {
  add_node("n");
  see_bound(bound(pod_object("p", "{}", 8), "n"), "n");
  mirror.track(with(bound(pod_object("p", "{}", 8), "n"),
                    R"(metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"})"));
  EXPECT_EQ(free_gpus("n"), 0);
}

TEST_F(MirrorTest, A_placed_pod_keeps_the_request_that_it_was_charged_with) {
  add_node("n");
  Tracked& pod = mirror.track(pod_object("p", "{}", 2));
  mirror.assume(pod, {id_of("n"), 0b11, 1000});
  mirror.track(pod_object("p", R"(metadata: {annotations: {gpu-fraction: "0.5"}})", 2));
  EXPECT_TRUE(pod.problem.empty());
  EXPECT_TRUE(mirror.release(pod));
  EXPECT_EQ(free_gpus("n"), 8);
  mirror.track(pod.object);
  EXPECT_FALSE(pod.problem.empty()) << "once free, it is read again";
  EXPECT_EQ(pod.request, nullptr);
}

TEST_F(MirrorTest, A_bound_pod_that_makes_no_sense_to_us_takes_its_place_all_the_same) {
  add_node("n");
  see_bound(bound(pod_object("p", R"(metadata: {annotations: {gpu-fraction: "7"}})", 8), "n"), "n");
  EXPECT_EQ(free_gpus("n"), 0);
}

TEST_F(MirrorTest, Pods_without_annotations_take_the_least_used_devices) {
  add_node("n", 2);
  see_bound(bound(pod_object("a", "{}", 1), "n"), "n");
  see_bound(bound(pod_object("b", "{}", 1), "n"), "n");
  EXPECT_EQ(free_gpus("n"), 0);
}

}  // namespace
}  // namespace tessera::scheduler
