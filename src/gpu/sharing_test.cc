#include "gpu/sharing.h"

#include <gtest/gtest.h>

#include "gpu/partition.h"

namespace tessera::gpu {
namespace {

using base::Code;
using base::Mib;
using base::Milli;

TEST(GpuFraction, Is_exact_to_a_thousandth) {
  struct Row {
    const char* text;
    int64_t milli;
  };
  for (const Row& row : {Row{"0.5", 500},
                         {"0.25", 250},
                         {"0.001", 1},
                         {"0.999", 999},
                         {".5", 500},
                         {"0.1000", 100},
                         {"00.3", 300},
                         {"0.07", 70}}) {
    const auto share = parse_gpu_fraction(row.text);
    ASSERT_TRUE(share) << row.text;
    EXPECT_EQ(share->value, row.milli) << row.text;
  }
  for (int64_t milli = 1; milli < 1000; ++milli) {
    EXPECT_EQ(parse_gpu_fraction(fraction_text(Milli(milli)))->value, milli);
  }
  EXPECT_EQ(fraction_text(kWholeGpu), "1");
  EXPECT_EQ(fraction_text(Milli(-1500)), "-1.5");
}

TEST(GpuFraction, Refuses_out_of_range_too_fine_and_no_number) {
  for (const std::string& text :
       {std::string("0"),      std::string("0.0"),     std::string("0."),
        std::string("1"),      std::string("1.0"),     std::string("1.2"),
        std::string("-0.5"),   std::string("+0.5"),    std::string("0.0005"),
        std::string("0.3333"), std::string("5e-1"),    std::string("NaN"),
        std::string("inf"),    std::string("500m"),    std::string("0,5"),
        std::string(" 0.5"),   std::string("0.5.1"),   std::string("."),
        std::string(),         std::string(1000, '9'), "0." + std::string(99, '0')}) {
    const auto share = parse_gpu_fraction(text);
    ASSERT_FALSE(share) << text;
    EXPECT_EQ(share.error().code, Code::kInvalid);
    EXPECT_LT(share.error().message.size(), 160U);
  }
  EXPECT_EQ(parse_gpu_fraction("0.0005").error().message,
            "GPU fraction \"0.0005\" is finer than a thousandth; round it to 3 decimals");
}

TEST(GpuMemory, Is_a_whole_number_of_mib) {
  EXPECT_EQ(parse_gpu_memory("4096")->value, 4096);
  for (const char* text :
       {"", "0", "-1", "4Gi", "4096.0", " 1", "1 ", "99999999999999999999", "0x10"}) {
    EXPECT_FALSE(parse_gpu_memory(text)) << text;
  }
}

TEST(GpuMemory, Share_rounds_up_and_always_covers_what_was_asked) {
  for (const Model& model : models()) {
    const int64_t usable = model.usable_memory().value;
    for (const int64_t memory :
         {int64_t{1}, int64_t{1000}, usable / 7, usable / 2, usable - 1, usable}) {
      const auto share = share_of_memory(Mib(memory), model);
      ASSERT_TRUE(share) << model.name;
      EXPECT_GE(share->value * usable, memory * 1000) << model.name << " " << memory;
      EXPECT_LT((share->value - 1) * usable, memory * 1000) << model.name << " " << memory;
    }
    EXPECT_EQ(share_of_memory(Mib(usable), model)->value, 1000);
    const auto more = share_of_memory(Mib(usable + 1), model);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, Code::kNever);
    EXPECT_EQ(memory_of_share(kWholeGpu, model), model.usable_memory());
    EXPECT_EQ(memory_of_share(Milli(5000), model), model.usable_memory());
    EXPECT_EQ(memory_of_share(Milli(-5), model).value, 0);
  }
  EXPECT_EQ(share_of_memory(Mib(4096), *find_model("T4"))->value, 267);
  EXPECT_EQ(share_of_memory(Mib(0), *find_model("T4")).error().code, Code::kInvalid);
}

TEST(AmdPartition, Modes_of_mi300x_divide_it_evenly) {
  const Model& model = *find_model("MI300X");
  for (const ComputePartition& one : model.partitions) {
    EXPECT_EQ(one.partitions * one.compute_units, model.compute_units) << one.name;
    EXPECT_EQ(one.memory_modes_qualified & ~one.memory_modes, 0) << one.name;
  }
  const auto cpx = mode_of_resource(model, "amd.com/cpx_nps4");
  ASSERT_TRUE(cpx);
  EXPECT_EQ(cpx->compute->partitions, 8);
  EXPECT_FALSE(cpx->isolates_memory());  // two partitions share a domain
  EXPECT_EQ(cpx->memory_share(model).value, 24574);
  EXPECT_EQ(partition_resource(*cpx), "amd.com/cpx_nps4");
  EXPECT_TRUE(partition_mode(model, "qpx", "nps4")->isolates_memory());
}

TEST(AmdPartition, Refuses_modes_that_the_gpu_does_not_have) {
  const Model& model = *find_model("MI300X");
  for (const char* text :
       {"amd.com/spx_nps4", "amd.com/cpx_nps2", "amd.com/tpx_nps1", "amd.com/cpx_nps",
        "amd.com/cpx_nps9", "amd.com/_", "amd.com/gpu", "cpx_nps1", ""}) {
    EXPECT_FALSE(mode_of_resource(model, text)) << text;
  }
  EXPECT_EQ(partition_mode(model, "SPX", "NPS4").error().message,
            "MI300X has no mode SPX/NPS4; it has SPX/NPS1, DPX/NPS1, DPX/NPS2, QPX/NPS1, QPX/NPS4, "
            "CPX/NPS1, CPX/NPS4");
  EXPECT_FALSE(partition_mode(*find_model("H100-80"), "SPX", "NPS1"));
}

}  // namespace
}  // namespace tessera::gpu
