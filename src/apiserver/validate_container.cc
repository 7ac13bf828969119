#include "apiserver/validate_container.h"

#include <algorithm>
#include <limits>
#include <set>

#include "apiserver/validate_env.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_resources.h"
#include "apiserver/validate_volumes.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

const std::vector<std::string> kProtocols = {"SCTP", "TCP", "UDP"};
const std::vector<std::string> kPullPolicies = {"Always", "IfNotPresent", "Never"};
const std::vector<std::string> kRestartPolicies = {"Always", "Never", "OnFailure"};
const std::vector<std::string> kMessagePolicies = {"File", "FallbackToLogsOnError"};

void validate_port(const Value& port, const Path& at, std::set<std::string>& names,
                   FieldErrors& errors) {
  if (const std::string name = port["name"].str(); !name.empty()) {
    const auto reasons = kube::check_port_name(name);
    const Path here = at.child("name");
    add_reasons(reasons, port["name"], here, errors);
    if (reasons.empty() && !names.insert(name).second) errors.duplicate(here.text(), port["name"]);
  }
  if (port["containerPort"].as_int() == 0) {
    errors.required(at.text("containerPort"));
  } else {
    validate_port_number(port["containerPort"], at.child("containerPort"), errors);
  }
  if (port["hostPort"].as_int() != 0) {
    validate_port_number(port["hostPort"], at.child("hostPort"), errors);
  }
  validate_word(port["protocol"], kProtocols, at.child("protocol"), errors);
}

void validate_host_ports(const Value& container, const Path& at, std::set<std::string>& taken,
                         FieldErrors& errors) {
  const Path list = at.child("ports");
  const Value& ports = container["ports"];
  for (size_t i = 0; i < ports.size(); ++i) {
    const Value& port = ports.at(i);
    if (port["hostPort"].as_int() == 0) continue;
    const std::string key = fmt::format("{}/{}/{}", port["protocol"].as_string(),
                                        port["hostIP"].as_string(), port["hostPort"].as_int());
    const Path here = list.at(i);
    if (!taken.insert(key).second) errors.duplicate(here.text("hostPort"), Value(key));
  }
}

void validate_probe(const Value& probe, bool once, const Path& at, FieldErrors& errors) {
  if (!probe.is_object()) return;
  validate_handler(probe, at, errors);
  for (const char* field : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                            "successThreshold", "failureThreshold"}) {
    validate_not_negative(probe[field], at.child(field), errors);
  }
  if (probe.contains("terminationGracePeriodSeconds")) {
    const Value& grace = probe["terminationGracePeriodSeconds"];
    if (!once) {
      errors.invalid(at.text("terminationGracePeriodSeconds"), grace,
                     "must not be set for readinessProbes");
    } else if (grace.as_int() <= 0) {
      errors.invalid(at.text("terminationGracePeriodSeconds"), grace, "must be greater than 0");
    }
  }
  if (once && probe["successThreshold"].as_int() != 1) {
    errors.invalid(at.text("successThreshold"), probe["successThreshold"], "must be 1");
  }
}

void validate_probes(const Value& container, const Path& at, FieldErrors& errors) {
  const Path lifecycle = at.child("lifecycle");
  for (const char* hook : {"postStart", "preStop"}) {
    const Value& handler = container["lifecycle"][hook];
    if (handler.is_object()) validate_handler(handler, lifecycle.child(hook), errors);
  }
  validate_probe(container["livenessProbe"], true, at.child("livenessProbe"), errors);
  validate_probe(container["readinessProbe"], false, at.child("readinessProbe"), errors);
  validate_probe(container["startupProbe"], true, at.child("startupProbe"), errors);
}

void forbid_probes(const Value& container, const Path& at, FieldErrors& errors) {
  for (const char* field : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
    if (!container[field].is_object()) continue;
    errors.forbidden(at.text(field),
                     "may not be set for init containers without restartPolicy=Always");
  }
}

