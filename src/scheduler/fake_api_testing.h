// A Kubernetes API in 100 lines for the scheduler's tests: nodes, pods, volumes, bindings and pod status, with faults by hand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/loop_clock.h"
#include "kube/client.h"
#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler::testing {

class FakeApi : public kube::Client {
 public:
  explicit FakeApi(base::ManualLoop& loop) : loop_(loop) {}

  // Asked before each call: a code refuses it.
  std::function<std::optional<base::Code>(const kube::Request&)> refuse;
  // Asked after each call: true hides the answer behind a timeout.
  std::function<bool(const kube::Request&)> lose;
  base::Duration latency;              // of each answer
  std::vector<std::string> binds;      // "pod>node", in order of arrival
  std::vector<std::string> events;     // "reason pod"
  std::vector<std::string> evictions;  // pods

  void put(const std::string& resource, const kube::Object& object) {
    const std::string key = object.key();
    auto& all = objects_[resource];
    const bool known = all.contains(key);
    json::Value root = object.json();
    root.ref("metadata", "resourceVersion") = std::to_string(++version_);
    all[key] = kube::Object(root);
    tell(resource, known ? kube::WatchEvent::Type::kModified : kube::WatchEvent::Type::kAdded,
         all[key]);
  }
  void erase(const std::string& resource, const std::string& key) {
    auto& all = objects_[resource];
    const kube::Object last = all.at(key);
    all.erase(key);
    tell(resource, kube::WatchEvent::Type::kDeleted, last);
  }
  kube::Object object(const std::string& resource, const std::string& key) {
    return objects_[resource][key];
  }
  kube::Object pod(const std::string& name) { return objects_["pods"]["default/" + name]; }
  std::string node_of(const std::string& name) { return pod(name).get("spec", "nodeName").str(); }
  json::Value scheduled(const std::string& name) {
    for (const json::Value& c : pod(name).get("status", "conditions").items()) {
      if (c["type"].as_string() == "PodScheduled") return c;
    }
    return {};
  }
  std::string why(const std::string& name) { return scheduled(name)["message"].str(); }

  void call(kube::Request request, std::function<void(kube::Reply)> done) override {
    loop_.post([this, request = std::move(request), done = std::move(done)] {
      std::optional<base::Code> code;
      if (refuse) code = refuse(request);
      kube::Reply reply =
          code ? kube::Reply(base::error(*code, "refused by the test")) : answer(request);
      if (lose && lose(request)) reply = base::error(base::Code::kTimeout, "lost by the test");
      loop_.post_after(latency, [done, reply] { done(reply); });
    });
  }

  std::unique_ptr<base::Subscription> watch(kube::Request request,
                                            std::function<void(kube::WatchEvent)> on_event,
                                            std::function<void(base::Status)>) override {
    auto out = std::make_unique<WatchOf>();
    out->resource = request.gvr.resource;
    out->group = request.gvr.group;
    out->on_event = std::move(on_event);
    out->all = &watches_;
    watches_.push_back(out.get());
    return out;
  }

 private:
  struct WatchOf : base::Subscription {
    std::string resource;
    std::string group;
    std::function<void(kube::WatchEvent)> on_event;
    std::vector<WatchOf*>* all = nullptr;
    ~WatchOf() override { std::erase(*all, this); }
  };

  // Kinds of several groups have the same name; an object that names no API is of any.
  static bool in_group(const kube::Object& object, std::string_view group) {
    const std::string_view api = object.api_version();
    const size_t slash = api.find('/');
    return api.empty() || group == (slash == api.npos ? std::string_view() : api.substr(0, slash));
  }

  void tell(const std::string& resource, kube::WatchEvent::Type type, const kube::Object& object) {
    loop_.post([this, resource, type, object] {
      for (WatchOf* watch : std::vector(watches_)) {
        if (watch->resource == resource && in_group(object, watch->group))
          watch->on_event({type, object});
      }
    });
  }

  kube::Reply answer(const kube::Request& request) {
    const std::string& resource = request.gvr.resource;
    if (resource == "events") {
      events.push_back(request.body["reason"].str() + " " +
                       request.body["involvedObject"]["name"].str());
      return request.body;
    }
    if (request.verb == kube::Verb::kList) {
      json::Value items = json::Value::array();
      for (const auto& [key, object] : objects_[resource]) {
        if (in_group(object, request.gvr.group)) items.push_back(object.json());
      }
      json::Value out = yaml("{kind: List, apiVersion: v1}");
      out.set("items", items);
      out.ref("metadata", "resourceVersion") = std::to_string(version_);
      return out;
    }
    const auto it = objects_[resource].find(request.ns.empty() ? request.name
                                                               : request.ns + "/" + request.name);
    if (it == objects_[resource].end())
      return base::error(base::Code::kNotFound, "no {}", request.name);
    if (request.verb == kube::Verb::kGet) return it->second.json();
    if (request.verb == kube::Verb::kUpdate) return update(request, it->second);
    if (request.subresource == "eviction") return evict(request, it->second);
    return request.subresource == "binding" ? bind(request, it->second)
                                            : patch(request, it->second);
  }

  kube::Reply evict(const kube::Request& request, const kube::Object& pod) {
    if (request.body["deleteOptions"]["preconditions"]["uid"].as_string() != pod.uid())
      return base::error(base::Code::kConflict, "pod {} is another one", request.name);
    evictions.push_back(request.name);
    if (!pod.deleting())
      put("pods", with(pod, R"(metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"})"));
    return yaml("{kind: Status, apiVersion: v1, status: Success}");
  }

  kube::Reply bind(const kube::Request& request, kube::Object pod) {
    const std::string node = request.body["target"]["name"].str();
    binds.push_back(request.name + ">" + node);
    if (request.body["metadata"]["uid"].as_string() != pod.uid() ||
        !pod.get("spec", "nodeName").as_string().empty()) {
      return base::error(base::Code::kConflict, "pod {} is bound already", request.name);
    }
    json::Value root = pod.json();
    for (const json::Member& m : request.body["metadata"]["annotations"].members()) {
      root.ref("metadata", "annotations", m.name()) = m.value;
    }
    root.ref("spec", "nodeName") = node;
    put("pods", kube::Object(root));
    return yaml("{kind: Status, apiVersion: v1, status: Success}");
  }

  kube::Reply update(const kube::Request& request, const kube::Object& before) {
    if (kube::Object(request.body).resource_version() != before.resource_version()) {
      return base::error(base::Code::kConflict, "{} has changed", request.name);
    }
    const std::string key = before.key();
    put(request.gvr.resource, kube::Object(request.body));
    return objects_[request.gvr.resource][key].json();
  }

  kube::Reply patch(const kube::Request& request, const kube::Object& before) {
    json::Value root = before.json();
    const json::Value& status = request.body["status"];
    if (request.gvr.resource == "pods") {
      root.ref("status", "conditions") = status["conditions"];
      for (const json::Member& m : request.body["metadata"]["annotations"].members())
        root.ref("metadata", "annotations", m.name()) = m.value;
    } else {
      for (const json::Member& m : status.members()) root.ref("status", m.name()) = m.value;
      for (const json::Member& m : request.body["spec"].members())
        root.ref("spec", m.name()) = m.value;
    }
    put(request.gvr.resource, kube::Object(root));
    return root;
  }

  base::ManualLoop& loop_;
  uint64_t version_ = 0;
  std::map<std::string, std::map<std::string, kube::Object>> objects_;
  std::vector<WatchOf*> watches_;
};

}  // namespace tessera::scheduler::testing
