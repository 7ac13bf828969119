// Rows of the embedded API on disk: one SQLite file in the data folder, one transaction a batch.
//
// Shape:   DIR/store.db with tables `meta` (schema_version, revision) and `objects` (id, resource, ns, name, revision,
//          object: JSON text without metadata.resourceVersion); DIR/lock keeps a second process out.
// Errors:  open answers kConflict (folder in use), kInvalid (written by a newer version), kInternal (damaged file, I/O), each
//          naming the file and the mend; write answers kUnavailable.
// Threads: one at a time.
// Source:  sqlite.org/wal.html, pragma synchronous: only FULL keeps a committed WAL transaction over a power loss.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiserver/store.h"
#include "base/result.h"

namespace tessera::apiserver {

class SqliteLog : public RowLog {
 public:
  struct Loaded {
    std::unique_ptr<SqliteLog> log;
    std::vector<StoredRow> rows;
    uint64_t revision = 0;
  };

  // Makes the folder and the file where they are missing.
  static base::Result<Loaded> open(const std::string& dir);
  ~SqliteLog() override;
  base::Status write(const std::vector<StoredRow>& rows, uint64_t revision) override;

 private:
  struct Impl;
  explicit SqliteLog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::apiserver
