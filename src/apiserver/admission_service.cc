#include "apiserver/admission_service.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr uint32_t kNetwork = (10U << 24) | (96U << 16);  // 10.96.0.0/16
constexpr uint32_t kHosts = 1U << 16;
constexpr int64_t kPortFirst = 30000;
constexpr int64_t kPortLast = 32767;

std::optional<uint32_t> parse_ipv4(std::string_view text) {
  uint32_t out = 0;
  const char* at = text.data();
  const char* end = at + text.size();
  for (int i = 0; i < 4; ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    unsigned byte = 0;
    const auto [next, ec] = std::from_chars(at, end, byte);
    if (ec != std::errc() || byte > 255 || next - at > 3) return std::nullopt;
    out = (out << 8) | byte;
    at = next;
  }
  if (at != end) return std::nullopt;
  return out;
}

std::string ipv4_text(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255,
                     address & 255);
}

bool wants_address(const Value& spec) {
  return spec["type"].as_string() != "ExternalName" && spec["clusterIP"].as_string() != "None";
}

bool wants_ports(const Value& spec) {
  const std::string_view type = spec["type"].as_string();
  if (type == "LoadBalancer") return spec["allocateLoadBalancerNodePorts"].as_bool(true);
  return type == "NodePort";
}

}  // namespace

void ClusterIps::hold(const Value& service) {
  const std::lock_guard lock(mutex_);
  const Value& spec = service["spec"];
  if (const auto address = parse_ipv4(spec["clusterIP"].as_string())) addresses_.insert(*address);
  for (const Value& port : spec["ports"].items()) {
    if (port["nodePort"].as_int() != 0) ports_.insert(port["nodePort"].as_int());
  }
}

void ClusterIps::release(const Value& service) {
  const std::lock_guard lock(mutex_);
  const Value& spec = service["spec"];
  if (const auto address = parse_ipv4(spec["clusterIP"].as_string())) addresses_.erase(*address);
  for (const Value& port : spec["ports"].items()) ports_.erase(port["nodePort"].as_int());
}

void ClusterIps::assign_address(Value& spec, const std::function<uint64_t(uint64_t)>& draw,
                                FieldErrors& errors) {
  const std::string asked = spec["clusterIP"].str();
  uint32_t address = 0;
  if (!asked.empty()) {
    const auto parsed = parse_ipv4(asked);
    if (!parsed) return;  // said by the validation of the kind
    address = *parsed;
    const bool ours = (address & ~(kHosts - 1)) == kNetwork;
    if (!ours || addresses_.contains(address)) {
      errors.invalid("spec.clusterIPs", Value::array({Value(asked)}),
                     fmt::format("failed to allocate IP {}: {}", asked,
                                 ours ? "provided IP is already allocated"
                                      : "the provided network does not match the current range"));
      return;
    }
  } else {
    if (addresses_.size() >= kHosts - 2) {
      errors.forbidden("spec.clusterIP", "failed to allocate a service IP: range is full");
      return;
    }
    do {
      address = kNetwork + 2 + static_cast<uint32_t>(draw(kHosts - 3));
    } while (addresses_.contains(address));
  }
  addresses_.insert(address);
  spec.set("clusterIP", ipv4_text(address));
  spec.set("clusterIPs", Value::array({Value(ipv4_text(address))}));
}

void ClusterIps::assign_ports(Value& spec, const std::function<uint64_t(uint64_t)>& draw,
                              FieldErrors& errors) {
  for (size_t i = 0; i < spec["ports"].size(); ++i) {
    int64_t port = spec["ports"].at(i)["nodePort"].as_int();
    if (port != 0) {
      if (!ports_.insert(port).second) {
        errors.invalid(fmt::format("spec.ports[{}].nodePort", i), Value(port),
                       "provided port is already allocated");
      }
      continue;
    }
    constexpr auto kPorts = static_cast<uint64_t>(kPortLast - kPortFirst + 1);
    if (ports_.size() >= kPorts) {
      errors.forbidden(fmt::format("spec.ports[{}].nodePort", i),
                       "failed to allocate a nodePort: range is full");
      return;
    }
    do {
      port = kPortFirst + static_cast<int64_t>(draw(kPorts));
    } while (ports_.contains(port));
    ports_.insert(port);
    spec.ref("ports").ref_at(i).set("nodePort", port);
  }
}

void ClusterIps::assign(Value& service, const std::function<uint64_t(uint64_t)>& draw,
                        FieldErrors& errors) {
  const std::lock_guard lock(mutex_);
  const auto addresses = addresses_;
  const auto ports = ports_;
  Value& spec = service.ref("spec");
  if (wants_address(spec)) {
    assign_address(spec, draw, errors);
  } else if (spec["clusterIP"].as_string() == "None") {
    spec.set("clusterIPs", Value::array({Value("None")}));
  }
  if (spec["type"].as_string() != "ExternalName") {
    if (spec["ipFamilies"].empty()) spec.set("ipFamilies", Value::array({Value("IPv4")}));
    if (spec["ipFamilyPolicy"].is_null()) spec.set("ipFamilyPolicy", "SingleStack");
  }
  if (wants_ports(spec)) assign_ports(spec, draw, errors);
  if (errors.empty()) return;
  addresses_ = addresses;
  ports_ = ports;
}

void ClusterIps::carry(Value& service, const Value& before) {
  Value& spec = service.ref("spec");
  const Value& old = before["spec"];
  if (spec["clusterIP"].is_null() && wants_address(spec) && wants_address(old)) {
    for (const char* field : {"clusterIP", "clusterIPs"}) {
      if (old.contains(field)) spec.set(field, old[field]);
    }
  }
  for (size_t i = 0; wants_ports(spec) && i < spec["ports"].size(); ++i) {
    const Value& port = spec["ports"].at(i);
    if (port["nodePort"].as_int() != 0) continue;
    for (const Value& was : old["ports"].items()) {
      if (was["port"] == port["port"] && was["protocol"] == port["protocol"] &&
          was["nodePort"].as_int() != 0) {
        spec.ref("ports").ref_at(i).set("nodePort", was["nodePort"]);
        break;
      }
    }
  }
}

void ClusterIps::reassign(Value& service, const Value& before,
                          const std::function<uint64_t(uint64_t)>& draw, FieldErrors& errors) {
  release(before);
  assign(service, draw, errors);
  if (!errors.empty()) hold(before);
}

}  // namespace tessera::apiserver
