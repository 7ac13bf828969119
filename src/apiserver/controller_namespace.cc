#include "apiserver/controller_namespace.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr base::Duration kLookAgain = base::seconds(2);
constexpr std::string_view kFinalizer = "kubernetes";
constexpr std::string_view kCertificate = "kube-root-ca.crt";
constexpr std::string_view kDescription =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters.";

// Gone or there already: nothing left to do.
ObjectDone unless_settled(Done done) {
  return [done = std::move(done)](base::Result<Object> result) {
    const bool fine = result || result.error().code == base::Code::kNotFound ||
                      result.error().code == base::Code::kAlreadyExists;
    done(fine ? base::Status() : base::Status(base::error(result.error())));
  };
}

// Made in the meantime, gone or on its way out: fine.
ObjectDone made(Done done) {
  return [done = std::move(done)](const base::Result<Object>& result) {
    if (!result && is_namespace_terminating(result.error())) return done({});
    unless_settled(done)(result);
  };
}

struct Condition {
  const char* type;
  const char* good_reason;
  const char* good;
  const char* bad_reason;
  std::string bad{};  // empty: all is well
};

std::string counted(const std::map<std::string, size_t>& counts, const char* words) {
  std::string out;
  for (const auto& [name, count] : counts) {
    if (!out.empty()) out += ", ";
    out += fmt::format("{} {} {} resource instances", name, words, count);
  }
  return out;
}

Value deletion_status(const Value& status, const std::vector<Condition>& conditions,
                      base::Time now) {
  Value out = status;
  for (const Condition& each : conditions) {
    const bool bad = !each.bad.empty();
    Value condition = Value::object({{"type", each.type}});
    condition.set("status", bad ? "True" : "False");
    condition.set("reason", bad ? each.bad_reason : each.good_reason);
    condition.set("message", bad ? std::string_view(each.bad) : std::string_view(each.good));
    set_condition(out, std::move(condition), now);
  }
  return out;
}

}  // namespace

NamespaceController::NamespaceController(Cluster& cluster, const Kinds& kinds,
                                         std::string root_ca_pem)
    : cluster_(cluster),
      kinds_(kinds),
      namespaces_(cluster.cache("", "Namespace")),
      accounts_(cluster.cache("", "ServiceAccount")),
      config_maps_(cluster.cache("", "ConfigMap")),
      root_ca_pem_(std::move(root_ca_pem)),
      queue_(cluster, "namespace",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  namespaces_.subscribe([this](const Object&, const Object& after) {
    if (after) queue_.enqueue(after.key());
  });
  accounts_.subscribe([this](const Object& before, const Object& after) {
    if (!after && before.name() == "default") queue_.enqueue(std::string(before.ns()));
  });
  config_maps_.subscribe([this](const Object& before, const Object& after) {
    const Object& shown = after ? after : before;
    if (shown.name() != kCertificate || (after && before && after["data"] == before["data"]))
      return;
    queue_.enqueue(std::string(shown.ns()));
  });
  for (Cache* cache : cluster.caches()) {
    if (!cache->kind().namespaced) continue;
    cache->subscribe([this](const Object& before, const Object& after) {
      if (!after && namespaces_.find(before.ns()).deleting()) {
        queue_.enqueue(std::string(before.ns()));
      }
    });
  }
}

void NamespaceController::sync(const std::string& name, Done done) {
  const Object object = namespaces_.find(name);
  if (!object) return done({});
  if (!object.deleting()) {
    return run_all({ensure_account(name), ensure_certificate(name)}, std::move(done));
  }
  if (object.get("spec", "finalizers").empty()) return done({});
  empty(object, std::move(done));
}

Action NamespaceController::ensure_account(const std::string& name) {
  return [this, name](Done done) {
    if (accounts_.find(name + "/default")) return done({});
    Value account = Value::object({{"apiVersion", "v1"}, {"kind", "ServiceAccount"}});
    account.set("metadata", Value::object({{"name", "default"}, {"namespace", name}}));
    cluster_.create(accounts_, std::move(account), made(std::move(done)));
  };
}

