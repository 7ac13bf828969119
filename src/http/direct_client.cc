#include "http/direct_client.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <thread>
#include <vector>

#include "http/direct_lane.h"
#include "http/event_loop.h"
#include "http/openssl_ptr.h"

namespace tessera::http {
namespace {

using base::Code;

bool same_name(std::string_view a, std::string_view lower) {
  return std::ranges::equal(a, lower, [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  });
}

// The request as it goes over the wire.
std::string bytes_of(const ClientRequest& request, const Address& address) {
  std::string out;
  out.reserve(512 + request.body.size());
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tessera\r\n", request.method,
                 address.prefix, request.target, address.authority);
  bool accept = false;
  for (const auto& [name, value] : request.headers) {
    accept = accept || same_name(name, "accept");
    fmt::format_to(to, "{}: {}\r\n", name, value);
  }
  if (!accept) out += "Accept: */*\r\n";
  if (sends_body(request)) fmt::format_to(to, "Content-Length: {}\r\n", request.body.size());
  out += "\r\n";
  out += request.body;
  return out;
}

}  // namespace

// Everything belongs to the loop's thread but `alive` and what says otherwise.
struct DirectClient::Impl : std::enable_shared_from_this<DirectClient::Impl> {
  Impl(const ClientOptions& o, base::Executor& e)
      : options(o), executor(e), address(*address_of(o.base_url)) {}

  void start();
  void close_all();
  void submit(std::unique_ptr<DirectExchange> exchange);
  void pump();
  void open_lane(std::unique_ptr<DirectExchange> exchange);
  void finished(DirectLane& lane, std::unique_ptr<DirectExchange> exchange,
                base::Result<Response> result, bool reusable);
  void deliver(DirectExchange& exchange, std::string chunk);
  void answer(DirectExchange& exchange, base::Result<Response> result);
  void forget(const DirectLane& lane);
  void cancel(uint64_t id);
  void resume(uint64_t id);
  void tick();

  const ClientOptions options;
  base::Executor& executor;
  const Address address;
  std::shared_ptr<std::atomic<bool>> alive = std::make_shared<std::atomic<bool>>(true);
  std::atomic<uint64_t> next_id = 1;
  base::Status ready;  // of TLS and the loop
  SslContextPtr context;
  DirectLane::Hooks hooks;
  std::unique_ptr<EventLoop> loop = std::make_unique<EventLoop>();

  std::deque<std::unique_ptr<DirectExchange>> waiting;  // calls beyond connections_max
  std::vector<std::shared_ptr<DirectLane>> lanes;       // all that are open
  std::vector<DirectLane*> idle;                        // the last one used is the next
  int active_calls = 0;
  bool pumping = false;
};

void DirectClient::Impl::start() {
  if (address.tls) {
    auto made =
        make_client_context(options.ca_pem, options.certificate_pem, options.private_key_pem);
    if (made) {
      context = std::move(*made);
    } else {
      ready = tl::unexpected(std::move(made).error());
    }
  }
  hooks.finished = [this](DirectLane& lane, std::unique_ptr<DirectExchange> exchange,
                          base::Result<Response> result, bool reusable) {
    finished(lane, std::move(exchange), std::move(result), reusable);
  };
  hooks.stale = [this](DirectLane& lane, std::unique_ptr<DirectExchange> exchange) {
    forget(lane);
    exchange->again = true;
    open_lane(std::move(exchange));
  };
  hooks.chunk = [this](DirectExchange& exchange, std::string chunk) {
    deliver(exchange, std::move(chunk));
    return exchange.stream->queued_bytes <= kStreamQueueMax;
  };
  hooks.closed = [this](DirectLane& lane) { forget(lane); };
  const base::Duration shortest = std::min(options.request_timeout, options.connect_timeout);
  loop->every(base::millis(std::clamp<int64_t>(shortest.millis() / 4, 20, 1000)),
              [this] { tick(); });
  if (auto status = loop->start("http-direct"); !status) ready = std::move(status);
}

void DirectClient::Impl::close_all() {
  waiting.clear();
  idle.clear();
  for (const auto& lane : lanes) lane->close();
  lanes.clear();
}

void DirectClient::Impl::submit(std::unique_ptr<DirectExchange> exchange) {
  auto good = ready ? check_request(exchange->request) : ready;
  if (!good) return answer(*exchange, tl::unexpected(std::move(good).error()));
  exchange->bytes = bytes_of(exchange->request, address);
  if (exchange->stream) return open_lane(std::move(exchange));
  waiting.push_back(std::move(exchange));
  pump();
}

// A lane that fails at once brings us here again from inside: one loop serves both.
void DirectClient::Impl::pump() {
  if (std::exchange(pumping, true)) return;
  while (!waiting.empty() && active_calls < std::max(1, options.connections_max)) {
    std::unique_ptr<DirectExchange> exchange = std::move(waiting.front());
    waiting.pop_front();
    ++active_calls;
    exchange->deadline = loop->now() + options.request_timeout;
    if (idle.empty()) {
      open_lane(std::move(exchange));
      continue;
    }
    DirectLane* lane = idle.back();
    idle.pop_back();
    lane->begin(std::move(exchange));
  }
  pumping = false;
}

void DirectClient::Impl::open_lane(std::unique_ptr<DirectExchange> exchange) {
  if (exchange->stream && exchange->stream->dropped) return;
  lanes.push_back(std::make_shared<DirectLane>(*loop, address, options, context.get(), hooks));
  const std::shared_ptr<DirectLane> lane = lanes.back();
  lane->open(std::move(exchange));
}

