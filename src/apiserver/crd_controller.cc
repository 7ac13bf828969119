#include "apiserver/crd_controller.h"

#include <algorithm>
#include <set>
#include <utility>

#include "apiserver/crd_definition.h"
#include "apiserver/registry.h"
#include "base/log.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr std::string_view kGroup = "apiextensions.k8s.io";
constexpr std::string_view kResource = "customresourcedefinitions.apiextensions.k8s.io";

bool in(const std::set<std::string>& taken, const Value& name) {
  return taken.contains(name.str());
}

// One name: accepted, or why not.
struct Names {
  std::set<std::string> resources;
  std::set<std::string> kinds;
};

Names taken_by(const std::vector<Value>& others) {
  Names out;
  for (const Value& other : others) {
    const Value& names = other["status"]["acceptedNames"];
    for (const char* field : {"plural", "singular"}) out.resources.insert(names[field].str());
    for (const Value& name : names["shortNames"].items()) out.resources.insert(name.str());
    for (const char* field : {"kind", "listKind"}) out.kinds.insert(names[field].str());
  }
  return out;
}

bool is_deleting(const Value& definition) {
  return definition["metadata"].contains("deletionTimestamp");
}

bool has_finalizer(const Value& definition) {
  const auto list = definition["metadata"]["finalizers"].items();
  return std::ranges::find(list, Value(kCrdFinalizer)) != list.end();
}

// What the server would say of the names, without looking at times.
Value judgement(const Value& definition) {
  Value out = Value::object({{"names", definition["status"]["acceptedNames"]}});
  Value& list = out.ref("conditions");
  for (const Value& condition : definition["status"]["conditions"].items()) {
    Value bare = condition;
    bare.erase("lastTransitionTime");
    list.push_back(std::move(bare));
  }
  return out;
}

}  // namespace

void settle_names(const std::vector<Value>& others, Value& definition, base::Time now) {
  const Names taken = taken_by(others);
  const Value wanted = definition["spec"]["names"];
  const Value had = definition["status"]["acceptedNames"];
  Value names = had;
  std::string reason;
  std::string message;
  const auto settle = [&](const char* field, const std::set<std::string>& used, const char* why) {
    if (!(wanted[field] == had[field]) && in(used, wanted[field])) {
      reason = why;
      message = fmt::format("\"{}\" is already in use", wanted[field].as_string());
    } else {
      names.set(field, wanted[field]);
    }
  };
  settle("plural", taken.resources, "PluralConflict");
  settle("singular", taken.resources, "SingularConflict");
  std::string conflicts;
  for (const Value& name : wanted["shortNames"].items()) {
    const auto own = had["shortNames"].items();
    if (std::ranges::find(own, name) != own.end() || !in(taken.resources, name)) continue;
    conflicts +=
        fmt::format("{}\"{}\" is already in use", conflicts.empty() ? "" : ", ", name.as_string());
  }
  if (!conflicts.empty()) {
    reason = "ShortNamesConflict";
    message = conflicts.find(", ") == std::string::npos ? conflicts : "[" + conflicts + "]";
  } else if (wanted["shortNames"].empty()) {
    names.erase("shortNames");
  } else {
    names.set("shortNames", wanted["shortNames"]);
  }
  settle("kind", taken.kinds, "KindConflict");
  settle("listKind", taken.kinds, "ListKindConflict");
  if (wanted["categories"].empty()) {
    names.erase("categories");
  } else {
    names.set("categories", wanted["categories"]);
  }
  definition.ref("status", "acceptedNames") = std::move(names);
  const bool accepted = reason.empty();
  set_condition(definition, "NamesAccepted", accepted, accepted ? "NoConflicts" : reason,
                accepted ? "no conflicts found" : message, now);
  if (has_condition(definition, "Established")) return;
  set_condition(
      definition, "Established", accepted, accepted ? "InitialNamesAccepted" : "NotAccepted",
      accepted ? "the initial names have been accepted" : "not all names are accepted", now);
}

CrdController::CrdController(const std::shared_ptr<Core>& core)
    : core_(core),
      definitions_(
          core->options.kinds->find({std::string(kGroup), "v1", "customresourcedefinitions"})) {}

// Kinds are never freed, but their schemas are.
CrdController::~CrdController() {
  for (auto& [uid, kinds] : made_) end_custom_kinds(kinds);
}

void CrdController::load(const std::vector<StoredRow>& rows, Kinds& kinds,
                         std::map<std::string, CrdKinds>& made) {
  std::vector<const Kind*> served;
  std::vector<const Kind*> tables;
  for (const StoredRow& row : rows) {
    if (row.resource != kResource) continue;
    const auto definition = json::parse(row.text);
    if (!definition) continue;  // the store says so
    CrdKinds& own = made[(*definition)["metadata"]["uid"].str()];
    if (const auto done = update_custom_kinds(*definition, row.revision, own); !done) {
      base::log_warn("a custom resource definition cannot be served name={} why={}", row.name,
                     done.error().message);
    }
    served.insert(served.end(), own.served.begin(), own.served.end());
    if (own.table != nullptr) tables.push_back(own.table);
  }
  if (!tables.empty()) kinds.publish(std::move(served), std::move(tables));
}

