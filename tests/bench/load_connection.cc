#include "load_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace tessera::load {
namespace {

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "tessera_load: {}\n", what);
  std::exit(2);
}

// The value of a header in the text of a head, whose names may be in any case.
std::string_view header_of(std::string_view head, std::string_view lower_name) {
  for (size_t at = head.find("\r\n"); at != std::string_view::npos;
       at = head.find("\r\n", at + 2)) {
    std::string_view line = head.substr(at + 2);
    line = line.substr(0, line.find("\r\n"));
    if (line.size() <= lower_name.size() || line[lower_name.size()] != ':') continue;
    bool same = true;
    for (size_t i = 0; same && i < lower_name.size(); ++i) {
      same = (line[i] | 0x20) == lower_name[i] || line[i] == lower_name[i];
    }
    if (!same) continue;
    line.remove_prefix(lower_name.size() + 1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    return line;
  }
  return {};
}

}  // namespace

SSL_CTX* make_context(const Target& target) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_load_verify_locations(context, target.ca_file.c_str(), nullptr) != 1 ||
      SSL_CTX_use_certificate_chain_file(context, target.certificate_file.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, target.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    give_up(fmt::format("cannot use {}, {} and {}: {}", target.ca_file, target.certificate_file,
                        target.key_file, ERR_error_string(ERR_get_error(), nullptr)));
  }
  return context;
}

Connection::Connection(SSL_CTX* context, const Target& target)
    : context_(context), target_(target) {}

Connection::~Connection() {
  SSL_free(ssl_);
  if (fd_ >= 0) ::close(fd_);
}

void Connection::connect() {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(target_.port);
  inet_pton(AF_INET, target_.host.c_str(), &address.sin_addr);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    give_up(fmt::format("cannot connect to {}:{}: {}", target_.host, target_.port,
                        std::error_code(errno, std::generic_category()).message()));
  }
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ssl_ = SSL_new(context_);
  SSL_set_fd(ssl_, fd_);
  if (SSL_connect(ssl_) != 1) {
    give_up(fmt::format("no TLS with {}:{}: {}", target_.host, target_.port,
                        ERR_error_string(ERR_get_error(), nullptr)));
  }
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

Connection::Outcome Connection::fail(std::string why) {
  ERR_clear_error();
  why_ = std::move(why);
  return Outcome::kFailed;
}

Connection::Outcome Connection::send(std::string_view method, std::string_view target,
                                     std::string_view content_type, std::string_view body) {
  out_.clear();
  fmt::format_to(std::back_inserter(out_),
                 "{} {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: tessera-load\r\n"
                 "Accept: application/json\r\n",
                 method, target, target_.host, target_.port);
  if (!content_type.empty()) {
    fmt::format_to(std::back_inserter(out_), "Content-Type: {}\r\nContent-Length: {}\r\n",
                   content_type, body.size());
  }
  out_.append("\r\n").append(body);
  sent_ = 0;
  in_.clear();
  body_.clear();
  head_done_ = false;
  stream_ = target.find("watch=") != std::string_view::npos;
  return advance();
}

Connection::Outcome Connection::advance() {
  if (sent_ < out_.size()) {
    if (const Outcome wrote = write_some(); wrote != Outcome::kDone) return wrote;
  }
  return read_some();
}

Connection::Outcome Connection::write_some() {
  while (sent_ < out_.size()) {
    const int wrote = SSL_write(ssl_, out_.data() + sent_, static_cast<int>(out_.size() - sent_));
    if (wrote <= 0) {
      const int error = SSL_get_error(ssl_, wrote);
      const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
      return waits ? Outcome::kPending : fail("the connection ended while a request was sent");
    }
    sent_ += static_cast<size_t>(wrote);
  }
  return Outcome::kDone;
}

Connection::Outcome Connection::read_some() {
  static char buffer[64 << 10];
  while (true) {
    const int got = SSL_read(ssl_, buffer, sizeof buffer);
    if (got <= 0) {
      const int error = SSL_get_error(ssl_, got);
      const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
      return waits ? Outcome::kPending : fail("the connection ended before the answer");
    }
    in_.append(buffer, static_cast<size_t>(got));
    if (!head_done_ && !parse_head()) {
      if (!why_.empty()) return Outcome::kFailed;
      continue;
    }
    if (stream_ && status_ == 200) return Outcome::kStreaming;
    if (take_body()) return Outcome::kDone;
    if (!why_.empty()) return Outcome::kFailed;
  }
}

Connection::Outcome Connection::drain() {
  static char buffer[64 << 10];
  int got = 0;
  while ((got = SSL_read(ssl_, buffer, sizeof buffer)) > 0) {
  }
  if (SSL_get_error(ssl_, got) == SSL_ERROR_WANT_READ) return Outcome::kStreaming;
  return fail("the stream ended");
}

Connection::Outcome Connection::receive(std::string& out) {
  static char buffer[64 << 10];
  int got = 0;
  do {
    take_chunks();
    out.append(body_);
    body_.clear();
    if (!why_.empty()) return Outcome::kFailed;
    got = SSL_read(ssl_, buffer, sizeof buffer);
    if (got > 0) in_.append(buffer, static_cast<size_t>(got));
  } while (got > 0);
  if (SSL_get_error(ssl_, got) == SSL_ERROR_WANT_READ) return Outcome::kStreaming;
  return fail("the stream ended");
}

bool Connection::parse_head() {
  const size_t end = in_.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const std::string_view head(in_.data(), end);
  if (!head.starts_with("HTTP/1.1 ") || head.size() < 12) {
    fail(fmt::format("not HTTP/1.1: {:.60}", head));
    return false;
  }
  std::from_chars(head.data() + 9, head.data() + 12, status_);
  chunked_ = header_of(head, "transfer-encoding") == "chunked";
  const std::string_view length = header_of(head, "content-length");
  length_ = 0;
  std::from_chars(length.data(), length.data() + length.size(), length_);
  in_.erase(0, end + 4);
  head_done_ = true;
  return true;
}

// True when the body is complete.
bool Connection::take_body() {
  if (chunked_) return take_chunks();
  if (in_.size() < length_) return false;
  body_.swap(in_);
  return true;
}

bool Connection::take_chunks() {
  size_t at = 0;
  bool last = false;
  while (!last) {
    const size_t end = in_.find("\r\n", at);
    if (end == std::string::npos) break;
    size_t size = 0;
    const auto [stop, bad] = std::from_chars(in_.data() + at, in_.data() + end, size, 16);
    if (bad != std::errc()) {
      fail("a chunk without a size");
      return false;
    }
    if (in_.size() < end + 2 + size + 2) break;
    body_.append(in_, end + 2, size);
    at = end + 2 + size + 2;
    last = size == 0;
  }
  in_.erase(0, at);
  return last;
}

}  // namespace tessera::load
