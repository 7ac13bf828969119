#include "http/tls.h"

#include <arpa/inet.h>
#include <openssl/pem.h>

#include <ctime>

#include "http/openssl_ptr.h"

namespace tessera::http {

using base::Code;
using base::Result;
using base::Status;

std::string openssl_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

BioPtr bio_over(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<CertificatePtr> read_certificate(std::string_view pem, std::string_view what) {
  ERR_clear_error();
  const BioPtr bio = bio_over(pem);
  CertificatePtr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    return base::error(Code::kBadRequest, "the {} is not a PEM certificate: {}", what,
                       openssl_error());
  }
  return certificate;
}

Result<KeyPtr> read_private_key(std::string_view pem, std::string_view what) {
  ERR_clear_error();
  const BioPtr bio = bio_over(pem);
  // Without a callback OpenSSL would ask for a pass phrase on the terminal.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (!key) {
    return base::error(Code::kBadRequest, "the {} is not an unencrypted PEM key: {}", what,
                       openssl_error());
  }
  return key;
}

namespace {

using AsnStringPtr = OpensslPtr<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free>;
using NamesPtr = OpensslPtr<GENERAL_NAMES, GENERAL_NAMES_free>;

tl::unexpected<base::Error> failed(std::string_view what) {
  return base::error(Code::kInternal, "cannot {}: {}", what, openssl_error());
}

Status add_name(X509_NAME* name, const char* field, const std::string& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(value.data());
  if (X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, bytes, static_cast<int>(value.size()),
                                 -1, 0) != 1) {
    const std::string reason = openssl_error();
    return base::error(Code::kBadRequest, "cannot put {}=\"{}\" into a certificate: {}", field,
                       value, reason);
  }
  return {};
}

Status set_time(ASN1_TIME* field, base::Time time) {
  const int64_t seconds = time.ns / 1'000'000'000 - (time.ns % 1'000'000'000 < 0 ? 1 : 0);
  if (ASN1_TIME_set(field, static_cast<time_t>(seconds)) == nullptr) {
    return failed("write a certificate's time");
  }
  return {};
}

// Extensions whose value is fixed text in OpenSSL's configuration syntax: never a caller's text.
Status add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return failed("add a certificate extension");
  }
  return {};
}

Status add_alternative(GENERAL_NAMES* names, int type, const void* data, size_t size) {
  GENERAL_NAME* name = GENERAL_NAME_new();
  ASN1_STRING* value = type == GEN_IPADD ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
  if (name == nullptr || value == nullptr ||
      ASN1_STRING_set(value, data, static_cast<int>(size)) != 1) {
    GENERAL_NAME_free(name);
    ASN1_STRING_free(value);
    return failed("add a name to a certificate");
  }
  GENERAL_NAME_set0_value(name, type, value);
  sk_GENERAL_NAME_push(names, name);
  return {};
}

Status add_alternatives(X509* certificate, const CertificateRequest& request) {
  if (request.dns_names.empty() && request.ip_addresses.empty()) return {};
  const NamesPtr names(sk_GENERAL_NAME_new_null());
  if (!names) return failed("add names to a certificate");
  for (const std::string& dns : request.dns_names) {
    TS_TRY_STATUS(add_alternative(names.get(), GEN_DNS, dns.data(), dns.size()));
  }
  for (const std::string& ip : request.ip_addresses) {
    unsigned char bytes[16];
    const bool v4 = inet_pton(AF_INET, ip.c_str(), bytes) == 1;
    if (!v4 && inet_pton(AF_INET6, ip.c_str(), bytes) != 1) {
      return base::error(Code::kBadRequest, "\"{}\" is not an IP address", ip);
    }
    TS_TRY_STATUS(add_alternative(names.get(), GEN_IPADD, bytes, v4 ? 4 : 16));
  }
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) !=
      1) {
    return failed("add names to a certificate");
  }
  return {};
}

Status set_serial(X509* certificate) {
  const OpensslPtr<BIGNUM, BN_free> number(BN_new());
  // RFC 5280 4.1.2.2: positive, at most 20 octets.
  if (!number || BN_rand(number.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return failed("draw a certificate's serial number");
  }
  return {};
}

// A certificate without extensions, not yet signed.
Result<CertificatePtr> draft(EVP_PKEY* key, const CertificateRequest& request) {
  CertificatePtr certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return failed("make a certificate");
  }
  if (request.not_after <= request.not_before) {
    return base::error(Code::kBadRequest, "the certificate of \"{}\" would end before it begins",
                       request.common_name);
  }
  TS_TRY_STATUS(set_serial(certificate.get()));
  TS_TRY_STATUS(set_time(X509_getm_notBefore(certificate.get()), request.not_before));
  TS_TRY_STATUS(set_time(X509_getm_notAfter(certificate.get()), request.not_after));
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  for (const std::string& organization : request.organizations) {
    TS_TRY_STATUS(add_name(subject, "O", organization));
  }
  TS_TRY_STATUS(add_name(subject, "CN", request.common_name));
  return certificate;
}

