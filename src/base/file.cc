#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/check.h"

namespace tessera::base {
namespace {

tl::unexpected<Error> io_error(std::string_view what, const std::string& path, int err) {
  const Code code = err == ENOENT   ? Code::kNotFound
                    : err == EACCES ? Code::kForbidden
                                    : Code::kInternal;
  return error(code, "cannot {} {}: {}", what, path, std::strerror(err));
}

// Closes the descriptor on every way out.
struct Fd {
  int value;
  ~Fd() {
    if (value >= 0) ::close(value);
  }
};

Status write_all(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("write", path, errno);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t size_max) {
  const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (fd.value < 0) return io_error("open", path, errno);
  std::string out;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(fd.value, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("read", path, errno);
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > size_max) {
      return error(Code::kTooLarge, "{} is larger than the limit of {} bytes", path, size_max);
    }
    out.append(buffer, static_cast<size_t>(n));
  }
}

Status write_file(const std::string& path, std::string_view content, unsigned mode) {
  const std::string temp = fmt::format("{}.tmp.{}", path, ::getpid());
  {
    const Fd fd{::open(temp.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)};
    if (fd.value < 0) return io_error("create", temp, errno);
    TS_TRY_STATUS(write_all(fd.value, temp, content));
    if (::fchmod(fd.value, mode) != 0 || ::fsync(fd.value) != 0) {
      return io_error("write", temp, errno);
    }
  }
  if (::rename(temp.c_str(), path.c_str()) != 0) return io_error("rename to", path, errno);
  return {};
}

Status make_dirs(const std::string& path, unsigned mode) {
  std::error_code ec;
  std::filesystem::create_directories(path, ec);
  if (ec) return io_error("create folder", path, ec.value());
  std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode), ec);
  if (ec) return io_error("set the mode of", path, ec.value());
  return {};
}

Result<std::string> gunzip(std::string_view packed, size_t size_max) {
  const bool is_gzip = packed.size() > 2 && packed[0] == '\x1f' && packed[1] == '\x8b';
  if (!is_gzip) return std::string(packed);
  z_stream stream{};
  TS_CHECK(inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  char buffer[65536];
  int rc = Z_OK;
  while (rc == Z_OK && out.size() <= size_max) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof buffer;
    rc = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer, sizeof buffer - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > size_max) {
    return error(Code::kTooLarge, "gzip data unpacks to more than {} bytes", size_max);
  }
  if (rc != Z_STREAM_END) return error(Code::kBadRequest, "gzip data is damaged or cut short");
  return out;
}

TempDir::TempDir() {
  const char* root = std::getenv("TMPDIR");
  std::string pattern = fmt::format("{}/tessera-XXXXXX", root != nullptr ? root : "/tmp");
  TS_CHECK(::mkdtemp(pattern.data()) != nullptr, "cannot create a folder {}", pattern);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ec;
  std::filesystem::remove_all(path_, ec);
}

}  // namespace tessera::base
