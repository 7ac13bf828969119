#include "apiserver/sqlite_log.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace tessera::apiserver {
namespace {

using base::Code;

constexpr int kSchemaVersion = 1;
constexpr const char* kSetUp =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000;"
    "PRAGMA locking_mode=NORMAL; PRAGMA cache_size=-8000; PRAGMA trusted_schema=OFF;";
constexpr const char* kSchema =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE objects(id INTEGER PRIMARY KEY, resource TEXT NOT NULL, ns TEXT NOT NULL,"
    " name TEXT NOT NULL, revision INTEGER NOT NULL, object TEXT NOT NULL);"
    "INSERT INTO meta VALUES('schema_version', 1), ('revision', 1);";

struct Statement {
  sqlite3_stmt* raw = nullptr;
  Statement() = default;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(raw); }
  std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(raw, column));
    return {data != nullptr ? data : "", static_cast<size_t>(sqlite3_column_bytes(raw, column))};
  }
};

struct Database {
  std::string path;
  sqlite3* raw = nullptr;
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { sqlite3_close(raw); }

  tl::unexpected<base::Error> damaged(std::string_view what) const {
    return base::error(Code::kInternal,
                       "store {} is damaged ({}): restore it from a backup, or move the file away "
                       "to start empty",
                       path, what);
  }
  tl::unexpected<base::Error> failed(std::string_view what) const {
    const int rc = sqlite3_errcode(raw);
    if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB) return damaged(sqlite3_errmsg(raw));
    return base::error(Code::kUnavailable, "cannot {} store {}: {}", what, path,
                       sqlite3_errmsg(raw));
  }
  base::Status exec(const char* sql, std::string_view what) const {
    if (sqlite3_exec(raw, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return failed(what);
    return {};
  }
  base::Status prepare(const char* sql, Statement& out) const {
    if (sqlite3_prepare_v2(raw, sql, -1, &out.raw, nullptr) != SQLITE_OK) return failed("read");
    return {};
  }
};

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

base::Result<int64_t> read_number(const Database& db, const char* sql) {
  Statement statement;
  TS_TRY_STATUS(db.prepare(sql, statement));
  const int rc = sqlite3_step(statement.raw);
  if (rc == SQLITE_DONE) return db.damaged("meta row missing");
  if (rc != SQLITE_ROW) return db.failed("read");
  return sqlite3_column_int64(statement.raw, 0);
}

base::Status check_integrity(const Database& db) {
  Statement statement;
  TS_TRY_STATUS(db.prepare("PRAGMA quick_check(1)", statement));
  if (sqlite3_step(statement.raw) != SQLITE_ROW) return db.failed("check");
  const std::string verdict = statement.text(0);
  if (verdict != "ok") return db.damaged(verdict);
  return {};
}

base::Status check_version(const Database& db) {
  TS_TRY(const int64_t tables, read_number(db, "SELECT count(*) FROM sqlite_schema"));
  if (tables == 0) {
    TS_TRY_STATUS(db.exec("BEGIN IMMEDIATE", "create"));
    TS_TRY_STATUS(db.exec(kSchema, "create"));
    return db.exec("COMMIT", "create");
  }
  TS_TRY(const int64_t version,
         read_number(db, "SELECT value FROM meta WHERE key='schema_version'"));
  if (version > kSchemaVersion) {
    return base::error(Code::kInvalid,
                       "store {} has format {}, written by a newer version; this one reads up to "
                       "{}: start the newer version, or use another data folder",
                       db.path, version, kSchemaVersion);
  }
  return {};
}

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
  TS_TRY_STATUS(check_integrity(db));
  TS_TRY_STATUS(check_version(db));
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
