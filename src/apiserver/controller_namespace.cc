#include "apiserver/controller_namespace.h"

#include <utility>
#include <vector>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr base::Duration kLookAgain = base::seconds(2);
constexpr std::string_view kFinalizer = "kubernetes";

// Gone or there already: nothing left to do.
ObjectDone unless_settled(Done done) {
  return [done = std::move(done)](base::Result<Object> result) {
    const bool fine = result || result.error().code == base::Code::kNotFound ||
                      result.error().code == base::Code::kAlreadyExists;
    done(fine ? base::Status() : base::Status(base::error(result.error())));
  };
}

}  // namespace

NamespaceController::NamespaceController(Cluster& cluster, const Kinds& kinds)
    : cluster_(cluster),
      kinds_(kinds),
      namespaces_(cluster.cache("", "Namespace")),
      accounts_(cluster.cache("", "ServiceAccount")),
      queue_(cluster, "namespace",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  namespaces_.subscribe([this](const Object&, const Object& after) {
    if (after) queue_.enqueue(after.key());
  });
  accounts_.subscribe([this](const Object& before, const Object& after) {
    if (!after && before.name() == "default") queue_.enqueue(std::string(before.ns()));
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
  if (!object.deleting()) return ensure_account(name, std::move(done));
  if (object.get("spec", "finalizers").empty()) return done({});
  empty(object, std::move(done));
}

void NamespaceController::ensure_account(const std::string& name, Done done) {
  if (accounts_.find(name + "/default")) return done({});
  Value account = Value::object({{"apiVersion", "v1"}, {"kind", "ServiceAccount"}});
  account.set("metadata", Value::object({{"name", "default"}, {"namespace", name}}));
  cluster_.create(accounts_, std::move(account),
                  [done = std::move(done)](const base::Result<Object>& made) {
                    if (!made && is_namespace_terminating(made.error())) return done({});
                    unless_settled(done)(made);
                  });
}

// Deletes what there is of a kind and adds to `left` what is still there.
Action NamespaceController::clear_kind(const std::string& ns, const Kind& kind,
                                       const std::shared_ptr<size_t>& left) {
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
  return [this, remove, list, left](const Done& done) {
    cluster_.call(list, [this, remove, list, left, done](const kube::Reply& found) {
      if (!found) return done(base::error(found.error()));
      if ((*found)["items"].empty()) return done({});
      cluster_.call(remove, [this, list, left, done](const kube::Reply& removed) {
        if (!removed) return done(base::error(removed.error()));
        cluster_.call(list, [left, done](const kube::Reply& rest) {
          if (!rest) return done(base::error(rest.error()));
          *left += (*rest)["items"].size();
          done({});
        });
      });
    });
  };
}

void NamespaceController::empty(const Object& object, Done done) {
  const std::string name(object.name());
  auto left = std::make_shared<size_t>(0);
  std::vector<Action> actions;
  for (const Kind* kind : kinds_.all()) {
    if (kind->namespaced && !kind->virtual_create && !kind->view)
      actions.push_back(clear_kind(name, *kind, left));
  }
  run_all(std::move(actions),
          [this, object, name, left, done = std::move(done)](base::Status status) {
            if (!status) return done(std::move(status));
            if (*left == 0) return finalize(object, done);
            queue_.enqueue_after(name, kLookAgain);
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
