#include "apiserver/field_ownership.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "apiserver/api_errors.h"
#include "apiserver/api_token.h"
#include "apiserver/crd_kind.h"
#include "kube/apply.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kManagerBytesMax = 128;

kube::OwnershipRules rules_of(const Kind& kind, const kube::SchemaType& type,
                              std::string_view api_version, std::string_view part) {
  kube::OwnershipRules rules;
  rules.type = &type;
  rules.api_version = api_version;
  rules.kind = kind.kind;
  const bool custom = kind.custom != nullptr;
  rules.reset = &kube::reset_fields(kind.kind, kind.status_subresource, custom, part);
  if (custom) {
    rules.custom = true;
    rules.serves = [&kind](std::string_view version) {
      return std::ranges::find(kind.custom->served, version) != kind.custom->served.end();
    };
  }
  return rules;
}

// The types of a kind, kept for as long as they are used. Null: it has none.
std::shared_ptr<const kube::SchemaType> types_of(const Kind& kind) {
  if (kind.custom == nullptr) return {std::shared_ptr<void>(), kind.schema};
  const auto now = kind.custom->slot->now();
  if (now == nullptr) return nullptr;
  return {now, &now->types->root()};
}

std::string manager_of(const Call& call) {
  if (const auto option = call.request.option("fieldManager"); !option.empty()) {
    return std::string(option);
  }
  // Components in this process go by their own names (system_caller).
  const std::string_view agent = call.caller.user_agent;
  constexpr std::string_view kOwn = "tessera/";
  if (agent.starts_with(kOwn) &&
      call.caller.user == fmt::format("system:{}", agent.substr(kOwn.size()))) {
    return std::string(agent.substr(kOwn.size()));
  }
  return kube::manager_of_user_agent(agent);
}

bool printable(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return false;
  }
  return true;
}

std::string_view options_kind(const Call& call) {
  if (call.request.verb == kube::Verb::kCreate) return "CreateOptions";
  return call.request.verb == kube::Verb::kUpdate ? "UpdateOptions" : "PatchOptions";
}

}  // namespace

bool is_apply(const Call& call) {
  return call.request.verb == kube::Verb::kPatch &&
         call.request.patch_type == kube::PatchType::kApply;
}

base::Status check_field_options(const Call& call) {
  const std::string_view manager = call.request.option("fieldManager");
  const std::string_view force = call.request.option("force");
  FieldErrors errors;
  if (is_apply(call)) {
    if (manager.empty()) errors.required("fieldManager", "is required for apply patch");
  } else if (!force.empty() && call.request.verb == kube::Verb::kPatch) {
    errors.forbidden("force", "may not be specified for non-apply patch");
  }
  if (manager.size() > kManagerBytesMax) errors.too_long("fieldManager", kManagerBytesMax);
  if (!printable(manager)) {
    errors.invalid("fieldManager", manager, "should only contain printable characters");
  }
  if (errors.empty()) return {};
  Kind kind;
  kind.group = "meta.k8s.io";
  kind.kind = options_kind(call);
  return base::error(invalid(kind, "", errors.causes()));
}

void set_owners(Value& object, Value list) {
  const Value& now = object["metadata"]["managedFields"];
  if (list.is_null() ? now.is_null() : now.same_node(list)) return;
  if (list.is_null()) {
    object.ref("metadata").erase("managedFields");
  } else {
    object.ref("metadata", "managedFields") = std::move(list);
  }
}

Value owners_after(const Core& core, const Call& call, const Value& before, const Value& object,
                   const Value& sent, std::string_view part) {
  const Kind& kind = *call.kind;
  const auto type = types_of(kind);
  if (type == nullptr || is_apply(call)) return sent;
  const std::string manager = manager_of(call);
  const std::string api_version = kind.api_version();
  const auto rules = rules_of(kind, *type, api_version, part);
  const kube::FieldWriter writer{manager, call.request.subresource, core.now()};
  const Value& now = object["metadata"]["managedFields"];
  if (sent.is_null() || sent.same_node(now)) {
    return kube::track_update(rules, before, object, writer);
  }
  Value with_sent = object;
  set_owners(with_sent, sent);
  return kube::track_update(rules, before, with_sent, writer);
}

base::Result<Value> apply_configuration(const Core& core, const Call& call, const Value& live) {
  return apply_configuration(core, call, live, call.face(), call.request.subresource);
}

base::Result<Value> apply_configuration(const Core& core, const Call& call, const Value& live,
                                        const Kind& kind, std::string_view part) {
  const auto type = types_of(kind);
  if (type == nullptr) {
    return base::error(bad_request("this kind has no schema to apply a configuration by"));
  }
  const std::string manager = manager_of(call);
  const std::string api_version = kind.api_version();
  const kube::FieldWriter writer{manager, call.request.subresource, core.now()};
  return kube::apply(rules_of(kind, *type, api_version, part), live, call.request.body, writer,
                     read_flag(call.request, "force"));
}

}  // namespace tessera::apiserver
