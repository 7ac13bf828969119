#include <set>

#include "apiserver/ip_address.h"
#include "apiserver/validate_container.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_network.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

const std::vector<std::string> kProtocols = {"SCTP", "TCP", "UDP"};
constexpr size_t kEndpointsMax = 1000;
constexpr size_t kAddressesMax = 100;
constexpr size_t kPortsMax = 20'000;
constexpr size_t kHintsMax = 8;

void validate_domain(const Value& name, const Path& at, FieldErrors& errors) {
  std::string_view text = name.as_string();
  if (text.empty()) {
    errors.required(at.text());
    return;
  }
  if (text.ends_with('.')) text.remove_suffix(1);
  const auto reasons = kube::check_dns1123_subdomain(text);
  add_reasons(reasons, Value(text), at, errors);
  if (reasons.empty() && text.find('.') == text.npos) {
    errors.invalid(at.text(), Value(text),
                   "should be a domain with at least two segments separated by dots");
  }
}

void validate_address(const Value& address, std::string_view type, const Path& list, size_t index,
                      FieldErrors& errors) {
  const Path at = list.at(index);
  if (type == "FQDN") return validate_domain(address, at, errors);
  if (type != "IPv4" && type != "IPv6") return;
  const auto parsed = IpAddress::parse(address.as_string());
  if (!parsed || parsed->is_mapped()) return validate_ip(address, at, errors);
  if ((parsed->bits == 32) != (type == "IPv4")) {
    errors.invalid(list.text(), address, fmt::format("must be an {} address", type));
  }
  validate_endpoint_ip(address, at, errors);
}

void validate_hints(const Value& hints, const char* field, const Path& at, FieldErrors& errors) {
  const Path list = at.child(field);
  const Value& names = hints[field];
  if (names.size() > kHintsMax) {
    errors.too_many(list.text(), names.size(), kHintsMax);
    return;
  }
  std::set<std::string_view> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    const Path item = list.at(i);
    const Path here = item.child("name");
    const Value& name = names.at(i)["name"];
    if (!seen.insert(name.as_string()).second) errors.duplicate(here.text(), name);
    if (std::string_view(field) == "forZones") {
      add_reasons(kube::check_label_value(name.as_string()), name, here, errors);
    } else {
      validate_dns_subdomain(name.as_string(), here, errors);
    }
  }
}

void validate_endpoint(const Value& endpoint, std::string_view type, const Path& at,
                       FieldErrors& errors) {
  const Path list = at.child("addresses");
  const Value& addresses = endpoint["addresses"];
  if (addresses.empty()) errors.required(list.text(), "must contain at least 1 address");
  if (addresses.size() > kAddressesMax) {
    errors.too_many(list.text(), addresses.size(), kAddressesMax);
  }
  for (size_t i = 0; i < addresses.size(); ++i) {
    validate_address(addresses.at(i), type, list, i, errors);
  }
  if (endpoint.contains("nodeName")) {
    validate_dns_subdomain(endpoint["nodeName"].as_string(), at.child("nodeName"), errors);
  }
  if (endpoint.contains("hostname")) {
    validate_dns_label(endpoint["hostname"].as_string(), at.child("hostname"), errors);
  }
  validate_labels(endpoint["deprecatedTopology"], at.child("deprecatedTopology"), errors);
  const Path hints = at.child("hints");
  for (const char* field : {"forZones", "forNodes"}) {
    validate_hints(endpoint["hints"], field, hints, errors);
  }
}

void validate_app_protocol(const Value& port, const Path& at, FieldErrors& errors) {
  if (!port.contains("appProtocol")) return;
  validate_label_name(port["appProtocol"].as_string(), at.child("appProtocol"), errors);
}

void validate_slice_ports(const Value& ports, const Path& at, FieldErrors& errors) {
  if (ports.size() > kPortsMax) {
    errors.too_many(at.text(), ports.size(), kPortsMax);
    return;
  }
  std::set<std::string_view> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Path here = at.at(i);
    const Value& name = ports.at(i)["name"];
    if (!name.as_string().empty()) {
      validate_dns_label(name.as_string(), here.child("name"), errors);
    }
    if (!names.insert(name.as_string()).second) {
      errors.duplicate(here.text("name"), Value(name.as_string()));
    }
    validate_word(ports.at(i)["protocol"], kProtocols, here.child("protocol"), errors);
    validate_app_protocol(ports.at(i), here, errors);
  }
}

void validate_subset_addresses(const Value& subset, const char* field, const Path& at,
                               FieldErrors& errors) {
  const Path list = at.child(field);
  for (size_t i = 0; i < subset[field].size(); ++i) {
    const Path here = list.at(i);
    const Value& address = subset[field].at(i);
    const Path ip = here.child("ip");
    validate_ip(address["ip"], ip, errors);
    if (!address["hostname"].as_string().empty()) {
      validate_dns_label(address["hostname"].as_string(), here.child("hostname"), errors);
    }
    if (address.contains("nodeName")) {
      validate_dns_subdomain(address["nodeName"].as_string(), here.child("nodeName"), errors);
    }
    validate_endpoint_ip(address["ip"], ip, errors);
  }
}

void validate_subset_ports(const Value& ports, const Path& at, FieldErrors& errors) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const Path here = at.at(i);
    const std::string_view name = ports.at(i)["name"].as_string();
    if (!name.empty()) {
      validate_dns_label(name, here.child("name"), errors);
    } else if (ports.size() > 1) {
      errors.required(here.text("name"));
    }
    validate_port_number(ports.at(i)["port"], here.child("port"), errors);
    validate_word(ports.at(i)["protocol"], kProtocols, here.child("protocol"), errors);
    validate_app_protocol(ports.at(i), here, errors);
  }
}

}  // namespace

void validate_endpoint_slice(const Value& object, FieldErrors& errors) {
  validate_word(object["addressType"], {"FQDN", "IPv4", "IPv6"}, Path("addressType"), errors);
  validate_slice_ports(object["ports"], Path("ports"), errors);
  const Path list("endpoints");
  const Value& endpoints = object["endpoints"];
  if (endpoints.size() > kEndpointsMax) {
    errors.too_many(list.text(), endpoints.size(), kEndpointsMax);
    return;
  }
  for (size_t i = 0; i < endpoints.size(); ++i) {
    validate_endpoint(endpoints.at(i), object["addressType"].as_string(), list.at(i), errors);
  }
}

void validate_endpoint_slice_update(const Value& object, const Value& before, FieldErrors& errors) {
  validate_immutable(object["addressType"], before["addressType"], Path("addressType"), errors);
}

void validate_endpoints(const Value& object, FieldErrors& errors) {
  const Path list("subsets");
  const Value& subsets = object["subsets"];
  for (size_t i = 0; i < subsets.size(); ++i) {
    const Path here = list.at(i);
    const Value& subset = subsets.at(i);
    if (subset["addresses"].empty() && subset["notReadyAddresses"].empty()) {
      errors.required(here.text(), "must specify `addresses` or `notReadyAddresses`");
    }
    for (const char* field : {"addresses", "notReadyAddresses"}) {
      validate_subset_addresses(subset, field, here, errors);
    }
    validate_subset_ports(subset["ports"], here.child("ports"), errors);
  }
}

}  // namespace tessera::apiserver
