#include "http/direct_lane.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>

namespace tessera::http {
namespace {

using base::Code;
using Kind = IoResult::Kind;

constexpr size_t kScratch = size_t{64} << 10;
constexpr size_t kRefusedBodyMax = size_t{1} << 20;  // of a stream

bool take_port(std::string_view text, uint16_t& port) {
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), port);
  return bad == std::errc() && end == text.data() + text.size() && port != 0;
}

void set_flags(int fd) {
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 20);
}

}  // namespace

std::optional<Address> address_of(const std::string& base_url) {
  Address out;
  std::string_view rest = base_url;
  out.tls = rest.starts_with("https://");
  if (!out.tls && !rest.starts_with("http://")) return {};
  rest.remove_prefix(out.tls ? 8 : 7);
  const size_t slash = std::min(rest.find('/'), rest.size());
  out.authority = std::string(rest.substr(0, slash));
  out.prefix = std::string(rest.substr(slash));
  std::string_view host = out.authority;
  std::string_view port_text;
  const bool ipv6 = host.starts_with('[');
  const size_t colon = ipv6 ? host.find("]:") : host.find(':');
  if (colon != host.npos) {
    port_text = host.substr(colon + (ipv6 ? 2 : 1));
    host = host.substr(0, colon + (ipv6 ? 1 : 0));
  }
  uint16_t port = out.tls ? 443 : 80;
  if (!port_text.empty() && !take_port(port_text, port)) return {};
  if (ipv6) {
    if (!host.ends_with(']')) return {};
    out.text = std::string(host.substr(1, host.size() - 2));
    out.socket.sin6_family = AF_INET6;
    out.socket.sin6_port = htons(port);
    out.size = sizeof(sockaddr_in6);
    if (::inet_pton(AF_INET6, out.text.c_str(), &out.socket.sin6_addr) != 1) return {};
    return out;
  }
  out.text = std::string(host);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (::inet_pton(AF_INET, out.text.c_str(), &v4.sin_addr) != 1) return {};
  std::memcpy(&out.socket, &v4, sizeof v4);
  out.size = sizeof v4;
  return out;
}

void DirectLane::open(std::unique_ptr<DirectExchange> exchange) {
  exchange_ = std::move(exchange);
  fd_ = ::socket(address_.socket.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return fail(Code::kUnavailable, std::strerror(errno));
  set_flags(fd_);
  transport_ = address_.tls ? make_tls_client_transport(fd_, context_, address_.text)
                            : make_plain_transport(fd_);
  if (!transport_) {
    ::close(fd_);
    fd_ = -1;
    return fail(Code::kInternal, "cannot make a TLS session");
  }
  step_ = Step::kConnecting;
  connect_by_ = loop_.now() + options_.connect_timeout;
  const auto* where = reinterpret_cast<const sockaddr*>(&address_.socket);
  const int rc = ::connect(fd_, where, address_.size);
  if (rc != 0 && errno != EINPROGRESS) {
    return fail(Code::kUnavailable, fmt::format("cannot connect: {}", std::strerror(errno)),
                " (is the server running, and is this its address?)");
  }
  if (!loop_.add(fd_, shared_from_this(), false, true)) {
    fail(Code::kUnavailable, "cannot watch the connection");
  }
}

void DirectLane::begin(std::unique_ptr<DirectExchange> exchange) {
  exchange_ = std::move(exchange);
  kept_ = true;
  sent_ = 0;
  reader_.reset();
  step_ = Step::kSending;
  advance({});
}

void DirectLane::resume() {
  if (!held_ || step_ != Step::kReading) return;
  held_ = false;
  want(true, false);
  advance({.readable = true});  // TLS may hold bytes that the socket no longer shows
}

void DirectLane::close() {
  if (fd_ < 0) return;
  loop_.remove(fd_);
  fd_ = -1;
  if (step_ > Step::kHandshake) transport_->shut_write();
  step_ = Step::kClosed;
  transport_.reset();  // closes the descriptor
}

void DirectLane::look_at(base::Duration now) {
  if (!exchange_) return;
  const bool connecting = step_ == Step::kConnecting || step_ == Step::kHandshake;
  if (connecting && now >= connect_by_) {
    return fail(Code::kTimeout,
                fmt::format("not connected after {} ms", options_.connect_timeout.millis()));
  }
  if (!exchange_->stream && now >= exchange_->deadline) {
    fail(Code::kTimeout, fmt::format("no answer after {} ms", options_.request_timeout.millis()));
  }
}

void DirectLane::on_ready(Ready ready) {
  const auto self = shared_from_this();  // the hooks may let go of it
  if (step_ == Step::kIdle) {
    char byte = 0;
    if (transport_->read(&byte, 1).kind == Kind::kWantRead) return;  // TLS spoke for itself
    close();
    return hooks_.closed(*this);
  }
  if (held_ && !ready.hung_up) return;
  advance(ready);
}

void DirectLane::advance(Ready ready) {
  const auto self = shared_from_this();
  if (step_ == Step::kConnecting && !connected()) return;
  if (step_ == Step::kHandshake && !shake_hands()) return;
  if (step_ == Step::kSending) {
    if (!send_some()) return;
    if (!ready.readable && !ready.hung_up) return;
  }
  while (step_ == Step::kReading && read_some()) {
  }
}

bool DirectLane::connected() {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    fail(Code::kUnavailable, fmt::format("cannot connect: {}", std::strerror(error)),
         " (is the server running, and is this its address?)");
    return false;
  }
  step_ = Step::kHandshake;
  return true;
}

