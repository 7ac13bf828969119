// Tokens: the input as a token, and its two lines as header and claims under a right signature. What is taken names a
// service account and reads back the same.

#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/token.h"
#include "base/check.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const http::SigningKey kKey = *http::SigningKey::make();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TS_CHECK(!apiserver::read_token(kKey, text).has_value(), "a token that nobody signed");
  const size_t line = text.find('\n');
  if (line == std::string_view::npos) return 0;
  std::string token =
      http::base64url(text.substr(0, line)) + "." + http::base64url(text.substr(line + 1));
  const auto signature = kKey.sign(token);
  TS_CHECK(signature.has_value());
  token.append(".").append(http::base64url(*signature));
  const auto claims = apiserver::read_token(kKey, token);
  if (!claims) {
    TS_CHECK(claims.error().code == base::Code::kUnauthorized);
    return 0;
  }
  (void)apiserver::check_token_times(*claims, base::Time{1'767'225'600'000'000'000});
  TS_CHECK(claims->subject == apiserver::account_user(claims->ns, claims->account.name));
  const auto again = apiserver::write_token(kKey, *claims);
  TS_CHECK(again.has_value());
  const auto back = apiserver::read_token(kKey, *again);
  TS_CHECK(!back.has_value() || *back == *claims);
  return 0;
}
