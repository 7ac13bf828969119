#include "apiserver/front_metrics.h"

#include <algorithm>

#include "apiserver/audit.h"
#include "apiserver/flow.h"
#include "apiserver/store.h"

namespace tessera::apiserver {
namespace {

std::string_view verb_label(const Operation& operation, const http::Request& request) {
  static constexpr std::pair<std::string_view, std::string_view> kVerbs[] = {
      {"get", "GET"},    {"list", "LIST"},   {"watch", "WATCH"},   {"create", "POST"},
      {"update", "PUT"}, {"patch", "PATCH"}, {"delete", "DELETE"}, {"deletecollection", "DELETE"}};
  const std::string& sub = operation.request.subresource;
  if (sub == "log" || sub == "exec" || sub == "attach" || sub == "portforward") return "CONNECT";
  if (operation.verb == "patch" &&
      request.header("content-type").starts_with("application/apply-patch")) {
    return "APPLY";
  }
  for (const auto& [verb, label] : kVerbs) {
    if (verb == operation.verb) return label;
  }
  return "";
}

std::string_view scope_label(const kube::Request& request) {
  if (!request.name.empty() || request.verb == kube::Verb::kCreate) return "resource";
  return request.ns.empty() ? "cluster" : "namespace";
}

void add_objects(MetricText& text, const Api& api) {
  const auto counts = api.object_counts();
  text.family("apiserver_resource_objects", "gauge", "Stored objects of each kind.");
  for (const auto& [kind, count] : counts) {
    text.value({{"group", kind->group}, {"resource", kind->plural}}, static_cast<double>(count));
  }
  text.family("apiserver_storage_objects", "gauge",
              "The same, with resource and group in one label.");
  for (const auto& [kind, count] : counts) {
    text.value({{"resource", resource_name(*kind)}}, static_cast<double>(count));
  }
}

void add_flow(MetricText& text, const FlowControl& flow) {
  const FlowControl::Load load = flow.load();
  const MetricLabels labels = {{"flow_schema", "users"}, {"priority_level", "users"}};
  text.family("apiserver_flowcontrol_current_executing_requests", "gauge",
              "Requests that hold a seat.");
  text.value(labels, static_cast<double>(load.running));
  text.family("apiserver_flowcontrol_current_inqueue_requests", "gauge",
              "Requests that wait for their turn.");
  text.value(labels, static_cast<double>(load.waiting));
  text.family("apiserver_flowcontrol_rejected_requests_total", "counter",
              "Requests refused because a queue was full.");
  MetricLabels why = labels;
  why.emplace_back("reason", "queue-full");
  text.value(why, static_cast<double>(load.refused));
}

}  // namespace

RequestLabels request_labels(const Operation& operation, const http::Request& request) {
  RequestLabels out;
  out.verb = verb_label(operation, request);
  out.group = operation.request.gvr.group;
  out.version = operation.request.gvr.version;
  out.resource = operation.request.gvr.resource;
  out.subresource = operation.request.subresource;
  out.scope = scope_label(operation.request);
  if (operation.request.option("dryRun") == "All") out.dry_run = "All";
  return out;
}

std::string path_label(std::span<const std::string> segments) {
  static constexpr std::array<std::string_view, 8> kKnown = {
      "api", "apis", "healthz", "livez", "metrics", "openapi", "readyz", "version"};
  const bool known = !segments.empty() && std::ranges::find(kKnown, segments[0]) != kKnown.end();
  return known ? "/" + segments[0] : std::string();
}

std::string api_metrics(const Api& api, const AuditLog* audit, const FlowControl* flow) {
  MetricText text;
  add_objects(text, api);
  if (flow != nullptr) add_flow(text, *flow);
  if (audit != nullptr) {
    text.family("tessera_audit_events_lost_total", "counter",
                "Events that did not get into the audit log.");
    text.value({}, static_cast<double>(audit->lost()));
  }
  text.family("tessera_storage_revision", "counter", "The revision of the newest durable change.");
  text.value({}, static_cast<double>(api.revision()));
  add_process_metrics(text);
  return text.take();
}

}  // namespace tessera::apiserver