void DirectClient::Impl::finished(DirectLane& lane, std::unique_ptr<DirectExchange> exchange,
                                  base::Result<Response> result, bool reusable) {
  if (reusable) {
    idle.push_back(&lane);
  } else {
    forget(lane);
  }
  active_calls -= exchange->stream ? 0 : 1;
  answer(*exchange, std::move(result));
  pump();
}

void DirectClient::Impl::answer(DirectExchange& exchange, base::Result<Response> result) {
  if (!*alive) return;
  if (!exchange.stream) {
    executor.post(
        [alive = alive, done = std::move(exchange.done), r = std::move(result)]() mutable {
          if (*alive) done(std::move(r));
        });
    return;
  }
  executor.post(
      [alive = alive, stream = exchange.stream, status = stream_end(std::move(result))]() mutable {
        if (*alive && !stream->dropped) stream->on_close(std::move(status));
      });
}

void DirectClient::Impl::deliver(DirectExchange& exchange, std::string chunk) {
  if (!*alive) return;
  const auto& stream = exchange.stream;
  stream->queued_bytes += chunk.size();
  executor.post([weak = weak_from_this(), alive = alive, stream, id = exchange.id,
                 chunk = std::move(chunk)]() mutable {
    const size_t size = chunk.size();
    if (*alive && !stream->dropped) stream->on_chunk(std::move(chunk));
    const size_t before = stream->queued_bytes.fetch_sub(size);
    if (before <= kResumeBelow || before - size > kResumeBelow || !*alive) return;
    if (const auto self = weak.lock()) {
      self->loop->post([raw = self.get(), id] { raw->resume(id); });
    }
  });
}

void DirectClient::Impl::forget(const DirectLane& lane) {
  std::erase(idle, &lane);
  std::erase_if(lanes, [&](const auto& one) { return one.get() == &lane; });
}

void DirectClient::Impl::resume(uint64_t id) {
  const auto held = lanes;  // a lane may go meanwhile
  for (const auto& lane : held) {
    if (lane->exchange() != nullptr && lane->exchange()->id == id) lane->resume();
  }
}

void DirectClient::Impl::cancel(uint64_t id) {
  for (const auto& lane : lanes) {
    if (lane->exchange() == nullptr || lane->exchange()->id != id) continue;
    const std::shared_ptr<DirectLane> kept = lane;
    kept->close();
    forget(*kept);
    return;
  }
}

void DirectClient::Impl::tick() {
  const auto all = lanes;  // those that fail go
  for (const auto& lane : all) lane->look_at(loop->now());
}

namespace {

class DirectSubscription : public base::Subscription {
 public:
  DirectSubscription(std::shared_ptr<StreamState> state, std::function<void()> cancel)
      : state_(std::move(state)), cancel_(std::move(cancel)) {}
  ~DirectSubscription() override {
    state_->dropped = true;
    cancel_();
  }
  DirectSubscription(const DirectSubscription&) = delete;
  DirectSubscription& operator=(const DirectSubscription&) = delete;

 private:
  std::shared_ptr<StreamState> state_;
  std::function<void()> cancel_;
};

}  // namespace

bool DirectClient::serves(const ClientOptions& options) {
  return address_of(options.base_url).has_value() &&
         (!options.proxy || is_loopback(options.base_url));
}

DirectClient::DirectClient(const ClientOptions& options, base::Executor& executor)
    : impl_(std::make_shared<Impl>(options, executor)) {
  impl_->start();
}

DirectClient::~DirectClient() {
  *impl_->alive = false;
  if (impl_->loop->here()) {  // the last owner was a callback that the loop itself dropped
    impl_->close_all();
    std::thread([impl = impl_] { impl->loop->stop(); }).detach();
    return;
  }
  impl_->loop->post([raw = impl_.get()] { raw->close_all(); });
  impl_->loop->stop();
}

void DirectClient::call(ClientRequest request, std::function<void(base::Result<Response>)> done) {
  auto exchange =
      std::make_shared<std::unique_ptr<DirectExchange>>(std::make_unique<DirectExchange>());
  (*exchange)->id = impl_->next_id++;
  (*exchange)->request = std::move(request);
  (*exchange)->done = std::move(done);
  impl_->loop->post([raw = impl_.get(), exchange] { raw->submit(std::move(*exchange)); });
}

std::unique_ptr<base::Subscription> DirectClient::stream(
    ClientRequest request, std::function<void(std::string)> on_chunk,
    std::function<void(base::Status)> on_close) {
  auto exchange =
      std::make_shared<std::unique_ptr<DirectExchange>>(std::make_unique<DirectExchange>());
  DirectExchange& e = **exchange;
  const uint64_t id = impl_->next_id++;
  e.id = id;
  e.request = std::move(request);
  e.stream = std::make_shared<StreamState>();
  e.stream->on_chunk = std::move(on_chunk);
  e.stream->on_close = std::move(on_close);
  const std::shared_ptr<StreamState> state = e.stream;
  impl_->loop->post([raw = impl_.get(), exchange] { raw->submit(std::move(*exchange)); });
  return std::make_unique<DirectSubscription>(state, [weak = std::weak_ptr<Impl>(impl_), id] {
    if (const auto impl = weak.lock()) {
      impl->loop->post([raw = impl.get(), id] { raw->cancel(id); });
    }
  });
}

}  // namespace tessera::http
