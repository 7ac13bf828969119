#include "sim/replay_api.h"

#include <charconv>
#include <future>
#include <memory>

#include "apiserver/api.h"
#include "apiserver/local_client.h"
#include "base/check.h"
#include "scheduler/scheduler.h"
#include "sim/kubelet.h"

namespace tessera::sim {
namespace {

namespace core = scheduler::core;
using json::Value;
using kube::Object;

constexpr size_t kCreatesInFlight = 512;

int64_t number_in(std::string_view text) {
  int64_t out = -1;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// Creates the pods in order and watches what becomes of each. Lives on the driver's executor.
class Driver : public std::enable_shared_from_this<Driver> {
 public:
  struct Outcome {
    bool running = false;
    bool told = false;  // no node can take it
    std::string node;
    std::string gpus;
    int64_t milli = 0;
  };

  Driver(const TraceWorkload& workload, const PlannedRun& planned, size_t count,
         kube::Client& client, const base::Clock& clock, std::function<void(int)> progress)
      : workload_(workload),
        planned_(planned),
        outcomes_(count),
        client_(client),
        clock_(clock),
        progress_(std::move(progress)) {}

  void start(base::Executor& executor) {
    executor.post([self = shared_from_this()] { self->begin(); });
  }
  std::future<base::Status> done() { return promise_.get_future(); }
  void stop() { watch_.reset(); }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  base::Duration took() const { return end_ - begin_; }

 private:
  void begin() {
    kube::Request request;
    request.verb = kube::Verb::kList;
    request.gvr = kube::core_v1("pods");
    request.ns = "default";
    watch_ = client_.watch(
        request, [this](const kube::WatchEvent& event) { see(event.object); },
        [this](const base::Status& status) { finish(status ? base::Status() : status); });
    begin_ = clock_.monotonic();
    create_more();
  }

  void create_more() {
    while (in_flight_ < kCreatesInFlight && created_ < outcomes_.size()) {
      const size_t arrival = created_++;
      ++in_flight_;
      client_.create(kube::core_v1("pods"), "default",
                     pod_of(workload_.pods[planned_.arrivals.pods[arrival]], arrival),
                     [self = shared_from_this(), arrival](const kube::Reply& reply) {
                       --self->in_flight_;
                       if (!reply) {
                         return self->finish(base::error(
                             reply.error().in(fmt::format("arrival {} was refused", arrival))));
                       }
                       self->create_more();
                     });
    }
  }

  void see(const Object& pod) {
    const std::string_view name = pod.name();
    const int64_t arrival = name.size() > 1 ? number_in(name.substr(1)) : -1;
    if (arrival < 0 || arrival >= static_cast<int64_t>(outcomes_.size())) return;
    Outcome& outcome = outcomes_[static_cast<size_t>(arrival)];
    const bool was_over = outcome.running || outcome.told;
    outcome.running = pod.get("status", "phase").as_string() == "Running";
    outcome.node = pod.get("spec", "nodeName").as_string();
    outcome.gpus = pod.annotation("tessera.dev/gpus");
    const int64_t share = number_in(pod.annotation("tessera.dev/share-milli"));
    outcome.milli = share > 0 ? share : core::kMilliPerGpu;
    for (const Value& condition : pod.get("status", "conditions").items()) {
      outcome.told |= condition["reason"].as_string() == "Unschedulable";
    }
    if (was_over || !(outcome.running || outcome.told)) return;
    ++over_;
    if (progress_ && over_ % 128 == 0) progress_(static_cast<int>(100 * over_ / outcomes_.size()));
    if (over_ == outcomes_.size()) finish({});
  }

  void finish(base::Status status) {
    if (finished_) return;
    finished_ = true;
    end_ = clock_.monotonic();
    promise_.set_value(std::move(status));
  }

  const TraceWorkload& workload_;
  const PlannedRun& planned_;
  std::vector<Outcome> outcomes_;
  kube::Client& client_;
  const base::Clock& clock_;
  std::function<void(int)> progress_;
  std::unique_ptr<base::Subscription> watch_;
  std::promise<base::Status> promise_;
  size_t created_ = 0;
  size_t in_flight_ = 0;
  size_t over_ = 0;
  bool finished_ = false;
  base::Duration begin_;
  base::Duration end_;
};

// Runs on an executor and waits for it: the parts are made and taken down where they live.
template <class F>
void on(base::Executor& executor, F task) {
  auto promise = std::make_shared<std::promise<void>>();
  auto future = promise->get_future();
  executor.post([task = std::move(task), promise]() mutable {
    task();
    promise->set_value();
  });
  future.wait();
}

std::optional<core::Placement> placement_of(const Driver::Outcome& outcome) {
  if (outcome.node.empty()) return std::nullopt;
  core::Placement out;
  // "n-<rank>": the fleet's names.
  out.node =
      core::NodeId(static_cast<int32_t>(number_in(std::string_view(outcome.node).substr(2))));
  out.milli = static_cast<int32_t>(outcome.milli);
  std::string_view rest = outcome.gpus;
  while (!rest.empty()) {
    const size_t cut = rest.find(',');
    const int64_t gpu = number_in(rest.substr(0, cut));
    if (gpu >= 0 && gpu < core::kGpusPerNodeMax) out.devices |= uint32_t{1} << gpu;
    rest = cut == std::string_view::npos ? std::string_view() : rest.substr(cut + 1);
  }
  return out;
}

// Waits until the scheduler has seen all nodes, so that the first pods have the whole fleet to choose from.
void wait_for_nodes(const ApiReplayParts& parts, scheduler::Scheduler& scheduler,
                    Kubelets& kubelets, size_t nodes) {
  bool ready = false;
  while (!ready) {
    bool registered = false;
    on(*parts.kubelets, [&] { registered = kubelets.registered(); });
    on(*parts.scheduler, [&] { ready = registered && scheduler.stats().nodes == nodes; });
    auto promise = std::make_shared<std::promise<void>>();
    auto future = promise->get_future();
    parts.driver->post_after(base::millis(10), [promise] { promise->set_value(); });
    future.wait();
  }
}

}  // namespace

Fleet fleet_of(const TraceWorkload& workload, const std::vector<uint32_t>& ranks) {
  Fleet fleet;
  fleet.name = workload.name;
  fleet.nodes.resize(workload.nodes.size());
  for (size_t i = 0; i < workload.nodes.size(); ++i) {
    const TraceNode& from = workload.nodes[i];
    FleetNode& node = fleet.nodes[ranks[i]];
    node.name = fmt::format("n-{:06}", ranks[i]);
    node.gpus = from.gpus;
    node.cpu_milli = from.cpu_milli;
    node.memory_bytes = from.memory_mib << 20;
    node.pods_max = 1001;
    node.trace_model = from.model;
    for (int gpu = 0; gpu < from.gpus; ++gpu) {
      node.devices.push_back({fmt::format("GPU-{}-{}", ranks[i], gpu), "nvidia.com/gpu", gpu});
    }
  }
  return fleet;
}

Value pod_of(const TracePod& pod, size_t arrival) {
  Value requests = Value::object({{"cpu", fmt::format("{}m", pod.cpu_milli)},
                                  {"memory", fmt::format("{}Mi", pod.memory_mib)}});
  Value limits = Value::object();
  Value annotations = Value::object();
  const bool whole = pod.gpus > 0 && pod.gpu_milli == core::kMilliPerGpu;
  if (whole) {
    limits.set("nvidia.com/gpu", fmt::format("{}", pod.gpus));
  } else if (pod.gpus > 0) {
    annotations.set("tessera.dev/gpu-milli", fmt::format("{}", pod.gpu_milli));
  }
  if (!pod.models.empty()) {
    std::string models;
    for (const std::string& model : pod.models) models += (models.empty() ? "" : "|") + model;
    annotations.set("tessera.dev/gpu-model", models);
  }
  return Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", Value::object({{"name", fmt::format("p{}", arrival)},
                                   {"namespace", "default"},
                                   {"annotations", std::move(annotations)}})},
       {"spec", Value::object(
                    {{"schedulerName", "tessera"},
                     {"containers",
                      Value::array({Value::object(
                          {{"name", "main"},
                           {"image", "registry.example/work:1"},
                           {"resources", Value::object({{"requests", std::move(requests)},
                                                        {"limits", std::move(limits)}})}})})}})}});
}

