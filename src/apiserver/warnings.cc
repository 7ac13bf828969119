#include "apiserver/warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "apiserver/crd_definition.h"
#include "apiserver/crd_schema.h"
#include "apiserver/crd_structural.h"
#include "apiserver/validate_meta.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// A kind that has a template of pods, and where it stands.
struct Templated {
  std::string_view group;
  std::string_view kind;
  std::string_view path;
  bool name_in_hostnames;
};

constexpr std::array<Templated, 8> kTemplated = {
    {{"apps", "Deployment", "spec.template", true},
     {"apps", "ReplicaSet", "spec.template", true},
     {"apps", "StatefulSet", "spec.template", false},
     {"apps", "DaemonSet", "spec.template", false},
     {"", "ReplicationController", "spec.template", true},
     {"", "PodTemplate", "template", false},
     {"batch", "Job", "spec.template", true},
     {"batch", "CronJob", "spec.jobTemplate.spec.template", true}}};

const Value& at_path(const Value& object, std::string_view path) {
  const Value* at = &object;
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    at = &(*at)[path.substr(0, dot)];
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return *at;
}

void warn_of_name(const Value& object, std::string_view where, std::vector<std::string>& out) {
  const auto reasons = kube::check_dns1123_label(object["metadata"]["name"].as_string());
  if (reasons.empty()) return;
  out.push_back(fmt::format(
      "metadata.name: this is used in {}, which can result in surprising behavior; a DNS label is "
      "recommended: [{}]",
      where, fmt::join(reasons, " ")));
}

void warn_of_service(const Value& service, std::vector<std::string>& out) {
  const Value& spec = service["spec"];
  const bool external = spec["type"].as_string() == "ExternalName";
  const bool headless =
      spec["type"].as_string() == "ClusterIP" && spec["clusterIP"].as_string() == "None";
  constexpr const char* kHints = "service.kubernetes.io/topology-aware-hints";
  if (service["metadata"]["annotations"].contains(kHints)) {
    out.push_back(fmt::format(
        "annotation {} is deprecated, please use service.kubernetes.io/topology-mode instead",
        kHints));
  }
  if (headless) {
    if (!spec["loadBalancerIP"].as_string().empty()) {
      out.emplace_back("spec.loadBalancerIP is ignored for headless services");
    }
    if (!spec["externalIPs"].empty()) {
      out.emplace_back("spec.externalIPs is ignored for headless services");
    }
    if (spec["sessionAffinity"].as_string() != "None") {
      out.emplace_back("spec.SessionAffinity is ignored for headless services");
    }
  }
  if (!spec["externalIPs"].empty()) {
    if (!headless && !external) {
      out.emplace_back(
          "spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    if (external) {
      out.emplace_back("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
  }
  if (!external && !spec["externalName"].as_string().empty()) {
    out.emplace_back("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  }
  if (spec["trafficDistribution"].as_string() == "PreferClose") {
    out.emplace_back(
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
  }
}

void warn_of_volume(const Value& volume, std::vector<std::string>& out) {
  const Value& spec = volume["spec"];
  const Value& annotations = volume["metadata"]["annotations"];
  if (annotations.contains("volume.beta.kubernetes.io/storage-class")) {
    out.emplace_back(
        "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "
        "\"storageClassName\" attribute instead");
  }
  if (spec["persistentVolumeReclaimPolicy"].as_string() == "Recycle") {
    out.emplace_back(
        "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, "
        "the recommended approach is to use dynamic provisioning.");
  }
}

void warn_of_ingress(const Value& ingress, std::vector<std::string>& out) {
  constexpr const char* kClass = "kubernetes.io/ingress.class";
  if (ingress["metadata"]["annotations"].contains(kClass) &&
      ingress["spec"]["ingressClassName"].is_null()) {
    out.push_back(fmt::format(
        "annotation \"{}\" is deprecated, please use 'spec.ingressClassName' instead", kClass));
  }
}

void warn_of_templates(const Kind& kind, const Value& object, bool create,
                       std::vector<std::string>& out) {
  for (const Templated& each : kTemplated) {
    if (each.group != kind.group || each.kind != kind.kind) continue;
    if (create && each.name_in_hostnames) warn_of_name(object, "Pod names and hostnames", out);
    warn_of_pod(at_path(object, each.path), each.path, out);
  }
}

// Names of formats that nobody heeds, as often as they stand there.
std::vector<std::string> unknown_formats(const Value& definition) {
  std::vector<std::string> out;
  for (const Value& version : definition["spec"]["versions"].items()) {
    any_schema(version["schema"]["openAPIV3Schema"], [&out](const Value& schema) {
      const std::string_view format = schema["format"].as_string();
      if (!format.empty() && !is_known_format(schema["type"].as_string(), format)) {
        out.emplace_back(format);
      }
      return false;
    });
    // What all versions share stands once for the whole definition.
    if (share_schema(definition)) break;
  }
  return out;
}

bool has(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

void warn_of_definition(const Value& definition, const Value& before,
                        std::vector<std::string>& out) {
  const std::vector<std::string> old = unknown_formats(before);
  for (const std::string& format : unknown_formats(definition)) {
    if (!has(old, format)) out.push_back(fmt::format("unrecognized format \"{}\"", format));
  }
}

void warn_of_finalizers(const Value& object, const Value& before, std::vector<std::string>& out) {
  const Value& old = before["metadata"]["finalizers"];
  std::vector<std::string> added;
  for (const Value& name : object["metadata"]["finalizers"].items()) {
    const auto had = old.items();
    if (std::ranges::find(had, name) == had.end() && !has(added, name.as_string())) {
      added.push_back(name.str());
    }
  }
  std::ranges::sort(added);
  for (const std::string& name : added) {
    if (is_full_finalizer(name)) continue;
    const char* with = name.find('.') == name.npos ? "" : " including a path (/)";
    out.push_back(
        fmt::format("metadata.finalizers: \"{}\": prefer a domain-qualified finalizer "
                    "name{} to avoid accidental conflicts with other finalizer writers",
                    name, with));
  }
}

}  // namespace

std::vector<std::string> warnings_of(const Kind& kind, const Value& object, const Value& before) {
  std::vector<std::string> out;
  const bool create = before.is_null();
  if (kind.custom != nullptr) {
    warn_of_finalizers(object, before, out);
    return out;
  }
  // People do not update pods, and what an object was already told of is not told again.
  const bool same = !create && kind.has_generation &&
                    object["metadata"]["generation"] == before["metadata"]["generation"];
  if (same) return out;
  if (kind.group.empty() && kind.kind == "Pod") {
    if (!create) return out;
    warn_of_name(object, "the Pod's hostname", out);
    warn_of_pod(object, "", out);
    return out;
  }
  if (kind.group == "apiextensions.k8s.io") warn_of_definition(object, before, out);
  warn_of_templates(kind, object, create, out);
  if (kind.group.empty() && kind.kind == "Service") warn_of_service(object, out);
  if (kind.group.empty() && kind.kind == "PersistentVolume") warn_of_volume(object, out);
  if (create && kind.group == "networking.k8s.io" && kind.kind == "Ingress") {
    warn_of_ingress(object, out);
  }
  return out;
}

}  // namespace tessera::apiserver
