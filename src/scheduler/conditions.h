// The conditions of a status being written: changed in place, with those of others left as they are.
//
// Shape:   the time of a condition moves only with its status. A message that differs by its numbers alone is not worth a
//          write of its own: "0/24 nodes are available" stays until something else changes.
// Threads: plain functions.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "json/value.h"

namespace tessera::scheduler {

struct Condition {
  std::string type{};
  std::string status{};  // "True" or "False"
  std::string reason{};
  std::string message{};
  bool exact = false;  // the numbers of the message are worth a write
};

// True where both are the same but for digits.
bool same_but_for_numbers(std::string_view a, std::string_view b);

// The condition of that type in status.conditions, or null.
const json::Value& condition_of(const json::Value& status, std::string_view type);

// Makes it so in `status` and returns true, unless it says so already. `transition_ids`: with Volcano's transitionID, here the
// number of its transitions.
bool set_condition(json::Value& status, const Condition& condition, base::Time now,
                   bool transition_ids = false);

// The status subresource's merge patch, or nothing where `wanted` is what is there.
json::Value status_patch(const json::Value& before, const json::Value& wanted);

}  // namespace tessera::scheduler
