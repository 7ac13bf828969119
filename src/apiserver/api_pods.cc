// pods/binding.
#include <utility>

#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"

namespace tessera::apiserver {
namespace {

using json::Value;

base::Error not_bound(const kube::Request& request, std::string_view why) {
  return {
      base::Code::kConflict,
      fmt::format("Operation cannot be fulfilled on pods/binding \"{}\": {}", request.name, why),
      {}};
}

// The condition of that type, made where it is missing; the transition time moves when the status changes.
void set_condition(Value& status, std::string_view type, std::string_view value, base::Time now) {
  Value& conditions = status.ref("conditions");
  size_t at = 0;
  while (at < conditions.size() && conditions.at(at)["type"].as_string() != type) ++at;
  if (at < conditions.size() && conditions.at(at)["status"].as_string() == value) return;
  Value condition = Value::object({{"lastProbeTime", nullptr},
                                   {"lastTransitionTime", base::to_rfc3339(now)},
                                   {"status", value},
                                   {"type", type}});
  if (at < conditions.size()) {
    conditions.ref_at(at) = std::move(condition);
  } else {
    conditions.push_back(std::move(condition));
  }
}

base::Status check_bindable(const Kind& pods, const kube::Request& request, const Value& pod) {
  const Value& uid = request.body["metadata"]["uid"];
  const Value& meta = pod["metadata"];
  if (!uid.as_string().empty() && !(uid == meta["uid"])) {
    return base::error(other_uid(pods, pod, uid.as_string()));
  }
  if (meta.contains("deletionTimestamp")) {
    return base::error(not_bound(
        request,
        fmt::format("pod {} is being deleted, cannot be assigned to a host", request.name)));
  }
  const std::string_view node = pod["spec"]["nodeName"].as_string();
  if (!node.empty()) {
    return base::error(not_bound(
        request, fmt::format("pod {} is already assigned to node \"{}\"", request.name, node)));
  }
  if (!pod["spec"]["schedulingGates"].empty()) {
    return base::error(not_bound(
        request, fmt::format("pod {} has non-empty .spec.schedulingGates", request.name)));
  }
  return {};
}

}  // namespace

base::Status check_body(const Value& body, std::string_view version, std::string_view kind) {
  const std::string_view said_version = body["apiVersion"].as_string();
  const std::string_view said_kind = body["kind"].as_string();
  const bool version_ok = said_version.empty() || said_version == version;
  if (body.is_object() && version_ok && (said_kind.empty() || said_kind == kind)) return {};
  return base::error(
      bad_request(fmt::format("the object provided is unrecognized (must be of type {})", kind)));
}

Value created_status() {
  Value status = Value::object({{"apiVersion", "v1"}, {"kind", "Status"}, {"status", "Success"}});
  status.ref("metadata") = Value::object();
  status.set("code", 201);
  return status;
}

void do_bindings(Core& core, const CallPtr& call) {
  call->kind = core.pods;
  call->request.gvr = core.pods->gvr();
  call->request.name = call->request.body["metadata"]["name"].str();
  call->request.subresource = "binding";
  if (call->request.name.empty()) return fail(core, call, bad_request("name must be provided"));
  do_binding(core, call);
}

void do_binding(Core& core, const CallPtr& call) {
  const kube::Request& request = call->request;
  if (const auto ok = check_body(request.body, "v1", "Binding"); !ok) {
    return fail(core, call, ok.error());
  }
  const Value& target = request.body["target"];
  if (const std::string_view name = request.body["metadata"]["name"].as_string();
      !name.empty() && name != request.name) {
    return fail(core, call, bad_request("name in URL does not match name in Binding object"));
  }
  FieldErrors errors;
  if (const std::string_view kind = target["kind"].as_string(); !kind.empty() && kind != "Node") {
    errors.not_supported("target.kind", target["kind"], {"Node", "<empty>"});
  }
  if (target["name"].as_string().empty()) errors.required("target.name");
  if (!errors.empty()) {
    const base::Cause& first = errors.causes().front();
    return fail(core, call, plain_error(first.field + ": " + first.message));
  }
  Update update{call->key(), request.name, {}, 201, {}};
  update.transform = [&core, call = call.get()](const Value& current) -> base::Result<Value> {
    TS_TRY_STATUS(check_bindable(*call->kind, call->request, current));
    Value pod = current;
    pod.ref("spec", "nodeName") = call->request.body["target"]["name"];
    for (const auto& annotation : call->request.body["metadata"]["annotations"].members()) {
      pod.ref("metadata", "annotations").set(annotation.name(), annotation.value);
    }
    set_condition(pod.ref("status"), "PodScheduled", "True", core.now());
    pod.ref("status").erase("nominatedNodeName");  // it has been fulfilled, or has not
    return pod;
  };
  update.view = [](const Value&) { return created_status(); };
  run_update(core, call, update);
}

}  // namespace tessera::apiserver
