// Which amounts of resources are legal in containers.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation and helper (resource names); cases/C39.
#pragma once

#include <string_view>

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"
#include "kube/quantity.h"

namespace tessera::apiserver {

// Of the form domain/name, outside kubernetes.io: "nvidia.com/gpu".
bool is_extended_resource(std::string_view name);
// Requests below the limit make sense: the resource can be given twice.
bool may_overcommit(std::string_view name);
// Of no fractions, be it as large as it may.
bool is_whole_amount(const kube::Quantity& amount);
// Zero where the text is no amount.
kube::Quantity quantity_of(const json::Value& text);
// A standard name or a qualified one; for containers only some of the standard names.
void validate_resource_name(std::string_view name, const Path& at, FieldErrors& errors);
void validate_container_resource_name(std::string_view name, const Path& at, FieldErrors& errors);
// `claims` are spec.resourceClaims of the pod.
void validate_container_resources(const json::Value& resources, const json::Value& claims,
                                  const Path& at, FieldErrors& errors);
// Amounts of what a node has.
void validate_node_amounts(const json::Value& list, const Path& at, FieldErrors& errors);
// Names and amounts of a list.
void validate_resource_list(const json::Value& list, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
