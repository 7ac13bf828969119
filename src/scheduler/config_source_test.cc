#include "scheduler/config_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "scheduler/fake_api_testing.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using base::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string text(std::string_view fields) {
  return "apiVersion: tessera.dev/v1alpha1\nkind: SchedulerConfig\n" + std::string(fields);
}

class ConfigSourceTest : public ::testing::Test {
 protected:
  ConfigSource::Handlers handlers() {
    return {.on_config =
                [this](const SchedulerConfig& config) {
                  told.emplace_back(core::name_of(config.policy));
                  last = config;
                },
            .on_refused =
                [this](const base::Error& error) {
                  told.emplace_back("refused");
                  refused = error;
                }};
  }
  std::vector<std::string> take() { return std::exchange(told, {}); }

  base::ManualLoop loop;
  std::vector<std::string> told;  // a policy for each good version
  SchedulerConfig last;
  base::Error refused;
};

class FileConfig : public ConfigSourceTest {
 protected:
  void write(std::string_view content) { ASSERT_TRUE(base::write_file(path, content)); }
  base::Status start() {
    source = ConfigSource::from_file(loop, path, handlers());
    return source->start();
  }
  // Long enough for a text to be found twice.
  void look() { loop.advance(seconds(4)); }

  base::TempDir dir;
  std::string path = dir.path() + "/config.yaml";
  std::unique_ptr<ConfigSource> source;
};

TEST_F(FileConfig, Is_told_at_the_start_and_after_each_change) {
  write(text("policy: bestfit\n"));
  ASSERT_TRUE(start());
  EXPECT_THAT(take(), ElementsAre("bestfit"));
  loop.advance(seconds(60));
  EXPECT_THAT(take(), IsEmpty());
  write(text("policy: random\npatience: 1h\n"));
  look();
  EXPECT_THAT(take(), ElementsAre("random"));
  EXPECT_EQ(last.patience, seconds(3600));
  write(text("# the same, with a comment\npolicy: random\npatience: 1h\n"));
  look();
  EXPECT_THAT(take(), ElementsAre("random"));
}

TEST_F(FileConfig, A_first_version_that_is_bad_is_an_error_of_start) {
  const base::Status missing = start();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  write(text("policy: best\n"));
  const base::Status bad = start();
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kInvalid);
  EXPECT_THAT(bad.error().message, HasSubstr(path + ": line 3: policy: must be one of"));
  write("[");
  EXPECT_EQ(start().error().code, Code::kBadRequest);
  write(std::string(kConfigBytesMax + 1, '#'));
  EXPECT_EQ(start().error().code, Code::kTooLarge);
  path = dir.path();
  EXPECT_EQ(start().error().code, Code::kInternal);
  loop.advance(seconds(60));
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(FileConfig, A_bad_version_is_refused_once_and_the_last_good_one_stays) {
  write(text("policy: bestfit\n"));
  ASSERT_TRUE(start());
  write(text("policy: best\n"));
  look();
  EXPECT_THAT(take(), ElementsAre("bestfit", "refused"));
  loop.advance(seconds(60));
  EXPECT_THAT(take(), IsEmpty());
  write(text("policy: besst\n"));
  look();
  EXPECT_THAT(take(), ElementsAre("refused"));
  EXPECT_THAT(refused.message, HasSubstr("not \"besst\""));
  write(text("policy: bestfit\n"));
  look();
  EXPECT_THAT(take(), ElementsAre("bestfit")) << "all is well again";
}

TEST_F(FileConfig, A_file_that_goes_is_refused_and_may_come_back) {
  write(text("policy: bestfit\n"));
  ASSERT_TRUE(start());
  std::filesystem::remove(path);
  loop.advance(seconds(2));
  EXPECT_THAT(take(), ElementsAre("bestfit")) << "it may be on its way";
  loop.advance(seconds(20));
  EXPECT_THAT(take(), ElementsAre("refused"));
  EXPECT_EQ(refused.code, Code::kNotFound);
  write(text("policy: bestfit\n"));
  look();
  EXPECT_THAT(take(), ElementsAre("bestfit"));
}

TEST_F(FileConfig, A_file_that_is_being_written_is_not_read_in_the_middle) {
  write(text("policy: bestfit\n"));
  ASSERT_TRUE(start());
  take();
  const std::string whole = text("policy: random\nbindsInFlightMax: 77\n");
  for (size_t size = 0; size < whole.size(); size += 20) {
    write(std::string_view(whole).substr(0, size));
    loop.advance(seconds(2));
  }
  write(whole);
  look();
  EXPECT_THAT(take(), ElementsAre("random"));
  EXPECT_EQ(last.binds_in_flight_max, 77);
}

