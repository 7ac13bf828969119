#include <algorithm>
#include <set>

#include "apiserver/validate_container.h"
#include "apiserver/validate_core.h"
#include "apiserver/validate_meta.h"

namespace tessera::apiserver {
namespace {

using json::Value;

const std::vector<std::string> kProtocols = {"SCTP", "TCP", "UDP"};
const std::vector<std::string> kTypes = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"};
const std::vector<std::string> kAffinities = {"ClientIP", "None"};

bool is_headless(const Value& spec) {
  return spec["clusterIP"].as_string() == "None";
}

// Four numbers of at most 255.
bool is_ipv4(std::string_view text) {
  int parts = 0;
  while (parts < 4) {
    const size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    if (part.empty() || part.size() > 3 || (part.size() > 1 && part[0] == '0')) return false;
    int number = 0;
    for (const char c : part) {
      if (c < '0' || c > '9') return false;
      number = number * 10 + (c - '0');
    }
    if (number > 255) return false;
    ++parts;
    if (dot == text.npos) return parts == 4;
    text.remove_prefix(dot + 1);
  }
  return false;
}

void validate_addresses(const Value& spec, const Path& at, FieldErrors& errors) {
  constexpr std::string_view kWhy = "must be a valid IP address, (e.g. 10.9.8.7)";
  const Value& address = spec["clusterIP"];
  if (!address.as_string().empty() && !is_headless(spec) && !is_ipv4(address.as_string())) {
    const Path list = at.child("clusterIPs");
    errors.invalid(list.at(0).text(), address, kWhy);
  }
  const Path external = at.child("externalIPs");
  for (size_t i = 0; i < spec["externalIPs"].size(); ++i) {
    const Value& ip = spec["externalIPs"].at(i);
    if (!is_ipv4(ip.as_string())) errors.invalid(external.at(i).text(), ip, kWhy);
  }
}

void validate_port(const Value& port, bool named, const Path& at, std::set<std::string>& names,
                   FieldErrors& errors) {
  const std::string name = port["name"].str();
  if (name.empty()) {
    if (named) errors.required(at.text("name"));
  } else {
    validate_dns_label(name, at.child("name"), errors);
    if (!names.insert(name).second) errors.duplicate(at.text("name"), port["name"]);
  }
  validate_port_number(port["port"], at.child("port"), errors);
  validate_word(port["protocol"], kProtocols, at.child("protocol"), errors);
  validate_port_or_name(port["targetPort"], at.child("targetPort"), errors);
}

void validate_ports(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path list = at.child("ports");
  const Value& ports = spec["ports"];
  if (ports.empty() && !is_headless(spec) && spec["type"].as_string() != "ExternalName") {
    errors.required(list.text());
  }
  std::set<std::string> names;
  std::set<std::string> numbers;
  std::set<std::string> node_ports;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Value& port = ports.at(i);
    const Path here = list.at(i);
    validate_port(port, ports.size() > 1, here, names, errors);
    const std::string protocol = port["protocol"].str();
    if (!numbers.insert(fmt::format("{}/{}", protocol, port["port"].as_int())).second) {
      errors.duplicate(here.text(),
                       Value::object({{"protocol", protocol}, {"port", port["port"]}}));
    }
    const int64_t node_port = port["nodePort"].as_int();
    if (node_port == 0) continue;
    if (spec["type"].as_string() == "ClusterIP") {
      errors.forbidden(here.text("nodePort"), "may not be used when `type` is 'ClusterIP'");
    }
    if (!node_ports.insert(fmt::format("{}/{}", protocol, node_port)).second) {
      errors.duplicate(here.text("nodePort"), port["nodePort"]);
    }
  }
}

void validate_type(const Value& spec, const Path& at, FieldErrors& errors) {
  const std::string_view type = spec["type"].as_string();
  validate_word(spec["type"], kTypes, at.child("type"), errors);
  if ((type == "LoadBalancer" || type == "NodePort") && is_headless(spec)) {
    errors.invalid(at.text("clusterIPs[0]"), spec["clusterIP"],
                   fmt::format("may not be set to 'None' for {} services", type));
  }
  if (type != "ExternalName") return;
  if (!spec["clusterIPs"].empty() || !spec["clusterIP"].as_string().empty()) {
    errors.forbidden(at.text("clusterIPs"), "may not be set for ExternalName services");
  }
  std::string_view name = spec["externalName"].as_string();
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) {
    errors.required(at.text("externalName"));
  } else {
    validate_dns_subdomain(name, at.child("externalName"), errors);
  }
}

}  // namespace

void validate_service(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  validate_type(spec, at, errors);
  validate_ports(spec, at, errors);
  validate_addresses(spec, at, errors);
  validate_labels(spec["selector"], at.child("selector"), errors);
  validate_word(spec["sessionAffinity"], kAffinities, at.child("sessionAffinity"), errors);
  const Value& seconds = spec.get("sessionAffinityConfig", "clientIP", "timeoutSeconds");
  if (seconds.is_int() && (seconds.as_int() <= 0 || seconds.as_int() > 86400)) {
    errors.invalid(at.text("sessionAffinityConfig.clientIP.timeoutSeconds"), seconds,
                   "must be greater than 0 and less than 86400");
  }
  if (spec.contains("allocateLoadBalancerNodePorts") &&
      spec["type"].as_string() != "LoadBalancer") {
    errors.forbidden(at.text("allocateLoadBalancerNodePorts"),
                     "may only be used when `type` is 'LoadBalancer'");
  }
}

void validate_service_update(const Value& object, const Value& before, FieldErrors& errors) {
  const Path at("spec");
  const Value& old = before["spec"]["clusterIP"];
  const Value& now = object["spec"]["clusterIP"];
  const bool both_inside = before["spec"]["type"].as_string() != "ExternalName" &&
                           object["spec"]["type"].as_string() != "ExternalName";
  if (!both_inside || old.as_string().empty() || now == old) return;
  const Path list = at.child("clusterIPs");
  const Value& shown = object["spec"]["clusterIPs"];
  const bool primary = shown.size() > 0 && shown.at(0) == now;
  errors.invalid(list.at(0).text(), primary ? shown : Value::array({now}),
                 "may not change once set");
}

}  // namespace tessera::apiserver
