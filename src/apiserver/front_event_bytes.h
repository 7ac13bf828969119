// Watch events as bytes, made once for all watchers that want the same form.
//
// Shape:   a ring of the newest events; an event is told by its type and by the identity of its
//          object, which all watchers share. Beyond the ring an event is serialised again, nothing
//          else.
// Threads: any.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "apiserver/front_watch.h"

namespace tessera::apiserver {

class EventBytes {
 public:
  // `definitions`: whether a Table names its columns (the first event of a stream).
  std::shared_ptr<const std::string> encode(const kube::WatchEvent& event, const WatchForm& form,
                                            bool definitions, base::Time now);
  // How often a ring entry was used again: for tests.
  size_t shared_count() const;

 private:
  struct Entry {
    kube::WatchEvent::Type type = kube::WatchEvent::Type::kError;
    WatchForm form;
    bool definitions = false;
    json::Value object;
    std::shared_ptr<const std::string> bytes;
  };
  std::shared_ptr<const std::string> find(const Entry& wanted);

  mutable std::mutex mutex_;
  std::array<Entry, 64> ring_;
  size_t next_ = 0;
  size_t shared_count_ = 0;
};

}  // namespace tessera::apiserver
