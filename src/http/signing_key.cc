#include "http/signing_key.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/sha.h>

#include "http/openssl_ptr.h"
#include "http/tls.h"

namespace tessera::http {

using base::Code;
using base::Result;

namespace {

constexpr int kHalf = 32;

using DigestPtr = OpensslPtr<EVP_MD_CTX, EVP_MD_CTX_free>;
using SignaturePtr = OpensslPtr<ECDSA_SIG, ECDSA_SIG_free>;
using NumberPtr = OpensslPtr<BIGNUM, BN_free>;

tl::unexpected<base::Error> failed(std::string_view what) {
  return base::error(Code::kInternal, "cannot {}: {}", what, openssl_error());
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::optional<std::string> coordinate(const EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) return std::nullopt;
  const NumberPtr owned(number);
  std::string out(kHalf, '\0');
  if (BN_bn2binpad(number, reinterpret_cast<unsigned char*>(out.data()), kHalf) != kHalf) {
    return std::nullopt;
  }
  return out;
}

// The two numbers of a DER signature side by side.
std::optional<std::string> joined(std::string_view der) {
  const unsigned char* at = bytes_of(der);
  const SignaturePtr parts(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  if (!parts) return std::nullopt;
  std::string out(2 * kHalf, '\0');
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  if (BN_bn2binpad(ECDSA_SIG_get0_r(parts.get()), to, kHalf) != kHalf ||
      BN_bn2binpad(ECDSA_SIG_get0_s(parts.get()), to + kHalf, kHalf) != kHalf) {
    return std::nullopt;
  }
  return out;
}

std::optional<std::string> to_der(std::string_view signature) {
  NumberPtr r(BN_bin2bn(bytes_of(signature), kHalf, nullptr));
  NumberPtr s(BN_bin2bn(bytes_of(signature) + kHalf, kHalf, nullptr));
  const SignaturePtr parts(ECDSA_SIG_new());
  if (!r || !s || !parts || ECDSA_SIG_set0(parts.get(), r.get(), s.get()) != 1) {
    return std::nullopt;
  }
  (void)r.release();  // set0 took them
  (void)s.release();
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(parts.get(), &der);
  if (size <= 0) return std::nullopt;
  std::string out(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return out;
}

std::string id_of(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) return {};
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<size_t>(size), digest);
  OPENSSL_free(der);
  return base64url({reinterpret_cast<char*>(digest), sizeof digest});
}

}  // namespace

struct SigningKey::Impl {
  KeyPtr key;
  std::string x;
  std::string y;
  std::string id;
};

Result<SigningKey> SigningKey::adopt(std::shared_ptr<Impl> impl) {
  const auto x = coordinate(impl->key.get(), OSSL_PKEY_PARAM_EC_PUB_X);
  const auto y = coordinate(impl->key.get(), OSSL_PKEY_PARAM_EC_PUB_Y);
  if (!x || !y || EVP_PKEY_get_bits(impl->key.get()) != 8 * kHalf) {
    ERR_clear_error();
    return base::error(Code::kBadRequest, "the token key is not an ECDSA P-256 key");
  }
  impl->x = *x;
  impl->y = *y;
  impl->id = id_of(impl->key.get());
  if (impl->id.empty()) return failed("name a token key");
  return SigningKey(std::move(impl));
}

Result<SigningKey> SigningKey::make() {
  ERR_clear_error();
  auto impl = std::make_shared<Impl>();
  impl->key.reset(EVP_EC_gen("P-256"));
  if (!impl->key) return failed("make a token key");
  return adopt(std::move(impl));
}

Result<SigningKey> SigningKey::from_pem(std::string_view pem) {
  auto impl = std::make_shared<Impl>();
  TS_TRY(impl->key, read_private_key(pem, "token key"));
  return adopt(std::move(impl));
}

Result<std::string> SigningKey::pem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), impl_->key.get(), nullptr, nullptr, 0,
                                            nullptr, nullptr) != 1) {
    return failed("write a token key as PEM");
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

Result<std::string> SigningKey::sign(std::string_view text) const {
  ERR_clear_error();
  const DigestPtr digest(EVP_MD_CTX_new());
  size_t size = 0;
  if (!digest ||
      EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, impl_->key.get()) != 1 ||
      EVP_DigestSign(digest.get(), nullptr, &size, bytes_of(text), text.size()) != 1) {
    return failed("sign a token");
  }
  std::string der(size, '\0');
  if (EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(der.data()), &size,
                     bytes_of(text), text.size()) != 1) {
    return failed("sign a token");
  }
  der.resize(size);
  const auto signature = joined(der);
  if (!signature) return failed("sign a token");
  return *signature;
}

bool SigningKey::verify(std::string_view text, std::string_view signature) const {
  if (signature.size() != 2 * kHalf) return false;
  const auto der = to_der(signature);
  const DigestPtr digest(EVP_MD_CTX_new());
  const bool good =
      der && digest &&
      EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, impl_->key.get()) == 1 &&
      EVP_DigestVerify(digest.get(), bytes_of(*der), der->size(), bytes_of(text), text.size()) == 1;
  ERR_clear_error();
  return good;
}

const std::string& SigningKey::x() const {
  return impl_->x;
}
const std::string& SigningKey::y() const {
  return impl_->y;
}
const std::string& SigningKey::id() const {
  return impl_->id;
}

std::string base64url(std::string_view bytes) {
  std::string out = base64(bytes);
  while (out.ends_with('=')) out.pop_back();
  for (char& c : out) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return out;
}

std::optional<std::string> unbase64url(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (c == '+' || c == '/' || c == '=') return std::nullopt;
    c = c == '-' ? '+' : c == '_' ? '/' : c;
  }
  while (plain.size() % 4 != 0) plain += '=';
  auto bytes = unbase64(plain);
  if (!bytes) return std::nullopt;
  return std::move(*bytes);
}

}  // namespace tessera::http
