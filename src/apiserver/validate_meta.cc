#include "apiserver/validate_meta.h"

#include <algorithm>

#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// generateName is checked as if a name came of it; its end may be a dash, since random letters
// follow.
std::string as_full_name(std::string_view prefix) {
  std::string name(prefix);
  if (name.ends_with('-')) name.back() = 'a';
  return name;
}

void validate_owner(const Value& owner, const Path& at, FieldErrors& errors) {
  if (owner["apiVersion"].as_string().empty()) {
    errors.invalid(at.text("apiVersion"), owner["apiVersion"], "version must not be empty");
  }
  for (const char* field : {"kind", "name", "uid"}) {
    if (owner[field].as_string().empty()) {
      errors.invalid(at.text(field), owner[field], "must not be empty");
    }
  }
  if (owner["kind"].as_string() == "Event" && owner["apiVersion"].as_string() == "v1") {
    errors.invalid(at.text(), owner, "/v1, Kind=Event is disallowed from being an owner");
  }
}

// The owners with their members in the order in which Kubernetes writes them.
std::string in_declared_order(const Value& owners) {
  std::string out;
  for (const Value& owner : owners.items()) {
    std::string members;
    for (const char* field :
         {"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"}) {
      const Value* member = owner.find(field);
      if (member == nullptr) continue;
      members += fmt::format("{}\"{}\":{}", members.empty() ? "" : ",", field, member->dump());
    }
    out += fmt::format("{}{{{}}}", out.empty() ? "" : ",", members);
  }
  return "[" + out + "]";
}

void validate_owners(const Value& owners, const Path& at, FieldErrors& errors) {
  std::string first;
  for (const Value& owner : owners.items()) {
    validate_owner(owner, at, errors);
    if (!owner["controller"].as_bool()) continue;
    const std::string name = owner["kind"].str() + "/" + owner["name"].str();
    if (first.empty()) {
      first = name;
      continue;
    }
    errors.add(
        {"FieldValueInvalid",
         fmt::format("Invalid value: {}: Only one reference can have Controller set to true. "
                     "Found \"true\" in references for {} and {}",
                     in_declared_order(owners), first, name),
         at.text()});
  }
}

