// CustomResourceDefinition: what a definition is completed with, and which are refused.
//
// Shape:   hooks of the kind's row (kinds_extension.cc). The status is the server's own (crd_controller.h).
// Errors:  causes added to a FieldErrors, worded as kube-apiserver words them: where all versions say the same, it names
//          the field of older definitions ("spec.validation").
// Threads: pure.
// Source:  k8s.io/apiextensions-apiserver v0.36.3 pkg/apis/apiextensions (v1/defaults.go, v1/conversion.go,
//          validation/validation.go), pkg/registry/customresourcedefinition.
#pragma once

#include <string_view>

#include "apiserver/kind.h"
#include "base/time.h"
#include "json/value.h"

namespace tessera::apiserver {

inline constexpr std::string_view kCrdFinalizer = "customresourcecleanup.apiextensions.k8s.io";

void default_definition(json::Value& definition);
void prepare_new_definition(json::Value& definition);
void prepare_changed_definition(json::Value& definition, const json::Value& before);
// A definition that is deleted waits for its objects.
void prepare_definition_delete(json::Value& definition, base::Time now);

void validate_definition(const json::Value& definition, FieldErrors& errors);
// Whether all versions say the same of their objects.
bool share_schema(const json::Value& definition);
void validate_new_definition(const json::Value& definition, FieldErrors& errors);
void validate_definition_update(const json::Value& definition, const json::Value& before,
                                FieldErrors& errors);

// Puts a condition into status.conditions; the time of one whose status stays is kept.
void set_condition(json::Value& definition, std::string_view type, bool status,
                   std::string_view reason, std::string_view message, base::Time now);

}  // namespace tessera::apiserver
