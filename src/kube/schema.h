// What a Kubernetes type looks like: its fields, their types, merge keys and list kinds.
//
// Shape:   compiled in from src/kube/data/kubernetes.schema (facts of the published OpenAPI
//          document, no wording). Feeds strict decoding, pruning, canonical quantities, strategic
//          merge, server-side apply and the served OpenAPI.
// Errors:  normalize answers kBadRequest with the path and what was expected; unknown fields are
//          no error here: they are listed, and the caller decides (fieldValidation).
// Threads: immutable after start.
// Source:  api/openapi-spec of Kubernetes 1.36; k8s.io/apimachinery strategicpatch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace tessera::kube {

enum class FieldType : uint8_t {
  kObject,  // `type` names it
  kString,
  kBytes,  // base64 text
  kBool,
  kInt32,
  kInt64,
  kDouble,
  kQuantity,
  kIntOrString,
  kTime,
  kMicroTime,
  kAny,  // raw JSON (RawExtension, JSON, FieldsV1)
};

struct SchemaKind {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
};

struct SchemaType;

struct SchemaField {
  std::string_view name;
  FieldType type = FieldType::kString;
  // Where type is kObject; also the named scalar (Quantity, Time).
  const SchemaType* object = nullptr;
  bool list = false;  // of the type
  bool map = false;   // string -> the type; with list: string -> list of the type
  bool required = false;
  std::string_view patch_merge_key;  // "name": strategic merge joins list elements by it
  bool patch_merge = false;  // x-kubernetes-patch-strategy has "merge" (lists of scalars: union)
  bool patch_retain_keys = false;
  std::vector<std::string_view> list_map_keys;  // x-kubernetes-list-map-keys
  bool list_set = false;                        // x-kubernetes-list-type: set
  bool atomic = false;
  bool object_only = false;  // kAny, but nothing else than an object
  bool omit_zero = false;    // a server leaves "", 0, false, [] and {} out
  bool show_zero = false;    // a server writes "", 0, false or {} where the field is absent
};

struct SchemaType {
  std::string_view name;            // "io.k8s.api.core.v1.PodSpec"
  std::vector<SchemaField> fields;  // sorted by name
  const SchemaField* field(std::string_view key) const;
  std::vector<SchemaKind> kinds;          // x-kubernetes-group-version-kind
  std::vector<const SchemaField*> shown;  // those with show_zero
  bool atomic = false;                    // x-kubernetes-map-type: atomic
  // Not an object but a named form of another type: Quantity, Time, RawExtension. Its type is here,
  // `fields` is empty.
  bool scalar = false;
  bool object_only = false;
  FieldType scalar_type = FieldType::kAny;
};

// By kind: find_kind_schema("apps", "v1", "Deployment"); null when unknown.
const SchemaType* find_kind_schema(std::string_view group, std::string_view version,
                                   std::string_view kind);
const SchemaType* find_schema(std::string_view full_name);
// Every type that the kinds reach, sorted by name.
const std::vector<const SchemaType*>& all_schemas();

// Checks types, drops nulls and unknown fields (listing them in `unknown` as
// "spec.containers[0].imag"), writes quantities canonically ("3000m" -> "3"), accepts times as
// Kubernetes does, and leaves out or writes zero values as a server's round trip through its Go
// types does (labels: {} goes, resources: {} comes). What needs no change is shared.
base::Result<json::Value> normalize(const SchemaType& type, const json::Value& value,
                                    std::vector<std::string>* unknown);

// Strategic merge patch with $patch, $retainKeys, $setElementOrder and $deleteFromPrimitiveList
// directives. Errors in Kubernetes' words: kBadRequest for a form that is wrong, kInvalid for what is not supported,
// kInternal for what Kubernetes does not class.
base::Result<json::Value> apply_strategic_merge(const SchemaType& type, const json::Value& target,
                                                const json::Value& patch);

// "io.k8s.api.core.v1.Pod" -> an OpenAPI v3 schema (refs to #/components/schemas/...) or v2
// (#/definitions/...).
json::Value openapi_schema(const SchemaType& type, bool v3);

}  // namespace tessera::kube
