#include "http/request_reader.h"

#include <gtest/gtest.h>

namespace tessera::http {
namespace {

constexpr size_t kHeaderMax = 1024;
constexpr size_t kBodyMax = 64;

// Hands the text over in pieces, as a connection would; returns what was not taken.
std::string feed_in_pieces(RequestReader& reader, const std::string& text, size_t piece) {
  std::string buffer;
  size_t at = 0;
  while (at < text.size() && !reader.done() && !reader.failed()) {
    buffer += text.substr(at, piece);
    at += piece;
    buffer.erase(0, reader.feed(buffer));
  }
  return buffer;
}

int status_of(const std::string& text, size_t piece) {
  RequestReader reader(kHeaderMax, kBodyMax);
  feed_in_pieces(reader, text, piece);
  if (reader.failed()) return reader.error_status();
  return reader.done() ? 200 : 0;
}

TEST(RequestReader, ReadsRequestsCutAnywhere) {
  const std::string head = "POST /a?b=c HTTP/1.1\r\nHost: h\r\nX-Two: 1\r\nx-two: 2\r\n";
  const std::string length = head + "Content-Length: 11\r\n\r\nhello world";
  const std::string chunks =
      head + "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nT: t\r\n\r\n";
  for (const std::string& text : {length, chunks}) {
    for (size_t piece = 1; piece <= text.size(); ++piece) {
      RequestReader reader(kHeaderMax, kBodyMax);
      EXPECT_EQ(feed_in_pieces(reader, text, piece), "");
      ASSERT_TRUE(reader.done()) << piece << reader.error_text();
      EXPECT_TRUE(reader.keep_alive());
      const Request request = reader.take();
      EXPECT_EQ(request.method, "POST");
      EXPECT_EQ(request.target, "/a?b=c");
      EXPECT_EQ(request.body, "hello world");
      EXPECT_EQ(request.header("x-two"), "1");
      EXPECT_EQ(request.header("t"), "");  // a trailer is no header
    }
  }
}

// Beast 1.81's own decoder aborts the process on this one.
TEST(RequestReader, AnEmptyChunkedBodyMayComeByteByByte) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  EXPECT_EQ(status_of(text, 1), 200);
}

TEST(RequestReader, ChunksAreReadStrictly) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::pair<std::string, int> cases[] = {
      {"00000005 ; x\r\nhello\r\n0\r\n\r\n", 200},
      {"A\r\n0123456789\r\n0;end\r\nA: b\r\nC: d\r\n\r\n", 200},
      {"5\r\nhello\r\n", 0},
      {"5\nhello\r\n0\r\n\r\n", 400},
      {"5\r\nhello0\r\n\r\n", 400},
      {"\r\n", 400},
      {";x\r\n", 400},
      {"-1\r\n", 400},
      {"0x5\r\n", 400},
      {"5\x01\r\n", 400},
      {"0\r\nA: b\n\r\n", 400},
      {"0\r\n\rx", 400},
      {"ffffffffffffffffffff\r\n", 413},
      {"20\r\n" + std::string(32, 'x') + "\r\n21\r\n", 413},
      {"20\r\n" + std::string(32, 'x') + "\r\n20\r\n" + std::string(32, 'x') + "\r\n0\r\n\r\n",
       200},
  };
  for (const auto& [text, status] : cases) {
    EXPECT_EQ(status_of(head + text, 1), status) << text;
    EXPECT_EQ(status_of(head + text, 1000), status) << text;
  }
}

TEST(RequestReader, LeavesTheNextRequest) {
  RequestReader reader(kHeaderMax, kBodyMax);
  const std::string one = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  EXPECT_EQ(reader.feed(one + one), one.size());
  EXPECT_TRUE(reader.done());
}

TEST(RequestReader, ReportsContinueAndConnection) {
  RequestReader waits(kHeaderMax, kBodyMax);
  waits.feed("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(waits.wants_continue());
  waits.feed("ab");
  EXPECT_FALSE(waits.wants_continue());
  RequestReader closes(kHeaderMax, kBodyMax);
  closes.feed("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(closes.keep_alive());
  RequestReader old(kHeaderMax, kBodyMax);
  old.feed("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(old.done() && old.is_http_1_0() && !old.keep_alive());
}

TEST(RequestReader, RefusesWhatIsWrong) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::pair<std::string, int> cases[] = {
      {"nonsense\r\n\r\n", 400},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},  // TLS on a plain port
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {head + "no colon\r\n\r\n", 400},
      {head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
      {head + "Content-Length: -5\r\n\r\n", 400},
      {head + "Content-Length: 99999999999999999999999\r\n\r\n", 400},
      {head + "Content-Length: 65\r\n\r\n", 413},
      {head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
      {head + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {head + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {head + "Transfer-Encoding: chunked\r\n\r\n41\r\n", 413},
      {head + "Transfer-Encoding: chunked\r\n\r\n5;" + std::string(2000, 'x'), 431},
      {head + "Transfer-Encoding: chunked\r\n\r\n0\r\nT: " + std::string(2000, 'x'), 431},
      {head + "X: " + std::string(2000, 'x') + "\r\n\r\n", 431},
      {"GET /" + std::string(2000, 'x') + " HTTP/1.1\r\n\r\n", 431},
  };
  for (const auto& [text, status] : cases) {
    EXPECT_EQ(status_of(text, text.size()), status) << text.substr(0, 80);
    const int in_pieces = status_of(text, 7);
    EXPECT_EQ(in_pieces, status) << text.substr(0, 80);
  }
}

TEST(RequestReader, ManySmallHeadersCountAsOneLargeHeader) {
  std::string text = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 400; ++i) text += "a: b\r\n";
  EXPECT_EQ(status_of(text + "\r\n", 6), 431);
}

}  // namespace
}  // namespace tessera::http
