#include "apiserver/validate_affinity.h"

#include "apiserver/validate_meta.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

void validate_requirement_values(const Value& requirement, const Path& at, FieldErrors& errors) {
  const std::string_view op = requirement["operator"].as_string();
  const size_t values = requirement["values"].size();
  if (op == "In" || op == "NotIn") {
    if (values == 0) {
      errors.required(at.text("values"), "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (values != 0) {
      errors.forbidden(at.text("values"),
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else if (op == "Gt" || op == "Lt") {
    if (values != 1) {
      errors.required(at.text("values"),
                      "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
  } else {
    errors.invalid(at.text("operator"), requirement["operator"], "not a valid selector operator");
  }
}

void validate_expression(const Value& requirement, bool strict, const Path& at,
                         FieldErrors& errors) {
  validate_requirement_values(requirement, at, errors);
  validate_label_name(requirement["key"].as_string(), at.child("key"), errors);
  if (!strict) return;
  const Path list = at.child("values");
  for (size_t i = 0; i < requirement["values"].size(); ++i) {
    const Value& value = requirement["values"].at(i);
    add_reasons(kube::check_label_value(value.as_string()), value, list.at(i), errors);
  }
}

// matchFields knows metadata.name with one value, In or NotIn.
void validate_field(const Value& requirement, const Path& at, FieldErrors& errors) {
  const std::string_view op = requirement["operator"].as_string();
  if (op != "In" && op != "NotIn") {
    errors.invalid(at.text("operator"), requirement["operator"], "not a valid selector operator");
  } else if (requirement["values"].size() != 1) {
    errors.required(at.text("values"),
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                    "selector");
  }
  if (requirement["key"].as_string() != "metadata.name") {
    errors.invalid(at.text("key"), requirement["key"], "not a valid field selector key");
  }
}

void validate_term(const Value& term, bool strict, const Path& at, FieldErrors& errors) {
  const Path expressions = at.child("matchExpressions");
  for (size_t i = 0; i < term["matchExpressions"].size(); ++i) {
    validate_expression(term["matchExpressions"].at(i), strict, expressions.at(i), errors);
  }
  const Path fields = at.child("matchFields");
  for (size_t i = 0; i < term["matchFields"].size(); ++i) {
    validate_field(term["matchFields"].at(i), fields.at(i), errors);
  }
}

void validate_weight(const Value& weighted, const Path& at, FieldErrors& errors) {
  const int64_t weight = weighted["weight"].as_int();
  if (weight < 1 || weight > 100) {
    errors.invalid(at.text("weight"), weighted["weight"], "must be in the range 1-100");
  }
}

void validate_node_affinity(const Value& affinity, const Path& at, FieldErrors& errors) {
  if (affinity[kRequired].is_object()) {
    validate_node_selector(affinity[kRequired], at.child(kRequired), errors);
  }
  const Path preferred = at.child(kPreferred);
  for (size_t i = 0; i < affinity[kPreferred].size(); ++i) {
    const Path here = preferred.at(i);
    validate_weight(affinity[kPreferred].at(i), here, errors);
    validate_term(affinity[kPreferred].at(i)["preference"], false, here.child("preference"),
                  errors);
  }
}

void validate_pod_term(const Value& term, const Path& at, FieldErrors& errors) {
  validate_label_selector(term["labelSelector"], at.child("labelSelector"), errors);
  validate_label_selector(term["namespaceSelector"], at.child("namespaceSelector"), errors);
  const Path ns = at.child("namespace");
  for (const Value& name : term["namespaces"].items()) {
    add_reasons(kube::check_dns1123_label(name.as_string()), name, ns, errors);
  }
  for (const char* field : {"matchLabelKeys", "mismatchLabelKeys"}) {
    if (!term[field].empty() && !term["labelSelector"].is_object()) {
      errors.forbidden(at.text(field), "must not be specified when labelSelector is not set");
    }
  }
  const std::string_view key = term["topologyKey"].as_string();
  if (key.empty()) errors.required(at.text("topologyKey"), "can not be empty");
  validate_label_name(key, at.child("topologyKey"), errors);
}

void validate_pod_affinity(const Value& affinity, const Path& at, FieldErrors& errors) {
  const Path required = at.child(kRequired);
  for (size_t i = 0; i < affinity[kRequired].size(); ++i) {
    validate_pod_term(affinity[kRequired].at(i), required.at(i), errors);
  }
  const Path preferred = at.child(kPreferred);
  for (size_t i = 0; i < affinity[kPreferred].size(); ++i) {
    const Path here = preferred.at(i);
    validate_weight(affinity[kPreferred].at(i), here, errors);
    validate_pod_term(affinity[kPreferred].at(i)["podAffinityTerm"], here.child("podAffinityTerm"),
                      errors);
  }
}

}  // namespace

void validate_node_selector(const Value& selector, const Path& at, FieldErrors& errors) {
  const Path terms = at.child("nodeSelectorTerms");
  const Value& list = selector["nodeSelectorTerms"];
  if (list.empty()) errors.required(terms.text(), "must have at least one node selector term");
  for (size_t i = 0; i < list.size(); ++i) validate_term(list.at(i), true, terms.at(i), errors);
}

void validate_affinity(const Value& affinity, const Path& at, FieldErrors& errors) {
  if (!affinity.is_object()) return;
  validate_node_affinity(affinity["nodeAffinity"], at.child("nodeAffinity"), errors);
  validate_pod_affinity(affinity["podAffinity"], at.child("podAffinity"), errors);
  validate_pod_affinity(affinity["podAntiAffinity"], at.child("podAntiAffinity"), errors);
}

}  // namespace tessera::apiserver
