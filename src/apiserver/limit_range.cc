#include "apiserver/limit_range.h"

#include <algorithm>
#include <vector>

#include "apiserver/json_edit.h"
#include "apiserver/quota_usage.h"
#include "kube/pod_resources.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::Quantity;
using kube::ResourceList;

constexpr const char* kAnnotation = "kubernetes.io/limit-ranger";

// Adds what is missing in resources[half] and says what.
std::string fill(Value& container, const char* half, const Value& defaults, const char* word,
                 std::string_view what) {
  std::string set;
  for (const json::Member& member : defaults.members()) {
    if (container["resources"][half].contains(member.name())) continue;
    container.ref("resources", half).set(member.name(), member.value);
    set += (set.empty() ? "" : ", ") + std::string(member.name());
  }
  if (set.empty()) return set;
  return fmt::format("{} {} for {} {}", set, word, what, container["name"].as_string());
}

void fill_containers(Value& spec, const char* list, std::string_view what, const Value& limit,
                     std::vector<std::string>& notes) {
  each_of(spec, list, [&](Value& container) {
    std::string requests = fill(container, "requests", limit["defaultRequest"], "request", what);
    std::string limits = fill(container, "limits", limit["default"], "limit", what);
    if (!requests.empty()) notes.push_back(std::move(requests));
    if (!limits.empty()) notes.push_back(std::move(limits));
  });
}

// The amounts that one limit is held against.
struct Amounts {
  std::string_view type;  // "Container"
  ResourceList requests;
  ResourceList limits;
};

const Quantity* find(const ResourceList& list, std::string_view name) {
  const auto it = list.find(name);
  return it == list.end() ? nullptr : &it->second;
}

// "<words> cpu usage per Container is 2".
std::string opening(const char* words, std::string_view name, const Amounts& amounts,
                    const Quantity& bound) {
  return fmt::format("{} {} usage per {} is {}", words, name, amounts.type, bound.to_string());
}

std::string below(std::string_view name, const Quantity& min, const Amounts& amounts) {
  const Quantity* request = find(amounts.requests, name);
  const Quantity* limit = find(amounts.limits, name);
  const std::string start = opening("minimum", name, amounts, min);
  if (request == nullptr) return start + ".  No request is specified";
  if (*request < min) return start + ", but request is " + request->to_string();
  if (limit != nullptr && *limit < min) return start + ", but limit is " + limit->to_string();
  return {};
}

std::string above(std::string_view name, const Quantity& max, const Amounts& amounts) {
  const Quantity* request = find(amounts.requests, name);
  const Quantity* limit = find(amounts.limits, name);
  const std::string start = opening("maximum", name, amounts, max);
  if (limit == nullptr) return start + ".  No limit is specified";
  if (*limit > max) return start + ", but limit is " + limit->to_string();
  if (request != nullptr && *request > max)
    return start + ", but request is " + request->to_string();
  return {};
}

std::string above_ratio(std::string_view name, const Quantity& ratio, const Amounts& amounts) {
  const Quantity* request = find(amounts.requests, name);
  const Quantity* limit = find(amounts.limits, name);
  const std::string start = fmt::format("{} max limit to request ratio per {} is {}", name,
                                        amounts.type, ratio.to_string());
  if (request == nullptr || request->is_zero()) {
    return start + ", but no request is specified or request is 0";
  }
  if (limit == nullptr || limit->is_zero()) {
    return start + ", but no limit is specified or limit is 0";
  }
  const double observed = limit->approximate() / request->approximate();
  if (observed <= ratio.approximate()) return {};
  return start + fmt::format(", but provided ratio is {:f}", observed);
}

using Rule = std::string (*)(std::string_view, const Quantity&, const Amounts&);

void check(const Value& bounds, Rule rule, const Amounts& amounts,
           std::vector<std::string>& refusals) {
  for (const auto& [name, bound] : resource_list_of(bounds)) {
    std::string refusal = rule(name, bound, amounts);
    if (refusal.empty() || std::ranges::find(refusals, refusal) != refusals.end()) continue;
    refusals.push_back(std::move(refusal));
  }
}

void check_amounts(const Value& limit, const Amounts& amounts, std::vector<std::string>& refusals) {
  check(limit["min"], below, amounts, refusals);
  check(limit["max"], above, amounts, refusals);
  check(limit["maxLimitRequestRatio"], above_ratio, amounts, refusals);
}

// As Kubernetes shows a list of errors.
std::string together(const std::vector<std::string>& refusals) {
  std::string out;
  for (const std::string& refusal : refusals) out += (out.empty() ? "" : ", ") + refusal;
  return refusals.size() > 1 ? "[" + out + "]" : out;
}

}  // namespace

void apply_limit_range(const Value& limit_range, Value& pod) {
  std::vector<std::string> notes;
  Value& spec = pod.ref("spec");
  for (const Value& limit : limit_range["spec"]["limits"].items()) {
    if (limit["type"].as_string() != "Container") continue;
    fill_containers(spec, "containers", "container", limit, notes);
    fill_containers(spec, "initContainers", "init container", limit, notes);
  }
  if (notes.empty()) return;
  std::string text = "LimitRanger plugin set: ";
  for (size_t i = 0; i < notes.size(); ++i) text += (i == 0 ? "" : "; ") + notes[i];
  pod.ref("metadata", "annotations").set(kAnnotation, text);
}

std::string check_limit_range_pod(const Value& limit_range, const Value& pod) {
  const auto decoded = kube::decode_pod(kube::Object(pod));
  if (!decoded) return {};  // validation has refused it
  std::vector<std::string> refusals;
  for (const Value& limit : limit_range["spec"]["limits"].items()) {
    const std::string_view type = limit["type"].as_string();
    if (type == "Pod") {
      const Amounts whole{type, kube::pod_requests(*decoded), kube::pod_limits(*decoded)};
      check_amounts(limit, whole, refusals);
    }
    if (type != "Container") continue;
    for (const auto* list : {&decoded->containers, &decoded->init_containers}) {
      for (const kube::Container& container : *list) {
        check_amounts(limit, {type, container.requests, container.limits}, refusals);
      }
    }
  }
  return together(refusals);
}

// Of claims only requests count.
std::string check_limit_range_claim(const Value& limit_range, const Value& claim) {
  const Value& requests = claim["spec"]["resources"]["requests"];
  std::vector<std::string> refusals;
  for (const Value& limit : limit_range["spec"]["limits"].items()) {
    const std::string_view type = limit["type"].as_string();
    if (type != "PersistentVolumeClaim") continue;
    const Amounts amounts{type, resource_list_of(requests), {}};
    check(limit["min"], below, amounts, refusals);
    const Rule above_request = [](std::string_view name, const Quantity& max, const Amounts& of) {
      const Quantity* request = find(of.requests, name);
      const std::string start = opening("maximum", name, of, max);
      if (request == nullptr) return start + ".  No request is specified";
      return *request > max ? start + ", but request is " + request->to_string() : std::string();
    };
    check(limit["max"], above_request, amounts, refusals);
  }
  return together(refusals);
}

}  // namespace tessera::apiserver
