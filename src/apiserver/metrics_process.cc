#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <vector>

#include "apiserver/metrics.h"

namespace tessera::apiserver {
namespace {

std::string system_text(const char* path) {
  std::string out;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return out;
  char piece[4096];
  for (ssize_t n = 0;
       (n = ::read(fd, piece, sizeof piece)) > 0 && out.size() < (size_t{1} << 20);) {
    out.append(piece, static_cast<size_t>(n));
  }
  ::close(fd);
  return out;
}

// The number that begins the text.
double number_at(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return static_cast<double>(out);
}

// Fields of /proc/self/stat after the program's name, which may hold anything: [0] is the state.
std::vector<std::string_view> stat_fields(std::string_view text) {
  std::vector<std::string_view> out;
  const size_t end = text.rfind(')');
  if (end == std::string_view::npos) return out;
  text.remove_prefix(end + 1);
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    if (space > 0) out.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

double open_files() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int count = 0;
  while (const dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(folder);
  return count - 1;  // without the folder itself
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

void add_process_metrics(MetricText& text) {
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       double value) {
    text.family(name, type, help);
    text.value({}, value);
  };
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    add("process_cpu_seconds_total", "counter", "User and system time on the CPU.",
        seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
  }
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    add("process_max_fds", "gauge", "How many files may be open.",
        static_cast<double>(files.rlim_cur));
  }
  add("process_open_fds", "gauge", "How many files are open.", open_files());
  const std::string own = system_text("/proc/self/stat");
  const auto fields = stat_fields(own);
  if (fields.size() < 22) return;
  add("process_resident_memory_bytes", "gauge", "Memory in use.",
      number_at(fields[21]) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  const std::string system = system_text("/proc/stat");
  const size_t boot = system.find("\nbtime ");
  if (boot != std::string::npos) {
    add("process_start_time_seconds", "gauge", "When the process began, since 1970.",
        number_at(std::string_view(system).substr(boot + 7)) +
            number_at(fields[19]) / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
  add("process_virtual_memory_bytes", "gauge", "Address space in use.", number_at(fields[20]));
}

}  // namespace tessera::apiserver
