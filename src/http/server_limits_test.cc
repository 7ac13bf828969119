// Limits of size and time, and peers that vanish in every phase of a request.

#include <gtest/gtest.h>

#include "http/server.h"
#include "http/testing/rig.h"

namespace tessera::http {
namespace {

using testing::Counter;
using testing::echo;
using testing::RawSocket;

const std::string kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

ServerOptions impatient() {
  ServerOptions options;
  options.request_timeout = base::millis(50);
  options.idle_timeout = base::millis(50);
  return options;
}

TEST(ServerLimits, ALargeHeaderIsAnsweredWith431) {
  Server server({}, echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(70'000, 'x'));
  EXPECT_EQ(socket.read_all().substr(0, 13), "HTTP/1.1 431 ");
}

TEST(ServerLimits, ALargeBodyIsAnsweredWith413WhileItStillComes) {
  ServerOptions options;
  options.body_bytes_max = 1000;
  Server server(options, echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
  socket.send(std::string(1'000'000, 'x'));
  EXPECT_EQ(socket.read_all().substr(0, 13), "HTTP/1.1 413 ");
}

TEST(ServerLimits, ABodyThatWouldBeTooLargeGetsNoContinue) {
  ServerOptions options;
  options.body_bytes_max = 10;
  Server server(options, echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  EXPECT_EQ(socket.read_all().substr(0, 13), "HTTP/1.1 413 ");
}

TEST(ServerLimits, ASlowRequestIsAnsweredWith408) {
  Server server(impatient(), echo);
  ASSERT_TRUE(server.start());
  for (const std::string start : {"G", "GET / HTTP/1.1\r\nHo",
                                  "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc"}) {
    RawSocket socket(server.port());
    socket.send(start);
    EXPECT_EQ(socket.read_all().substr(0, 13), "HTTP/1.1 408 ") << start;
  }
}

TEST(ServerLimits, ABodyThatTricklesInGetsNoMoreTimeThanOneThatStalls) {
  Server server(impatient(), echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\n");
  // One byte at a time: always something new, never enough.
  for (int i = 0; i < 300'000 && socket.send("x"); ++i) {
  }
  EXPECT_EQ(socket.read_all().substr(0, 13), "HTTP/1.1 408 ");
}

TEST(ServerLimits, AnIdleConnectionIsClosedWithoutAWord) {
  Server server(impatient(), echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  EXPECT_EQ(socket.read_all(), "");
  ServerOptions tls = testing::tls_server();
  tls.request_timeout = base::millis(50);
  Server silent(tls, echo);
  ASSERT_TRUE(silent.start());
  RawSocket no_handshake(silent.port());
  EXPECT_EQ(no_handshake.read_all(), "");
}

TEST(ServerLimits, GarbageInsteadOfAHandshakeIsCut) {
  Server server(testing::tls_server(), echo);
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send(kGet);
  socket.read_all();  // an alert or nothing, but an end
  RawSocket half(server.port());
  half.send(std::string("\x16\x03\x01\x02\x00\x01\x00", 7));
  half.shut_write();
  half.read_all();
}

TEST(ServerLimits, APeerThatDoesNotReadItsAnswerIsCut) {
  ServerOptions options = impatient();
  Server server(options, [](Request, std::shared_ptr<Responder> responder) {
    responder->send({200, {}, std::string(64 << 20, 'x'), "text/plain"});
  });
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send(kGet);
  // Nothing is read until the server has given up, which the next connection shows by being served meanwhile.
  Counter cut;
  RawSocket witness(server.port());
  EXPECT_EQ(witness.read_all(), "");  // idle for as long as the other is given
  EXPECT_LT(socket.read_all().size(), size_t{64} << 20);
}

TEST(ServerLimits, ConnectionsBeyondTheLimitAreClosed) {
  ServerOptions options;
  options.connections_max = 2;
  Server server(options, echo);
  ASSERT_TRUE(server.start());
  RawSocket one(server.port());
  RawSocket two(server.port());
  one.send(kGet);
  EXPECT_NE(one.read_until("|||"), "");
  two.send(kGet);
  EXPECT_NE(two.read_until("|||"), "");
  RawSocket three(server.port());
  EXPECT_EQ(three.read_all(), "");
  one.send(kGet);
  EXPECT_NE(one.read_until("|||"), "");
}

TEST(ServerLimits, PeersThatVanishInAnyPhaseHarmNobody) {
  Server server({}, echo);
  ASSERT_TRUE(server.start());
  const std::string post =
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello" + kGet;
  for (size_t cut = 0; cut <= post.size(); ++cut) {
    for (const bool reset : {false, true}) {
      RawSocket socket(server.port());
      socket.send(post.substr(0, cut));
      if (reset) {
        socket.reset();
      } else {
        socket.cut();
      }
    }
  }
  RawSocket last(server.port());
  last.send(kGet);
  EXPECT_NE(last.read_until("|||"), "");
}

TEST(ServerLimits, TlsPeersThatVanishHarmNobody) {
  Server server(testing::tls_server(), echo);
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  for (int i = 0; i < 50; ++i) {
    Client client(testing::tls_client(server.port()), loop);
    client.call({}, [](const base::Result<Response>&) {});
  }  // each goes away with its call open
  Client last(testing::tls_client(server.port()), loop);
  EXPECT_TRUE(testing::get(last, "/"));
}

}  // namespace
}  // namespace tessera::http
