// What a DaemonSet does next to its pods, node by node, and what its status says: pure.
//
// Source:  Kubernetes 1.36 pkg/controller/daemon (daemon_controller.go, update.go, util; behaviour).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers_pods.h"
#include "kube/affinity.h"
#include "kube/taints.h"

namespace tessera::apiserver::controller {

// What a DaemonSet looks at in a node.
struct DaemonNode {
  std::string name;
  kube::StringMap labels;
  std::vector<kube::Taint> taints;
  bool operator==(const DaemonNode&) const = default;
};

struct DaemonSet {
  kube::Object object;
  int32_t min_ready_seconds = 0;
  int64_t history_limit = 10;
  bool on_delete = false;
  json::Value max_unavailable;
  json::Value max_surge;
  kube::LabelSelector selector;
  // Of its pods: where they may run.
  std::string node_name;
  kube::StringMap node_selector;
  kube::Affinity affinity;
  std::vector<kube::Toleration> tolerations;
};

// Errors: kInvalid for a selector, affinity or toleration that is none.
base::Result<DaemonSet> read_daemon_set(const kube::Object& object);

struct DaemonFit {
  bool should_run = false;  // a pod belongs there
  bool may_stay = false;    // one that runs there is left alone
};
DaemonFit fit_on_node(const DaemonSet& set, const DaemonNode& node);

// The node that the pod runs on or is meant for; empty where it is meant for none.
std::string target_node(const kube::Object& pod);

// How long a node's failed pods are left alone: a second after the first, twice as long after each further one.
class FailureBackoff {
 public:
  // Nothing: the pod may be replaced now. Otherwise the time to wait.
  std::optional<base::Duration> wait(const std::string& key, base::Time now) const;
  void count(const std::string& key, base::Time now);

 private:
  struct Entry {
    base::Duration delay;
    base::Time at;
  };
  std::map<std::string, Entry> entries_;
};
std::string failure_key(const DaemonSet& set, std::string_view node);

struct DaemonPlan {
  std::vector<std::string> create_on;  // nodes
  std::vector<kube::Object> remove;
  std::vector<kube::Object> ended;  // of `remove`, what failed or succeeded
  std::optional<base::Duration> again_after;
  bool empty() const { return create_on.empty() && remove.empty(); }
};

// `pods`: those that the set owns and selects. `hash`: of the template as it is now.
struct DaemonView {
  const DaemonSet& set;
  const std::vector<DaemonNode>& nodes;
  const std::vector<kube::Object>& pods;
  std::string_view hash;
  base::Time now;
};
// A pod where one belongs, and none elsewhere.
DaemonPlan plan_daemon_pods(const DaemonView& view, const FailureBackoff& backoff);
// Old pods make way for new ones: for when plan_daemon_pods has nothing to do.
DaemonPlan plan_daemon_rollout(const DaemonView& view);

json::Value daemon_status(const DaemonView& view);
// A pod for the node, named by the caller.
json::Value daemon_pod(const DaemonSet& set, const Kind& kind, std::string_view node,
                       std::string_view hash, std::string_view name);

}  // namespace tessera::apiserver::controller
