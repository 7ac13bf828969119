// Several schedulers of one cluster, by seed: on a bad network, stopped for a while, cut off, killed and started again, while
// gangs and pods come and go. Whatever happens no GPU is given twice and no gang stays in part; once all is well one leads and
// everything that has room is bound.
//
// TESSERA_REPLICA_SEEDS=N runs N seeds instead of the few that every run takes.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "apiserver/api.h"
#include "apiserver/controllers.h"
#include "apiserver/local_client.h"
#include "base/loop_clock.h"
#include "json/yaml.h"
#include "kube/leader.h"
#include "scheduler/scheduler.h"
#include "sim/faulty_client.h"
#include "sim/invariants.h"
#include "sim/kubelet.h"
#include "sim/process_testing.h"

namespace tessera::sim {
namespace {

using base::Duration;
using base::millis;
using base::seconds;
using kube::Object;

struct Replica {
  explicit Replica(base::ManualLoop& loop) : process(loop) {}
  Process process;
  NetworkFaults faults;
  std::unique_ptr<apiserver::LocalClient> local;
  std::unique_ptr<FaultyClient> network;
  std::unique_ptr<ProcessClient> client;
  std::unique_ptr<kube::LeaderElection> election;
  std::unique_ptr<scheduler::Scheduler> scheduler;
};

class Cluster {
 public:
  Cluster(uint64_t seed, int replicas) : random_(seed) {
    apiserver::Api::Options options;
    options.clock = &clock_;
    options.executor = &loop_;
    options.random = random_.fork();
    api_ = std::move(*apiserver::Api::open(std::move(options)));
    user_ = client("user");
    watch("nodes", [this](const kube::WatchEvent& e) { return rules_.see_node(e, clock_.now()); });
    watch("pods", [this](const kube::WatchEvent& e) { return rules_.see_pod(e, clock_.now()); });
    others_ = client("others");
    controllers_ = std::make_unique<apiserver::Controllers>(
        *others_, loop_, clock_, random_.fork(),
        apiserver::Controllers::Options{.kinds = &api_->kinds()});
    auto fleet = parse_fleet(
        "name: world\nracks:\n  - name: r1\n    nodes:\n      - {name: gpu, count: 3, model: H200, "
        "gpus: 4, cpu: 32, memory: 128Gi}\n");
    EXPECT_TRUE(fleet) << (fleet ? "" : fleet.error().message);
    kubelets_ =
        std::make_unique<Kubelets>(*others_, loop_, clock_, random_.fork(),
                                   fleet ? std::move(*fleet) : Fleet{}, Kubelets::Options{});
    controllers_->start();
    kubelets_->start();
    create({"coordination.k8s.io", "v1", "leases"}, "{metadata: {name: l}}");
    for (int i = 0; i < replicas; ++i) {
      auto r = std::make_unique<Replica>(loop_);
      r->local = client("scheduler" + std::to_string(i));
      r->network = std::make_unique<FaultyClient>(*r->local, loop_, random_.fork(), r->faults);
      r->client = std::make_unique<ProcessClient>(*r->network, r->process);
      replicas_.push_back(std::move(r));
      start(*replicas_.back());
    }
    pass(seconds(3));
  }

  void turn() {
    Replica& r = *replicas_[random_.below(replicas_.size())];
    switch (random_.below(12)) {
      case 0:
        r.process.pause();
        break;
      case 1:
        kill(r);
        break;
      case 2:
        r.faults = {.refuse = 1};
        break;
      case 3:
        r.faults = {.refuse = 0.1,
                    .lose_reply = 0.2,
                    .conflict = 0.1,
                    .break_watch = 0.1,
                    .delay_max = millis(400)};
        break;
      case 4:
        r.faults = {};
        break;
      case 5:
      case 6:
        start(r);
        r.process.resume();
        break;
      case 7:
      case 8:
        delete_some();
        break;
      default:
        submit();
        break;
    }
    pass(millis(static_cast<int64_t>(random_.below(random_.chance(0.2) ? 20'000 : 3'000))));
  }

