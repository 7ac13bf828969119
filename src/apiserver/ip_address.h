// IP addresses and prefixes as Kubernetes accepts them in its objects.
//
// Shape:   the bytes of an address, 4 or 16 of them.
// Errors:  the validators add causes to a FieldErrors.
// Threads: plain values.
// Source:  k8s.io/apimachinery v0.36.3 pkg/util/validation/ip.go; RFC 4291, RFC 4632.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

struct IpAddress {
  std::array<uint8_t, 16> bytes{};
  int bits = 0;  // 32 or 128

  static std::optional<IpAddress> parse(std::string_view text);
  // "::ffff:1.2.3.4"
  bool is_mapped() const;
  bool is_unspecified() const;
  bool is_loopback() const;
  bool is_link_local() const;
  bool is_link_local_multicast() const;
};

struct IpPrefix {
  IpAddress address;
  int bits = 0;

  // "10.9.8.0/24"; bits beyond the prefix may be set.
  static std::optional<IpPrefix> parse(std::string_view text);
  bool contains(const IpAddress& other) const;
  bool has_bits_beyond() const;
};

void validate_ip(const json::Value& text, const Path& at, FieldErrors& errors);
// An address that a client on another machine can reach.
void validate_endpoint_ip(const json::Value& text, const Path& at, FieldErrors& errors);
// Nothing where it is refused.
std::optional<IpPrefix> validate_prefix(const json::Value& text, const Path& at,
                                        FieldErrors& errors);

}  // namespace tessera::apiserver
