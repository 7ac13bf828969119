// RFC 4648 section 4: the usual alphabet, padded. Decoding takes line breaks (as PEM and YAML fold
// them) and nothing else.

#include <array>

#include "http/tls.h"

namespace tessera::http {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> make_values() {
  std::array<int8_t, 256> values{};
  for (auto& value : values) value = -1;
  for (int8_t i = 0; i < 64; ++i) values[static_cast<unsigned char>(kAlphabet[i])] = i;
  return values;
}
constexpr std::array<int8_t, 256> kValues = make_values();

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0);
    }
    out += kAlphabet[group >> 18];
    out += kAlphabet[group >> 12 & 63];
    out += count > 1 ? kAlphabet[group >> 6 & 63] : '=';
    out += count > 2 ? kAlphabet[group & 63] : '=';
  }
  return out;
}

base::Result<std::string> unbase64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  size_t digits = 0;
  size_t padding = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n' || c == '\r') continue;
    const int8_t value = c == '=' ? int8_t{0} : kValues[static_cast<unsigned char>(c)];
    if (value < 0 || (padding > 0 && c != '=')) {
      return base::error(base::Code::kBadRequest, "not base64 at byte {}", i);
    }
    padding += c == '=' ? 1 : 0;
    group = group << 6 | static_cast<uint32_t>(value);
    if (++digits % 4 == 0) {
      for (const int shift : {16, 8, 0}) out += static_cast<char>(group >> shift & 255);
      group = 0;
    }
  }
  if (digits % 4 != 0 || padding > 2) {
    return base::error(base::Code::kBadRequest,
                       "base64 text is cut short or wrongly padded after {} digits", digits);
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace tessera::http
