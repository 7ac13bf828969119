#include "apiserver/controller_endpoints.h"

#include <algorithm>
#include <utility>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

bool selects(const kube::StringMap& selector, const Object& pod) {
  return std::ranges::all_of(selector, [&](const auto& pair) {
    const Value* value = pod.metadata()["labels"].find(pair.first);
    return value != nullptr && value->as_string() == pair.second;
  });
}

bool is_backend(const Object& pod) {
  return !pod.get("status", "podIP").as_string().empty() && !is_finished(pod);
}

std::string service_of(const Object& slice) {
  if (slice.label(kSliceOwner) != kSliceController) return {};
  return std::string(slice.label(kServiceName));
}

Done unless_taken(Done done) {
  return [done = std::move(done)](base::Status status) {
    // The object is read anew by then; a change of it comes round again.
    if (!status && is_namespace_terminating(status.error())) return done({});
    done(std::move(status));
  };
}

}  // namespace

EndpointsController::EndpointsController(Cluster& cluster)
    : cluster_(cluster),
      services_(cluster.cache("", "Service")),
      pods_(cluster.cache("", "Pod")),
      nodes_(cluster.cache("", "Node")),
      slices_(cluster.cache("discovery.k8s.io", "EndpointSlice")),
      endpoints_(cluster.cache("", "Endpoints")),
      queue_(cluster, "endpoints",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  services_.subscribe(
      [this](const Object& before, const Object& after) { on_service(before, after); });
  pods_.subscribe([this](const Object& before, const Object& after) { on_pod(before, after); });
  slices_.subscribe([this](const Object& before, const Object& after) { on_slice(before, after); });
  endpoints_.subscribe([this](const Object& before, const Object& after) {
    const std::string key = (after ? after : before).key();
    if (leads_to_pods(services_.find(key))) queue_.enqueue(key);
  });
}

void EndpointsController::start() {
  queue_.enqueue_all(services_);
  for (const auto& [key, slice] : slices_.objects()) on_slice({}, slice);
}

void EndpointsController::on_service(const Object& before, const Object& after) {
  const Object& any = after ? after : before;
  const std::string name(any.name());
  ByName& names = selected_[std::string(any.ns())];
  if (!after || !leads_to_pods(after)) {
    names.erase(name);
    if (names.empty()) selected_.erase(std::string(any.ns()));
  } else {
    Selected& selected = names[name];
    kube::StringMap selector;
    for (const json::Member& pair : after.get("spec", "selector").members()) {
      selector.emplace(pair.name(), pair.value.as_string());
    }
    if (selected.selector != selector) {
      selected.selector = std::move(selector);
      select(after, selected);
    }
  }
  queue_.enqueue(any.key());
}

void EndpointsController::select(const Object& service, Selected& selected) {
  selected.pods.clear();
  const std::string prefix = std::string(service.ns()) + "/";
  const auto& all = pods_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    if (selects(selected.selector, it->second)) selected.pods.insert(it->first);
  }
}

void EndpointsController::on_pod(const Object& before, const Object& after) {
  const Object& any = after ? after : before;
  const auto names = selected_.find(any.ns());
  if (names == selected_.end()) return;
  const std::string key = any.key();
  for (auto& [name, selected] : names->second) {
    const bool was = selected.pods.contains(key);
    const bool is = after && selects(selected.selector, after);
    if (is && !was) selected.pods.insert(key);
    if (was && !is) selected.pods.erase(key);
    if (is || was) queue_.enqueue(fmt::format("{}/{}", any.ns(), name));
  }
}

void EndpointsController::on_slice(const Object& before, const Object& after) {
  const Object& any = after ? after : before;
  const std::string service = service_of(any);
  if (!service.empty()) queue_.enqueue(fmt::format("{}/{}", any.ns(), service));
}

std::vector<Backend> EndpointsController::backends_of(const Object& service) const {
  std::vector<Backend> out;
  const auto names = selected_.find(service.ns());
  if (names == selected_.end()) return out;
  const auto selected = names->second.find(service.name());
  if (selected == names->second.end()) return out;
  for (const std::string& key : selected->second.pods) {
    Object pod = pods_.find(key);
    if (!pod || !is_backend(pod)) continue;
    const Object node = nodes_.find(pod.get("spec", "nodeName").as_string());
    std::string zone(node.label("topology.kubernetes.io/zone"));
    out.push_back({std::move(pod), std::move(zone)});
  }
  return out;
}

std::vector<Object> EndpointsController::slices_of(const Object& service) const {
  std::vector<Object> out;
  const std::string prefix = std::string(service.ns()) + "/";
  const auto& all = slices_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    if (service_of(it->second) == service.name() && !it->second.deleting()) {
      out.push_back(it->second);
    }
  }
  return out;
}

// The slices go with their owner; the Endpoints have none.
void EndpointsController::sync_gone(const std::string& key, Done done) {
  const Object left = endpoints_.find(key);
  if (!left || left.label("endpoints.kubernetes.io/managed-by") != "endpoint-controller") {
    return done({});
  }
  cluster_.remove(endpoints_, left, {}, std::move(done));
}

void EndpointsController::sync(const std::string& key, Done done) {
  const Object service = services_.find(key);
  if (!service) return sync_gone(key, std::move(done));
  if (service.deleting()) return done({});
  std::vector<Action> actions;
  if (!leads_to_pods(service)) {
    for (const Object& slice : slices_of(service)) {
      actions.push_back(
          [this, slice](Done each) { cluster_.remove(slices_, slice, {}, std::move(each)); });
    }
    return run_all(std::move(actions), std::move(done));
  }
  const std::vector<Backend> backends = backends_of(service);
  SlicePlan plan = plan_slices(service, backends, slices_of(service), cluster_.random());
  const auto write = [&](Cache& cache, Value object, bool create) {
    actions.push_back([this, &cache, object = std::move(object), create](Done each) {
      auto result = as_status(unless_gone(unless_taken(std::move(each))));
      if (create) return cluster_.create(cache, object, std::move(result));
      cluster_.update(cache, object, {}, std::move(result));
    });
  };
  for (Value& slice : plan.create) write(slices_, std::move(slice), true);
  for (Value& slice : plan.update) write(slices_, std::move(slice), false);
  for (const Object& slice : plan.remove) {
    actions.push_back(
        [this, slice](Done each) { cluster_.remove(slices_, slice, {}, std::move(each)); });
  }
  const Object before = endpoints_.find(key);
  Value endpoints = plan_endpoints(service, backends, before);
  if (!endpoints.is_null()) write(endpoints_, std::move(endpoints), !before);
  run_all(std::move(actions), std::move(done));
}

}  // namespace tessera::apiserver::controller
