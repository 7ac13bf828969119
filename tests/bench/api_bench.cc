// Writes and reads through LocalClient on one thread, with the store on disk: what a pod's life costs.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "apiserver/api.h"
#include "apiserver/local_client.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/file.h"
#include "json/parse.h"

namespace tessera {
namespace {

using json::Value;

constexpr int kBatch = 200;  // requests under way at once, as of a busy cluster

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  TS_CHECK(value.has_value());
  return *value;
}

const Value& pod_template() {
  static const Value kPod = parsed(R"({"apiVersion":"v1","kind":"Pod",
    "metadata":{"namespace":"default","labels":{"app":"train","team":"vision"}},
    "spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"registry.example/t:1",
    "command":["python","train.py"],"env":[{"name":"RANK","value":"0"}],
    "resources":{"limits":{"cpu":"8","memory":"32Gi","nvidia.com/gpu":1}}}]}})");
  return kPod;
}

struct Cluster {
  base::SystemClock clock;
  base::TempDir dir;
  base::ManualLoop loop;
  std::unique_ptr<apiserver::Api> api;
  std::unique_ptr<apiserver::LocalClient> client;
  int answers = 0;
  int next = 0;

  explicit Cluster(bool disk) {
    apiserver::Api::Options options;
    if (disk) options.data_dir = dir.path();
    options.clock = &clock;
    options.executor = &loop;
    auto opened = apiserver::Api::open(std::move(options));
    TS_CHECK(opened.has_value());
    api = std::move(*opened);
    client =
        std::make_unique<apiserver::LocalClient>(*api, loop, apiserver::system_caller("bench"));
  }

  std::function<void(kube::Reply)> count() {
    return [this](const kube::Reply& reply) {
      TS_CHECK(reply.has_value(), "{}", reply.error().message);
      ++answers;
    };
  }
  std::string create() {
    Value pod = pod_template();
    std::string name = "pod-" + std::to_string(next++);
    pod.ref("metadata", "name") = name;
    client->create(kube::core_v1("pods"), "default", std::move(pod), count());
    return name;
  }
  void bind(const std::string& name) {
    kube::Request request;
    request.verb = kube::Verb::kCreate;
    request.gvr = kube::core_v1("pods");
    request.ns = "default";
    request.name = name;
    request.subresource = "binding";
    request.body = parsed(R"({"apiVersion":"v1","kind":"Binding",
      "target":{"kind":"Node","name":"node-0001"}})");
    client->call(std::move(request), count());
  }
  void patch_status(const std::string& name, const Value& patch) {
    client->merge_patch(kube::core_v1("pods"), "default", name, patch, count(), "status");
  }
  void settle() { loop.run_ready(); }
};

const Value& status_patch(bool ready) {
  static const Value kRunning = parsed(R"({"status":{"phase":"Running","hostIP":"10.0.0.1",
    "podIP":"10.1.0.7","startTime":"2026-01-01T00:00:00Z","containerStatuses":[{"name":"main",
    "ready":true,"restartCount":0,"image":"registry.example/t:1","imageID":"",
    "state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}})");
  static const Value kDone = parsed(R"({"status":{"phase":"Succeeded"}})");
  return ready ? kRunning : kDone;
}

void BM_api_create(benchmark::State& state) {
  Cluster cluster(state.range(0) != 0);
  for (auto _ : state) {
    for (int i = 0; i < kBatch; ++i) cluster.create();
    cluster.settle();
  }
  state.SetItemsProcessed(cluster.answers);
}
BENCHMARK(BM_api_create)->ArgName("disk")->Arg(0)->Arg(1);

void BM_api_status_patch(benchmark::State& state) {
  Cluster cluster(state.range(0) != 0);
  std::vector<std::string> names;
  for (int i = 0; i < kBatch; ++i) names.push_back(cluster.create());
  cluster.settle();
  cluster.answers = 0;
  bool running = true;
  for (auto _ : state) {
    for (const std::string& name : names) cluster.patch_status(name, status_patch(running));
    cluster.settle();
    running = !running;
  }
  state.SetItemsProcessed(cluster.answers);
}
BENCHMARK(BM_api_status_patch)->ArgName("disk")->Arg(0)->Arg(1);

// One create, one binding and two status patches a pod.
void BM_api_pod_life(benchmark::State& state) {
  Cluster cluster(state.range(0) != 0);
  for (auto _ : state) {
    std::vector<std::string> names;
    for (int i = 0; i < kBatch; ++i) names.push_back(cluster.create());
    cluster.settle();
    for (const std::string& name : names) cluster.bind(name);
    cluster.settle();
    for (const std::string& name : names) cluster.patch_status(name, status_patch(true));
    cluster.settle();
    for (const std::string& name : names) cluster.patch_status(name, status_patch(false));
    cluster.settle();
  }
  state.SetItemsProcessed(cluster.answers);
}
BENCHMARK(BM_api_pod_life)->ArgName("disk")->Arg(0)->Arg(1);

void BM_api_get(benchmark::State& state) {
  Cluster cluster(false);
  const std::string name = cluster.create();
  cluster.settle();
  cluster.answers = 0;
  for (auto _ : state) {
    for (int i = 0; i < kBatch; ++i) {
      cluster.client->get(kube::core_v1("pods"), "default", name, cluster.count());
    }
    cluster.settle();
  }
  state.SetItemsProcessed(cluster.answers);
}
BENCHMARK(BM_api_get);

}  // namespace
}  // namespace tessera
