// The types of server-side apply, made of a structural schema.
//
// Shape:   root() stands for the whole object: apiVersion, kind and metadata are those of every object. Where the schema
//          keeps unknown fields, or nests what the types cannot tell (maps of maps, lists of lists), stands raw JSON, whose
//          maps are granular and whose lists are atomic.
// Threads: immutable once made.
// Source:  k8s.io/kube-openapi/pkg/schemaconv (OpenAPI to structured-merge-diff types).
#pragma once

#include <deque>
#include <string_view>

#include "apiserver/crd_schema.h"
#include "kube/schema.h"

namespace tessera::apiserver {

class CrdTypes {
 public:
  // `schema` outlives the types, which name its fields.
  CrdTypes(const CrdSchema& schema, std::string_view name);
  CrdTypes(const CrdTypes&) = delete;
  CrdTypes& operator=(const CrdTypes&) = delete;

  const kube::SchemaType& root() const { return *root_; }

 private:
  const kube::SchemaType* object_type(const CrdSchema& schema, bool resource);
  kube::SchemaField field_of(std::string_view name, const CrdSchema& schema);
  void set_base(const CrdSchema& schema, kube::SchemaField& field);

  std::deque<kube::SchemaType> types_;
  const kube::SchemaType* root_ = nullptr;
};

}  // namespace tessera::apiserver
