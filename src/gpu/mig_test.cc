#include "gpu/mig.h"

#include <gtest/gtest.h>

namespace tessera::gpu {
namespace {

using base::Code;

// cases/C07: one A100-40GB.

struct Row {
  int number;
  std::vector<ProfileCount> layout;
  const char* refusal;  // nullptr: fits
};

class C07_MigFits : public testing::TestWithParam<Row> {};

TEST_P(C07_MigFits, As_the_table_says) {
  const Row& row = GetParam();
  const Model& model = *find_model("A100-40");
  const auto layout = fit(model, row.layout);
  if (row.refusal != nullptr) {
    ASSERT_FALSE(layout);
    EXPECT_EQ(layout.error().code, Code::kNever);
    EXPECT_EQ(layout.error().message, row.refusal);
    return;
  }
  ASSERT_TRUE(layout) << layout.error().message;
  MigCounts wanted{};
  for (const ProfileCount& item : row.layout) {
    wanted[static_cast<size_t>(*profile_index(model, item.profile))] +=
        static_cast<uint8_t>(item.count);
  }
  EXPECT_EQ(layout->counts(), wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Row, C07_MigFits,
    testing::Values(
        Row{1, {{"1g.5gb", 7}}, nullptr}, Row{2, {{"2g.10gb", 3}, {"1g.5gb", 1}}, nullptr},
        Row{3, {{"3g.20gb", 2}}, nullptr}, Row{4, {{"4g.20gb", 1}, {"3g.20gb", 1}}, nullptr},
        Row{40, {{"3g.20gb", 1}, {"4g.20gb", 1}}, nullptr},
        Row{5, {{"1g.5gb", 2}, {"2g.10gb", 1}, {"3g.20gb", 1}}, nullptr},
        Row{6, {{"3g.20gb", 1}, {"1g.5gb", 4}}, nullptr},
        Row{7, {{"3g.20gb", 1}, {"2g.10gb", 2}}, nullptr},
        Row{8, {{"4g.20gb", 1}, {"2g.10gb", 1}, {"1g.5gb", 1}}, nullptr},
        Row{9, {{"4g.20gb", 1}, {"1g.5gb", 3}}, nullptr}, Row{10, {{"1g.10gb", 4}}, nullptr},
        Row{11,
            {{"3g.20gb", 2}, {"1g.5gb", 1}},
            "1g.5gb: does not fit on A100-40: 9 of 8 memory slices asked"},
        Row{12, {{"2g.10gb", 4}}, "2g.10gb: does not fit on A100-40: 4 instances asked, at most 3"},
        Row{13, {{"4g.20gb", 2}}, "4g.20gb: does not fit on A100-40: 2 instances asked, at most 1"},
        Row{14,
            {{"4g.20gb", 1}, {"2g.10gb", 2}},
            "2g.10gb: does not fit on A100-40: 8 of 7 compute slices asked"},
        Row{15,
            {{"7g.40gb", 1}, {"1g.5gb", 1}},
            "1g.5gb: does not fit on A100-40: 8 of 7 compute slices asked"},
        Row{16, {{"1g.5gb", 8}}, "1g.5gb: does not fit on A100-40: 8 instances asked, at most 7"},
        Row{17,
            {{"1g.10gb", 4}, {"1g.5gb", 3}},
            "1g.5gb: does not fit on A100-40: 9 of 8 memory slices asked"},
        Row{18,
            {{"1g.5gb+me", 2}},
            "1g.5gb+me: does not fit on A100-40: 2 instances asked, at most 1"},
        Row{19,
            {{"2g.20gb", 3}},
            "2g.20gb: no such profile on A100-40; it has 1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, "
            "3g.20gb, 4g.20gb, "
            "7g.40gb"}),
    [](const testing::TestParamInfo<Row>& row) {
      const int number = row.param.number;
      return number == 40 ? std::string("4_other_order") : std::to_string(number);
    });

int start_of(const MigLayout& layout, std::string_view profile) {
  for (const MigPlacement& place : layout.placements()) {
    if (layout.table().profiles[static_cast<size_t>(place.profile)].name == profile)
      return place.start;
  }
  return -1;
}

TEST(C07_Mig, Small_profiles_first_in_the_file_still_leave_4_for_3g) {
  const Model& model = *find_model("A100-40");
  for (const std::vector<ProfileCount>& wanted :
       {std::vector<ProfileCount>{{"1g.5gb", 2}, {"2g.10gb", 1}, {"3g.20gb", 1}},
        std::vector<ProfileCount>{{"3g.20gb", 1}, {"1g.5gb", 4}},
        std::vector<ProfileCount>{{"3g.20gb", 1}, {"2g.10gb", 2}}}) {
    EXPECT_EQ(start_of(*fit(model, wanted), "3g.20gb"), 4);
  }
}

TEST(C07_Mig, Half_good_config_is_refused_whole_and_names_device_1) {
  const Model& model = *find_model("A100-40");
  const std::vector<DeviceWish> wishes = {{0, &model, true, {{"3g.20gb", 2}}},
                                          {1, &model, true, {{"3g.20gb", 2}, {"1g.5gb", 1}}}};
  const auto plan = plan_node(wishes);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message,
            "device 1: 1g.5gb: does not fit on A100-40: 9 of 8 memory slices asked");
  ASSERT_EQ(plan.error().causes.size(), 1U);
  EXPECT_EQ(plan.error().causes[0].field, "devices[1]");
}

TEST(MigPlan, Answers_for_all_devices_or_names_every_bad_one) {
  const Model& a100 = *find_model("A100-40");
  const Model& l4 = *find_model("L4");
  const std::vector<DeviceWish> good = {
      {0, &a100, true, {{"7g.40gb", 1}}}, {1, &a100, false, {}}, {2, &l4, false, {}}};
  const auto plan = plan_node(good);
  ASSERT_TRUE(plan);
  EXPECT_EQ((*plan)[0].layout->memory_mask(), 0xffU);
  EXPECT_FALSE((*plan)[1].layout);
  const std::vector<DeviceWish> bad = {{0, &l4, true, {}},
                                       {1, &a100, false, {{"1g.5gb", 1}}},
                                       {2, &a100, true, {{"1g", 1}}},
                                       {3, &a100, true, {}},
                                       {3, &a100, true, {}}};
  const auto refused = plan_node(bad);
  ASSERT_FALSE(refused);
  ASSERT_EQ(refused.error().causes.size(), 4U);
  EXPECT_EQ(refused.error().message, "device 0: L4 cannot be cut by MIG; take MIG off for it");
  EXPECT_EQ(refused.error().causes[1].message,
            "device 1: 1g.5gb: MIG is off for this device; enable it or leave the profiles out");
  EXPECT_EQ(refused.error().causes[3].field, "devices[3]");
}

TEST(MigLayout, Refuses_what_breaks_a_rule_and_stays_as_it_was) {
  MigLayout layout(*find_model("A100-40"));
  const int three = *profile_index(layout.model(), "3g.20gb");
  const int one = *profile_index(layout.model(), "1g.5gb");
  ASSERT_TRUE(layout.add(three, 0));
  ASSERT_TRUE(layout.add(one, 6));
  const MigLayout before = layout;
  EXPECT_EQ(layout.add(three, 4).error().message,
            "3g.20gb: memory slices 4 to 7 of A100-40 are taken by 3g.20gb at 0, 1g.5gb at 6");
  EXPECT_EQ(layout.add(three, 2).error().code, Code::kInvalid);
  EXPECT_EQ(layout.add(99, 0).error().code, Code::kInvalid);
  EXPECT_EQ(layout.add(-1, 0).error().code, Code::kInvalid);
  EXPECT_EQ(layout.remove(one, 5).error().code, Code::kNotFound);
  EXPECT_EQ(layout, before);
  EXPECT_EQ(layout.free_starts(one), 0b0110000U);
  EXPECT_EQ(layout.free_starts(99), 0U);
  ASSERT_TRUE(layout.remove(three, 0));
  EXPECT_EQ(layout.compute_slices(), 1);
}

TEST(MigLayout, Tells_not_now_from_never) {
  const Model& model = *find_model("A100-40");
  MigLayout layout(model);
  ASSERT_TRUE(layout.add(*profile_index(model, "1g.5gb"), 0));
  const std::vector<ProfileCount> four = {{"4g.20gb", 1}};
  const auto busy = fit(layout, four);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, Code::kBusy);
  EXPECT_EQ(busy.error().message,
            "4g.20gb: does not fit on A100-40 beside 1g.5gb at 0: no start is free in any "
            "arrangement of the other "
            "instances");
  const std::vector<ProfileCount> five = {{"4g.20gb", 2}};
  EXPECT_EQ(fit(layout, five).error().code, Code::kNever);
}

TEST(MigLayout, Takes_counts_of_any_size_without_harm) {
  const Model& model = *find_model("A100-40");
  for (const int count : {-1, 9, 64, 65, 255, 256, 1 << 30}) {
    const std::vector<ProfileCount> wanted = {{"1g.5gb", count}};
    EXPECT_FALSE(fit(model, wanted)) << count;
    const std::vector<ProfileCount> twice = {{"1g.5gb", 60}, {"1g.5gb", count}};
    EXPECT_FALSE(fit(model, twice)) << count;
  }
  EXPECT_TRUE(fit(model, std::vector<ProfileCount>{{"1g.5gb", 0}})->empty());
  MigCounts unknown{};
  unknown[15] = 1;
  EXPECT_FALSE(fit_counts(MigLayout(model), unknown));
}

TEST(MigLayout, All_media_engines_leave_room_only_for_profiles_without) {
  const Model& model = *find_model("RTX-PRO-6000");
  EXPECT_TRUE(fit(model, std::vector<ProfileCount>{{"1g.24gb+me.all", 1}, {"1g.24gb-me", 3}}));
  EXPECT_TRUE(fit(model, std::vector<ProfileCount>{{"1g.24gb+me", 1}, {"1g.24gb", 3}}));
  const auto mixed = fit(model, std::vector<ProfileCount>{{"1g.24gb+me.all", 1}, {"1g.24gb", 1}});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().message,
            "1g.24gb: does not fit on RTX-PRO-6000: an instance with all media engines leaves none "
            "for others; take "
            "-me profiles beside it");
  EXPECT_EQ(fit(model, std::vector<ProfileCount>{{"1g.24gb+me", 1}, {"2g.48gb+me.all", 1}})
                .error()
                .message,
            "2g.48gb+me.all: does not fit on RTX-PRO-6000: only one instance may have the media "
            "extensions");
}

TEST(MigBestPlacement, Keeps_room_for_the_largest) {
  const Model& model = *find_model("A100-40");
  const MigLayout empty(model);
  const auto start = [&](const MigLayout& layout, const char* profile) {
    return best_placement(layout, *profile_index(model, profile))->start;
  };
  EXPECT_EQ(start(empty, "3g.20gb"), 4);  // 4g stays possible
  EXPECT_EQ(start(empty, "2g.10gb"), 4);
  EXPECT_EQ(start(empty, "1g.5gb"), 6);
  EXPECT_EQ(start(empty, "1g.10gb"), 6);
  MigLayout cut(model);
  ASSERT_TRUE(cut.add(*profile_index(model, "2g.10gb"), 0));
  EXPECT_EQ(start(cut, "1g.5gb"),
            3);  // 3g at 4 stays possible; slice 2 alone would be as good, 3 is higher
  ASSERT_TRUE(cut.add(*profile_index(model, "3g.20gb"), 4));
  const auto none = best_placement(cut, *profile_index(model, "3g.20gb"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kBusy);
}

}  // namespace
}  // namespace tessera::gpu
