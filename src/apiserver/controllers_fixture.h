// For tests: the controllers on an Api in memory, over a network that may misbehave, with a node that runs every pod at once.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/api_fixture.h"
#include "apiserver/controllers.h"
#include "apiserver/local_client.h"

namespace tessera::apiserver {

// Refuses, loses replies, reports conflicts that are none, breaks watches and takes its time.
class FlakyClient : public kube::Client {
 public:
  FlakyClient(kube::Client& inner, base::Executor& executor, uint64_t seed)
      : inner_(inner), executor_(executor), random_(seed) {}

  double faults = 0;  // of each sort, per call

  void call(kube::Request request, std::function<void(kube::Reply)> done) override {
    const bool write = request.verb != kube::Verb::kGet && request.verb != kube::Verb::kList;
    if (random_.chance(faults)) return fail(base::Code::kUnavailable, std::move(done));
    if (write && request.verb != kube::Verb::kCreate && random_.chance(faults)) {
      return fail(base::Code::kConflict, std::move(done));
    }
    const bool lose = random_.chance(faults);
    later([this, request = std::move(request), done = std::move(done), lose]() mutable {
      inner_.call(std::move(request), [this, done = std::move(done), lose](kube::Reply reply) {
        if (lose) reply = base::error(base::Code::kTimeout, "lost");
        later([done, reply = std::move(reply)] { done(reply); });
      });
    });
  }

  std::unique_ptr<base::Subscription> watch(kube::Request request,
                                            std::function<void(kube::WatchEvent)> on_event,
                                            std::function<void(base::Status)> on_close) override {
    auto broken = std::make_shared<bool>(false);
    return inner_.watch(
        std::move(request),
        [this, broken, on_event = std::move(on_event), on_close](kube::WatchEvent event) {
          if (*broken) return;
          if (!random_.chance(faults / 4)) return on_event(std::move(event));
          *broken = true;
          executor_.post([on_close] { on_close(base::error(base::Code::kUnavailable, "reset")); });
        },
        on_close);
  }

 private:
  void fail(base::Code code, std::function<void(kube::Reply)> done) {
    later([done = std::move(done), code] { done(base::error(code, "injected")); });
  }
  void later(std::function<void()> task) {
    if (faults == 0) return executor_.post(std::move(task));
    executor_.post_after(base::millis(static_cast<int64_t>(random_.below(200))), std::move(task));
  }

  kube::Client& inner_;
  base::Executor& executor_;
  base::Random random_;
};

class TestCluster {
 public:
  explicit TestCluster(uint64_t seed = 1, double faults = 0)
      : client_(*api, api.loop(), system_caller("controllers")),
        flaky(client_, api.loop(), seed),
        seed_(seed) {
    flaky.faults = faults;
    EXPECT_TRUE(
        api.create("nodes", TestApi::parse(
                                R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},
            "status":{"conditions":[{"type":"Ready","status":"True"}]}})")));
    restart();
  }
  ~TestCluster() { controllers_.reset(); }

  // The controllers die between two steps and start again.
  void restart() {
    controllers_.reset();
    controllers_ = std::make_unique<Controllers>(flaky, api.loop(), api.clock(),
                                                 base::Random(++seed_), Controllers::Options{});
    controllers_->start();
  }

  std::vector<json::Value> list(const std::string& resource, std::string ns = "default") {
    const auto all = api.list(resource, std::move(ns));
    EXPECT_TRUE(all);
    const auto items = (*all)["items"].items();
    return {items.begin(), items.end()};
  }
  // One line a pod and replica set, for failures.
  std::string dump() {
    std::string out;
    for (const json::Value& set : list("replicasets.apps")) {
      out += fmt::format("\n{} {} {}", set["metadata"]["name"].as_string(),
                         set["spec"]["replicas"].as_int(), set["status"].dump());
    }
    for (const json::Value& pod : list("pods")) {
      out += fmt::format("\n{} {} deleting={}", pod["metadata"]["name"].as_string(),
                         pod["status"]["phase"].as_string(),
                         pod["metadata"].contains("deletionTimestamp"));
    }
    return out + "\n";
  }
  json::Value get(const std::string& resource, std::string name, std::string ns = "default") {
    return api.get(resource, std::move(ns), std::move(name)).value_or(json::Value());
  }

  // Time passes in steps of `step`; at each the node does its part.
  void run(base::Duration time, base::Duration step = base::millis(500)) {
    for (base::Duration done; done < time; done = done + step) {
      api.advance(step);
      if (node_works) node_turn();
      if (check) check();
    }
  }

