#include "apiserver/validate_job_policy.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "apiserver/validate_meta.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kRulesMax = 20;
constexpr size_t kExitCodesMax = 255;
constexpr size_t kConditionsMax = 20;
constexpr size_t kIndexesBytesMax = 64 * 1024;

bool has_container(const Value& spec, std::string_view name) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const Value& container : spec["template"]["spec"][list].items()) {
      if (container["name"].as_string() == name) return true;
    }
  }
  return false;
}

void validate_exit_values(const Value& values, bool in, const Path& at, FieldErrors& errors) {
  if (values.empty()) {
    errors.invalid(at.text(), Value::array(), "at least one value is required");
  } else if (values.size() > kExitCodesMax) {
    errors.too_many(at.text(), values.size(), kExitCodesMax);
  }
  bool ordered = true;
  std::set<int64_t> seen;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t code = values.at(i).as_int();
    if (in && code == 0) {
      errors.invalid(at.at(i).text(), values.at(i), "must not be 0 for the In operator");
    }
    if (!seen.insert(code).second) errors.duplicate(at.at(i).text(), values.at(i));
    ordered = ordered && (i == 0 || values.at(i - 1).as_int() <= code);
  }
  if (!ordered) errors.invalid(at.text(), values, "must be ordered");
}

void validate_exit_codes(const Value& codes, const Value& spec, const Path& at,
                         FieldErrors& errors) {
  const std::string_view op = codes["operator"].as_string();
  if (op.empty()) {
    errors.required(at.text("operator"), "valid values: [\"In\" \"NotIn\"]");
  } else if (op != "In" && op != "NotIn") {
    errors.not_supported(at.text("operator"), codes["operator"], {"In", "NotIn"});
  }
  const Value* container = codes.find("containerName");
  if (container != nullptr && !has_container(spec, container->as_string())) {
    errors.invalid(at.text("containerName"), *container,
                   "must be one of the container or initContainer names in the pod template");
  }
  validate_exit_values(codes["values"], op == "In", at.child("values"), errors);
}

void validate_conditions(const Value& conditions, const Path& at, FieldErrors& errors) {
  if (conditions.size() > kConditionsMax) {
    errors.too_many(at.text(), conditions.size(), kConditionsMax);
  }
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Path here = at.at(i);
    const Value& condition = conditions.at(i);
    validate_label_name(condition["type"].as_string(), here.child("type"), errors);
    const std::string_view status = condition["status"].as_string();
    if (status.empty()) {
      errors.required(here.text("status"), "valid values: [\"False\" \"True\" \"Unknown\"]");
    } else if (status != "True" && status != "False" && status != "Unknown") {
      errors.not_supported(here.text("status"), condition["status"], {"False", "True", "Unknown"});
    }
  }
}

void validate_action(const Value& rule, const Value& spec, const Path& at, FieldErrors& errors) {
  static const std::vector<std::string> kActions = {"Count", "FailIndex", "FailJob", "Ignore"};
  const std::string_view action = rule["action"].as_string();
  if (action.empty()) {
    errors.required(at.text(), "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
  } else if (action == "FailIndex" && !spec.contains("backoffLimitPerIndex")) {
    errors.invalid(at.text(), rule["action"], "requires the backoffLimitPerIndex to be set");
  } else if (std::ranges::find(kActions, action) == kActions.end()) {
    errors.not_supported(at.text(), rule["action"], kActions);
  }
}

void validate_failure_rule(const Value& rule, const Value& spec, const Path& at,
                           FieldErrors& errors) {
  validate_action(rule, spec, at.child("action"), errors);
  const bool codes = rule["onExitCodes"].is_object();
  const bool conditions = !rule["onPodConditions"].empty();
  if (codes) validate_exit_codes(rule["onExitCodes"], spec, at.child("onExitCodes"), errors);
  validate_conditions(rule["onPodConditions"], at.child("onPodConditions"), errors);
  if (codes != conditions) return;
  errors.add({"FieldValueInvalid",
              codes ? "Invalid value: specifying both OnExitCodes and OnPodConditions is not "
                      "supported"
                    : "Invalid value: specifying one of OnExitCodes and OnPodConditions is "
                      "required",
              at.text()});
}

void validate_failure_policy(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path list = at.child("rules");
  const Value& rules = spec["podFailurePolicy"]["rules"];
  if (rules.size() > kRulesMax) errors.too_many(list.text(), rules.size(), kRulesMax);
  for (size_t i = 0; i < rules.size(); ++i) {
    validate_failure_rule(rules.at(i), spec, list.at(i), errors);
  }
}

base::Result<int64_t> parse_index(std::string_view text, int64_t completions) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return base::error(base::Code::kInvalid, "cannot convert string to integer for index: \"{}\"",
                       text);
  }
  if (number >= completions) {
    return base::error(base::Code::kInvalid, "too large index: \"{}\"", text);
  }
  return number;
}

