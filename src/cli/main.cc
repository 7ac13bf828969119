#include "cli/command_line.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  using namespace tessera::cli;
  CommandLine line("tessera", "GPU orchestration for Kubernetes");
  add_up(line);
  add_apply(line);
  add_scheduler(line);
  add_snapshot(line);
  add_plan(line);
  add_top(line);
  add_replay(line);
  add_replay_queues(line);
  add_world(line);
  add_why(line);
  add_store(line);
  add_version(line);
  return line.run(argc, argv);
}
