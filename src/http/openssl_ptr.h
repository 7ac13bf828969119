// Owning pointers for OpenSSL's objects, and its error queue as text.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/tls.h"

namespace tessera::http {

template <auto Free>
struct OpensslFree {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <class T, auto Free>
using OpensslPtr = std::unique_ptr<T, OpensslFree<Free>>;

using BioPtr = OpensslPtr<BIO, BIO_free>;
using KeyPtr = OpensslPtr<EVP_PKEY, EVP_PKEY_free>;
using CertificatePtr = OpensslPtr<X509, X509_free>;
using ExtensionPtr = OpensslPtr<X509_EXTENSION, X509_EXTENSION_free>;
using SslContextPtr = OpensslPtr<SSL_CTX, SSL_CTX_free>;
using SslPtr = OpensslPtr<SSL, SSL_free>;

// The oldest entry of this thread's error queue, which is cleared.
std::string openssl_error();
// A read-only BIO over the text, which must outlive it.
BioPtr bio_over(std::string_view text);
base::Result<CertificatePtr> read_certificate(std::string_view pem, std::string_view what);
Subject subject_of(const X509* certificate);
base::Result<KeyPtr> read_private_key(std::string_view pem, std::string_view what);

}  // namespace tessera::http
