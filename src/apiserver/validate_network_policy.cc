#include "apiserver/ip_address.h"
#include "apiserver/validate_container.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_network.h"

namespace tessera::apiserver {
namespace {

using json::Value;

void validate_end_port(const Value& port, const Path& at, FieldErrors& errors) {
  const Value* end = port.find("endPort");
  if (end == nullptr) return;
  const Value& begin = port["port"];
  if (begin.is_null()) {
    errors.invalid(at.text("endPort"), *end, "may not be specified when `port` is not specified");
  } else if (!begin.is_int()) {
    errors.invalid(at.text("endPort"), *end, "may not be specified when `port` is non-numeric");
  } else {
    if (end->as_int() < begin.as_int()) {
      errors.invalid(at.text("endPort"), begin, "must be greater than or equal to `port`");
    }
    validate_port_number(*end, at.child("endPort"), errors);
  }
}

void validate_port(const Value& port, const Path& at, FieldErrors& errors) {
  validate_word(port["protocol"], {"TCP", "UDP", "SCTP"}, at.child("protocol"), errors);
  if (port.contains("port")) validate_port_or_name(port["port"], at.child("port"), errors);
  validate_end_port(port, at, errors);
}

void validate_block(const Value& block, const Path& at, FieldErrors& errors) {
  const Path whole_at = at.child("cidr");
  if (block["cidr"].as_string().empty()) {
    errors.required(whole_at.text());
    return;
  }
  const auto whole = validate_prefix(block["cidr"], whole_at, errors);
  if (!whole) return;
  const Path list = at.child("except");
  for (size_t i = 0; i < block["except"].size(); ++i) {
    const Value& text = block["except"].at(i);
    const Path here = list.at(i);
    const auto part = validate_prefix(text, here, errors);
    if (!part || (whole->contains(part->address) && whole->bits < part->bits)) continue;
    errors.invalid(here.text(), text, "must be a strict subset of `cidr`");
  }
}

void validate_peer(const Value& peer, const Path& at, FieldErrors& errors) {
  const bool block = peer.contains("ipBlock");
  bool selectors = false;
  for (const char* field : {"podSelector", "namespaceSelector"}) {
    if (!peer.contains(field)) continue;
    selectors = true;
    validate_label_selector(peer[field], at.child(field), errors);
  }
  if (block) validate_block(peer["ipBlock"], at.child("ipBlock"), errors);
  if (!block && !selectors) {
    errors.required(at.text(), "must specify a peer");
  } else if (block && selectors) {
    errors.forbidden(at.text(), "may not specify both ipBlock and another peer");
  }
}

void validate_rules(const Value& rules, const char* peers, const Path& at, FieldErrors& errors) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const Path here = at.at(i);
    const Path ports = here.child("ports");
    for (size_t j = 0; j < rules.at(i)["ports"].size(); ++j) {
      validate_port(rules.at(i)["ports"].at(j), ports.at(j), errors);
    }
    const Path list = here.child(peers);
    for (size_t j = 0; j < rules.at(i)[peers].size(); ++j) {
      validate_peer(rules.at(i)[peers].at(j), list.at(j), errors);
    }
  }
}

}  // namespace

void validate_network_policy(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  validate_label_selector(spec["podSelector"], at.child("podSelector"), errors);
  validate_rules(spec["ingress"], "from", at.child("ingress"), errors);
  validate_rules(spec["egress"], "to", at.child("egress"), errors);
  const Path list = at.child("policyTypes");
  const Value& types = spec["policyTypes"];
  if (types.size() > 2) {
    errors.invalid(list.text(), types, "may not specify more than two policyTypes");
    return;
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string_view type = types.at(i).as_string();
    if (type == "Ingress" || type == "Egress") continue;
    errors.not_supported(list.at(i).text(), types.at(i), {"Ingress", "Egress"});
  }
}

}  // namespace tessera::apiserver
