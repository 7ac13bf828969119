#include "http/server.h"

#include <gtest/gtest.h>

#include "http/testing/rig.h"

namespace tessera::http {
namespace {

using testing::call;
using testing::echo;
using testing::get;
using testing::RawSocket;

size_t count(const std::string& text, std::string_view part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST(Server, TellsTheHandlerWhoAVerifiedClientIs) {
  Server server(testing::tls_server(), echo);
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::tls_client(server.port()), loop);
  const auto answer = call(client, {"POST", "/a?b=c", {{"x-test", "1"}}, "hello"});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "POST /a?b=c|hello|admin|system:masters,devs,");
  EXPECT_EQ(answer->content_type, "text/plain");
}

TEST(Server, AClientWithoutCertificateIsServedAsNobody) {
  Server server(testing::tls_server(), echo);
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  ClientOptions options = testing::tls_client(server.port());
  options.certificate_pem.clear();
  options.private_key_pem.clear();
  Client client(options, loop);
  EXPECT_EQ(get(client, "/").value().body, "GET /|||");
}

KeyPair client_pair(int64_t from_s, int64_t to_s, bool server = false) {
  const base::Time now = base::SystemClock().now();
  const CertificateRequest request{"admin",
                                   {"system:masters"},
                                   {},
                                   {},
                                   server,
                                   now + base::seconds(from_s),
                                   now + base::seconds(to_s)};
  return issue(testing::certificates().ca, request).value();
}

TEST(Server, ACertificateThatIsNotGoodMakesItsPeerNobody) {
  Server server(testing::tls_server(), [](Request request, std::shared_ptr<Responder> responder) {
    const std::string who = request.peer_common_name + (request.peer_refused ? "refused " : " ");
    responder->send({200, {}, who + request.peer_address, "text/plain"});
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  const auto& all = testing::certificates();
  const std::pair<const char*, KeyPair> bad[] = {
      {"of another CA", all.stranger},
      {"expired", client_pair(-7200, -3600)},
      {"not yet valid", client_pair(3600, 7200)},
      {"of a server", client_pair(-60, 3600, true)},
  };
  for (const auto& [what, pair] : bad) {
    ClientOptions options = testing::tls_client(server.port());
    options.certificate_pem = pair.certificate_pem;
    options.private_key_pem = pair.private_key_pem;
    Client client(options, loop);
    const auto answer = testing::get(client, "/");
    ASSERT_TRUE(answer) << what << ": " << answer.error().message;
    EXPECT_EQ(answer->body, "refused 127.0.0.1") << what;
  }
  ClientOptions options = testing::tls_client(server.port());
  options.certificate_pem = client_pair(-60, 3600).certificate_pem;
  Client mixed(options, loop);
  EXPECT_FALSE(testing::get(mixed, "/")) << "the key of another certificate";
}

TEST(Server, PlainHttpToATlsPortIsToldSo) {
  Server server(testing::tls_server(), echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(socket.read_all().substr(0, 24), "HTTP/1.0 400 Bad Request");
}

TEST(Server, ANewCertificateIsShownToNewConnections) {
  const auto& all = testing::certificates();
  Server server(testing::tls_server(), echo);
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client before(testing::tls_client(server.port()), loop);
  EXPECT_TRUE(testing::get(before, "/"));
  const base::Time now = base::SystemClock().now();
  const KeyPair other =
      issue(all.other_ca,
            {"server", {}, {"localhost"}, {"127.0.0.1"}, true, now, now + base::seconds(3600)})
          .value();
  EXPECT_FALSE(server.use_certificate(other.certificate_pem, all.server.private_key_pem));
  EXPECT_TRUE(server.use_certificate(other.certificate_pem, other.private_key_pem));
  EXPECT_TRUE(testing::get(before, "/")) << "its connection goes on";
  Client strict(testing::tls_client(server.port()), loop);
  EXPECT_FALSE(testing::get(strict, "/"));
  ClientOptions options = testing::tls_client(server.port());
  options.ca_pem = all.other_ca.certificate_pem;
  Client after(options, loop);
  EXPECT_TRUE(testing::get(after, "/"));
}

TEST(Server, APortInUseIsNamedWithTheMend) {
  Server first({}, echo);
  ASSERT_TRUE(first.start());
  ServerOptions options;
  options.port = first.port();
  Server second(options, echo);
  const auto started = second.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, base::Code::kUnavailable);
  EXPECT_NE(started.error().message.find(std::to_string(first.port())), std::string::npos);
  EXPECT_NE(started.error().message.find("already in use"), std::string::npos);
}

TEST(Server, ImpossibleOptionsAreRefused) {
  ServerOptions address;
  address.address = "example.com";
  EXPECT_EQ(Server(address, echo).start().error().code, base::Code::kBadRequest);
  ServerOptions key = testing::tls_server();
  key.private_key_pem = testing::certificates().client.private_key_pem;
  EXPECT_EQ(Server(key, echo).start().error().code, base::Code::kBadRequest);
  ServerOptions ca = testing::tls_server();
  ca.client_ca_pem = "nonsense";
  EXPECT_EQ(Server(ca, echo).start().error().code, base::Code::kBadRequest);
}

TEST(Server, PipelinedRequestsAreAnsweredInOrder) {
  Server server({}, echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  std::string requests = "\r\n";  // an empty line before a request is skipped
  for (int i = 0; i < 100; ++i) {
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  }
  requests +=
      "GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\n\r\n";
  ASSERT_TRUE(socket.send(requests));
  const std::string answers = socket.read_all();
  EXPECT_EQ(count(answers, "HTTP/1.1 200 OK\r\n"), 101);
  size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    const size_t next = answers.find("GET /" + std::to_string(i) + "|", at);
    ASSERT_NE(next, std::string::npos) << i;
    at = next;
  }
  EXPECT_EQ(answers.substr(answers.size() - 12), "GET /last|||");
  EXPECT_EQ(count(answers, "connection: close\r\n"), 1);
}

TEST(Server, HeadHasTheHeadersWithoutTheBody) {
  Server server({}, echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string answer = socket.read_all();
  EXPECT_NE(answer.find("content-length: 9\r\n"), std::string::npos) << answer;
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST(Server, Http10ConnectionsCloseUnlessTheyAskNotTo) {
  Server server({}, echo);
  ASSERT_TRUE(server.start());
  RawSocket closes(server.port());
  closes.send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_EQ(count(closes.read_all(), "GET /a|||"), 1);
  RawSocket stays(server.port());
  stays.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n");
  EXPECT_EQ(count(stays.read_all(), "|||"), 2);
}

TEST(Server, ContinueIsSentBeforeTheBodyIsAwaited) {
  Server server({}, echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send(
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n"
      "Connection: close\r\n\r\n");
  EXPECT_EQ(socket.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.send("hello");
  EXPECT_NE(socket.read_all().find("POST /|hello|"), std::string::npos);
}

TEST(Server, AHalfClosedClientStillGetsItsAnswer) {
  Server server({}, echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  socket.shut_write();
  EXPECT_NE(socket.read_all().find("GET /|||"), std::string::npos);
}

TEST(Server, ADroppedRequestIsAnsweredWith500) {
  Server server({}, [](Request, std::shared_ptr<Responder>) {});
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::plain_client(server.port()), loop);
  EXPECT_EQ(get(client, "/").value().status, 500);
}

TEST(Server, OnlyTheFirstAnswerCounts) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->send({201, {}, "one", "text/plain"});
    responder->send({202, {}, "two", "text/plain"});
    responder->begin_stream(203, "text/plain");
    EXPECT_FALSE(responder->write("three"));
    responder->on_closed([] { ADD_FAILURE() << "was answered"; });
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::plain_client(server.port()), loop);
  const auto answer = get(client, "/").value();
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "one");
}

TEST(Server, HeaderValuesCannotSplitTheAnswer) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->send({200, {{"x-a", "1\r\nx-b: 2"}, {"bad name", "3"}}, "", "text/plain"});
  });
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string answer = socket.read_all();
  EXPECT_EQ(count(answer, "x-a: 1  x-b: 2\r\n"), 1) << answer;
  EXPECT_EQ(count(answer, "bad name"), 0);
}

TEST(Server, AnswersWithoutABodyHaveNone) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->send({204, {}, "not to be sent", "text/plain"});
  });
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string answer = socket.read_all();
  EXPECT_EQ(count(answer, "content-"), 0) << answer;
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST(Server, ManyClientsOnSeveralThreads) {
  ServerOptions options = testing::tls_server();
  options.threads = 3;
  Server server(options, echo);
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  testing::Counter done;
  std::atomic<int> right = 0;
  std::vector<std::unique_ptr<Client>> clients;
  for (int c = 0; c < 6; ++c) {
    clients.push_back(std::make_unique<Client>(testing::tls_client(server.port()), loop));
    for (int i = 0; i < 50; ++i) {
      const std::string body = std::to_string(c * 1000 + i) + std::string(size_t(i) * 500, 'x');
      clients.back()->call({"PUT", "/", {}, body}, [&, body](base::Result<Response> r) {
        if (r && r->body == "PUT /|" + body + "|admin|system:masters,devs,") ++right;
        done.add();
      });
    }
  }
  EXPECT_TRUE(done.wait_for(300));
  EXPECT_EQ(right, 300);
}

TEST(Server, StartsOnceAndStopsTwice) {
  Server server({}, echo);
  ASSERT_TRUE(server.start());
  EXPECT_FALSE(server.start());
  server.stop();
  server.stop();
}

}  // namespace
}  // namespace tessera::http
