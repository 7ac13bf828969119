// deployments/scale, replicasets/scale and those of custom kinds as autoscaling/v1 Scale.
#include <algorithm>
#include <string>
#include <utility>

#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/crd_kind.h"
#include "apiserver/field_ownership.h"
#include "apiserver/registry.h"
#include "kube/labels.h"
#include "kube/schema.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// Where a kind keeps what a Scale tells.
const CustomKind::Scale& places_of(const Kind& kind) {
  static const CustomKind::Scale kBuiltin{{"spec", "replicas"}, {"status", "replicas"}, {}};
  return kind.custom != nullptr && kind.custom->scale ? *kind.custom->scale : kBuiltin;
}

const Value& at_place(const Value& object, const std::vector<std::string>& place) {
  const Value* at = &object;
  for (const std::string& step : place) at = &(*at)[step];
  return *at;
}

void set_at(Value& object, const std::vector<std::string>& place, Value value) {
  Value* at = &object;
  for (const std::string& step : place) at = &at->ref(step);
  *at = std::move(value);
}

// The pods that belong to the object, as text.
std::string selector_of(const Kind& kind, const Value& object) {
  if (kind.custom != nullptr) {
    const auto& place = places_of(kind).selector;
    return place.empty() ? std::string() : at_place(object, place).str();
  }
  const auto selector = kube::LabelSelector::from_json(object["spec"]["selector"], "");
  return selector ? selector->to_string() : std::string();
}

Value scale_of(const Kind& kind, const Value& object) {
  const Value& meta = object["metadata"];
  Value scale = Value::object({{"apiVersion", "autoscaling/v1"}, {"kind", "Scale"}});
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    scale.ref("metadata").set(field, meta[field]);
  }
  scale.ref("spec") = Value::object();
  const int64_t replicas = at_place(object, places_of(kind).spec_replicas).as_int();
  if (replicas != 0) scale.ref("spec").set("replicas", replicas);
  Value& status = scale.ref("status");
  status.set("replicas", at_place(object, places_of(kind).status_replicas).as_int());
  if (std::string selector = selector_of(kind, object); !selector.empty()) {
    status.set("selector", std::move(selector));
  }
  return scale;
}

base::Error no_replicas(const Kind& kind) {
  std::string path;
  for (const std::string& step : places_of(kind).spec_replicas) path.append(".").append(step);
  const std::string why = fmt::format("the spec replicas field \"{}\" does not exist", path);
  return {base::Code::kInternal, "Internal error occurred: " + why, {{"", why, ""}}};
}

const Kind& scale_kind() {
  static const Kind kScale = [] {
    Kind kind;
    kind.group = "autoscaling";
    kind.kind = "Scale";
    kind.schema = kube::find_kind_schema("autoscaling", "v1", "Scale");
    return kind;
  }();
  return kScale;
}

bool owns_replicas(const Value& entry) {
  return entry["fieldsV1"]["f:spec"].contains("f:replicas");
}

Value replicas_field() {
  Value fields = Value::object();
  fields.ref("f:spec").ref("f:replicas") = Value::object();
  return fields;
}

// Of the owners of an object those of its replicas, as owners of its Scale.
Value owners_of_scale(const Value& object) {
  Value out = Value::array();
  for (const Value& entry : object["metadata"]["managedFields"].items()) {
    if (!owns_replicas(entry)) continue;
    Value one = entry;
    one.set("apiVersion", scale_kind().api_version());
    one.set("fieldsV1", replicas_field());
    out.push_back(std::move(one));
  }
  return out;
}

bool same_owner(const Value& a, const Value& b) {
  return a["manager"] == b["manager"] && a["operation"] == b["operation"] &&
         a["subresource"] == b["subresource"];
}

