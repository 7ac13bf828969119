// Certificates and kubeconfigs: the input as PEM, as the DER inside of a PEM, and as a kubeconfig. Each ends in a value or
// in an error; what a kubeconfig yields can be used.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "http/tls.h"
#include "kube/kubeconfig.h"

using namespace tessera;

namespace {

void check_pem(const std::string& pem) {
  const auto end = http::not_after_of(pem);
  TS_CHECK(end.has_value() || !end.error().message.empty());
  const auto subject =
      http::subject_of(pem);  // may be read where the end cannot: TLS refuses such a one
  TS_CHECK(subject.has_value() || !subject.error().message.empty());
  TS_CHECK(!http::check_key_pair({pem, pem}, pem).has_value());
}

// Paths in it would be read: those files are not the fuzzer's.
bool names_files(std::string_view text) {
  for (const std::string_view word :
       {"certificate-authority", "client-certificate", "client-key", "tokenFile"}) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      if (!text.substr(at + word.size()).starts_with("-data")) return true;
    }
  }
  return text.find('\\') != std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_pem(text);
  check_pem("-----BEGIN CERTIFICATE-----\n" + http::base64(text) + "\n-----END CERTIFICATE-----\n");
  if (names_files(text)) return 0;
  const auto config = kube::parse_kubeconfig(text, "/nowhere");
  if (config) {
    TS_CHECK(!config->ns.empty());
  } else {
    TS_CHECK(!config.error().message.empty());
  }
  return 0;
}
