// Reads one answer of a server from the bytes of a connection.
//
// Shape:   feed() what comes until done or failed; closed() when the peer ends. Answers of status 1xx are read over. The
//          body collects in response().body, whence a stream's owner may take it as it comes.
// Errors:  State::kFailed with problem(): no HTTP/1.x, a header or body over its limit, a cut.
// Threads: one.
// Source:  RFC 9112 (framing).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/chunk_decoder.h"
#include "http/server.h"

namespace tessera::http {

class ResponseReader {
 public:
  struct Limits {
    size_t body = 0;         // of an answer
    size_t body_of_200 = 0;  // of one with status 200
  };
  enum class State : uint8_t { kHead, kBody, kDone, kFailed };

  // Answers to HEAD have no body, whatever their header says.
  ResponseReader(Limits limits, bool to_head) : limits_(limits), to_head_(to_head) {}

  State feed(std::string_view bytes);
  State closed();
  State state() const { return state_; }
  Response& response() { return response_; }
  // Whether anything has come at all.
  bool begun() const { return begun_; }
  // Whether the connection may carry another request.
  bool keeps() const { return keeps_; }
  bool too_large() const { return too_large_; }
  const std::string& problem() const { return problem_; }

 private:
  State fail(std::string problem);
  State read_head();
  State header(std::string_view line);
  State begin_body();
  State feed_body(std::string_view bytes);
  bool fits(size_t more);

  const Limits limits_;
  const bool to_head_;
  State state_ = State::kHead;
  Response response_;
  std::string head_;
  std::string problem_;
  std::optional<ChunkDecoder> chunks_;
  std::optional<uint64_t> length_;  // none: until the peer closes
  uint64_t taken_ = 0;
  bool chunked_ = false;
  bool begun_ = false;
  bool keeps_ = true;
  bool too_large_ = false;
};

}  // namespace tessera::http
