// What Kubernetes demands of metadata, label selectors and fields that never change.
//
// Source:  k8s.io/apimachinery v0.36.3 pkg/api/validation, pkg/apis/meta/v1/validation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

// Names (by the kind's rule), labels, annotations, owners and finalizers of an object about to be
// stored.
// Qualified by a domain, or one of the server's own.
bool is_full_finalizer(std::string_view name);
void validate_metadata(const Kind& kind, const json::Value& object, FieldErrors& errors);
// After that, where the object replaces `before`: what may not change, and no new finalizers on what
// is being deleted.
void validate_metadata_update(const Kind& kind, const json::Value& object,
                              const json::Value& before, FieldErrors& errors);

// Reasons by a name rule of Kind::name_rule.
std::vector<std::string> check_name(std::string_view rule, std::string_view name);

void validate_labels(const json::Value& labels, const Path& at, FieldErrors& errors);
void validate_annotations(const json::Value& annotations, const Path& at, FieldErrors& errors);
void validate_label_name(std::string_view name, const Path& at, FieldErrors& errors);
void validate_label_selector(const json::Value& selector, const Path& at, FieldErrors& errors);
void validate_immutable(const json::Value& value, const json::Value& before, const Path& at,
                        FieldErrors& errors);
// A number that may be absent but not negative.
void validate_not_negative(const json::Value& number, const Path& at, FieldErrors& errors);
// One cause a reason.
void add_reasons(const std::vector<std::string>& reasons, const json::Value& value, const Path& at,
                 FieldErrors& errors);
void validate_dns_label(std::string_view text, const Path& at, FieldErrors& errors);
void validate_dns_subdomain(std::string_view text, const Path& at, FieldErrors& errors);
// "example.com/name".
void validate_prefixed_path(const json::Value& text, const Path& at, FieldErrors& errors);
// One of `allowed` where it is given at all.
void validate_choice(const json::Value& word, const std::vector<std::string>& allowed,
                     const Path& at, FieldErrors& errors);
// A part of a URL's path: names and kinds of objects that others refer to. Empty: required.
void validate_segment(const json::Value& text, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
