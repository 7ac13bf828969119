// autoscaling/v1 HorizontalPodAutoscaler: the use of CPU is a field, other metrics, the behavior and the conditions are
// JSON in annotations.
//
// Source:  k8s.io/kubernetes pkg/apis/autoscaling/v1/conversion.go (which annotation holds what).
#include <array>
#include <string>
#include <utility>

#include "apiserver/columns.h"
#include "apiserver/kinds_views.h"
#include "json/parse.h"
#include "kube/schema.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr const char* kCurrentMetrics = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr const char* kConditions = "autoscaling.alpha.kubernetes.io/conditions";
constexpr const char* kBehavior = "autoscaling.alpha.kubernetes.io/behavior";

// A member of a metric source of v1 and where it stands in that of v2. "#" is "target" with what a metric should be and
// "current" with what it is; of v1's names "T" is "target" or "current".
struct Part {
  std::string_view source;  // empty: of every source
  std::string_view v1;
  std::string_view outer;
  std::string_view inner;  // empty: outer itself
};

constexpr std::array<Part, 18> kParts = {{
    {"resource", "name", "name", ""},
    {"resource", "TAverageUtilization", "#", "averageUtilization"},
    {"resource", "TAverageValue", "#", "averageValue"},
    {"containerResource", "name", "name", ""},
    {"containerResource", "container", "container", ""},
    {"containerResource", "TAverageUtilization", "#", "averageUtilization"},
    {"containerResource", "TAverageValue", "#", "averageValue"},
    {"pods", "metricName", "metric", "name"},
    {"pods", "selector", "metric", "selector"},
    {"pods", "TAverageValue", "#", "averageValue"},
    {"object", "target", "describedObject", ""},
    {"object", "metricName", "metric", "name"},
    {"object", "selector", "metric", "selector"},
    {"object", "TValue", "#", "value"},
    {"object", "averageValue", "#", "averageValue"},
    {"external", "metricName", "metric", "name"},
    {"external", "metricSelector", "metric", "selector"},
    {"external", "TValue", "#", "value"},
}};
constexpr Part kExternalAverage = {"external", "TAverageValue", "#", "averageValue"};

std::string v1_name(std::string_view name, bool current) {
  if (!name.starts_with('T')) return std::string(name);
  return std::string(current ? "current" : "target").append(name.substr(1));
}

template <class F>
void each_part(std::string_view source, F f) {
  for (const Part& part : kParts) {
    if (part.source == source) f(part);
  }
  if (source == kExternalAverage.source) f(kExternalAverage);
}

Value source_to_v1(std::string_view source, const Value& v2, bool current) {
  const std::string_view amounts = current ? "current" : "target";
  Value out = Value::object();
  each_part(source, [&](const Part& part) {
    const Value& outer = v2[part.outer == "#" ? amounts : part.outer];
    const Value& value = part.inner.empty() ? outer : outer[part.inner];
    if (!value.is_null()) out.set(v1_name(part.v1, current), value);
  });
  return out;
}

Value source_to_v2(std::string_view source, const Value& v1, bool current) {
  const std::string amounts = current ? "current" : "target";
  Value out = Value::object();
  each_part(source, [&](const Part& part) {
    const Value value = v1[v1_name(part.v1, current)];
    const bool nothing = part.inner == "value" && value.as_string() == "0";
    if (value.is_null() || nothing) return;
    const std::string outer(part.outer == "#" ? amounts : std::string(part.outer));
    (part.inner.empty() ? out.ref(outer) : out.ref(outer).ref(part.inner)) = value;
  });
  if (current) return out;
  const Value& target = out["target"];
  const char* type = target.contains("averageUtilization") ? "Utilization"
                     : target.contains("averageValue")     ? "AverageValue"
                                                           : "Value";
  const bool by_average = source == "resource" || source == "containerResource" || source == "pods";
  const bool plain = by_average && !target.contains("averageUtilization");
  out.ref("target").set("type", plain ? "AverageValue" : type);
  return out;
}

// A list of metrics in the other form; each has a type and a member with its source.
Value metrics_as(const Value& metrics, bool to_v1, bool current) {
  Value out = Value::array();
  for (const Value& metric : metrics.items()) {
    Value one = Value::object({{"type", metric["type"]}});
    for (const json::Member& member : metric.members()) {
      if (!member.value.is_object()) continue;
      one.set(member.name(), to_v1 ? source_to_v1(member.name(), member.value, current)
                                   : source_to_v2(member.name(), member.value, current));
    }
    out.push_back(std::move(one));
  }
  return out;
}

bool is_cpu_use(const Value& metric) {
  const Value& resource = metric["resource"];
  return metric["type"].as_string() == "Resource" && resource["name"].as_string() == "cpu" &&
         resource["target"].contains("averageUtilization");
}

// Kubernetes writes the behavior with the names of its Go fields.
Value renamed(const Value& value, bool upper) {
  if (value.is_array()) {
    Value out = Value::array();
    for (const Value& item : value.items()) out.push_back(renamed(item, upper));
    return out;
  }
  if (!value.is_object()) return value;
  Value out = Value::object();
  for (const json::Member& member : value.members()) {
    std::string name(member.name());
    if (name.empty()) continue;
    char& first = name[0];
    if (upper && first >= 'a' && first <= 'z') first = static_cast<char>(first - 'a' + 'A');
    if (!upper && first >= 'A' && first <= 'Z') first = static_cast<char>(first - 'A' + 'a');
    out.set(name, renamed(member.value, upper));
  }
  return out;
}

