// A small kinds table for tests of the HTTP front.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

inline const Kinds& test_kinds() {
  static const Kinds& shared = *[] {
    auto* kinds = new Kinds();
    Kinds& out = *kinds;
    Kind ns{.kind = "Namespace", .plural = "namespaces", .singular = "namespace"};
    ns.namespaced = false;
    ns.status_subresource = true;
    ns.short_names = {"ns"};
    out.add(ns);
    Kind node{.kind = "Node", .plural = "nodes", .singular = "node"};
    node.namespaced = false;
    node.status_subresource = true;
    node.short_names = {"no"};
    out.add(node);
    Kind pod{.kind = "Pod", .plural = "pods", .singular = "pod"};
    pod.status_subresource = true;
    pod.short_names = {"po"};
    pod.categories = {"all"};
    pod.subresources = {"binding", "eviction"};
    const auto name = [](const kube::Object& o, base::Time) { return json::Value(o.name()); };
    const auto phase = [](const kube::Object& o, base::Time) { return o.get("status", "phase"); };
    const auto host = [](const kube::Object& o, base::Time) { return o.get("spec", "nodeName"); };
    pod.columns = {{"Name", "string", "name", 0, name},
                   {"Status", "string", "", 0, phase},
                   {"Node", "string", "", 1, host}};
    out.add(pod);
    Kind config_map{.kind = "ConfigMap", .plural = "configmaps", .singular = "configmap"};
    config_map.short_names = {"cm"};
    out.add(config_map);
    Kind deployment{
        .group = "apps", .kind = "Deployment", .plural = "deployments", .singular = "deployment"};
    deployment.status_subresource = true;
    deployment.subresources = {"scale"};
    out.add(deployment);
    return kinds;
  }();
  return shared;
}

}  // namespace tessera::apiserver
