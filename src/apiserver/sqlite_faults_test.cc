// Disks that fail: the store over a file layer that refuses writes and syncs, tears writes and runs full, by seed. What
// was refused is told to its writer, what was acknowledged stays, and the server goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstring>
#include <map>

#include "apiserver/api_fixture.h"
#include "apiserver/sqlite_files.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

// What goes wrong: calls that change the disk are counted; those from `from` on, `count` of them, fail.
struct Faults {
  int64_t calls = 0;
  int64_t from = INT64_MAX;
  int64_t count = 0;
  int error = SQLITE_IOERR_WRITE;
  bool tears = false;  // half of a failing write reaches the disk
  int64_t hits = 0;

  bool strikes() {
    const int64_t call = calls++;
    const bool hit = call >= from && call < from + count;
    hits += hit;
    return hit;
  }
};
Faults g_faults;

// SQLite's layer of files, with faults. The real file lies behind each of ours.
struct File {
  sqlite3_file base;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
sqlite3_file* real(sqlite3_file* file) {
  return reinterpret_cast<File*>(file)->real();
}
template <auto method, class... Args>
int pass(sqlite3_file* file, Args... args) {
  return (real(file)->pMethods->*method)(real(file), args...);
}

int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
  if (!g_faults.strikes()) return pass<&sqlite3_io_methods::xWrite>(file, data, size, at);
  if (g_faults.tears) (void)pass<&sqlite3_io_methods::xWrite>(file, data, size / 2, at);
  return g_faults.error;
}
int sync(sqlite3_file* file, int flags) {
  if (g_faults.strikes()) return SQLITE_IOERR_FSYNC;
  return pass<&sqlite3_io_methods::xSync>(file, flags);
}
int truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (g_faults.strikes()) return SQLITE_IOERR_TRUNCATE;
  return pass<&sqlite3_io_methods::xTruncate>(file, size);
}
void barrier(sqlite3_file* file) {
  real(file)->pMethods->xShmBarrier(real(file));
}

const sqlite3_io_methods kMethods = {
    2,
    pass<&sqlite3_io_methods::xClose>,
    pass<&sqlite3_io_methods::xRead, void*, int, sqlite3_int64>,
    write,
    truncate,
    sync,
    pass<&sqlite3_io_methods::xFileSize, sqlite3_int64*>,
    pass<&sqlite3_io_methods::xLock, int>,
    pass<&sqlite3_io_methods::xUnlock, int>,
    pass<&sqlite3_io_methods::xCheckReservedLock, int*>,
    pass<&sqlite3_io_methods::xFileControl, int, void*>,
    pass<&sqlite3_io_methods::xSectorSize>,
    pass<&sqlite3_io_methods::xDeviceCharacteristics>,
    pass<&sqlite3_io_methods::xShmMap, int, int, int, void volatile**>,
    pass<&sqlite3_io_methods::xShmLock, int, int, int>,
    barrier,
    pass<&sqlite3_io_methods::xShmUnmap, int>,
    nullptr,
    nullptr,
};

// While it lives, SQLite opens its files through the faults.
class FaultyDisk {
 public:
  FaultyDisk() : real_(sqlite3_vfs_find(nullptr)), mine_(*real_) {
    g_faults = {};
    mine_.zName = "faulty";
    mine_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    mine_.xOpen = [](sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
      auto* at = reinterpret_cast<File*>(file);
      std::memset(at, 0, static_cast<size_t>(vfs->szOsFile));
      sqlite3_vfs* below = sqlite3_vfs_find("unix");
      const int rc = below->xOpen(below, name, at->real(), flags, out);
      at->base.pMethods = at->real()->pMethods != nullptr ? &kMethods : nullptr;
      return rc;
    };
    sqlite3_vfs_register(&mine_, 1);
  }
  ~FaultyDisk() {
    sqlite3_vfs_unregister(&mine_);
    sqlite3_vfs_register(real_, 1);
    g_faults = {};
  }

 private:
  sqlite3_vfs* real_;
  sqlite3_vfs mine_;
};

using State = std::map<std::string, std::string>;

