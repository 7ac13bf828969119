#include "scheduler/queueing/queue_tree.h"

#include <fmt/format.h>

namespace tessera::scheduler::queueing {
namespace {

std::string problem_of(const QueueSpec& spec) {
  if (!spec.problem.empty()) return spec.problem;
  if (spec.weight < 0 || spec.weight > kWeightMax)
    return fmt::format("weight {} is out of range: give 0 to {}", spec.weight, kWeightMax);
  for (const auto& [dim, amount] : spec.quota) {
    if (amount < 0) return "a quota is negative: give 0 or more";
    if (amount > spec.limit.at(dim, kUnlimited))
      return "the quota is above the limit: lower it or raise the limit";
  }
  for (const auto& [dim, amount] : spec.limit) {
    if (amount < 0) return "a limit is negative: give 0 or more, or leave it out";
  }
  if (spec.runtime_min.ns < 0) return "the minimum run time is negative: give 0 or more";
  if (spec.runtime_default && spec.runtime_default->ns <= 0)
    return "the default run time is not positive: give one, or leave it out";
  if (spec.reservations < 0) return "the number of reservations is negative: give 0 or more";
  return {};
}

}  // namespace

QueueTree QueueTree::build(std::vector<QueueSpec> specs) {
  QueueTree tree;
  tree.queues_.emplace_back();
  for (QueueSpec& spec : specs) {
    QueueId id(static_cast<int32_t>(tree.queues_.size()));
    Queue& queue = tree.queues_.emplace_back();
    queue.spec = std::move(spec);
    queue.parent = tree.root();
    queue.problem = queue.spec.name.empty() ? "a queue needs a name" : problem_of(queue.spec);
    if (!queue.spec.name.empty() && !tree.by_name_.emplace(queue.spec.name, id).second)
      queue.problem = fmt::format("a second queue is named \"{}\"", queue.spec.name);
  }
  tree.link();
  tree.close_loops();
  for (size_t i = 1; i < tree.queues_.size(); ++i) {
    Queue& queue = tree.queues_[i];
    tree.queues_[static_cast<size_t>(queue.parent.value)].children.push_back(
        QueueId(static_cast<int32_t>(i)));
  }
  std::vector<QueueId> order = {tree.root()};
  for (size_t i = 0; i < order.size(); ++i) {
    for (QueueId child : tree.at(order[i]).children) {
      Queue& queue = tree.queues_[static_cast<size_t>(child.value)];
      queue.depth = tree.at(order[i]).depth + 1;
      if (queue.problem.empty() && !tree.at(order[i]).problem.empty())
        queue.problem = fmt::format("its parent \"{}\" is closed: {}", queue.spec.parent,
                                    tree.at(order[i]).problem);
      order.push_back(child);
    }
  }
  return tree;
}

void QueueTree::link() {
  for (Queue& queue : queues_) {
    if (queue.spec.parent.empty()) continue;
    if (QueueId parent = find(queue.spec.parent); parent.valid()) {
      queue.parent = parent;
    } else if (queue.problem.empty()) {
      queue.problem = fmt::format(
          "its parent \"{}\" does not exist: create it, or leave parent out", queue.spec.parent);
    }
  }
  queues_[0].parent = QueueId();
}

// A queue that is its own ancestor hangs under the root, closed, and so does every queue on the loop.
void QueueTree::close_loops() {
  std::vector<int> seen(queues_.size(), 0);  // by the number of the walk that came by
  for (size_t start = 1; start < queues_.size(); ++start) {
    size_t at = start;
    while (at != 0 && seen[at] == 0) {
      seen[at] = static_cast<int>(start);
      at = static_cast<size_t>(queues_[at].parent.value);
    }
    if (at == 0 || seen[at] != static_cast<int>(start)) continue;
    size_t first = at;
    do {
      Queue& queue = queues_[at];
      at = static_cast<size_t>(queue.parent.value);
      queue.problem =
          fmt::format("its parents form a loop through \"{}\": give one of them another parent",
                      queue.spec.parent);
      queue.parent = root();
    } while (at != first);
  }
}

QueueId QueueTree::find(std::string_view name) const {
  auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? QueueId() : found->second;
}

std::pair<QueueId, QueueId> QueueTree::fork(QueueId a, QueueId b) const {
  while (at(a).depth > at(b).depth) a = at(a).parent;
  while (at(b).depth > at(a).depth) b = at(b).parent;
  while (at(a).parent != at(b).parent) {
    a = at(a).parent;
    b = at(b).parent;
  }
  return {a, b};
}

}  // namespace tessera::scheduler::queueing
