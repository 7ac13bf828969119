// What Kubernetes accepts as names, labels and annotation keys.
//
// Shape:   each function answers the reasons why the text is refused, in Kubernetes' words; none:
//          it is accepted.
// Source:  k8s.io/apimachinery v0.36.3 pkg/util/validation, pkg/api/validate/content; RFC 1123, RFC
//          1035.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace tessera::kube {

using Reasons = std::vector<std::string>;

Reasons check_dns1123_label(std::string_view text);      // 63 characters, no dots: namespaces
Reasons check_dns1123_subdomain(std::string_view text);  // 253 characters: most object names
Reasons check_dns1035_label(std::string_view text);      // starts with a letter: services
Reasons check_qualified_name(std::string_view text);  // "example.com/name": label keys, resources
Reasons check_label_value(std::string_view text);
Reasons check_config_map_key(std::string_view text);  // keys of ConfigMap and Secret data
Reasons check_path_segment(
    std::string_view text);  // names of roles: anything that fits into a URL path
Reasons check_env_name(std::string_view text);  // names of environment variables
Reasons check_port_name(std::string_view text);

// Each adds causes such as {"FieldValueInvalid", "Invalid value: \"A\": a lowercase RFC 1123 ...",
// "metadata.labels"}.
void validate_labels(const json::Value& labels, std::string_view path,
                     std::vector<base::Cause>& causes);
void validate_annotations(const json::Value& annotations, std::string_view path,
                          std::vector<base::Cause>& causes);

// Causes as field.Error writes them.
base::Cause invalid_value(std::string_view field, const json::Value& value, std::string_view why);
base::Cause required_value(std::string_view field, std::string_view why = {});
base::Cause not_supported(std::string_view field, const json::Value& value,
                          const std::vector<std::string>& supported);
base::Cause forbidden(std::string_view field, std::string_view why);
base::Cause duplicate_value(std::string_view field, const json::Value& value);

}  // namespace tessera::kube