  static json::Value pod_template(std::string_view app, std::string_view image = "a:1") {
    json::Value out =
        TestApi::parse(R"({"metadata":{"labels":{}},"spec":{"containers":[{"name":"c"}]}})");
    out.ref("metadata", "labels").set("app", app);
    out.ref("spec", "containers").ref_at(0).set("image", image);
    return out;
  }
  static json::Value deployment(const std::string& name, int replicas) {
    json::Value out = TestApi::parse(
        R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default"},"spec":{}})");
    out.ref("metadata").set("name", name);
    out.ref("spec").set("replicas", replicas);
    out.ref("spec", "selector", "matchLabels").set("app", name);
    out.ref("spec").set("template", pod_template(name));
    return out;
  }
  // A StatefulSet or a DaemonSet.
  static json::Value set(const std::string& kind, const std::string& name, const char* spec) {
    json::Value out =
        TestApi::parse(R"({"apiVersion":"apps/v1","metadata":{"namespace":"default"}})");
    out.set("kind", kind);
    out.ref("metadata").set("name", name);
    out.set("spec", TestApi::parse(spec));
    out.ref("spec", "selector", "matchLabels").set("app", name);
    out.ref("spec").set("template", pod_template(name));
    return out;
  }
  static json::Value job(const std::string& name, int parallelism, int completions) {
    json::Value out = TestApi::parse(
        R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"default"},"spec":{}})");
    out.ref("metadata").set("name", name);
    out.ref("spec").set("parallelism", parallelism);
    out.ref("spec").set("completions", completions);
    out.ref("spec").set("template", pod_template(name));
    out.ref("spec", "template", "spec").set("restartPolicy", "Never");
    return out;
  }

  TestApi api;

 private:
  LocalClient client_;

 public:
  FlakyClient flaky;
  bool node_works = true;
  // The phase in which a job's pod ends; empty: it runs on.
  std::function<std::string(const json::Value& pod)> ends = [](const json::Value&) {
    return std::string("Succeeded");
  };
  // With which code the containers of a pod end that fails.
  std::function<int(const json::Value& pod)> exit_code = [](const json::Value&) { return 1; };
  bool ready = true;            // pods become ready
  std::function<void()> check;  // after each step

 private:
  // The one that the pod asks for by name, as a daemon's does.
  static std::string node_for(const json::Value& pod) {
    const json::Value& terms =
        pod.get("spec", "affinity", "nodeAffinity",
                "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms");
    const json::Value& asked = terms.at(0)["matchFields"].at(0)["values"].at(0);
    return asked.is_string() ? asked.str() : "n1";
  }
  void node_turn() {
    for (const json::Value& pod : list("pods", "")) {
      const std::string ns = pod["metadata"]["namespace"].str();
      const std::string name = pod["metadata"]["name"].str();
      const std::string phase = pod["status"]["phase"].str();
      if (pod["metadata"].contains("deletionTimestamp")) {
        (void)api.remove("pods", ns, name, R"({"gracePeriodSeconds":0})");
      } else if (pod["spec"]["nodeName"].as_string().empty()) {
        (void)api.bind(ns, name, node_for(pod));
      } else if (phase == "Pending") {
        set_status(ns, name, "Running");
      } else if (phase == "Running" && pod["spec"]["restartPolicy"].as_string() == "Never") {
        const std::string end = ends(pod);
        if (!end.empty()) set_status(ns, name, end, end == "Failed" ? exit_code(pod) : 0);
      }
    }
  }
  void set_status(const std::string& ns, const std::string& name, const std::string& phase,
                  int code = 0) {
    const std::string now = base::to_rfc3339(api.clock().now());
    json::Value condition = json::Value::object({{"type", "Ready"}, {"lastTransitionTime", now}});
    condition.set("status", phase == "Running" && ready ? "True" : "False");
    json::Value patch;
    patch.ref("status").set("phase", phase);
    patch.ref("status", "conditions").push_back(std::move(condition));
    if (phase == "Succeeded" || phase == "Failed") {
      json::Value ended = json::Value::object({{"name", "c"}, {"image", ""}, {"imageID", ""}});
      ended.set("ready", false);
      ended.set("restartCount", 0);
      ended.ref("state", "terminated").set("exitCode", code);
      ended.ref("state", "terminated").set("finishedAt", now);
      patch.ref("status", "containerStatuses").push_back(std::move(ended));
    }
    EXPECT_TRUE(api.patch("pods", ns, name, patch.dump(), kube::PatchType::kStrategic, "status"));
  }

  uint64_t seed_;
  std::unique_ptr<Controllers> controllers_;
};

}  // namespace tessera::apiserver
