// Bytes on their way to a socket: small pieces are joined (one TLS record each is dear), large ones
// are kept as they are.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace tessera::http {

class OutQueue {
 public:
  bool empty() const { return bytes_ == 0; }
  size_t bytes() const { return bytes_; }

  void push(std::string part) {
    if (part.empty()) return;
    bytes_ += part.size();
    if (!parts_.empty() && parts_.back().size() + part.size() <= kJoinMax) {
      parts_.back() += part;
    } else {
      parts_.push_back(std::move(part));
    }
  }

  // The bytes that go next; not to be called on an empty queue.
  std::string_view front() const { return std::string_view(parts_.front()).substr(offset_); }

  void pop(size_t count) {
    bytes_ -= count;
    offset_ += count;
    if (offset_ < parts_.front().size()) return;
    parts_.pop_front();
    offset_ = 0;
    if (parts_.empty()) parts_ = {};
  }

 private:
  static constexpr size_t kJoinMax = 16 << 10;  // one TLS record

  std::deque<std::string> parts_;
  size_t offset_ = 0;
  size_t bytes_ = 0;
};

}  // namespace tessera::http
