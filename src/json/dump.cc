// Writing JSON text: Value::dump and its kin.

#include <array>
#include <charconv>
#include <cmath>

#include "json/value.h"

namespace tessera::json {
namespace {

void write_escaped(std::string_view s, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  size_t clean = 0;  // start of the run that needs no escape
  for (size_t i = 0; i < s.size(); ++i) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(s, clean, i - clean);
    clean = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
    }
  }
  out.append(s, clean, s.size() - clean);
  out += '"';
}

// Shortest text that reads back, in Go's choice of notation: plain between 1e-6 and 1e21, else with an exponent.
void write_double(double d, std::string& out) {
  if (!std::isfinite(d)) {
    out += "null";
    return;
  }
  if (d == 0) {  // also -0, which would read back as the integer 0
    out += '0';
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
  out += text;
}

struct Writer {
  std::string& out;
  bool pretty;

  void line(int depth) {
    if (!pretty) return;
    out += '\n';
    out.append(static_cast<size_t>(depth) * 4, ' ');
  }

  void write(const Value& v, int depth) {
    switch (v.type()) {
      case Type::kNull:
        out += "null";
        return;
      case Type::kBool:
        out += v.as_bool() ? "true" : "false";
        return;
      case Type::kInt: {
        std::array<char, 24> buffer;
        const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v.as_int());
        out.append(buffer.data(), end.ptr);
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
    out += '[';
    bool first = true;
    for (const Value& item : v.items()) {
      if (!first) out += ',';
      first = false;
      line(depth + 1);
      write(item, depth + 1);
    }
    if (!first) line(depth);
    out += ']';
  }

  void write_object(const Value& v, int depth) {
    out += '{';
    bool first = true;
    for (const Member& member : v.members()) {
      if (!first) out += ',';
      first = false;
      line(depth + 1);
      write_escaped(member.name(), out);
      out += pretty ? ": " : ":";
      write(member.value, depth + 1);
    }
    if (!first) line(depth);
    out += '}';
  }
};

}  // namespace

std::string Value::dump() const {
  std::string out;
  dump_to(out);
  return out;
}

void Value::dump_to(std::string& out) const {
  Writer{out, false}.write(*this, 0);
}

std::string Value::dump_pretty() const {
  std::string out;
  Writer{out, true}.write(*this, 0);
  return out;
}

}  // namespace tessera::json
