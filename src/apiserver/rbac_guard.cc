#include "apiserver/rbac_guard.h"

#include <fmt/core.h>

#include "apiserver/api_errors.h"
#include "apiserver/auth.h"
#include "apiserver/rbac_text.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

// Owners and finalizers only, as the garbage collector writes them.
bool only_collector_fields(Value object, Value before) {
  for (Value* each : {&object, &before}) {
    Value& meta = each->ref("metadata");
    for (const char* field : {"ownerReferences", "finalizers", "managedFields"}) meta.erase(field);
  }
  return object == before;
}

bool is_aggregated(const Value& role) {
  return !role["aggregationRule"]["clusterRoleSelectors"].empty();
}

base::Status hold_all(Core& core, const Call& call, const Value& object, const Rules& granted) {
  const Rbac::RuleList held = core.access->rbac().rules_for(call.caller, call.request.ns);
  const Rules missing = not_covered(held.rules, granted);
  if (missing.empty()) return {};
  std::string why = fmt::format(
      "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
      go_quote(call.caller.user), go_list(call.caller.groups), compact_text(missing));
  if (!held.errors.empty()) why += "; resolution errors: [" + held.errors + "]";
  return base::error(forbidden(*call.kind, object["metadata"]["name"].as_string(), why));
}

base::Status admit_role(Core& core, const Call& call, const Value& object, const Value& before) {
  Attributes escalate;
  escalate.verb = "escalate";
  escalate.group = kGroup;
  escalate.resource = call.kind->plural;
  escalate.ns = call.request.ns;
  escalate.name = call.request.name;
  if (core.access->rbac().decide(call.caller, escalate).allowed) return {};
  TS_TRY_STATUS(hold_all(core, call, object, policy_rules(object["rules"])));
  if (!is_aggregated(object) && !is_aggregated(before)) return {};
  const Rules everything = {{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}};
  if (hold_all(core, call, object, everything)) return {};
  return base::error(forbidden(*call.kind, object["metadata"]["name"].as_string(),
                               "must have cluster-admin privileges to use the aggregationRule"));
}

base::Status admit_binding(Core& core, const Call& call, const Value& object) {
  const std::string role_kind = object["roleRef"]["kind"].str();
  const std::string role = object["roleRef"]["name"].str();
  if (role_kind != "Role" && role_kind != "ClusterRole") return {};  // validation refuses it
  Attributes bind;
  bind.verb = "bind";
  bind.group = kGroup;
  bind.resource = role_kind == "Role" ? "roles" : "clusterroles";
  bind.ns = call.request.ns;
  bind.name = role;
  if (core.access->rbac().decide(call.caller, bind).allowed) return {};
  const auto rules = core.access->rbac().rules_of(role_kind, role, call.request.ns);
  if (rules == nullptr) {
    return base::error(base::Code::kNotFound, "{}.{} \"{}\" not found", bind.resource, kGroup,
                       role);
  }
  return hold_all(core, call, object, *rules);
}

}  // namespace

base::Status admit_rights(Core& core, const Call& call, const Value& object, const Value& before) {
  const std::string& plural = call.kind->plural;
  if (call.kind->group != kGroup || core.access == nullptr || is_master(call.caller)) return {};
  if (!before.is_null() && only_collector_fields(object, before)) return {};
  if (plural == "roles" || plural == "clusterroles") return admit_role(core, call, object, before);
  if (plural == "rolebindings" || plural == "clusterrolebindings") {
    return admit_binding(core, call, object);
  }
  return {};
}

base::Status may_create(Core& core, const Call& call) {
  Attributes create;
  create.verb = "create";
  create.group = call.request.gvr.group;
  create.resource = call.request.gvr.resource;
  create.ns = call.request.ns;
  create.name = call.request.name;
  const Decision decision = core.access->rbac().decide(call.caller, create);
  if (decision.allowed) return {};
  return base::error(denial(call.caller, create, decision.reason()));
}

}  // namespace tessera::apiserver