State state_of(TestApi& api) {
  State out;
  const auto list = api.list("configmaps", "default");
  EXPECT_TRUE(list);
  for (const Value& item : (*list)["items"].items()) {
    out[item["metadata"]["name"].str()] = item["data"]["key"].str();
  }
  return out;
}

// One random write; the state after it where it was acknowledged.
bool random_write(TestApi& api, base::Random& random, State& state, State& attempted) {
  const std::string name = fmt::format("m{}", random.below(8));
  const std::string value =
      fmt::format("{}{}", random.next(), std::string(random.below(3000), 'x'));
  attempted = state;
  base::Result<Value> done;
  if (!state.contains(name)) {
    attempted[name] = value;
    done = api.create("configmaps", TestApi::config_map(name, value));
  } else if (random.below(4) == 0) {
    attempted.erase(name);
    done = api.remove("configmaps", "default", name);
  } else {
    attempted[name] = value;
    Value patch;
    patch.ref("data").set("key", value);
    done = api.patch("configmaps", "default", name, patch.dump());
  }
  if (done) {
    state = attempted;
  } else {
    EXPECT_EQ(done.error().code, Code::kUnavailable) << done.error().message;
  }
  return !!done;
}

class DiskFaults : public ::testing::TestWithParam<uint64_t> {};

TEST_P(DiskFaults, Refuse_and_lose_nothing) {
  const FaultyDisk disk;
  const base::TempDir dir;
  base::Random random(GetParam());
  State state;
  State last_refused;
  uint64_t revision = 0;
  int64_t refused = 0;
  for (int run = 0; run < 4; ++run) {
    g_faults = {};
    TestApi api({.data_dir = dir.path()});
    const State found = state_of(api);
    // A write that was refused as the process ended may have reached the disk after all; one that was acknowledged has.
    EXPECT_TRUE(found == state || found == last_refused);
    EXPECT_GE(api->revision(), revision);
    state = last_refused = found;
    g_faults.calls = 0;
    g_faults.from = static_cast<int64_t>(random.below(60));
    g_faults.count = 1 + static_cast<int64_t>(random.below(20));
    g_faults.error = random.below(2) == 0 ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    g_faults.tears = random.below(2) == 0;
    for (int step = 0; step < 60; ++step) {
      State attempted;
      if (random_write(api, random, state, attempted)) {
        last_refused = state;
      } else {
        last_refused = attempted;
        ++refused;
      }
      EXPECT_EQ(state_of(api), state) << "a refused write is not seen";
      EXPECT_GE(api->revision(), revision);
      revision = api->revision();
    }
    // The disk is well again.
    g_faults.from = INT64_MAX;
    State attempted;
    EXPECT_TRUE(random_write(api, random, state, attempted));
    last_refused = state;
    revision = api->revision();
    // And fails at the very end, while the store is closed.
    if (random.below(2) == 0) g_faults = {.from = 0, .count = 1000};
  }
  EXPECT_GT(refused, 0) << "no fault struck";
  g_faults = {};
  const auto facts = check_store(dir.path());
  EXPECT_TRUE(facts) << facts.error().message;
}

INSTANTIATE_TEST_SUITE_P(Seeds, DiskFaults, ::testing::Range<uint64_t>(1, 41));

TEST(DiskFull, Reads_go_on_and_writes_come_back_with_the_space) {
  const FaultyDisk disk;
  const base::TempDir dir;
  TestApi api({.data_dir = dir.path()});
  ASSERT_TRUE(api.create("configmaps", TestApi::config_map("a", "1")));
  g_faults = {.from = 0, .count = INT64_MAX, .error = SQLITE_FULL};
  for (int i = 0; i < 5; ++i) {
    const auto refused = api.create("configmaps", TestApi::config_map("b", "1"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kUnavailable);
    EXPECT_THAT(refused.error().message, ::testing::HasSubstr("full"));
  }
  EXPECT_TRUE(api.get("configmaps", "default", "a"));
  g_faults = {};
  EXPECT_TRUE(api.create("configmaps", TestApi::config_map("b", "1")));
}

}  // namespace
}  // namespace tessera::apiserver
