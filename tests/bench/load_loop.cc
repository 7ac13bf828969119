#include "load_loop.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace tessera::load {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

uint64_t micros_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

int expected_status(Op op) {
  return op == Op::kCreate ? 201 : 200;
}

double percentile_ms(const std::vector<uint32_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)] / 1000.0;
}

std::string latencies(std::vector<uint32_t> micros) {
  std::ranges::sort(micros);
  return fmt::format(R"({{"count":{},"p50_ms":{:.3f},"p99_ms":{:.3f},"max_ms":{:.3f}}})",
                     micros.size(), percentile_ms(micros, 0.5), percentile_ms(micros, 0.99),
                     micros.empty() ? 0 : micros.back() / 1000.0);
}

}  // namespace

struct Loop::Lane {
  Lane(SSL_CTX* context, const Target& target) : connection(context, target) {}
  Connection connection;
  Ask ask{};
  uint64_t begun = 0;
};

Loop::Loop(SSL_CTX* context, const Target& target, int connections)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (int i = 0; i < connections; ++i) {
    lanes_.push_back(std::make_unique<Lane>(context, target));
    lanes_.back()->connection.connect();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = lanes_.back().get();
    epoll_ctl(epoll_, EPOLL_CTL_ADD, lanes_.back()->connection.fd(), &event);
  }
}

Loop::~Loop() {
  ::close(epoll_);
}

// An answer may be there as soon as the request is sent.
void Loop::begin(Lane& lane) {
  bool settled = true;
  while (settled && left_ > 0) {
    --left_;
    ++under_way_;
    lane.ask = (*next_)();
    lane.begun = micros_now();
    settled = settle(lane, lane.connection.send(lane.ask.method, lane.ask.target,
                                                lane.ask.content_type, lane.ask.body));
  }
}

// True when the answer is complete.
bool Loop::settle(Lane& lane, Connection::Outcome outcome) {
  if (outcome == Connection::Outcome::kPending) return false;
  if (outcome != Connection::Outcome::kDone) {
    fmt::print(stderr, "tessera_load: {} {}: {}\n", lane.ask.method, lane.ask.target,
               lane.connection.why());
    std::exit(1);
  }
  --under_way_;
  outcome_->micros[static_cast<size_t>(lane.ask.op)].push_back(
      static_cast<uint32_t>(micros_now() - lane.begun));
  const int status = lane.connection.status();
  if (status != expected_status(lane.ask.op)) {
    ++outcome_->errors;
    ++outcome_->faults[fmt::format("{} {}: {:.160}", kOpNames[static_cast<size_t>(lane.ask.op)],
                                   status, lane.connection.body())];
  }
  (*answered_)(lane.ask, lane.connection);
  return true;
}

Outcome Loop::run(uint64_t count, const std::function<Ask()>& next,
                  const std::function<void(const Ask&, const Connection&)>& answered) {
  Outcome outcome;
  outcome_ = &outcome;
  next_ = &next;
  answered_ = &answered;
  left_ = count;
  const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const double started = seconds_of(CLOCK_MONOTONIC);
  for (const auto& lane : lanes_) begin(*lane);
  epoll_event events[64];
  while (under_way_ > 0) {
    const int ready = epoll_wait(epoll_, events, 64, -1);
    for (int i = 0; i < ready; ++i) {
      auto& lane = *static_cast<Lane*>(events[i].data.ptr);
      if (settle(lane, lane.connection.advance())) begin(lane);
    }
  }
  outcome.seconds = seconds_of(CLOCK_MONOTONIC) - started;
  outcome.client_cpu_seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  return outcome;
}

std::string as_json(const Outcome& outcome) {
  std::vector<uint32_t> all;
  std::string verbs;
  for (size_t op = 0; op < kOps; ++op) {
    all.insert(all.end(), outcome.micros[op].begin(), outcome.micros[op].end());
    verbs += fmt::format(R"(,"{}":{})", kOpNames[op], latencies(outcome.micros[op]));
  }
  for (const auto& [fault, count] : outcome.faults) {
    fmt::print(stderr, "tessera_load: {} times {}\n", count, fault);
  }
  return fmt::format(
      R"({{"requests":{},"errors":{},"seconds":{:.3f},"per_second":{:.0f},"client_cpu_seconds":{:.3f},"all":{}{}}})",
      all.size(), outcome.errors, outcome.seconds,
      static_cast<double>(all.size()) / outcome.seconds, outcome.client_cpu_seconds, latencies(all),
      verbs);
}

}  // namespace tessera::load
