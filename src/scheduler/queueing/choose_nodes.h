// Which nodes a reservation holds, and what of each.
//
// Shape:   by resource, GPUs first: what it held before stays where it is free in time; then whole nodes as long as one is
//          asked for, the largest first; then the node that fits best; then busy nodes, those held before first. With GPUs
//          their part of the node's cores and memory is held, unless the reservation names an amount of its own.
// Units:   as in amounts.h.
// Errors:  phase and reason say what cannot be held.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/queueing/engine.h"

namespace tessera::scheduler::queueing {

class ChooseNodes {
 public:
  ChooseNodes(Engine& engine, base::Time now) : engine_(engine), now_(now) {}
  // All of the engine's reservations, those that hold nodes already first.
  void run();

 private:
  // By node: all that there is, what is left by reservations of the same time, and what of that is free in time.
  struct Space {
    core::NodeId node{};
    std::string_view name{};
    bool open = false;
    int64_t all = 0;
    int64_t left = 0;
    int64_t idle = 0;
    int64_t before = 0;  // held by the reservation until now
    bool known = false;  // its status names the node
    int64_t taken = 0;
  };
  struct Busy {
    Room room{};
    uint32_t devices = 0;
  };

  void choose(Reservation& reservation);
  bool settled_by_time(Reservation& reservation) const;
  std::map<core::NodeId, Busy> busy_for(const Reservation& reservation) const;
  std::map<core::NodeId, Room> reserved_beside(const Reservation& reservation) const;
  int64_t hold(Reservation& reservation, Dim dim, int64_t need);
  std::vector<Space> spaces(const Reservation& reservation, Dim dim) const;
  int64_t amount_in(const Room& room, Dim dim) const;
  int64_t total_of(const core::NodeSpec& spec, Dim dim) const;
  void put(Reservation& reservation, Dim dim, const std::vector<Space>& spaces) const;
  void add_shares_of_nodes(Reservation& reservation) const;
  std::string short_of(const Reservation& reservation, Dim dim, int64_t asked) const;

  Engine& engine_;
  base::Time now_;
  std::vector<const Reservation*> done_;
  // Of the reservation at hand:
  std::map<core::NodeId, Room> before_;
  std::map<core::NodeId, Busy> busy_;
  std::map<core::NodeId, Room> beside_;
  int64_t blocked_ = 0;
  Dim blocked_dim_ = 0;
};

}  // namespace tessera::scheduler::queueing
