#include "apiserver/sqlite_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "apiserver/sqlite_database.h"
#include "base/file.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using base::Code;

base::Status open_existing(const std::string& path, Database& db) {
  db.path = path;
  if (::access(path.c_str(), F_OK) != 0) {
    return base::error(Code::kNotFound, "no store at {}: {}", path, std::strerror(errno));
  }
  if (sqlite3_open_v2(path.c_str(), &db.raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK) {
    return db.failed("open");
  }
  sqlite3_busy_timeout(db.raw, 10'000);
  return {};
}

base::Status check_row(const Database& db, const Statement& row, uint64_t revision) {
  const std::string name = row.text(0) + " " + row.text(1) + "/" + row.text(2);
  if (static_cast<uint64_t>(sqlite3_column_int64(row.raw, 3)) > revision) {
    return db.damaged(fmt::format("object {} is newer than the store's revision", name));
  }
  const auto object = json::parse(row.text(4));
  if (!object || !object->is_object()) {
    return db.damaged(fmt::format("object {} does not read", name));
  }
  if (!((*object)["metadata"]["name"].as_string() == row.text(2))) {
    return db.damaged(fmt::format("object {} has another name in its text", name));
  }
  return {};
}

base::Result<StoreFacts> check_rows(const Database& db) {
  TS_TRY_STATUS(db.exec("BEGIN", "read"));  // one moment, whoever writes meanwhile
  TS_TRY_STATUS(check_integrity(db, true));
  TS_TRY_STATUS(check_format(db));
  StoreFacts facts;
  TS_TRY(const int64_t revision, read_number(db, "SELECT value FROM meta WHERE key='revision'"));
  facts.revision = static_cast<uint64_t>(revision);
  Statement row;
  TS_TRY_STATUS(db.prepare("SELECT resource, ns, name, revision, object FROM objects", row));
  int rc = SQLITE_ROW;
  while ((rc = sqlite3_step(row.raw)) == SQLITE_ROW) {
    TS_TRY_STATUS(check_row(db, row, facts.revision));
    ++facts.objects;
    facts.bytes += sqlite3_column_bytes(row.raw, 4);
  }
  if (rc != SQLITE_DONE) return db.failed("read");
  TS_TRY(const int64_t twice,
         read_number(db,
                     "SELECT count(*) FROM (SELECT 1 FROM objects GROUP BY resource, ns, name "
                     "HAVING count(*) > 1)"));
  if (twice != 0) return db.damaged("some objects stand in it twice");
  return facts;
}

// All pages within one read transaction.
base::Status copy_pages(const Database& from, const std::string& path) {
  Database to;
  to.path = path;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path.c_str(), &to.raw, flags, nullptr) != SQLITE_OK) return to.failed("open");
  sqlite3_backup* copy = sqlite3_backup_init(to.raw, "main", from.raw, "main");
  if (copy == nullptr) return to.failed("write");
  const int rc = sqlite3_backup_step(copy, -1);
  sqlite3_backup_finish(copy);
  if (rc == SQLITE_DONE) return {};
  return base::error(Code::kUnavailable, "cannot copy store {} to {}: {}", from.path, path,
                     sqlite3_errstr(rc));
}

// The file itself is synced; a rename is not until its folder is.
base::Status move_into_place(const std::string& from, const std::string& to) {
  const auto failed = [&] {
    return base::error(Code::kUnavailable, "cannot write {}: {}", to, std::strerror(errno));
  };
  const int file = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed();
  const bool synced = ::fsync(file) == 0;
  ::close(file);
  if (!synced || std::rename(from.c_str(), to.c_str()) != 0) return failed();
  const auto parent = std::filesystem::path(to).parent_path();
  const int folder =
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return failed();
  const bool kept = ::fsync(folder) == 0;
  ::close(folder);
  if (!kept) return failed();
  return {};
}

base::Result<StoreFacts> copy_store(const std::string& from, const std::string& to) {
  const std::string partial = to + ".partial";
  const mode_t before = ::umask(0077);  // a store holds secrets
  const auto copy = [&]() -> base::Result<StoreFacts> {
    Database source;
    TS_TRY_STATUS(open_existing(from, source));
    TS_TRY_STATUS(check_format(source));
    TS_TRY_STATUS(copy_pages(source, partial));
    return check_store_file(partial);
  };
  auto facts = copy();
  ::umask(before);
  if (facts) {
    const base::Status moved = move_into_place(partial, to);
    if (!moved) facts = base::error(moved.error());
  }
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::filesystem::remove(partial + suffix, ignored);
  }
  return facts;
}

}  // namespace

base::Result<StoreFacts> check_store_file(const std::string& file) {
  Database db;
  TS_TRY_STATUS(open_existing(file, db));
  return check_rows(db);
}

base::Result<StoreFacts> check_store(const std::string& dir) {
  return check_store_file(dir + "/store.db");
}

base::Result<StoreFacts> backup_store(const std::string& dir, const std::string& file) {
  if (::access(file.c_str(), F_OK) == 0) {
    return base::error(Code::kAlreadyExists, "{} is there already: name a new file", file);
  }
  return copy_store(dir + "/store.db", file);
}

base::Result<StoreFacts> restore_store(const std::string& file, const std::string& data_dir,
                                       const std::string& sub) {
  std::error_code error;
  const bool there = std::filesystem::exists(data_dir, error);
  if (!error && there && !std::filesystem::is_empty(data_dir, error)) {
    return base::error(Code::kConflict,
                       "folder {} is not empty: move it away, or restore to a new folder",
                       data_dir);
  }
  if (error)
    return base::error(Code::kForbidden, "cannot look into {}: {}", data_dir, error.message());
  TS_TRY_STATUS(check_store_file(file).transform([](const StoreFacts&) {}));
  TS_TRY_STATUS(base::make_dirs(data_dir + "/" + sub, 0700));
  return copy_store(file, data_dir + "/" + sub + "/store.db");
}

}  // namespace tessera::apiserver
