#include "apiserver/sqlite_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "apiserver/sqlite_database.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using base::Code;

constexpr const char* kSetUp =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000;"
    "PRAGMA locking_mode=NORMAL; PRAGMA cache_size=-8000; PRAGMA trusted_schema=OFF;";
// An advisory lock that the kernel drops with the process.
struct FolderLock {
  int fd = -1;
  ~FolderLock() {
    if (fd >= 0) ::close(fd);
  }
  base::Status take(const std::string& dir) {
    const std::string path = dir + "/lock";
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
      return base::error(Code::kForbidden, "cannot open {}: {}", path, std::strerror(errno));
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
    return base::error(Code::kConflict,
                       "data folder {} is in use by another process: stop it, or give this one a "
                       "folder of its own",
                       dir);
  }
};

base::Result<std::vector<StoredRow>> load_rows(const Database& db) {
  std::vector<StoredRow> rows;
  Statement statement;
  TS_TRY_STATUS(
      db.prepare("SELECT id, resource, ns, name, revision, object FROM objects", statement));
  int rc = SQLITE_ROW;
  while ((rc = sqlite3_step(statement.raw)) == SQLITE_ROW) {
    rows.push_back({sqlite3_column_int64(statement.raw, 0), statement.text(1), statement.text(2),
                    statement.text(3),
                    static_cast<uint64_t>(sqlite3_column_int64(statement.raw, 4)),
                    statement.text(5)});
  }
  if (rc != SQLITE_DONE) return db.failed("read");
  return rows;
}

void bind_text(const Statement& statement, int at, const std::string& text) {
  sqlite3_bind_text(statement.raw, at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

}  // namespace

struct SqliteLog::Impl {
  FolderLock lock;  // released last
  Database db;
  Statement put;
  Statement remove;
  Statement count;

  base::Status step(const Statement& statement) {
    const int rc = sqlite3_step(statement.raw);
    sqlite3_reset(statement.raw);
    if (rc != SQLITE_DONE) return db.failed("write");
    return {};
  }
  base::Status write_rows(const std::vector<StoredRow>& rows, uint64_t revision);
};

SqliteLog::SqliteLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteLog::~SqliteLog() = default;

base::Result<SqliteLog::Loaded> SqliteLog::open(const std::string& dir) {
  TS_TRY_STATUS(base::make_dirs(dir, 0700));
  auto impl = std::make_unique<Impl>();
  TS_TRY_STATUS(impl->lock.take(dir));
  Database& db = impl->db;
  db.path = dir + "/store.db";
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(db.path.c_str(), &db.raw, flags, nullptr) != SQLITE_OK) {
    return db.failed("open");
  }
  sqlite3_extended_result_codes(db.raw, 0);
  TS_TRY_STATUS(db.exec(kSetUp, "open"));
  TS_TRY_STATUS(check_integrity(db, false));
  TS_TRY_STATUS(make_or_check_format(db));
  TS_TRY(const int64_t revision, read_number(db, "SELECT value FROM meta WHERE key='revision'"));
  TS_TRY(auto rows, load_rows(db));
  TS_TRY_STATUS(db.prepare("INSERT OR REPLACE INTO objects VALUES(?,?,?,?,?,?)", impl->put));
  TS_TRY_STATUS(db.prepare("DELETE FROM objects WHERE id=?", impl->remove));
  TS_TRY_STATUS(db.prepare("UPDATE meta SET value=? WHERE key='revision'", impl->count));
  Loaded loaded;
  loaded.log.reset(new SqliteLog(std::move(impl)));
  loaded.rows = std::move(rows);
  loaded.revision = static_cast<uint64_t>(revision);
  return loaded;
}

base::Status SqliteLog::Impl::write_rows(const std::vector<StoredRow>& rows, uint64_t revision) {
  for (const StoredRow& row : rows) {
    const Statement& statement = row.text.empty() ? remove : put;
    sqlite3_bind_int64(statement.raw, 1, row.id);
    if (!row.text.empty()) {
      bind_text(statement, 2, row.resource);
      bind_text(statement, 3, row.ns);
      bind_text(statement, 4, row.name);
      sqlite3_bind_int64(statement.raw, 5, static_cast<sqlite3_int64>(row.revision));
      bind_text(statement, 6, row.text);
    }
    TS_TRY_STATUS(step(statement));
  }
  sqlite3_bind_int64(count.raw, 1, static_cast<sqlite3_int64>(revision));
  TS_TRY_STATUS(step(count));
  return db.exec("COMMIT", "write");
}

base::Status SqliteLog::write(const std::vector<StoredRow>& rows, uint64_t revision) {
  TS_TRY_STATUS(impl_->db.exec("BEGIN IMMEDIATE", "write"));
  base::Status written = impl_->write_rows(rows, revision);
  if (!written && sqlite3_get_autocommit(impl_->db.raw) == 0) {
    sqlite3_exec(impl_->db.raw, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  return written;
}

}  // namespace tessera::apiserver
