// Server-side apply: an applied configuration becomes part of the live object, and its fields belong to who applied it.
//
// Shape:   apply() answers the object to be stored, metadata.managedFields included; defaults and validation are the
//          caller's. Fields that the manager applied last time and does not apply now go, where nobody else owns them.
// Errors:  kConflict with one cause a field (reason FieldManagerConflict) where another manager owns what would change
//          and `force` is not set; kBadRequest for a configuration of another kind or with managedFields; kInternal for one
//          that is not of the type, as Kubernetes words and numbers it.
// Threads: pure.
// Source:  sigs.k8s.io/structured-merge-diff/v6/merge/update.go; k8s.io/apimachinery/pkg/util/managedfields/internal
//          v0.36.3 (conflict.go, lastappliedmanager.go, lastappliedupdater.go, structuredmerge.go, versioncheck.go).
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "kube/managed_fields.h"

namespace tessera::kube {

// `live` is null where the object does not exist yet. The manager "kubectl" also takes over what the client-side apply
// annotation says was its own, and keeps the annotation up to date.
base::Result<json::Value> apply(const OwnershipRules& rules, const json::Value& live,
                                const json::Value& applied, const FieldWriter& writer, bool force);

}  // namespace tessera::kube
