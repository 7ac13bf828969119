// What reservations hold in one cluster, as pods that stand for it: there nobody else fits.
//
// Shape:   put() adds, on each held node, what the queue's own jobs do not use of it yet; lift() takes those away, in a Txn,
//          that are open to a gang's queue while it is tried; settle() puts them back in the size that is left. Whoever uses a
//          reservation counts for it wherever on the node it stands, so others have what is neither held nor used beyond it.
// Threads: one. A copy goes with a copy of its cluster.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "scheduler/core/cluster.h"
#include "scheduler/core/txn.h"
#include "scheduler/queueing/reservation.h"

namespace tessera::scheduler::queueing {

class Engine;

class Kept {
 public:
  using InForce = std::function<bool(const Reservation&)>;

  Kept() = default;
  // Those of the engine's reservations that are in force; nobody uses them yet.
  Kept(const Engine& engine, const InForce& in_force);

  bool empty() const { return nodes_.empty(); }
  // Who stands in the cluster: the engine's members, by their place.
  void count(const Engine& engine, const core::Cluster& cluster);
  void use(QueueId leaf, core::NodeId node, const Room& room, int sign);

  void put(core::Cluster& cluster);
  void take_out(core::Cluster& cluster);
  // Takes those away that are open to the queue, or those that are not.
  void lift(core::Txn& txn, QueueId leaf) const;
  void lift_others(core::Txn& txn, QueueId leaf) const;
  // After a Txn in which they were lifted has been kept.
  void settle(core::Cluster& cluster, QueueId leaf);

  // What is held there for the queue and not used yet.
  Room left(core::NodeId node, QueueId leaf) const;
  bool open_on(core::NodeId node, QueueId leaf) const;
  bool opens_any(QueueId leaf) const;
  // The name of one that keeps a queue's jobs off the node; empty where none does.
  std::string closed_by(core::NodeId node, QueueId leaf) const;
  // More is held there for others than is free.
  bool overfull(core::NodeId node, QueueId leaf) const;
  // One whose place is kept for its queue is not evicted for somebody who could not use it.
  bool guards(core::NodeId node, QueueId victim, QueueId taker) const;

 private:
  struct Hold {
    size_t at = 0;  // in names_ and open_
    int32_t depth = 0;
    Room room{};
  };
  struct Here {
    std::vector<Hold> holds{};  // the deepest queue first
    std::map<QueueId, Room> used{};
    std::vector<std::pair<size_t, core::PodId>> pods{};
    std::vector<std::pair<size_t, Room>> left{};
    bool overfull = false;
  };

  bool open(size_t at, QueueId leaf) const {
    return leaf.valid() && open_[at][static_cast<size_t>(leaf.value)];
  }
  const Here* here(core::NodeId node) const;
  void put_on(core::Cluster& cluster, core::NodeId node, Here& here);
  void stand_in(core::Cluster& cluster, core::NodeId node, Here& here, size_t at, const Room& room);

  std::vector<std::string> names_;
  std::vector<std::vector<bool>> open_;  // by reservation and queue
  std::map<core::NodeId, Here> nodes_;
};

}  // namespace tessera::scheduler::queueing
