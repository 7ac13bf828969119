// The commands: each declares its options on the command line; one file a command.
#pragma once

#include <csignal>
#include <string>

#include "base/result.h"
#include "cli/command_line.h"

namespace tessera::cli {

inline constexpr const char* kVersion = "0.1.0";

void add_up(CommandLine& line);
void add_apply(CommandLine& line);
void add_scheduler(CommandLine& line);
void add_snapshot(CommandLine& line);
void add_plan(CommandLine& line);
void add_top(CommandLine& line);
void add_replay(CommandLine& line);
void add_replay_queues(CommandLine& line);
void add_world(CommandLine& line);
void add_why(CommandLine& line);
void add_store(CommandLine& line);
void add_version(CommandLine& line);

// What ends a command that runs until it is told: SIGINT or SIGTERM. Made before any thread starts, so that only wait() gets
// them; SIGPIPE ends nothing from then on.
class EndSignals {
 public:
  EndSignals();
  void wait() const;

 private:
  sigset_t signals_{};
};

// Prints the error and answers the exit status: 1.
int fail(const base::Error& error);
// Whether the environment names a proxy for calls to servers.
bool has_proxy();
// $KUBECONFIG, or the kubeconfig of `tessera up`'s default data folder.
std::string default_kubeconfig();
// $XDG_DATA_HOME/tessera or ~/.local/share/tessera.
std::string default_data_dir();

}  // namespace tessera::cli
