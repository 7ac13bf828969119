#include "apiserver/validate_resources.h"

#include <algorithm>
#include <limits>
#include <set>

#include "apiserver/validate_meta.h"
#include "kube/quantity.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::Quantity;

constexpr std::string_view kHugePages = "hugepages-";

// In the namespace kubernetes.io, where names without a domain are too.
bool is_native(std::string_view name) {
  return name.find('/') == name.npos || name.find("kubernetes.io/") != name.npos;
}

bool is_huge_page(std::string_view name) {
  return name.starts_with(kHugePages);
}

bool is_standard_for_containers(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || is_huge_page(name);
}

bool is_standard(std::string_view name) {
  static constexpr std::string_view kNames[] = {"cpu",
                                                "memory",
                                                "ephemeral-storage",
                                                "pods",
                                                "services",
                                                "secrets",
                                                "configmaps",
                                                "persistentvolumeclaims",
                                                "storage",
                                                "resourcequotas",
                                                "replicationcontrollers",
                                                "requests.cpu",
                                                "requests.memory",
                                                "requests.storage",
                                                "requests.ephemeral-storage",
                                                "limits.cpu",
                                                "limits.memory",
                                                "limits.ephemeral-storage",
                                                "services.nodeports",
                                                "services.loadbalancers"};
  return is_huge_page(name) || std::ranges::find(kNames, name) != std::end(kNames);
}

void validate_huge_page(std::string_view name, const Quantity& amount, const Path& at,
                        FieldErrors& errors) {
  auto page = Quantity::parse(name.substr(kHugePages.size()));
  if (page && page->value() > 0 && is_whole_amount(amount) && amount.value() % page->value() == 0)
    return;
  errors.invalid(
      at.text(), Value(amount.to_string()),
      fmt::format("{} is not positive integer multiple of {}", amount.to_string(), name));
}

void validate_amount(std::string_view name, const Quantity& amount, const Path& at,
                     FieldErrors& errors) {
  if (amount.sign() < 0) {
    errors.invalid(at.text(), Value(amount.to_string()), "must be greater than or equal to 0");
  }
  if (is_extended_resource(name) && !is_whole_amount(amount)) {
    errors.invalid(at.text(), Value(amount.to_string()), "must be an integer");
  }
  if (is_huge_page(name)) validate_huge_page(name, amount, at, errors);
}

void validate_request(std::string_view name, const Quantity& request, const Value& limits,
                      const Path& at, FieldErrors& errors) {
  const Value* limit_text = limits.find(name);
  if (limit_text == nullptr) {
    if (!may_overcommit(name)) {
      errors.required(at.text("limits"), "Limit must be set for non overcommitable resources");
    }
    return;
  }
  const Quantity limit = quantity_of(*limit_text);
  const char* rule = nullptr;
  if (!may_overcommit(name) && request != limit) {
    rule = "must be equal to";
  } else if (request > limit) {
    rule = "must be less than or equal to";
  }
  if (rule == nullptr) return;
  errors.invalid(at.text("requests"), Value(request.to_string()),
                 fmt::format("{} {} limit of {}", rule, name, limit.to_string()));
}

void validate_claims(const Value& wanted, const Value& claims, const Path& at,
                     FieldErrors& errors) {
  std::set<std::string> seen;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Value& name = wanted.at(i)["name"];
    const Path here = at.at(i);
    if (name.as_string().empty()) {
      errors.required(here.text());
      continue;
    }
    const std::string_view request = wanted.at(i)["request"].as_string();
    std::string key = name.str();
    if (!request.empty()) {
      validate_dns_label(request, here.child("request"), errors);
      key.append("/").append(request);
    }
    if (!seen.insert(key).second) errors.duplicate(here.text(), Value(key));
    const auto known = claims.items();
    if (std::ranges::none_of(known, [&](const Value& claim) { return claim["name"] == name; })) {
      errors.not_found(here.text(), name);
    }
  }
}

bool has_cpu_or_memory(const Value& list) {
  return list.contains("cpu") || list.contains("memory");
}

bool has_huge_pages(const Value& list) {
  const auto members = list.members();
  return std::ranges::any_of(members, [](const json::Member& m) { return is_huge_page(m.name()); });
}

}  // namespace

bool is_extended_resource(std::string_view name) {
  if (is_native(name) || name.starts_with("requests.")) return false;
  return kube::check_qualified_name(std::string("requests.").append(name)).empty();
}

bool is_whole_amount(const Quantity& amount) {
  const int64_t value = amount.value();
  if (Quantity(value) == amount) return true;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (value != kMax && value != -kMax - 1) return false;
  // Past 64 bits: canonical text shows a fraction as thousandths or less.
  const std::string text = amount.to_string();
  return text.find_first_of("mun") == text.npos && text.find("e-") == text.npos;
}

bool may_overcommit(std::string_view name) {
  return is_native(name) && !is_huge_page(name);
}

Quantity quantity_of(const Value& text) {
  auto parsed = Quantity::parse(text.as_string());
  return parsed ? *parsed : Quantity();
}

void validate_resource_name(std::string_view name, const Path& at, FieldErrors& errors) {
  const auto reasons = kube::check_qualified_name(name);
  add_reasons(reasons, Value(name), at, errors);
  if (reasons.empty() && name.find('/') == name.npos && !is_standard(name)) {
    errors.invalid(at.text(), Value(name), "must be a standard resource type or fully qualified");
  }
}

void validate_container_resource_name(std::string_view name, const Path& at, FieldErrors& errors) {
  validate_resource_name(name, at, errors);
  const bool plain = name.find('/') == name.npos;
  if (plain && !is_standard_for_containers(name)) {
    errors.invalid(at.text(), Value(name), "must be a standard resource for containers");
  } else if (!plain && !is_native(name) && !is_extended_resource(name)) {
    errors.invalid(at.text(), Value(name), "doesn't follow extended resource name standard");
  }
}

void validate_container_resources(const Value& resources, const Value& claims, const Path& at,
                                  FieldErrors& errors) {
  const Value& limits = resources["limits"];
  const Value& requests = resources["requests"];
  const Path limits_at = at.child("limits");
  for (const json::Member& limit : limits.members()) {
    const Path here = limits_at.key(limit.name());
    validate_container_resource_name(limit.name(), here, errors);
    validate_amount(limit.name(), quantity_of(limit.value), here, errors);
  }
  const Path requests_at = at.child("requests");
  for (const json::Member& request : requests.members()) {
    const Path here = requests_at.key(request.name());
    const Quantity amount = quantity_of(request.value);
    validate_container_resource_name(request.name(), here, errors);
    validate_amount(request.name(), amount, here, errors);
    validate_request(request.name(), amount, limits, at, errors);
  }
  if ((has_huge_pages(limits) || has_huge_pages(requests)) && !has_cpu_or_memory(limits) &&
      !has_cpu_or_memory(requests)) {
    errors.forbidden(at.text(), "HugePages require cpu or memory");
  }
  validate_claims(resources["claims"], claims, at.child("claims"), errors);
}

void validate_resource_list(const Value& list, const Path& at, FieldErrors& errors) {
  for (const json::Member& member : list.members()) {
    const Path here = at.key(member.name());
    add_reasons(kube::check_qualified_name(member.name()), member.key, here, errors);
    validate_amount(member.name(), quantity_of(member.value), here, errors);
  }
}

void validate_node_amounts(const Value& list, const Path& at, FieldErrors& errors) {
  for (const json::Member& member : list.members()) {
    const Path here = at.child(member.name());
    validate_amount(member.name(), quantity_of(member.value), here, errors);
  }
}

}  // namespace tessera::apiserver
