// create, update and patch.
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/admission_quota.h"
#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/crd_kind.h"
#include "apiserver/field_ownership.h"
#include "apiserver/rbac_guard.h"
#include "apiserver/registry.h"
#include "json/patch.h"
#include "kube/go_text.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr int kGenerateAttempts = 8;

// A new object, once; kConflict where the name is taken.
base::Result<Store::Outcome> create_once(Core& core, const CallPtr& call, Value object,
                                         std::string* name) {
  const Kind& kind = *call->kind;
  *name = object["metadata"]["name"].str();
  const bool is_service = &kind == core.services;
  const Value service = is_service ? object : Value();
  std::string key = store_key(kind, object);
  Store::Write write{&kind, std::move(key), 0, as_stored(kind, std::move(object)),
                     reply_of(call, 201)};
  const auto outcome = commit_within_quotas(core, *call, Value(), write);
  const bool accepted = outcome && *outcome == Store::Outcome::kAccepted;
  if (!accepted && is_service) core.ips.release(service);
  if (outcome && *outcome == Store::Outcome::kClosed) {
    write.done(base::error(Code::kUnavailable, "the server is shutting down"));
  }
  return outcome;
}

base::Result<Value> patched(const Kind& kind, const kube::Request& request, const Value& target) {
  switch (request.patch_type) {
    case kube::PatchType::kJson:
      return json::apply_json_patch(target, request.body);
    case kube::PatchType::kMerge:
      if (!request.body.is_object()) break;
      return json::apply_merge_patch(target, request.body);
    case kube::PatchType::kStrategic:
      if (kind.custom != nullptr) {
        return base::error(Code::kUnsupportedMediaType,
                           "the body of the request was in an unknown format - accepted media "
                           "types include: application/json-patch+json, "
                           "application/merge-patch+json, application/apply-patch+yaml");
      }
      if (!request.body.is_object() || kind.schema == nullptr) break;
      return kube::apply_strategic_merge(*kind.schema, target, request.body);
    case kube::PatchType::kApply:
      // Applied configurations go by apply_configuration(), but not to what is no object (scale).
      return base::error(Code::kUnsupportedMediaType,
                         "the body of the request was in an unknown format - accepted media types "
                         "include: application/json-patch+json, application/merge-patch+json, "
                         "application/strategic-merge-patch+json");
  }
  return base::error(Code::kBadRequest, "the patch must be a JSON object");
}

}  // namespace

base::Result<Value> apply_patch(const Kind& kind, const kube::Request& request,
                                const Value& target) {
  auto result = patched(kind, request, target);
  const bool json = request.patch_type == kube::PatchType::kJson && request.body.is_array();
  if (!result && result.error().code == Code::kInternal) {
    return base::error(plain_error(result.error().message));
  }
  if (result || (!json && result.error().code != Code::kInvalid)) return result;
  // Kubernetes does not say what was wrong with it.
  return base::error(Code::kInvalid,
                     "the server rejected our request due to an error in our request");
}

namespace {

// Applies to an object that is not there yet. Who comes second in a race applies to what the first one made.
void create_applied(Core& core, const CallPtr& call) {
  const Kind& kind = *call->kind;
  auto object = apply_configuration(core, *call, Value());
  if (!object && object.error().code == Code::kInternal) {
    return fail(core, call, plain_error(object.error().message));
  }
  if (!object) return fail(core, call, std::move(object).error());
  const Value& meta = (*object)["metadata"];
  if (const std::string_view uid = meta["uid"].as_string(); !uid.empty()) {
    return fail(core, call,
                conflict(kind, call->request.name,
                         fmt::format("uid mismatch: the provided object specified uid {}, and no "
                                     "existing object was found",
                                     uid)));
  }
  if (const std::string_view name = meta["name"].as_string(); name != call->request.name) {
    if (!name.empty()) {
      return fail(core, call,
                  bad_request(fmt::format(
                      "the name of the object ({}) does not match the name on the URL ({})", name,
                      call->request.name)));
    }
    object->ref("metadata", "name") = call->request.name;
  }
  if (const auto may = may_create(core, *call); !may) return fail(core, call, may.error());
  auto create = std::make_shared<Call>(*call);
  create->request.body = std::move(*object);
  create->done = [core = core.shared_from_this(), call](ApiReply reply) {
    if (!reply.result && reply.result.error().code == Code::kAlreadyExists) {
      return do_patch(*core, call);
    }
    call->done(std::move(reply));
  };
  do_create(core, create);
}

constexpr std::string_view kStrict = "strict decoding error: ";

// What is wrong with a patch that can be carried out all the same.
std::vector<std::string> faults_of(const Call& call) {
  std::vector<std::string> out;
  if (call.validation == FieldValidation::kIgnore || is_apply(call)) return out;
  const bool json = call.request.patch_type == kube::PatchType::kJson;
  const char* prefix = json ? "json patch " : "";
  for (const std::string& fault : call.request.faults) out.push_back(prefix + fault);
  if (!json) return out;
  size_t number = 0;
  for (const Value& operation : call.request.body.items()) {
    for (const json::Member& member : operation.members()) {
      const std::string_view name = member.name();
      if (name == "op" || name == "path" || name == "from" || name == "value") continue;
      out.push_back(fmt::format("json patch unknown field \"[{}].{}\"", number, name));
    }
    ++number;
  }
  return out;
}

// The patched object, or the patch, as Kubernetes shows it: a merge that is a text of JSON whole, others as a Go map.
std::string shown_patch(const Call& call, const Value& object) {
  if (call.request.patch_type == kube::PatchType::kStrategic) {
    return kube::go_text(call.request.body);
  }
  constexpr size_t kShownMax = 1024;
  std::string shown = object.dump();
  if (shown.size() <= kShownMax) return shown;
  size_t end = kShownMax;
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0) == 0x80) --end;
  shown.resize(end);
  return shown + "...";
}

