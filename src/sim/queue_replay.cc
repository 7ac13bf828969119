#include "sim/queue_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <queue>
#include <string>

#include "base/check.h"
#include "scheduler/queueing/engine.h"

namespace tessera::sim {
namespace {

namespace queueing = scheduler::queueing;
using queueing::GangId;
using queueing::MemberId;

constexpr int64_t kHour = 3600;
constexpr int64_t kCoresPerGpu = 8;
constexpr int64_t kGi = int64_t{1} << 30;
constexpr int64_t kGiPerGpu = 64;

enum Note : uint64_t { kStarted = 1, kEnded = 2, kEvicted = 3 };

base::Time time_at(int64_t second) {
  return {base::seconds(second).ns};
}

bool by_tenant(QueuePolicy policy) {
  return policy == QueuePolicy::kTessera || policy == QueuePolicy::kDrf;
}

queueing::EngineOptions engine_options(QueuePolicy policy, const QueueReplayOptions& options) {
  queueing::EngineOptions made;
  made.reservations_max = 0;
  if (policy == QueuePolicy::kEasy) made.reservations_max = 1;
  if (policy == QueuePolicy::kTessera) {
    made.reservations_max = options.reservations_max;
    if (options.patience_s > 0) made.patience = base::seconds(options.patience_s);
    if (options.half_life_s > 0) made.half_life = base::seconds(options.half_life_s);
  }
  return made;
}

queueing::QueueSpec queue_spec(QueuePolicy policy, std::string name, int64_t weight,
                               const QueueReplayOptions& options) {
  queueing::QueueSpec spec;
  spec.name = std::move(name);
  spec.weight = weight;
  spec.strict_fifo = policy == QueuePolicy::kStrictFifo;
  spec.reservations = policy == QueuePolicy::kEasy ? 1 : 0;
  if (policy == QueuePolicy::kTessera) {
    spec.reservations = options.reservations;
    spec.runtime_min = base::seconds(options.runtime_min_s);
  }
  return spec;
}

class Replay {
 public:
  Replay(QueuePolicy policy, const std::vector<QueueJob>& jobs, const QueueReplayOptions& options)
      : policy_(policy),
        jobs_(jobs),
        options_(options),
        evicts_(policy == QueuePolicy::kTessera && options.reclaim),
        engine_(engine_options(policy, options)),
        runs_(jobs.size()) {
    for (int32_t n = 0; n < options.nodes; ++n) add_node(n);
    std::map<std::string, size_t> tenants;
    for (const QueueJob& job : jobs) tenants.emplace(job.tenant, tenants.size());
    for (size_t j = 0; j < jobs.size(); ++j) runs_[j].tenant = tenants.at(jobs[j].tenant);
    weigh(tenants.size());
    std::vector<queueing::QueueSpec> specs;
    for (const auto& [name, index] : tenants) {
      if (by_tenant(policy)) specs.push_back(queue_spec(policy, name, weights_[index], options));
    }
    if (!by_tenant(policy)) specs.push_back(queue_spec(policy, "all", 1, options));
    engine_.set_queues(std::move(specs), time_at(0));
    running_.resize(tenants.size(), 0);
    waiting_.resize(tenants.size(), 0);
  }

  QueueScore run() {
    const int64_t last = jobs_.empty() ? 0 : jobs_.back().arrival_s;
    const int64_t gpus = int64_t{options_.nodes} * options_.gpus_per_node;
    QueueMeter meter(gpus, weights_, last);
    meter_ = &meter;
    size_t arrived = 0;
    uint64_t cycles = 0;
    for (size_t left = jobs_.size(); left > 0;) {
      int64_t next = (now_ / kHour + 1) * kHour;
      if (arrived < jobs_.size()) next = std::min(next, jobs_[arrived].arrival_s);
      if (!ends_.empty()) next = std::min(next, ends_.top().at);
      meter.stretch(next, running_, waiting_);
      now_ = next;
      bool changed = false;
      while (!ends_.empty() && ends_.top().at <= now_) {
        const End end = ends_.top();
        ends_.pop();
        if (runs_[end.job].starts != end.start) continue;  // evicted since
        finish(end.job);
        changed = true;
        --left;
      }
      for (; arrived < jobs_.size() && jobs_[arrived].arrival_s <= now_; ++arrived) {
        runs_[arrived].line_since = now_;
        waiting_[runs_[arrived].tenant] += jobs_[arrived].gpus;
        line_up(arrived);
        changed = true;
      }
      if (changed || evicts_) cycles += decide();
    }
    QueueScore score = meter.finish();
    score.cycles = cycles;
    return score;
  }

