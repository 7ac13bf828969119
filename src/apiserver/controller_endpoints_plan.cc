#include "apiserver/controller_endpoints_plan.h"

#include <algorithm>
#include <optional>

#include "apiserver/controllers_pods.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr size_t kEndpointsMax = 100;
constexpr const char* kHeadless = "service.kubernetes.io/headless";
constexpr const char* kEndpointsOwner = "endpoints.kubernetes.io/managed-by";

bool is_headless(const Object& service) {
  return service.get("spec", "clusterIP").as_string() == "None";
}

std::string address_of(const Object& pod) {
  return pod.get("status", "podIP").str();
}

// The port of the pod that a port of the Service means; nothing where it has none of that name.
std::optional<int64_t> target_of(const Value& port, const Object& pod) {
  const Value& target = port["targetPort"];
  if (!target.is_string()) return target.is_int() ? target.as_int() : port["port"].as_int();
  for (const Value& container : pod.get("spec", "containers").items()) {
    for (const Value& open : container["ports"].items()) {
      const bool same_protocol =
          open["protocol"] == port["protocol"] ||
          (open["protocol"].is_null() && port["protocol"].as_string() == "TCP");
      if (open["name"] == target && same_protocol) return open["containerPort"].as_int();
    }
  }
  return std::nullopt;
}

// As slices write them; Endpoints leave an empty name out.
Value ports_of(const Object& service, const Object& pod, bool of_slice) {
  Value out = Value::array();
  for (const Value& port : service.get("spec", "ports").items()) {
    const auto target = target_of(port, pod);
    if (!target) continue;
    Value one = Value::object({{"port", *target}, {"protocol", port["protocol"]}});
    if (of_slice || !port["name"].as_string().empty()) one.set("name", port["name"].as_string());
    if (port.contains("appProtocol")) one.set("appProtocol", port["appProtocol"]);
    out.push_back(std::move(one));
  }
  return out;
}

Value reference_to(const Object& pod) {
  return Value::object(
      {{"kind", "Pod"}, {"namespace", pod.ns()}, {"name", pod.name()}, {"uid", pod.uid()}});
}

bool says_hostname(const Object& service, const Object& pod) {
  return !pod.get("spec", "hostname").as_string().empty() &&
         pod.get("spec", "subdomain").as_string() == service.name();
}

Value endpoint_of(const Object& service, const Backend& backend) {
  const Object& pod = backend.pod;
  const bool serving = is_ready(pod);
  const bool terminating = pod.deleting();
  const bool asked = service.get("spec", "publishNotReadyAddresses").as_bool();
  Value out =
      Value::object({{"addresses", Value::array({Value(address_of(pod))})},
                     {"conditions", Value::object({{"ready", asked || (serving && !terminating)},
                                                   {"serving", serving},
                                                   {"terminating", terminating}})},
                     {"targetRef", reference_to(pod)}});
  const Value& node = pod.get("spec", "nodeName");
  if (!node.as_string().empty()) out.set("nodeName", node);
  if (!backend.zone.empty()) out.set("zone", backend.zone);
  if (says_hostname(service, pod)) out.set("hostname", pod.get("spec", "hostname"));
  return out;
}

Value labels_of(const Object& service) {
  Value out = Value::object();
  for (const json::Member& label : service.metadata()["labels"].members()) {
    out.set(label.name(), label.value);
  }
  out.erase(kHeadless);
  if (is_headless(service)) out.set(kHeadless, "");
  return out;
}

Value slice_labels(const Object& service) {
  Value out = labels_of(service);
  out.set(kServiceName, service.name());
  out.set(kSliceOwner, kSliceController);
  return out;
}

Value new_slice(const Object& service, Value ports, Value endpoints, base::Random& random) {
  Value owner = Value::object({{"apiVersion", "v1"},
                               {"kind", "Service"},
                               {"name", service.name()},
                               {"uid", service.uid()},
                               {"controller", true},
                               {"blockOwnerDeletion", true}});
  return Value::object(
      {{"apiVersion", "discovery.k8s.io/v1"},
       {"kind", "EndpointSlice"},
       {"metadata", Value::object({{"name", generated_name(service.name(), random)},
                                   {"generateName", std::string(service.name()) + "-"},
                                   {"namespace", service.ns()},
                                   {"labels", slice_labels(service)},
                                   {"ownerReferences", Value::array({std::move(owner)})}})},
       {"addressType", "IPv4"},
       {"endpoints", std::move(endpoints)},
       {"ports", std::move(ports)}});
}

using Wanted = std::map<std::string, Value>;  // by uid

struct Group {
  Value ports;
  Wanted wanted;
};

// What of the slice stays, in its order; taken out of `wanted`.
Value keep(const Object& slice, Wanted& wanted) {
  Value out = Value::array();
  for (const Value& endpoint : slice["endpoints"].items()) {
    const auto it = wanted.find(endpoint["targetRef"]["uid"].str());
    if (it == wanted.end()) continue;
    out.push_back(std::move(it->second));
    wanted.erase(it);
  }
  return out;
}

void fill(Value& endpoints, Wanted& wanted) {
  while (endpoints.size() < kEndpointsMax && !wanted.empty()) {
    endpoints.push_back(std::move(wanted.begin()->second));
    wanted.erase(wanted.begin());
  }
}

