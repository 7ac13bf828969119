#include "apiserver/sqlite_database.h"

namespace tessera::apiserver {
namespace {

using base::Code;

constexpr const char* kSchema =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE objects(id INTEGER PRIMARY KEY, resource TEXT NOT NULL, ns TEXT NOT NULL,"
    " name TEXT NOT NULL, revision INTEGER NOT NULL, object TEXT NOT NULL);"
    "INSERT INTO meta VALUES('schema_version', 1), ('revision', 1);";

}  // namespace

base::Result<int64_t> read_number(const Database& db, const char* sql) {
  Statement statement;
  TS_TRY_STATUS(db.prepare(sql, statement));
  const int rc = sqlite3_step(statement.raw);
  if (rc == SQLITE_DONE) return db.damaged("meta row missing");
  if (rc != SQLITE_ROW) return db.failed("read");
  return sqlite3_column_int64(statement.raw, 0);
}

base::Status check_integrity(const Database& db, bool full) {
  Statement statement;
  TS_TRY_STATUS(
      db.prepare(full ? "PRAGMA integrity_check(1)" : "PRAGMA quick_check(1)", statement));
  if (sqlite3_step(statement.raw) != SQLITE_ROW) return db.failed("check");
  const std::string verdict = statement.text(0);
  if (verdict != "ok") return db.damaged(verdict);
  return {};
}

base::Status make_or_check_format(const Database& db) {
  TS_TRY(const int64_t tables, read_number(db, "SELECT count(*) FROM sqlite_schema"));
  if (tables != 0) return check_format(db);
  TS_TRY_STATUS(db.exec("BEGIN IMMEDIATE", "create"));
  TS_TRY_STATUS(db.exec(kSchema, "create"));
  return db.exec("COMMIT", "create");
}

base::Status check_format(const Database& db) {
  TS_TRY(const int64_t version,
         read_number(db, "SELECT value FROM meta WHERE key='schema_version'"));
  if (version > kStoreFormat) {
    return base::error(Code::kInvalid,
                       "store {} has format {}, written by a newer version; this one reads up to "
                       "{}: start the newer version, or use another data folder",
                       db.path, version, kStoreFormat);
  }
  return {};
}

}  // namespace tessera::apiserver