// What a patch made of the object is not one of its kind.
base::Result<Value> decode_patched(Call& call, const Value& object, const Value& current) {
  const std::vector<std::string> faults = faults_of(call);
  const bool strict = call.validation == FieldValidation::kStrict;
  if (!strict) call.warnings.insert(call.warnings.end(), faults.begin(), faults.end());
  auto decoded = decode_body(call, object, current);
  if (is_apply(call)) return decoded;
  const bool refused = !decoded && decoded.error().code == base::Code::kBadRequest;
  if (!refused && (faults.empty() || !strict || !decoded)) return decoded;
  std::string why = refused ? decoded.error().message : std::string(kStrict);
  const size_t at = why.find(kStrict);
  if (at != why.npos) {
    std::string all = strict ? fmt::format("{}", fmt::join(faults, ", ")) : std::string();
    const std::string more = why.substr(at + kStrict.size());
    if (!all.empty() && !more.empty()) all += ", ";
    why = std::string(kStrict) + all + more;
  } else if (const size_t end = why.find(": "); why.find("cannot be handled as a") < end) {
    why.erase(0, end + 2);
  }
  FieldErrors errors;
  errors.invalid("patch", shown_patch(call, object), why);
  return base::error(invalid(Kind(), "", errors.causes()));
}

// Null where the object has nothing left to wait for.
Value kept_or_gone(Call& call, Value object) {
  call.leaves = Value();
  if (!may_go(object)) return object;
  call.leaves = std::move(object);
  return {};
}

std::function<Value(Value)> seen_by(const CallPtr& call) {
  return [call](Value object) { return call->leaves.is_null() ? object : call->leaves; };
}

base::Result<Value> patch_or_apply(const Core& core, const Call& call, const Value& current) {
  const Value shown = call.view != nullptr ? call.view->view->from_stored(current) : current;
  if (!is_apply(call)) return apply_patch(call.face(), call.request, shown);
  auto applied = apply_configuration(core, call, shown);
  if (!applied && applied.error().code == Code::kInternal) {
    return base::error(plain_error(applied.error().message));
  }
  return applied;
}

}  // namespace

void do_create(Core& core, const CallPtr& call) {
  const Kind& kind = *call->kind;
  if (kind.custom != nullptr && kind.custom->terminating) {
    return fail(core, call,
                {Code::kMethodNotAllowed,
                 "create not allowed while custom resource definition is terminating",
                 {}});
  }
  if (const auto options = check_field_options(*call); !options) {
    return fail(core, call, options.error());
  }
  const bool generated = call->request.body["metadata"]["name"].as_string().empty();
  std::string name;
  for (int attempt = 0; attempt < kGenerateAttempts; ++attempt) {
    call->warnings.clear();
    auto object = prepare_create(core, *call);
    if (!object) return fail(core, call, std::move(object).error());
    if (const auto size = check_size(*object); !size) return fail(core, call, size.error());
    if (call->dry_run) {
      const auto charged = charge_quotas(core, *call, Value(), *object);
      if (!charged) return fail(core, call, charged.error());
      name = (*object)["metadata"]["name"].str();
      if (!core.store->latest(&kind, store_key(kind, *object))) {
        return succeed(core, call, std::move(*object), 201);
      }
    } else {
      const auto outcome = create_once(core, call, std::move(*object), &name);
      if (!outcome) return fail(core, call, outcome.error());
      if (*outcome != Store::Outcome::kConflict) return;
    }
    if (!generated) break;
  }
  fail(core, call, already_exists(call->face(), name));
}

void do_update(Core& core, const CallPtr& call) {
  if (const auto options = check_field_options(*call); !options) {
    return fail(core, call, options.error());
  }
  Update update;
  update.key = call->key();
  update.name = call->request.name;
  update.transform = [&core, call = call.get()](const Value& current) -> base::Result<Value> {
    TS_TRY(Value object, decode_body(*call, call->request.body, current));
    TS_TRY(object,
           prepare_update(core, *call, std::move(object), current, call->request.subresource));
    return kept_or_gone(*call, std::move(object));
  };
  update.view = seen_by(call);
  run_update(core, call, update);
}

void do_patch(Core& core, const CallPtr& call) {
  if (const auto options = check_field_options(*call); !options) {
    return fail(core, call, options.error());
  }
  if (is_apply(*call) && call->request.subresource.empty() &&
      !core.store->latest(call->kind, call->key())) {
    return create_applied(core, call);
  }
  Update update;
  update.key = call->key();
  update.name = call->request.name;
  update.transform = [&core, call = call.get()](const Value& current) -> base::Result<Value> {
    TS_TRY(Value object, patch_or_apply(core, *call, current));
    TS_TRY(object, decode_patched(*call, object, current));
    TS_TRY(object,
           prepare_update(core, *call, std::move(object), current, call->request.subresource));
    return kept_or_gone(*call, std::move(object));
  };
  update.view = seen_by(call);
  run_update(core, call, update);
}

}  // namespace tessera::apiserver