TEST_F(FileConfig, Is_swapped_by_symbolic_link_as_a_mount_does) {
  namespace fs = std::filesystem;
  const fs::path root(dir.path());
  for (const char* version : {"1", "2"}) {
    fs::create_directory(root / version);
    ASSERT_TRUE(base::write_file(root / version / "config.yaml",
                                 text(*version == '1' ? "policy: fgd\n" : "policy: random\n")));
  }
  fs::create_directory_symlink("1", root / "..data");
  fs::create_symlink("..data/config.yaml", path);
  ASSERT_TRUE(start());
  fs::create_directory_symlink("2", root / "..data_tmp");
  fs::rename(root / "..data_tmp", root / "..data");
  fs::remove_all(root / "1");
  look();
  EXPECT_THAT(take(), ElementsAre("fgd", "random"));
}

TEST_F(FileConfig, A_change_that_needs_a_restart_is_refused_as_a_whole) {
  write(text("policy: bestfit\n"));
  ASSERT_TRUE(start());
  write(text("policy: random\nshard: {key: a, value: b}\n"));
  look();
  EXPECT_THAT(take(), ElementsAre("bestfit", "refused"));
  EXPECT_EQ(refused.message,
            path +
                ": shard cannot change while the scheduler runs; restart it, or take the change "
                "back");
  write(text("policy: random\n"));
  look();
  EXPECT_THAT(take(), ElementsAre("random"));
}

TEST_F(FileConfig, After_its_end_nothing_is_told) {
  write(text(""));
  ASSERT_TRUE(start());
  take();
  write(text("policy: random\n"));
  loop.advance(seconds(2));
  source.reset();
  loop.advance(seconds(60));
  EXPECT_THAT(take(), IsEmpty());
}

class MapConfig : public ConfigSourceTest {
 protected:
  void put(std::string_view content, std::string_view key = "config.yaml") {
    json::Value map = json::Value::object({{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
    map.set("metadata", json::Value::object({{"namespace", "ns"}, {"name", "c"}, {"uid", "u"}}));
    map.ref("data").set(key, content);
    api.put("configmaps", kube::Object(map));
    loop.advance(seconds(1));
  }
  void start() {
    source = ConfigSource::from_config_map(api, loop, base::Random(1), "ns", "c", handlers());
    ASSERT_TRUE(source->start());
    loop.advance(seconds(1));
  }

  testing::FakeApi api{loop};
  std::unique_ptr<ConfigSource> source;
};

TEST_F(MapConfig, Is_told_at_the_start_and_after_each_change) {
  put(text("policy: bestfit\n"));
  start();
  EXPECT_THAT(take(), ElementsAre("bestfit"));
  put(text("policy: bestfit\n"));
  EXPECT_THAT(take(), IsEmpty()) << "another version with the same text";
  put(text("policy: random\n"));
  EXPECT_THAT(take(), ElementsAre("random"));
}

TEST_F(MapConfig, Is_waited_for) {
  start();
  EXPECT_THAT(take(), ElementsAre("refused"));
  EXPECT_EQ(refused.message, "configmap ns/c does not exist; make it with the key config.yaml");
  put(text(""), "other.yaml");
  EXPECT_THAT(take(), ElementsAre("refused"));
  EXPECT_EQ(refused.message, "configmap ns/c has no key config.yaml in data; add it");
  put(text("policy: best\n"));
  EXPECT_THAT(take(), ElementsAre("refused"));
  EXPECT_THAT(refused.message, HasSubstr("configmap ns/c: line 3: policy: must be one of"));
  put(text("policy: random\n"));
  EXPECT_THAT(take(), ElementsAre("random"));
}

TEST_F(MapConfig, Deleted_it_stays_in_force) {
  put(text("policy: random\n"));
  start();
  api.erase("configmaps", "ns/c");
  loop.advance(seconds(1));
  EXPECT_THAT(take(), ElementsAre("random", "refused"));
  EXPECT_EQ(refused.message, "configmap ns/c has been deleted; make it again");
  put(text("policy: random\nschedulerNames: [other]\n"));
  EXPECT_THAT(take(), ElementsAre("refused"));
  EXPECT_THAT(refused.message, HasSubstr("schedulerNames cannot change"));
  put(text("policy: random\n"));
  EXPECT_THAT(take(), ElementsAre("random"));
}

TEST_F(MapConfig, An_API_that_fails_is_asked_again) {
  api.refuse = [](const kube::Request&) { return Code::kForbidden; };
  put(text("policy: random\n"));
  start();
  EXPECT_THAT(take(), IsEmpty());
  api.refuse = nullptr;
  loop.advance(seconds(60));
  EXPECT_THAT(take(), ElementsAre("random"));
}

TEST_F(MapConfig, After_its_end_nothing_is_told) {
  put(text(""));
  start();
  take();
  source.reset();
  put(text("policy: random\n"));
  loop.advance(seconds(60));
  EXPECT_THAT(take(), IsEmpty());
}

}  // namespace
}  // namespace tessera::scheduler
