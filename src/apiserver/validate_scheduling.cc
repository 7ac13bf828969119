#include "apiserver/validate_scheduling.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "apiserver/validate_affinity.h"
#include "apiserver/validate_meta.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

const std::vector<std::string> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

std::string joined(const std::vector<std::string>& reasons) {
  std::string out;
  for (const std::string& reason : reasons) out += (out.empty() ? "" : ";") + reason;
  return out;
}

void validate_effect(const Value& effect, const Path& at, FieldErrors& errors) {
  if (std::ranges::find(kEffects, effect.as_string()) == kEffects.end()) {
    errors.not_supported(at.text(), effect, kEffects);
  }
}

bool is_integer(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

void validate_toleration_operator(const Value& toleration, const Path& at, FieldErrors& errors) {
  const std::string_view op = toleration["operator"].as_string();
  const Value& value = toleration["value"];
  if (op.empty() || op == "Equal") {
    const auto reasons = kube::check_label_value(value.as_string());
    if (!reasons.empty()) errors.invalid(at.text("operator"), value, joined(reasons));
  } else if (op == "Exists") {
    if (!value.as_string().empty()) {
      errors.invalid(at.text("operator"), value, "value must be empty when `operator` is 'Exists'");
    }
  } else if (op == "Lt" || op == "Gt") {
    if (!is_integer(value.as_string())) {
      errors.invalid(at.text("value"), value, "must be a valid decimal integer in 64 bits");
    }
  } else {
    errors.not_supported(at.text("operator"), toleration["operator"], {"Equal", "Exists"});
  }
}

void validate_toleration(const Value& toleration, const Path& at, FieldErrors& errors) {
  const std::string_view key = toleration["key"].as_string();
  if (!key.empty()) {
    validate_label_name(key, at.child("key"), errors);
  } else if (toleration["operator"].as_string() != "Exists") {
    errors.invalid(at.text("operator"), Value(toleration["operator"].as_string()),
                   "operator must be Exists when `key` is empty, which means \"match all values "
                   "and all keys\"");
  }
  const std::string_view effect = toleration["effect"].as_string();
  if (toleration.contains("tolerationSeconds") && effect != "NoExecute") {
    errors.invalid(at.text("effect"), Value(effect),
                   "effect must be 'NoExecute' when `tolerationSeconds` is set");
  }
  validate_toleration_operator(toleration, at, errors);
  if (!effect.empty()) validate_effect(toleration["effect"], at.child("effect"), errors);
}

void validate_spread_basics(const Value& spread, const Path& at, FieldErrors& errors) {
  if (spread["maxSkew"].as_int() <= 0) {
    errors.invalid(at.text("maxSkew"), spread["maxSkew"], "must be greater than zero");
  }
  if (spread["topologyKey"].as_string().empty()) {
    errors.required(at.text("topologyKey"), "can not be empty");
  }
  const std::string_view action = spread["whenUnsatisfiable"].as_string();
  if (action != "DoNotSchedule" && action != "ScheduleAnyway") {
    errors.not_supported(at.text("whenUnsatisfiable"), spread["whenUnsatisfiable"],
                         {"DoNotSchedule", "ScheduleAnyway"});
  }
  if (!spread.contains("minDomains")) return;
  if (spread["minDomains"].as_int() <= 0) {
    errors.invalid(at.text("minDomains"), spread["minDomains"], "must be greater than zero");
  }
  if (action != "DoNotSchedule") {
    errors.invalid(
        at.text("minDomains"), spread["minDomains"],
        fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action));
  }
}

void validate_match_label_keys(const Value& spread, const Path& at, FieldErrors& errors) {
  const Value& keys = spread["matchLabelKeys"];
  if (keys.empty()) return;
  if (!spread["labelSelector"].is_object()) {
    errors.forbidden(at.text("matchLabelKeys"),
                     "must not be specified when labelSelector is not set");
    return;
  }
  const Path list = at.child("matchLabelKeys");
  for (size_t i = 0; i < keys.size(); ++i) {
    validate_label_name(keys.at(i).as_string(), list.at(i), errors);
  }
}

