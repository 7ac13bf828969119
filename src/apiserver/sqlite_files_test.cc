// Checking, backing up and restoring stores.
#include "apiserver/sqlite_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "apiserver/api_fixture.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using ::testing::HasSubstr;

void execute(const std::string& file, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

TEST(StoreFiles, A_backup_of_a_running_store_restores_to_the_same_objects) {
  const base::TempDir dir;
  const base::TempDir other;
  const std::string file = other.path() + "/backup.db";
  uint64_t revision = 0;
  {
    TestApi api({.data_dir = dir.path() + "/store"});
    ASSERT_TRUE(api.create("configmaps", TestApi::config_map("a", "1")));
    const auto checked = check_store(dir.path() + "/store");
    ASSERT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(checked->revision, api->revision());
    const auto saved = backup_store(dir.path() + "/store", file);
    ASSERT_TRUE(saved) << saved.error().message;
    revision = saved->revision;
    EXPECT_EQ(revision, api->revision());
    ASSERT_TRUE(api.create("configmaps", TestApi::config_map("late", "1"))) << "it goes on";
  }
  struct stat facts{};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  ASSERT_TRUE(restore_store(file, other.path() + "/new", "store"));
  TestApi api({.data_dir = other.path() + "/new/store"});
  EXPECT_GE(api->revision(), revision);
  EXPECT_TRUE(api.get("configmaps", "default", "a"));
  EXPECT_FALSE(api.get("configmaps", "default", "late"));
}

TEST(StoreFiles, Nothing_is_overwritten) {
  const base::TempDir dir;
  {
    TestApi api({.data_dir = dir.path() + "/store"});
  }
  const std::string file = dir.path() + "/b.db";
  ASSERT_TRUE(backup_store(dir.path() + "/store", file));
  EXPECT_EQ(backup_store(dir.path() + "/store", file).error().code, Code::kAlreadyExists);
  const auto restored = restore_store(file, dir.path(), "store");
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Code::kConflict);
  EXPECT_THAT(restored.error().message, HasSubstr("is not empty"));
}

TEST(StoreFiles, A_missing_store_is_named) {
  const base::TempDir dir;
  EXPECT_EQ(check_store(dir.path()).error().code, Code::kNotFound);
  EXPECT_EQ(restore_store(dir.path() + "/none", dir.path() + "/x", "store").error().code,
            Code::kNotFound);
}

TEST(StoreFiles, Damage_is_found_and_not_restored) {
  const base::TempDir dir;
  {
    TestApi api({.data_dir = dir.path()});
  }
  const std::string file = dir.path() + "/store.db";
  execute(file, "UPDATE objects SET object='{' WHERE name='default' AND resource='namespaces'");
  EXPECT_THAT(check_store(dir.path()).error().message, HasSubstr("namespaces /default"));
  const base::TempDir target;
  EXPECT_FALSE(restore_store(file, target.path() + "/x", "store"));
}

TEST(StoreFiles, A_newer_format_is_left_alone) {
  const base::TempDir dir;
  {
    TestApi api({.data_dir = dir.path()});
  }
  execute(dir.path() + "/store.db", "UPDATE meta SET value=99 WHERE key='schema_version'");
  EXPECT_THAT(check_store(dir.path()).error().message, HasSubstr("written by a newer version"));
}

}  // namespace
}  // namespace tessera::apiserver