  void heal() {
    for (const auto& r : replicas_) {
      r->faults = {};
      r->process.resume();
      start(*r);
    }
  }
  void kill_leader() {
    for (const auto& r : replicas_) {
      if (r->election && r->election->leading()) kill(*r);
    }
  }
  void pass(Duration time) {
    const Duration until = loop_.now() + time;
    while (loop_.now() < until && !::testing::Test::HasFailure()) {
      loop_.advance(millis(50));
      int acting = 0;
      for (const auto& r : replicas_) acting += r->scheduler && r->scheduler->stats().acting;
      ASSERT_LE(acting, 1) << "at " << loop_.now().seconds() << " s";
      ASSERT_TRUE(broken_) << broken_.error().message << " at " << loop_.now().seconds() << " s";
    }
  }

  // A gang of 2 to 4 pods, or a pod of its own.
  void submit() {
    const int gang = ++made_;
    const int size = random_.chance(0.3) ? 1 : 2 + static_cast<int>(random_.below(3));
    if (size > 1) {
      create({"scheduling.k8s.io", "v1beta1", "podgroups"},
             fmt::format("{{metadata: {{name: g{}}}, spec: {{schedulingPolicy: {{gang: {{minCount: "
                         "{}}}}}}}}}",
                         gang, size));
    }
    for (int i = 0; i < size; ++i) {
      create(kube::core_v1("pods"),
             fmt::format("{{metadata: {{name: g{}-{}, labels: {{gang: g{}, size: \"{}\"}}}}, spec: "
                         "{{schedulerName: tessera, {} terminationGracePeriodSeconds: {}, "
                         "containers: [{{name: c, image: \"example.com/a:1\", resources: {{limits: "
                         "{{nvidia.com/gpu: {}}}}}}}]}}}}",
                         gang, i, gang, size,
                         size > 1 ? fmt::format("schedulingGroup: {{podGroupName: g{}}},", gang)
                                  : std::string(),
                         random_.below(5), 1 + random_.below(2)));
    }
  }
  void delete_some() {
    std::map<std::string, std::vector<std::string>> gangs;
    for (const Object& pod : pods()) gangs[pod.label("gang").data()].emplace_back(pod.name());
    if (gangs.empty()) return;
    auto at = gangs.begin();
    std::advance(at, static_cast<ptrdiff_t>(random_.below(gangs.size())));
    for (const std::string& name : at->second)
      user_->remove(kube::core_v1("pods"), "default", name, [](const kube::Reply&) {});
  }

  // Bound pods of each gang that is not going.
  std::map<std::string, std::pair<int, int>> gangs() {
    std::map<std::string, std::pair<int, int>> out;
    for (const Object& pod : pods()) {
      if (pod.deleting()) continue;
      auto& [bound, size] = out[std::string(pod.label("gang"))];
      bound += pod.get("spec", "nodeName").as_string().empty() ? 0 : 1;
      size = std::atoi(std::string(pod.label("size")).c_str());
    }
    return out;
  }
  int leaders() {
    int out = 0;
    for (const auto& r : replicas_) out += r->scheduler && r->scheduler->stats().acting ? 1 : 0;
    return out;
  }
  int free_gpus() {
    int free = 12;
    for (const Object& pod : pods()) {
      if (pod.get("spec", "nodeName").as_string().empty()) continue;
      const std::string_view gpus = pod.annotation("tessera.dev/gpus");
      free -= 1 + static_cast<int>(std::count(gpus.begin(), gpus.end(), ','));
    }
    return free;
  }
  uint64_t bound() const { return rules_.bound(); }
  Duration now() const { return loop_.now(); }
  std::vector<Object> pods() {
    std::vector<Object> out;
    kube::Request request;
    request.verb = kube::Verb::kList;
    request.gvr = kube::core_v1("pods");
    api_->call(apiserver::system_caller("test"), request, [&](const apiserver::ApiReply& reply) {
      if (!reply.result) return;
      for (const json::Value& item : (*reply.result)["items"].items()) out.emplace_back(item);
    });
    return out;
  }