void validate_spread(const Value& constraints, const Path& at, FieldErrors& errors) {
  std::set<std::string> seen;
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Value& spread = constraints.at(i);
    const Path here = at.at(i);
    validate_spread_basics(spread, here, errors);
    const std::string pair = fmt::format("{{{}, {}}}", spread["topologyKey"].as_string(),
                                         spread["whenUnsatisfiable"].as_string());
    if (!seen.insert(pair).second) {
      errors.duplicate(here.text("{topologyKey, whenUnsatisfiable}"), Value(pair));
    }
    for (const char* field : {"nodeAffinityPolicy", "nodeTaintsPolicy"}) {
      const std::string_view policy = spread[field].as_string();
      if (!policy.empty() && policy != "Honor" && policy != "Ignore") {
        errors.not_supported(here.text(field), spread[field], {"Honor", "Ignore"});
      }
    }
    validate_match_label_keys(spread, here, errors);
    validate_label_selector(spread["labelSelector"], here.child("labelSelector"), errors);
  }
}

void validate_gates(const Value& gates, const Path& at, FieldErrors& errors) {
  std::set<std::string> seen;
  for (size_t i = 0; i < gates.size(); ++i) {
    const Value& name = gates.at(i)["name"];
    const Path here = at.at(i);
    add_reasons(kube::check_qualified_name(name.as_string()), name, here, errors);
    if (!seen.insert(name.str()).second) errors.duplicate(here.text(), name);
  }
}

}  // namespace

void validate_tolerations(const Value& tolerations, const Path& at, FieldErrors& errors) {
  for (size_t i = 0; i < tolerations.size(); ++i) {
    validate_toleration(tolerations.at(i), at.at(i), errors);
  }
}

namespace {

// As Kubernetes shows a taint in this one message.
std::string inner_form(const Value& taint) {
  return fmt::format(R"({{"Key":{},"Value":{},"Effect":{},"TimeAdded":{}}})",
                     Value(taint["key"].as_string()).dump(),
                     Value(taint["value"].as_string()).dump(),
                     Value(taint["effect"].as_string()).dump(), taint["timeAdded"].dump());
}

}  // namespace

void validate_taints(const Value& taints, const Path& at, FieldErrors& errors) {
  std::set<std::string> seen;
  for (size_t i = 0; i < taints.size(); ++i) {
    const Value& taint = taints.at(i);
    const Path here = at.at(i);
    validate_label_name(taint["key"].as_string(), here.child("key"), errors);
    const auto reasons = kube::check_label_value(taint["value"].as_string());
    if (!reasons.empty()) errors.invalid(here.text("value"), taint["value"], joined(reasons));
    if (taint["effect"].as_string().empty()) {
      errors.required(here.text("effect"));
    } else {
      validate_effect(taint["effect"], here.child("effect"), errors);
    }
    if (!seen.insert(taint["effect"].str() + "/" + taint["key"].str()).second) {
      errors.add({"FieldValueDuplicate",
                  fmt::format("Duplicate value: {}: taints must be unique by key and effect pair",
                              inner_form(taint)),
                  here.text()});
    }
  }
}

void validate_scheduling(const Value& spec, const Path& at, FieldErrors& errors) {
  validate_labels(spec["nodeSelector"], at.child("nodeSelector"), errors);
  validate_affinity(spec["affinity"], at.child("affinity"), errors);
  validate_gates(spec["schedulingGates"], at.child("schedulingGates"), errors);
  validate_spread(spec["topologySpreadConstraints"], at.child("topologySpreadConstraints"), errors);
  validate_tolerations(spec["tolerations"], at.child("tolerations"), errors);
}

}  // namespace tessera::apiserver
