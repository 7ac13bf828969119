#include "scheduler/queueing/kept.h"

#include <algorithm>

#include "scheduler/queueing/engine.h"

namespace tessera::scheduler::queueing {
namespace {

// Healthy devices, those with most left first; as many as are asked or there are.
uint32_t emptiest(const core::NodeLoad& load, uint32_t unhealthy, int64_t count, uint32_t without) {
  uint32_t chosen = 0;
  for (; count > 0; --count) {
    int best = -1;
    for (int device = 0; device < load.gpus; ++device) {
      if (((chosen | without | unhealthy) >> device & 1) != 0) continue;
      if (best < 0 ||
          load.gpu_free[static_cast<size_t>(device)] > load.gpu_free[static_cast<size_t>(best)])
        best = device;
    }
    if (best < 0) break;
    chosen |= uint32_t{1} << best;
  }
  return chosen;
}

bool has(const core::NodeLoad& load, uint32_t devices, int32_t milli) {
  for (int device = 0; device < load.gpus; ++device) {
    if ((devices >> device & 1) != 0 && load.gpu_free[static_cast<size_t>(device)] < milli)
      return false;
  }
  return true;
}

}  // namespace

Kept::Kept(const Engine& engine, const InForce& in_force) {
  const QueueTree& tree = engine.queues();
  for (const Reservation& reservation : engine.reservations()) {
    if (!reservation.queue.valid() || !in_force(reservation)) continue;
    const size_t at = names_.size();
    names_.push_back(reservation.spec.name);
    open_.emplace_back(tree.size(), false);
    for (size_t q = 0; q < tree.size(); ++q)
      tree.each_up(QueueId(static_cast<int32_t>(q)), [&](QueueId up) {
        if (up == reservation.queue) open_[at][q] = true;
      });
    const int32_t depth = tree.at(reservation.queue).depth;
    for (const auto& [node, room] : reservation.held) {
      if (engine.cluster().present(node)) nodes_[node].holds.push_back({at, depth, room});
    }
  }
  for (auto& [node, here] : nodes_)
    std::stable_sort(here.holds.begin(), here.holds.end(),
                     [](const Hold& a, const Hold& b) { return a.depth > b.depth; });
}

const Kept::Here* Kept::here(core::NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

void Kept::count(const Engine& engine, const core::Cluster& cluster) {
  for (auto& [node, here] : nodes_) {
    here.used.clear();
    for (const core::PodId pod : cluster.pods_on(node)) {
      const MemberId id = engine.member_on(pod);
      if (!id.valid()) continue;
      const Member& member = engine.member(id);
      const QueueId leaf = engine.gang(member.gang).leaf;
      if (leaf.valid())
        here.used[leaf].add(room_of(member.spec.request->shape, cluster.load(node)), 1);
    }
  }
}

void Kept::use(QueueId leaf, core::NodeId node, const Room& room, int sign) {
  const auto found = nodes_.find(node);
  if (found != nodes_.end() && leaf.valid()) found->second.used[leaf].add(room, sign);
}

void Kept::stand_in(core::Cluster& cluster, core::NodeId node, Here& here, size_t at,
                    const Room& room) {
  const core::NodeSpec& spec = cluster.spec(node);
  auto add = [&](core::PodRequest request, uint32_t devices, int32_t milli) {
    here.overfull |= !has(cluster.load(node), devices, milli);
    here.pods.emplace_back(
        at, cluster.add_pod(std::make_shared<const core::PodRequest>(std::move(request)),
                            core::Placement{node, devices, milli}));
  };
  core::PodRequest whole;
  whole.shape.cpu_milli = room.cpu_milli;
  whole.shape.memory_bytes = room.memory_bytes;
  for (const auto& [id, amount] : room.extended) {
    if (amount == 0) continue;
    whole.shape.extended.push_back({id, amount});
    here.overfull |= cluster.extended_free(node, id) < amount;
  }
  here.overfull |= cluster.load(node).cpu_free < room.cpu_milli ||
                   cluster.load(node).memory_free < room.memory_bytes;
  const int64_t count = room.gpu_milli / core::kMilliPerGpu;
  const uint32_t devices = emptiest(cluster.load(node), spec.gpus_unhealthy, count, 0);
  here.overfull |= __builtin_popcount(devices) < count;
  whole.shape.gpu.count = __builtin_popcount(devices);
  add(std::move(whole), devices, devices != 0 ? core::kMilliPerGpu : 0);
  const auto part = static_cast<int32_t>(room.gpu_milli % core::kMilliPerGpu);
  if (part == 0) return;
  const uint32_t device = emptiest(cluster.load(node), spec.gpus_unhealthy, 1, devices);
  if (device == 0) return;
  core::PodRequest share;
  share.shape.gpu.count = 1;
  share.shape.gpu.milli = part;
  add(std::move(share), device, part);
}

void Kept::put_on(core::Cluster& cluster, core::NodeId node, Here& here) {
  here.overfull = false;
  here.left.clear();
  std::map<QueueId, Room> used = here.used;
  for (const Hold& hold : here.holds) {
    Room left = hold.room;
    for (auto& [leaf, room] : used) {
      if (open(hold.at, leaf)) left.cancel(room);
    }
    if (left.empty()) continue;
    stand_in(cluster, node, here, hold.at, left);
    here.left.emplace_back(hold.at, std::move(left));
  }
}

void Kept::put(core::Cluster& cluster) {
  for (auto& [node, here] : nodes_) put_on(cluster, node, here);
}

void Kept::take_out(core::Cluster& cluster) {
  for (auto& [node, here] : nodes_) {
    for (const auto& [at, pod] : here.pods) cluster.remove_pod(pod);
    here.pods.clear();
  }
}

void Kept::lift(core::Txn& txn, QueueId leaf) const {
  for (const auto& [node, here] : nodes_) {
    for (const auto& [at, pod] : here.pods) {
      if (open(at, leaf)) txn.evict(pod);
    }
  }
}

void Kept::lift_others(core::Txn& txn, QueueId leaf) const {
  for (const auto& [node, here] : nodes_) {
    for (const auto& [at, pod] : here.pods) {
      if (!open(at, leaf)) txn.evict(pod);
    }
  }
}

void Kept::settle(core::Cluster& cluster, QueueId leaf) {
  for (auto& [node, here] : nodes_) {
    for (const auto& [at, pod] : here.pods) {
      if (!open(at, leaf)) cluster.remove_pod(pod);
    }
    here.pods.clear();
    put_on(cluster, node, here);
  }
}

Room Kept::left(core::NodeId node, QueueId leaf) const {
  Room out;
  const Here* at = here(node);
  if (at == nullptr) return out;
  for (const auto& [hold, room] : at->left) {
    if (open(hold, leaf)) out.add(room, 1);
  }
  return out;
}

bool Kept::open_on(core::NodeId node, QueueId leaf) const {
  const Here* at = here(node);
  return at != nullptr && std::any_of(at->holds.begin(), at->holds.end(),
                                      [&](const Hold& hold) { return open(hold.at, leaf); });
}

bool Kept::opens_any(QueueId leaf) const {
  for (size_t at = 0; at < names_.size(); ++at) {
    if (open(at, leaf)) return true;
  }
  return false;
}

std::string Kept::closed_by(core::NodeId node, QueueId leaf) const {
  const Here* at = here(node);
  if (at == nullptr) return {};
  for (const auto& [hold, pod] : at->pods) {
    if (!open(hold, leaf)) return names_[hold];
  }
  return {};
}

bool Kept::overfull(core::NodeId node, QueueId leaf) const {
  const Here* at = here(node);
  return at != nullptr && at->overfull && !closed_by(node, leaf).empty();
}

bool Kept::guards(core::NodeId node, QueueId victim, QueueId taker) const {
  const Here* at = here(node);
  return at != nullptr && std::any_of(at->holds.begin(), at->holds.end(), [&](const Hold& hold) {
           return open(hold.at, victim) && !open(hold.at, taker);
         });
}

}  // namespace tessera::scheduler::queueing
