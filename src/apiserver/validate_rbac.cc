#include "apiserver/validate_rbac.h"

#include <algorithm>

#include "apiserver/validate_meta.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kGroup = "rbac.authorization.k8s.io";

void validate_rule(const Value& rule, bool namespaced, const Path& at, FieldErrors& errors) {
  if (rule["verbs"].empty()) {
    errors.required(at.text("verbs"), "verbs must contain at least one value");
  }
  const Value& urls = rule["nonResourceURLs"];
  if (!urls.empty()) {
    const std::string here = at.text("nonResourceURLs");
    if (namespaced) {
      errors.invalid(here, urls, "namespaced rules cannot apply to non-resource URLs");
    }
    if (!rule["apiGroups"].empty() || !rule["resources"].empty() ||
        !rule["resourceNames"].empty()) {
      errors.invalid(here, urls,
                     "rules cannot apply to both regular resources and non-resource URLs");
    }
    return;
  }
  if (rule["apiGroups"].empty()) {
    errors.required(at.text("apiGroups"), "resource rules must supply at least one api group");
  }
  if (rule["resources"].empty()) {
    errors.required(at.text("resources"), "resource rules must supply at least one resource");
  }
}

void validate_rules(const Value& rules, bool namespaced, FieldErrors& errors) {
  const Path list("rules");
  for (size_t i = 0; i < rules.size(); ++i) {
    validate_rule(rules.at(i), namespaced, list.at(i), errors);
  }
}

void validate_group(const Value& subject, const char* wanted, const Path& at, FieldErrors& errors) {
  if (subject["apiGroup"].as_string() == wanted) return;
  errors.not_supported(at.text("apiGroup"), Value(subject["apiGroup"].as_string()), {wanted});
}

void validate_subject(const Value& subject, bool namespaced, const Path& at, FieldErrors& errors) {
  const std::string_view kind = subject["kind"].as_string();
  const std::string_view name = subject["name"].as_string();
  if (name.empty()) errors.required(at.text("name"));
  if (kind == "ServiceAccount") {
    if (!name.empty()) validate_dns_subdomain(name, at.child("name"), errors);
    validate_group(subject, "", at, errors);
    if (!namespaced && subject["namespace"].as_string().empty()) {
      errors.required(at.text("namespace"));
    }
  } else if (kind == "User" || kind == "Group") {
    validate_group(subject, kGroup, at, errors);
  } else {
    errors.not_supported(at.text("kind"), subject["kind"], {"ServiceAccount", "User", "Group"});
  }
}

void validate_binding(const Value& object, const std::vector<std::string>& kinds, bool namespaced,
                      FieldErrors& errors) {
  const Path at("roleRef");
  const Value& role = object["roleRef"];
  validate_group(role, kGroup, at, errors);
  if (std::ranges::find(kinds, role["kind"].as_string()) == kinds.end()) {
    errors.not_supported(at.text("kind"), role["kind"], kinds);
  }
  validate_segment(role["name"], at.child("name"), errors);
  const Path list("subjects");
  const Value& subjects = object["subjects"];
  for (size_t i = 0; i < subjects.size(); ++i) {
    validate_subject(subjects.at(i), namespaced, list.at(i), errors);
  }
}

}  // namespace

void validate_role(const Value& object, FieldErrors& errors) {
  validate_rules(object["rules"], true, errors);
}

void validate_cluster_role(const Value& object, FieldErrors& errors) {
  validate_rules(object["rules"], false, errors);
  if (!object.contains("aggregationRule")) return;
  const Path at("aggregationRule");
  const Path list = at.child("clusterRoleSelectors");
  const Value& selectors = object["aggregationRule"]["clusterRoleSelectors"];
  if (selectors.empty()) {
    errors.required(list.text(),
                    "at least one clusterRoleSelector required if aggregationRule is non-nil");
  }
  for (size_t i = 0; i < selectors.size(); ++i) {
    validate_label_selector(selectors.at(i), list.at(i), errors);
  }
}

void validate_role_binding(const Value& object, FieldErrors& errors) {
  validate_binding(object, {"Role", "ClusterRole"}, true, errors);
}

void validate_cluster_role_binding(const Value& object, FieldErrors& errors) {
  validate_binding(object, {"ClusterRole"}, false, errors);
}

void validate_same_role(const Value& object, const Value& before, FieldErrors& errors) {
  if (object["roleRef"] == before["roleRef"]) return;
  // Named as the server's own type has them.
  const Value& role = object["roleRef"];
  errors.invalid("roleRef",
                 Value::object({{"APIGroup", role["apiGroup"].as_string()},
                                {"Kind", role["kind"].as_string()},
                                {"Name", role["name"].as_string()}}),
                 "cannot change roleRef");
}

}  // namespace tessera::apiserver