// And back: who owns the replicas of the object after its Scale was applied.
Value owners_of_object(const Value& before, const Value& of_scale, const std::string& version) {
  Value out = Value::array();
  for (const Value& entry : before["metadata"]["managedFields"].items()) {
    Value one = entry;
    if (owns_replicas(entry)) {
      Value& fields = one.ref("fieldsV1");
      fields.ref("f:spec").erase("f:replicas");
      if (fields["f:spec"].empty()) fields.erase("f:spec");
    }
    const auto owners = of_scale.items();
    const bool owns =
        std::ranges::any_of(owners, [&](const Value& o) { return same_owner(o, one); });
    if (owns) one.ref("fieldsV1").ref("f:spec").ref("f:replicas") = Value::object();
    if (!one["fieldsV1"].empty()) out.push_back(std::move(one));
  }
  for (const Value& owner : of_scale.items()) {
    const auto known = out.items();
    if (std::ranges::any_of(known, [&](const Value& one) { return same_owner(one, owner); }))
      continue;
    Value one = owner;
    one.set("apiVersion", version);
    one.set("fieldsV1", replicas_field());
    out.push_back(std::move(one));
  }
  // What was applied stands first.
  Value sorted = Value::array();
  for (const bool applied : {true, false}) {
    for (const Value& one : out.items()) {
      if ((one["operation"].as_string() == "Apply") == applied) sorted.push_back(one);
    }
  }
  return sorted;
}

base::Result<Value> apply_scale(const Core& core, const Call& call, const Value& current) {
  Value live = scale_of(*call.kind, current);
  live.ref("metadata").set("managedFields", owners_of_scale(current));
  auto applied = apply_configuration(core, call, live, scale_kind(), "");
  if (!applied && applied.error().code == base::Code::kInternal) {
    return base::error(plain_error(applied.error().message));
  }
  return applied;
}

base::Result<Value> scaled(Core& core, Call& call, const Value& current, const Value& sent) {
  TS_TRY(const Value scale, decode_as(scale_kind(), call, sent, Value()));
  const Value& name = scale["metadata"]["name"];
  if (!name.as_string().empty() && name.as_string() != call.request.name) {
    return base::error(bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                    name.as_string(), call.request.name)));
  }
  const Value& replicas = scale["spec"]["replicas"];
  if (replicas.as_int() < 0 && call.kind->custom == nullptr) {  // a custom kind's schema tells
    return base::error(invalid(
        scale_kind(), call.request.name,
        {{"FieldValueInvalid",
          fmt::format("Invalid value: {}: must be greater than or equal to 0", replicas.as_int()),
          "spec.replicas"}}));
  }
  Value object = current;
  set_at(object, places_of(*call.kind).spec_replicas, replicas.as_int());
  if (is_apply(call)) {
    set_owners(object, owners_of_object(current, scale["metadata"]["managedFields"],
                                        call.kind->api_version()));
  }
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
    const Value object = as_served(*call->kind, found.object);
    if (call->kind->custom != nullptr &&
        at_place(object, places_of(*call->kind).spec_replicas).is_null()) {
      return fail(core, call, no_replicas(*call->kind));
    }
    return call->done({scale_of(*call->kind, object), 200, {}});
  }
  if (const auto options = check_field_options(*call); !options) {
    return fail(core, call, options.error());
  }
  Update update{call->key(), call->request.name, {}, 200, [kind = call->kind](const Value& object) {
                  return scale_of(*kind, object);
                }};
  update.transform = [&core, call = call.get()](const Value& current) -> base::Result<Value> {
    if (call->request.verb == kube::Verb::kUpdate) {
      return scaled(core, *call, current, call->request.body);
    }
    if (is_apply(*call)) {
      TS_TRY(const Value applied, apply_scale(core, *call, current));
      return scaled(core, *call, current, applied);
    }
    Kind none;  // a Scale has no lists: a strategic merge is a plain one
    kube::Request patch = call->request;
    if (patch.patch_type == kube::PatchType::kStrategic) {
      patch.patch_type = kube::PatchType::kMerge;
    }
    TS_TRY(const Value scale, apply_patch(none, patch, scale_of(*call->kind, current)));
    return scaled(core, *call, current, scale);
  };
  run_update(core, call, update);
}

}  // namespace tessera::apiserver