void validate_security(const Value& security, const Path& at, FieldErrors& errors) {
  if (!security.is_object()) return;
  validate_user_ids(security, at, errors);
  const Value& escalation = security["allowPrivilegeEscalation"];
  if (escalation.is_bool() && !escalation.as_bool() && security["privileged"].as_bool()) {
    errors.invalid(at.text(), security,
                   "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  }
}

void validate_common(const Value& container, const Value& spec, const Path& at,
                     FieldErrors& errors) {
  if (container["name"].as_string().empty()) {
    errors.required(at.text("name"));
  } else {
    validate_dns_label(container["name"].as_string(), at.child("name"), errors);
  }
  const std::string_view image = container["image"].as_string();
  if (image.empty()) {
    errors.required(at.text("image"));
  } else if (image.front() == ' ' || image.back() == ' ' || image.back() == '\n') {
    errors.invalid(at.text("image"), container["image"],
                   "must not have leading or trailing whitespace");
  }
  validate_word(container["terminationMessagePolicy"], kMessagePolicies,
                at.child("terminationMessagePolicy"), errors);
  std::set<std::string> names;
  const Path ports = at.child("ports");
  for (size_t i = 0; i < container["ports"].size(); ++i) {
    validate_port(container["ports"].at(i), ports.at(i), names, errors);
  }
  validate_env(container, at, errors);
  validate_volume_mounts(container, spec["volumes"], at, errors);
  validate_word(container["imagePullPolicy"], kPullPolicies, at.child("imagePullPolicy"), errors);
  validate_container_resources(container["resources"], spec["resourceClaims"],
                               at.child("resources"), errors);
  validate_security(container["securityContext"], at.child("securityContext"), errors);
  if (container.contains("restartPolicy")) {
    validate_word(container["restartPolicy"], kRestartPolicies, at.child("restartPolicy"), errors);
  }
}

void validate_regular(const Value& spec, const Path& at, std::set<std::string>& names,
                      FieldErrors& errors) {
  const Path list = at.child("containers");
  const Value& containers = spec["containers"];
  if (containers.empty()) errors.required(list.text());
  std::set<std::string> host_ports;
  for (size_t i = 0; i < containers.size(); ++i) {
    const Value& container = containers.at(i);
    const Path here = list.at(i);
    validate_common(container, spec, here, errors);
    if (!names.insert(container["name"].str()).second) {
      errors.duplicate(here.text("name"), container["name"]);
    }
    validate_probes(container, here, errors);
    validate_host_ports(container, here, host_ports, errors);
  }
}

void validate_init(const Value& spec, const Path& at, std::set<std::string>& names,
                   FieldErrors& errors) {
  const Path list = at.child("initContainers");
  const Value& containers = spec["initContainers"];
  for (size_t i = 0; i < containers.size(); ++i) {
    const Value& container = containers.at(i);
    const Path here = list.at(i);
    validate_common(container, spec, here, errors);
    if (!names.insert(container["name"].str()).second) {
      errors.duplicate(here.text("name"), container["name"]);
    }
    std::set<std::string> host_ports;
    validate_host_ports(container, here, host_ports, errors);
    if (container["restartPolicy"].as_string() == "Always") {
      validate_probes(container, here, errors);
    } else {
      forbid_probes(container, here, errors);
    }
  }
}

void validate_one_handler(std::string_view kind, const Value& handler, const Path& at,
                          FieldErrors& errors) {
  if (kind == "exec" && handler["command"].empty()) errors.required(at.text("command"));
  if (kind == "httpGet" || kind == "tcpSocket") {
    validate_port_or_name(handler["port"], at.child("port"), errors);
  }
  if (kind == "httpGet") {
    if (handler["path"].as_string().empty()) errors.required(at.text("path"));
    static const std::vector<std::string> kSchemes = {"HTTP", "HTTPS"};
    if (std::ranges::find(kSchemes, handler["scheme"].str()) == kSchemes.end()) {
      errors.not_supported(at.text("scheme"), handler["scheme"], kSchemes);
    }
  }
  if (kind == "grpc") validate_port_number(handler["port"], at.child("port"), errors);
}

}  // namespace

void validate_handler(const Value& handler, const Path& at, FieldErrors& errors) {
  bool found = false;
  for (const char* kind : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    if (!handler[kind].is_object()) continue;
    const Path here = at.child(kind);
    if (found) {
      errors.forbidden(here.text(), "may not specify more than 1 handler type");
    } else {
      validate_one_handler(kind, handler[kind], here, errors);
    }
    found = true;
  }
  if (!found) errors.required(at.text(), "must specify a handler type");
}

void validate_port_number(const Value& port, const Path& at, FieldErrors& errors) {
  if (port.as_int() < 1 || port.as_int() > 65535) {
    errors.invalid(at.text(), port, "must be between 1 and 65535, inclusive");
  }
}

void validate_port_or_name(const Value& port, const Path& at, FieldErrors& errors) {
  if (port.is_string()) {
    add_reasons(kube::check_port_name(port.as_string()), port, at, errors);
  } else {
    validate_port_number(port, at, errors);
  }
}

void validate_user_ids(const Value& security, const Path& at, FieldErrors& errors) {
  for (const char* field : {"runAsUser", "runAsGroup"}) {
    const int64_t id = security[field].as_int();
    if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
      errors.invalid(at.text(field), security[field],
                     "must be between 0 and 2147483647, inclusive");
    }
  }
}

void validate_word(const Value& word, const std::vector<std::string>& allowed, const Path& at,
                   FieldErrors& errors) {
  if (word.as_string().empty()) {
    errors.required(at.text());
  } else if (std::ranges::find(allowed, word.as_string()) == allowed.end()) {
    errors.not_supported(at.text(), word, allowed);
  }
}

void validate_containers(const Value& spec, const Path& at, FieldErrors& errors) {
  std::set<std::string> names;
  validate_regular(spec, at, names, errors);
  validate_init(spec, at, names, errors);
}

}  // namespace tessera::apiserver
