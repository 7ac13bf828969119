// From Kubernetes' rules about nodes and other pods to the core's: the part of translate.h that is about labels.
#pragma once

#include "base/result.h"
#include "kube/pod.h"
#include "scheduler/core/request.h"

namespace tessera::scheduler {

core::Labels translate_labels(const kube::StringMap& labels, core::Interner& names);
std::vector<core::NodeTerm> translate_node_terms(const std::vector<kube::NodeSelectorTerm>& terms,
                                                 core::Interner& names);
core::Taint translate_taint(const kube::Taint& taint, core::Interner& names);
// Node selector, affinity, tolerations, affinity between pods, topology spread.
base::Status translate_rules(const kube::Pod& pod, core::PodRequest& request,
                             core::Interner& names);

}  // namespace tessera::scheduler
