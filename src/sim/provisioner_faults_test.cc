// Pods with claims on a bad network, by seed: whatever is lost, refused or late, each ends up running beside its volume.

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "apiserver/api.h"
#include "apiserver/controllers.h"
#include "apiserver/local_client.h"
#include "base/loop_clock.h"
#include "json/yaml.h"
#include "scheduler/scheduler.h"
#include "sim/faulty_client.h"
#include "sim/kubelet.h"
#include "sim/provisioner.h"

namespace tessera::sim {
namespace {

using kube::Object;

constexpr int kPods = 6;

class BadNetwork {
 public:
  explicit BadNetwork(uint64_t seed) : random_(seed) {
    apiserver::Api::Options options;
    options.clock = &clock_;
    options.executor = &loop_;
    api_ = std::move(*apiserver::Api::open(std::move(options)));
    user_ =
        std::make_unique<apiserver::LocalClient>(*api_, loop_, apiserver::system_caller("user"));
    faults_ = {.refuse = 0.05,
               .lose_reply = 0.05,
               .conflict = 0.05,
               .break_watch = 0.01,
               .delay_max = base::millis(300)};
    controllers_ = std::make_unique<apiserver::Controllers>(
        client("controllers"), loop_, clock_, random_.fork(), apiserver::Controllers::Options{});
    scheduler::Scheduler::Options scheduling;
    scheduling.names = {"default-scheduler"};
    scheduler_ = std::make_unique<scheduler::Scheduler>(client("scheduler"), loop_, clock_,
                                                        random_.fork(), scheduling);
    kubelets_ = std::make_unique<Kubelets>(
        client("kubelets"), loop_, clock_, random_.fork(),
        *parse_fleet("racks: [{name: r, nodes: [{name: node, count: 3, cpu: 2, memory: 8Gi}]}]"),
        Kubelets::Options{});
    provisioner_ = std::make_unique<Provisioner>(client("provisioner"), loop_, clock_,
                                                 random_.fork(), Provisioner::Options{});
    controllers_->start();
    scheduler_->start();
    kubelets_->start();
    provisioner_->start();
  }

  void advance(base::Duration d) { loop_.advance(d); }
  void heal() { faults_ = {}; }

  void create(const kube::Gvr& gvr, const std::string& ns, std::string_view text) {
    user_->create(gvr, ns, *json::parse_yaml(text),
                  [](const kube::Reply& reply) { EXPECT_TRUE(reply) << reply.error().message; });
    loop_.run_ready();
  }
  void remove_pod(const std::string& name) {
    user_->remove(kube::core_v1("pods"), "default", name, [](const kube::Reply&) {});
  }
  std::map<std::string, Object> all(const char* resource) {
    std::map<std::string, Object> out;
    user_->list(kube::core_v1(resource), {}, [&out](const kube::Reply& reply) {
      for (const json::Value& item : (*reply)["items"].items()) {
        out.emplace(Object(item).name(), Object(item));
      }
    });
    loop_.run_ready();
    return out;
  }

 private:
  kube::Client& client(std::string_view name) {
    locals_.push_back(
        std::make_unique<apiserver::LocalClient>(*api_, loop_, apiserver::system_caller(name)));
    clients_.push_back(
        std::make_unique<FaultyClient>(*locals_.back(), loop_, random_.fork(), faults_));
    return *clients_.back();
  }

  base::ManualLoop loop_;
  base::LoopClock clock_{loop_};
  base::Random random_;
  NetworkFaults faults_;
  std::unique_ptr<apiserver::Api> api_;
  std::unique_ptr<apiserver::LocalClient> user_;
  std::vector<std::unique_ptr<apiserver::LocalClient>> locals_;
  std::vector<std::unique_ptr<FaultyClient>> clients_;
  std::unique_ptr<apiserver::Controllers> controllers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<Kubelets> kubelets_;
  std::unique_ptr<Provisioner> provisioner_;
};

std::string pod(int i, const char* name, const char* cpu) {
  return fmt::format(
      "{{apiVersion: v1, kind: Pod, metadata: {{name: {}{}}}, spec: "
      "{{terminationGracePeriodSeconds: 0, containers: [{{name: c, image: x, resources: "
      "{{requests: {{cpu: {}}}}}}}], volumes: [{{name: data, persistentVolumeClaim: "
      "{{claimName: c{}}}}}]}}}}",
      name, i, cpu, i);
}

void play(uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  BadNetwork cluster(seed);
  const kube::Gvr claims = kube::core_v1("persistentvolumeclaims");
  const kube::Gvr pods = kube::core_v1("pods");
  cluster.create({"storage.k8s.io", "v1", "storageclasses"}, "",
                 "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: near}, "
                 "provisioner: tessera.dev/simulated, volumeBindingMode: WaitForFirstConsumer, "
                 "parameters: {local: 'true'}}");
  for (int i = 0; i < kPods; ++i) {
    cluster.create(pods, "default", pod(i, "first", "700m"));
    cluster.advance(base::seconds(2));
    cluster.create(
        claims, "default",
        fmt::format("{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: c{}}}, spec: "
                    "{{storageClassName: near, accessModes: [ReadWriteOnce], resources: "
                    "{{requests: {{storage: 1Gi}}}}}}}}",
                    i));
  }
  cluster.advance(base::seconds(40));
  // Those that come after go where the volumes are; not every claim had one yet.
  for (int i = 0; i < kPods; ++i) cluster.remove_pod(fmt::format("first{}", i));
  cluster.advance(base::seconds(2));
  for (int i = 0; i < kPods; ++i) cluster.create(pods, "default", pod(i, "second", "100m"));
  cluster.advance(base::seconds(20));
  cluster.heal();
  cluster.advance(base::seconds(120));
  const auto volumes = cluster.all("persistentvolumes");
  const auto bound = cluster.all("persistentvolumeclaims");
  const auto there = cluster.all("pods");
  EXPECT_EQ(volumes.size(), static_cast<size_t>(kPods)) << "one volume a claim";
  EXPECT_EQ(there.size(), static_cast<size_t>(kPods));
  for (int i = 0; i < kPods; ++i) {
    const Object& claim = bound.at(fmt::format("c{}", i));
    EXPECT_EQ(claim.get("status", "phase").as_string(), "Bound") << claim.json().dump();
    const auto found = there.find(fmt::format("second{}", i));
    if (found == there.end()) continue;
    EXPECT_EQ(found->second.get("status", "phase").as_string(), "Running")
        << found->second.json().dump();
    const auto volume = volumes.find(claim.get("spec", "volumeName").str());
    ASSERT_NE(volume, volumes.end());
    EXPECT_NE(volume->second.get("spec", "nodeAffinity")
                  .dump()
                  .find(found->second.get("spec", "nodeName").str()),
              std::string::npos);
  }
}

TEST(ProvisionerFaults, Every_pod_ends_up_running_beside_its_volume) {
  for (uint64_t seed = 1; seed <= 30; ++seed) play(seed);
}

}  // namespace
}  // namespace tessera::sim
