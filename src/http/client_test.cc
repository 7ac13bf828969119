#include "http/client.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "http/server.h"
#include "http/testing/rig.h"

namespace tessera::http {
namespace {

using base::Code;
using testing::call;
using testing::Counter;
using testing::echo;
using testing::get;

// Listens and hands each connection to a script on the test's thread.
class RawServer {
 public:
  RawServer() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_, 16), 0);
    socklen_t size = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  ~RawServer() { ::close(fd_); }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  // One connection of the client.
  class Peer {
   public:
    explicit Peer(int fd) : fd_(fd) {}
    ~Peer() { ::close(fd_); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    // A request without a body; false where the client closed.
    bool read_request() {
      std::string request;
      char buffer[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
        if (n <= 0) return false;
        request.append(buffer, static_cast<size_t>(n));
      }
      return true;
    }
    void send(std::string_view answer) {
      (void)!::send(fd_, answer.data(), answer.size(), MSG_NOSIGNAL);
    }

   private:
    int fd_;
  };
  std::unique_ptr<Peer> accept() {
    return std::make_unique<Peer>(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
  }

  // Takes one connection, reads one request, sends the text and closes.
  void serve_once(std::string_view answer) {
    const auto peer = accept();
    (void)peer->read_request();
    peer->send(answer);
  }

  uint16_t port = 0;

 private:
  int fd_;
};

base::Result<Response> answer_of(std::string_view bytes) {
  RawServer server;
  base::LoopThread loop("test");
  Client client(testing::plain_client(server.port), loop);
  std::promise<base::Result<Response>> promise;
  client.call({}, [&](base::Result<Response> r) { promise.set_value(std::move(r)); });
  server.serve_once(bytes);
  return promise.get_future().get();
}

TEST(Client, AServerWithAnotherCaIsRefused) {
  Server server(testing::tls_server(), echo);
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  ClientOptions options = testing::tls_client(server.port());
  options.ca_pem = testing::certificates().other_ca.certificate_pem;
  Client client(options, loop);
  const auto answer = get(client, "/");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnauthorized) << answer.error().message;
}

TEST(Client, AServerUnderAnotherNameIsRefused) {
  const auto& all = testing::certificates();
  const base::Time now = base::SystemClock().now();
  const CertificateRequest other{"x", {}, {"elsewhere"}, {}, true, now, now + base::seconds(3600)};
  const KeyPair pair = issue(all.ca, other).value();
  ServerOptions server_options = testing::tls_server();
  server_options.certificate_pem = pair.certificate_pem;
  server_options.private_key_pem = pair.private_key_pem;
  Server server(server_options, echo);
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::tls_client(server.port()), loop);
  EXPECT_EQ(get(client, "/").error().code, Code::kUnauthorized);
}

TEST(Client, NobodyListeningIsUnavailable) {
  uint16_t port = 0;
  {
    RawServer gone;
    port = gone.port;
  }
  base::LoopThread loop("test");
  Client client(testing::plain_client(port), loop);
  const auto answer = get(client, "/x");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
  EXPECT_NE(answer.error().message.find(std::to_string(port)), std::string::npos);
}

TEST(Client, ConnectionsCutInAnyPhaseAreUnavailable) {
  const std::string whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    const auto answer = answer_of(whole.substr(0, cut));
    ASSERT_FALSE(answer) << cut;
    EXPECT_EQ(answer.error().code, Code::kUnavailable) << cut << answer.error().message;
  }
  EXPECT_EQ(answer_of(whole).value().body, "hello");
}

TEST(Client, AnswersAreReadWithTheirHeaders) {
  const auto answer =
      answer_of(
          "HTTP/1.1 100 Continue\r\nX-Old: 1\r\n\r\nHTTP/1.1 404 Not Found\r\nX-New:  two \r\n"
          "Content-Type: text/html\r\nContent-Length: 2\r\n\r\nno")
          .value();
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body, "no");
  EXPECT_EQ(answer.content_type, "text/html");
  ASSERT_EQ(answer.headers.size(), 3);
  EXPECT_EQ(answer.headers[0].first, "x-new");
}

