// Which CustomResourceDefinitions are refused.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/crd_definition.h"
#include "apiserver/crd_structural.h"
#include "apiserver/validate_meta.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kApproval = "api-approved.kubernetes.io";
constexpr const char* kApprovalPage = "https://github.com/kubernetes/enhancements/pull/1111";
constexpr size_t kSelectableMax = 8;

std::string joined(const std::vector<std::string>& reasons) {
  std::string out;
  for (const std::string& reason : reasons) out += (out.empty() ? "" : ",") + reason;
  return out;
}

void check_label(const Value& text, const std::string& path, FieldErrors& errors,
                 std::string_view before = {}) {
  std::string lower = text.str();
  if (!before.empty()) {
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const std::string reasons = joined(kube::check_dns1035_label(lower));
  if (!reasons.empty()) errors.invalid(path, text, std::string(before) + reasons);
}

void check_names(const Value& names, const std::string& path, FieldErrors& errors) {
  for (const char* field : {"plural", "singular"}) {
    if (!names[field].as_string().empty()) check_label(names[field], path + "." + field, errors);
  }
  for (const char* field : {"kind", "listKind"}) {
    if (names[field].as_string().empty()) continue;
    check_label(names[field], path + "." + field, errors,
                "may have mixed case, but should otherwise match: ");
  }
  for (size_t i = 0; i < names["shortNames"].size(); ++i) {
    check_label(names["shortNames"].at(i), fmt::format("{}.shortNames[{}]", path, i), errors);
  }
  if (!names["kind"].as_string().empty() && names["kind"] == names["listKind"]) {
    errors.invalid(path + ".listKind", names["listKind"], "kind and listKind may not be the same");
  }
  for (size_t i = 0; i < names["categories"].size(); ++i) {
    check_label(names["categories"].at(i), fmt::format("{}.categories[{}]", path, i), errors);
  }
}

void check_simple_path(const Value& json_path, const std::string& path, std::string_view under,
                       FieldErrors& errors) {
  const std::string_view text = json_path.as_string();
  if (text.empty()) return errors.required(path);
  if (text.front() != '.') {
    return errors.invalid(path, json_path, "must be a simple json path starting with .");
  }
  if (!under.empty() && !text.starts_with(under)) {
    errors.invalid(
        path, json_path,
        fmt::format("should be a json path under {}", under.substr(0, under.size() - 1)));
  }
}

void check_subresources(const Value& subresources, const std::string& path, FieldErrors& errors) {
  const Value& scale = subresources["scale"];
  if (!scale.is_object()) return;
  check_simple_path(scale["specReplicasPath"], path + ".scale.specReplicasPath", ".spec.", errors);
  check_simple_path(scale["statusReplicasPath"], path + ".scale.statusReplicasPath", ".status.",
                    errors);
  const Value& selector = scale["labelSelectorPath"];
  if (selector.as_string().empty()) return;
  check_simple_path(selector, path + ".scale.labelSelectorPath", {}, errors);
  const std::string_view text = selector.as_string();
  if (text.front() == '.' && !text.starts_with(".spec.") && !text.starts_with(".status.")) {
    errors.invalid(path + ".scale.labelSelectorPath", selector,
                   "should be a json path under either .spec or .status");
  }
}

void check_column(const Value& column, const std::string& path, FieldErrors& errors) {
  static const std::set<std::string, std::less<>> kTypes = {"boolean", "date", "integer", "number",
                                                            "string"};
  static const std::set<std::string, std::less<>> kFormats = {
      "byte", "date", "date-time", "double", "float", "int32", "int64", "password"};
  const char* types = "must be one of boolean,date,integer,number,string";
  if (column["name"].as_string().empty()) errors.required(path + ".name");
  const std::string_view type = column["type"].as_string();
  if (type.empty()) {
    errors.required(path + ".type", types);
  } else if (!kTypes.contains(type)) {
    errors.invalid(path + ".type", type, types);
  }
  const std::string_view format = column["format"].as_string();
  if (!format.empty() && !kFormats.contains(format)) {
    errors.invalid(path + ".format", format,
                   "must be one of byte,date,date-time,double,float,int32,int64,password");
  }
  check_simple_path(column["jsonPath"], path + ".JSONPath", {}, errors);
}

void check_columns(const Value& columns, const std::string& path, FieldErrors& errors) {
  for (size_t i = 0; i < columns.size(); ++i) {
    check_column(columns.at(i), fmt::format("{}[{}]", path, i), errors);
  }
}

void check_selectable(const Value& fields, const Value& schema, const std::string& path,
                      const char* without, FieldErrors& errors) {
  if (fields.empty()) return;
  if (!schema.is_object()) return errors.invalid(path, "", without);
  std::set<std::string> seen;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    FieldErrors found;
    validate_selectable_field(schema, fields.at(i), place, found);
    const bool repeated = found.empty() && !seen.insert(fields.at(i)["jsonPath"].str()).second;
    if (repeated) errors.duplicate(place + ".jsonPath", fields.at(i)["jsonPath"]);
    for (const base::Cause& cause : found.causes()) errors.add(cause);
  }
  if (seen.size() > kSelectableMax) errors.too_many(path, seen.size(), kSelectableMax);
}