Value normal(const Value& object, std::string_view version) {
  const kube::SchemaType* type =
      kube::find_kind_schema("autoscaling", version, "HorizontalPodAutoscaler");
  Value out = object;
  out.set("apiVersion", std::string("autoscaling/").append(version));
  auto result = kube::normalize(*type, out, nullptr);
  return result ? *std::move(result) : out;
}

// The annotation's JSON, of the type that it must have; the annotation goes.
Value take_annotation(Value& object, const char* name, json::Type type) {
  const Value text = object["metadata"]["annotations"][name];
  if (!text.is_string()) return {};
  Value& meta = object.ref("metadata");
  meta.ref("annotations").erase(name);
  if (meta["annotations"].empty()) meta.erase("annotations");
  auto value = json::parse(text.as_string());
  return value && value->type() == type ? *std::move(value) : Value();
}

void drop_annotations(Value& object) {
  for (const char* name : {kMetrics, kCurrentMetrics, kConditions, kBehavior}) {
    take_annotation(object, name, json::Type::kArray);
  }
}

void annotate(Value& object, const char* name, const Value& value) {
  object.ref("metadata").ref("annotations").set(name, value.dump());
}

Value to_v2(const Value& v1) {
  Value out = v1;
  Value metrics = metrics_as(take_annotation(out, kMetrics, json::Type::kArray), false, false);
  const Value current = take_annotation(out, kCurrentMetrics, json::Type::kArray);
  const Value conditions = take_annotation(out, kConditions, json::Type::kArray);
  const Value behavior = take_annotation(out, kBehavior, json::Type::kObject);
  if (const Value use = v1["spec"]["targetCPUUtilizationPercentage"]; !use.is_null()) {
    const Value target = Value::object({{"type", "Utilization"}, {"averageUtilization", use}});
    const Value resource = Value::object({{"name", "cpu"}, {"target", target}});
    metrics.push_back(Value::object({{"type", "Resource"}, {"resource", resource}}));
  }
  if (out["spec"].is_object()) {
    out.ref("spec").erase("targetCPUUtilizationPercentage");
    if (!metrics.empty()) out.ref("spec").set("metrics", metrics);
    if (!behavior.is_null()) out.ref("spec").set("behavior", renamed(behavior, false));
  }
  if (out["status"].is_object()) {
    Value& status = out.ref("status");
    status.erase("currentCPUUtilizationPercentage");
    if (!current.is_null()) status.set("currentMetrics", metrics_as(current, false, true));
    if (!conditions.is_null()) status.set("conditions", conditions);
  }
  return normal(out, "v2");
}

void show_spec(const Value& v2, Value& out) {
  Value others = Value::array();
  for (const Value& metric : v2["spec"]["metrics"].items()) {
    if (is_cpu_use(metric)) {
      out.ref("spec").set("targetCPUUtilizationPercentage",
                          metric["resource"]["target"]["averageUtilization"]);
    } else {
      others.push_back(metric);
    }
  }
  if (!others.empty()) annotate(out, kMetrics, metrics_as(others, true, false));
  const Value& behavior = v2["spec"]["behavior"];
  if (behavior.is_object()) annotate(out, kBehavior, renamed(behavior, true));
  if (!out["spec"].is_object()) return;
  out.ref("spec").erase("metrics");
  out.ref("spec").erase("behavior");
}

void show_status(const Value& v2, Value& out) {
  const Value& status = v2["status"];
  if (!status.is_object()) return;
  for (const Value& metric : status["currentMetrics"].items()) {
    const Value& resource = metric["resource"];
    const Value& use = resource["current"]["averageUtilization"];
    if (resource["name"].as_string() != "cpu" || use.is_null()) continue;
    out.ref("status").set("currentCPUUtilizationPercentage", use);
  }
  if (!status["currentMetrics"].empty()) {
    annotate(out, kCurrentMetrics, metrics_as(status["currentMetrics"], true, true));
  }
  if (!status["conditions"].empty()) annotate(out, kConditions, status["conditions"]);
  out.ref("status").erase("currentMetrics");
  out.ref("status").erase("conditions");
}

Value to_v1(const Value& v2) {
  Value out = v2;
  drop_annotations(out);
  show_spec(v2, out);
  show_status(v2, out);
  return normal(out, "v1");
}

}  // namespace

Kind autoscaler_v1_kind() {
  return {.group = "autoscaling",
          .kind = "HorizontalPodAutoscaler",
          .plural = "horizontalpodautoscalers",
          .singular = "horizontalpodautoscaler",
          .short_names = {"hpa"},
          .categories = {"all"},
          .status_subresource = true,
          .columns = columns_of_view(autoscaler_columns(), to_v2),
          .view = KindView{.of = {"autoscaling", "v2", "horizontalpodautoscalers"},
                           .to_stored = to_v2,
                           .from_stored = to_v1}};
}

}  // namespace tessera::apiserver
