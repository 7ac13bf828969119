#include "load_queues.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "json/parse.h"

namespace tessera::load {
namespace {

constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";
constexpr std::string_view kJobs = "/apis/batch/v1/namespaces/default/jobs";
constexpr std::string_view kQueues = "/apis/tessera.dev/v1alpha1/queues";
constexpr std::string_view kClasses = "/apis/scheduling.k8s.io/v1/priorityclasses";
constexpr int kQuota = 20;

struct JobClass {
  const char* name;
  int priority;
  int cpus;
  uint64_t run_ms;
  uint64_t every_ms;
  uint64_t count;
};
constexpr JobClass kJobClasses[] = {{"small", 50, 1, 200, 100, 350},
                                    {"medium", 100, 5, 500, 500, 100},
                                    {"large", 200, 20, 1000, 1200, 50}};

uint64_t micros_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "tessera_load: {}\n", what);
  std::exit(1);
}

struct Due {
  uint64_t at = 0;  // since the start
  uint64_t queue = 0;
  size_t of_class = 0;
  uint64_t number = 0;
};

std::vector<Due> timetable(const QueueWork& what) {
  std::vector<Due> out;
  for (uint64_t queue = 0; queue < what.cohorts * what.queues; ++queue) {
    for (size_t c = 0; c < std::size(kJobClasses); ++c) {
      const uint64_t count = std::max<uint64_t>(kJobClasses[c].count * what.percent / 100, 1);
      for (uint64_t n = 0; n < count; ++n)
        out.push_back({n * kJobClasses[c].every_ms * 1000, queue, c, n});
    }
  }
  std::ranges::stable_sort(out, {}, &Due::at);
  return out;
}

std::string job_name(const Due& due) {
  return fmt::format("{}-{}-{}", kJobClasses[due.of_class].name, due.queue, due.number);
}

std::string job_text(const Due& due) {
  const JobClass& of = kJobClasses[due.of_class];
  return fmt::format(
      R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"{}"}},"spec":{{"backoffLimit":1000,"template":{{
"metadata":{{"labels":{{"tessera.dev/queue":"queue-{}"}},"annotations":{{"tessera.dev/run-for":"{}ms"}}}},
"spec":{{"restartPolicy":"Never","priorityClassName":"{}","automountServiceAccountToken":false,
"containers":[{{"name":"work","image":"registry.example/work:1","resources":{{"requests":{{"cpu":"{}"}}}}}}]}}}}}}}})",
      job_name(due), due.queue, of.run_ms, of.name, of.cpus);
}

// What became of jobs and pods, from a watch on pods.
class Seen {
 public:
  struct OfClass {
    uint64_t jobs = 0;
    double wait_s = 0;  // sum of created to first bound
    double wait_max_s = 0;
  };

  void created(const std::string& job, uint64_t now) { jobs_.emplace(job, now); }
  size_t done() const { return done_.size(); }
  const std::string& version() const { return version_; }
  void forget_rest() { rest_.clear(); }

  void take(std::string_view bytes, uint64_t now) {
    rest_ += bytes;
    size_t from = 0;
    for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', from)) {
      const auto event = json::parse(std::string_view(rest_).substr(from, end - from));
      if (event) take((*event)["type"].as_string(), (*event)["object"], now);
      from = end + 1;
    }
    rest_.erase(0, from);
  }

  std::string as_json(double seconds, uint64_t capacity) const {
    std::vector<std::string> classes;
    for (size_t c = 0; c < std::size(kJobClasses); ++c) {
      const OfClass& of = classes_[c];
      classes.push_back(fmt::format(
          R"("{}":{{"jobs":{},"wait_mean_s":{:.3f},"wait_max_s":{:.3f}}})", kJobClasses[c].name,
          of.jobs, of.wait_s / std::max(1.0, static_cast<double>(of.jobs)), of.wait_max_s));
    }
    const double whole = seconds * static_cast<double>(capacity);
    return fmt::format(
        R"("done":{},"evicted":{},"seconds":{:.3f},"usage":{:.4f},"useful":{:.4f},"classes":{{{}}})",
        done_.size(), evicted_, seconds, held_cpu_s_ / whole, useful_cpu_s_ / whole,
        fmt::join(classes, ","));
  }

 private:
  struct Pod {
    uint64_t bound = 0;
    bool over = false;
  };

  void take(std::string_view type, const json::Value& object, uint64_t now) {
    const json::Value& meta = object["metadata"];
    version_ = meta["resourceVersion"].str();
    const std::string job = meta["labels"]["job-name"].str();
    const auto known = jobs_.find(job);
    if (known == jobs_.end()) return;
    const size_t c = class_of(job);
    Pod& pod = pods_[meta["name"].str()];
    if (pod.bound == 0 && !object["spec"]["nodeName"].as_string().empty()) {
      pod.bound = now;
      if (started_.insert(job).second) first_start(c, now - known->second);
    }
    const std::string_view phase = object["status"]["phase"].as_string();
    const bool good = phase == "Succeeded";
    if (pod.over || !(good || phase == "Failed" || type == "DELETED")) return;
    pod.over = true;
    const auto cpus = static_cast<double>(kJobClasses[c].cpus);
    if (pod.bound != 0) held_cpu_s_ += cpus * static_cast<double>(now - pod.bound) / 1e6;
    if (!good) ++evicted_;
    if (good && done_.insert(job).second)
      useful_cpu_s_ += cpus * static_cast<double>(kJobClasses[c].run_ms) / 1e3;
  }
  static size_t class_of(const std::string& job) {
    size_t c = 0;
    while (c + 1 < std::size(kJobClasses) && !job.starts_with(kJobClasses[c].name)) ++c;
    return c;
  }
  void first_start(size_t c, uint64_t micros) {
    const double wait = static_cast<double>(micros) / 1e6;
    ++classes_[c].jobs;
    classes_[c].wait_s += wait;
    classes_[c].wait_max_s = std::max(classes_[c].wait_max_s, wait);
  }

  std::string rest_;
  std::string version_ = "0";
  std::unordered_map<std::string, uint64_t> jobs_;  // and when they were created
  std::unordered_map<std::string, Pod> pods_;
  std::unordered_set<std::string> started_;
  std::unordered_set<std::string> done_;
  OfClass classes_[std::size(kJobClasses)];
  uint64_t evicted_ = 0;
  double held_cpu_s_ = 0;  // while bound
  double useful_cpu_s_ = 0;
};