Result<KeyPair> sign(X509* certificate, EVP_PKEY* key, EVP_PKEY* ca_key) {
  if (X509_sign(certificate, ca_key, EVP_sha256()) == 0) return failed("sign a certificate");
  const BioPtr certificate_bio(BIO_new(BIO_s_mem()));
  const BioPtr key_bio(BIO_new(BIO_s_mem()));
  if (!certificate_bio || !key_bio || PEM_write_bio_X509(certificate_bio.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return failed("write a certificate as PEM");
  }
  const auto text = [](BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return std::string(data, static_cast<size_t>(size));
  };
  return KeyPair{text(certificate_bio.get()), text(key_bio.get())};
}

std::vector<std::string> entries(const X509_NAME* name, int nid) {
  std::vector<std::string> out;
  int at = -1;
  while ((at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0) {
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (size < 0) continue;
    out.emplace_back(reinterpret_cast<char*>(text), static_cast<size_t>(size));
    OPENSSL_free(text);
  }
  return out;
}

}  // namespace

Result<KeyPair> make_ca(const std::string& common_name, base::Time not_before,
                        base::Time not_after) {
  ERR_clear_error();
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return failed("make a key");
  CertificateRequest request;
  request.common_name = common_name;
  request.not_before = not_before;
  request.not_after = not_after;
  TS_TRY(const CertificatePtr certificate, draft(key.get(), request));
  X509* x509 = certificate.get();
  if (X509_set_issuer_name(x509, X509_get_subject_name(x509)) != 1) return failed("name a CA");
  TS_TRY_STATUS(add_extension(x509, x509, NID_basic_constraints, "critical,CA:TRUE"));
  TS_TRY_STATUS(
      add_extension(x509, x509, NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign"));
  TS_TRY_STATUS(add_extension(x509, x509, NID_subject_key_identifier, "hash"));
  return sign(x509, key.get(), key.get());
}

Result<KeyPair> issue(const KeyPair& ca, const CertificateRequest& request) {
  TS_TRY(const CertificatePtr issuer, read_certificate(ca.certificate_pem, "CA certificate"));
  TS_TRY(const KeyPtr ca_key, read_private_key(ca.private_key_pem, "CA key"));
  if (X509_check_private_key(issuer.get(), ca_key.get()) != 1) {
    ERR_clear_error();
    return base::error(Code::kBadRequest, "the CA key does not belong to the CA certificate");
  }
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return failed("make a key");
  TS_TRY(const CertificatePtr certificate, draft(key.get(), request));
  X509* x509 = certificate.get();
  if (X509_set_issuer_name(x509, X509_get_subject_name(issuer.get())) != 1) {
    return failed("name a certificate's issuer");
  }
  TS_TRY_STATUS(add_extension(x509, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  TS_TRY_STATUS(add_extension(x509, issuer.get(), NID_key_usage, "critical,digitalSignature"));
  TS_TRY_STATUS(add_extension(x509, issuer.get(), NID_ext_key_usage,
                              request.server ? "serverAuth" : "clientAuth"));
  TS_TRY_STATUS(add_extension(x509, issuer.get(), NID_authority_key_identifier, "keyid"));
  TS_TRY_STATUS(add_alternatives(x509, request));
  return sign(x509, key.get(), ca_key.get());
}

Subject subject_of(const X509* certificate) {
  const X509_NAME* name = X509_get_subject_name(certificate);
  return {entries(name, NID_commonName), entries(name, NID_organizationName)};
}

Result<Subject> subject_of(const std::string& certificate_pem) {
  TS_TRY(const CertificatePtr certificate, read_certificate(certificate_pem, "certificate"));
  return subject_of(certificate.get());
}

Result<base::Time> not_after_of(const std::string& certificate_pem) {
  TS_TRY(const CertificatePtr certificate, read_certificate(certificate_pem, "certificate"));
  std::tm parts{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &parts) != 1) {
    return failed("read a certificate's end");
  }
  return base::Time{static_cast<int64_t>(timegm(&parts)) * 1'000'000'000};
}

Status check_key_pair(const KeyPair& pair, const std::string& ca_certificate_pem) {
  TS_TRY(const CertificatePtr certificate, read_certificate(pair.certificate_pem, "certificate"));
  TS_TRY(const KeyPtr key, read_private_key(pair.private_key_pem, "key"));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return base::error(Code::kBadRequest, "the key does not belong to the certificate");
  }
  TS_TRY(const CertificatePtr ca, read_certificate(ca_certificate_pem, "CA certificate"));
  const int verified = X509_verify(certificate.get(), X509_get0_pubkey(ca.get()));
  ERR_clear_error();
  if (verified != 1) {
    return base::error(Code::kBadRequest, "the certificate was not signed by the CA");
  }
  return {};
}

}  // namespace tessera::http
