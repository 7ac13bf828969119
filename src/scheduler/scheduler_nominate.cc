// While those who have to make room are leaving, status.nominatedNodeName says where a pod will go, as kube-scheduler does it:
// autoscalers and people read it. It is taken back when the claim falls; a bind ends it by itself.

#include "scheduler/scheduler_state.h"

namespace tessera::scheduler {

using json::Value;

void Scheduler::State::nominate() {
  for (auto at = claiming.begin(); at != claiming.end();) {
    const auto group = model.groups().find(*at);
    const bool claims = group != model.groups().end() && nominate_in(group->second);
    at = claims ? std::next(at) : claiming.erase(at);
  }
}

// Whether the place of any of its pods is kept.
bool Scheduler::State::nominate_in(const GroupEntry& group) {
  bool claims = false;
  for (const auto& [arrival, slot] : group.pods) {
    const PodEntry& pod = model.pod_at(slot);
    const std::string node(model.claimed_node(pod));
    claims |= !node.empty();
    const auto said = nominated.find(pod.object.key());
    if ((said == nominated.end() ? std::string() : said->second) == node) continue;
    if (node.empty()) nominated.erase(said);
    if (!node.empty()) nominated[pod.object.key()] = node;
    if (waits(&pod)) write_nomination(pod, node);
  }
  return claims;
}

void Scheduler::State::write_nomination(const PodEntry& pod, const std::string& node) {
  kube::Request request = pod_status_patch(
      pod.object, kube::PatchType::kMerge,
      Value::object({{"nominatedNodeName", node.empty() ? Value() : Value(node)}}));
  client.call(std::move(request), [weak = weak_from_this(), key = pod.object.key(), uid = pod.uid,
                                   group = pod.group, node](const kube::Reply& reply) {
    auto self = weak.lock();
    const PodEntry* again = self && !reply ? self->model.find(key) : nullptr;
    if (again == nullptr || again->uid != uid) return;
    if (reply.error().code == base::Code::kForbidden) return;
    // To be written again with the next cycle.
    self->claiming.insert(group);
    if (node.empty()) self->nominated[key] = "?";
    if (!node.empty()) self->nominated.erase(key);
  });
}

}  // namespace tessera::scheduler