void CrdController::arm() {
  if (armed_ || definitions_ == nullptr) return;
  const auto core = core_.lock();
  if (!core) return;
  armed_ = true;
  core->options.executor->post([self = shared_from_this()] {
    self->armed_ = false;
    self->run();
  });
}

void CrdController::on_change(const Store::Change& change) {
  const auto core = core_.lock();
  if (!core || definitions_ == nullptr) return;
  if (change.kind != definitions_) {
    // The objects of a definition that waits for them.
    const bool waited = change.after.is_null() && std::ranges::any_of(made_, [&](const auto& each) {
                          return each.second.table == change.kind;
                        });
    if (waited) arm();
    return;
  }
  const std::string uid = change.object()["metadata"]["uid"].str();
  CrdKinds& own = made_[uid];
  if (change.after.is_null()) {
    const Kind* table = own.table;
    end_custom_kinds(own);
    made_.erase(uid);
    publish(*core);
    if (table != nullptr) core->hub->end_all(table);
  } else {
    if (const auto done = update_custom_kinds(change.after, change.revision, own); !done) {
      base::log_warn("a custom resource definition cannot be served name={} why={}",
                     change.after["metadata"]["name"].as_string(), done.error().message);
    }
    publish(*core);
  }
  arm();
}

void CrdController::publish(Core& core) const {
  std::vector<const Kind*> served;
  std::vector<const Kind*> tables;
  for (const auto& [uid, own] : made_) {
    served.insert(served.end(), own.served.begin(), own.served.end());
    if (own.table != nullptr) tables.push_back(own.table);
  }
  // Groups by name, in each the version first that clients prefer.
  std::ranges::stable_sort(served, [](const Kind* a, const Kind* b) {
    if (a->group != b->group) return a->group < b->group;
    if (a->version != b->version) return version_before(a->version, b->version);
    return a->plural < b->plural;
  });
  core.kinds->publish(std::move(served), std::move(tables));
}

void CrdController::run() {
  const auto core = core_.lock();
  if (!core) return;
  for (const Store::Found& found : core->store->newest(definitions_, "")) {
    sync(*core, found.object);
  }
}

void CrdController::sync(Core& core, const Value& definition) {
  const std::string name = definition["metadata"]["name"].str();
  if (is_deleting(definition)) {
    if (!has_finalizer(definition) || !clear(core, definition)) return;
    const bool established = has_condition(definition, "Established");
    return write(core, name, [established, now = core.now()](Value& next) {
      set_condition(next, "Terminating", false,
                    established ? "InstanceDeletionCompleted" : "NeverEstablished",
                    established ? "removed all instances" : "resource was never established", now);
      Value left = Value::array();
      for (const Value& each : next["metadata"]["finalizers"].items()) {
        if (each.as_string() != kCrdFinalizer) left.push_back(each);
      }
      if (left.empty()) {
        next.ref("metadata").erase("finalizers");
      } else {
        next.ref("metadata", "finalizers") = std::move(left);
      }
    });
  }
  std::vector<Value> others;
  for (const Store::Found& other : core.store->newest(definitions_, "")) {
    const bool same_group = other.object["spec"]["group"] == definition["spec"]["group"];
    if (same_group && other.object["metadata"]["name"].as_string() != name) {
      others.push_back(other.object);
    }
  }
  Value settled = definition;
  settle_names(others, settled, core.now());
  if (judgement(settled) == judgement(definition)) return;
  write(core, name, [others = std::move(others), now = core.now()](Value& next) {
    if (!is_deleting(next)) settle_names(others, next, now);
  });
}

// Deletes the objects; true when there are none.
bool CrdController::clear(Core& core, const Value& definition) {
  const auto own = made_.find(definition["metadata"]["uid"].str());
  const Kind* table = own == made_.end() ? nullptr : own->second.table;
  if (table == nullptr) return true;
  kube::Request request;
  request.verb = kube::Verb::kDelete;
  const auto transform = deletion_of(core, *table, request);
  if (!transform) return false;
  for (const Store::Found& found : core.store->newest(table, "")) {
    if (is_deleting(found.object)) continue;
    auto call = std::make_shared<Call>();
    call->kind = table;
    call->caller = system_caller("kube-apiserver");
    call->done = [](const ApiReply&) {};
    run_update(core, call,
               {store_key(*table, found.object),
                found.object["metadata"]["name"].str(),
                *transform,
                200,
                {}});
  }
  return core.store->newest(table, "").empty();
}

void CrdController::write(Core& core, const std::string& name,
                          std::function<void(Value&)> change) const {
  auto call = std::make_shared<Call>();
  call->kind = definitions_;
  call->caller = system_caller("kube-apiserver");
  call->request.verb = kube::Verb::kUpdate;
  call->request.gvr = definitions_->gvr();
  call->request.name = name;
  call->request.subresource = "status";
  call->done = [](const ApiReply&) {};
  Update update;
  update.key = call->key();
  update.name = name;
  update.transform = [&core, call = call.get(),
                      change = std::move(change)](const Value& current) -> base::Result<Value> {
    Value next = current;
    change(next);
    if (next == current) return current;
    TS_TRY(next, prepare_update(core, *call, std::move(next), current, "status"));
    return may_go(next) ? Value() : next;
  };
  run_update(core, call, update);
}

}  // namespace tessera::apiserver
