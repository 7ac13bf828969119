#include "http/request_reader.h"

#include <fmt/core.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "http/chunk_decoder.h"

namespace tessera::http {
namespace {

namespace beast = boost::beast;
using BeastError = beast::error_code;
using Text = beast::string_view;

constexpr size_t kReserveMax = size_t{1} << 20;  // a length is only a claim until the bytes come

std::string lower(Text text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

// Beast calls these for each piece of the header.
struct RequestReader::Parser : beast::http::basic_parser<true> {
  Request request;
  size_t header_bytes = 0;
  size_t header_bytes_max = 0;
  int hosts = 0;
  bool header_done = false;
  bool other_encoding = false;
  bool expects_continue = false;
  bool http_1_0 = false;

  void on_request_impl(beast::http::verb, Text method, Text target, int version,
                       BeastError&) override {
    request.method = std::string(method);
    request.target = std::string(target);
    header_bytes = method.size() + target.size() + 12;
    http_1_0 = version == 10;
  }
  void on_response_impl(int, Text, int, BeastError&) override {}
  void on_field_impl(beast::http::field field, Text name, Text value, BeastError& ec) override {
    header_bytes += name.size() + value.size() + 4;
    if (header_bytes > header_bytes_max) {
      ec = beast::http::error::header_limit;
      return;
    }
    std::string key = lower(name);
    if (field == beast::http::field::host) ++hosts;
    if (field == beast::http::field::transfer_encoding && lower(value) != "chunked") {
      other_encoding = true;
    }
    if (field == beast::http::field::expect && lower(value) == "100-continue") {
      expects_continue = true;
    }
    request.headers.emplace_back(std::move(key), std::string(value));
  }
  void on_header_impl(BeastError& ec) override {
    header_done = true;
    if (other_encoding) ec = beast::http::error::bad_transfer_encoding;
  }
  // Beast is told to stop after the header, so none of these is called.
  void on_body_init_impl(boost::optional<uint64_t> const&, BeastError&) override {}
  size_t on_body_impl(Text body, BeastError&) override { return body.size(); }
  void on_chunk_header_impl(uint64_t, Text, BeastError&) override {}
  size_t on_chunk_body_impl(uint64_t, Text body, BeastError&) override { return body.size(); }
  void on_finish_impl(BeastError&) override {}
};

RequestReader::RequestReader(size_t header_bytes_max, size_t body_bytes_max)
    : parser_(std::make_unique<Parser>()),
      header_bytes_max_(header_bytes_max),
      body_bytes_max_(body_bytes_max) {
  parser_->header_bytes_max = header_bytes_max;
  parser_->header_limit(static_cast<uint32_t>(std::min<size_t>(header_bytes_max, UINT32_MAX)));
  parser_->skip(true);
}

RequestReader::~RequestReader() = default;

void RequestReader::fail(int status, std::string text) {
  error_status_ = status;
  error_text_ = std::move(text);
}

size_t RequestReader::feed(std::string_view bytes) {
  if (failed() || done()) return 0;
  size_t taken = 0;
  if (!parser_->header_done) {
    taken = feed_header(bytes);
    if (failed() || !parser_->header_done) return taken;
  }
  return taken + feed_body(bytes.substr(taken));
}

size_t RequestReader::feed_header(std::string_view bytes) {
  using Fault = beast::http::error;
  BeastError ec;
  const size_t taken = parser_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
  if (ec == Fault::need_more) return taken;
  if (ec == Fault::header_limit) {
    fail(431, fmt::format("the request header is larger than {} bytes", header_bytes_max_));
  } else if (ec == Fault::bad_transfer_encoding) {
    fail(501, "the only transfer encoding understood is chunked");
  } else if (ec == Fault::bad_version) {
    fail(505, "the protocol must be HTTP/1.1 or HTTP/1.0");
  } else if (ec) {
    fail(400, fmt::format("malformed request: {}", ec.message()));
  } else if (!parser_->http_1_0 && parser_->hosts != 1) {
    fail(400, "the request must have exactly one Host header");
  } else {
    begin_body();
  }
  return taken;
}

void RequestReader::begin_body() {
  if (parser_->chunked()) {
    chunks_ = std::make_unique<ChunkDecoder>(body_bytes_max_, header_bytes_max_);
    return;
  }
  const uint64_t length = parser_->content_length().value_or(0);
  if (length > body_bytes_max_) return fail_body();
  body_left_ = static_cast<size_t>(length);
  parser_->request.body.reserve(std::min(body_left_, kReserveMax));
  done_ = body_left_ == 0;
}

size_t RequestReader::feed_body(std::string_view bytes) {
  std::string& body = parser_->request.body;
  if (!chunks_) {
    const size_t count = std::min(body_left_, bytes.size());
    body.append(bytes.substr(0, count));
    body_left_ -= count;
    done_ = body_left_ == 0;
    return count;
  }
  const size_t taken = chunks_->feed(bytes, body);
  done_ = chunks_->done();
  switch (chunks_->fault()) {
    case ChunkDecoder::Fault::kNone:
      break;
    case ChunkDecoder::Fault::kMalformed:
      fail(400, "malformed request: bad chunk");
      break;
    case ChunkDecoder::Fault::kBodyTooLarge:
      fail_body();
      break;
    case ChunkDecoder::Fault::kLineTooLong:
      fail(431, fmt::format("a chunk's extension or trailer is larger than {} bytes",
                            header_bytes_max_));
      break;
  }
  return taken;
}

void RequestReader::fail_body() {
  fail(413, fmt::format("the request body is larger than {} bytes", body_bytes_max_));
}

bool RequestReader::wants_continue() const {
  return parser_->header_done && parser_->expects_continue && !parser_->http_1_0 && !done();
}

bool RequestReader::keep_alive() const {
  return parser_->keep_alive();
}

bool RequestReader::is_http_1_0() const {
  return parser_->http_1_0;
}

Request RequestReader::take() {
  return std::move(parser_->request);
}

}  // namespace tessera::http
