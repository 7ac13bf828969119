// Who a request is from, and whether they may.
//
// Shape:   a verified client certificate (CN the user, each O a group) or a bearer token; then all
//          to system:masters, discovery to everyone known, and nothing else to anyone.
// Errors:  kUnauthorized, kForbidden, worded as Kubernetes.
// Threads: pure. Tokens are compared in constant time and never logged.
// Source:  k8s.io/apiserver authentication (x509, token file) and authorization (forbidden
//          messages).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/api.h"
#include "apiserver/routes.h"
#include "http/server.h"

namespace tessera::apiserver {

using Tokens = std::vector<std::pair<std::string, Caller>>;

base::Result<Caller> authenticate(const http::Request& request, const Tokens& tokens);

// The caller that the Impersonate-User and Impersonate-Group headers name, or the caller itself without them.
// Errors: kForbidden for those who may not, kBadRequest for groups without a user.
base::Result<Caller> impersonate(const http::Request& request, Caller caller);

base::Status authorize(const Caller& caller, const Operation& operation);
// For paths that name no resource.
base::Status authorize_path(const Caller& caller, std::string_view method, std::string_view path);

}  // namespace tessera::apiserver
