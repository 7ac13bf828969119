#include "apiserver/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "apiserver/api_fixture.h"
#include "apiserver/sqlite_log.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

// Fails on command, as a full disk does.
class BrokenLog : public RowLog {
 public:
  explicit BrokenLog(std::shared_ptr<bool> broken) : broken_(std::move(broken)) {}
  base::Status write(const std::vector<StoredRow>&, uint64_t) override {
    if (*broken_) return base::error(Code::kUnavailable, "disk full");
    return {};
  }

 private:
  std::shared_ptr<bool> broken_;
};

const Kind& maps() {
  return *Kinds::builtin().find({"", "v1", "configmaps"});
}

struct Rig {
  base::ManualLoop loop;
  std::shared_ptr<bool> broken = std::make_shared<bool>(false);
  std::shared_ptr<Store> store = std::make_shared<Store>(loop, std::make_unique<BrokenLog>(broken),
                                                         Store::History{.events_max = 100});
  std::vector<std::string> log;

  Rig() {
    EXPECT_TRUE(store->restore(Kinds::builtin(), {}, 1));
    store->observe([this](const Store::Change& change) {
      log.push_back("seen " + std::to_string(change.revision));
    });
  }
  Store::Outcome put(const std::string& name, uint64_t expected, const char* value) {
    Store::Write write{&maps(), "default/" + name, expected, {}, {}};
    if (value != nullptr) write.object = TestApi::config_map(name, value);
    write.done = [this, name](const base::Result<Value>& result) {
      log.push_back((result ? "done " : "failed ") + name);
    };
    return store->commit(write);
  }
};

TEST(Store, Shows_and_acknowledges_only_what_is_durable) {
  Rig rig;
  EXPECT_EQ(rig.put("a", 0, "1"), Store::Outcome::kAccepted);
  EXPECT_FALSE(rig.store->durable(&maps(), "default/a"));
  EXPECT_TRUE(rig.store->latest(&maps(), "default/a"));
  EXPECT_EQ(rig.store->list(&maps(), {})->items.size(), 0U);
  EXPECT_TRUE(rig.log.empty());
  rig.loop.run_ready();
  EXPECT_TRUE(rig.store->durable(&maps(), "default/a"));
  EXPECT_EQ(rig.log, (std::vector<std::string>{"done a", "seen 2"}));
  // A change and a delete on their way hide nothing.
  EXPECT_EQ(rig.put("a", 2, "2"), Store::Outcome::kAccepted);
  EXPECT_EQ(rig.put("a", 3, nullptr), Store::Outcome::kAccepted);
  const auto durable = rig.store->durable(&maps(), "default/a");
  EXPECT_EQ(durable.revision, 2U);
  EXPECT_EQ(durable.object["data"]["key"].as_string(), "1");
  EXPECT_EQ(rig.store->list(&maps(), {})->items.size(), 1U);
}

TEST(Store, Refuses_a_write_on_another_revision) {
  Rig rig;
  EXPECT_EQ(rig.put("a", 0, "1"), Store::Outcome::kAccepted);
  EXPECT_EQ(rig.put("a", 0, "1"), Store::Outcome::kConflict);
  EXPECT_EQ(rig.put("a", 7, "1"), Store::Outcome::kConflict);
  EXPECT_EQ(rig.put("b", 2, "1"), Store::Outcome::kConflict);
}

TEST(Store, Takes_back_what_the_disk_refuses) {
  Rig rig;
  rig.put("a", 0, "1");
  rig.put("b", 0, "1");
  rig.loop.run_ready();
  rig.log.clear();
  *rig.broken = true;
  rig.put("a", 2, "2");
  rig.put("b", 3, nullptr);
  rig.put("b", 0, "again");
  rig.put("c", 0, "1");
  rig.loop.run_ready();
  EXPECT_EQ(rig.log, (std::vector<std::string>{"failed a", "failed b", "failed b", "failed c"}));
  EXPECT_EQ(rig.store->revision(), 3U);
  *rig.broken = false;
  EXPECT_EQ(rig.store->latest(&maps(), "default/a").object["data"]["key"].as_string(), "1");
  EXPECT_EQ(rig.store->latest(&maps(), "default/b").revision, 3U);
  EXPECT_FALSE(rig.store->latest(&maps(), "default/c"));
  EXPECT_EQ(rig.put("a", 2, "3"), Store::Outcome::kAccepted);
  rig.loop.run_ready();
  EXPECT_GT(rig.store->revision(), 7U);  // a number once given is not given again
}

TEST(Store, Closing_writes_what_is_pending) {
  Rig rig;
  rig.put("a", 0, "1");
  rig.store->close();
  EXPECT_EQ(rig.store->revision(), 2U);
  EXPECT_EQ(rig.put("b", 0, "1"), Store::Outcome::kClosed);
  rig.loop.run_ready();
  EXPECT_EQ(rig.log, (std::vector<std::string>{"done a", "seen 2"}));
}

