// Who owns the fields of stored objects: managedFields of every write, and server-side apply.
//
// Shape:   the steps of create, update and patch (registry.cc, api_write.cc) call these at the place where Kubernetes does:
//          after defaults, before admission and what the kind itself sets, which nobody owns.
// Errors:  kInvalid for options of field managers that are none; those of kube/apply.h.
// Threads: any.
// Source:  k8s.io/apiserver/pkg/endpoints/handlers (create.go, update.go, patch.go, fieldmanager);
//          k8s.io/apimachinery/pkg/apis/meta/v1/validation.
#pragma once

#include <string_view>

#include "apiserver/api_core.h"
#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

bool is_apply(const Call& call);
// fieldManager and force of a write.
base::Status check_field_options(const Call& call);

// The managedFields of `object` after the write of `call`; `sent` are those that its body came with. `part` says through
// which half of the object the write goes ("status" or all but it).
json::Value owners_after(const Core& core, const Call& call, const json::Value& before,
                         const json::Value& object, const json::Value& sent, std::string_view part);
void set_owners(json::Value& object, json::Value list);

// The object that the applied configuration of `call` makes of `live` (null: there is none yet).
base::Result<json::Value> apply_configuration(const Core& core, const Call& call,
                                              const json::Value& live);
// The same for what stands for the object: its Scale.
base::Result<json::Value> apply_configuration(const Core& core, const Call& call,
                                              const json::Value& live, const Kind& kind,
                                              std::string_view part);

}  // namespace tessera::apiserver
