// A Lab with the definitions of config/crd, and short words for what gangs and queues are asked.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/definitions.h"
#include "sim/lab_testing.h"

namespace tessera::sim {

class GangLab : public Lab {
 public:
  explicit GangLab(std::string_view fleet) : Lab(fleet) {
    base::Status done = base::error(base::Code::kTimeout, "no answer");
    apiserver::install_definitions(client(), loop(), apiserver::builtin_definitions(),
                                   [&](const base::Status& status) { done = status; });
    advance(base::seconds(2));
    EXPECT_TRUE(done) << done.error().message;
  }

  static kube::Gvr gvr_of(const kube::Object& object) {
    const std::string version(object.api_version());
    const size_t slash = version.find('/');
    std::string plural(object.kind());
    for (char& c : plural) c = static_cast<char>(c | 0x20);
    plural += plural.ends_with("ss") ? "es" : "s";
    if (slash == std::string::npos) return {"", version, plural};
    return {version.substr(0, slash), version.substr(slash + 1), plural};
  }
  static bool in_namespace(std::string_view kind) {
    static const std::set<std::string_view> kOut = {
        "Queue", "Reservation", "Node", "PriorityClass", "Namespace", "CustomResourceDefinition"};
    return !kOut.contains(kind);
  }

  static std::vector<json::Value> documents(std::string_view text) {
    auto parsed = json::parse_yaml_stream(text);
    EXPECT_TRUE(parsed) << parsed.error().message << "\n" << text;
    return parsed ? std::vector<json::Value>(parsed->begin(), parsed->end())
                  : std::vector<json::Value>();
  }
  kube::Request request_to(kube::Verb verb, const kube::Object& object) {
    kube::Request out;
    out.verb = verb;
    out.gvr = gvr_of(object);
    if (in_namespace(object.kind()))
      out.ns = object.ns().empty() ? "default" : std::string(object.ns());
    if (verb != kube::Verb::kCreate) out.name = object.name();
    return out;
  }
  kube::Reply try_make(const json::Value& document) {
    kube::Request request = request_to(kube::Verb::kCreate, kube::Object(document));
    request.body = document;
    return call(std::move(request));
  }
  // Every document of the text, one after the other.
  void make(std::string_view text) {
    for (const json::Value& document : documents(text)) {
      const auto reply = try_make(document);
      ASSERT_TRUE(reply) << reply.error().message << "\n" << document.dump();
    }
  }
  // All of them before anybody else has a turn.
  void make_at_once(std::string_view text) {
    for (const json::Value& document : documents(text)) {
      kube::Request request = request_to(kube::Verb::kCreate, kube::Object(document));
      request.body = document;
      client().call(std::move(request), [](const kube::Reply& reply) {
        EXPECT_TRUE(reply) << (reply ? "" : reply.error().message);
      });
    }
  }
  kube::Object named(std::string_view api_version, std::string_view kind, std::string_view name,
                     std::string_view ns = "default") {
    json::Value out = json::Value::object();
    out.set("apiVersion", api_version);
    out.set("kind", kind);
    out.ref("metadata").set("name", name);
    out.ref("metadata").set("namespace", ns);
    return kube::Object(std::move(out));
  }
  kube::Object read(const kube::Object& name) {
    const auto reply = call(request_to(kube::Verb::kGet, name));
    return reply ? kube::Object(*reply) : kube::Object();
  }
  kube::Reply change(const kube::Object& name, std::string_view patch) {
    kube::Request request = request_to(kube::Verb::kPatch, name);
    request.patch_type = kube::PatchType::kMerge;
    request.body = documents(patch).at(0);
    return call(std::move(request));
  }
  kube::Reply erase(const kube::Object& name) {
    return call(request_to(kube::Verb::kDelete, name));
  }
  kube::Object group(std::string_view api_group, std::string_view name) {
    const std::string_view version = api_group == "scheduling.run.ai"     ? "v2alpha2"
                                     : api_group == "scheduling.x-k8s.io" ? "v1alpha1"
                                                                          : "v1beta1";
    return read(named(fmt::format("{}/{}", api_group, version), "PodGroup", name));
  }
  void cordon(const std::string& node, bool on) {
    ASSERT_TRUE(change(named("v1", "Node", node),
                       on ? "{spec: {unschedulable: true}}" : "{spec: {unschedulable: null}}"));
  }

  // Pods whose name begins so, finished ones too.
  std::vector<kube::Object> pods(std::string_view prefix) {
    std::vector<kube::Object> out;
    for (kube::Object& pod : list("Pod")) {
      if (pod.name().starts_with(prefix)) out.push_back(std::move(pod));
    }
    return out;
  }
  static bool is_bound(const kube::Object& pod) {
    return !pod.get("spec", "nodeName").as_string().empty();
  }
  static bool is_running(const kube::Object& pod) {
    return pod.get("status", "phase").as_string() == "Running" && !pod.deleting();
  }
  static bool is_over(const kube::Object& pod) {
    const std::string_view phase = pod.get("status", "phase").as_string();
    return phase == "Succeeded" || phase == "Failed";
  }
  int bound(std::string_view prefix) {
    const auto all = pods(prefix);
    return static_cast<int>(std::ranges::count_if(
        all, [](const kube::Object& pod) { return is_bound(pod) && !is_over(pod); }));
  }
  int running(std::string_view prefix) {
    const auto all = pods(prefix);
    return static_cast<int>(std::ranges::count_if(all, is_running));
  }
  std::string why_of(std::string_view prefix) {
    for (const kube::Object& pod : pods(prefix)) {
      if (!is_bound(pod)) return why(std::string(pod.name()));
    }
    return "";
  }
  // "Reason message" of the events about objects of this kind and name, oldest first.
  std::vector<std::string> events(std::string_view kind, std::string_view name) {
    std::vector<std::string> out;
    for (const kube::Object& event : list("Event")) {
      const json::Value& about = event["involvedObject"];
      if (about["kind"].as_string() != kind || about["name"].as_string() != name) continue;
      out.push_back(event["reason"].str() + " " + event["message"].str());
    }
    return out;
  }
  static json::Value condition(const kube::Object& object, std::string_view type) {
    for (const json::Value& one : object.get("status", "conditions").items()) {
      if (one["type"].as_string() == type) return one;
    }
    return {};
  }
};

// `count` pods "NAME-0", ... of a GPU each; `meta` and `spec` in YAML's flow style, with a comma at the end.
inline std::string pods_yaml(std::string_view name, int count, std::string_view meta = "",
                             std::string_view spec = "", int gpus = 1) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format(R"(---
apiVersion: v1
kind: Pod
metadata: {{{} name: {}-{}}}
spec: {{{} restartPolicy: Never, containers: [{{name: c, image: "registry.example/c:1", resources: {{limits: {{nvidia.com/gpu: {}}}}}}}]}}
)",
                       meta, name, i, spec, gpus);
  }
  return out;
}

}  // namespace tessera::sim
