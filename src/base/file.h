// Files: whole reads with a size limit, atomic writes, gzip, a folder that removes itself.
//
// Errors:  kNotFound (no such file), kTooLarge, kForbidden (permission), kInternal (any other I/O error); messages name
//          the path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tessera::base {

Result<std::string> read_file(const std::string& path, size_t size_max = size_t{1} << 30);
// Writes a temporary file beside it, syncs it and renames: a reader sees the old or the new content, never a half.
Status write_file(const std::string& path, std::string_view content, unsigned mode = 0644);
Status make_dirs(const std::string& path, unsigned mode = 0755);
// Unpacks gzip (or returns the input where it is not gzip); kTooLarge past `size_max` bytes.
Result<std::string> gunzip(std::string_view packed, size_t size_max = size_t{1} << 30);

// A folder under $TMPDIR, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tessera::base