void rewrite(const Object& slice, const Object& service, Value endpoints, Value ports,
             SlicePlan& plan) {
  Value next = slice.json();
  next.set("endpoints", std::move(endpoints));
  next.set("ports", std::move(ports));
  next.ref("metadata").set("labels", slice_labels(service));
  if (!(next == slice.json())) plan.update.push_back(std::move(next));
}

void plan_group(const Object& service, Group& group, std::vector<Object>& slices, SlicePlan& plan,
                base::Random& random) {
  std::vector<std::pair<Object, Value>> kept;
  for (size_t i = 0; i < slices.size();) {
    if (!(slices[i]["ports"] == group.ports)) {
      ++i;
      continue;
    }
    Value endpoints = keep(slices[i], group.wanted);
    kept.emplace_back(slices[i], std::move(endpoints));
    slices.erase(slices.begin() + static_cast<ptrdiff_t>(i));
  }
  for (auto& [slice, endpoints] : kept) {
    fill(endpoints, group.wanted);
    if (endpoints.empty()) {
      slices.push_back(slice);  // for whoever needs one, else it goes
    } else {
      rewrite(slice, service, std::move(endpoints), group.ports, plan);
    }
  }
  while (!group.wanted.empty()) {
    Value endpoints = Value::array();
    fill(endpoints, group.wanted);
    if (slices.empty()) {
      plan.create.push_back(new_slice(service, group.ports, std::move(endpoints), random));
      continue;
    }
    rewrite(slices.back(), service, std::move(endpoints), group.ports, plan);
    slices.pop_back();
  }
}

}  // namespace

bool leads_to_pods(const Object& service) {
  return service.get("spec", "selector").is_object() && !service.get("spec", "selector").empty() &&
         service.get("spec", "type").as_string() != "ExternalName";
}

SlicePlan plan_slices(const Object& service, const std::vector<Backend>& backends,
                      const std::vector<Object>& slices, base::Random& random) {
  std::map<std::string, Group> groups;
  for (const Backend& backend : backends) {
    Value ports = ports_of(service, backend.pod, true);
    Group& group = groups[ports.dump()];
    group.ports = std::move(ports);
    group.wanted[std::string(backend.pod.uid())] = endpoint_of(service, backend);
  }
  SlicePlan plan;
  std::vector<Object> rest = slices;
  for (auto& [key, group] : groups) plan_group(service, group, rest, plan, random);
  if (groups.empty()) {
    // A slice without endpoints says that there are none.
    if (rest.empty()) {
      plan.create.push_back(new_slice(service, Value(), Value(), random));
    } else {
      rewrite(rest.back(), service, Value(), Value(), plan);
      rest.pop_back();
    }
  }
  plan.remove = std::move(rest);
  return plan;
}

Value plan_endpoints(const Object& service, const std::vector<Backend>& backends,
                     const Object& before) {
  struct Subset {
    Value ports;
    std::map<std::string, Value> ready;  // by address
    std::map<std::string, Value> not_ready;
  };
  std::map<std::string, Subset> subsets;
  const bool all = service.get("spec", "publishNotReadyAddresses").as_bool();
  for (const Backend& backend : backends) {
    const Object& pod = backend.pod;
    if (pod.deleting() && !all) continue;
    Value ports = ports_of(service, pod, false);
    if (ports.empty() && !is_headless(service)) continue;
    Subset& subset = subsets[ports.dump()];
    subset.ports = std::move(ports);
    Value address = Value::object({{"ip", address_of(pod)}, {"targetRef", reference_to(pod)}});
    const Value& node = pod.get("spec", "nodeName");
    if (!node.as_string().empty()) address.set("nodeName", node);
    if (says_hostname(service, pod)) address.set("hostname", pod.get("spec", "hostname"));
    (all || is_ready(pod) ? subset.ready : subset.not_ready)[address_of(pod)] = std::move(address);
  }
  Value list = Value::array();
  const auto values = [](std::map<std::string, Value>& from) {
    Value out = Value::array();
    for (auto& [key, value] : from) out.push_back(std::move(value));
    return out;
  };
  for (auto& [key, subset] : subsets) {
    Value one = Value::object();
    if (!subset.ready.empty()) one.set("addresses", values(subset.ready));
    if (!subset.not_ready.empty()) one.set("notReadyAddresses", values(subset.not_ready));
    if (!subset.ports.empty()) one.set("ports", std::move(subset.ports));
    list.push_back(std::move(one));
  }
  Value labels = labels_of(service);
  labels.set(kEndpointsOwner, "endpoint-controller");
  Value next = before ? before.json()
                      : Value::object({{"apiVersion", "v1"},
                                       {"kind", "Endpoints"},
                                       {"metadata", Value::object({{"name", service.name()},
                                                                   {"namespace", service.ns()}})}});
  next.ref("metadata").set("labels", std::move(labels));
  if (list.empty()) {
    next.erase("subsets");
  } else {
    next.set("subsets", std::move(list));
  }
  return before && next == before.json() ? Value() : next;
}

}  // namespace tessera::apiserver::controller
