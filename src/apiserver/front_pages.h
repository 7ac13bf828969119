// The pages that are the same for everyone: discovery, OpenAPI, version, each made at its first
// request and kept as text until the kinds change.
//
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "apiserver/front_accept.h"
#include "apiserver/kind.h"

namespace tessera::apiserver {

struct Page {
  std::string text;
  std::string etag;  // quoted
  std::string content_type;
};

class Pages {
 public:
  explicit Pages(const Kinds& kinds) : kinds_(kinds) {}
  // Null where the path names no page.
  std::shared_ptr<const Page> find(std::span<const std::string> segments, const Accepted& accepted);

 private:
  json::Value make(std::span<const std::string> segments, bool aggregated);
  json::Value openapi_index();

  const Kinds& kinds_;
  std::mutex mutex_;
  uint64_t edition_ = 0;  // of the kinds that the pages tell of
  std::map<std::string, std::shared_ptr<const Page>> pages_;
};

// The documents by which others verify service account tokens: /openid/v1/jwks and /.well-known/openid-configuration.
bool is_issuer_path(std::span<const std::string> segments);

// True for paths that find() may answer (and no resource path is one).
bool is_page_path(std::span<const std::string> segments);

// The one page that is also made as protobuf.
bool is_openapi_v2_path(std::span<const std::string> segments);

}  // namespace tessera::apiserver
