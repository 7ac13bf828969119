#include "sim/world.h"

#include <algorithm>

#include "base/check.h"
#include "sim/rest.h"
#include "sim/world_state.h"

namespace tessera::sim {
namespace {

using base::Duration;
using base::Time;
using json::Value;
using kube::Object;
using kube::WatchEvent;

constexpr int kRestAttempts = 24;  // two minutes: victims may take 40 s, one after the other

std::string_view word(WatchEvent::Type type) {
  switch (type) {
    case WatchEvent::Type::kAdded:
      return "ADDED";
    case WatchEvent::Type::kModified:
      return "MODIFIED";
    case WatchEvent::Type::kDeleted:
      return "DELETED";
    case WatchEvent::Type::kBookmark:
      return "BOOKMARK";
    case WatchEvent::Type::kError:
      return "ERROR";
  }
  return "";
}

Fleet draw_fleet(base::Random& random) {
  std::string yaml = "name: world\nracks:\n  - name: r1\n    nodes:\n";
  yaml += fmt::format("      - {{name: h200, count: {}, model: H200, cpu: 64, memory: 512Gi}}\n",
                      1 + random.below(4));
  yaml +=
      fmt::format("      - {{name: small, count: {}, model: L4, gpus: 2, cpu: 16, memory: 64Gi}}\n",
                  1 + random.below(3));
  if (random.chance(0.7)) {
    yaml +=
        "      - {name: mig, model: A100-80, gpus: 2, cpu: 32, memory: 256Gi, mig: {1g.10gb: 4, "
        "3g.40gb: 1}}\n";
  }
  if (random.chance(0.5))
    yaml += "      - {name: shared, model: L40S, gpus: 2, cpu: 32, memory: 128Gi, replicas: 4}\n";
  if (random.chance(0.5)) yaml += "      - {name: cpu, count: 2, cpu: 16, memory: 64Gi}\n";
  auto fleet = parse_fleet(yaml);
  TS_CHECK(fleet.has_value(), "{}", fleet.error().message);
  return std::move(*fleet);
}

}  // namespace

// A client of one component, on the world's bad network. Acknowledged writes must never be newer than what is stored.
std::unique_ptr<FaultyClient> World::client(std::string_view name) {
  locals_.push_back(
      std::make_unique<apiserver::LocalClient>(*api_, loop_, apiserver::system_caller(name)));
  auto out = std::make_unique<FaultyClient>(*locals_.back(), loop_, random_.fork(), faults_);
  const bool schedules = options_.queues && name == "scheduler";
  out->on_acknowledged = [this, schedules](const kube::Request& request, const Value& object) {
    if (schedules) see_acknowledged(request);
    const std::string version(Object(object).resource_version());
    if (!version.empty() && std::strtoull(version.c_str(), nullptr, 10) > api_->revision() &&
        broken_) {
      broken_ = base::error(base::Code::kInternal,
                            "{} was acknowledged at version {}, the store is at {}", request.name,
                            version, api_->revision());
    }
  };
  return out;
}

base::Status World::boot() {
  if (options_.fleet.nodes.empty()) options_.fleet = draw_fleet(random_);
  for (const FleetNode& node : options_.fleet.nodes) {
    node_names_.push_back(node.name);
    node_gpus_.push_back(node.gpus);
  }
  apiserver::Api::Options api;
  api.clock = &clock_;
  api.executor = &loop_;
  api.random = random_.fork();
  TS_TRY(api_, apiserver::Api::open(api));
  user_ = std::make_unique<apiserver::LocalClient>(*api_, loop_, apiserver::system_caller("user"));
  TS_TRY_STATUS(watch_all());
  if (options_.faults) {
    faults_ = {.refuse = 0.02,
               .lose_reply = 0.02,
               .conflict = 0.02,
               .break_watch = 0.005,
               .delay_max = base::millis(200)};
  }
  for (const char* name : {"controllers", "scheduler", "kubelets"})
    clients_.push_back(client(name));
  controllers_ = std::make_unique<apiserver::Controllers>(
      *clients_[0], loop_, clock_, random_.fork(),
      apiserver::Controllers::Options{.kinds = &api_->kinds()});
  start_scheduler();
  kubelets_ = std::make_unique<Kubelets>(*clients_[2], loop_, clock_, random_.fork(),
                                         options_.fleet, Kubelets::Options{});
  workload_ = std::make_unique<Workload>(random_.fork());
  for (Drawn& needed : Workload::priority_classes()) {
    user_->create(needed.gvr, {}, std::move(needed.object), [this](const kube::Reply& reply) {
      if (!reply && broken_) broken_ = base::error(reply.error().in("priority class refused"));
    });
  }
  if (options_.queues) define_kinds();
  controllers_->start();
  scheduler_->start();
  kubelets_->start();
  return {};
}

void World::start_scheduler() {
  scheduler::Scheduler::Options scheduling;
  scheduling.names = {"tessera", "default-scheduler"};
  scheduler_ = std::make_unique<scheduler::Scheduler>(*clients_[1], loop_, clock_, random_.fork(),
                                                      scheduling);
}

base::Status World::watch_all() {
  for (const apiserver::Kind* kind : api_->kinds().all()) {
    if (!kind->view) watch_kind(*kind, kind->plural);
  }
  return {};
}

void World::watch_kind(const apiserver::Kind& kind, std::string resource) {
  kube::Request request;
  request.verb = kube::Verb::kList;
  request.gvr = kind.gvr();
  auto watch = api_->watch(
      apiserver::system_caller("world"), request,
      [this, resource = std::move(resource)](WatchEvent event) { on_event(resource, event); },
      [](const base::Status&) {});
  // Kinds that are only posted (Binding) cannot be watched.
  if (watch) watches_.push_back(std::move(*watch));
}

void World::on_event(std::string_view resource, const WatchEvent& event) {
  if (event.type == WatchEvent::Type::kBookmark || event.type == WatchEvent::Type::kError) return;
  ++report_.events;
  const std::string line = fmt::format("{:.6f} {} {} {}", loop_.now().seconds(), word(event.type),
                                       resource, event.object.json().dump());
  for (const char c : line) {
    report_.log_digest = (report_.log_digest ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  if (options_.log) options_.log(line);
  base::Status status;
  if (resource == "nodes") status = invariants_.see_node(event, clock_.now());
  if (resource == "pods") status = invariants_.see_pod(event, clock_.now());
  if (resource == "pods" && status) status = see_refusal(event.object);
  if (status) status = invariants_.see_version(resource, event);
  if (status && queue_invariants_) status = queue_invariants_->see(event, clock_.now());
  if (!status && broken_) broken_ = status;
}

// The kubelet refuses a pod of our scheduler only where one of its GPUs is sick, or was so a moment ago.
base::Status World::see_refusal(const Object& pod) {
  const std::string_view reason = pod.get("status", "reason").as_string();
  if (!reason.starts_with("OutOf") && reason != "UnexpectedAdmissionError") return {};
  if (!refused_.insert(std::string(pod.uid())).second) return {};
  const std::string_view node = pod.get("spec", "nodeName").as_string();
  const std::string chosen = "," + std::string(pod.annotation("tessera.dev/gpus")) + ",";
  const auto known = health_.find(node);
  if (known != health_.end() && reason == "UnexpectedAdmissionError") {
    for (const auto& [gpu, health] : known->second) {
      const bool asked =
          chosen == ",," || chosen.find(fmt::format(",{},", gpu)) != std::string::npos;
      if (asked && (!health.healthy || loop_.now() - health.since < kNewsTake)) return {};
    }
  }
  return base::error(base::Code::kInternal, "pod {} was refused by {}: {}", pod.key(), node,
                     pod.get("status", "message").as_string());
}

void World::set_gpu(size_t node, int gpu, bool healthy) {
  kubelets_->set_gpu_healthy(node_names_[node], gpu, healthy);
  health_[node_names_[node]][gpu] = {healthy, loop_.now()};
}

void World::apply_workload() {
  if (queue_workload_ && random_.chance(0.8)) return create_all(queue_workload_->draw());
  Drawn drawn = workload_->draw();
  ++report_.pods_created;
  user_->create(drawn.gvr, "default", std::move(drawn.object), [this](const kube::Reply& reply) {
    // 16 GPUs on one node and odd fractions are legal; anything the API refuses here is a fault of the generator.
    if (!reply && broken_) broken_ = base::error(reply.error().in("workload refused"));
  });
}

void World::change_node(const std::string& name, Value patch) {
  user_->merge_patch(kube::core_v1("nodes"), {}, name, std::move(patch), [](const kube::Reply&) {});
}

void World::inject_one() {
  const size_t pick = random_.below(node_names_.size());
  const std::string& name = node_names_[pick];
  ++report_.faults;
  if (options_.queues && random_.chance(0.6)) return change_something();
  switch (random_.below(5)) {
    case 0:
      kubelets_->fail_node(name);
      loop_.post_after(base::seconds(static_cast<int64_t>(5 + random_.below(200))),
                       [this, name] { kubelets_->restore_node(name); });
      break;
    case 1:
      change_node(name, Value::object({{"spec", Value::object({{"unschedulable", true}})}}));
      loop_.post_after(base::seconds(static_cast<int64_t>(10 + random_.below(100))), [this, name] {
        change_node(name, Value::object({{"spec", Value::object({{"unschedulable", Value()}})}}));
      });
      break;
    case 2:
      if (node_gpus_[pick] > 0) {
        const int gpu = static_cast<int>(random_.below(static_cast<uint64_t>(node_gpus_[pick])));
        set_gpu(pick, gpu, false);
        loop_.post_after(base::seconds(static_cast<int64_t>(10 + random_.below(200))),
                         [this, pick, gpu] { set_gpu(pick, gpu, true); });
      }
      break;
    default: {  // a user deletes something
      const char* const kinds[][2] = {{"", "pods"}, {"apps", "deployments"}, {"batch", "jobs"}};
      const auto& kind = kinds[random_.below(3)];
      const std::vector<Object> all = list(kind[0], kind[1]);
      if (all.empty()) return;
      const Object& victim = all[random_.below(all.size())];
      user_->remove({kind[0], "v1", kind[1]}, std::string(victim.ns()), std::string(victim.name()),
                    [](const kube::Reply&) {});
    }
  }
}

void World::inject() {
  if (loop_.now() >= options_.duration) return;
  if (options_.faults) inject_one();
  loop_.post_after(base::millis(static_cast<int64_t>(2000 + random_.below(30'000))),
                   [this] { inject(); });
}

void World::heal() {
  faults_ = {};
  for (size_t i = 0; i < node_names_.size(); ++i) {
    kubelets_->restore_node(node_names_[i]);
    change_node(node_names_[i],
                Value::object({{"spec", Value::object({{"unschedulable", Value()}})}}));
    for (int gpu = 0; gpu < node_gpus_[i]; ++gpu)
      kubelets_->set_gpu_healthy(node_names_[i], gpu, true);
  }
}

base::Status World::run_until(Duration end) {
  while (loop_.now() < end) {
    // One second at a time, so that a broken rule ends the run close to where it broke.
    loop_.advance(std::min(base::seconds(1), end - loop_.now()));
    if (queue_invariants_ && broken_) broken_ = queue_invariants_->tick(clock_.now());
    if (!broken_) {
      return base::error(broken_.error().in(
          fmt::format("seed {} at {:.3f} s", options_.seed, loop_.now().seconds())));
    }
  }
  return {};
}

std::vector<Object> World::list(std::string_view group, std::string_view resource,
                                std::string_view version) {
  std::vector<Object> out;
  kube::Request request;
  request.verb = kube::Verb::kList;
  request.gvr = {std::string(group), std::string(version), std::string(resource)};
  api_->call(apiserver::system_caller("world"), request, [&](apiserver::ApiReply reply) {
    if (!reply.result) return;
    for (const Value& item : (*reply.result)["items"].items()) out.emplace_back(item);
  });
  return out;
}

// What is under way at one moment must have got on at a later one.
base::Status World::at_rest() {
  base::Status status;
  for (int attempt = 0; attempt < kRestAttempts; ++attempt) {
    RestView view{list("", "nodes"),           list("", "pods"), list("batch", "jobs"),
                  list("apps", "deployments"), clock_.now(),     scheduling_objects()};
    status = check_rest(view);
    if (status && queue_invariants_) status = queue_invariants_->at_rest(clock_.now());
    if (status) return status;
    TS_TRY_STATUS(run_until(loop_.now() + base::seconds(5)));
  }
  return base::error(status.error().in(fmt::format("seed {} at rest", options_.seed)));
}

base::Result<WorldReport> World::run() {
  TS_TRY_STATUS(boot());
  const Duration first =
      options_.queues ? base::seconds(5) : Duration{};  // what they name is there
  for (int i = 0; i < options_.workloads; ++i) {
    loop_.post_after(first + base::millis(static_cast<int64_t>(random_.below(
                                 static_cast<uint64_t>(options_.duration.millis()) + 1))),
                     [this] { apply_workload(); });
  }
  loop_.post_after(base::seconds(5), [this] { inject(); });
  TS_TRY_STATUS(run_until(options_.duration));
  heal();
  TS_TRY_STATUS(run_until(options_.duration + options_.settle));
  TS_TRY_STATUS(at_rest());
  for (const auto& one : clients_) report_.faults += one->injected();
  report_.pods_bound = invariants_.bound();
  if (queue_invariants_) {
    report_.evictions = queue_invariants_->evictions();
    report_.gangs_started = queue_invariants_->gangs_started();
  }
  report_.pods_finished = invariants_.finished();
  report_.virtual_time = loop_.now();
  return report_;
}

base::Result<WorldReport> run_world(WorldOptions options) {
  return World(std::move(options)).run();
}

}  // namespace tessera::sim
