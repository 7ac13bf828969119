#include "load_schedule.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "load_bindings.h"

namespace tessera::load {
namespace {

constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";

uint64_t micros_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

std::string node_text(const Schedule& what, uint64_t number) {
  const std::string amounts = fmt::format(
      R"({{"cpu":"128","memory":"1024Gi","pods":"110","ephemeral-storage":"500Gi","nvidia.com/gpu":"{}"}})",
      what.gpus);
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"node-{0}","labels":{{
"kubernetes.io/hostname":"node-{0}","kubernetes.io/os":"linux","kubernetes.io/arch":"amd64",
"nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3","nvidia.com/gpu.count":"{1}","nvidia.com/gpu.memory":"81559"}}}},
"status":{{"capacity":{2},"allocatable":{2},"conditions":[{{"type":"Ready","status":"True","reason":"KubeletReady"}}]}}}})",
      number, what.gpus, amounts);
}

std::string pod_name(const Schedule& what, uint64_t number) {
  const auto gang = static_cast<uint64_t>(what.gang);
  if (gang < 2) return fmt::format("{}-{}", what.prefix, number);
  return fmt::format("{}-{}-{}", what.prefix, number / gang, number % gang);
}

std::string pod_text(const Schedule& what, uint64_t number) {
  std::string link;
  std::string label;
  if (what.gang > 1 && !what.gang_api.empty()) {
    const std::string group =
        fmt::format("{}-{}", what.prefix, number / static_cast<uint64_t>(what.gang));
    if (what.gang_api.starts_with("scheduling.k8s.io/")) {
      link = fmt::format(R"("schedulingGroup":{{"podGroupName":"{}"}},)", group);
    } else {
      label = fmt::format(R"(,"scheduling.x-k8s.io/pod-group":"{}")", group);
    }
  }
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":{{"app":"trainer"{}}}}},
"spec":{{"schedulerName":"{}",{}"restartPolicy":"Never","automountServiceAccountToken":false,
"containers":[{{"name":"trainer","image":"registry.example/ml/trainer:2.4.1","command":["/usr/bin/trainer"],
"resources":{{"requests":{{"cpu":"4","memory":"32Gi"}},"limits":{{"nvidia.com/gpu":"1"}}}}}}]}}}})",
      pod_name(what, number), label, what.scheduler, link);
}

std::string group_text(const Schedule& what, uint64_t number) {
  const bool native = what.gang_api.starts_with("scheduling.k8s.io/");
  return fmt::format(
      R"({{"apiVersion":"{}","kind":"PodGroup","metadata":{{"name":"{}-{}"}},"spec":{}}})",
      what.gang_api, what.prefix, number,
      native ? fmt::format(R"({{"schedulingPolicy":{{"gang":{{"minCount":{}}}}}}})", what.gang)
             : fmt::format(R"({{"minMember":{}}})", what.gang));
}

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "tessera_load: {}\n", what);
  std::exit(1);
}

