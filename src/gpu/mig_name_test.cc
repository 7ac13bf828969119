#include "gpu/mig_name.h"

#include <gtest/gtest.h>

namespace tessera::gpu {
namespace {

TEST(MigName, Reads_back_what_it_writes) {
  for (const char* text : {"1g.5gb", "1g.10gb+me", "1g.24gb-me", "1g.24gb+me.all", "2g.48gb+gfx",
                           "1c.3g.20gb", "7g.141gb", "1g.0gb", "1g.24gb+me,gfx", "2c.4g.40gb+me"}) {
    const auto name = parse_profile_name(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(to_text(*name), text);
  }
  EXPECT_EQ(to_text(*parse_profile_name("3c.3g.20gb")), "3g.20gb");
  EXPECT_EQ(to_text(*parse_profile_name("1g.24gb+gfx,me")), "1g.24gb+me,gfx");
}

TEST(MigName, Refuses_what_is_no_profile) {
  for (const std::string& text : {std::string(),
                                  std::string("g.5gb"),
                                  std::string("0g.5gb"),
                                  std::string("9g.5gb"),
                                  std::string("1g.gb"),
                                  std::string("01g.5gb"),
                                  std::string("1g.05gb"),
                                  std::string("1g.5GB"),
                                  std::string("1g.5gb "),
                                  std::string("1g.5gb+"),
                                  std::string("1g.5gb+you"),
                                  std::string("1g.5gb+me,me"),
                                  std::string("1g.5gb+me,"),
                                  std::string("1g.5gb+me,me.all"),
                                  std::string("1g.5gb-gfx"),
                                  std::string("1g.5gb-me+gfx"),
                                  std::string("1g.5gb.me"),
                                  std::string("4c.3g.20gb"),
                                  std::string("1c1g.5gb"),
                                  std::string("-1g.5gb"),
                                  std::string("1g.99999999999999999999gb"),
                                  std::string(100000, '1'),
                                  std::string("1g.5gb\0", 7)}) {
    const auto name = parse_profile_name(text);
    ASSERT_FALSE(name) << text;
    EXPECT_EQ(name.error().code, base::Code::kInvalid);
    EXPECT_LT(name.error().message.size(), 200U);
  }
}

TEST(MigName, Resource_names_are_safe_for_kubernetes_and_come_back) {
  struct Row {
    const char* profile;
    const char* resource;
  };
  for (const Row& row : {Row{"1g.10gb", "nvidia.com/mig-1g.10gb"},
                         {"1g.10gb+me", "nvidia.com/mig-1g.10gb.me"},
                         {"1g.24gb-me", "nvidia.com/mig-1g.24gb-me"},
                         {"1g.24gb+me.all", "nvidia.com/mig-1g.24gb.me.all"},
                         {"2g.48gb+gfx", "nvidia.com/mig-2g.48gb.gfx"},
                         {"1g.24gb+me.all,gfx", "nvidia.com/mig-1g.24gb.me.all.gfx"}}) {
    EXPECT_EQ(resource_name(*parse_profile_name(row.profile)), row.resource);
    const auto back = profile_of_resource(row.resource);
    ASSERT_TRUE(back) << row.resource;
    EXPECT_EQ(to_text(*back), row.profile);
  }
  for (const char* text :
       {"nvidia.com/gpu", "mig-1g.10gb", "nvidia.com/mig-", "nvidia.com/mig-1g.10gb+me",
        "nvidia.com/mig-1g.10gb.", "nvidia.com/mig-1g.10gb.all", "nvidia.com/mig-1g.10gb.me.me"}) {
    EXPECT_FALSE(profile_of_resource(text)) << text;
  }
}

}  // namespace
}  // namespace tessera::gpu
