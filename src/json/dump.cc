// Writing JSON text: Value::dump and its kin.

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "json/value.h"

namespace tessera::json {
namespace {

// Collects small pieces before they go to the text.
class Chunk {
 public:
  explicit Chunk(std::string& out) : out_(out) {}
  ~Chunk() { flush(); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  void put(char c) {
    if (used_ == bytes_.size()) flush();
    bytes_[used_++] = c;
  }
  void put(std::string_view s) {
    if (s.size() > bytes_.size() - used_) {
      flush();
      if (s.size() > bytes_.size()) {
        out_.append(s);
        return;
      }
    }
    if (!s.empty()) std::memcpy(bytes_.data() + used_, s.data(), s.size());
    used_ += s.size();
  }

 private:
  void flush() {
    out_.append(bytes_.data(), used_);
    used_ = 0;
  }

  std::string& out_;
  size_t used_ = 0;
  std::array<char, 4096> bytes_;
};

bool needs_escape(unsigned char c) {
  return c < 0x20 || c == '"' || c == '\\';
}

// True when one of 8 bytes may need an escape: the usual tricks for "less than" and "equal" on bytes side by side.
bool may_need_escape(const char* eight) {
  constexpr uint64_t kOnes = 0x0101010101010101U;
  constexpr uint64_t kTops = 0x8080808080808080U;
  uint64_t word;
  std::memcpy(&word, eight, sizeof word);
  const uint64_t quotes = word ^ (kOnes * '"');
  const uint64_t slashes = word ^ (kOnes * '\\');
  const uint64_t low = (word - kOnes * 0x20) | (quotes - kOnes) | (slashes - kOnes);
  return (low & ~word & kTops) != 0;
}

// Where the first byte is that needs an escape, at or after `from`.
size_t next_escape(std::string_view s, size_t from) {
  while (from + 8 <= s.size() && !may_need_escape(s.data() + from)) from += 8;
  while (from < s.size() && !needs_escape(static_cast<unsigned char>(s[from]))) ++from;
  return from;
}

void write_escape(unsigned char c, Chunk& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      return out.put("\\\"");
    case '\\':
      return out.put("\\\\");
    case '\n':
      return out.put("\\n");
    case '\r':
      return out.put("\\r");
    case '\t':
      return out.put("\\t");
    default:
      out.put("\\u00");
      out.put(kHex[c >> 4]);
      out.put(kHex[c & 15]);
  }
}

void write_escaped(std::string_view s, Chunk& out) {
  out.put('"');
  size_t clean = 0;  // start of the run that needs no escape
  for (size_t at = next_escape(s, 0); at < s.size(); at = next_escape(s, clean)) {
    out.put(s.substr(clean, at - clean));
    write_escape(static_cast<unsigned char>(s[at]), out);
    clean = at + 1;
  }
  out.put(s.substr(clean));
  out.put('"');
}

// Shortest text that reads back, in Go's choice of notation: plain between 1e-6 and 1e21, else with an exponent.
void write_double(double d, Chunk& out) {
  if (!std::isfinite(d)) {
    out.put("null");
    return;
  }
  if (d == 0) {  // also -0, which would read back as the integer 0
    out.put('0');
    return;
  }
  const double magnitude = std::fabs(d);
  const bool plain = magnitude >= 1e-6 && magnitude < 1e21;
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), d,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer.data(), end.ptr);
  // Go writes e-7 where C++ writes e-07.
  if (const size_t e = text.find('e');
      e != std::string::npos && text.size() == e + 4 && text[e + 1] == '-' && text[e + 2] == '0') {
    text.erase(e + 2, 1);
  }
  out.put(text);
}

struct Writer {
  Chunk out;
  bool pretty;

  void line(int depth) {
    if (!pretty) return;
    out.put('\n');
    for (int i = 0; i < depth; ++i) out.put("    ");
  }

  void write(const Value& v, int depth) {
    switch (v.type()) {
      case Type::kNull:
        out.put("null");
        return;
      case Type::kBool:
        out.put(v.as_bool() ? "true" : "false");
        return;
      case Type::kInt: {
        std::array<char, 24> buffer;
        const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v.as_int());
        out.put({buffer.data(), static_cast<size_t>(end.ptr - buffer.data())});
        return;
      }
      case Type::kDouble:
        write_double(v.as_double(), out);
        return;
      case Type::kString:
        write_escaped(v.as_string(), out);
        return;
      case Type::kArray:
        write_array(v, depth);
        return;
      case Type::kObject:
        write_object(v, depth);
        return;
    }
  }

  void write_array(const Value& v, int depth) {
    out.put('[');
    bool first = true;
    for (const Value& item : v.items()) {
      if (!first) out.put(',');
      first = false;
      line(depth + 1);
      write(item, depth + 1);
    }
    if (!first) line(depth);
    out.put(']');
  }

  void write_object(const Value& v, int depth) {
    out.put('{');
    bool first = true;
    for (const Member& member : v.members()) {
      if (!first) out.put(',');
      first = false;
      line(depth + 1);
      write_escaped(member.name(), out);
      out.put(pretty ? ": " : ":");
      write(member.value, depth + 1);
    }
    if (!first) line(depth);
    out.put('}');
  }
};

}  // namespace

std::string Value::dump() const {
  std::string out;
  dump_to(out);
  return out;
}

void Value::dump_to(std::string& out) const {
  Writer{Chunk(out), false}.write(*this, 0);
}

std::string Value::dump_pretty() const {
  std::string out;
  Writer{Chunk(out), true}.write(*this, 0);
  return out;
}

}  // namespace tessera::json
