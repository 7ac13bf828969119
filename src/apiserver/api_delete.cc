// delete and deletecollection: grace, finalizers, preconditions, propagation.
#include <algorithm>
#include <optional>
#include <utility>

#include "apiserver/admission.h"
#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/api_token.h"
#include "apiserver/crd_kind.h"
#include "apiserver/node_access.h"
#include "apiserver/registry.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr std::string_view kOrphan = "orphan";
constexpr const char* kOrphansWarning =
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning";
constexpr std::string_view kForeground = "foregroundDeletion";

struct DeleteOptions {
  std::optional<int64_t> grace_seconds;
  std::string policy;  // "Background", "Foreground", "Orphan" or empty
  std::string uid;
  std::string resource_version;
};

tl::unexpected<base::Error> bad_policy(const std::string& why, const char* reason) {
  base::Error error{
      Code::kInvalid, "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: " + why, {}};
  error.causes.push_back({reason, why, "propagationPolicy"});
  return base::error(std::move(error));
}

// From the body, and where that says nothing from the query.
base::Result<DeleteOptions> read_options(const kube::Request& request) {
  const Value& body = request.body;
  DeleteOptions out;
  if (!body.is_null() && !body.is_object()) {
    return base::error(bad_request("DeleteOptions must be a JSON object"));
  }
  if (body["gracePeriodSeconds"].is_int()) {
    out.grace_seconds = body["gracePeriodSeconds"].as_int();
  } else if (!body["gracePeriodSeconds"].is_null()) {
    return base::error(bad_request("gracePeriodSeconds must be a whole number of seconds"));
  } else {
    TS_TRY(out.grace_seconds, read_integer(request, "gracePeriodSeconds"));
  }
  out.policy = body["propagationPolicy"].str();
  if (out.policy.empty()) out.policy = std::string(request.option("propagationPolicy"));
  if (body["orphanDependents"].is_bool()) {
    if (!out.policy.empty()) {
      return bad_policy(fmt::format("Invalid value: \"{}\": orphanDependents and "
                                    "deletionPropagation cannot be both set",
                                    out.policy),
                        "FieldValueInvalid");
    }
    out.policy = body["orphanDependents"].as_bool() ? "Orphan" : "Background";
  }
  if (!out.policy.empty() && out.policy != "Background" && out.policy != "Foreground" &&
      out.policy != "Orphan") {
    return bad_policy(fmt::format("Unsupported value: \"{}\": supported values: \"Foreground\", "
                                  "\"Background\", \"Orphan\", \"nil\"",
                                  out.policy.substr(0, 64)),
                      "FieldValueNotSupported");
  }
  out.uid = body["preconditions"]["uid"].str();
  out.resource_version = body["preconditions"]["resourceVersion"].str();
  return out;
}

base::Status check_preconditions(const Kind& kind, const DeleteOptions& options,
                                 const Value& current) {
  const Value& meta = current["metadata"];
  const std::string_view name = meta["name"].as_string();
  const auto differs = [&](const char* what, std::string_view wanted, std::string_view found,
                           const char* guess) {
    const std::string type = kind.group.empty() ? kind.kind : kind.kind + "." + kind.group;
    return base::error(Code::kConflict,
                       "Operation cannot be fulfilled on {} \"{}\": the {} in the precondition "
                       "({}) does not match "
                       "the {} in record ({}). The object might have been {}",
                       type, name, what, wanted, what, found, guess);
  };
  const std::string_view uid = meta["uid"].as_string();
  if (!options.uid.empty() && options.uid != uid) {
    return differs("UID", options.uid, uid, "deleted and then recreated");
  }
  const std::string_view version = meta["resourceVersion"].as_string();
  if (!options.resource_version.empty() && options.resource_version != version) {
    return differs("ResourceVersion", options.resource_version, version, "modified");
  }
  return {};
}

