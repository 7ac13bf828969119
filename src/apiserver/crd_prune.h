// What a schema changes about an object before it is looked at: unknown fields go, defaults come.
//
// Threads: pure.
// Source:  k8s.io/apiextensions-apiserver v0.36.3 pkg/apiserver/schema/pruning, defaulting, objectmeta.
#pragma once

#include <string>
#include <vector>

#include "apiserver/crd_schema.h"
#include "json/value.h"

namespace tessera::apiserver {

// Drops the fields that the schema does not know, and lists them as "spec.parts[0].name", sorted. At the root apiVersion,
// kind and metadata stay as they are.
void prune_unknown(const CrdSchema& schema, json::Value& object, std::vector<std::string>* unknown);
// The same of a value within an object: the default of a field.
void prune_value(const CrdSchema& schema, json::Value& value);

// Drops nulls that the schema does not allow and sets the defaults.
void fill_defaults(const CrdSchema& schema, json::Value& object);

}  // namespace tessera::apiserver
