// Reads one HTTP/1.x request from bytes as they come; no I/O.
//
// Shape:   feed() until done() or failed(); then take() the request, and a new reader reads the
//          next one.
// Errors:  as an HTTP status with a sentence: 400 malformed, 413 body and 431 header too large, 501
//          unknown transfer encoding, 505 version.
// Source:  RFC 9112; the header is parsed by Boost.Beast's basic_parser, the body is read here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "http/server.h"

namespace tessera::http {

class ChunkDecoder;

class RequestReader {
 public:
  RequestReader(size_t header_bytes_max, size_t body_bytes_max);
  ~RequestReader();

  // Takes bytes from the front and says how many; the rest must be handed in again with what
  // follows.
  size_t feed(std::string_view bytes);

  bool done() const { return done_ && !failed(); }
  bool failed() const { return error_status_ != 0; }
  int error_status() const { return error_status_; }
  const std::string& error_text() const { return error_text_; }
  // The header is complete and the client waits for "100 Continue" before it sends the body.
  bool wants_continue() const;
  bool keep_alive() const;
  bool is_http_1_0() const;
  Request take();

 private:
  struct Parser;
  void fail(int status, std::string text);
  void fail_body();
  size_t feed_header(std::string_view bytes);
  void begin_body();
  size_t feed_body(std::string_view bytes);

  std::unique_ptr<Parser> parser_;
  size_t header_bytes_max_;
  size_t body_bytes_max_;
  std::unique_ptr<ChunkDecoder> chunks_;
  size_t body_left_ = 0;
  bool done_ = false;
  int error_status_ = 0;
  std::string error_text_;
};

}  // namespace tessera::http
