#include "http/client.h"

#include <pthread.h>
#include <signal.h>

#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "http/bearer_token.h"
#include "http/direct_client.h"
#include "http/transfer.h"

namespace tessera::http {
namespace {

// curl_global_init is not safe beside other threads of older libraries: once, before the first
// client.
void init_curl() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)done;
}

}  // namespace

// Everything but the queue belongs to the thread. Tasks posted to the executor hold `alive`, and do
// nothing once the Client is gone.
struct Client::Impl : std::enable_shared_from_this<Client::Impl> {
  Impl(ClientOptions o, base::Executor& e) : options(std::move(o)), executor(e) {}
  ~Impl() {
    waiting.clear();
    for (auto& [handle, transfer] : active) curl_multi_remove_handle(multi, handle);
    active.clear();
    spare.clear();
    curl_multi_cleanup(multi);
    curl_share_cleanup(share);
  }

  void run();
  void enqueue(std::function<void()> command);
  void submit(std::unique_ptr<Transfer> transfer);
  void start_waiting();
  void keep_connections();
  HandlePtr take_handle();
  void start(std::unique_ptr<Transfer> transfer);
  void take_finished();
  void finish(Transfer& transfer, base::Result<Response> result);
  void cancel(uint64_t id);
  void resume(uint64_t id);
  void deliver(const std::shared_ptr<StreamState>& stream, uint64_t id, std::string chunk);

  const ClientOptions options;
  base::Executor& executor;
  std::shared_ptr<std::atomic<bool>> alive = std::make_shared<std::atomic<bool>>(true);
  CURLM* multi = nullptr;
  CURLSH* share = nullptr;  // TLS sessions; needs no locks, only this thread uses it
  std::thread thread;

  std::mutex mutex;
  std::vector<std::function<void()>> commands;  // guarded by mutex, as the two below
  bool stopping = false;
  uint64_t next_id = 1;

  std::deque<std::unique_ptr<Transfer>> waiting;  // calls beyond connections_max
  std::unordered_map<CURL*, std::unique_ptr<Transfer>> active;
  std::vector<HandlePtr> spare;  // of calls that are over: never more than were at work at once
  int active_calls = 0;
  int active_streams = 0;
};

void Client::Impl::enqueue(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex);
    if (stopping) return;
    commands.push_back(std::move(command));
  }
  curl_multi_wakeup(multi);
}

void Client::Impl::run() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);  // OpenSSL writes without MSG_NOSIGNAL
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  while (true) {
    std::vector<std::function<void()>> batch;
    {
      const std::lock_guard lock(mutex);
      if (stopping) break;
      batch.swap(commands);
    }
    for (auto& command : batch) command();
    int running = 0;
    curl_multi_perform(multi, &running);
    take_finished();
    curl_multi_poll(multi, nullptr, 0, 60'000, nullptr);  // or sooner, for its own timers
  }
}

void Client::Impl::submit(std::unique_ptr<Transfer> transfer) {
  if (transfer->stream) {
    start(std::move(transfer));
  } else {
    waiting.push_back(std::move(transfer));
    start_waiting();
  }
}

// libcurl counts connections in use with those that it keeps for the next call: were streams left out, every call would
// begin with a new TLS handshake.
void Client::Impl::keep_connections() {
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS,
                    static_cast<long>(std::max(1, options.connections_max) + active_streams));
}

HandlePtr Client::Impl::take_handle() {
  HandlePtr handle;
  if (spare.empty()) {
    handle = make_handle(options);
    if (handle) curl_easy_setopt(handle.get(), CURLOPT_SHARE, share);
  } else {
    handle = std::move(spare.back());
    spare.pop_back();
  }
  return handle;
}

void Client::Impl::start_waiting() {
  while (!waiting.empty() && active_calls < std::max(1, options.connections_max)) {
    std::unique_ptr<Transfer> transfer = std::move(waiting.front());
    waiting.pop_front();
    start(std::move(transfer));
  }
}

void Client::Impl::start(std::unique_ptr<Transfer> transfer) {
  if (transfer->stream && transfer->stream->dropped) return;
  transfer->handle = take_handle();
  if (auto ready = prepare(*transfer, options); !ready) {
    finish(*transfer, tl::unexpected(std::move(ready).error()));
    return;
  }
  CURL* handle = transfer->handle.get();
  const bool stream = transfer->stream != nullptr;
  active_calls += stream ? 0 : 1;
  active_streams += stream ? 1 : 0;
  if (stream) keep_connections();
  active.emplace(handle, std::move(transfer));
  curl_multi_add_handle(multi, handle);
}

void Client::Impl::take_finished() {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    const auto found = active.find(message->easy_handle);
    if (found == active.end()) continue;
    const std::unique_ptr<Transfer> transfer = std::move(found->second);
    active.erase(found);
    curl_multi_remove_handle(multi, transfer->handle.get());
    active_calls -= transfer->stream ? 0 : 1;
    active_streams -= transfer->stream ? 1 : 0;
    finish(*transfer, outcome(*transfer, code, options));
    // A handle is dear to make and set up; those of calls serve again.
    if (!transfer->stream) spare.push_back(std::move(transfer->handle));
  }
  start_waiting();
}