 private:
  struct Run {
    size_t tenant = 0;
    GangId gang{};
    int64_t line_since = 0;
    int64_t waited = 0;
    int64_t saved = 0;  // of the duration, at the last checkpoint of earlier runs
    int64_t started = 0;
    uint32_t starts = 0;
    bool running = false;
  };
  struct End {
    int64_t at = 0;
    size_t job = 0;
    uint32_t start = 0;
    bool operator>(const End& other) const {
      return std::pair(at, job) > std::pair(other.at, other.job);
    }
  };

  void weigh(size_t tenants) {
    weights_.assign(tenants, 1);
    if (!options_.weights_by_use) return;
    std::vector<double> asked(tenants, 0);
    double all = 0;
    for (size_t j = 0; j < jobs_.size(); ++j) {
      const double work =
          static_cast<double>(jobs_[j].gpus) * static_cast<double>(jobs_[j].duration_s);
      asked[runs_[j].tenant] += work;
      all += work;
    }
    for (size_t t = 0; t < tenants; ++t)
      weights_[t] = std::max<int64_t>(1, std::llround(1000 * asked[t] / all));
  }

  void add_node(int32_t n) {
    scheduler::core::Cluster& cluster = engine_.cluster();
    scheduler::core::NodeSpec spec;
    spec.name = cluster.names().string(fmt::format("node-{}", n));
    spec.gpus = options_.gpus_per_node;
    spec.cpu_milli = spec.gpus * kCoresPerGpu * 1000;
    spec.memory_bytes = spec.gpus * kGiPerGpu * kGi;
    spec.gpu_memory_mib = 32'768;
    spec.model = cluster.names().model("V100");
    spec.gpu_resource = cluster.names().resource("nvidia.com/gpu");
    cluster.add_node(std::move(spec));
  }

  queueing::MemberSpec pod_of(int32_t gpus) {
    auto& request = requests_[gpus];
    if (!request) {
      scheduler::core::PodRequest made;
      made.shape.cpu_milli = gpus * kCoresPerGpu * 1000;
      made.shape.memory_bytes = gpus * kGiPerGpu * kGi;
      made.shape.gpu.count = gpus;
      made.shape.gpu.milli = scheduler::core::kMilliPerGpu;
      request = std::make_shared<const scheduler::core::PodRequest>(std::move(made));
    }
    queueing::MemberSpec spec;
    spec.request = request;
    spec.amounts.add(queueing::kGpu, gpus * queueing::kUnitsPerGpu);
    return spec;
  }

  void line_up(size_t j) {
    const QueueJob& job = jobs_[j];
    const int32_t per_node = options_.gpus_per_node;
    queueing::GangSpec spec;
    spec.name = fmt::format("{}/{}", job.tenant, j);
    spec.queue = by_tenant(policy_) ? job.tenant : "all";
    spec.created = time_at(job.arrival_s);
    spec.min_members = (job.gpus + per_node - 1) / per_node;
    spec.runtime = base::seconds(job.limit_s);  // counted anew at each start
    spec.preempts = spec.preemptible = evicts_;
    const GangId gang = engine_.add_gang(std::move(spec));
    for (int32_t left = job.gpus; left > 0; left -= per_node)
      engine_.add_member(gang, pod_of(std::min(left, per_node)));
    runs_[j].gang = gang;
    if (job_of_.size() <= static_cast<size_t>(gang.value))
      job_of_.resize(static_cast<size_t>(gang.value) + 1);
    job_of_[static_cast<size_t>(gang.value)] = j;
  }

