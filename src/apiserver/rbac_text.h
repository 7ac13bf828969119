// Rules and lists as Go prints them, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/api.h"
#include "apiserver/rbac_rules.h"

namespace tessera::apiserver {

// Go's %q: quoted, with escapes.
std::string go_quote(std::string_view text);
// ["a" "b"]
std::string go_list(const std::vector<std::string>& list);
std::string rule_text(const PolicyRule& rule);
// kForbidden: User "jane" cannot get resource "pods" ..., and `reason` where there is one.
base::Error denial(const Caller& caller, const Attributes& wanted, std::string_view reason);

}  // namespace tessera::apiserver