base::Result<ApiReplayResult> run_through_api(const TraceWorkload& workload,
                                              const PlannedRun& planned, int load_percent,
                                              const ApiReplayParts& parts,
                                              std::function<void(int percent)> progress) {
  base::Random random(planned.arrivals.seed);
  apiserver::Api::Options api_options;
  api_options.taint_new_nodes = false;
  api_options.data_dir = parts.data_dir;
  api_options.clock = parts.clock;
  api_options.executor = parts.commits;
  api_options.random = random.fork();
  TS_TRY(const auto api, apiserver::Api::open(std::move(api_options)));
  auto client = [&](base::Executor& executor, std::string_view name) {
    return std::make_unique<apiserver::LocalClient>(*api, executor, apiserver::system_caller(name));
  };
  const auto scheduler_client = client(*parts.scheduler, "scheduler");
  const auto kubelet_client = client(*parts.kubelets, "kubelets");
  const auto driver_client = client(*parts.driver, "driver");
  scheduler::Scheduler::Options scheduling;
  scheduling.policy = planned.policy;
  scheduling.mix = [&workload](core::Interner& names) { return typical_mix(workload, names); };
  auto scheduler = std::make_unique<scheduler::Scheduler>(*scheduler_client, *parts.scheduler,
                                                          *parts.clock, random.fork(), scheduling);
  Kubelets::Options running;
  running.times.start = {};
  auto kubelets =
      std::make_unique<Kubelets>(*kubelet_client, *parts.kubelets, *parts.clock, random.fork(),
                                 fleet_of(workload, planned.arrivals.node_rank), running);
  scheduler->start();
  kubelets->start();
  wait_for_nodes(parts, *scheduler, *kubelets, workload.nodes.size());
  const size_t count = arrivals_within(workload, planned, load_percent);
  auto driver =
      std::make_shared<Driver>(workload, planned, count, *driver_client, *parts.clock, progress);
  auto done = driver->done();
  driver->start(*parts.driver);
  const base::Status status = done.get();
  on(*parts.driver, [&] { driver->stop(); });
  on(*parts.kubelets, [&] { kubelets.reset(); });
  on(*parts.scheduler, [&] { scheduler.reset(); });
  api->close();
  if (!status) return base::error(status.error());
  ApiReplayResult result;
  result.pods = count;
  const auto& outcomes = driver->outcomes();
  result.run = run_rows(workload, planned, load_percent,
                        [&](size_t arrival) { return placement_of(outcomes[arrival]); });
  result.run.seconds = driver->took().seconds();
  for (const auto& outcome : outcomes) {
    result.running += outcome.running ? 1 : 0;
    result.waiting += outcome.running ? 0 : 1;
  }
  return result;
}

}  // namespace tessera::sim
