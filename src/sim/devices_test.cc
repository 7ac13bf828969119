#include "sim/devices.h"

#include <gtest/gtest.h>

namespace tessera::sim {
namespace {

using Role = ContainerAsk::Role;

DevicePool whole_gpus(int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i)
    devices.push_back({"GPU-" + std::to_string(i), "nvidia.com/gpu", i});
  return {devices, count};
}

// "I1 S1 I2 A1" as in the case's table.
PodAsk ask_of(std::string_view text) {
  PodAsk ask;
  for (size_t i = 0; i + 1 < text.size(); i += 3) {
    const Role role = text[i] == 'I' ? Role::kInit : text[i] == 'S' ? Role::kSidecar : Role::kApp;
    ask.containers.push_back(
        {"c" + std::to_string(i / 3), role, {{"nvidia.com/gpu", text[i + 1] - '0'}}});
  }
  return ask;
}

TEST(Devices, C13_a_pod_reserves_what_it_needs_at_the_same_time) {
  struct Case {
    const char* containers;
    int64_t needs;
  };
  for (const Case& c :
       {Case{"I4 A1 A1", 4}, Case{"I1 I2 A1", 2}, Case{"S1 A2", 3}, Case{"I1 S1 I2 A1", 3},
        Case{"I2 S1 A1", 2}, Case{"A1 A1", 2}, Case{"S1 S1 I1 A0", 3}, Case{"I3 A0", 3}}) {
    const PodAsk ask = ask_of(c.containers);
    EXPECT_EQ(devices_needed(ask, "nvidia.com/gpu"), c.needs) << c.containers;
    EXPECT_TRUE(whole_gpus(static_cast<int>(c.needs)).reserve("p", ask)) << c.containers;
    EXPECT_FALSE(whole_gpus(static_cast<int>(c.needs) - 1).reserve("p", ask)) << c.containers;
  }
}

TEST(Devices, C13_app_containers_use_the_ids_of_the_init_container_and_never_more) {
  DevicePool pool = whole_gpus(4);
  const auto got = pool.reserve("p1", ask_of("I4 A1 A1"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->by_container.at("c0").size(), 4U);
  EXPECT_EQ(got->by_container.at("c1")[0].id, "GPU-0");
  EXPECT_EQ(got->by_container.at("c2")[0].id, "GPU-1");
  EXPECT_FALSE(pool.reserve("x", ask_of("A1"))) << "the reservation keeps its size";
  pool.release("p1");
  EXPECT_TRUE(pool.reserve("x", ask_of("A1")));
}

TEST(Devices, A_sidecar_keeps_its_device_beside_later_containers) {
  DevicePool pool = whole_gpus(3);
  const auto got = pool.reserve("p4", ask_of("I1 S1 I2 A1"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->by_container.at("c1")[0].id, "GPU-0");
  EXPECT_EQ(got->by_container.at("c2")[0].id, "GPU-1");
  EXPECT_EQ(got->by_container.at("c3")[0].id, "GPU-1");
}

TEST(Devices, The_schedulers_choice_is_kept_or_the_pod_refused) {
  DevicePool pool = whole_gpus(8);
  PodAsk ask = ask_of("A2");
  ask.gpus = {5, 7};
  EXPECT_EQ(pool.reserve("p", ask)->gpus, (std::vector<int>{5, 7}));
  ask.gpus = {4, 5};
  EXPECT_FALSE(pool.reserve("q", ask)) << "the scheduler counts on devices that it knows";
  ask.gpus = {4, 6};
  EXPECT_TRUE(pool.reserve("q", ask));
}

TEST(Devices, Shares_and_whole_devices_never_meet_on_one_gpu) {
  DevicePool pool = whole_gpus(2);
  PodAsk share;
  share.share_gpus = 1;
  share.share_milli = 600;
  EXPECT_EQ(pool.reserve("a", share)->gpus, std::vector<int>{0});
  EXPECT_EQ(pool.reserve("b", share)->gpus, std::vector<int>{1});
  EXPECT_FALSE(pool.reserve("c", share));
  EXPECT_FALSE(pool.reserve("d", ask_of("A1")));
  pool.release("a");
  EXPECT_EQ(pool.reserve("d", ask_of("A1"))->gpus, std::vector<int>{0});
  EXPECT_FALSE(pool.reserve("e", share));
}

TEST(Devices, A_sick_gpu_gives_nothing_new_and_counts_as_capacity_only) {
  DevicePool pool = whole_gpus(2);
  pool.set_healthy(0, false);
  EXPECT_EQ(pool.capacity().at("nvidia.com/gpu"), 2);
  EXPECT_EQ(pool.allocatable().at("nvidia.com/gpu"), 1);
  EXPECT_EQ(pool.reserve("p", ask_of("A1"))->gpus, std::vector<int>{1});
}

TEST(Devices, Asking_for_more_than_can_be_counted_is_refused) {
  DevicePool pool = whole_gpus(2);
  PodAsk ask = ask_of("A1 A1 S1");
  ask.containers[0].devices["nvidia.com/gpu"] = INT64_MAX;
  EXPECT_EQ(devices_needed(ask, "nvidia.com/gpu"), INT64_MAX);
  EXPECT_EQ(pool.reserve("p", ask).error().code, base::Code::kBusy);
}

}  // namespace
}  // namespace tessera::sim
