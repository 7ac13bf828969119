#include "http/response_reader.h"

#include <gtest/gtest.h>

namespace tessera::http {
namespace {

using State = ResponseReader::State;

constexpr ResponseReader::Limits kLimits{1000, 1000};

// What comes of the bytes in pieces of `step`; then the peer closes.
ResponseReader read(std::string_view bytes, size_t step, bool to_head = false) {
  ResponseReader reader(kLimits, to_head);
  for (size_t at = 0; at < bytes.size(); at += step) reader.feed(bytes.substr(at, step));
  return reader;
}

TEST(ResponseReader, AnswersAreTheSameInPiecesOfAnySize) {
  const struct {
    const char* bytes;
    int status;
    const char* body;
    bool keeps;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true},
      {"HTTP/1.1 201 Created\r\ncontent-length:0\r\n\r\n", 201, "", true},
      {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
       200, "abcde", true},
      {"HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx",
       404, "x", true},
      {"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx", 200, "x", false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x", false},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n", 200, "x", false},
  };
  for (const auto& [bytes, status, body, keeps] : cases) {
    for (size_t step = 1; step <= std::string_view(bytes).size(); ++step) {
      ResponseReader reader = read(bytes, step);
      ASSERT_EQ(reader.state(), State::kDone) << bytes << step << reader.problem();
      EXPECT_EQ(reader.response().status, status) << bytes;
      EXPECT_EQ(reader.response().body, body) << bytes;
      EXPECT_EQ(reader.keeps(), keeps) << bytes << step;
    }
  }
}

TEST(ResponseReader, ABodyWithoutALengthEndsWhenThePeerCloses) {
  ResponseReader reader = read("HTTP/1.1 200 OK\r\n\r\nall of it", 3);
  EXPECT_EQ(reader.state(), State::kBody);
  EXPECT_EQ(reader.closed(), State::kDone);
  EXPECT_EQ(reader.response().body, "all of it");
  EXPECT_FALSE(reader.keeps());
}

TEST(ResponseReader, AnAnswerToHeadHasNoBody) {
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", 7, true).state(), State::kDone);
}

TEST(ResponseReader, WhatIsNoAnswerFails) {
  for (const char* bytes :
       {"SSH-2.0-x\r\n\r\n", "Content-Length: 0\r\n\r\n", "HTTP/2 200\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n", "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n", "HTTP/1.1 999 x\r\n\r\n"}) {
    EXPECT_EQ(read(bytes, 1).state(), State::kFailed) << bytes;
    EXPECT_EQ(read(bytes, 1000).state(), State::kFailed) << bytes;
  }
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", 2).closed(), State::kFailed);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nConte", 2).closed(), State::kFailed);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nX: " + std::string(300'000, 'x'), 1 << 16).state(),
            State::kFailed);
}

TEST(ResponseReader, ABodyOverItsLimitIsTooLarge) {
  const std::string body(1001, 'x');
  for (const std::string& bytes :
       {"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + body, "HTTP/1.1 200 OK\r\n\r\n" + body,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + body}) {
    const ResponseReader reader = read(bytes, 100);
    EXPECT_EQ(reader.state(), State::kFailed);
    EXPECT_TRUE(reader.too_large());
  }
}

}  // namespace
}  // namespace tessera::http