void check_deprecation(const Value& version, const std::string& path, FieldErrors& errors) {
  const Value& warning = version["deprecationWarning"];
  if (warning.is_null()) return;
  const auto refuse = [&](std::string_view why) {
    errors.invalid(path + ".deprecationWarning", warning, why);
  };
  if (!version["deprecated"].as_bool()) return refuse("can only be set for deprecated versions");
  const std::string_view text = warning.as_string();
  if (text.size() > 256) refuse("must be <= 256 characters long");
  if (text.empty()) refuse("must not be an empty string");
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != 0x7f) continue;
    return refuse(
        fmt::format("must only contain printable UTF-8 characters; non-printable "
                    "character found at index {}",
                    i));
  }
}

// What all versions have alike stood once for the whole definition, and Kubernetes speaks of it as there.
bool same_everywhere(const Value& versions, const char* field) {
  for (const Value& version : versions.items()) {
    if (!(version[field] == versions.at(0)[field])) return false;
  }
  return !versions.empty();
}

// The versions as Kubernetes prints them.
Value shown_versions(const Value& versions) {
  Value out = Value::array();
  for (const Value& version : versions.items()) {
    const auto part = [&](const char* field) {
      return same_everywhere(versions, field) ? Value() : version[field];
    };
    out.push_back(Value::object({{"Name", version["name"].as_string()},
                                 {"Served", version["served"].as_bool()},
                                 {"Storage", version["storage"].as_bool()},
                                 {"Deprecated", version["deprecated"].as_bool()},
                                 {"DeprecationWarning", version["deprecationWarning"]},
                                 {"Schema", part("schema")},
                                 {"Subresources", part("subresources")},
                                 {"AdditionalPrinterColumns", part("additionalPrinterColumns")},
                                 {"SelectableFields", part("selectableFields")}}));
  }
  return out;
}

// In the order of Go's fields, which a sorted object does not have.
std::string shown_text(const Value& versions) {
  std::string out = "[";
  const Value shown = shown_versions(versions);
  for (const Value& version : shown.items()) {
    if (out.size() > 1) out += ',';
    out += '{';
    for (const char* field :
         {"Name", "Served", "Storage", "Deprecated", "DeprecationWarning", "Schema", "Subresources",
          "AdditionalPrinterColumns", "SelectableFields"}) {
      if (out.back() != '{') out += ',';
      out += fmt::format("\"{}\":{}", field, version[field].dump());
    }
    out += '}';
  }
  return out + "]";
}

void refuse_versions(const Value& versions, std::string_view why, FieldErrors& errors) {
  errors.add({"FieldValueInvalid", fmt::format("Invalid value: {}: {}", shown_text(versions), why),
              "spec.versions"});
}

bool has_defaults(const Value& version) {
  return any_schema(version["schema"]["openAPIV3Schema"],
                    [](const Value& schema) { return !schema["default"].is_null(); });
}

bool has_status(const Value& version) {
  return !version["subresources"]["status"].is_null();
}

void check_version(const Value& versions, size_t index, FieldErrors& errors) {
  const Value& version = versions.at(index);
  const std::string path = fmt::format("spec.versions[{}]", index);
  const std::string reasons = joined(kube::check_dns1035_label(version["name"].as_string()));
  if (!reasons.empty()) errors.invalid(path + ".name", version["name"], reasons);
  check_deprecation(version, path, errors);
  const Value& schema = version["schema"]["openAPIV3Schema"];
  if (!same_everywhere(versions, "schema") && schema.is_object()) {
    validate_schema(schema, path + ".schema.openAPIV3Schema", has_status(version), errors);
  }
  if (!same_everywhere(versions, "subresources")) {
    check_subresources(version["subresources"], path + ".subresources", errors);
  }
  if (!same_everywhere(versions, "additionalPrinterColumns")) {
    check_columns(version["additionalPrinterColumns"], path + ".additionalPrinterColumns", errors);
  }
  if (!same_everywhere(versions, "selectableFields")) {
    check_selectable(
        version["selectableFields"], same_everywhere(versions, "schema") ? Value() : schema,
        path + ".selectableFields",
        "may only be set when `version.schema.openAPIV3Schema` is not included", errors);
  }
}

