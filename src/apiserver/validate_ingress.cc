#include "apiserver/ip_address.h"
#include "apiserver/validate_container.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_network.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kControllerBytesMax = 250;
constexpr const char* kClassAnnotation = "kubernetes.io/ingress.class";

void validate_wildcard(const Value& host, const Path& at, FieldErrors& errors) {
  const std::string_view text = host.as_string();
  if (text.size() > 253) errors.invalid(at.text(), host, "must be no more than 253 bytes");
  if (text.starts_with("*.") && kube::check_dns1123_subdomain(text.substr(2)).empty()) return;
  errors.invalid(
      at.text(), host,
      "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS "
      "subdomain, which must consist of lower case alphanumeric characters, '-' or '.' "
      "and end with an alphanumeric character (e.g. '*.example.com', regex used for "
      "validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])"
      "?)*')");
}

void validate_host(const Value& host, const Path& at, FieldErrors& errors) {
  if (host.as_string().find('*') != std::string_view::npos) {
    validate_wildcard(host, at, errors);
  } else {
    validate_dns_subdomain(host.as_string(), at, errors);
  }
}

// Kinds, names and groups of an object that something else understands.
void validate_reference(const Value& reference, const Path& at, FieldErrors& errors) {
  if (reference.contains("apiGroup")) {
    validate_dns_subdomain(reference["apiGroup"].as_string(), at.child("apiGroup"), errors);
  }
  for (const char* field : {"kind", "name"}) {
    validate_segment(reference[field], at.child(field), errors);
  }
}

void validate_service_port(const Value& port, const Path& backend, FieldErrors& errors) {
  const bool named = !port["name"].as_string().empty();
  const bool numbered = port["number"].as_int() != 0;
  const Path service = backend.child("service");
  const Path here = service.child("port");
  if (named && numbered) {
    errors.invalid(backend.text(), Value(""), "cannot set both port name & port number");
  } else if (named) {
    validate_port_or_name(port["name"], here.child("name"), errors);
  } else if (numbered) {
    validate_port_number(port["number"], here.child("number"), errors);
  } else {
    errors.required(backend.text(), "port name or number is required");
  }
}

void validate_backend(const Value& backend, const Path& at, FieldErrors& errors) {
  const bool resource = backend.contains("resource");
  const bool service = backend.contains("service");
  if (resource && service) {
    errors.invalid(at.text(), Value(""), "cannot set both resource and service backends");
  } else if (resource) {
    validate_reference(backend["resource"], at.child("resource"), errors);
  } else if (service) {
    const Path here = at.child("service");
    const std::string_view name = backend["service"]["name"].as_string();
    if (name.empty()) {
      errors.required(here.text("name"));
    } else {
      validate_dns_label(name, here.child("name"), errors);
    }
    validate_service_port(backend["service"]["port"], at, errors);
  } else {
    errors.invalid(at.text(), Value(""), "resource or service backend is required");
  }
}

void validate_path_text(const Value& path, bool exact, const Path& at, FieldErrors& errors) {
  const std::string_view text = path.as_string();
  if (!text.starts_with('/') && (exact || !text.empty())) {
    errors.invalid(at.text(), path, "must be an absolute path");
  }
  if (!exact) return;
  for (const char* bad : {"//", "/./", "/../", "%2f", "%2F"}) {
    if (text.find(bad) == text.npos) continue;
    errors.invalid(at.text(), path, fmt::format("must not contain '{}'", bad));
  }
  for (const char* bad : {"/..", "/."}) {
    if (!text.ends_with(bad)) continue;
    errors.invalid(at.text(), path, fmt::format("cannot end with '{}'", bad));
  }
}

void validate_path(const Value& path, const Path& at, FieldErrors& errors) {
  const std::string_view type = path["pathType"].as_string();
  if (!path.contains("pathType")) {
    errors.required(at.text("pathType"), "pathType must be specified");
    return;
  }
  if (type == "Exact" || type == "Prefix" || type == "ImplementationSpecific") {
    validate_path_text(path["path"], type != "ImplementationSpecific", at.child("path"), errors);
  } else {
    errors.not_supported(at.text("pathType"), path["pathType"],
                         {"Exact", "ImplementationSpecific", "Prefix"});
  }
  validate_backend(path["backend"], at.child("backend"), errors);
}

