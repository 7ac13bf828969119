#include "sim/replay.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <unordered_map>

#include "scheduler/core/scheduler.h"

namespace tessera::sim {
namespace {

namespace core = scheduler::core;

constexpr int64_t kBytesPerMib = int64_t{1} << 20;
constexpr int64_t kPodsPerNode = 1001;  // what the published experiments allow
constexpr int kLoadMax = 1000;

// numerator / denominator, rounded half to even.
int64_t round_half_even(int64_t numerator, int64_t denominator) {
  int64_t quotient = numerator / denominator;
  int64_t twice = 2 * (numerator % denominator);
  if (twice > denominator || (twice == denominator && quotient % 2 != 0)) ++quotient;
  return quotient;
}

// Sums of rows by whole percent of arrived load.
class Bins {
 public:
  Bins(int64_t gpus, int64_t weight_total, int load_percent)
      : gpus_(gpus), weight_total_(weight_total), bins_(static_cast<size_t>(load_percent) + 1) {}

  int64_t percent(int64_t milli) const { return round_half_even(milli, 10 * gpus_); }
  void add(int64_t arrived_milli, int64_t used_milli, int64_t frag) {
    int64_t at = percent(arrived_milli);
    if (at >= static_cast<int64_t>(bins_.size())) return;
    Bin& bin = bins_[static_cast<size_t>(at)];
    ++bin.rows;
    bin.allocation += round_half_even(100 * used_milli, 10 * gpus_);
    bin.fragmentation +=
        std::llround(10.0 * static_cast<double>(frag) / static_cast<double>(weight_total_) /
                     static_cast<double>(gpus_));
  }
  void write(ReplayRun& run) const {
    for (size_t at = 0; at < bins_.size(); ++at) {
      const Bin& bin = bins_[at];
      if (bin.rows == 0) continue;
      auto mean = [&](int64_t hundredths) {
        double value = static_cast<double>(hundredths) / static_cast<double>(bin.rows) / 100.0;
        return std::round(value * 10'000.0) / 10'000.0;
      };
      run.load.push_back(static_cast<int>(at));
      run.allocation.push_back(mean(bin.allocation));
      run.fragmentation.push_back(mean(bin.fragmentation));
    }
  }

 private:
  struct Bin {
    int64_t rows = 0;
    int64_t allocation = 0;  // hundredths of a percent
    int64_t fragmentation = 0;
  };
  int64_t gpus_;
  int64_t weight_total_;
  std::vector<Bin> bins_;
};

// Models are numbered in the order of their names, so that ties between groups of typical pods do
// not hang on the order of nodes.
void name_models(core::Interner& names, const TraceWorkload& workload) {
  std::set<std::string> models;
  for (const TraceNode& node : workload.nodes) models.insert(node.model);
  for (const TracePod& pod : workload.pods) models.insert(pod.models.begin(), pod.models.end());
  for (const std::string& model : models) names.model(model);
}

void add_nodes(core::Cluster& cluster, const TraceWorkload& workload,
               const std::vector<uint32_t>& ranks) {
  std::vector<size_t> by_rank(ranks.size());
  for (size_t n = 0; n < ranks.size(); ++n) by_rank[ranks[n]] = n;
  for (size_t n : by_rank) {
    const TraceNode& node = workload.nodes[n];
    core::NodeSpec spec;
    spec.name = cluster.names().string(node.name);
    spec.cpu_milli = node.cpu_milli;
    spec.memory_bytes = node.memory_mib * kBytesPerMib;
    spec.pods_max = kPodsPerNode;
    spec.gpus = node.gpus;
    spec.model = cluster.names().model(node.model);
    cluster.add_node(std::move(spec));
  }
}

core::PodRequest request_of(const TracePod& pod, core::Interner& names) {
  core::PodRequest request;
  request.shape.cpu_milli = pod.cpu_milli;
  request.shape.memory_bytes = pod.memory_mib * kBytesPerMib;
  request.shape.gpu.count = pod.gpus;
  if (pod.gpus > 0) request.shape.gpu.milli = pod.gpu_milli;
  for (const std::string& model : pod.models) request.shape.models.push_back(names.model(model));
  std::sort(request.shape.models.begin(), request.shape.models.end());
  return request;
}

// One request a pod; pods of equal shape share it.
std::vector<std::shared_ptr<const core::PodRequest>> requests_of(const std::vector<TracePod>& pods,
                                                                 core::Interner& names) {
  std::vector<std::shared_ptr<const core::PodRequest>> requests;
  std::unordered_multimap<uint64_t, std::shared_ptr<const core::PodRequest>> known;
  for (const TracePod& pod : pods) {
    auto request = std::make_shared<const core::PodRequest>(request_of(pod, names));
    uint64_t hash = core::hash_of(request->shape);
    auto [first, last] = known.equal_range(hash);
    auto same =
        std::find_if(first, last, [&](const auto& e) { return e.second->shape == request->shape; });
    requests.push_back(same == last ? known.emplace(hash, request)->second : same->second);
  }
  return requests;
}

double at_or_before(const ReplayRun& run, const std::vector<double>& values, int percent) {
  auto above = std::upper_bound(run.load.begin(), run.load.end(), percent);
  return above == run.load.begin() ? 0.0
                                   : values[static_cast<size_t>(above - run.load.begin() - 1)];
}

base::Status check_options(const ReplayOptions& options) {
  if (options.load_percent < 1 || options.load_percent > kLoadMax) {
    return base::error(base::Code::kInvalid, "load is {}: must be 1 to {} percent",
                       options.load_percent, kLoadMax);
  }
  if (options.policies.empty())
    return base::error(base::Code::kInvalid, "no policy: name at least one");
  return {};
}

base::Result<Arrivals> arrivals_for(const TraceWorkload& workload, uint64_t seed,
                                    int load_percent) {
  if (workload.arrivals.empty()) {
    return generate_arrivals(workload.nodes, workload.pods, seed, load_percent);
  }
  std::string known;
  for (const Arrivals& arrivals : workload.arrivals) {
    if (arrivals.seed == seed) return arrivals;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", arrivals.seed);
  }
  return base::error(base::Code::kInvalid, "the arrivals file has no seed {}: choose from {}", seed,
                     known);
}

}  // namespace

double ReplayRun::allocation_at(int percent) const {
  return at_or_before(*this, allocation, percent);
}

double ReplayRun::fragmentation_at(int percent) const {
  return at_or_before(*this, fragmentation, percent);
}

base::Result<std::vector<PlannedRun>> plan_runs(const TraceWorkload& workload,
                                                const ReplayOptions& options) {
  TS_TRY_STATUS(check_options(options));
  if (gpu_milli_total(workload.nodes) == 0) {
    return base::error(base::Code::kInvalid,
                       "{}: no node has a GPU: allocation would have no meaning",
                       options.nodes_path);
  }
  std::vector<uint64_t> seeds = options.seeds;
  if (seeds.empty()) {
    for (const Arrivals& arrivals : workload.arrivals) seeds.push_back(arrivals.seed);
  }
  if (seeds.empty()) seeds.push_back(42);
  std::vector<PlannedRun> planned;
  for (core::Policy policy : options.policies) {
    for (uint64_t seed : seeds) {
      TS_TRY(Arrivals arrivals, arrivals_for(workload, seed, options.load_percent));
      planned.push_back({policy, std::move(arrivals)});
    }
  }
  return planned;
}

ReplayRun run_one(const TraceWorkload& workload, const PlannedRun& planned, int load_percent,
                  const std::function<void(int percent)>& progress) {
  return run_rows(workload, planned, load_percent, {}, progress);
}

ReplayRun run_rows(const TraceWorkload& workload, const PlannedRun& planned, int load_percent,
                   const Decide& recorded, const std::function<void(int percent)>& progress) {
  core::Cluster cluster;
  name_models(cluster.names(), workload);
  add_nodes(cluster, workload, planned.arrivals.node_rank);
  auto requests = requests_of(workload.pods, cluster.names());
  core::ArrivalCounts counts;
  for (const auto& request : requests) counts.add(request->shape);
  core::Scheduler scheduler(
      {.policy = planned.policy, .mix = counts.mix(), .seed = planned.arrivals.seed});
  const core::FragMeter& meter = scheduler.meter();

  std::vector<int64_t> frag_of_node;
  for (const core::NodeLoad& load : cluster.loads()) frag_of_node.push_back(meter.of(load));
  int64_t frag = std::accumulate(frag_of_node.begin(), frag_of_node.end(), int64_t{0});
  int64_t arrived_milli = 0;
  int64_t used_milli = 0;
  ReplayRun run;
  Bins bins(gpu_milli_total(workload.nodes) / core::kMilliPerGpu, meter.weight_total(),
            load_percent);
  for (uint32_t pod : planned.arrivals.pods) {
    const auto& request = requests[pod];
    int64_t milli = request->shape.gpu.count * request->shape.gpu.milli;
    if (bins.percent(arrived_milli + milli) > load_percent) break;
    arrived_milli += milli;
    ++run.arrived;
    const auto placement = recorded ? recorded(static_cast<size_t>(run.arrived) - 1)
                                    : scheduler.place(cluster, *request);
    if (placement) {
      cluster.add_pod(request, *placement);
      used_milli += milli;
      int64_t& of_node = frag_of_node[static_cast<size_t>(placement->node.value)];
      int64_t now = meter.of(cluster.load(placement->node));
      frag += now - of_node;
      of_node = now;
    } else {
      ++run.failed;
    }
    bins.add(arrived_milli, used_milli, frag);
    if (progress && run.arrived % 256 == 0) {
      progress(
          static_cast<int>(100 * static_cast<size_t>(run.arrived) / planned.arrivals.pods.size()));
    }
  }
  run.workload = workload.name;
  run.policy = std::string(core::name_of(planned.policy));
  run.seed = planned.arrivals.seed;
  bins.write(run);
  return run;
}

size_t arrivals_within(const TraceWorkload& workload, const PlannedRun& planned, int load_percent) {
  const int64_t gpus = gpu_milli_total(workload.nodes) / core::kMilliPerGpu;
  int64_t arrived = 0;
  size_t count = 0;
  for (const uint32_t index : planned.arrivals.pods) {
    const TracePod& pod = workload.pods[index];
    arrived += int64_t{pod.gpus} * pod.gpu_milli;
    if (round_half_even(arrived, 10 * gpus) > load_percent) break;
    ++count;
  }
  return count;
}

core::TypicalMix typical_mix(const TraceWorkload& workload, core::Interner& names) {
  name_models(names, workload);
  core::ArrivalCounts counts;
  for (const auto& request : requests_of(workload.pods, names)) counts.add(request->shape);
  return counts.mix();
}

base::Result<ReplayReport> run_replay(const ReplayOptions& options, const ReplayHooks& hooks) {
  TS_TRY(TraceWorkload workload,
         read_workload(options.nodes_path, options.pods_path, options.arrivals_path));
  TS_TRY(std::vector<PlannedRun> planned, plan_runs(workload, options));
  ReplayReport report;
  report.nodes = static_cast<int64_t>(workload.nodes.size());
  report.gpus = gpu_milli_total(workload.nodes) / core::kMilliPerGpu;
  for (size_t i = 0; i < planned.size(); ++i) {
    auto show = [&](int percent) {
      if (!hooks.progress) return;
      hooks.progress({i, planned.size(), std::string(core::name_of(planned[i].policy)),
                      planned[i].arrivals.seed, percent});
    };
    base::Duration start = hooks.clock ? hooks.clock->monotonic() : base::Duration();
    report.runs.push_back(run_one(workload, planned[i], options.load_percent, show));
    ReplayRun& run = report.runs.back();
    if (hooks.clock) run.seconds = (hooks.clock->monotonic() - start).seconds();
    if (hooks.peak_rss_mb) run.peak_rss_mb = hooks.peak_rss_mb();
    show(100);
  }
  return report;
}

}  // namespace tessera::sim