  void start(size_t j) {
    Run& run = runs_[j];
    run.running = true;
    run.started = now_;
    run.waited += now_ - run.line_since;
    ++run.starts;
    ends_.push({now_ + jobs_[j].duration_s - run.saved, j, run.starts});
    waiting_[run.tenant] -= jobs_[j].gpus;
    running_[run.tenant] += jobs_[j].gpus;
    meter_->note(kStarted, j, now_);
  }

  void finish(size_t j) {
    Run& run = runs_[j];
    TS_CHECK(run.running, "job {} ends without running", j);
    run.running = false;
    running_[run.tenant] -= jobs_[j].gpus;
    engine_.remove_gang(run.gang, time_at(now_));
    meter_->finished(jobs_[j].gpus, run.waited);
    meter_->note(kEnded, j, now_);
  }

  int64_t kept(int64_t ran) const {
    return options_.checkpoint_s > 0 ? ran - ran % options_.checkpoint_s : 0;
  }

  void evict(size_t j) {
    Run& run = runs_[j];
    TS_CHECK(run.running, "job {} is evicted without running", j);
    const int64_t ran = now_ - run.started;
    run.saved += kept(ran);
    meter_->lost(now_, (ran - kept(ran)) * jobs_[j].gpus);
    meter_->note(kEvicted, j, now_);
    run.running = false;
    ++run.starts;  // its end is no longer true
    run.line_since = now_;
    running_[run.tenant] -= jobs_[j].gpus;
    waiting_[run.tenant] += jobs_[j].gpus;
    engine_.remove_gang(run.gang, time_at(now_));
    line_up(j);
  }

  void tell_checkpoints() {
    for (const Run& run : runs_) {
      if (!run.running) continue;
      const base::Time saved = time_at(run.started + kept(now_ - run.started));
      for (MemberId member : engine_.gang(run.gang).members) engine_.set_saved(member, saved);
    }
  }

  uint64_t decide() {
    if (evicts_) tell_checkpoints();
    for (uint64_t cycles = 1;; ++cycles) {
      const queueing::Plan plan = engine_.cycle(time_at(now_));
      std::vector<size_t> jobs;
      for (const queueing::Evict& evict : plan.evicts) {
        const size_t j = job_of_[static_cast<size_t>(engine_.member(evict.member).gang.value)];
        if (std::find(jobs.begin(), jobs.end(), j) == jobs.end()) jobs.push_back(j);
      }
      for (const queueing::Bind& bind : plan.binds) {
        const size_t j = job_of_[static_cast<size_t>(engine_.member(bind.member).gang.value)];
        if (!runs_[j].running) start(j);
      }
      for (size_t j : jobs) evict(j);
      if (jobs.empty()) return cycles;
    }
  }

  QueuePolicy policy_;
  const std::vector<QueueJob>& jobs_;
  QueueReplayOptions options_;
  bool evicts_;
  queueing::Engine engine_;
  std::vector<Run> runs_;
  std::vector<size_t> job_of_;    // by GangId
  std::vector<int64_t> weights_;  // by tenant
  std::vector<int64_t> running_;
  std::vector<int64_t> waiting_;
  std::map<int32_t, std::shared_ptr<const scheduler::core::PodRequest>> requests_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  QueueMeter* meter_ = nullptr;
  int64_t now_ = 0;
};

}  // namespace

std::string_view name_of(QueuePolicy policy) {
  switch (policy) {
    case QueuePolicy::kTessera:
      return "tessera";
    case QueuePolicy::kStrictFifo:
      return "strict-fifo";
    case QueuePolicy::kBestEffortFifo:
      return "best-effort-fifo";
    case QueuePolicy::kEasy:
      return "easy";
    case QueuePolicy::kDrf:
      return "drf";
  }
  return "unknown";
}

std::optional<QueuePolicy> parse_queue_policy(std::string_view name) {
  for (QueuePolicy policy : kQueuePolicies) {
    if (name_of(policy) == name) return policy;
  }
  return std::nullopt;
}

QueueScore replay_queues(QueuePolicy policy, const std::vector<QueueJob>& jobs,
                         const QueueReplayOptions& options) {
  return Replay(policy, jobs, options).run();
}

}  // namespace tessera::sim
