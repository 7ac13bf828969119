#include "http/chunk_decoder.h"

#include <algorithm>

namespace tessera::http {

size_t ChunkDecoder::feed(std::string_view bytes, std::string& body) {
  size_t at = 0;
  while (at < bytes.size() && !done() && fault_ == Fault::kNone) {
    if (state_ != State::kData) {
      step(bytes[at++]);
      continue;
    }
    const auto count = static_cast<size_t>(std::min<uint64_t>(chunk_left_, bytes.size() - at));
    body.append(bytes.substr(at, count));
    at += count;
    chunk_left_ -= count;
    if (chunk_left_ == 0) state_ = State::kDataCr;
  }
  return at;
}

void ChunkDecoder::step(char c) {
  switch (state_) {
    case State::kSizeFirst:
    case State::kSize:
      return size_digit(c);
    case State::kExtension:
      return c == '\r' ? expect(c, '\r', State::kSizeLf) : line_byte(State::kExtension, c);
    case State::kSizeLf:
      return end_of_size_line(c);
    case State::kDataCr:
      return expect(c, '\r', State::kDataLf);
    case State::kDataLf:
      return expect(c, '\n', State::kSizeFirst);
    case State::kTrailerFirst:
      return c == '\r' ? expect(c, '\r', State::kLastLf) : line_byte(State::kTrailer, c);
    case State::kTrailer:
      return c == '\r' ? expect(c, '\r', State::kTrailerLf) : line_byte(State::kTrailer, c);
    case State::kTrailerLf:
      return expect(c, '\n', State::kTrailerFirst);
    case State::kLastLf:
      return expect(c, '\n', State::kDone);
    case State::kData:
    case State::kDone:
      return;
  }
}

void ChunkDecoder::size_digit(char c) {
  int digit = -1;
  if (c >= '0' && c <= '9') digit = c - '0';
  if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
  if (state_ == State::kSizeFirst) {
    line_bytes_ = 0;
    if (digit < 0) {
      fault_ = Fault::kMalformed;
      return;
    }
  }
  if (digit >= 0) {
    // A size past the limit stays past it, so that it cannot wrap around.
    chunk_left_ =
        std::min<uint64_t>(chunk_left_, UINT64_MAX >> 8) * 16 + static_cast<uint64_t>(digit);
    line_byte(State::kSize, c);
  } else if (c == '\r') {
    state_ = State::kSizeLf;
  } else if (c == ';' || c == ' ' || c == '\t') {
    line_byte(State::kExtension, c);
  } else {
    fault_ = Fault::kMalformed;
  }
}

void ChunkDecoder::line_byte(State next, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if ((byte < 0x20 && c != '\t') || byte == 0x7f) {
    fault_ = Fault::kMalformed;
  } else if (++line_bytes_ > line_bytes_max_) {
    fault_ = Fault::kLineTooLong;
  } else {
    state_ = next;
  }
}

void ChunkDecoder::expect(char c, char wanted, State next) {
  if (c != wanted) {
    fault_ = Fault::kMalformed;
  } else {
    state_ = next;
  }
}

void ChunkDecoder::end_of_size_line(char c) {
  if (c != '\n') {
    fault_ = Fault::kMalformed;
  } else if (chunk_left_ == 0) {
    line_bytes_ = 0;
    state_ = State::kTrailerFirst;
  } else if (chunk_left_ > body_bytes_max_ - body_bytes_) {
    fault_ = Fault::kBodyTooLarge;
  } else {
    body_bytes_ += static_cast<size_t>(chunk_left_);
    state_ = State::kData;
  }
}

}  // namespace tessera::http