// The folder as a crash at this moment would leave it.
std::string crash_copy(const std::string& from, const base::TempDir& to) {
  std::filesystem::copy(
      from, to.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  return to.path();
}

TEST(Durability, Every_acknowledged_write_is_there_after_a_crash) {
  const base::TempDir dir;
  TestApi api({.data_dir = dir.path()});
  for (int i = 0; i < 16; ++i) {
    const std::string name = "m" + std::to_string(i % 5);
    if (i >= 5 && i % 3 == 0) {
      const auto gone = api.remove("configmaps", "default", name);
      ASSERT_TRUE(gone || gone.error().code == Code::kNotFound);
    } else if (api.get("configmaps", "default", name)) {
      ASSERT_TRUE(api.update("configmaps", TestApi::config_map(name, std::to_string(i))));
    } else {
      ASSERT_TRUE(api.create("configmaps", TestApi::config_map(name, std::to_string(i))));
    }
    // Accepted, never acknowledged: may be lost.
    api->call(system_caller("test"),
              TestApi::request(kube::Verb::kCreate, "configmaps", "default", {},
                               TestApi::config_map("lost", "")),
              [](const ApiReply&) {});
    const base::TempDir copy;
    TestApi again({.data_dir = crash_copy(dir.path(), copy)});
    EXPECT_GE(again->revision(), api->revision());
    auto before = *api.list("configmaps", "default");
    auto after = *again.list("configmaps", "default");
    EXPECT_EQ(after["items"].dump(), before["items"].dump());
    api.loop().run_ready();
    ASSERT_TRUE(api.remove("configmaps", "default", "lost"));
  }
}

TEST(Durability, The_revision_and_all_objects_outlive_a_clean_stop) {
  const base::TempDir dir;
  uint64_t revision = 0;
  std::string pods;
  {
    TestApi api({.data_dir = dir.path()});
    ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
    ASSERT_TRUE(api.create("pods", TestApi::pod("y")));
    ASSERT_TRUE(api.remove("pods", "default", "y"));
    revision = api->revision();
    pods = (*api.list("pods", ""))["items"].dump();
  }
  TestApi api({.data_dir = dir.path()});
  EXPECT_EQ(api->revision(), revision);
  const auto z = api.create("pods", TestApi::pod("z"), {{"dryRun", "All"}});
  EXPECT_EQ(pods.find((*z)["metadata"]["uid"].as_string()), std::string::npos);
  EXPECT_EQ((*api.list("pods", ""))["items"].dump(), pods);
  // Nothing older is kept: watches from before are told so.
  auto request = TestApi::request(kube::Verb::kList, "pods", "");
  request.query = {{"resourceVersion", std::to_string(revision - 1)}};
  const auto watch = api->watch(
      system_caller("test"), request, [](const kube::WatchEvent&) {}, [](const base::Status&) {});
  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error().code, Code::kExpired);
}

TEST(Durability, A_data_folder_belongs_to_one) {
  const base::TempDir dir;
  TestApi api({.data_dir = dir.path()});
  const auto second = SqliteLog::open(dir.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
  EXPECT_NE(second.error().message.find(dir.path()), std::string::npos);
}

void run_sql(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

TEST(Durability, A_newer_format_is_refused) {
  const base::TempDir dir;
  ASSERT_TRUE(SqliteLog::open(dir.path()));
  run_sql(dir.path() + "/store.db", "UPDATE meta SET value=9 WHERE key='schema_version'");
  const auto opened = SqliteLog::open(dir.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kInvalid);
  EXPECT_NE(opened.error().message.find("newer version"), std::string::npos);
}

TEST(Durability, A_damaged_file_is_refused_with_the_mend) {
  const base::TempDir dir;
  {
    TestApi api({.data_dir = dir.path()});
    for (int i = 0; i < 200; ++i) {  // one batch
      api->call(
          system_caller("test"),
          TestApi::request(kube::Verb::kCreate, "configmaps", "default", {},
                           TestApi::config_map("m" + std::to_string(i), std::string(2000, 'x'))),
          [](const ApiReply&) {});
    }
    api.loop().run_ready();
  }
  const std::string path = dir.path() + "/store.db";
  const auto size = std::filesystem::file_size(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (uintmax_t at = 8192; at + 4096 < size; at += 4096) {
      file.seekp(static_cast<std::streamoff>(at));
      file.write("garbage garbage garbage garbage", 31);
    }
  }
  const auto damaged = SqliteLog::open(dir.path());
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find(path), std::string::npos) << damaged.error().message;
  EXPECT_NE(damaged.error().message.find("restore it from a backup"), std::string::npos);
  {
    std::ofstream file(path, std::ios::trunc | std::ios::binary);
    file << "this is no database at all, but text that is long enough to look at";
  }
  const auto text = SqliteLog::open(dir.path());
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message.find("damaged"), std::string::npos) << text.error().message;
}

}  // namespace
}  // namespace tessera::apiserver