class Run {
 public:
  Run(const QueueWork& what, SSL_CTX* context, const Target& target)
      : what_(what), epoll_(epoll_create1(EPOLL_CLOEXEC)), context_(context), target_(target) {
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
    prepare();
    start_watch();
    fmt::print("ready\n");
    std::fflush(stdout);
    std::getchar();
    const std::vector<Due> due = timetable(what_);
    const uint64_t start = micros_now();
    const auto limit = start + static_cast<uint64_t>(what_.limit_s * 1e6);
    size_t next = 0;
    while (seen_.done() < due.size() && micros_now() < limit) {
      while (next < due.size() && !idle_.empty() && start + due[next].at <= micros_now()) {
        late_max_ = std::max(late_max_, micros_now() - start - due[next].at);
        seen_.created(job_name(due[next]), micros_now());
        post(kJobs, job_text(due[next++]));
      }
      const bool soon = next < due.size() && start + due[next].at < micros_now() + 10'000;
      turn(soon && !idle_.empty() ? 1 : 10);
    }
    const double seconds = static_cast<double>(micros_now() - start) / 1e6;
    fmt::print(R"({{"jobs":{},{},"late_ms_max":{:.1f},"watch_breaks":{}}})"
               "\n",
               due.size(), seen_.as_json(seconds, what_.cohorts * what_.queues * kQuota),
               static_cast<double>(late_max_) / 1000, watch_breaks_);
    return seen_.done() == due.size() ? 0 : 1;
  }

 private:
  void prepare() {
    for (const JobClass& of : kJobClasses) {
      post(
          kClasses,
          fmt::format(
              R"({{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{{"name":"{}"}},"value":{}}})",
              of.name, of.priority));
    }
    const auto queue = [&](const std::string& name, const std::string& spec) {
      post(
          kQueues,
          fmt::format(
              R"({{"apiVersion":"tessera.dev/v1alpha1","kind":"Queue","metadata":{{"name":"{}"}},"spec":{{{}}}}})",
              name, spec));
    };
    const uint64_t whole = what_.queues * kQuota;
    for (uint64_t c = 0; c < what_.cohorts; ++c) {
      queue(fmt::format("cohort-{}", c),
            fmt::format(R"("quota":{{"cpu":"{0}"}},"limit":{{"cpu":"{0}"}})", whole));
    }
    for (uint64_t q = 0; q < what_.cohorts * what_.queues; ++q) {
      queue(fmt::format("queue-{}", q),
            fmt::format(R"("parent":"cohort-{}","quota":{{"cpu":"{}"}},"limit":{{"cpu":"{}"}})",
                        q / what_.queues, kQuota, kQuota + 100));
    }
    while (idle_.size() < lanes_.size()) turn(100);
  }

  void add(Connection& connection) {
    connection.connect();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = &connection;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd(), &event);
  }

  void post(std::string_view path, const std::string& body) {
    while (idle_.empty()) turn(100);
    Connection& lane = *idle_.back();
    idle_.pop_back();
    settle(lane, lane.send("POST", std::string(path), "application/json", body));
  }

  void settle(Connection& lane, Connection::Outcome outcome) {
    if (outcome == Connection::Outcome::kPending) return;
    if (outcome == Connection::Outcome::kFailed) give_up(lane.why());
    if (lane.status() != 201) give_up(fmt::format("create: {} {}", lane.status(), lane.body()));
    idle_.push_back(&lane);
  }

  void start_watch() {
    watching_ = false;
    watch_ = std::make_unique<Connection>(context_, target_);
    add(*watch_);
    auto outcome = watch_->send(
        "GET",
        fmt::format("{}?watch=true&resourceVersion={}&timeoutSeconds=7200", kPods, seen_.version()),
        "", "");
    while (outcome == Connection::Outcome::kPending) {
      pollfd ready{watch_->fd(), POLLIN, 0};
      ::poll(&ready, 1, 10);
      outcome = watch_->advance();
    }
    if (outcome != Connection::Outcome::kStreaming)
      give_up(fmt::format("watch: {} {}{}", watch_->status(), watch_->body(), watch_->why()));
    watching_ = true;
    read_watch();
  }

  void read_watch() {
    bytes_.clear();
    const bool over = watch_->receive(bytes_) == Connection::Outcome::kFailed;
    seen_.take(bytes_, micros_now());
    if (!over) return;
    seen_.forget_rest();
    if (++watch_breaks_ > 100) give_up("watch: " + watch_->why());
    start_watch();
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

  const QueueWork& what_;
  int epoll_;
  std::vector<std::unique_ptr<Connection>> lanes_;
  std::vector<Connection*> idle_;
  SSL_CTX* context_;
  const Target& target_;
  std::unique_ptr<Connection> watch_;
  bool watching_ = false;
  int watch_breaks_ = 0;
  std::string bytes_;
  Seen seen_;
  uint64_t late_max_ = 0;
};

}  // namespace

int run_queues(const QueueWork& what, SSL_CTX* context, const Target& target) {
  return Run(what, context, target).run();
}

}  // namespace tessera::load
