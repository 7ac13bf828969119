#include "json/yaml_scalar.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

namespace tessera::json {
namespace {

struct Word {
  std::string_view text;
  Value value;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

const Value* find_word(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static const std::array<Word, 39> kWords = {{{"", {}},
                                               {"~", {}},
                                               {"null", {}},
                                               {"Null", {}},
                                               {"NULL", {}},
                                               {"y", true},
                                               {"Y", true},
                                               {"yes", true},
                                               {"Yes", true},
                                               {"YES", true},
                                               {"true", true},
                                               {"True", true},
                                               {"TRUE", true},
                                               {"on", true},
                                               {"On", true},
                                               {"ON", true},
                                               {"n", false},
                                               {"N", false},
                                               {"no", false},
                                               {"No", false},
                                               {"NO", false},
                                               {"false", false},
                                               {"False", false},
                                               {"FALSE", false},
                                               {"off", false},
                                               {"Off", false},
                                               {"OFF", false},
                                               {".inf", kInfinity},
                                               {".Inf", kInfinity},
                                               {".INF", kInfinity},
                                               {"+.inf", kInfinity},
                                               {"+.Inf", kInfinity},
                                               {"+.INF", kInfinity},
                                               {"-.inf", -kInfinity},
                                               {"-.Inf", -kInfinity},
                                               {"-.INF", -kInfinity},
                                               {".nan", std::numeric_limits<double>::quiet_NaN()},
                                               {".NaN", std::numeric_limits<double>::quiet_NaN()},
                                               {".NAN", std::numeric_limits<double>::quiet_NaN()}}};
  for (const Word& word : kWords) {
    if (word.text == text) return &word.value;
  }
  return nullptr;
}

// "-0x1F", "017", "0b11": a whole number in any of Go's notations; doubles where 64 bits unsigned hold it but not signed.
std::optional<Value> read_int(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : (mark == 'b' ? 2 : 8);
    text.remove_prefix(base != 8 || mark == 'o' ? 2 : 1);
  }
  if (text.empty()) return std::nullopt;
  uint64_t magnitude = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  constexpr uint64_t kTop = uint64_t{1} << 63;
  if (negative) {
    if (magnitude > kTop) return std::nullopt;
    return Value(static_cast<int64_t>(~magnitude + 1));
  }
  if (magnitude >= kTop) return Value(static_cast<double>(magnitude));
  return Value(static_cast<int64_t>(magnitude));
}

// [-+]?(.5|5|5.|5.5)(e[-+]?5)?
bool looks_like_float(std::string_view text) {
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const auto digits = [&] {
    const size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - from;
  };
  const size_t whole = digits();
  size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    fraction = digits();
  }
  if (whole + fraction == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

std::optional<Value> read_float(std::string_view text) {
  if (!looks_like_float(text)) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  double number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec == std::errc::result_out_of_range) {
    // Too small is zero; too large stays text.
    const size_t e = text.find_first_of("eE");
    const bool small = e != text.npos && e + 1 < text.size() && text[e + 1] == '-';
    return small ? std::optional<Value>(0.0) : std::nullopt;
  }
  if (end.ec != std::errc()) return std::nullopt;
  return Value(number);
}

}  // namespace

Value resolve_plain(std::string_view text) {
  if (const Value* word = find_word(text)) return *word;
  const char first = text[0];
  if (first == '.') return read_float(text).value_or(Value(text));
  if (!is_digit(first) && first != '-' && first != '+') return Value(text);
  std::string plain(text);
  std::erase(plain, '_');
  if (const auto number = read_int(plain)) return *number;
  if (const auto number = read_float(plain)) return *number;
  return Value(text);
}

namespace {

// Bytes of the well-formed sequence at `at`; 0 where it is not one.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : (lead >= 0xe0 ? 3 : 2);
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;  // surrogates
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

}  // namespace

size_t find_bad_yaml_byte(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto c = static_cast<unsigned char>(text[at]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) return at;
    const size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return text.npos;
}

}  // namespace tessera::json
