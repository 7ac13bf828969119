// One SQLite connection and its statements, for the units that know the store's file.
//
// Errors:  kInternal for a damaged file, kUnavailable for what the disk refuses, each naming the file and the mend.
// Threads: one at a time.
#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace tessera::apiserver {

inline constexpr int kStoreFormat = 1;

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
    return base::error(base::Code::kInternal,
                       "store {} is damaged ({}): restore it from a backup, or move the file away "
                       "to start empty",
                       path, what);
  }
  tl::unexpected<base::Error> failed(std::string_view what) const {
    const int rc = sqlite3_errcode(raw);
    if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB) return damaged(sqlite3_errmsg(raw));
    return base::error(base::Code::kUnavailable, "cannot {} store {}: {}", what, path,
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

// The first column of the first row.
base::Result<int64_t> read_number(const Database& db, const char* sql);
// The tables where there are none yet; otherwise the format must be one that this program reads.
base::Status make_or_check_format(const Database& db);
base::Status check_format(const Database& db);
// Looks at every page; `full` also holds indexes against their tables.
base::Status check_integrity(const Database& db, bool full);

}  // namespace tessera::apiserver
