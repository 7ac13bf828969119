// A whole cluster for a test: embedded API, controllers, scheduler and kubelets on one loop in virtual time, without faults.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "apiserver/api.h"
#include "apiserver/controllers.h"
#include "apiserver/local_client.h"
#include "base/loop_clock.h"
#include "json/yaml.h"
#include "scheduler/scheduler.h"
#include "sim/kubelet.h"
#include "sim/provisioner.h"

namespace tessera::sim {

class Lab {
 public:
  // An empty `data_dir` keeps everything in memory.
  explicit Lab(std::string_view fleet, const std::string& data_dir = {})
      : Lab(fleet_of_text(fleet), data_dir) {}
  explicit Lab(Fleet fleet, const std::string& data_dir = {}) {
    apiserver::Api::Options options;
    options.data_dir = data_dir;
    options.clock = &clock_;
    options.executor = &loop_;
    auto api = apiserver::Api::open(std::move(options));
    EXPECT_TRUE(api) << (api ? "" : api.error().message);
    api_ = std::move(*api);
    client_ =
        std::make_unique<apiserver::LocalClient>(*api_, loop_, apiserver::system_caller("lab"));
    controllers_ = std::make_unique<apiserver::Controllers>(
        *client_, loop_, clock_, base::Random(1), apiserver::Controllers::Options{});
    scheduler::Scheduler::Options scheduling;
    scheduling.names = {"tessera", "default-scheduler"};
    scheduler_ = std::make_unique<scheduler::Scheduler>(*client_, loop_, clock_, base::Random(2),
                                                        scheduling);
    kubelets_ = std::make_unique<Kubelets>(*client_, loop_, clock_, base::Random(3),
                                           std::move(fleet), Kubelets::Options{});
    provisioner_ = std::make_unique<Provisioner>(*client_, loop_, clock_, base::Random(4),
                                                 Provisioner::Options{});
    controllers_->start();
    scheduler_->start();
    kubelets_->start();
    provisioner_->start();
    advance(base::seconds(1));
  }

  void advance(base::Duration d) { loop_.advance(d); }

  kube::Reply call(kube::Request request) {
    kube::Reply out = base::error(base::Code::kTimeout, "no answer");
    client_->call(std::move(request), [&out](const kube::Reply& reply) { out = reply; });
    loop_.advance(base::millis(1));
    return out;
  }
  kube::Reply create(const json::Value& object) {
    const kube::Object named(object);
    kube::Request request;
    request.verb = kube::Verb::kCreate;
    request.gvr = gvr_of(named.kind());
    if (namespaced(named.kind()))
      request.ns = named.ns().empty() ? "default" : std::string(named.ns());
    request.body = object;
    return call(std::move(request));
  }
  // Creates every document of the text.
  void apply(std::string_view text) {
    auto documents = json::parse_yaml_stream(text);
    ASSERT_TRUE(documents) << documents.error().message;
    for (const json::Value& document : *documents) {
      const auto reply = create(document);
      ASSERT_TRUE(reply) << reply.error().message << "\n" << text;
    }
  }
  kube::Reply patch(std::string_view kind, const std::string& name, const json::Value& body) {
    kube::Request request;
    request.verb = kube::Verb::kPatch;
    request.gvr = gvr_of(kind);
    if (namespaced(kind)) request.ns = "default";
    request.name = name;
    request.body = body;
    return call(std::move(request));
  }
  kube::Reply remove(std::string_view kind, const std::string& name, json::Value options = {}) {
    kube::Request request;
    request.verb = kube::Verb::kDelete;
    request.gvr = gvr_of(kind);
    if (namespaced(kind)) request.ns = "default";
    request.name = name;
    request.body = std::move(options);
    return call(std::move(request));
  }
  std::vector<kube::Object> list(std::string_view kind) {
    kube::Request request;
    request.verb = kube::Verb::kList;
    request.gvr = gvr_of(kind);
    const auto reply = call(std::move(request));
    EXPECT_TRUE(reply) << (reply ? "" : reply.error().message);
    std::vector<kube::Object> out;
    if (reply) {
      for (const json::Value& item : (*reply)["items"].items()) out.emplace_back(item);
    }
    return out;
  }
  kube::Object get(std::string_view kind, const std::string& name) {
    kube::Request request;
    request.gvr = gvr_of(kind);
    if (namespaced(kind)) request.ns = "default";
    request.name = name;
    const auto reply = call(std::move(request));
    return reply ? kube::Object(*reply) : kube::Object();
  }
  kube::Object pod(const std::string& name) { return get("Pod", name); }
  std::string phase(const std::string& name) { return pod(name).get("status", "phase").str(); }
  std::string node_of(const std::string& name) { return pod(name).get("spec", "nodeName").str(); }
  std::string why(const std::string& name) {
    const kube::Object found = pod(name);
    for (const json::Value& c : found.get("status", "conditions").items()) {
      if (c["type"].as_string() == "PodScheduled") return c["message"].str();
    }
    return "";
  }

  Kubelets& kubelets() { return *kubelets_; }
  scheduler::Scheduler& scheduler() { return *scheduler_; }
  kube::Client& client() { return *client_; }
  base::ManualLoop& loop() { return loop_; }
  const base::Clock& clock() const { return clock_; }

 private:
  static Fleet fleet_of_text(std::string_view text) {
    auto fleet = parse_fleet(text);
    EXPECT_TRUE(fleet) << (fleet ? "" : fleet.error().message);
    return fleet ? *fleet : Fleet{};
  }
  static kube::Gvr gvr_of(std::string_view kind) {
    if (kind == "Job") return {"batch", "v1", "jobs"};
    if (kind == "Deployment") return {"apps", "v1", "deployments"};
    if (kind == "StatefulSet") return {"apps", "v1", "statefulsets"};
    if (kind == "StorageClass") return {"storage.k8s.io", "v1", "storageclasses"};
    if (kind == "PriorityClass") return {"scheduling.k8s.io", "v1", "priorityclasses"};
    std::string plural(kind);
    for (char& c : plural) c = static_cast<char>(c | 0x20);
    return kube::core_v1(plural + "s");
  }
  static bool namespaced(std::string_view kind) {
    return kind != "Node" && kind != "Namespace" && kind != "PriorityClass" &&
           kind != "StorageClass" && kind != "PersistentVolume";
  }

  base::ManualLoop loop_;
  base::LoopClock clock_{loop_};
  std::unique_ptr<apiserver::Api> api_;
  std::unique_ptr<apiserver::LocalClient> client_;
  std::unique_ptr<apiserver::Controllers> controllers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<Kubelets> kubelets_;
  std::unique_ptr<Provisioner> provisioner_;
};

}  // namespace tessera::sim
