#include "cli/commands.h"

#include <cstdio>
#include <cstdlib>

#include "base/log.h"

namespace tessera::cli {
namespace {

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

EndSignals::EndSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void EndSignals::wait() const {
  int signal = 0;
  sigwait(&signals_, &signal);
  base::log_info("stopping signal={}", signal);
}

int fail(const base::Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  for (const base::Cause& cause : error.causes) {
    fmt::print(stderr, "  {}: {}\n", cause.field, cause.message);
  }
  return 1;
}

std::string default_data_dir() {
  if (const std::string xdg = env("XDG_DATA_HOME"); !xdg.empty()) return xdg + "/tessera";
  const std::string home = env("HOME");
  return (home.empty() ? "/tmp" : home + "/.local/share") + "/tessera";
}

bool has_proxy() {
  for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    if (!env(name).empty()) return true;
  }
  return false;
}

std::string default_kubeconfig() {
  const std::string given = env("KUBECONFIG");
  return given.empty() ? default_data_dir() + "/kubeconfig" : given;
}

void add_version(CommandLine& line) {
  line.command("version", "Print the version").run([] {
    fmt::print("tessera {}\n", kVersion);
    return 0;
  });
}

}  // namespace tessera::cli
