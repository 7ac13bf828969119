#include "http/exchange.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace tessera::http {

Exchange::Exchange(Framing framing, size_t backlog_max, std::function<void()> wake)
    : framing_(framing), backlog_max_(backlog_max), wake_(std::move(wake)) {}

void Exchange::wake_once() {
  if (woken_) return;
  woken_ = true;
  wake_();
}

void Exchange::send(Response response) {
  std::vector<std::function<void()>> dropped;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) return;
  state_ = State::kDone;
  response_ = std::move(response);
  dropped.swap(callbacks_);
  wake_once();
}

void Exchange::begin_stream(int status, std::string content_type, Headers headers) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) return;
  state_ = State::kStreaming;
  stream_head_ = Response{status, std::move(headers), {}, std::move(content_type)};
  wake_once();
}

bool Exchange::write(std::string chunk) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStreaming || cut_) return false;
  if (chunk.empty() || framing_.head_only) return true;
  const size_t backlog = unsent_ + pending_.size();
  if (backlog > 0 && backlog + chunk.size() > backlog_max_) {
    cut_ = true;
    pending_ = {};
    wake_once();
    return false;
  }
  if (framing_.chunked) fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", chunk.size());
  pending_ += chunk;
  if (framing_.chunked) pending_ += "\r\n";
  wake_once();
  return true;
}

void Exchange::end_stream() {
  std::vector<std::function<void()>> dropped;
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStreaming || cut_) return;
  state_ = State::kDone;
  if (framing_.chunked && !framing_.head_only) pending_ += "0\r\n\r\n";
  dropped.swap(callbacks_);
  wake_once();
}

void Exchange::on_closed(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kDone) return;
    if (state_ != State::kGone) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

void Exchange::abandon() {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kStreaming) {
      cut_ = true;
      wake_once();
    }
    if (state_ != State::kOpen) return;
  }
  send({500, {}, "the request was dropped without an answer\n", "text/plain"});
}

Exchange::Output Exchange::take() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  Output out;
  out.response = std::exchange(response_, std::nullopt);
  out.stream_head = std::exchange(stream_head_, std::nullopt);
  out.bytes = std::exchange(pending_, {});
  unsent_ += out.bytes.size();
  out.ended = state_ == State::kDone;
  out.cut = cut_;
  return out;
}

void Exchange::set_unsent(size_t bytes) {
  const std::lock_guard lock(mutex_);
  unsent_ = bytes;
}

bool Exchange::streaming() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kStreaming;
}

void Exchange::close() {
  std::vector<std::function<void()>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kDone || state_ == State::kGone) return;
    state_ = State::kGone;
    pending_ = {};
    callbacks.swap(callbacks_);
  }
  for (auto& callback : callbacks) callback();
}

}  // namespace tessera::http
