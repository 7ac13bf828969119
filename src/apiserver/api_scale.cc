// deployments/scale and replicasets/scale as autoscaling/v1 Scale.
#include <utility>

#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/registry.h"
#include "kube/labels.h"

namespace tessera::apiserver {
namespace {

using json::Value;

Value scale_of(const Value& object) {
  const Value& meta = object["metadata"];
  Value scale = Value::object({{"apiVersion", "autoscaling/v1"}, {"kind", "Scale"}});
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    scale.ref("metadata").set(field, meta[field]);
  }
  scale.ref("spec") = Value::object();
  const int64_t replicas = object["spec"]["replicas"].as_int();
  if (replicas != 0) scale.ref("spec").set("replicas", replicas);
  Value& status = scale.ref("status");
  status.set("replicas", object["status"]["replicas"].as_int());
  if (const auto selector = kube::LabelSelector::from_json(object["spec"]["selector"], "");
      selector && !selector->to_string().empty()) {
    status.set("selector", selector->to_string());
  }
  return scale;
}

base::Result<Value> scaled(Core& core, Call& call, const Value& current, const Value& scale) {
  if (!scale.is_object() || (scale.contains("kind") && scale["kind"].as_string() != "Scale")) {
    return base::error(bad_request("the object provided is unrecognized (must be of type Scale)"));
  }
  const Value& replicas = scale["spec"]["replicas"];
  if (!replicas.is_null() && !replicas.is_int()) {
    return base::error(bad_request("spec.replicas of a Scale must be a whole number"));
  }
  if (replicas.as_int() < 0) {
    Kind kind;
    kind.group = "autoscaling";
    kind.kind = "Scale";
    return base::error(invalid(
        kind, call.request.name,
        {{"FieldValueInvalid",
          fmt::format("Invalid value: {}: must be greater than or equal to 0", replicas.as_int()),
          "spec.replicas"}}));
  }
  Value object = current;
  object.ref("spec", "replicas") = replicas.as_int();
  const Value& version = scale["metadata"]["resourceVersion"];
  if (!version.as_string().empty() &&
      version.as_string() != current["metadata"]["resourceVersion"].as_string()) {
    return base::error(modified(*call.kind, call.request.name));
  }
  return prepare_update(core, call, std::move(object), current, "");
}

}  // namespace

void do_scale(Core& core, const CallPtr& call) {
  if (call->request.verb == kube::Verb::kGet) {
    const Store::Found found = core.store->durable(call->kind, call->key());
    if (!found) return fail(core, call, not_found(*call->kind, call->request.name));
    return call->done({scale_of(found.object), 200, {}});
  }
  Update update{call->key(), call->request.name, {}, 200, scale_of};
  update.transform = [&core, call = call.get()](const Value& current) -> base::Result<Value> {
    if (call->request.verb == kube::Verb::kUpdate) {
      return scaled(core, *call, current, call->request.body);
    }
    Kind none;  // a Scale has no lists: a strategic merge is a plain one
    kube::Request patch = call->request;
    if (patch.patch_type == kube::PatchType::kStrategic) {
      patch.patch_type = kube::PatchType::kMerge;
    }
    TS_TRY(const Value scale, apply_patch(none, patch, scale_of(current)));
    return scaled(core, *call, current, scale);
  };
  run_update(core, call, update);
}

}  // namespace tessera::apiserver
