// Stores as files: looking one over, copying one while it is in use, putting a copy in a new place.
//
// Shape:   `dir` is the folder with store.db, as for SqliteLog::open. A backup is one SQLite file.
// Errors:  as SqliteLog::open; kAlreadyExists and kConflict where a file or folder is in the way; each names the mend.
// Threads: any.
// Source:  sqlite.org/backup.html (a copy within one read transaction is consistent and keeps no writer of a WAL waiting).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tessera::apiserver {

struct StoreFacts {
  uint64_t revision = 0;
  int64_t objects = 0;
  int64_t bytes = 0;  // of the objects' text
};

// Every page, and every object in it; also while a server has the store open.
base::Result<StoreFacts> check_store(const std::string& dir);
base::Result<StoreFacts> check_store_file(const std::string& file);
// `file` must not exist yet.
base::Result<StoreFacts> backup_store(const std::string& dir, const std::string& file);
// `data_dir` must be empty or not exist yet; the store is made in its folder `sub`.
base::Result<StoreFacts> restore_store(const std::string& file, const std::string& data_dir,
                                       const std::string& sub);

}  // namespace tessera::apiserver
