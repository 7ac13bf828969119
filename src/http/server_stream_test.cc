#include <gtest/gtest.h>

#include <thread>

#include "http/server.h"
#include "http/testing/rig.h"

namespace tessera::http {
namespace {

using testing::Counter;
using testing::RawSocket;

const std::string kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

// Keeps the responders of open streams.
struct Streams {
  std::mutex mutex;
  std::vector<std::shared_ptr<Responder>> open;
  Counter opened;
  Counter closed;

  Handler handler() {
    return [this](Request, std::shared_ptr<Responder> responder) {
      responder->begin_stream(200, "text/plain");
      responder->write("hello\n");
      responder->on_closed([this] { closed.add(); });
      const std::lock_guard lock(mutex);
      open.push_back(std::move(responder));
      opened.add();
    };
  }
};

TEST(ServerStream, TenThousandChunksArriveInOrder) {
  Server server(testing::tls_server(), [](Request, std::shared_ptr<Responder> responder) {
    std::thread([responder] {
      responder->begin_stream(200, "text/plain", {{"x-kind", "watch"}});
      for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(responder->write(std::to_string(i) + "\n"));
      responder->end_stream();
      EXPECT_FALSE(responder->write("late"));
    }).detach();
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::tls_client(server.port()), loop);
  std::string got;
  std::promise<base::Status> end;
  const auto subscription = client.stream(
      {"GET", "/", {}, {}}, [&](std::string chunk) { got += chunk; },
      [&](base::Status status) { end.set_value(std::move(status)); });
  const auto status = end.get_future().get();
  ASSERT_TRUE(status) << status.error().message;
  std::string expected;
  for (int i = 0; i < 10'000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_EQ(got, expected);
}

TEST(ServerStream, TheConnectionServesOnAfterAStream) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, "text/plain");
    responder->write("a");
    responder->write("");  // would be the end if it were sent
    responder->write("bc");
    responder->end_stream();
  });
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send(kGet + "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string answers = socket.read_all();
  const std::string body = "\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n";
  EXPECT_NE(answers.find(body + "HTTP/1.1 200 OK\r\n"), std::string::npos) << answers;
  EXPECT_EQ(answers.substr(answers.size() - body.size()), body);
}

TEST(ServerStream, Http10StreamsEndWithTheConnection) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, "text/plain");
    responder->write("abc");
    responder->end_stream();
  });
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string answer = socket.read_all();
  EXPECT_EQ(answer.find("transfer-encoding"), std::string::npos);
  EXPECT_EQ(answer.substr(answer.size() - 7), "\r\n\r\nabc");
}

TEST(ServerStream, HeadOfAStreamIsOnlyItsHead) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, "text/plain");
    responder->write("abc");
    responder->end_stream();
  });
  ASSERT_TRUE(server.start());
  RawSocket socket(server.port());
  socket.send("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string answer = socket.read_all();
  EXPECT_EQ(answer.find("abc"), std::string::npos);
}

TEST(ServerStream, APeerThatLeavesIsNoticed) {
  Streams streams;
  Server server({}, streams.handler());
  ASSERT_TRUE(server.start());
  RawSocket closes(server.port());
  RawSocket resets(server.port());
  RawSocket shuts(server.port());
  for (RawSocket* socket : {&closes, &resets, &shuts}) {
    socket->send(kGet);
    socket->read_until("hello");
  }
  closes.cut();
  resets.reset();
  shuts.shut_write();
  EXPECT_TRUE(streams.closed.wait_for(3));
  for (const auto& responder : streams.open) {
    EXPECT_FALSE(responder->write("more"));
    bool ran = false;
    responder->on_closed([&] { ran = true; });
    EXPECT_TRUE(ran);
    responder->end_stream();
  }
}

TEST(ServerStream, ASlowReaderIsCutOnceItsBacklogIsFull) {
  Streams streams;
  ServerOptions options = testing::tls_server();
  options.certificate_pem.clear();
  options.stream_backlog_max = 1 << 20;
  Server server(options, streams.handler());
  ASSERT_TRUE(server.start());
  RawSocket slow(server.port());
  slow.send(kGet);
  slow.read_until("hello");
  ASSERT_TRUE(streams.opened.wait_for(1));
  RawSocket other(server.port());
  other.send(kGet);
  ASSERT_TRUE(streams.opened.wait_for(2));
  const std::string chunk(64 << 10, 'x');
  int written = 0;
  while (streams.open[0]->write(chunk) && written < 10'000) ++written;
  EXPECT_LT(written, 10'000);
  EXPECT_TRUE(streams.closed.wait_for(1));
  EXPECT_TRUE(streams.open[1]->write("still here\n"));
  EXPECT_NE(other.read_until("still here").find("still here"), std::string::npos);
}

TEST(ServerStream, OneChunkLargerThanTheBacklogPasses) {
  ServerOptions options;
  options.stream_backlog_max = 1000;
  Server server(options, [](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, "text/plain");
    EXPECT_TRUE(responder->write(std::string(1'000'000, 'x')));
    responder->end_stream();
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::plain_client(server.port()), loop);
  EXPECT_EQ(testing::get(client, "/").value().body.size(), 1'000'000);
}

TEST(ServerStream, AnAbandonedStreamIsCutWithoutAnEnd) {
  Server server({}, [](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, "text/plain");
    responder->write("abc");
  });
  ASSERT_TRUE(server.start());
  base::LoopThread loop("test");
  Client client(testing::plain_client(server.port()), loop);
  const auto answer = testing::get(client, "/");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, base::Code::kUnavailable);
}

TEST(ServerStream, StopClosesOpenStreams) {
  Streams streams;
  ServerOptions options = testing::tls_server();
  options.threads = 2;
  auto server = std::make_unique<Server>(options, streams.handler());
  ASSERT_TRUE(server->start());
  base::LoopThread loop("test");
  Client client(testing::tls_client(server->port()), loop);
  Counter ended;
  std::vector<std::unique_ptr<base::Subscription>> subscriptions;
  for (int i = 0; i < 20; ++i) {
    subscriptions.push_back(client.stream(
        {"GET", "/", {}, {}}, [](std::string) {}, [&](base::Status) { ended.add(); }));
  }
  ASSERT_TRUE(streams.opened.wait_for(20));
  server->stop();
  EXPECT_TRUE(streams.closed.wait_for(20));
  EXPECT_TRUE(ended.wait_for(20));
  server.reset();
  for (const auto& responder : streams.open) EXPECT_FALSE(responder->write("x"));
}

TEST(ServerStream, StopWhileOthersWriteAndConnect) {
  Streams streams;
  ServerOptions options;
  options.threads = 2;
  auto server = std::make_unique<Server>(options, streams.handler());
  ASSERT_TRUE(server->start());
  std::vector<std::unique_ptr<RawSocket>> sockets;
  for (int i = 0; i < 10; ++i) {
    sockets.push_back(std::make_unique<RawSocket>(server->port()));
    sockets.back()->send(kGet);
  }
  ASSERT_TRUE(streams.opened.wait_for(10));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    while (!done) {
      const std::lock_guard lock(streams.mutex);
      for (const auto& responder : streams.open) responder->write("tick\n");
    }
  });
  server->stop();
  server.reset();
  done = true;
  writer.join();
  EXPECT_TRUE(streams.closed.wait_for(10));
}

}  // namespace
}  // namespace tessera::http
