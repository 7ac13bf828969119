#include <algorithm>
#include <set>

#include "apiserver/columns.h"

namespace tessera::apiserver {
namespace {

using json::Value;

std::string node_status(const Value& node) {
  std::string out = "Unknown";
  for (const Value& condition : node["status"]["conditions"].items()) {
    if (condition["type"].as_string() != "Ready") continue;
    out = condition["status"].as_string() == "True" ? "Ready" : "NotReady";
  }
  if (node["spec"]["unschedulable"].as_bool()) out += ",SchedulingDisabled";
  return out;
}

std::string node_roles(const Value& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::set<std::string> roles;
  for (const json::Member& label : node["metadata"]["labels"].members()) {
    if (label.name().starts_with(kPrefix) && label.name().size() > kPrefix.size()) {
      roles.emplace(label.name().substr(kPrefix.size()));
    } else if (label.name() == "kubernetes.io/role" && !label.value.as_string().empty()) {
      roles.insert(label.value.str());
    }
  }
  std::string out;
  for (const std::string& role : roles) out += (out.empty() ? "" : ",") + role;
  return out.empty() ? "<none>" : out;
}

Value node_address(const Value& node, std::string_view type) {
  for (const Value& address : node["status"]["addresses"].items()) {
    if (address["type"].as_string() == type) return address["address"];
  }
  return Value("<none>");
}

Cell node_info(const char* field) {
  return [field](const kube::Object& node, base::Time) {
    const std::string text = node.get("status", "nodeInfo", field).str();
    return Value(text.empty() ? "<unknown>" : text);
  };
}

Value kernel_version(const kube::Object& node, base::Time) {
  const Value& details = node.get("status", "nodeInfo");
  std::string text = details["kernelVersion"].str();
  if (text.empty()) text = "<unknown>";
  const std::string architecture = details["architecture"].str();
  return Value(architecture.empty() ? text : text + " (" + architecture + ")");
}

Cell member(const char* name) {
  return [name](const kube::Object& object, base::Time) { return Value(object[name].as_string()); };
}

std::string balancer_addresses(const Value& service) {
  std::string out;
  for (const Value& ingress : service.get("status", "loadBalancer", "ingress").items()) {
    const bool has_ip = !ingress["ip"].as_string().empty();
    if (!out.empty()) out += ',';
    out += ingress[has_ip ? "ip" : "hostname"].as_string();
  }
  return out;
}

Value external_address(const kube::Object& service, base::Time) {
  const Value& spec = service["spec"];
  const std::string_view type = spec["type"].as_string();
  if (type == "ExternalName") return spec["externalName"];
  std::string out = type == "LoadBalancer" ? balancer_addresses(service.json()) : std::string();
  for (const Value& address : spec["externalIPs"].items()) {
    if (!out.empty()) out += ',';
    out += address.as_string();
  }
  if (!out.empty()) return Value(out);
  return Value(type == "LoadBalancer" ? "<pending>" : "<none>");
}

Value service_ports(const kube::Object& service, base::Time) {
  std::string out;
  for (const Value& port : service.get("spec", "ports").items()) {
    if (!out.empty()) out += ',';
    out += fmt::format("{}", port["port"].as_int());
    if (port["nodePort"].as_int() > 0) out += fmt::format(":{}", port["nodePort"].as_int());
    out += fmt::format("/{}", port["protocol"].as_string());
  }
  return Value(out.empty() ? "<none>" : out);
}

}  // namespace

std::vector<Column> node_columns() {
  return {name_column(),
          text_column("Status", [](const kube::Object& node,
                                   base::Time) { return Value(node_status(node.json())); }),
          text_column("Roles", [](const kube::Object& node,
                                  base::Time) { return Value(node_roles(node.json())); }),
          age_column(),
          text_column("Version",
                      [](const kube::Object& node, base::Time) {
                        return Value(node.get("status", "nodeInfo", "kubeletVersion").as_string());
                      }),
          wide_column("Internal-IP",
                      [](const kube::Object& node, base::Time) {
                        return node_address(node.json(), "InternalIP");
                      }),
          wide_column("External-IP",
                      [](const kube::Object& node, base::Time) {
                        return node_address(node.json(), "ExternalIP");
                      }),
          wide_column("OS-Image", node_info("osImage")),
          wide_column("Kernel-Version", kernel_version),
          wide_column("Container-Runtime", node_info("containerRuntimeVersion"))};
}

std::vector<Column> namespace_columns() {
  return {name_column(),
          text_column("Status",
                      [](const kube::Object& object, base::Time) {
                        return Value(object.get("status", "phase").as_string());
                      }),
          age_column()};
}

std::vector<Column> config_map_columns() {
  return {name_column(),
          text_column("Data",
                      [](const kube::Object& object, base::Time) {
                        return Value(object["data"].size() + object["binaryData"].size());
                      }),
          age_column()};
}

std::vector<Column> secret_columns() {
  return {name_column(), text_column("Type", member("type")),
          text_column("Data", [](const kube::Object& object,
                                 base::Time) { return Value(object["data"].size()); }),
          age_column()};
}

// Since 1.36 without the number of secrets.
std::vector<Column> service_account_columns() {
  return {name_column(), age_column()};
}

std::vector<Column> service_columns() {
  return {
      name_column(),
      text_column("Type", [](const kube::Object& object,
                             base::Time) { return Value(object.get("spec", "type").as_string()); }),
      text_column("Cluster-IP",
                  [](const kube::Object& object, base::Time) {
                    const std::string address = object.get("spec", "clusterIP").str();
                    return Value(address.empty() ? "<none>" : address);
                  }),
      text_column("External-IP", external_address),
      text_column("Port(s)", service_ports),
      age_column(),
      wide_column("Selector", [](const kube::Object& object, base::Time) {
        return Value(labels_text(object.get("spec", "selector")));
      })};
}

std::vector<Column> priority_class_columns() {
  return {name_column(),
          number_column("Value", [](const kube::Object& object,
                                    base::Time) { return Value(object["value"].as_int()); }),
          {.name = "Global-Default",
           .type = "boolean",
           .cell = [](const kube::Object& object,
                      base::Time) { return Value(object["globalDefault"].as_bool()); }},
          age_column(),
          text_column("PreemptionPolicy", member("preemptionPolicy"))};
}

std::vector<Column> lease_columns() {
  return {name_column(),
          text_column("Holder",
                      [](const kube::Object& object, base::Time) {
                        return Value(object.get("spec", "holderIdentity").as_string());
                      }),
          age_column()};
}

}  // namespace tessera::apiserver