void check_versions(const Value& versions, bool preserves, FieldErrors& errors) {
  size_t storage = 0;
  std::set<std::string> names;
  for (size_t i = 0; i < versions.size(); ++i) {
    if (!versions.at(i)["schema"]["openAPIV3Schema"].is_object()) {
      errors.required(fmt::format("spec.versions[{}].schema.openAPIV3Schema", i));
    }
  }
  if (preserves && std::ranges::any_of(versions.items(), has_defaults)) {
    errors.invalid("spec.preserveUnknownFields", true,
                   "must be false in order to use defaults in the schema");
  }
  for (size_t i = 0; i < versions.size(); ++i) {
    if (versions.at(i)["storage"].as_bool()) ++storage;
    names.insert(versions.at(i)["name"].str());
    check_version(versions, i, errors);
  }
  if (names.size() != versions.size()) {
    refuse_versions(versions, "must contain unique version names", errors);
  }
  if (storage != 1) {
    refuse_versions(versions, "must have exactly one version marked as storage version", errors);
  }
  // Kubernetes keeps the first name in a field of its own, and looks at that one, too.
  const Value& first = versions.at(0)["name"];
  const std::string reasons = joined(kube::check_dns1035_label(first.as_string()));
  if (!first.as_string().empty() && !reasons.empty()) {
    errors.invalid("spec.version", first, reasons);
  }
}

// What all versions share.
void check_common(const Value& versions, FieldErrors& errors) {
  const Value& first = versions.at(0);
  const Value& schema = first["schema"]["openAPIV3Schema"];
  if (same_everywhere(versions, "schema") && schema.is_object()) {
    const bool status = std::ranges::any_of(versions.items(), has_status);
    validate_schema(schema, "spec.validation.openAPIV3Schema", status, errors);
  }
  if (same_everywhere(versions, "subresources")) {
    check_subresources(first["subresources"], "spec.subresources", errors);
  }
  if (same_everywhere(versions, "additionalPrinterColumns")) {
    check_columns(first["additionalPrinterColumns"], "spec.additionalPrinterColumns", errors);
  }
  if (same_everywhere(versions, "selectableFields")) {
    check_selectable(
        first["selectableFields"], same_everywhere(versions, "schema") ? schema : Value(),
        "spec.selectableFields", "may only be set when validations.schema is included", errors);
  }
}

void check_group(const Value& group, FieldErrors& errors) {
  const std::string_view text = group.as_string();
  if (text.empty()) return errors.required("spec.group");
  const std::string reasons = joined(kube::check_dns1123_subdomain(text));
  if (!reasons.empty()) {
    errors.invalid("spec.group", group, reasons);
  } else if (text.find('.') == std::string_view::npos) {
    errors.invalid("spec.group", group, "should be a domain with at least one dot");
  }
}

void check_client(const Value& client, FieldErrors& errors) {
  const std::string path = "spec.conversion.webhookClientConfig";
  if (client.is_null()) {
    return errors.required(path, "required when strategy is set to Webhook");
  }
  if (client["url"].is_null() == client["service"].is_null()) {
    return errors.required(path, "exactly one of url or service is required");
  }
  const Value& url = client["url"];
  if (!url.is_null() && !url.as_string().starts_with("https://")) {
    errors.invalid(path + ".url", url, "'https' is the only allowed URL scheme");
  }
  if (client["service"].is_null()) return;
  for (const char* field : {"name", "namespace"}) {
    if (client["service"][field].as_string().empty()) {
      errors.required(fmt::format("{}.service.{}", path, field));
    }
  }
}

void check_conversion(const Value& conversion, FieldErrors& errors) {
  const std::string_view strategy = conversion["strategy"].as_string();
  const Value& webhook = conversion["webhook"];
  if (strategy.empty()) {
    errors.required("spec.conversion.strategy");
  } else if (strategy != "None" && strategy != "Webhook") {
    errors.not_supported("spec.conversion.strategy", strategy, {"None", "Webhook"});
  }
  if (strategy != "Webhook") {
    if (!webhook["clientConfig"].is_null()) {
      errors.forbidden("spec.conversion.webhookClientConfig",
                       "should not be set when strategy is not set to Webhook");
    }
    if (!webhook["conversionReviewVersions"].empty()) {
      errors.forbidden("spec.conversion.conversionReviewVersions",
                       "should not be set when strategy is not set to Webhook");
    }
    return;
  }
  check_client(webhook["clientConfig"], errors);
  const Value& versions = webhook["conversionReviewVersions"];
  const std::string path = "spec.conversion.conversionReviewVersions";
  if (versions.empty()) return errors.required(path);
  const bool known = std::ranges::any_of(versions.items(), [](const Value& version) {
    return version.as_string() == "v1" || version.as_string() == "v1beta1";
  });
  if (!known) errors.invalid(path, versions, "must include at least one of v1, v1beta1");
}

bool is_protected(std::string_view group) {
  return group == "k8s.io" || group == "kubernetes.io" || group.ends_with(".k8s.io") ||
         group.ends_with(".kubernetes.io");
}

