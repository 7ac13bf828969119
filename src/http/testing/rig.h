// What the tests of this module share: certificates, a server with its client, and raw sockets that misbehave.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "http/client.h"
#include "http/server.h"
#include "http/tls.h"

namespace tessera::http::testing {

constexpr int kPatienceS = 60;  // generous: only a hang reaches it

struct Certificates {
  KeyPair ca;
  KeyPair server;
  KeyPair client;    // CN admin, O system:masters and devs
  KeyPair other_ca;  // nobody trusts it
  KeyPair stranger;  // from other_ca
};

inline const Certificates& certificates() {
  static const Certificates all = [] {
    Certificates out;
    const base::Time now = base::SystemClock().now();
    const base::Time end = now + base::seconds(86400);
    CertificateRequest server{"server", {}, {"localhost"}, {"127.0.0.1"}, true, now, end};
    CertificateRequest client{"admin", {"system:masters", "devs"}, {}, {}, false, now, end};
    out.ca = make_ca("test-ca", now, end).value();
    out.other_ca = make_ca("other-ca", now, end).value();
    out.server = issue(out.ca, server).value();
    out.client = issue(out.ca, client).value();
    out.stranger = issue(out.other_ca, client).value();
    return out;
  }();
  return all;
}

inline ServerOptions tls_server() {
  ServerOptions options;
  options.certificate_pem = certificates().server.certificate_pem;
  options.private_key_pem = certificates().server.private_key_pem;
  options.client_ca_pem = certificates().ca.certificate_pem;
  return options;
}

inline ClientOptions tls_client(uint16_t port) {
  ClientOptions options;
  options.base_url = "https://127.0.0.1:" + std::to_string(port);
  options.ca_pem = certificates().ca.certificate_pem;
  options.certificate_pem = certificates().client.certificate_pem;
  options.private_key_pem = certificates().client.private_key_pem;
  return options;
}

inline ClientOptions plain_client(uint16_t port) {
  ClientOptions options;
  options.base_url = "http://127.0.0.1:" + std::to_string(port);
  return options;
}

// Counts up; wait_for() returns once the count is reached, false when it never is.
class Counter {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool wait_for(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(kPatienceS),
                             [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

inline base::Result<Response> call(Client& client, ClientRequest request) {
  auto promise = std::make_shared<std::promise<base::Result<Response>>>();
  auto future = promise->get_future();
  client.call(std::move(request),
              [promise](base::Result<Response> result) { promise->set_value(std::move(result)); });
  if (future.wait_for(std::chrono::seconds(kPatienceS)) != std::future_status::ready) {
    return base::error(base::Code::kInternal, "no answer at all");
  }
  return future.get();
}

inline base::Result<Response> get(Client& client, std::string target) {
  return call(client, {"GET", std::move(target), {}, {}});
}

// A plain TCP connection that sends what it is told and reads what comes.
class RawSocket {
 public:
  explicit RawSocket(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval patience{kPatienceS, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~RawSocket() { cut(); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Everything until the peer closes.
  std::string read_all() {
    std::string out;
    while (read_some(out)) {
    }
    return out;
  }
  // Until `mark` has come, or the peer closes.
  std::string read_until(std::string_view mark) {
    std::string out;
    while (out.find(mark) == std::string::npos && read_some(out)) {
    }
    return out;
  }
  void shut_write() { ::shutdown(fd_, SHUT_WR); }
  void cut() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  // Closes with a reset instead of a FIN.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    cut();
  }

 private:
  bool read_some(std::string& out) {
    char buffer[4096];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n > 0) out.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }
  int fd_;
};

// Answers with what it got: "METHOD target|body|CN|O,O".
inline void echo(Request request, const std::shared_ptr<Responder>& responder) {
  std::string text = request.method + " " + request.target + "|" + request.body + "|" +
                     request.peer_common_name + "|";
  for (const std::string& organization : request.peer_organizations) text += organization + ",";
  responder->send({200, {}, std::move(text), "text/plain"});
}

}  // namespace tessera::http::testing
