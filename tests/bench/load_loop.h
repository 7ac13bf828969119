// A closed loop: N connections, each with one request under way, on one thread.
//
// Units:   latencies in microseconds, from before a request is sent until its answer is read.
// Errors:  an answer with another status than the one expected counts as an error and is described in `faults`; a broken
//          connection ends the program.
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "load_connection.h"
#include "load_plan.h"

namespace tessera::load {

struct Outcome {
  std::vector<uint32_t> micros[kOps];
  uint64_t errors = 0;
  std::map<std::string, uint64_t> faults;
  double seconds = 0;
  double client_cpu_seconds = 0;
};

class Loop {
 public:
  Loop(SSL_CTX* context, const Target& target, int connections);
  ~Loop();

  // Asks what `next` says, `count` times in all.
  Outcome run(uint64_t count, const std::function<Ask()>& next,
              const std::function<void(const Ask&, const Connection&)>& answered);

 private:
  struct Lane;
  void begin(Lane& lane);
  bool settle(Lane& lane, Connection::Outcome outcome);

  std::vector<std::unique_ptr<Lane>> lanes_;
  int epoll_ = -1;
  uint64_t left_ = 0;
  uint64_t under_way_ = 0;
  Outcome* outcome_ = nullptr;
  const std::function<Ask()>* next_ = nullptr;
  const std::function<void(const Ask&, const Connection&)>* answered_ = nullptr;
};

// As one line of JSON: seconds, per_second, errors, and for each operation its count, p50, p99 and longest in ms.
std::string as_json(const Outcome& outcome);

}  // namespace tessera::load