// How many indexes "1,3-5" names.
base::Result<int64_t> count_indexes(std::string_view text, int64_t completions) {
  int64_t total = 0;
  int64_t last = -1;
  bool more = !text.empty();
  while (more) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    more = comma < text.size();
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t dash = std::min(part.find('-'), part.size());
    if (dash < part.size() && part.find('-', dash + 1) != part.npos) {
      return base::error(base::Code::kInvalid,
                         "the fragment \"{}\" violates the requirement that an index interval can "
                         "have at most two parts separated by '-'",
                         part);
    }
    TS_TRY(const int64_t first, parse_index(part.substr(0, dash), completions));
    int64_t end = first;
    if (dash < part.size()) {
      TS_TRY(end, parse_index(part.substr(dash + 1), completions));
    }
    const bool backwards = dash < part.size() && first >= end;
    if (backwards || last >= first) {
      return base::error(base::Code::kInvalid, "non-increasing order, previous: {}, current: {}",
                         backwards ? first : last, backwards ? end : first);
    }
    total += end - first + 1;
    last = end;
  }
  return total;
}

// How many indexes the rule names; nothing where it names none or they cannot be read.
int64_t validate_indexes(const Value& rule, int64_t completions, const Path& at,
                         FieldErrors& errors) {
  const Value* indexes = rule.find("succeededIndexes");
  if (indexes == nullptr) return 0;
  if (indexes->as_string().size() > kIndexesBytesMax) {
    errors.too_long(at.text(), kIndexesBytesMax);
    return 0;
  }
  auto count = count_indexes(indexes->as_string(), completions);
  if (count) return *count;
  errors.invalid(at.text(), *indexes,
                 fmt::format("error parsing succeededIndexes: {}", count.error().message));
  return 0;
}

void validate_success_rule(const Value& rule, int64_t completions, const Path& at,
                           FieldErrors& errors) {
  const Value* wanted = rule.find("succeededCount");
  if (wanted == nullptr && !rule.contains("succeededIndexes")) {
    errors.required(at.text(),
                    "at least one of succeededCount or succeededIndexes must be specified");
  }
  const int64_t indexes = validate_indexes(rule, completions, at.child("succeededIndexes"), errors);
  if (wanted == nullptr) return;
  const Path count = at.child("succeededCount");
  validate_not_negative(*wanted, count, errors);
  if (wanted->as_int() > completions) {
    errors.invalid(count.text(), *wanted,
                   fmt::format("must be less than or equal to {} (the number of specified "
                               "completions)",
                               completions));
  }
  if (rule.contains("succeededIndexes") && wanted->as_int() > indexes) {
    errors.invalid(count.text(), *wanted,
                   fmt::format("must be less than or equal to {} (the number of indexes in the "
                               "specified succeededIndexes field)",
                               indexes));
  }
}

void validate_success_policy(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path list = at.child("rules");
  const Value& rules = spec["successPolicy"]["rules"];
  if (rules.empty()) {
    errors.required(list.text(),
                    "at least one rules must be specified when the successPolicy is specified");
  }
  if (rules.size() > kRulesMax) errors.too_many(list.text(), rules.size(), kRulesMax);
  for (size_t i = 0; i < rules.size(); ++i) {
    validate_success_rule(rules.at(i), spec["completions"].as_int(), list.at(i), errors);
  }
}

}  // namespace

void validate_job_policies(const Value& spec, const Path& at, FieldErrors& errors) {
  if (spec.contains("podFailurePolicy")) {
    validate_failure_policy(spec, at.child("podFailurePolicy"), errors);
  }
  // Without indexes it is refused as a whole elsewhere.
  if (spec.contains("successPolicy") && spec["completionMode"].as_string() == "Indexed") {
    validate_success_policy(spec, at.child("successPolicy"), errors);
  }
}

}  // namespace tessera::apiserver
