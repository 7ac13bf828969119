#include "cli/live_objects.h"

#include <fmt/format.h>

namespace tessera::cli {

using kube::Object;

base::Result<std::vector<Object>> LiveObjects::list(const kube::Gvr& gvr, std::string_view kind,
                                                    const std::string& ns, std::string fields) {
  std::vector<Object> out;
  std::string next;
  do {
    kube::Request request;
    request.verb = kube::Verb::kList;
    request.gvr = gvr;
    request.ns = ns;
    request.query = {{"limit", "500"}};
    if (!fields.empty()) request.query.emplace_back("fieldSelector", fields);
    if (!next.empty()) request.query.emplace_back("continue", next);
    TS_TRY(const json::Value reply, session_.call(std::move(request)));
    for (json::Value item : reply["items"].items()) {
      item.set("apiVersion", gvr.api_version());
      item.set("kind", kind);
      out.emplace_back(std::move(item));
    }
    next = reply.get("metadata", "continue").str();
  } while (!next.empty());
  return out;
}

base::Result<std::vector<Object>> LiveObjects::list(const scheduler::WatchedKind& kind,
                                                    const std::string& ns) {
  for (const std::string_view version : kind.known_versions()) {
    auto found = list(kind.gvr(version), kind.kind, ns);
    if (found || found.error().code != base::Code::kNotFound) return found;
  }
  return std::vector<Object>();
}

Object LiveObjects::find(std::string_view group, std::string_view kind, const std::string& ns,
                         std::string_view name) {
  const std::string key = fmt::format("{}/{}/{}", group, kind, ns);
  auto listed = listed_.find(key);
  if (listed == listed_.end()) {
    listed = listed_.emplace(key, ByName()).first;
    for (const scheduler::WatchedKind& watched : scheduler::watched_kinds()) {
      if (watched.group != group || watched.kind != kind) continue;
      auto all = list(watched, ns);
      if (!all) problems_.push_back(fmt::format("{}: {}", watched.name(), all.error().message));
      if (!all) continue;
      for (Object& object : *all) {
        const std::string its_name(object.name());
        listed->second.emplace(its_name, std::move(object));
      }
    }
  }
  const auto found = listed->second.find(name);
  return found == listed->second.end() ? Object() : found->second;
}

scheduler::GroupSources LiveObjects::sources() {
  scheduler::GroupSources out;
  out.object = [this](std::string_view group, std::string_view kind, std::string_view ns,
                      std::string_view name) { return find(group, kind, std::string(ns), name); };
  return out;
}

base::Result<scheduler::Snapshot> take_snapshot(Session& session, base::Time now) {
  LiveObjects live(session);
  scheduler::Snapshot out;
  out.taken = now;
  if (const auto version = session.get_path("/version"))
    out.server = (*version)["gitVersion"].str();
  TS_TRY(const auto nodes, live.list(kube::core_v1("nodes"), "Node", ""));
  TS_TRY(const auto pods, live.list(kube::core_v1("pods"), "Pod", ""));
  out.scheduler_names = scheduler::served_names(pods);
  for (const Object& node : nodes) out.add(node);
  const auto take = [&](const std::string& name, const auto& found) {
    if (!found) out.left_out.push_back(fmt::format("{}: {}", name, found.error().message));
    if (!found) return;
    for (const Object& object : *found) out.add(object);
  };
  for (const scheduler::WatchedKind& kind : scheduler::watched_kinds())
    take(kind.name(), live.list(kind, ""));
  for (const auto& [resource, kind] : {std::pair("persistentvolumeclaims", "PersistentVolumeClaim"),
                                       std::pair("persistentvolumes", "PersistentVolume")})
    take(resource, live.list(kube::core_v1(resource), kind, ""));
  take("storageclasses.storage.k8s.io",
       live.list({"storage.k8s.io", "v1", "storageclasses"}, "StorageClass", ""));
  for (const Object& pod : pods) out.add(pod);
  return out;
}

}  // namespace tessera::cli
