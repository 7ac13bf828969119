// An API whose kinds come and go, for the tests of ObjectSources: lists and watches of any kind in any version.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "kube/client.h"
#include "scheduler/scheduler_testing.h"
#include "scheduler/watched_kinds.h"

namespace tessera::scheduler::testing {

class ChangingApi : public kube::Client {
 public:
  static constexpr const char* kDefinitions = "customresourcedefinitions.apiextensions.k8s.io";

  explicit ChangingApi(base::ManualLoop& loop) : loop_(loop) {
    serve(kDefinitions, "v1");
    for (const WatchedKind& kind : watched_kinds()) {
      if (kind.served == Served::kAlways) serve(kind.name(), "v1");
    }
  }

  // By the kind's name ("jobs.batch").
  std::map<std::string, base::Code> refused;
  std::set<std::string> silent;  // never answers
  std::vector<std::string> lists;

  void serve(const std::string& name, const std::string& version) {
    served_.insert(name + "/" + version);
  }
  void end(const std::string& name, const std::string& version) {
    served_.erase(name + "/" + version);
    cut(name, base::Code::kNotFound, version);
  }
  // Ends the watches of the kind, or those of one version; who may go on comes again.
  void cut(const std::string& name, base::Code code, const std::string& version = {}) {
    for (WatchOf* watch : std::vector(watches_)) {
      if (watch->name != name || !watch->api_version.ends_with(version)) continue;
      loop_.post([alive = std::weak_ptr(watch->alive), code, watch] {
        if (alive.lock()) watch->on_close(base::error(code, "ended by the test"));
      });
    }
  }

  // Any object, by the name of its kind; what it says of its version does not matter.
  void put(const std::string& name, const kube::Object& object) {
    auto& all = objects_[name];
    const auto type = all.contains(object.key()) ? kube::WatchEvent::Type::kModified
                                                 : kube::WatchEvent::Type::kAdded;
    json::Value root = object.json();
    root.ref("metadata", "resourceVersion") = std::to_string(++version_);
    all[object.key()] = kube::Object(root);
    tell(name, type, kube::Object(root));
  }
  void erase(const std::string& name, const std::string& key) {
    const kube::Object last = objects_[name].at(key);
    objects_[name].erase(key);
    tell(name, kube::WatchEvent::Type::kDeleted, last);
  }
  // A definition that serves these, and the kind with it.
  void define(const std::string& name, const std::vector<std::string>& versions) {
    json::Value definition =
        yaml("{spec: {versions: []}, status: {conditions: [{type: Established, status: 'True'}]}}");
    definition.ref("metadata", "name") = name;
    definition.ref("metadata", "uid") = fmt::format("uid-{}", name);
    definition.ref("spec", "schema") = "large";
    const std::set<std::string> before = std::exchange(versions_[name], {});
    for (const std::string& version : versions) {
      versions_[name].insert(version);
      serve(name, version);
      definition.ref("spec", "versions")
          .push_back(json::Value::object({{"name", version}, {"served", true}}));
    }
    put(kDefinitions, kube::Object(definition));
    for (const std::string& version : before) {
      if (!versions_[name].contains(version)) end(name, version);
    }
  }
  // Its objects go with it, each with its event or without.
  void undefine(const std::string& name, bool silently = true) {
    const auto objects = objects_[name];
    for (const auto& [key, object] : objects) {
      if (!silently) erase(name, key);
    }
    for (const std::string& version : std::exchange(versions_[name], {})) end(name, version);
    objects_[name].clear();
    erase(kDefinitions, name);
  }
  const std::map<std::string, kube::Object>& objects(const std::string& name) {
    return objects_[name];
  }
  size_t watches() const { return watches_.size(); }

  void call(kube::Request request, std::function<void(kube::Reply)> done) override {
    const std::string name = name_of(request.gvr);
    lists.push_back(name + "/" + request.gvr.version);
    if (silent.contains(name)) return;
    loop_.post([this, request = std::move(request), done = std::move(done)] {
      const auto code = refusal(request.gvr);
      kube::Reply reply = base::error(code.value_or(base::Code::kInternal), "refused by the test");
      if (!code) reply = list(request);
      loop_.post([done, reply] { done(reply); });
    });
  }
  std::unique_ptr<base::Subscription> watch(kube::Request request,
                                            std::function<void(kube::WatchEvent)> on_event,
                                            std::function<void(base::Status)> on_close) override {
    auto out = std::make_unique<WatchOf>();
    out->name = name_of(request.gvr);
    out->api_version = request.gvr.api_version();
    out->on_event = std::move(on_event);
    out->on_close = std::move(on_close);
    out->all = &watches_;
    watches_.push_back(out.get());
    if (const auto code = refusal(request.gvr)) {
      loop_.post([alive = std::weak_ptr(out->alive), watch = out.get(), code] {
        if (alive.lock()) watch->on_close(base::error(*code, "refused by the test"));
      });
    } else {
      missed(*out, std::stoull(std::string(request.option("resourceVersion"))));
    }
    return out;
  }

 private:
  struct WatchOf : base::Subscription {
    std::string name;
    std::string api_version;
    std::function<void(kube::WatchEvent)> on_event;
    std::function<void(base::Status)> on_close;
    std::vector<WatchOf*>* all = nullptr;
    std::shared_ptr<int> alive = std::make_shared<int>();
    ~WatchOf() override { std::erase(*all, this); }
  };
  struct Past {
    uint64_t version;
    std::string name;
    kube::WatchEvent event;
  };

  static std::string name_of(const kube::Gvr& gvr) {
    return gvr.group.empty() ? gvr.resource : gvr.resource + "." + gvr.group;
  }
  std::optional<base::Code> refusal(const kube::Gvr& gvr) const {
    const auto found = refused.find(name_of(gvr));
    if (found != refused.end()) return found->second;
    if (!served_.contains(name_of(gvr) + "/" + gvr.version)) return base::Code::kNotFound;
    return std::nullopt;
  }
  static kube::Object in_version(const kube::Object& object, const std::string& api_version) {
    json::Value root = object.json();
    root.set("apiVersion", api_version);
    return kube::Object(root);
  }
  void post_event(WatchOf& watch, const kube::WatchEvent& event) {
    loop_.post([alive = std::weak_ptr(watch.alive), watch = &watch, event] {
      if (alive.lock()) watch->on_event({event.type, in_version(event.object, watch->api_version)});
    });
  }
  void tell(const std::string& name, kube::WatchEvent::Type type, const kube::Object& object) {
    past_.push_back({++version_, name, {type, object}});
    for (WatchOf* watch : watches_) {
      if (watch->name == name) post_event(*watch, past_.back().event);
    }
  }
  void missed(WatchOf& watch, uint64_t since) {
    for (const Past& each : past_) {
      if (each.name == watch.name && each.version > since) post_event(watch, each.event);
    }
  }
  kube::Reply list(const kube::Request& request) {
    json::Value out = yaml("{kind: List, items: []}");
    for (const auto& [key, object] : objects_[name_of(request.gvr)])
      out.ref("items").push_back(in_version(object, request.gvr.api_version()).json());
    out.ref("metadata", "resourceVersion") = std::to_string(version_);
    return out;
  }

  base::ManualLoop& loop_;
  uint64_t version_ = 0;
  std::set<std::string> served_;
  std::map<std::string, std::set<std::string>> versions_;  // of definitions
  std::map<std::string, std::map<std::string, kube::Object>> objects_;
  std::vector<Past> past_;
  std::vector<WatchOf*> watches_;
};

}  // namespace tessera::scheduler::testing
