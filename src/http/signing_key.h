// An ECDSA P-256 key that signs and verifies JSON Web Tokens (ES256), and base64url.
//
// Errors:  kBadRequest for PEM text that is no such key, kInternal where OpenSSL fails.
// Threads: any; copies share the key.
// Source:  RFC 7518 3.4 (ES256: r and s, 32 bytes each), RFC 4648 5 (base64url, here without padding).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tessera::http {

class SigningKey {
 public:
  static base::Result<SigningKey> make();
  static base::Result<SigningKey> from_pem(std::string_view pem);

  base::Result<std::string> pem() const;  // PKCS#8
  base::Result<std::string> sign(std::string_view text) const;
  bool verify(std::string_view text, std::string_view signature) const;
  // The public point, 32 bytes each.
  const std::string& x() const;
  const std::string& y() const;
  // base64url of the SHA-256 of the public key's DER: what "kid" names it by.
  const std::string& id() const;

 private:
  struct Impl;
  explicit SigningKey(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  static base::Result<SigningKey> adopt(std::shared_ptr<Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

std::string base64url(std::string_view bytes);
std::optional<std::string> unbase64url(std::string_view text);

}  // namespace tessera::http
