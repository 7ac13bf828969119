#include "http/connection.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "http/response_head.h"

namespace tessera::http {
namespace {

using Kind = IoResult::Kind;

constexpr size_t kAheadMax = 64 << 10;  // pipelined bytes kept while an answer is on its way
constexpr int kTurnsMax = 16;           // before other connections get their turn
constexpr base::Duration kHandshakeTimeout = base::seconds(10);
constexpr base::Duration kLingerTimeout = base::seconds(2);
constexpr base::Duration kNever{INT64_MAX};

std::string peer_address_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[INET6_ADDRSTRLEN] = "";
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(fd, any, &size) != 0) return {};
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(any)->sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6*>(any)->sin6_addr, text, sizeof text);
  }
  return text;
}

}  // namespace

const std::string& Lane::date_now() {
  const int64_t second = base::SystemClock().now().ns / 1'000'000'000;
  if (second != date_second || date.empty()) {
    date = http_date(base::Time{second * 1'000'000'000});
    date_second = second;
  }
  return date;
}

Response plain_refusal(int status, std::string_view why) {
  return {status,
          {},
          fmt::format("{} {}: {}", status, reason_phrase(status), why),
          "text/plain; charset=utf-8"};
}

void Lane::check_deadlines() {
  const std::vector<std::shared_ptr<Connection>> all(connections.begin(), connections.end());
  for (const auto& connection : all) connection->check_deadline(loop.now());
}

void Lane::close_all() {
  stopping = true;
  const std::vector<std::shared_ptr<Connection>> all(connections.begin(), connections.end());
  for (const auto& connection : all) connection->shut_down();
}

Connection::Connection(std::shared_ptr<ServerShared> shared, std::shared_ptr<Lane> lane)
    : shared_(std::move(shared)), lane_(std::move(lane)), deadline_(kNever) {}

void Connection::open(std::shared_ptr<ServerShared> shared, std::shared_ptr<Lane> lane, int fd) {
  const std::shared_ptr<SSL_CTX> tls = shared->tls();
  std::unique_ptr<Transport> transport =
      tls ? make_tls_transport(fd, tls.get()) : make_plain_transport(fd);
  if (!transport) ::close(fd);
  if (!transport || lane->stopping) {
    --shared->connections;
    return;
  }
  const auto connection = std::make_shared<Connection>(shared, lane);
  connection->fd_ = fd;
  connection->peer_address_ = peer_address_of(fd);
  connection->transport_ = std::move(transport);
  lane->connections.insert(connection);
  if (!lane->loop.add(fd, connection, true, false)) {
    connection->close();
    return;
  }
  connection->arm(std::min(kHandshakeTimeout, shared->options.request_timeout));
}

void Connection::arm(base::Duration timeout) {
  deadline_ = lane_->loop.now() + timeout;
}

void Connection::disarm() {
  deadline_ = kNever;
}

void Connection::on_ready(Ready ready) {
  if (ready.hung_up && !may_read() && state_ != State::kLingering) {
    close();
  } else {
    advance();
  }
}

void Connection::advance() {
  const auto self = shared_from_this();
  for (int i = 0; i < kTurnsMax; ++i) {
    if (!turn()) {
      if (state_ != State::kClosed) watch_socket();
      return;
    }
  }
  lane_->loop.post([self] { self->advance(); });
}

// Does what can be done now; false when there is nothing left to do.
bool Connection::turn() {
  if (state_ == State::kClosed) return false;
  if (state_ == State::kHandshake) return shake_hands();
  if (state_ == State::kLingering) {
    discard();
    return false;
  }
  const bool was_blocked = !out_.empty();
  flush();
  bool moved = was_blocked && out_.empty();
  if (state_ == State::kReading) moved = parse_buffered() || moved;
  if (may_read()) moved = read_once() || moved;
  return moved && state_ != State::kClosed;
}

bool Connection::shake_hands() {
  const IoResult result = transport_->handshake();
  write_wants_read_ = false;
  read_wants_write_ = result.kind == Kind::kWantWrite;
  if (result.kind == Kind::kOk) {
    identify_peer();
    state_ = State::kReading;
    arm(shared_->options.idle_timeout);
    return true;
  }
  if (result.kind == Kind::kEof) {
    close();
  } else if (result.kind == Kind::kFailed) {
    base::log_debug("tls handshake failed peer={} reason={}", peer_address_, transport_->fault());
    linger();  // the alert must arrive before the reset that unread bytes would cause
  }
  return false;
}

void Connection::identify_peer() {
  peer_ = transport_->peer();
  if (peer_.refused.empty()) return;
  base::log_warn("client certificate refused peer={} subject=\"{}\" reason=\"{}\"", peer_address_,
                 peer_.common_name, peer_.refused);
  peer_.common_name.clear();
  peer_.organizations.clear();
}

void Connection::flush() {
  write_wants_read_ = false;
  while (!out_.empty()) {
    const IoResult result = transport_->write(out_.front());
    if (result.kind == Kind::kOk) {
      out_.pop(result.bytes);
      arm(shared_->options.request_timeout);  // for the next piece
      continue;
    }
    write_wants_read_ = result.kind == Kind::kWantRead;
    if (result.kind == Kind::kWantRead || result.kind == Kind::kWantWrite) break;
    close();
    return;
  }
  if (exchange_) exchange_->set_unsent(out_.bytes());
  if (!out_.empty()) return;
  if (answer_complete_) {
    finish_answer();
  } else if (state_ == State::kAnswering && !eof_) {
    disarm();  // the handler takes the time it needs
  }
}

bool Connection::may_read() const {
  if (eof_) return false;
  // The reader leaves at most a header in in_; more is there only while "100 Continue" cannot be
  // sent.
  const size_t partial_max = shared_->options.header_bytes_max + kAheadMax;
  return state_ == State::kHandshake || (state_ == State::kReading && in_.size() < partial_max) ||
         (state_ == State::kAnswering && in_.size() < kAheadMax);
}

bool Connection::read_once() {
  std::vector<char>& scratch = lane_->scratch;
  const IoResult result = transport_->read(scratch.data(), scratch.size());
  read_wants_write_ = result.kind == Kind::kWantWrite;
  if (result.kind == Kind::kOk) {
    take_bytes({scratch.data(), result.bytes});
    return true;
  }
  if (result.kind == Kind::kEof || result.kind == Kind::kFailed) on_read_end(result);
  return false;
}

void Connection::take_bytes(std::string_view bytes) {
  if (state_ == State::kReading && in_.empty()) bytes.remove_prefix(feed(bytes));
  if (state_ == State::kReading && !in_.empty()) {
    in_ += bytes;
    parse_buffered();
  } else if (state_ == State::kReading || state_ == State::kAnswering) {
    if (keep_alive_) in_ += bytes;
  }
}

void Connection::on_read_end(IoResult result) {
  eof_ = true;
  // A peer that only shut its side still gets the answer it waits for, unless that is a stream
  // without an end.
  const bool answer_wanted = state_ == State::kAnswering && result.kind == Kind::kEof &&
                             !(exchange_ && exchange_->streaming());
  if (answer_wanted) {
    arm(shared_->options.request_timeout);
  } else {
    close();
  }
}

// Feeds what was read before; true when that changed something.
bool Connection::parse_buffered() {
  if (in_.empty() || !out_.empty()) return false;
  const size_t taken = feed(in_);
  if (taken >= in_.size()) {
    in_ = {};
  } else {
    in_.erase(0, taken);
  }
  return state_ != State::kReading;
}

size_t Connection::feed(std::string_view bytes) {
  size_t skipped = 0;
  if (!reader_) {  // RFC 9112 2.2: empty lines before a request are skipped
    while (skipped < bytes.size() && (bytes[skipped] == '\r' || bytes[skipped] == '\n')) ++skipped;
    if (skipped == bytes.size()) return skipped;
    reader_ = std::make_unique<RequestReader>(shared_->options.header_bytes_max,
                                              shared_->options.body_bytes_max);
    continue_sent_ = false;
    arm(shared_->options.request_timeout);
  }
  const size_t taken = reader_->feed(bytes.substr(skipped));
  if (reader_->failed()) {
    refuse(reader_->error_status(), std::string(reader_->error_text()));
    return bytes.size();
  }
  if (reader_->done()) {
    dispatch();
  } else if (reader_->wants_continue() && !continue_sent_) {
    continue_sent_ = true;
    out_.push("HTTP/1.1 100 Continue\r\n\r\n");
    flush();
  }
  return skipped + taken;
}

void Connection::dispatch() {
  keep_alive_ = reader_->keep_alive();
  Request request = reader_->take();
  framing_ = {!reader_->is_http_1_0(), request.method == "HEAD"};
  reader_.reset();
  // A certificate may end while its connection lives.
  if (!peer_.common_name.empty() && peer_.ends && *peer_.ends < base::SystemClock().now()) {
    identify_peer();
  }
  request.peer_address = peer_address_;
  request.peer_refused = !peer_.refused.empty();
  request.peer_common_name = peer_.common_name;
  request.peer_organizations = peer_.organizations;
  state_ = State::kAnswering;
  disarm();
  const auto self = shared_from_this();
  exchange_ = std::make_shared<Exchange>(framing_, shared_->options.stream_backlog_max, [self] {
    self->lane_->loop.post([self] { self->on_output(); });
  });
  shared_->handler(std::move(request), std::make_shared<ExchangeResponder>(exchange_));
}

void Connection::refuse(int status, std::string_view text) {
  reader_.reset();
  in_ = {};
  keep_alive_ = false;
  framing_ = {};
  state_ = State::kAnswering;
  Response response = shared_->options.refusal ? shared_->options.refusal(status, text)
                                               : plain_refusal(status, text);
  push_head(response, false);
  out_.push(std::move(response.body));
  answer_complete_ = true;
  arm(shared_->options.request_timeout);
  flush();
}

void Connection::on_output() {
  if (!exchange_) return;
  const auto self = shared_from_this();
  Exchange::Output output = exchange_->take();
  if (output.cut || (output.stream_head && eof_)) {
    close();
    return;
  }
  const bool was_empty = out_.empty();
  if (output.response) {
    push_head(*output.response, false);
    if (!framing_.head_only && has_body(output.response->status)) {
      out_.push(std::move(output.response->body));
    }
  }
  if (output.stream_head) push_head(*output.stream_head, true);
  out_.push(std::move(output.bytes));
  if (was_empty) arm(shared_->options.request_timeout);
  if (output.ended) {
    answer_complete_ = true;
    exchange_.reset();
  }
  advance();
}

void Connection::push_head(const Response& response, bool stream) {
  if (stream && !framing_.chunked) keep_alive_ = false;
  HeadFacts facts;
  facts.date = lane_->date_now();
  facts.close = !keep_alive_;
  facts.http_1_0 = !framing_.chunked;
  facts.body =
      stream ? (framing_.chunked ? BodyKind::kChunked : BodyKind::kUntilClose) : BodyKind::kLength;
  out_.push(response_head(response, facts));
}

void Connection::finish_answer() {
  answer_complete_ = false;
  exchange_.reset();
  if (!keep_alive_) {
    linger();
  } else if (eof_) {
    close();
  } else {
    state_ = State::kReading;
    arm(shared_->options.idle_timeout);
  }
}

void Connection::linger() {
  transport_->shut_write();
  if (eof_) {
    close();
    return;
  }
  state_ = State::kLingering;
  in_ = {};
  arm(kLingerTimeout);
}

void Connection::discard() {
  std::vector<char>& scratch = lane_->scratch;
  for (int i = 0; i < kTurnsMax; ++i) {
    const IoResult result = transport_->discard(scratch.data(), scratch.size());
    if (result.kind == Kind::kWantRead) return;
    if (result.kind == Kind::kOk) continue;
    close();
    return;
  }
}

void Connection::watch_socket() {
  const bool read = may_read() || state_ == State::kLingering || write_wants_read_;
  const bool write = (!out_.empty() && !write_wants_read_) || read_wants_write_;
  lane_->loop.set(fd_, read, write);
}

void Connection::check_deadline(base::Duration now) {
  if (now < deadline_ || state_ == State::kClosed) return;
  const auto self = shared_from_this();
  if (state_ == State::kReading && reader_) {
    refuse(408, "the request took too long to arrive");
    if (state_ != State::kClosed) watch_socket();
  } else if (state_ == State::kReading) {
    linger();
    if (state_ != State::kClosed) watch_socket();
  } else {
    close();
  }
}

void Connection::shut_down() {
  const auto self = shared_from_this();
  if (state_ == State::kReading || state_ == State::kAnswering) {
    on_output();
    if (state_ == State::kClosed) return;
    if (state_ != State::kLingering) transport_->shut_write();
  }
  close();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  state_ = State::kClosed;
  lane_->loop.remove(fd_);
  transport_.reset();
  reader_.reset();
  in_ = {};
  out_ = {};
  lane_->connections.erase(self);
  --shared_->connections;
  if (const auto exchange = std::move(exchange_)) exchange->close();
}

}  // namespace tessera::http
