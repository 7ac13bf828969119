// The keys of a data folder.
//
// Files:   ca.crt, ca.key, server.crt, server.key, admin.crt, admin.key, sa.key; PEM; keys with mode
//          0600, the folder 0700. Server and admin certificates are made anew, by the same CA, when less
//          than 30 days of them remain; the CA lives ten years.

#include "apiserver/front.h"
#include "base/file.h"
#include "base/log.h"
#include "http/signing_key.h"
#include "http/tls.h"
#include "kube/kubeconfig.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using base::Duration;
using base::error;
using base::Result;
using base::Time;

constexpr Duration kDay = base::seconds(86400);
constexpr Duration kBackdate = base::seconds(3600);  // clocks of clients differ
constexpr Duration kCaLife = kDay * 3650;
constexpr Duration kLeafLife = kDay * 365;
constexpr Duration kRenewBefore = kDay * 30;

std::string path_of(const std::string& dir, std::string_view name, std::string_view ending) {
  return fmt::format("{}/{}.{}", dir, name, ending);
}

// Nothing where neither file is there; an error where only one is or where they do not belong together.
Result<http::KeyPair> read_pair(const std::string& dir, std::string_view name) {
  http::KeyPair pair;
  TS_TRY(pair.certificate_pem, base::read_file(path_of(dir, name, "crt"), 1 << 20));
  TS_TRY(pair.private_key_pem, base::read_file(path_of(dir, name, "key"), 1 << 20));
  return pair;
}

base::Status write_pair(const std::string& dir, std::string_view name, const http::KeyPair& pair) {
  TS_TRY_STATUS(base::write_file(path_of(dir, name, "key"), pair.private_key_pem, 0600));
  return base::write_file(path_of(dir, name, "crt"), pair.certificate_pem, 0644);
}

Result<http::KeyPair> load_or_make_ca(const std::string& dir, Time now) {
  auto pair = read_pair(dir, "ca");
  if (!pair && pair.error().code != Code::kNotFound) return error(pair.error());
  if (!pair) {
    auto key = base::read_file(path_of(dir, "ca", "key"));
    auto certificate = base::read_file(path_of(dir, "ca", "crt"));
    if (key || certificate) {
      return error(
          Code::kInvalid,
          "{} has only one of ca.crt and ca.key; restore the other, or delete the folder to start "
          "with new keys",
          dir);
    }
    TS_TRY(http::KeyPair made, http::make_ca("tessera", now - kBackdate, now + kCaLife));
    TS_TRY_STATUS(write_pair(dir, "ca", made));
    return made;
  }
  auto sound = http::check_key_pair(*pair, pair->certificate_pem);
  auto end = http::not_after_of(pair->certificate_pem);
  if (!sound || !end) {
    return error(Code::kInvalid,
                 "{}/ca.crt and ca.key cannot be used ({}); restore them, or delete the folder to "
                 "start with "
                 "new keys",
                 dir, sound ? end.error().message : sound.error().message);
  }
  if (*end - now < kRenewBefore) {
    return error(Code::kInvalid, "{}/ca.crt ends at {}; delete the folder to start with new keys",
                 dir, base::to_rfc3339(*end));
  }
  return *pair;
}

// The pair in the folder when it is good for another while, else a new one.
Result<http::KeyPair> load_or_issue(const std::string& dir, std::string_view name,
                                    const http::KeyPair& ca, http::CertificateRequest request,
                                    Time now) {
  auto pair = read_pair(dir, name);
  if (pair) {
    auto end = http::not_after_of(pair->certificate_pem);
    const bool sound = http::check_key_pair(*pair, ca.certificate_pem).has_value();
    if (sound && end && *end - now >= kRenewBefore) return *pair;
    base::log_info("certificate renewed name={} reason={}", name,
                   sound ? "near its end" : "not usable");
  } else if (pair.error().code != Code::kNotFound) {
    return error(pair.error());
  }
  request.not_before = now - kBackdate;
  request.not_after = now + kLeafLife;
  TS_TRY(http::KeyPair made, http::issue(ca, request));
  TS_TRY_STATUS(write_pair(dir, name, made));
  return made;
}

// Tokens that were handed out must stay good, so a key that cannot be read is not made anew.
Result<std::string> load_or_make_token_key(const std::string& dir) {
  const std::string path = path_of(dir, "sa", "key");
  auto pem = base::read_file(path, 1 << 20);
  if (!pem && pem.error().code != Code::kNotFound) return error(pem.error());
  if (pem) {
    if (const auto key = http::SigningKey::from_pem(*pem); !key) {
      return error(
          Code::kInvalid,
          "{} cannot be used ({}); restore it, or delete it to start with a new key, which "
          "ends all service account tokens",
          path, key.error().message);
    }
    return *pem;
  }
  TS_TRY(const http::SigningKey key, http::SigningKey::make());
  TS_TRY(std::string made, key.pem());
  TS_TRY_STATUS(base::write_file(path, made, 0600));
  return made;
}

}  // namespace

Result<Pki> load_or_make_pki(const std::string& dir, const base::Clock& clock) {
  TS_TRY_STATUS(base::make_dirs(dir, 0700));
  const Time now = clock.now();
  TS_TRY(const http::KeyPair ca, load_or_make_ca(dir, now));
  http::CertificateRequest server;
  server.common_name = "kube-apiserver";
  server.dns_names = {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
                      "kubernetes.default.svc.cluster.local"};
  server.ip_addresses = {"127.0.0.1", "::1", "10.96.0.1"};
  server.server = true;
  TS_TRY(const http::KeyPair server_pair, load_or_issue(dir, "server", ca, server, now));
  http::CertificateRequest admin;
  admin.common_name = "kubernetes-admin";
  admin.organizations = {"system:masters"};
  TS_TRY(const http::KeyPair admin_pair, load_or_issue(dir, "admin", ca, admin, now));
  TS_TRY(std::string token_key, load_or_make_token_key(dir));
  return Pki{ca.certificate_pem,         server_pair.certificate_pem, server_pair.private_key_pem,
             admin_pair.certificate_pem, admin_pair.private_key_pem,  std::move(token_key)};
}

std::string kubeconfig(const Pki& pki, const std::string& server_url) {
  return kube::make_kubeconfig({"tessera", server_url, pki.ca_certificate_pem,
                                pki.admin_certificate_pem, pki.admin_key_pem});
}

}  // namespace tessera::apiserver