bool DirectLane::shake_hands() {
  const IoResult result = transport_->handshake();
  switch (result.kind) {
    case Kind::kOk:
      step_ = Step::kSending;
      return true;
    case Kind::kWantRead:
      want(true, false);
      return false;
    case Kind::kWantWrite:
      want(false, true);
      return false;
    default:
      break;
  }
  const std::string fault = transport_->fault();
  if (fault.empty()) {
    fail(Code::kUnavailable, "the connection was cut within the TLS handshake");
  } else {
    fail(Code::kUnauthorized, fmt::format("no TLS: {}", fault));
  }
  return false;
}

// True once the request is out.
bool DirectLane::send_some() {
  const std::string_view bytes = exchange_->bytes;
  while (sent_ < bytes.size()) {
    const IoResult result = transport_->write(bytes.substr(sent_));
    if (result.kind == Kind::kOk) {
      sent_ += result.bytes;
    } else if (result.kind == Kind::kWantWrite || result.kind == Kind::kWantRead) {
      want(true, result.kind == Kind::kWantWrite);
      return false;
    } else {
      ended(result);
      return false;
    }
  }
  const bool stream = exchange_->stream != nullptr;
  reader_.emplace(
      ResponseReader::Limits{
          stream ? std::min(kRefusedBodyMax, options_.body_bytes_max) : options_.body_bytes_max,
          stream ? std::numeric_limits<size_t>::max() : options_.body_bytes_max},
      exchange_->request.method == "HEAD");
  step_ = Step::kReading;
  want(true, false);
  return true;
}

// False when there is nothing to read now, or the exchange is over.
bool DirectLane::read_some() {
  std::string& scratch = hooks_.scratch;
  if (scratch.empty()) scratch.resize(kScratch);
  const IoResult result = transport_->read(scratch.data(), scratch.size());
  switch (result.kind) {
    case Kind::kOk:
      take({scratch.data(), result.bytes});
      return step_ == Step::kReading && !held_;
    case Kind::kWantRead:
      return false;
    case Kind::kWantWrite:
      want(true, true);
      return false;
    default:
      ended(result);
      return false;
  }
}

void DirectLane::take(std::string_view bytes) {
  const auto state = reader_->feed(bytes);
  Response& response = reader_->response();
  if (exchange_->stream && state != ResponseReader::State::kHead && response.status == 200 &&
      !response.body.empty()) {
    std::string chunk;
    chunk.swap(response.body);
    if (!hooks_.chunk(*exchange_, std::move(chunk)) && state == ResponseReader::State::kBody) {
      held_ = true;
      want(false, false);
    }
  }
  if (state == ResponseReader::State::kDone) return finish();
  if (state != ResponseReader::State::kFailed) return;
  if (!reader_->too_large()) return fail(Code::kUnavailable, reader_->problem());
  fail(Code::kTooLarge, fmt::format("the answer is larger than {} bytes", options_.body_bytes_max));
}

void DirectLane::finish() {
  const bool reusable = reader_->keeps() && !exchange_->stream;
  Response response = std::move(reader_->response());
  reader_.reset();
  if (reusable) {
    step_ = Step::kIdle;
  } else {
    close();
  }
  hooks_.finished(*this, std::move(exchange_), std::move(response), reusable);
}

void DirectLane::fail(Code code, std::string_view reason, std::string_view mend) {
  close();
  std::unique_ptr<DirectExchange> exchange = std::move(exchange_);
  base::Result<Response> result =
      base::error(code, "{} {}{}: {}{}", exchange->request.method, options_.base_url,
                  exchange->request.target, reason, mend);
  hooks_.finished(*this, std::move(exchange), std::move(result), false);
}

// The peer closed or the connection broke.
void DirectLane::ended(const IoResult& result) {
  const std::string fault = transport_->fault();
  const bool begun = reader_ && reader_->begun();
  if (kept_ && !begun && !exchange_->again) {
    close();
    return hooks_.stale(*this, std::move(exchange_));
  }
  if (result.kind == Kind::kEof && reader_ && reader_->closed() == ResponseReader::State::kDone) {
    return finish();
  }
  // With TLS 1.3 the server refuses our certificate only after the handshake.
  const bool refused = fault.find(" alert ") != std::string::npos;
  fail(refused ? Code::kUnauthorized : Code::kUnavailable,
       !fault.empty() ? fault
                      : (begun ? "the connection was cut within the answer"
                               : "the connection was cut before the answer"));
}

}  // namespace tessera::http
