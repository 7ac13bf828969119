#include "gpu/links.h"

#include <gtest/gtest.h>

namespace tessera::gpu {
namespace {

LinkMatrix usual(const char* model) {
  return {*find_model(model), find_model(model)->server()};
}

LinkMatrix in(const char* model, const char* server) {
  return {*find_model(model), *find_server(server)};
}

TEST(Links, Pair_rates_are_those_of_a_collective) {
  struct Row {
    LinkMatrix matrix;
    const char* cell;
    int32_t mb_s;
  };
  const Row rows[] = {
      {usual("A100-40"), "NV12", 240'000},
      {usual("H100-80"), "NV18", 370'800},
      {usual("B200"), "NV18", 721'800},
      {in("H100-80", "hgx-h100-4"), "NV6", 123'600},
      {in("A30", "a30-bridge-4"), "NV4", 80'000},
      {usual("H100-94"), "NV12", 247'200},
      {usual("V100-32"), "NV1", 20'000},
      {usual("MI300X"), "XGMI", 48'000},
      {usual("L40S"), "PIX", 24'000},
      {usual("RTX-PRO-6000"), "PIX", 48'000},
      {usual("P100"), "SYS", 6'000},
      {in("A100-40", "hgx-a100-4"), "NV4", 80'000},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.matrix.cell(0, 1), row.cell);
    EXPECT_EQ(row.matrix.at(0, 1).mb_s, row.mb_s) << row.cell;
  }
}

TEST(Links, Every_usual_server_gives_a_symmetric_matrix_with_a_rate_for_each_pair) {
  for (const Model& model : models()) {
    for (const Board& board : model.boards) {
      const LinkMatrix matrix(model, *board.server);
      for (int a = 0; a < matrix.gpus(); ++a) {
        EXPECT_EQ(matrix.at(a, a).path, Path::kSelf);
        EXPECT_GT(matrix.nic_mb_s(a), 0) << model.name;
        for (int b = 0; b < matrix.gpus(); ++b) {
          EXPECT_EQ(matrix.at(a, b).mb_s, matrix.at(b, a).mb_s);
          if (a != b) {
            EXPECT_GT(matrix.at(a, b).mb_s, 0) << model.name << " " << a << " " << b;
          }
        }
      }
    }
  }
}

TEST(Links, A_better_path_is_never_slower) {
  for (const Server& server : servers()) {
    const Model& model = *find_model("L40S");  // no links: every pair goes through the host
    const LinkMatrix matrix(model, server);
    for (int a = 0; a < matrix.gpus(); ++a) {
      for (int b = 0; b < matrix.gpus(); ++b) {
        for (int c = 0; c < matrix.gpus(); ++c) {
          if (a == b || a == c || matrix.at(a, b).path >= matrix.at(a, c).path) continue;
          EXPECT_GE(matrix.at(a, b).mb_s, matrix.at(a, c).mb_s) << server.name;
        }
      }
    }
  }
}

TEST(Links, Bridged_pairs_beat_any_other_pair) {
  const LinkMatrix matrix = in("A30", "a30-bridge-4");
  EXPECT_EQ(matrix.cell(0, 1), "NV4");
  EXPECT_EQ(matrix.cell(0, 2), "SYS");
  EXPECT_GT(matrix.score(0b0011), matrix.score(0b0101));
  EXPECT_EQ(matrix.score(0b1111).bottleneck_mb_s, 9'600);  // through both sockets: 0.6 x 16 GB/s
}

TEST(Links, A_set_is_as_fast_as_its_slowest_pair_and_the_sum_breaks_ties) {
  const LinkMatrix cube = usual("V100-32");
  EXPECT_EQ(cube.cell(0, 3), "NV2");
  EXPECT_EQ(cube.cell(0, 5), "SYS");
  EXPECT_EQ(cube.score(0b1001).bottleneck_mb_s, 40'000);
  // GPUs 0 to 3 are joined pairwise: three pairs by one link, three by two.
  const SetScore quad = cube.score(0b1111);
  EXPECT_EQ(quad.bottleneck_mb_s, 20'000);
  EXPECT_EQ(quad.sum_mb_s, 20'000 * (1 + 1 + 2 + 2 + 1 + 2));
  EXPECT_LT(cube.score(0b11111).bottleneck_mb_s, 20'000);
  EXPECT_EQ(cube.score(0b1).bottleneck_mb_s, SetScore::kNoPair);
  EXPECT_EQ(cube.score(0).sum_mb_s, 0);
  EXPECT_EQ(usual("H100-80").score(0b11).bottleneck_mb_s,
            usual("H100-80").score(0xff).bottleneck_mb_s);
}

TEST(Links, Nics_count_what_reaches_the_gpu) {
  EXPECT_EQ(nic_rate_mb_s(400), 48'500);
  EXPECT_EQ(nic_rate_mb_s(200), 24'250);
  EXPECT_EQ(usual("H100-80").nic_mb_s(3), 48'000);  // a 400G NIC in a PCIe 5 slot
  const Server& a30 = *find_server("a30-bridge-4");
  EXPECT_EQ(nic_path(a30, 0, a30.nics[0]), Path::kNode);
  EXPECT_EQ(nic_path(a30, 3, a30.nics[0]), Path::kSys);
  EXPECT_EQ(usual("GB200").nic_mb_s(0), 48'000 * 35 / 100);
}

TEST(Links, A_matrix_can_be_filled_from_a_live_node) {
  LinkMatrix matrix(3);
  EXPECT_EQ(matrix.cell(0, 1), "SYS");
  EXPECT_EQ(matrix.score(0b111).bottleneck_mb_s, 0);
  matrix.set(0, 1, {Path::kLink, Interconnect::kNvlink, 12, 240'000});
  matrix.set(1, 2, {Path::kPhb, Interconnect::kNone, 0, 19'200});
  EXPECT_EQ(matrix.cell(1, 0), "NV12");
  EXPECT_EQ(matrix.cell(2, 1), "PHB");
  EXPECT_EQ(matrix.cell(2, 2), "X");
  EXPECT_EQ(LinkMatrix(64).score(~uint64_t{0}).bottleneck_mb_s, 0);
}

}  // namespace
}  // namespace tessera::gpu
