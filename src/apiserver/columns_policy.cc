#include <algorithm>

#include "apiserver/columns.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kMetricsShown = 2;

Cell quota_side(bool limits) {
  return [limits](const kube::Object& quota, base::Time) {
    std::string out;
    for (const json::Member& hard : quota.get("status", "hard").members()) {
      if (hard.name().starts_with("limits.") != limits) continue;
      const Value& used = quota.get("status", "used", hard.name());
      if (!out.empty()) out += ", ";
      out += fmt::format("{}: {}/{}", hard.name(), used.is_string() ? used.as_string() : "0",
                         hard.value.as_string());
    }
    return Value(out);
  };
}

Cell count_or_percent(const char* field) {
  return [field](const kube::Object& budget, base::Time) {
    const Value& value = budget.get("spec", field);
    if (value.is_null()) return Value("N/A");
    return Value(value.is_string() ? value.str() : fmt::format("{}", value.as_int()));
  };
}

std::string text_or(const Value& value, const char* otherwise) {
  if (value.is_int()) return fmt::format("{}", value.as_int());
  return value.is_string() ? value.str() : otherwise;
}

std::string percent_or(const Value& value, const char* otherwise) {
  return value.is_int() ? fmt::format("{}%", value.as_int()) : otherwise;
}

// A part of what a resource may use: "cpu: 50%/80%".
std::string resource_metric(const Value& spec, const Value& current) {
  const Value& target = spec["target"];
  const std::string name = spec["name"].str();
  if (target.contains("averageValue")) {
    return fmt::format("{}: {}/{}", name, text_or(current["averageValue"], "<unknown>"),
                       target["averageValue"].as_string());
  }
  return fmt::format("{}: {}/{}", name, percent_or(current["averageUtilization"], "<unknown>"),
                     percent_or(target["averageUtilization"], "<auto>"));
}

std::string custom_metric(const Value& spec, const Value& current, bool of_pods) {
  const Value& target = spec["target"];
  if (of_pods || target.contains("averageValue")) {
    return fmt::format("{}/{}{}", text_or(current["averageValue"], "<unknown>"),
                       text_or(target["averageValue"], "0"), of_pods ? "" : " (avg)");
  }
  return fmt::format("{}/{}", text_or(current["value"], "<unknown>"),
                     text_or(target["value"], "0"));
}

std::string metric_text(const Value& spec, const Value& status) {
  const std::string_view type = spec["type"].as_string();
  const auto current = [&](const char* member) -> const Value& {
    return status[member]["current"];
  };
  if (type == "Resource") return resource_metric(spec["resource"], current("resource"));
  if (type == "ContainerResource") {
    return resource_metric(spec["containerResource"], current("containerResource"));
  }
  if (type == "Pods") return custom_metric(spec["pods"], current("pods"), true);
  if (type == "Object") return custom_metric(spec["object"], current("object"), false);
  if (type == "External") return custom_metric(spec["external"], current("external"), false);
  return "<unknown type>";
}

Value metrics(const kube::Object& scaler, base::Time) {
  const Value& specs = scaler.get("spec", "metrics");
  const Value& states = scaler.get("status", "currentMetrics");
  if (specs.empty()) return Value("<none>");
  std::string out;
  for (size_t i = 0; i < std::min(specs.size(), kMetricsShown); ++i) {
    if (i > 0) out += ", ";
    out += metric_text(specs.at(i), i < states.size() ? states.at(i) : Value());
  }
  if (specs.size() > kMetricsShown) {
    out += fmt::format(" + {} more...", specs.size() - kMetricsShown);
  }
  return Value(out);
}

Value scaled_object(const kube::Object& scaler, base::Time) {
  const Value& target = scaler.get("spec", "scaleTargetRef");
  return Value(target["kind"].str() + "/" + target["name"].str());
}

// "ns/name" for service accounts, else the name.
Cell subjects(const char* kind) {
  return [kind](const kube::Object& binding, base::Time) {
    const bool account = std::string_view(kind) == "ServiceAccount";
    std::string out;
    for (const Value& subject : binding["subjects"].items()) {
      if (subject["kind"].as_string() != kind) continue;
      if (!out.empty()) out += ", ";
      if (account) out += subject["namespace"].str() + "/";
      out += subject["name"].as_string();
    }
    return Value(out);
  };
}

// Kinds without a printer of their own show when they were made.
Column created_column() {
  return {.name = "Created At", .type = "date", .cell = text_at({"metadata", "creationTimestamp"})};
}

}  // namespace

std::vector<Column> resource_quota_columns() {
  return {name_column(), text_column("Request", quota_side(false)),
          text_column("Limit", quota_side(true)), age_column()};
}

std::vector<Column> limit_range_columns() {
  return {name_column(), created_column()};
}

std::vector<Column> disruption_budget_columns() {
  return {name_column(), text_column("Min Available", count_or_percent("minAvailable")),
          text_column("Max Unavailable", count_or_percent("maxUnavailable")),
          number_column("Allowed Disruptions", number_at("status", "disruptionsAllowed")),
          age_column()};
}

std::vector<Column> autoscaler_columns() {
  return {name_column(),
          text_column("Reference", scaled_object),
          text_column("Targets", metrics),
          text_column("MinPods",
                      [](const kube::Object& scaler, base::Time) {
                        return Value(text_or(scaler.get("spec", "minReplicas"), "<unset>"));
                      }),
          text_column("MaxPods", number_at("spec", "maxReplicas")),
          text_column("Replicas", number_at("status", "currentReplicas")),
          age_column()};
}

std::vector<Column> runtime_class_columns() {
  return {name_column(), text_column("Handler", text_at({"handler"})), age_column()};
}

std::vector<Column> role_columns() {
  return {name_column(), created_column()};
}

std::vector<Column> binding_columns() {
  return {name_column(),
          text_column("Role",
                      [](const kube::Object& binding, base::Time) {
                        const Value& role = binding["roleRef"];
                        return Value(role["kind"].str() + "/" + role["name"].str());
                      }),
          age_column(),
          wide_column("Users", subjects("User")),
          wide_column("Groups", subjects("Group")),
          wide_column("ServiceAccounts", subjects("ServiceAccount"))};
}

}  // namespace tessera::apiserver
