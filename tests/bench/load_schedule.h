// Work for a scheduler: fake nodes, then pods that ask for a GPU each, at a rate or as a backlog, with one watch that sees
// what becomes of them.
//
// Shape:   an open loop: pods are created when they are due, however slowly the API answers. What was created late because
//          every connection was busy is told.
// Errors:  a refused creation or a broken connection ends the program with a message.
// Threads: one.
#pragma once

#include <cstdint>
#include <string>

#include "load_connection.h"

namespace tessera::load {

struct Schedule {
  uint64_t nodes = 0;       // to create first
  uint64_t gpus = 8;        // of each node
  uint64_t pods = 0;        // to create and to wait for
  double rate = 0;          // pods a second; 0: as a backlog, before the word to go
  int gang = 1;             // pods of a gang
  std::string gang_api{};   // group/version of the PodGroups; empty: gangs without an object
  std::string scheduler{};  // schedulerName
  std::string prefix = "work";
  int connections = 8;
  double limit_s = 600;  // for the last pod to be bound
};

// Prints "ready", waits for a line, and prints what was seen as a line of JSON. The exit status.
int run_schedule(const Schedule& what, SSL_CTX* context, const Target& target);

}  // namespace tessera::load
