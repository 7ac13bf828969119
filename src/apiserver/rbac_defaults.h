// The roles and bindings that every cluster starts with: data/rbac.roles as objects.
//
// Threads: pure.
// Source:  named in the data file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace tessera::apiserver {

// The text of data/rbac.roles, which is compiled in.
extern const std::string_view kDefaultRoles;

struct DefaultRole {
  std::string plural;  // "clusterroles", "rolebindings", ...
  json::Value object;
};
// Roles before bindings. The text is trusted: it is part of the program.
std::vector<DefaultRole> default_roles(std::string_view text = kDefaultRoles);

// What is found, and what it lacks of `wanted`: rules, subjects, labels. Nothing is taken away, and nothing is touched where
// the annotation rbac.authorization.kubernetes.io/autoupdate says "false".
json::Value reconciled(const json::Value& found, const json::Value& wanted);

}  // namespace tessera::apiserver
