// Keys and X.509 certificates for a server that makes its own CA.
//
// Errors:  kBadRequest for PEM text that cannot be read, kInternal where OpenSSL fails.
// Source:  RFC 5280; Kubernetes PKI (CN is the user, O the groups).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace tessera::http {

struct KeyPair {
  std::string certificate_pem;
  std::string private_key_pem;  // ECDSA P-256, PKCS#8
};

struct CertificateRequest {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
  bool server = false;  // extended key usage: server or client authentication
  base::Time not_before;
  base::Time not_after;
};

base::Result<KeyPair> make_ca(const std::string& common_name, base::Time not_before,
                              base::Time not_after);
base::Result<KeyPair> issue(const KeyPair& ca, const CertificateRequest& request);
struct Subject {
  std::vector<std::string> common_names;
  std::vector<std::string> organizations;
};
// Whom the first certificate of a PEM text names.
base::Result<Subject> subject_of(const std::string& certificate_pem);
// When the first certificate of a PEM text ends.
base::Result<base::Time> not_after_of(const std::string& certificate_pem);
// That key and certificate belong together and the CA signed the certificate (dates are not looked
// at).
base::Status check_key_pair(const KeyPair& pair, const std::string& ca_certificate_pem);

std::string base64(std::string_view bytes);
base::Result<std::string> unbase64(std::string_view text);

}  // namespace tessera::http