TEST(Client, ALargeAnswerIsRefused) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->send({200, {}, std::string(100'000, 'x'), "text/plain"});
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  ClientOptions options = testing::plain_client(server.port());
  options.body_bytes_max = 99'999;
  Client client(options, loop);
  EXPECT_EQ(get(client, "/").error().code, Code::kTooLarge);
}

TEST(Client, AnAnswerThatNeverComesTimesOut) {
  std::shared_ptr<Responder> kept;
  Server server({}, [&](Request, std::shared_ptr<Responder> responder) { kept = responder; });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  ClientOptions options = testing::plain_client(server.port());
  options.request_timeout = base::millis(50);
  Client client(options, loop);
  EXPECT_EQ(get(client, "/").error().code, Code::kTimeout);
}

TEST(Client, WhatCannotBeSentIsABadRequest) {
  base::LoopThread loop("test");
  Client client(testing::plain_client(1), loop);
  EXPECT_EQ(get(client, "x").error().code, Code::kBadRequest);
  EXPECT_EQ(get(client, "/a b").error().code, Code::kBadRequest);
  EXPECT_EQ(get(client, "/a\r\nx: y").error().code, Code::kBadRequest);
  EXPECT_EQ(call(client, {"GET", "/", {{"x", "a\nb"}}, {}}).error().code, Code::kBadRequest);
  ClientOptions bad = testing::plain_client(1);
  bad.base_url = "gopher://127.0.0.1";
  Client other(bad, loop);
  EXPECT_EQ(get(other, "/").error().code, Code::kBadRequest);
}

TEST(Client, SendsMethodHeadersTokenAndEmptyBodies) {
  Server server({}, [](Request request, std::shared_ptr<Responder> responder) {
    responder->send({200,
                     {},
                     request.method + "|" + std::string(request.header("authorization")) + "|" +
                         std::string(request.header("content-type")) + "|" +
                         std::string(request.header("content-length")) + "|" +
                         std::string(request.header("x-empty")) + "|" + request.target,
                     "text/plain"});
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  ClientOptions options = testing::plain_client(server.port());
  options.base_url += "/";
  options.bearer_token = "secret";
  Client client(options, loop);
  EXPECT_EQ(call(client, {"PATCH", "/a/../b", {{"content-type", "x/y"}, {"x-empty", ""}}, "{}"})
                .value()
                .body,
            "PATCH|Bearer secret|x/y|2||/a/../b");
  EXPECT_EQ(call(client, {"POST", "/", {}, {}}).value().body, "POST|Bearer secret||0||/");
  EXPECT_EQ(call(client, {"DELETE", "/", {}, {}}).value().body, "DELETE|Bearer secret||||/");
  EXPECT_EQ(call(client, {"HEAD", "/", {}, {}}).value().body, "");
}

TEST(Client, ARefusedStreamClosesWithTheStatus) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->send({410, {}, "too old resource version", "text/plain"});
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::plain_client(server.port()), loop);
  std::promise<base::Status> end;
  const auto subscription = client.stream(
      {}, [](std::string) { ADD_FAILURE() << "no chunk was due"; },
      [&](base::Status status) { end.set_value(std::move(status)); });
  const auto status = end.get_future().get();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kExpired);
  EXPECT_EQ(status.error().message, "too old resource version");
}

TEST(Client, DroppingASubscriptionEndsTheStreamAtTheServer) {
  std::shared_ptr<Responder> kept;
  Counter closed;
  Server server(testing::tls_server(), [&](Request, std::shared_ptr<Responder> responder) {
    kept = responder;
    responder->begin_stream(200, "text/plain");
    responder->write("x");
    responder->on_closed([&] { closed.add(); });
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::tls_client(server.port()), loop);
  Counter chunks;
  auto subscription = client.stream(
      {}, [&](std::string) { chunks.add(); }, [](base::Status) { ADD_FAILURE() << "was dropped"; });
  ASSERT_TRUE(chunks.wait_for(1));
  subscription.reset();
  EXPECT_TRUE(closed.wait_for(1));
}

TEST(Client, ASubscriptionMayBeDroppedInItsOwnCallback) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, "text/plain");
    for (int i = 0; i < 100; ++i) responder->write(std::string(50'000, 'x'));
    responder->end_stream();
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::plain_client(server.port()), loop);
  Counter chunks;
  std::unique_ptr<base::Subscription> subscription;
  loop.post([&] {
    subscription = client.stream(
        {},
        [&](std::string) {
          EXPECT_TRUE(subscription) << "a chunk came after the end";
          subscription.reset();
          chunks.add();
        },
        [](base::Status) { ADD_FAILURE() << "was dropped"; });
  });
  EXPECT_TRUE(chunks.wait_for(1));
  EXPECT_TRUE(get(client, "/"));
}

TEST(Client, ASlowExecutorHoldsTheStreamBackAndLosesNothing) {
  constexpr size_t kChunk = 1 << 20;
  constexpr size_t kChunks = 64;
  ServerOptions server_options;
  server_options.stream_backlog_max = kChunk * (kChunks + 1);
  Server server(server_options, [](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, "text/plain");
    for (size_t i = 0; i < kChunks; ++i) responder->write(std::string(kChunk, 'x'));
    responder->end_stream();
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::plain_client(server.port()), loop);
  size_t bytes = 0;
  std::promise<base::Status> end;
  std::promise<void> gate;
  loop.post([open = gate.get_future().share()] { open.wait(); });
  const auto subscription = client.stream(
      {}, [&](std::string chunk) { bytes += chunk.size(); },
      [&](base::Status status) { end.set_value(std::move(status)); });
  // Calls go on while the stream fills up and is held back.
  base::LoopThread other("other");
  Client second(testing::plain_client(server.port()), other);
  EXPECT_TRUE(get(second, "/"));
  gate.set_value();
  EXPECT_TRUE(end.get_future().get());
  EXPECT_EQ(bytes, kChunk * kChunks);
}

// One connection for calls beside two streams: the second call must come on the first one's connection.
TEST(Client, StreamsDoNotPushTheConnectionKeptForCallsOut) {
  RawServer server;
  base::LoopThread loop("test");
  ClientOptions options = testing::plain_client(server.port);
  options.connections_max = 1;
  Client client(options, loop);
  constexpr std::string_view kStreams = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  std::vector<std::unique_ptr<base::Subscription>> streams;
  std::vector<std::unique_ptr<RawServer::Peer>> peers;
  for (int i = 0; i < 2; ++i) {
    streams.push_back(client.stream({}, [](std::string) {}, [](base::Status) {}));
    peers.push_back(server.accept());
    ASSERT_TRUE(peers.back()->read_request());
    peers.back()->send(kStreams);
  }
  std::unique_ptr<RawServer::Peer> peer;
  for (int i = 0; i < 3; ++i) {
    std::promise<base::Result<Response>> promise;
    client.call({}, [&](base::Result<Response> r) { promise.set_value(std::move(r)); });
    if (!peer) peer = server.accept();
    ASSERT_TRUE(peer->read_request()) << "call " << i << " came on another connection";
    peer->send(kAnswer);
    EXPECT_EQ(promise.get_future().get()->body, "ok");
  }
}

TEST(Client, CallsGoOnBesideMoreStreamsThanConnections) {
  std::mutex mutex;
  std::vector<std::shared_ptr<Responder>> open;
  Counter opened;
  Server server({}, [&](Request request, std::shared_ptr<Responder> responder) {
    if (request.target == "/call") return echo(std::move(request), responder);
    responder->begin_stream(200, "text/plain");
    const std::lock_guard lock(mutex);
    open.push_back(std::move(responder));
    opened.add();
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  ClientOptions options = testing::plain_client(server.port());
  options.connections_max = 2;
  Client client(options, loop);
  std::vector<std::unique_ptr<base::Subscription>> subscriptions;
  for (int i = 0; i < 10; ++i) {
    subscriptions.push_back(client.stream({}, [](std::string) {}, [](base::Status) {}));
  }
  ASSERT_TRUE(opened.wait_for(10));
  Counter done;
  for (int i = 0; i < 20; ++i) {
    client.call({"GET", "/call", {}, {}}, [&](base::Result<Response> r) {
      EXPECT_TRUE(r);
      done.add();
    });
  }
  EXPECT_TRUE(done.wait_for(20));
}

TEST(Client, ATokenThatIsReplacedInItsFileIsSent) {
  Server server({}, [](Request request, std::shared_ptr<Responder> responder) {
    responder->send({200, {}, std::string(request.header("authorization")), "text/plain"});
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  const base::TempDir dir;
  ClientOptions options = testing::plain_client(server.port());
  options.bearer_token = "first";
  options.bearer_token_file = dir.path() + "/token";
  options.bearer_token_period = base::Duration{};
  Client client(options, loop);
  EXPECT_EQ(get(client, "/")->body, "Bearer first");  // there is no file yet
  ASSERT_TRUE(base::write_file(options.bearer_token_file, "second\n"));
  EXPECT_EQ(get(client, "/")->body, "Bearer second");
  options.bearer_token_period = base::seconds(3600);
  Client patient(options, loop);
  EXPECT_EQ(get(patient, "/")->body, "Bearer first");
  options.bearer_token = "a\nb";
  Client broken(options, loop);
  EXPECT_EQ(get(broken, "/").error().code, Code::kBadRequest);
}

// A name has to be looked up, and a proxy may be meant for it: that is libcurl's.
TEST(Client, AServerWithAHostNameIsCalledThroughLibcurl) {
  Counter streams;
  Server server(testing::tls_server(), [&](Request request, std::shared_ptr<Responder> responder) {
    if (request.target == "/stream") {
      responder->begin_stream(200, "text/plain");
      responder->write("piece");
      responder->end_stream();
      return;
    }
    responder->send({201, {}, request.method + request.body, "text/plain"});
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  ClientOptions options = testing::tls_client(server.port());
  options.base_url = "https://localhost:" + std::to_string(server.port());
  {
    Client client(options, loop);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(call(client, {"POST", "/", {}, std::to_string(i)})->body,
                "POST" + std::to_string(i));
      EXPECT_EQ(get(client, "/")->body, "GET");
      EXPECT_EQ(call(client, {"HEAD", "/", {}, {}})->body, "");
    }
    std::string got;
    std::promise<base::Status> end;
    const auto stream = client.stream(
        {"GET", "/stream", {}, {}}, [&](std::string chunk) { got += chunk; },
        [&](base::Status status) { end.set_value(status); });
    EXPECT_TRUE(end.get_future().get());
    EXPECT_EQ(got, "piece");
  }
  options.ca_pem = testing::certificates().other_ca.certificate_pem;
  Client stranger(options, loop);
  EXPECT_EQ(get(stranger, "/").error().code, Code::kUnauthorized);
}

// The server closes kept connections when it likes; the next call must not fail for it.
TEST(Client, ACallOnAConnectionThatHasGoneIsSentAgainOnANewOne) {
  RawServer server;
  base::LoopThread loop("test");
  ClientOptions options = testing::plain_client(server.port);
  options.connections_max = 1;
  Client client(options, loop);
  constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  for (int i = 0; i < 3; ++i) {
    std::promise<base::Result<Response>> first;
    client.call({}, [&](base::Result<Response> r) { first.set_value(std::move(r)); });
    auto peer = server.accept();
    ASSERT_TRUE(peer->read_request());
    peer->send(kAnswer);
    EXPECT_EQ(first.get_future().get()->body, "ok");
    std::promise<base::Result<Response>> second;
    client.call({}, [&](base::Result<Response> r) { second.set_value(std::move(r)); });
    ASSERT_TRUE(peer->read_request());
    peer.reset();  // closes without an answer
    peer = server.accept();
    ASSERT_TRUE(peer->read_request());
    peer->send(kAnswer);
    EXPECT_EQ(second.get_future().get()->body, "ok");
  }
}

TEST(Client, GoingAwayWithOpenCallsRunsNoCallback) {
  std::shared_ptr<Responder> kept;
  Counter arrived;
  Server server({}, [&](Request, std::shared_ptr<Responder> responder) {
    kept = responder;
    arrived.add();
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  {
    Client client(testing::plain_client(server.port()), loop);
    client.call({}, [](const base::Result<Response>&) { ADD_FAILURE() << "client is gone"; });
    ASSERT_TRUE(arrived.wait_for(1));
  }
  kept->send({});
  std::promise<void> passed;
  loop.post([&] { passed.set_value(); });
  passed.get_future().wait();
}

}  // namespace
}  // namespace tessera::http
