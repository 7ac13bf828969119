#include <set>

#include "apiserver/columns.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kShownMax = 3;

// Only the first three rules are looked at; those without a host stand for all.
Value hosts(const kube::Object& ingress, base::Time) {
  const Value& rules = ingress.get("spec", "rules");
  std::vector<std::string> shown;
  bool more = false;
  for (const Value& rule : rules.items()) {
    more = more || shown.size() == kShownMax;
    const std::string host = rule["host"].str();
    if (!more && !host.empty()) shown.push_back(host);
  }
  if (shown.empty()) return Value("*");
  return Value(with_more(shown, more ? rules.size() : shown.size()));
}

Value ingress_address(const kube::Object& ingress, base::Time) {
  std::set<std::string> addresses;
  for (const Value& each : ingress.get("status", "loadBalancer", "ingress").items()) {
    const std::string ip = each["ip"].str();
    const std::string& text = ip.empty() ? each["hostname"].str() : ip;
    if (!text.empty()) addresses.insert(text);
  }
  std::string out;
  for (const std::string& address : addresses) out += (out.empty() ? "" : ",") + address;
  return Value(out);
}

Value class_parameters(const kube::Object& object, base::Time) {
  const Value& parameters = object.get("spec", "parameters");
  if (!parameters.is_object()) return Value("<none>");
  std::string out = parameters["kind"].str();
  if (parameters.contains("apiGroup")) out += "." + parameters["apiGroup"].str();
  return Value(out + "/" + parameters["name"].str());
}

Value default_marked(const kube::Object& object, base::Time) {
  std::string name(object.name());
  if (object.annotation("ingressclass.kubernetes.io/is-default-class") == "true") {
    name += " (default)";
  }
  return Value(name);
}

std::string host_port(std::string_view ip, int64_t port) {
  const bool six = ip.find(':') != ip.npos;
  return six ? fmt::format("[{}]:{}", ip, port) : fmt::format("{}:{}", ip, port);
}

Value endpoints_text(const kube::Object& object, base::Time) {
  const Value& subsets = object["subsets"];
  if (subsets.empty()) return Value("<none>");
  std::vector<std::string> shown;
  size_t count = 0;
  const auto add = [&](const Value& addresses, const Value* port) {
    count += addresses.size();
    for (const Value& address : addresses.items()) {
      if (shown.size() == kShownMax) return;
      const std::string ip = address["ip"].str();
      shown.push_back(port == nullptr ? ip : host_port(ip, (*port)["port"].as_int()));
    }
  };
  for (const Value& subset : subsets.items()) {
    if (subset["ports"].empty()) add(subset["addresses"], nullptr);
    for (const Value& port : subset["ports"].items()) add(subset["addresses"], &port);
  }
  return Value(with_more(shown, count));
}

std::string or_unset(std::string text) {
  return text.empty() ? "<unset>" : text;
}

Value slice_ports(const kube::Object& slice, base::Time) {
  std::vector<std::string> shown;
  for (const Value& port : slice["ports"].items()) {
    if (shown.size() == kShownMax) break;
    if (port["port"].is_int()) {
      shown.push_back(fmt::format("{}", port["port"].as_int()));
    } else {
      shown.push_back(port.contains("name") ? port["name"].str() : "*");
    }
  }
  return Value(or_unset(with_more(shown, slice["ports"].size())));
}

Value slice_endpoints(const kube::Object& slice, base::Time) {
  std::vector<std::string> shown;
  size_t count = 0;
  for (const Value& endpoint : slice["endpoints"].items()) {
    for (const Value& address : endpoint["addresses"].items()) {
      if (shown.size() < kShownMax) shown.push_back(address.str());
      ++count;
    }
  }
  return Value(or_unset(with_more(shown, count)));
}

}  // namespace

std::vector<Column> network_policy_columns() {
  return {name_column(),
          text_column("Pod-Selector",
                      [](const kube::Object& policy, base::Time) {
                        return Value(selector_text(policy.get("spec", "podSelector")));
                      }),
          age_column()};
}

std::vector<Column> ingress_columns() {
  return {name_column(),
          text_column("Class", text_at({"spec", "ingressClassName"}, "<none>")),
          text_column("Hosts", hosts),
          text_column("Address", ingress_address),
          text_column("Ports",
                      [](const kube::Object& ingress, base::Time) {
                        return Value(ingress.get("spec", "tls").empty() ? "80" : "80, 443");
                      }),
          age_column()};
}

std::vector<Column> ingress_class_columns() {
  Column name = name_column();
  name.cell = default_marked;
  return {name, text_column("Controller", text_at({"spec", "controller"})),
          text_column("Parameters", class_parameters), age_column()};
}

std::vector<Column> endpoints_columns() {
  return {name_column(), text_column("Endpoints", endpoints_text), age_column()};
}

std::vector<Column> endpoint_slice_columns() {
  return {name_column(), text_column("AddressType", text_at({"addressType"})),
          text_column("Ports", slice_ports), text_column("Endpoints", slice_endpoints),
          age_column()};
}

}  // namespace tessera::apiserver