 private:
  std::unique_ptr<apiserver::LocalClient> client(const std::string& name) {
    return std::make_unique<apiserver::LocalClient>(*api_, loop_, apiserver::system_caller(name));
  }
  void watch(const char* resource, std::function<base::Status(const kube::WatchEvent&)> see) {
    kube::Request request;
    request.verb = kube::Verb::kList;
    request.gvr = kube::core_v1(resource);
    auto made = api_->watch(
        apiserver::system_caller("test"), request,
        [this, see = std::move(see)](const kube::WatchEvent& event) {
          if (event.type == kube::WatchEvent::Type::kBookmark ||
              event.type == kube::WatchEvent::Type::kError)
            return;
          auto status = see(event);
          if (!status && broken_) broken_ = std::move(status);
        },
        [](const base::Status&) {});
    if (made) watches_.push_back(std::move(*made));
  }
  void create(const kube::Gvr& gvr, const std::string& text) {
    auto object = json::parse_yaml(text);
    ASSERT_TRUE(object) << object.error().message << text;
    user_->create(gvr, "default", *object, [text](const kube::Reply& reply) {
      EXPECT_TRUE(reply) << (reply ? "" : reply.error().message) << text;
    });
  }

  void start(Replica& r) {
    if (r.scheduler) return;
    scheduler::Scheduler::Options scheduling;
    scheduling.leading = [&r] { return r.election && r.election->leading(); };
    scheduling.writes_in_flight_max = 2;
    scheduling.engine.broken_after = seconds(20);
    r.scheduler = std::make_unique<scheduler::Scheduler>(*r.client, r.process, clock_,
                                                         random_.fork(), scheduling);
    r.scheduler->start();
    kube::LeaderElection::Options lease;
    lease.ns = "default";
    lease.name = "l";
    lease.identity = fmt::format("s{}", ++started_);
    r.election = std::make_unique<kube::LeaderElection>(
        *r.client, r.process, clock_, random_.fork(), lease,
        kube::LeaderElection::Handlers{
            .on_started = [&r](int64_t) { r.scheduler->lead(); },
            .on_lost = [&r](const std::string&) { r.scheduler->stand_by(); },
            .on_new_leader = {}});
    EXPECT_TRUE(r.election->start());
  }
  void kill(Replica& r) {
    r.election.reset();
    r.scheduler.reset();
    r.process.resume();  // nothing of it is left
  }

  base::Random random_;
  base::ManualLoop loop_;
  base::LoopClock clock_{loop_};
  std::unique_ptr<apiserver::Api> api_;
  std::unique_ptr<apiserver::LocalClient> user_;
  std::unique_ptr<apiserver::LocalClient> others_;
  std::unique_ptr<apiserver::Controllers> controllers_;
  std::unique_ptr<Kubelets> kubelets_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<base::Subscription>> watches_;
  Invariants rules_{seconds(15)};
  base::Status broken_;
  int made_ = 0;
  int started_ = 0;
};

uint64_t seeds() {
  const char* text = std::getenv("TESSERA_REPLICA_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20;
}

TEST(SchedulerReplicas, Give_no_gpu_twice_and_leave_no_gang_in_part) {
  uint64_t bound = 0;
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(seed, 2 + static_cast<int>(seed % 2));
    for (int i = 0; i < 50 && !::testing::Test::HasFailure(); ++i) cluster.turn();
    cluster.heal();
    cluster.pass(seconds(15 + 2 + 4 + 2 + 60));
    if (::testing::Test::HasFailure()) return;
    EXPECT_EQ(cluster.leaders(), 1);
    for (const auto& [name, gang] : cluster.gangs()) {
      EXPECT_TRUE(gang.first == 0 || gang.first == gang.second)
          << name << ": " << gang.first << " of " << gang.second;
    }
    bound += cluster.bound();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(bound, seeds() * 15) << "there was something to see";
}

TEST(SchedulerReplicas, Another_takes_over_within_the_lease_and_a_retry) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(seed, 2);
    ASSERT_EQ(cluster.leaders(), 1);
    cluster.submit();
    cluster.pass(seconds(2));
    cluster.kill_leader();
    cluster.submit();
    cluster.pass(millis(static_cast<int64_t>(15'000 + 2'000 + 500)));
    EXPECT_EQ(cluster.leaders(), 1);
    for (const auto& [name, gang] : cluster.gangs()) EXPECT_EQ(gang.first, gang.second) << name;
  }
}

}  // namespace
}  // namespace tessera::sim
