// Who a request is from, as whom it acts, and whether it may.
//
// Shape:   a verified client certificate (CN the user, each O a group) or a bearer token; without either, on the paths
//          that are open, system:anonymous. Then the Impersonate-* headers. Then RBAC, which denies by default.
// Errors:  kUnauthorized, kForbidden, worded as Kubernetes.
// Threads: any. Tokens are never logged.
// Source:  k8s.io/apiserver authentication (x509, bearer token), endpoints/filters/impersonation, endpoints/request
//          (RequestInfo) and handlers/responsewriters (forbidden messages).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "apiserver/auth.h"
#include "apiserver/routes.h"
#include "http/server.h"

namespace tessera::apiserver {

// /healthz, /livez, /readyz, /version: who asks may stay unknown.
bool is_open_path(std::span<const std::string> segments);

base::Result<Caller> authenticate(const http::Request& request, Access& access, bool open);

// The caller that the Impersonate-User, -Group, -Uid and -Extra-* headers name, or the caller itself without them.
// Errors: kForbidden for those who may not, kBadRequest for the others without a user.
base::Result<Caller> impersonate(const http::Request& request, Caller caller, Access& access);

// Views into the operation. A namespace counts as an object in itself; a list of one name as that name.
Attributes attributes_of(const Operation& operation, std::string& name, std::string& node);

base::Result<Decision> authorize(Access& access, const Caller& caller, const Operation& operation);
// For paths that name no resource.
base::Result<Decision> authorize_path(Access& access, const Caller& caller, std::string_view method,
                                      std::string_view path);

}  // namespace tessera::apiserver