Action NamespaceController::ensure_certificate(const std::string& name) {
  return [this, name](Done done) {
    if (root_ca_pem_.empty()) return done({});
    const Object known = config_maps_.find(fmt::format("{}/{}", name, kCertificate));
    const Value data = Value::object({{"ca.crt", root_ca_pem_}});
    const Value annotations = Value::object({{"kubernetes.io/description", kDescription}});
    if (!known) {
      Value map = Value::object({{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", data}});
      map.set("metadata",
              Value::object(
                  {{"name", kCertificate}, {"namespace", name}, {"annotations", annotations}}));
      return cluster_.create(config_maps_, std::move(map), made(std::move(done)));
    }
    if (known["data"] == data) return done({});
    Value changed = known.json();
    changed.set("data", data);
    changed.ref("metadata").set("annotations", annotations);
    cluster_.update(config_maps_, std::move(changed), {}, made(std::move(done)));
  };
}

// Deletes what there is of a kind and adds to `rest` what is still there.
Action NamespaceController::clear_kind(const std::string& ns, const Kind& kind,
                                       const RestPtr& rest) {
  kube::Request remove;
  remove.verb = kube::Verb::kDeleteCollection;
  remove.gvr = kind.gvr();
  remove.ns = ns;
  remove.body = Value::object({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}});
  remove.body.set("propagationPolicy", "Background");
  kube::Request list;
  list.verb = kube::Verb::kList;
  list.gvr = kind.gvr();
  list.ns = ns;
  // An error of one kind keeps no other from going.
  const auto failed = [rest](const base::Error& error, const Done& done) {
    rest->errors.push_back(error.message);
    if (rest->status) rest->status = base::error(error);
    done({});
  };
  return [this, remove, list, rest, failed](const Done& done) {
    cluster_.call(list, [this, remove, list, rest, failed, done](const kube::Reply& found) {
      if (!found) return failed(found.error(), done);
      if ((*found)["items"].empty()) return done({});
      cluster_.call(remove, [this, list, rest, failed, done](const kube::Reply& removed) {
        if (!removed) return failed(removed.error(), done);
        cluster_.call(list, [list, rest, failed, done](const kube::Reply& left) {
          if (!left) return failed(left.error(), done);
          const Value& items = (*left)["items"];
          if (!items.empty()) {
            rest->by_kind[list.gvr.resource + "." + list.gvr.group] += items.size();
          }
          for (const Value& item : items.items()) {
            for (const Value& name : item["metadata"]["finalizers"].items()) {
              ++rest->by_finalizer[name.str()];
            }
          }
          done({});
        });
      });
    });
  };
}

void NamespaceController::empty(const Object& object, Done done) {
  auto rest = std::make_shared<Rest>();
  const Kind* pods = kinds_.find(kube::core_v1("pods"));
  auto next = [this, object, rest, done = std::move(done)](const base::Status&) {
    if (rest->by_kind.empty()) return empty_others(object, rest, done);
    // As long as pods run nothing that they use goes.
    rest->told = false;
    pass_done(object, rest, done);
  };
  if (pods == nullptr) return next({});
  clear_kind(std::string(object.name()), *pods, rest)(std::move(next));
}

void NamespaceController::empty_others(const Object& object, const RestPtr& rest, Done done) {
  std::vector<Action> actions;
  for (const Kind* kind : kinds_.all()) {
    const bool pods = kind->kind == "Pod" && kind->group.empty();
    if (pods || !kind->namespaced || kind->virtual_create || kind->view) continue;
    actions.push_back(clear_kind(std::string(object.name()), *kind, rest));
  }
  run_all(std::move(actions), [this, object, rest, done = std::move(done)](const base::Status&) {
    pass_done(object, rest, done);
  });
}

// Tells in the conditions how far it is; what is left is looked at again.
void NamespaceController::pass_done(const Object& object, const RestPtr& rest, Done done) {
  const Object now = namespaces_.find(object.key());
  if (!now || now.uid() != object.uid()) return done({});
  const auto text = [](std::string all, const char* opening) {
    return all.empty() ? all : opening + all;
  };
  std::ranges::sort(rest->errors);
  const std::string failures =
      rest->errors.empty() ? ""
                           : fmt::format("Failed to delete all resource types, {} remaining: {}",
                                         rest->errors.size(), fmt::join(rest->errors, ", "));
  const std::vector<Condition> conditions = {
      {"NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
       "All resources successfully discovered", "DiscoveryFailed"},
      {"NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
       "All legacy kube types successfully parsed", "GroupVersionParsingFailed"},
      {"NamespaceDeletionContentFailure", "ContentDeleted",
       "All content successfully deleted, may be waiting on finalization", "ContentDeletionFailed",
       failures},
      {"NamespaceContentRemaining", "ContentRemoved", "All content successfully removed",
       "SomeResourcesRemain",
       rest->told ? text(counted(rest->by_kind, "has"), "Some resources are remaining: ") : ""},
      {"NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
       "All content-preserving finalizers finished", "SomeFinalizersRemain",
       rest->told ? text(counted(rest->by_finalizer, "in"),
                         "Some content in the namespace has finalizers remaining: ")
                  : ""}};
  Value status = deletion_status(now["status"], conditions, cluster_.now());
  write_status(cluster_, namespaces_, now, std::move(status),
               [this, object, rest, done = std::move(done)](base::Status written) {
                 if (!rest->status) return done(rest->status);
                 if (!written) return done(std::move(written));
                 if (rest->by_kind.empty()) return finalize(object, done);
                 queue_.enqueue_after(std::string(object.name()), kLookAgain);
                 done({});
               });
}

void NamespaceController::finalize(const Object& object, Done done) {
  const Object now = namespaces_.find(object.key());
  if (!now || now.uid() != object.uid()) return done({});
  Value next = now.json();
  Value kept = Value::array();
  for (const Value& item : now.get("spec", "finalizers").items()) {
    if (item.as_string() != kFinalizer) kept.push_back(item);
  }
  if (kept.empty()) {
    next.ref("spec").erase("finalizers");
  } else {
    next.ref("spec").set("finalizers", std::move(kept));
  }
  cluster_.update(namespaces_, std::move(next), "finalize", unless_settled(std::move(done)));
}

}  // namespace tessera::apiserver::controller