// The finalizers that the propagation asks for; those of the other policies go.
Value finalizers_for(const Value& current, const DeleteOptions& options) {
  const Value& before = current["metadata"]["finalizers"];
  if (options.policy.empty()) return before;
  Value out = Value::array();
  for (const Value& item : before.items()) {
    if (item.as_string() != kOrphan && item.as_string() != kForeground) out.push_back(item);
  }
  if (options.policy == "Orphan") out.push_back(kOrphan);
  if (options.policy == "Foreground") out.push_back(kForeground);
  return out == before ? before : out;
}

// How long a Pod may take to end; nothing else is given time.
int64_t grace_of(const Core& core, const Kind& kind, const Value& current,
                 const DeleteOptions& options) {
  if (&kind != core.pods) return 0;
  const std::string_view phase = current["status"]["phase"].as_string();
  if (current["spec"]["nodeName"].as_string().empty() || phase == "Failed" ||
      phase == "Succeeded") {
    return 0;
  }
  const int64_t seconds =
      options.grace_seconds.value_or(current["spec"]["terminationGracePeriodSeconds"].as_int(30));
  return seconds < 0 ? 1 : std::min<int64_t>(seconds, int64_t{1} << 31);
}

void mark_deleting(Value& object, base::Time when, int64_t grace) {
  Value& meta = object.ref("metadata");
  meta.set("deletionTimestamp", base::to_rfc3339(when + base::seconds(grace)));
  meta.set("deletionGracePeriodSeconds", grace);
  if (meta["generation"].as_int() > 0) meta.set("generation", meta["generation"].as_int() + 1);
}

// The grace of an object that is being deleted may only become shorter.
void shorten_grace(Value& object, int64_t grace) {
  Value& meta = object.ref("metadata");
  const int64_t before = meta["deletionGracePeriodSeconds"].as_int();
  if (grace >= before) return;
  if (const auto due = base::parse_rfc3339(meta["deletionTimestamp"].as_string())) {
    meta.set("deletionTimestamp", base::to_rfc3339(*due + base::seconds(grace - before)));
  }
  meta.set("deletionGracePeriodSeconds", grace);
}

// Namespaces go when their content is gone: the namespace controller then empties spec.finalizers.
void mark_namespace(Value& object) {
  object.ref("status", "phase") = "Terminating";
}

Transform deletion(Core& core, const Kind& kind, DeleteOptions options) {
  return [&core, &kind, options = std::move(options)](const Value& current) -> base::Result<Value> {
    TS_TRY_STATUS(check_preconditions(kind, options, current));
    Value object = current;
    const Value finalizers = finalizers_for(current, options);
    if (!(finalizers == current["metadata"]["finalizers"])) {
      object.ref("metadata", "finalizers") = finalizers;
      if (finalizers.empty()) object.ref("metadata").erase("finalizers");
    }
    const int64_t grace = grace_of(core, kind, current, options);
    if (!current["metadata"].contains("deletionTimestamp")) {
      mark_deleting(object, core.now(), grace);
      if (kind.prepare_delete) kind.prepare_delete(object, core.now());
    } else {
      shorten_grace(object, grace);
    }
    if (&kind == core.namespaces) mark_namespace(object);
    return may_go(object) ? Value() : object;
  };
}

// Kinds whose deletion answers with the object, not with a Status.
bool returns_object(const Kind& kind) {
  static constexpr std::string_view kCore[] = {
      "namespaces",   "persistentvolumeclaims", "persistentvolumes", "pods",
      "podtemplates", "resourcequotas",         "serviceaccounts",   "services"};
  return kind.group == "storage.k8s.io" ||
         (kind.group.empty() && std::ranges::find(kCore, kind.plural) != std::end(kCore));
}

// What the caller of a delete sees: an object that still waits for something, or that it went.
Value deletion_answer(const Core& core, const Kind& kind, const Kind& face, const Value& object) {
  const Value& meta = object["metadata"];
  const bool waits = meta.contains("deletionTimestamp") && !meta["finalizers"].empty();
  if (!waits && !returns_object(kind)) return success_status(face, object);
  if (&kind != core.pods || meta.contains("deletionTimestamp")) return object;
  Value gone = object;
  mark_deleting(gone, core.now(), 0);
  return gone;
}

