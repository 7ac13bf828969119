// create, update and patch.
#include <memory>
#include <utility>

#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/registry.h"
#include "json/patch.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr int kGenerateAttempts = 8;

// A new object, once; kConflict where the name is taken.
Store::Outcome create_once(Core& core, const CallPtr& call, Value object, std::string* name) {
  const Kind& kind = *call->kind;
  *name = object["metadata"]["name"].str();
  const bool is_service = &kind == core.services;
  const Value service = is_service ? object : Value();
  Store::Write write{&kind, store_key(kind, object), 0, std::move(object), reply_of(call, 201)};
  const Store::Outcome outcome = core.store->commit(write);
  if (outcome != Store::Outcome::kAccepted && is_service) core.ips.release(service);
  if (outcome == Store::Outcome::kClosed) {
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
      if (!request.body.is_object() || kind.schema == nullptr) break;
      return kube::apply_strategic_merge(*kind.schema, target, request.body);
    case kube::PatchType::kApply:
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
  if (result || result.error().code != Code::kInvalid) return result;
  base::Error error = std::move(result).error();
  error.message =
      "the server rejected our request due to an error in our request: " + error.message;
  return base::error(std::move(error));
}

void do_create(Core& core, const CallPtr& call) {
  const Kind& kind = *call->kind;
  const bool generated = call->request.body["metadata"]["name"].as_string().empty();
  std::string name;
  for (int attempt = 0; attempt < kGenerateAttempts; ++attempt) {
    call->warnings.clear();
    auto object = prepare_create(core, *call);
    if (!object) return fail(core, call, std::move(object).error());
    if (const auto size = check_size(*object); !size) return fail(core, call, size.error());
    if (call->dry_run) {
      name = (*object)["metadata"]["name"].str();
      if (!core.store->latest(&kind, store_key(kind, *object))) {
        return succeed(core, call, std::move(*object), 201);
      }
    } else if (create_once(core, call, std::move(*object), &name) != Store::Outcome::kConflict) {
      return;
    }
    if (!generated) break;
  }
  fail(core, call, already_exists(kind, name));
}

void do_update(Core& core, const CallPtr& call) {
  Update update;
  update.key = call->key();
  update.name = call->request.name;
  update.transform = [&core, call = call.get()](const Value& current) -> base::Result<Value> {
    TS_TRY(Value object, decode_body(*call, call->request.body, current));
    TS_TRY(object,
           prepare_update(core, *call, std::move(object), current, call->request.subresource));
    return may_go(object) ? Value() : object;
  };
  run_update(core, call, update);
}

void do_patch(Core& core, const CallPtr& call) {
  Update update;
  update.key = call->key();
  update.name = call->request.name;
  update.transform = [&core, call = call.get()](const Value& current) -> base::Result<Value> {
    TS_TRY(Value object, apply_patch(*call->kind, call->request, current));
    TS_TRY(object, decode_body(*call, object, current));
    TS_TRY(object,
           prepare_update(core, *call, std::move(object), current, call->request.subresource));
    return may_go(object) ? Value() : object;
  };
  run_update(core, call, update);
}

}  // namespace tessera::apiserver
