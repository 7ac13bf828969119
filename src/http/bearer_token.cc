#include "http/bearer_token.h"

#include "base/clock.h"
#include "base/file.h"

namespace tessera::http {
namespace {

constexpr size_t kTokenBytesMax = size_t{64} << 10;

}  // namespace

BearerToken::BearerToken(const ClientOptions& options)
    : file_(options.bearer_token_file),
      period_(options.bearer_token_period),
      token_(options.bearer_token),
      read_at_(base::SystemClock().monotonic()) {}

void BearerToken::sign(ClientRequest& request) {
  std::string token = current();
  if (token.empty()) return;
  for (const auto& [name, value] : request.headers) {
    if (name == "authorization") return;
  }
  request.headers.emplace_back("authorization", "Bearer " + std::move(token));
}

std::string BearerToken::current() {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) return token_;
  const base::Duration now = base::SystemClock().monotonic();
  if (now - read_at_ < period_) return token_;
  read_at_ = now;
  auto text = base::read_file(file_, kTokenBytesMax);
  if (!text) return token_;
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  if (!text->empty()) token_ = std::move(*text);
  return token_;
}

}  // namespace tessera::http
