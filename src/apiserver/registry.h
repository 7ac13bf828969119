// The order of steps that an object goes through before it is stored.
//
// Shape:   create: identity, normalize, defaults, metadata, admission, prepare_create, validation. Update and patch: the
//          same against the stored object, with what may not change carried over. All pure but for names and ids.
// Errors:  kBadRequest (not the right object), kConflict (resourceVersion, uid), kForbidden (admission), kInvalid with causes.
// Source:  k8s.io/apiserver/pkg/registry/rest (BeforeCreate, BeforeUpdate), endpoints/handlers.
#pragma once

#include <string>

#include "apiserver/api_core.h"
#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

// The object of a request's body: right kind, right types, unknown fields dropped and reported as `call.validation` says.
// Members that are those of `before` are taken as they are.
base::Result<json::Value> decode_body(Call& call, const json::Value& body,
                                      const json::Value& before);

// The same for another kind than the call's: the Scale of an object.
base::Result<json::Value> decode_as(const Kind& kind, Call& call, const json::Value& body,
                                    const json::Value& before);

base::Result<json::Value> prepare_create(Core& core, Call& call);

// `object` is decoded. `subresource` is "" or "status".
base::Result<json::Value> prepare_update(Core& core, Call& call, json::Value object,
                                         const json::Value& before, std::string_view subresource);

// True when an object that is being deleted has nothing left to wait for.
bool may_go(const json::Value& object);

}  // namespace tessera::apiserver
