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

}  // namespace tessera::cli
