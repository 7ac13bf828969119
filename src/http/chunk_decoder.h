// Decodes a chunked body byte by byte: strict, bounded, nothing kept back. Beast's own decoder asserts on a last chunk that
// comes in pieces ("0\r\n", then "\r\n"), which any peer may send.
//
// Format:  HEX-SIZE [;EXTENSION] CRLF DATA CRLF ... 0 [;EXTENSION] CRLF *(TRAILER CRLF) CRLF
// Source:  RFC 9112 7.1. Extensions and trailers are read over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::http {

class ChunkDecoder {
 public:
  enum class Fault { kNone, kMalformed, kBodyTooLarge, kLineTooLong };

  // `line_bytes_max` holds for each chunk's line, and for all trailers together.
  ChunkDecoder(size_t body_bytes_max, size_t line_bytes_max)
      : body_bytes_max_(body_bytes_max), line_bytes_max_(line_bytes_max) {}

  // Appends what it decodes; returns how much it took: all, up to the end or the fault.
  size_t feed(std::string_view bytes, std::string& body);
  bool done() const { return state_ == State::kDone; }
  Fault fault() const { return fault_; }

 private:
  enum class State {
    kSizeFirst,
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerFirst,
    kTrailer,
    kTrailerLf,
    kLastLf,
    kDone,
  };

  void step(char c);
  void size_digit(char c);
  void line_byte(State next, char c);
  void expect(char c, char wanted, State next);
  void end_of_size_line(char c);

  const size_t body_bytes_max_;
  const size_t line_bytes_max_;
  State state_ = State::kSizeFirst;
  Fault fault_ = Fault::kNone;
  uint64_t chunk_left_ = 0;
  size_t body_bytes_ = 0;
  size_t line_bytes_ = 0;
};

}  // namespace tessera::http
