#include "apiserver/flow.h"

#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace tessera::apiserver {

struct FlowControl::State : std::enable_shared_from_this<State> {
  using Task = std::function<void(Seat)>;

  explicit State(Options from) : options(from) {}

  const Options options;
  std::mutex mutex;
  std::unordered_map<std::string, std::deque<Task>> queues;  // none is empty
  std::deque<std::string> turns;                             // each flow with a queue, once
  size_t running = 0;
  size_t waiting = 0;
  uint64_t refused = 0;

  // Looks for a task to run, once: posted for every task that comes and every seat that gets free.
  void post_look() {
    options.executor->post([self = shared_from_this()] { self->look(); });
  }
  void look();
  void leave();
};

void FlowControl::State::look() {
  Task task;
  {
    const std::lock_guard lock(mutex);
    if (running >= options.running_max || turns.empty()) return;
    std::string flow = std::move(turns.front());
    turns.pop_front();
    const auto queue = queues.find(flow);
    task = std::move(queue->second.front());
    queue->second.pop_front();
    if (queue->second.empty()) {
      queues.erase(queue);
    } else {
      turns.push_back(std::move(flow));
    }
    --waiting;
    ++running;
  }
  task(Seat(this, [self = shared_from_this()](void*) { self->leave(); }));
}

void FlowControl::State::leave() {
  bool more = false;
  {
    const std::lock_guard lock(mutex);
    --running;
    more = waiting > 0;
  }
  if (more) post_look();
}

FlowControl::FlowControl(Options options) : state_(std::make_shared<State>(options)) {
  TS_CHECK(options.executor != nullptr && options.running_max > 0);
}

FlowControl::~FlowControl() = default;

FlowControl::Load FlowControl::load() const {
  const std::lock_guard lock(state_->mutex);
  return {state_->running, state_->waiting, state_->refused};
}

base::Status FlowControl::submit(const std::string& flow, std::function<void(Seat)> task) {
  {
    const std::lock_guard lock(state_->mutex);
    const auto queue = state_->queues.find(flow);
    const size_t length = queue == state_->queues.end() ? 0 : queue->second.size();
    if (length >= state_->options.queue_max || state_->waiting >= state_->options.waiting_max) {
      ++state_->refused;
      return base::error(base::Code::kTooManyRequests,
                         "too many requests, please try again later: {} of user \"{}\" wait",
                         length, flow);
    }
    if (length == 0) state_->turns.push_back(flow);
    state_->queues[flow].push_back(std::move(task));
    ++state_->waiting;
  }
  state_->post_look();
  return {};
}

}  // namespace tessera::apiserver