void check_approval(const Value& definition, FieldErrors& errors) {
  if (!is_protected(definition["spec"]["group"].as_string())) return;
  const Value& approval = definition["metadata"]["annotations"][kApproval];
  const std::string path = fmt::format("metadata.annotations[{}]", kApproval);
  const std::string_view text = approval.as_string();
  if (text.empty()) {
    return errors.required(path, fmt::format("protected groups must have approval annotation "
                                             "\"{}\", see {}",
                                             kApproval, kApprovalPage));
  }
  const size_t host = text.find("://");
  const bool url = host != std::string_view::npos && host > 0 && text.size() > host + 3;
  if (text.starts_with("unapproved") || url) return;
  errors.invalid(path, approval,
                 fmt::format("protected groups must have approval annotation \"{}\" with either a "
                             "URL or a reason starting with \"unapproved\", see {}",
                             kApproval, kApprovalPage));
}

void check_stored(const Value& definition, FieldErrors& errors) {
  const Value& stored = definition["status"]["storedVersions"];
  const std::string path = "status.storedVersions";
  if (stored.empty()) return errors.invalid(path, stored, "must have at least one stored version");
  std::set<std::string> names;
  for (const Value& version : definition["spec"]["versions"].items()) {
    names.insert(version["name"].str());
    const bool known = std::ranges::find(stored.items(), version["name"]) != stored.items().end();
    if (version["storage"].as_bool() && !known) {
      errors.invalid(path, stored, "must have the storage version " + version["name"].str());
    }
  }
  for (size_t i = 0; i < stored.size(); ++i) {
    const std::string name = stored.at(i).str();
    if (names.contains(name)) continue;
    errors.invalid(fmt::format("{}[{}]", path, i), stored.at(i),
                   fmt::format("missing from spec.versions; {0} was previously a storage version, "
                               "and must remain in spec.versions until a storage migration ensures "
                               "no data remains persisted in {0} and removes {0} from "
                               "status.storedVersions",
                               name));
  }
}

}  // namespace

void validate_definition(const Value& definition, FieldErrors& errors) {
  const Value& spec = definition["spec"];
  const Value& names = spec["names"];
  const Value& meta = definition["metadata"];
  const bool is_new = meta["resourceVersion"].is_null();
  const std::string name =
      fmt::format("{}.{}", names["plural"].as_string(), spec["group"].as_string());
  if (is_new && meta["name"].as_string() != name) {
    errors.invalid("metadata.name", meta["name"], "must be spec.names.plural+\".\"+spec.group");
  }
  check_group(spec["group"], errors);
  if (spec["scope"].as_string().empty()) {
    errors.required("spec.scope");
  } else if (spec["scope"].as_string() != "Cluster" && spec["scope"].as_string() != "Namespaced") {
    errors.not_supported("spec.scope", spec["scope"], {"Cluster", "Namespaced"});
  }
  const bool preserves = spec["preserveUnknownFields"].as_bool();
  check_versions(spec["versions"], preserves, errors);
  for (const char* field : {"plural", "singular", "kind", "listKind"}) {
    if (names[field].as_string().empty()) errors.required(std::string("spec.names.") + field);
  }
  check_names(names, "spec.names", errors);
  check_common(spec["versions"], errors);
  check_conversion(spec["conversion"], errors);
  check_names(definition["status"]["acceptedNames"], "status.acceptedNames", errors);
  check_stored(definition, errors);
  if (preserves) {
    errors.invalid("spec.preserveUnknownFields", true,
                   "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                   "spec.versions[*].schema instead");
  }
}

bool share_schema(const Value& definition) {
  return same_everywhere(definition["spec"]["versions"], "schema");
}

void validate_new_definition(const Value& definition, FieldErrors& errors) {
  check_approval(definition, errors);
}

void validate_definition_update(const Value& definition, const Value& before, FieldErrors& errors) {
  const auto same = [&](const char* place, const Value& now, const Value& then) {
    if (!(now == then)) errors.invalid(place, now, "field is immutable");
  };
  const Value& spec = definition["spec"];
  const Value& old = before["spec"];
  bool established = false;
  for (const Value& condition : before["status"]["conditions"].items()) {
    established |=
        condition["type"].as_string() == "Established" && condition["status"].as_string() == "True";
  }
  if (established) {
    same("spec.scope", spec["scope"], old["scope"]);
    same("spec.names.kind", spec["names"]["kind"], old["names"]["kind"]);
  }
  same("spec.group", spec["group"], old["group"]);
  same("spec.names.plural", spec["names"]["plural"], old["names"]["plural"]);
  const Value& approval = definition["metadata"]["annotations"][kApproval];
  if (!(approval == before["metadata"]["annotations"][kApproval])) {
    check_approval(definition, errors);
  }
}

}  // namespace tessera::apiserver
