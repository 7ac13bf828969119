#include "gpu/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gpu/mig_name.h"
#include "gpu/power.h"

namespace tessera::gpu {
namespace {

TEST(Catalog, Has_every_product_that_the_stack_knows) {
  for (const char* name :
       {"A30",   "A100-40", "A100-80", "H100-80", "H100-94",      "H100-96", "H200",
        "GH200", "B200",    "B300",    "GB200",   "L40S",         "L4",      "T4",
        "A10",   "V100-16", "V100-32", "P100",    "RTX-PRO-6000", "MI300X"}) {
    ASSERT_NE(find_model(name), nullptr) << name;
    EXPECT_EQ(find_model(name)->name, name);
  }
}

TEST(Catalog, Finds_by_label_alias_and_pci_id) {
  struct Row {
    const char* text;
    const char* model;
    const char* board;
  };
  for (const Row& row : {Row{"NVIDIA-H100-80GB-HBM3", "H100-80", "SXM5"},
                         {"NVIDIA-H100-80GB-HBM3-SHARED", "H100-80", "SXM5"},
                         {"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100-40", "SXM4"},
                         {"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "A100-40", "SXM4"},
                         {"A100-SXM4-80GB", "A100-80", "SXM4"},
                         {"NVIDIA H100 PCIe", "H100-80", "PCIe"},
                         {"Tesla V100-SXM2-32GB", "V100-32", "SXM2"},
                         {"V100M32", "V100-32", "SXM2"},
                         {"V100M16", "V100-16", "SXM2"},
                         {"tesla-t4", "T4", "PCIe"},
                         {"AMD_Instinct_MI300X_OAM", "MI300X", "OAM"},
                         {"10DE:2331", "H100-80", "PCIe"},
                         {"1002:74a1", "MI300X", "OAM"}}) {
    const Match match = find(row.text);
    ASSERT_TRUE(match) << row.text;
    EXPECT_EQ(match.model->name, row.model) << row.text;
    EXPECT_EQ(match.board->name, row.board) << row.text;
  }
  EXPECT_EQ(find_pci(0x10de, 0x20b0).model, find_model("A100-40"));
}

TEST(Catalog, Does_not_know_what_is_no_product) {
  for (const std::string& text : {std::string(), std::string("G2"), std::string("G3"),
                                  std::string("A100"), std::string("nvidia-"), std::string("-MIG-"),
                                  std::string(5000, 'a'), std::string("10de:ffff")}) {
    EXPECT_FALSE(find(text)) << text;
  }
  const auto answer = model_named("A100");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, base::Code::kNotFound);
  EXPECT_EQ(answer.error().message, "no GPU model is called \"A100\"; use one of A100-40, A100-80");
}

TEST(Catalog, Every_model_is_whole) {
  int index = 0;
  for (const Model& model : models()) {
    EXPECT_EQ(model.index, index++);
    EXPECT_FALSE(model.source.empty()) << model.name;
    EXPECT_GT(model.usable_memory().value, 0) << model.name;
    EXPECT_GT(model.compute_units, 0) << model.name;
    ASSERT_FALSE(model.boards.empty()) << model.name;
    for (const Board& board : model.boards) {
      ASSERT_NE(board.server, nullptr) << model.name;
      EXPECT_FALSE(board.source.empty()) << model.name;
      EXPECT_GE(board.power.max_w, board.power.default_w) << model.name;
      EXPECT_LE(board.power.min_w, board.power.default_w) << model.name;
      for (const uint16_t device : board.pci_devices) {
        EXPECT_EQ(find_pci(model.vendor == Vendor::kNvidia ? 0x10de : 0x1002, device).board,
                  &board);
      }
      for (const std::string_view label : board.labels)
        EXPECT_EQ(find(label).board, &board) << label;
    }
  }
}

TEST(Catalog, Every_mig_placement_lies_in_its_grid) {
  for (const Model& model : models()) {
    if (model.mig == nullptr) continue;
    const MigTable& table = *model.mig;
    ASSERT_LE(table.slots.size(), 64U);
    std::set<std::string_view> names;
    for (size_t p = 0; p < table.profiles.size(); ++p) {
      const MigProfile& profile = table.profiles[p];
      EXPECT_TRUE(names.insert(profile.name).second) << profile.name;
      const auto name = parse_profile_name(profile.name);
      ASSERT_TRUE(name) << profile.name;
      EXPECT_EQ(to_text(*name), profile.name);
      EXPECT_EQ(name->slices, profile.compute_slices);
      EXPECT_EQ(name->graphics, profile.graphics);
      EXPECT_EQ(name->no_media, profile.media == Media::kNone);
      uint16_t starts = 0;
      for (const MigSlot& slot : table.slots) {
        if (slot.profile != p) continue;
        starts = static_cast<uint16_t>(starts | 1 << slot.start);
        EXPECT_EQ(slot.size, profile.memory_slices);
        EXPECT_LE(slot.start + slot.size, table.memory_slices);
        EXPECT_EQ(slot.memory_mask, ((1U << slot.size) - 1) << slot.start);
      }
      EXPECT_EQ(starts, profile.starts) << model.name << " " << profile.name;
    }
  }
}

TEST(Catalog, Profile_names_follow_from_their_memory) {
  int measured = 0;
  for (const Model& model : models()) {
    if (model.mig == nullptr) continue;
    for (const MigProfile& profile : model.mig->profiles) {
      // Where the exact memory is not known, the share of the memory slices must give the name as
      // well.
      const base::Mib share(model.memory.value * profile.memory_slices / model.mig->memory_slices);
      const base::Mib memory = profile.memory.value > 0 ? profile.memory : share;
      measured += profile.memory.value > 0;
      EXPECT_EQ(profile_memory_gb(memory, model.memory),
                parse_profile_name(profile.name)->memory_gb)
          << model.name << " " << profile.name;
      EXPECT_LE(memory, model.memory);
    }
  }
  EXPECT_GT(measured, 60);
}

TEST(Catalog, Servers_describe_as_many_gpus_as_they_hold) {
  std::set<std::string_view> names;
  for (const Server& server : servers()) {
    EXPECT_TRUE(names.insert(server.name).second);
    const auto gpus = static_cast<size_t>(server.gpus);
    EXPECT_EQ(server.gpu_numa.size(), gpus) << server.name;
    EXPECT_EQ(server.gpu_switch.size(), gpus) << server.name;
    EXPECT_EQ(server.links.size(), gpus * gpus) << server.name;
    EXPECT_EQ(find_server(server.name), &server);
    EXPECT_GE(server.domain_gpus, server.gpus);
  }
  EXPECT_EQ(find_server("nvl72-tray")->domain_gpus, 72);
  EXPECT_EQ(find_server("abacus"), nullptr);
}

TEST(Catalog, Usual_servers_use_at_most_the_links_of_the_gpu) {
  for (const Model& model : models()) {
    for (const Board& board : model.boards) {
      const Server& server = *board.server;
      if (server.fabric == Fabric::kNone) continue;
      for (int a = 0; a < server.gpus; ++a) {
        int sum = 0;
        int most = 0;
        for (int b = 0; b < server.gpus; ++b) {
          const int links = server.links[static_cast<size_t>(a * server.gpus + b)];
          sum += links;
          most = std::max(most, links);
        }
        const bool switched = server.fabric == Fabric::kSwitch || server.fabric == Fabric::kRack;
        EXPECT_LE(switched ? most : sum, model.link.links_max)
            << model.name << " in " << server.name;
      }
    }
  }
}

TEST(Power, Limits_are_those_of_the_board) {
  const Model& h100 = *find_model("H100-80");
  EXPECT_EQ(power_limits(h100)->default_w, 700);
  EXPECT_EQ(power_limits(h100)->min_w, 200);
  EXPECT_EQ(power_limits(h100, "PCIe")->default_w, 350);
  EXPECT_EQ(power_limits(h100, "NVIDIA-H100-PCIe")->max_w, 350);
  const auto none = power_limits(h100, "NVIDIA-L4");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "H100-80 has no board \"NVIDIA-L4\"; use one of SXM5, PCIe");
}

}  // namespace
}  // namespace tessera::gpu
