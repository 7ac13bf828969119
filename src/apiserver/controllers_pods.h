// Pods as their controllers see them: who owns them, in what state they are, which go first; and new ones from a template.
//
// Threads: OwnerIndex on the controllers' executor; the rest is pure.
// Source:  Kubernetes 1.36 pkg/controller/controller_utils.go (order of deletion, readiness).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/controllers_cluster.h"
#include "kube/labels.h"

namespace tessera::apiserver::controller {

// The owner that manages the object; null without one.
const json::Value& controller_of(const kube::Object& object);
json::Value controller_reference(const kube::Object& owner, const Kind& kind);

bool is_finished(const kube::Object& pod);
// Neither finished nor on its way out.
bool is_active(const kube::Object& pod);
bool is_ready(const kube::Object& pod);
// When the pod became ready; nothing where it is not.
std::optional<base::Time> ready_since(const kube::Object& pod);
bool is_available(const kube::Object& pod, int32_t min_ready_seconds, base::Time now);
bool has_finalizer(const kube::Object& object, std::string_view finalizer);
const json::Value& condition_of(const json::Value& status, std::string_view type);
// Replaces the condition of the same type, or adds it; lastTransitionTime moves only where the status does.
void set_condition(json::Value& status, json::Value condition, base::Time now);
json::Value without_condition(const json::Value& status, std::string_view type);

// Those to delete first stand first.
void sort_for_deletion(std::vector<kube::Object>& pods);

// A pod of the template, named "<owner>-<suffix>", or as told.
json::Value pod_of_template(const json::Value& pod_template, const kube::Object& owner,
                            const Kind& owner_kind, std::string_view name);
json::Value pod_from_template(const json::Value& pod_template, const kube::Object& owner,
                              const Kind& owner_kind, base::Random& random);
// "<base>-<suffix>", the base cut so that the whole is a valid name.
std::string generated_name(std::string_view base, base::Random& random);

// Which pods (or other objects) belong to whom, without looking at all of them.
class OwnerIndex {
 public:
  explicit OwnerIndex(Cache& pods);
  std::vector<kube::Object> of_owner(std::string_view uid) const;
  // Those without a controller.
  std::vector<kube::Object> orphans(std::string_view ns) const;
  std::vector<kube::Object> on_node(std::string_view node) const;

 private:
  using Keys = std::set<std::string>;
  using Groups = std::unordered_map<std::string, Keys>;
  void change(const kube::Object& pod, bool add);
  std::vector<kube::Object> resolve(const Groups& groups, std::string_view name) const;

  Cache& pods_;
  Groups by_owner_;
  Groups orphans_;
  Groups by_node_;
};

}  // namespace tessera::apiserver::controller
