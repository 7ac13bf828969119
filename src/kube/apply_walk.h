// Walks over objects by their type: which fields an object has, what changed between two, and merging them.
//
// Shape:   everything goes by ApplyPlace. compare() skips what two versions of an object share, so that its cost is that
//          of the change.
// Errors:  check_typed answers kInternal as Kubernetes words it (".spec.replicas: expected numeric ..."); compare() and
//          merge() answer kInternal where an element of a list has no key.
// Threads: pure.
// Source:  sigs.k8s.io/structured-merge-diff/v6/typed (validate.go, tofieldset.go, compare.go, merge.go, remove.go,
//          reconcile_schema.go).
#pragma once

#include <optional>

#include "base/result.h"
#include "json/value.h"
#include "kube/apply_place.h"
#include "kube/field_set.h"

namespace tessera::kube {

struct FieldChanges {
  FieldSet removed;
  FieldSet modified;
  FieldSet added;
  bool none() const { return removed.empty() && modified.empty() && added.empty(); }
};

// Types, keys of list elements, and that no field is unknown. Stored objects may have an element twice.
base::Status check_typed(const ApplyPlace& place, const json::Value& value, bool duplicates_pass);

// Every leaf and list element of the object, and what is null or empty.
base::Result<FieldSet> fields_of(const ApplyPlace& place, const json::Value& value);

base::Result<FieldChanges> compare(const ApplyPlace& place, const json::Value& before,
                                   const json::Value& after);

// The fields of `applied` laid over `live`: nothing goes, leaves are those of `applied`, lists take its order.
base::Result<json::Value> merge_applied(const ApplyPlace& place, const json::Value& live,
                                        const json::Value& applied);

// The value without the members of the set; what is emptied by that becomes null.
json::Value without_fields(const ApplyPlace& place, const json::Value& value, const FieldSet& set);

// The set with the fields of structs on the way to its members ("a" where it has "a.b").
FieldSet with_named_fields(const ApplyPlace& place, const FieldSet& set);

// The set as it should be after parts of the type became atomic.
FieldSet fit_to_type(const ApplyPlace& place, const FieldSet& set);

}  // namespace tessera::kube
