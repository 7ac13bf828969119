// Removes Events past their time.
//
// Shape:   a timer that runs while there are Events.
// Threads: the executor only.
#pragma once

#include <memory>

#include "apiserver/api_core.h"
#include "apiserver/store.h"

namespace tessera::apiserver {

class EventExpiry : public std::enable_shared_from_this<EventExpiry> {
 public:
  explicit EventExpiry(std::weak_ptr<Core> core) : core_(std::move(core)) {}
  void on_change(const Store::Change& change);
  void arm();

 private:
  void sweep();

  std::weak_ptr<Core> core_;
  bool armed_ = false;
};

}  // namespace tessera::apiserver