base::Status admit_delete(const Core& core, const Kind& kind, std::string_view name) {
  if (&kind != core.namespaces || !is_protected_namespace(name)) return {};
  return base::error(forbidden(kind, name, "this namespace may not be deleted"));
}

}  // namespace

Value success_status(const Kind& kind, const Value& object) {
  Value status = Value::object({{"apiVersion", "v1"}, {"kind", "Status"}, {"status", "Success"}});
  status.ref("metadata") = Value::object();
  Value& details = status.ref("details");
  details.set("name", object["metadata"]["name"]);
  if (!kind.group.empty()) details.set("group", kind.group);
  details.set("kind", kind.plural);
  details.set("uid", object["metadata"]["uid"]);
  return status;
}

base::Result<Transform> deletion_of(Core& core, const Kind& kind, const kube::Request& request) {
  TS_TRY(DeleteOptions options, read_options(request));
  return deletion(core, kind, std::move(options));
}

void do_delete(Core& core, const CallPtr& call) {
  const Kind& kind = *call->kind;
  auto options = read_options(call->request);
  if (!options) return fail(core, call, std::move(options).error());
  const bool keeps_pods = options->policy.empty() && kind.kind == "Job" && kind.group == "batch";
  if (keeps_pods) options->policy = "Orphan";
  if (const auto admitted = admit_delete(core, kind, call->request.name); !admitted) {
    return fail(core, call, admitted.error());
  }
  Update update;
  update.key = call->key();
  update.name = call->request.name;
  update.transform = deletion(core, kind, std::move(*options));
  update.view = [&core, &kind, call](const Value& object) {
    return deletion_answer(core, kind, call->face(), object);
  };
  if (node_of(call->caller)) {
    update.transform = [&core, call = call.get(),
                        go = std::move(update.transform)](const Value& now) -> base::Result<Value> {
      TS_TRY_STATUS(admit_node_caller(core, *call, now, Value()));
      return go(now);
    };
  }
  if (keeps_pods) {
    update.transform = [call = call.get(), go = std::move(update.transform)](const Value& current) {
      call->warnings.push_back(kOrphansWarning);
      return go(current);
    };
  }
  run_update(core, call, update);
}

void do_delete_collection(Core& core, const CallPtr& call) {
  const Kind& kind = *call->kind;
  if (&kind == core.namespaces) return fail(core, call, method_not_allowed());
  auto options = read_options(call->request);
  if (!options) return fail(core, call, std::move(options).error());
  const auto selection = Selection::parse(call->face(), call->request);
  if (!selection) return fail(core, call, selection.error());
  Store::Range range;
  range.prefix = selection->prefix();
  range.filter = [&](const Value& object) { return selection->matches(object); };
  const auto limit = read_number(call->request, "limit");
  const auto version = read_version(call->request);
  if (!limit) return fail(core, call, limit.error());
  if (!version) return fail(core, call, version.error());
  range.limit = limit->value_or(0);
  range.revision = version->value_or(0);
  if (const auto come = check_not_ahead(range.revision, core.store->revision()); !come) {
    return fail(core, call, come.error());
  }
  auto page = core.store->list(&kind, range);
  if (!page) return fail(core, call, page.error());
  const Transform transform = deletion(core, kind, std::move(*options));
  std::vector<Value> deleted;
  for (const Value& item : page->items) {
    const std::string name = item["metadata"]["name"].str();
    if (!admit_delete(core, kind, name)) continue;
    auto one = std::make_shared<Call>();
    one->kind = &kind;
    one->dry_run = call->dry_run;
    one->done = [](const ApiReply&) {};
    run_update(core, one, {store_key(kind, item), name, transform, 200, {}});
    deleted.push_back(as_served(kind, item));
  }
  Value list = Value::object({{"apiVersion", kind.api_version()}, {"kind", kind.list_kind_name()}});
  list.ref("metadata", "resourceVersion") = std::to_string(page->revision);
  if (kind.custom != nullptr) list.ref("metadata", "continue") = "";
  list.set("items", json::array_of(deleted));
  succeed(core, call, std::move(list));
}

}  // namespace tessera::apiserver