void Client::Impl::finish(Transfer& transfer, base::Result<Response> result) {
  if (!transfer.stream) {
    executor.post(
        [alive = alive, done = std::move(transfer.done), r = std::move(result)]() mutable {
          if (*alive) done(std::move(r));
        });
    return;
  }
  base::Status status = stream_end(std::move(result));
  executor.post([alive = alive, stream = transfer.stream, status = std::move(status)]() mutable {
    if (*alive && !stream->dropped) stream->on_close(std::move(status));
  });
}

void Client::Impl::deliver(const std::shared_ptr<StreamState>& stream, uint64_t id,
                           std::string chunk) {
  stream->queued_bytes += chunk.size();
  executor.post(
      [weak = weak_from_this(), alive = alive, stream, id, chunk = std::move(chunk)]() mutable {
        const size_t size = chunk.size();
        if (*alive && !stream->dropped) stream->on_chunk(std::move(chunk));
        const size_t before = stream->queued_bytes.fetch_sub(size);
        if (before <= kResumeBelow || before - size > kResumeBelow) return;
        if (const auto self = weak.lock())
          self->enqueue([raw = self.get(), id] { raw->resume(id); });
      });
}

void Client::Impl::resume(uint64_t id) {
  for (auto& [handle, transfer] : active) {
    if (transfer->id != id || !transfer->paused) continue;
    transfer->paused = false;
    curl_easy_pause(handle, CURLPAUSE_CONT);
    return;
  }
}

void Client::Impl::cancel(uint64_t id) {
  for (auto it = active.begin(); it != active.end(); ++it) {
    if (it->second->id != id) continue;
    curl_multi_remove_handle(multi, it->first);
    active.erase(it);
    --active_streams;
    return;
  }
}

namespace {

class StreamSubscription : public base::Subscription {
 public:
  StreamSubscription(std::shared_ptr<StreamState> state, std::function<void()> cancel)
      : state_(std::move(state)), cancel_(std::move(cancel)) {}
  ~StreamSubscription() override {
    state_->dropped = true;
    cancel_();
  }
  StreamSubscription(const StreamSubscription&) = delete;
  StreamSubscription& operator=(const StreamSubscription&) = delete;

 private:
  std::shared_ptr<StreamState> state_;
  std::function<void()> cancel_;
};

}  // namespace

Client::Client(ClientOptions options, base::Executor& executor) {
  while (!options.base_url.empty() && options.base_url.back() == '/') options.base_url.pop_back();
  token_ = std::make_unique<BearerToken>(options);
  if (DirectClient::serves(options)) {
    direct_ = std::make_unique<DirectClient>(options, executor);
    return;
  }
  init_curl();
  impl_ = std::make_shared<Impl>(std::move(options), executor);
  impl_->multi = curl_multi_init();
  impl_->share = curl_share_init();
  curl_share_setopt(impl_->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  impl_->keep_connections();
  impl_->thread = std::thread([impl = impl_] { impl->run(); });
  pthread_setname_np(impl_->thread.native_handle(), "http-client");
}

Client::~Client() {
  if (!impl_) return;
  *impl_->alive = false;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  curl_multi_wakeup(impl_->multi);
  if (impl_->thread.get_id() == std::this_thread::get_id()) {
    impl_->thread.detach();  // the last owner was a callback that the thread itself dropped
  } else {
    impl_->thread.join();
  }
}

void Client::call(ClientRequest request, std::function<void(base::Result<Response>)> done) {
  token_->sign(request);
  if (direct_) return direct_->call(std::move(request), std::move(done));
  auto transfer = std::make_shared<std::unique_ptr<Transfer>>(std::make_unique<Transfer>());
  (*transfer)->request = std::move(request);
  (*transfer)->done = std::move(done);
  impl_->enqueue([raw = impl_.get(), transfer] { raw->submit(std::move(*transfer)); });
}

std::unique_ptr<base::Subscription> Client::stream(ClientRequest request,
                                                   std::function<void(std::string)> on_chunk,
                                                   std::function<void(base::Status)> on_close) {
  token_->sign(request);
  if (direct_) {
    return direct_->stream(std::move(request), std::move(on_chunk), std::move(on_close));
  }
  const auto state = std::make_shared<StreamState>();
  state->on_chunk = std::move(on_chunk);
  state->on_close = std::move(on_close);
  auto transfer = std::make_shared<std::unique_ptr<Transfer>>(std::make_unique<Transfer>());
  Transfer& t = **transfer;
  t.request = std::move(request);
  t.stream = state;
  {
    const std::lock_guard lock(impl_->mutex);
    t.id = impl_->next_id++;
  }
  t.deliver = [raw = impl_.get(), state, id = t.id](std::string chunk) {
    raw->deliver(state, id, std::move(chunk));
  };
  const uint64_t id = t.id;
  impl_->enqueue([raw = impl_.get(), transfer] { raw->submit(std::move(*transfer)); });
  return std::make_unique<StreamSubscription>(state, [weak = std::weak_ptr<Impl>(impl_), id] {
    if (const auto impl = weak.lock()) impl->enqueue([raw = impl.get(), id] { raw->cancel(id); });
  });
}

}  // namespace tessera::http
