#include "http/response_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "http/response_head.h"

namespace tessera::http {
namespace {

constexpr size_t kHeadBytesMax = size_t{256} << 10;
constexpr size_t kChunkLineMax = size_t{16} << 10;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

ResponseReader::State ResponseReader::fail(std::string problem) {
  problem_ = std::move(problem);
  keeps_ = false;
  return state_ = State::kFailed;
}

ResponseReader::State ResponseReader::feed(std::string_view bytes) {
  if (bytes.empty() || state_ == State::kFailed) return state_;
  begun_ = true;
  if (state_ == State::kHead) {
    head_.append(bytes);
    return read_head();
  }
  return feed_body(bytes);
}

// Heads of status 1xx may come before the one that counts.
ResponseReader::State ResponseReader::read_head() {
  while (true) {
    const size_t end = head_.find("\r\n\r\n");
    if (std::min(end, head_.size()) > kHeadBytesMax) {
      return fail(fmt::format("the header of the answer is over {} bytes", kHeadBytesMax));
    }
    if (end == std::string::npos) return state_;
    const std::string head = head_.substr(0, end);
    head_.erase(0, end + 4);
    response_ = {};
    response_.status = 0;
    response_.content_type.clear();
    length_.reset();
    chunked_ = false;
    for (size_t at = 0; at <= head.size();) {
      const size_t stop = std::min(head.find("\r\n", at), head.size());
      if (header(std::string_view(head).substr(at, stop - at)) == State::kFailed) return state_;
      at = stop + 2;
    }
    if (response_.status == 101) return fail("the server changes the protocol unasked");
    if (response_.status >= 200) return begin_body();
  }
}

// The status line is the first one.
ResponseReader::State ResponseReader::header(std::string_view line) {
  if (response_.status == 0) {
    int status = 0;
    if (line.size() >= 12 && line.starts_with("HTTP/1.")) {
      std::from_chars(line.data() + 9, line.data() + 12, status);
    }
    if (status < 100 || status > 599) return fail("the answer is not HTTP/1.1");
    response_.status = status;
    if (line[7] == '0') keeps_ = false;
    return state_;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return state_;
  std::string name = lower(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "content-type") response_.content_type = std::string(value);
  if (name == "connection" && lower(value).find("close") != std::string::npos) keeps_ = false;
  if (name == "transfer-encoding") chunked_ = lower(value).ends_with("chunked");
  if (name == "content-length") {
    uint64_t length = 0;
    const auto [stop, bad] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (bad != std::errc() || stop != value.data() + value.size() ||
        (length_ && *length_ != length)) {
      return fail("the answer's Content-Length is no length");
    }
    length_ = length;
  }
  response_.headers.emplace_back(std::move(name), std::string(value));
  return state_;
}

ResponseReader::State ResponseReader::begin_body() {
  const size_t most = response_.status == 200 ? limits_.body_of_200 : limits_.body;
  if (to_head_ || !has_body(response_.status)) {
    length_ = 0;
    chunked_ = false;
  }
  if (chunked_) {
    if (length_) keeps_ = false;  // the two disagree about where the next answer starts
    chunks_.emplace(most, kChunkLineMax);
  } else if (length_ && *length_ > most) {
    too_large_ = true;
    return fail("the answer is too large");
  } else if (!length_) {
    keeps_ = false;
  }
  state_ = State::kBody;
  const std::string rest = std::move(head_);
  head_.clear();
  return feed_body(rest);
}

bool ResponseReader::fits(size_t more) {
  const size_t most = response_.status == 200 ? limits_.body_of_200 : limits_.body;
  return more <= most && taken_ <= most - more;
}

ResponseReader::State ResponseReader::feed_body(std::string_view bytes) {
  if (state_ == State::kDone) {
    if (!bytes.empty()) keeps_ = false;  // nobody asked for what comes now
    return state_;
  }
  if (chunks_) {
    const size_t used = chunks_->feed(bytes, response_.body);
    if (chunks_->fault() != ChunkDecoder::Fault::kNone) {
      too_large_ = chunks_->fault() == ChunkDecoder::Fault::kBodyTooLarge;
      return fail(too_large_ ? "the answer is too large" : "the answer's chunks are malformed");
    }
    if (chunks_->done()) {
      state_ = State::kDone;
      if (used < bytes.size()) keeps_ = false;
    }
    return state_;
  }
  if (!length_) {
    if (!fits(bytes.size())) {
      too_large_ = true;
      return fail("the answer is too large");
    }
    taken_ += bytes.size();
    response_.body.append(bytes);
    return state_;
  }
  const size_t part = static_cast<size_t>(std::min<uint64_t>(bytes.size(), *length_ - taken_));
  response_.body.append(bytes.substr(0, part));
  taken_ += part;
  if (part < bytes.size()) keeps_ = false;
  if (taken_ == *length_) state_ = State::kDone;
  return state_;
}

ResponseReader::State ResponseReader::closed() {
  keeps_ = false;
  if (state_ == State::kDone || state_ == State::kFailed) return state_;
  if (state_ == State::kBody && !chunks_ && !length_) return state_ = State::kDone;
  return fail("the connection was cut within the answer");
}

}  // namespace tessera::http
