// For tests: an Api on a loop and a clock moved by hand, with calls that wait for their answer.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/api.h"
#include "base/clock.h"
#include "base/executor.h"
#include "json/parse.h"

namespace tessera::apiserver {

class TestApi {
 public:
  using Query = std::vector<std::pair<std::string, std::string>>;

  explicit TestApi(Api::Options options = {}) : loop_(std::make_unique<base::ManualLoop>()) {
    options.clock = &clock_;
    options.executor = loop_.get();
    auto opened = Api::open(std::move(options));
    EXPECT_TRUE(opened) << opened.error().message;
    api_ = std::move(*opened);
  }
  TestApi(const TestApi&) = delete;
  TestApi& operator=(const TestApi&) = delete;
  ~TestApi() {
    api_.reset();
    loop_->run_ready();
  }

  Api& operator*() { return *api_; }
  Api* operator->() { return api_.get(); }
  base::ManualLoop& loop() { return *loop_; }
  base::ManualClock& clock() { return clock_; }

  // Both clocks, together.
  void advance(base::Duration by) {
    clock_.advance(by);
    loop_->advance(by);
  }

  ApiReply reply(kube::Request request) {
    std::optional<ApiReply> out;
    api_->call(system_caller("test"), std::move(request), [&](ApiReply r) { out = std::move(r); });
    loop_->run_ready();
    EXPECT_TRUE(out) << "no answer";
    return out ? std::move(*out) : ApiReply{base::error(base::Code::kInternal, "none"), 500, {}};
  }

  static kube::Request request(kube::Verb verb, const std::string& resource, std::string ns,
                               std::string name = {}, json::Value body = {}, Query query = {}) {
    kube::Request out;
    out.verb = verb;
    out.gvr = gvr(resource);
    out.ns = std::move(ns);
    out.name = std::move(name);
    out.body = std::move(body);
    out.query = std::move(query);
    return out;
  }
  // "pods", "deployments.apps", "priorityclasses.scheduling.k8s.io".
  static kube::Gvr gvr(const std::string& resource) {
    const size_t dot = resource.find('.');
    return {dot == std::string::npos ? "" : resource.substr(dot + 1), "v1",
            resource.substr(0, dot)};
  }

  base::Result<json::Value> create(const std::string& resource, const json::Value& object,
                                   Query query = {}) {
    return reply(request(kube::Verb::kCreate, resource, object["metadata"]["namespace"].str(), {},
                         object, std::move(query)))
        .result;
  }
  base::Result<json::Value> get(const std::string& resource, std::string ns, std::string name) {
    return reply(request(kube::Verb::kGet, resource, std::move(ns), std::move(name))).result;
  }
  base::Result<json::Value> list(const std::string& resource, std::string ns, Query query = {}) {
    return reply(request(kube::Verb::kList, resource, std::move(ns), {}, {}, std::move(query)))
        .result;
  }
  base::Result<json::Value> update(const std::string& resource, const json::Value& object,
                                   std::string subresource = {}) {
    auto out = request(kube::Verb::kUpdate, resource, object["metadata"]["namespace"].str(),
                       object["metadata"]["name"].str(), object);
    out.subresource = std::move(subresource);
    return reply(std::move(out)).result;
  }
  base::Result<json::Value> patch(const std::string& resource, std::string ns, std::string name,
                                  std::string_view text,
                                  kube::PatchType type = kube::PatchType::kMerge,
                                  std::string subresource = {}, Query query = {}) {
    auto out = request(kube::Verb::kPatch, resource, std::move(ns), std::move(name), parse(text),
                       std::move(query));
    out.patch_type = type;
    out.subresource = std::move(subresource);
    return reply(std::move(out)).result;
  }
  base::Result<json::Value> remove(const std::string& resource, std::string ns, std::string name,
                                   std::string_view options = "null") {
    return reply(request(kube::Verb::kDelete, resource, std::move(ns), std::move(name),
                         parse(options)))
        .result;
  }
  base::Result<json::Value> bind(std::string ns, std::string name, std::string node) {
    json::Value body = json::Value::object({{"apiVersion", "v1"}, {"kind", "Binding"}});
    body.ref("target") = json::Value::object({{"kind", "Node"}, {"name", std::move(node)}});
    auto out = request(kube::Verb::kCreate, "pods", std::move(ns), std::move(name), body);
    out.subresource = "binding";
    return reply(std::move(out)).result;
  }

  static json::Value parse(std::string_view text) {
    auto value = json::parse(text);
    EXPECT_TRUE(value) << (value ? "" : value.error().message);
    return value ? *value : json::Value();
  }
  static json::Value pod(std::string_view name, std::string_view labels = "{}") {
    json::Value out = parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default"},
      "spec":{"containers":[{"name":"c0","image":"registry.example/x:1"}]}})");
    out.ref("metadata", "name") = name;
    out.ref("metadata", "labels") = parse(labels);
    return out;
  }
  static json::Value config_map(std::string_view name, std::string_view value,
                                std::string_view ns = "default") {
    json::Value out = json::Value::object({{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
    out.ref("metadata", "name") = name;
    out.ref("metadata", "namespace") = ns;
    out.ref("data", "key") = value;
    return out;
  }

 private:
  base::ManualClock clock_;
  std::unique_ptr<base::ManualLoop> loop_;
  std::unique_ptr<Api> api_;
};

}  // namespace tessera::apiserver