void validate_rule(const Value& rule, const Path& at, FieldErrors& errors) {
  const Value& host = rule["host"];
  if (!host.as_string().empty()) {
    const Path host_at = at.child("host");
    if (IpAddress::parse(host.as_string())) {
      errors.invalid(host_at.text(), host, "must be a DNS name, not an IP address");
    }
    validate_host(host, host_at, errors);
  }
  if (!rule.contains("http")) return;
  const Path http = at.child("http");
  const Path list = http.child("paths");
  const Value& paths = rule["http"]["paths"];
  if (paths.empty()) errors.required(list.text());
  for (size_t i = 0; i < paths.size(); ++i) validate_path(paths.at(i), list.at(i), errors);
}

void validate_tls(const Value& tls, const Path& at, FieldErrors& errors) {
  const Path hosts = at.child("hosts");
  for (size_t i = 0; i < tls["hosts"].size(); ++i) {
    validate_host(tls["hosts"].at(i), hosts.at(i), errors);
  }
  const std::string_view secret = tls["secretName"].as_string();
  if (!secret.empty()) validate_dns_subdomain(secret, at.child("secretName"), errors);
}

void validate_scope(const Value& parameters, const Path& at, FieldErrors& errors) {
  const std::string_view scope = parameters["scope"].as_string();
  const Value* ns = parameters.find("namespace");
  if (scope == "Namespace" && ns == nullptr) {
    errors.required(at.text("namespace"), "`parameters.scope` is set to 'Namespace'");
  } else if (scope == "Namespace") {
    validate_dns_label(ns->as_string(), at.child("namespace"), errors);
  } else if (scope == "Cluster" && ns != nullptr) {
    errors.forbidden(at.text("namespace"), "`parameters.scope` is set to 'Cluster'");
  } else if (scope != "Cluster") {
    errors.not_supported(at.text("scope"), parameters["scope"], {"Cluster", "Namespace"});
  }
}

}  // namespace

void validate_ingress(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  if (spec["rules"].empty() && !spec.contains("defaultBackend")) {
    errors.invalid(at.text(), Value(), "either `defaultBackend` or `rules` must be specified");
  }
  if (spec.contains("defaultBackend")) {
    validate_backend(spec["defaultBackend"], at.child("defaultBackend"), errors);
  }
  const Path rules = at.child("rules");
  for (size_t i = 0; i < spec["rules"].size(); ++i) {
    validate_rule(spec["rules"].at(i), rules.at(i), errors);
  }
  const Path tls = at.child("tls");
  for (size_t i = 0; i < spec["tls"].size(); ++i) {
    validate_tls(spec["tls"].at(i), tls.at(i), errors);
  }
  if (const Value* name = spec.find("ingressClassName")) {
    validate_dns_subdomain(name->as_string(), at.child("ingressClassName"), errors);
    const Value* old = object["metadata"]["annotations"].find(kClassAnnotation);
    // Kubernetes looks at this only where the object is new; a pair that agrees stays so.
    if (old != nullptr && !(*old == *name) && !object["metadata"].contains("resourceVersion")) {
      errors.invalid(fmt::format("annotations.{}", kClassAnnotation), *old,
                     "must match `ingressClassName` when both are specified");
    }
  }
}

void validate_ingress_class(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Path controller = at.child("controller");
  const Value& spec = object["spec"];
  if (spec["controller"].as_string().size() > kControllerBytesMax) {
    errors.too_long(controller.text(), kControllerBytesMax);
  }
  validate_prefixed_path(spec["controller"], controller, errors);
  if (!spec.contains("parameters")) return;
  const Path parameters = at.child("parameters");
  validate_reference(spec["parameters"], parameters, errors);
  validate_scope(spec["parameters"], parameters, errors);
}

void validate_ingress_class_update(const Value& object, const Value& before, FieldErrors& errors) {
  const Path at("spec");
  validate_immutable(object["spec"]["controller"], before["spec"]["controller"],
                     at.child("controller"), errors);
}

}  // namespace tessera::apiserver
