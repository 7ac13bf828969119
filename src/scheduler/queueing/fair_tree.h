// Fair Tree: who, by what all have used so far, is next. A whole branch that used less than its share goes before every
// user of one that used more.
//
// Shape:   nodes with shares and usage; leaves that are users get a rank from 1.0 (next) down in steps of 1/users. Level
//          fairness of a node = (its part of its siblings' shares) / (its part of their usage): infinite without usage, 0
//          without shares. Siblings of equal fairness: users tie, accounts have their children merged before going down, and a
//          user tied with an account takes the rank of that account's best user.
// Units:   shares and usage in any unit, not negative.
// Source:  Slurm's Fair Tree (its documentation and a lab with slurmctld 22.05.8, the values of which the test holds).
#pragma once

#include <cstddef>
#include <vector>

namespace tessera::scheduler::queueing {

struct FairNode {
  int parent = -1;  // index, lower than the node's own; -1: under the root
  double shares = 1;
  double usage = 0;  // of an account: of all under it
  bool user = false;
};

struct FairRank {
  double shares_norm = 0;  // of its siblings
  double usage_norm = 0;
  double level = 0;  // infinity where nothing was used
  double rank = 0;   // users only: 1.0 is next
};

std::vector<FairRank> fair_tree(const std::vector<FairNode>& nodes);

}  // namespace tessera::scheduler::queueing