class Run {
 public:
  Run(const Schedule& what, SSL_CTX* context, const Target& target)
      : what_(what),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        context_(context),
        target_(target),
        bindings_(what.prefix + "-", what.gang) {
    for (int i = 0; i < what.connections; ++i) {
      lanes_.push_back(std::make_unique<Connection>(context, target));
      add(*lanes_.back());
      idle_.push_back(lanes_.back().get());
    }
  }
  ~Run() { ::close(epoll_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  int run() {
    create_all("/api/v1/nodes", what_.nodes, [&](uint64_t n) { return node_text(what_, n); });
    if (what_.pods == 0) {
      fmt::print("{{\"nodes\":{}}}\n", what_.nodes);
      return 0;
    }
    if (what_.gang > 1 && !what_.gang_api.empty()) {
      create_all(fmt::format("/apis/{}/namespaces/default/podgroups", what_.gang_api),
                 what_.pods / static_cast<uint64_t>(what_.gang),
                 [&](uint64_t n) { return group_text(what_, n); });
    }
    start_watch();
    const auto text = [&](uint64_t n) { return pod_text(what_, n); };
    if (what_.rate == 0) {
      create_all(kPods, what_.pods, text);
      while (bindings_.seen() < what_.pods) turn(100);
    }
    fmt::print("ready\n");
    std::fflush(stdout);
    std::getchar();
    const uint64_t started = micros_of(CLOCK_MONOTONIC);
    if (what_.rate > 0) create_all(kPods, what_.pods, text);
    const auto limit = started + static_cast<uint64_t>(what_.limit_s * 1e6);
    while (bindings_.bound() < what_.pods && micros_of(CLOCK_MONOTONIC) < limit) turn(100);
    const double seconds = static_cast<double>(micros_of(CLOCK_MONOTONIC) - started) / 1e6;
    fmt::print(
        R"({{{},"seconds":{:.3f},"late_ms_max":{:.1f},"watch_breaks":{},"client_cpu_s":{:.3f}}})"
        "\n",
        bindings_.as_json(), seconds, static_cast<double>(late_max_) / 1000, watch_breaks_,
        static_cast<double>(micros_of(CLOCK_PROCESS_CPUTIME_ID)) / 1e6);
    return 0;
  }

 private:
  void add(Connection& connection) {
    connection.connect();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = &connection;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd(), &event);
  }

  void start_watch() {
    watching_ = false;
    watch_ = std::make_unique<Connection>(context_, target_);
    add(*watch_);
    auto outcome = watch_->send("GET",
                                fmt::format("{}?watch=true&resourceVersion={}&timeoutSeconds=7200",
                                            kPods, bindings_.version()),
                                "", "");
    while (outcome == Connection::Outcome::kPending) {
      pollfd ready{watch_->fd(), POLLIN, 0};
      ::poll(&ready, 1, 10);
      outcome = watch_->advance();
    }
    if (outcome != Connection::Outcome::kStreaming) {
      give_up(fmt::format("watch: {} {}{}", watch_->status(), watch_->body(), watch_->why()));
    }
    watching_ = true;
    read_watch();
  }

  // A server may end a watch: it goes on where it stopped, and what it missed comes late, for every scheduler alike.
  void read_watch() {
    bytes_.clear();
    const bool over = watch_->receive(bytes_) == Connection::Outcome::kFailed;
    bindings_.take(bytes_, micros_of(CLOCK_MONOTONIC));
    if (!over) return;
    bindings_.forget_rest();
    if (++watch_breaks_ > 100) give_up("watch: " + watch_->why());
    start_watch();
  }

  void settle(Connection& lane, Connection::Outcome outcome) {
    if (outcome == Connection::Outcome::kPending) return;
    if (outcome == Connection::Outcome::kFailed) give_up(lane.why());
    if (lane.status() != 201) give_up(fmt::format("create: {} {}", lane.status(), lane.body()));
    idle_.push_back(&lane);
  }

  // Waits for what comes, at most so long, and takes it.
  void turn(int wait_ms) {
    epoll_event events[64];
    const int ready = epoll_wait(epoll_, events, 64, wait_ms);
    for (int i = 0; i < ready; ++i) {
      auto& connection = *static_cast<Connection*>(events[i].data.ptr);
      if (&connection == watch_.get()) {
        if (watching_) read_watch();
        continue;
      }
      const bool busy = std::ranges::find(idle_, &connection) == idle_.end();
      if (busy) settle(connection, connection.advance());
    }
  }

  // At the rate; PodGroups, nodes and a backlog as fast as the connections take them.
  void create_all(std::string_view path, uint64_t count,
                  const std::function<std::string(uint64_t)>& text) {
    const double rate = path == kPods ? what_.rate : 0;
    const uint64_t started = micros_of(CLOCK_MONOTONIC);
    const auto due_at = [&](uint64_t number) {
      return rate == 0 ? started
                       : started + static_cast<uint64_t>(static_cast<double>(number) * 1e6 / rate);
    };
    uint64_t next = 0;
    while (next < count || idle_.size() < lanes_.size()) {
      const uint64_t now = micros_of(CLOCK_MONOTONIC);
      while (next < count && !idle_.empty() && due_at(next) <= now) {
        if (rate > 0) late_max_ = std::max(late_max_, now - due_at(next));
        Connection& lane = *idle_.back();
        idle_.pop_back();
        settle(lane, lane.send("POST", path, "application/json", text(next++)));
      }
      int wait_ms = 100;
      if (next < count && !idle_.empty() && due_at(next) > now) {
        wait_ms = static_cast<int>(std::ceil(static_cast<double>(due_at(next) - now) / 1000));
      }
      turn(wait_ms);
    }
  }

  const Schedule& what_;
  int epoll_;
  std::vector<std::unique_ptr<Connection>> lanes_;
  std::vector<Connection*> idle_;
  SSL_CTX* context_;
  const Target& target_;
  std::unique_ptr<Connection> watch_;
  bool watching_ = false;
  int watch_breaks_ = 0;
  std::string bytes_;
  Bindings bindings_;
  uint64_t late_max_ = 0;
};

}  // namespace

int run_schedule(const Schedule& what, SSL_CTX* context, const Target& target) {
  return Run(what, context, target).run();
}

}  // namespace tessera::load