// Of custom objects a short name is only warned of (warnings.h).
void validate_finalizers(const Kind& kind, const Value& finalizers, const Path& at,
                         FieldErrors& errors) {
  bool orphan = false;
  bool foreground = false;
  for (size_t i = 0; i < finalizers.size(); ++i) {
    const Value& finalizer = finalizers.at(i);
    const std::string_view text = finalizer.as_string();
    add_reasons(kube::check_qualified_name(text), finalizer, at, errors);
    orphan = orphan || text == "orphan";
    foreground = foreground || text == "foregroundDeletion";
    if (kind.custom == nullptr && !is_full_finalizer(text)) {
      errors.invalid(at.at(i).text(), finalizer,
                     "name is neither a standard finalizer name nor is it fully qualified");
    }
  }
  if (orphan && foreground) {
    errors.invalid(at.text(), finalizers,
                   "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

void validate_common(const Kind& kind, const Value& meta, const Path& at, FieldErrors& errors) {
  if (kind.namespaced) {
    if (meta["namespace"].as_string().empty()) {
      errors.required(at.text("namespace"));
    } else {
      const Path ns = at.child("namespace");
      add_reasons(kube::check_dns1123_label(meta["namespace"].as_string()), meta["namespace"], ns,
                  errors);
    }
  } else if (!meta["namespace"].as_string().empty()) {
    errors.forbidden(at.text("namespace"), "not allowed on this type");
  }
  if (meta["generation"].as_int() < 0) {
    errors.invalid(at.text("generation"), meta["generation"], "must be greater than or equal to 0");
  }
  validate_labels(meta["labels"], at.child("labels"), errors);
  validate_annotations(meta["annotations"], at.child("annotations"), errors);
  validate_owners(meta["ownerReferences"], at.child("ownerReferences"), errors);
  validate_finalizers(kind, meta["finalizers"], at.child("finalizers"), errors);
}

void validate_no_new_finalizers(const Value& now, const Value& before, const Path& at,
                                FieldErrors& errors) {
  std::string extra;
  for (const Value& finalizer : now.items()) {
    const auto had = before.items();
    if (std::find(had.begin(), had.end(), finalizer) != had.end()) continue;
    extra += (extra.empty() ? "" : ", ") + finalizer.dump();
  }
  if (extra.empty()) return;
  errors.forbidden(at.text(),
                   fmt::format("no new finalizers can be added if the object is being deleted, "
                               "found new finalizers []string{{{}}}",
                               extra));
}

}  // namespace

bool is_full_finalizer(std::string_view name) {
  return name.find('/') != name.npos || name == "kubernetes" || name == "orphan" ||
         name == "foregroundDeletion";
}

std::vector<std::string> check_name(std::string_view rule, std::string_view name) {
  if (rule == "dns1123-label") return kube::check_dns1123_label(name);
  if (rule == "dns1035-label") return kube::check_dns1035_label(name);
  if (rule == "path-segment") return kube::check_path_segment(name);
  return kube::check_dns1123_subdomain(name);
}

void validate_metadata(const Kind& kind, const Value& object, FieldErrors& errors) {
  const Path at("metadata");
  const Value& meta = object["metadata"];
  if (const Value* prefix = meta.find("generateName")) {
    const Path here = at.child("generateName");
    add_reasons(check_name(kind.name_rule, as_full_name(prefix->as_string())), *prefix, here,
                errors);
  }
  if (meta["name"].as_string().empty()) {
    errors.required(at.text("name"), "name or generateName is required");
  } else {
    const Path here = at.child("name");
    add_reasons(check_name(kind.name_rule, meta["name"].as_string()), meta["name"], here, errors);
  }
  validate_common(kind, meta, at, errors);
}

void validate_metadata_update(const Kind&, const Value& object, const Value& before,
                              FieldErrors& errors) {
  const Path at("metadata");
  const Value& meta = object["metadata"];
  const Value& old = before["metadata"];
  if (old.contains("deletionTimestamp")) {
    validate_no_new_finalizers(meta["finalizers"], old["finalizers"], at.child("finalizers"),
                               errors);
  }
  for (const char* field : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                            "deletionGracePeriodSeconds"}) {
    validate_immutable(meta[field], old[field], at.child(field), errors);
  }
}

void validate_labels(const Value& labels, const Path& at, FieldErrors& errors) {
  if (!labels.empty()) kube::validate_labels(labels, at.text(), errors.list());
}

void validate_annotations(const Value& annotations, const Path& at, FieldErrors& errors) {
  if (!annotations.empty()) kube::validate_annotations(annotations, at.text(), errors.list());
}

void validate_label_name(std::string_view name, const Path& at, FieldErrors& errors) {
  add_reasons(kube::check_qualified_name(name), Value(name), at, errors);
}

namespace {

void validate_selector_requirement(const Value& requirement, const Path& at, FieldErrors& errors) {
  const std::string_view op = requirement["operator"].as_string();
  const Value& values = requirement["values"];
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      errors.required(at.text("values"), "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      errors.forbidden(at.text("values"),
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else {
    errors.invalid(at.text("operator"), requirement["operator"], "not a valid selector operator");
  }
  validate_label_name(requirement["key"].as_string(), at.child("key"), errors);
  const Path list = at.child("values");
  for (size_t i = 0; i < values.size(); ++i) {
    add_reasons(kube::check_label_value(values.at(i).as_string()), values.at(i), list.at(i),
                errors);
  }
}

}  // namespace

void validate_label_selector(const Value& selector, const Path& at, FieldErrors& errors) {
  validate_labels(selector["matchLabels"], at.child("matchLabels"), errors);
  const Path list = at.child("matchExpressions");
  const Value& expressions = selector["matchExpressions"];
  for (size_t i = 0; i < expressions.size(); ++i) {
    validate_selector_requirement(expressions.at(i), list.at(i), errors);
  }
}

void validate_immutable(const Value& value, const Value& before, const Path& at,
                        FieldErrors& errors) {
  if (!(value == before)) errors.invalid(at.text(), value, "field is immutable");
}

void validate_not_negative(const Value& number, const Path& at, FieldErrors& errors) {
  if (number.as_int() < 0) {
    errors.invalid(at.text(), number, "must be greater than or equal to 0");
  }
}

void add_reasons(const std::vector<std::string>& reasons, const Value& value, const Path& at,
                 FieldErrors& errors) {
  for (const std::string& why : reasons) errors.invalid(at.text(), value, why);
}

void validate_dns_label(std::string_view text, const Path& at, FieldErrors& errors) {
  add_reasons(kube::check_dns1123_label(text), Value(text), at, errors);
}

void validate_dns_subdomain(std::string_view text, const Path& at, FieldErrors& errors) {
  add_reasons(kube::check_dns1123_subdomain(text), Value(text), at, errors);
}

void validate_prefixed_path(const Value& text, const Path& at, FieldErrors& errors) {
  const std::string_view whole = text.as_string();
  if (whole.empty()) {
    errors.required(at.text());
    return;
  }
  const size_t slash = whole.find('/');
  if (slash == whole.npos || slash == 0 || slash + 1 == whole.size()) {
    errors.invalid(at.text(), text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    return;
  }
  validate_dns_subdomain(whole.substr(0, slash), at, errors);
  const std::string_view path = whole.substr(slash + 1);
  const bool good = std::ranges::all_of(path, [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || std::string_view("/-._~%!$&'()*+,;=:").find(c) != std::string_view::npos;
  });
  if (good) return;
  errors.invalid(at.text(), Value(path),
                 "Invalid path (e.g. 'path', regex used for validation is "
                 "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
}

void validate_choice(const Value& word, const std::vector<std::string>& allowed, const Path& at,
                     FieldErrors& errors) {
  if (word.is_null() || std::ranges::find(allowed, word.as_string()) != allowed.end()) return;
  errors.not_supported(at.text(), word, allowed);
}

void validate_segment(const Value& text, const Path& at, FieldErrors& errors) {
  if (text.as_string().empty()) {
    errors.required(at.text());
  } else {
    add_reasons(kube::check_path_segment(text.as_string()), text, at, errors);
  }
}

}  // namespace tessera::apiserver
