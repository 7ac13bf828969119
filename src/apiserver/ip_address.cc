#include "apiserver/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kTextMax = 64;

bool bit_of(const IpAddress& address, int index) {
  return (address.bytes[static_cast<size_t>(index / 8)] >> (7 - index % 8) & 1) != 0;
}

bool all_zero(const IpAddress& address, size_t first, size_t last) {
  return std::all_of(address.bytes.begin() + static_cast<std::ptrdiff_t>(first),
                     address.bytes.begin() + static_cast<std::ptrdiff_t>(last),
                     [](uint8_t byte) { return byte == 0; });
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  if (text.size() > kTextMax || text.find('\0') != text.npos) return std::nullopt;
  const std::string whole(text);
  IpAddress out;
  out.bits = 32;
  if (inet_pton(AF_INET, whole.c_str(), out.bytes.data()) == 1) return out;
  out.bits = 128;
  if (inet_pton(AF_INET6, whole.c_str(), out.bytes.data()) == 1) return out;
  return std::nullopt;
}

bool IpAddress::is_mapped() const {
  return bits == 128 && all_zero(*this, 0, 10) && bytes[10] == 0xff && bytes[11] == 0xff;
}

bool IpAddress::is_unspecified() const {
  return all_zero(*this, 0, bytes.size());
}

bool IpAddress::is_loopback() const {
  if (bits == 32) return bytes[0] == 127;
  return all_zero(*this, 0, 15) && bytes[15] == 1;
}

bool IpAddress::is_link_local() const {
  if (bits == 32) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool IpAddress::is_link_local_multicast() const {
  if (bits == 32) return bytes[0] == 224 && bytes[1] == 0 && bytes[2] == 0;
  return bytes[0] == 0xff && (bytes[1] & 0x0f) == 0x02;
}

std::optional<IpPrefix> IpPrefix::parse(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  const auto address = IpAddress::parse(text.substr(0, slash));
  const std::string_view digits = text.substr(slash + 1);
  if (!address || digits.empty() || digits.size() > 3) return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  int bits = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (bits < 0 || bits > address->bits) return std::nullopt;
  return IpPrefix{*address, bits};
}

bool IpPrefix::contains(const IpAddress& other) const {
  if (other.bits != address.bits) return false;
  for (int i = 0; i < bits; ++i) {
    if (bit_of(other, i) != bit_of(address, i)) return false;
  }
  return true;
}

bool IpPrefix::has_bits_beyond() const {
  for (int i = bits; i < address.bits; ++i) {
    if (bit_of(address, i)) return true;
  }
  return false;
}

void validate_ip(const Value& text, const Path& at, FieldErrors& errors) {
  const auto address = IpAddress::parse(text.as_string());
  if (!address) {
    errors.invalid(at.text(), text,
                   "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
  } else if (address->is_mapped()) {
    errors.invalid(at.text(), text, "must not be an IPv4-mapped IPv6 address");
  }
}

void validate_endpoint_ip(const Value& text, const Path& at, FieldErrors& errors) {
  const auto address = IpAddress::parse(text.as_string());
  if (!address) {
    errors.invalid(at.text(), text, "must be a valid IP address");
    return;
  }
  if (address->is_unspecified()) {
    errors.invalid(at.text(), text, fmt::format("may not be unspecified ({})", text.as_string()));
  }
  if (address->is_loopback()) {
    errors.invalid(at.text(), text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  }
  if (address->is_link_local()) {
    errors.invalid(at.text(), text,
                   "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  }
  if (address->is_link_local_multicast()) {
    errors.invalid(at.text(), text,
                   "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
}

std::optional<IpPrefix> validate_prefix(const Value& text, const Path& at, FieldErrors& errors) {
  const auto prefix = IpPrefix::parse(text.as_string());
  if (!prefix) {
    errors.invalid(at.text(), text,
                   "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
  } else if (prefix->address.is_mapped()) {
    errors.invalid(at.text(), text, "must not have an IPv4-mapped IPv6 address");
  } else if (prefix->has_bits_beyond()) {
    errors.invalid(at.text(), text, "must not have bits set beyond the prefix length");
  }
  return prefix;
}

}  // namespace tessera::apiserver
