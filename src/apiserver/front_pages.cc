#include "apiserver/front_pages.h"

#include <fmt/core.h>

#include <utility>

#include "apiserver/discovery.h"
#include "apiserver/openapi_doc.h"
#include "apiserver/openapi_proto.h"
#include "json/yaml.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using Segments = std::span<const std::string>;

std::string joined(Segments segments) {
  std::string out;
  for (const std::string& segment : segments) out.append("/").append(segment);
  return out;
}

Value root_paths(const Kinds& kinds) {
  Value paths = Value::array({"/api", "/api/v1", "/apis"});
  for (const GroupVersions& group : group_versions(kinds)) {
    if (group.group.empty()) continue;
    paths.push_back("/apis/" + group.group);
    for (const std::string& version : group.versions) {
      paths.push_back("/apis/" + group.group + "/" + version);
    }
  }
  for (const char* path :
       {"/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}) {
    paths.push_back(path);
  }
  return Value::object({{"paths", std::move(paths)}});
}

std::string encoded(const Value& page, Encoding encoding) {
  if (encoding == Encoding::kProtobuf) return openapi_v2_protobuf(page);
  return encoding == Encoding::kYaml ? json::to_yaml(page) : page.dump() + "\n";
}

}  // namespace

bool is_openapi_v2_path(Segments segments) {
  return segments.size() == 2 && segments[0] == "openapi" && segments[1] == "v2";
}

bool is_page_path(Segments segments) {
  if (segments.empty() || segments[0] == "version" || segments[0] == "openapi") return true;
  return (segments[0] == "api" && segments.size() <= 2) ||
         (segments[0] == "apis" && segments.size() <= 3);
}

bool is_issuer_path(Segments segments) {
  if (segments.size() == 2) {
    return segments[0] == ".well-known" && segments[1] == "openid-configuration";
  }
  return segments.size() == 3 && segments[0] == "openid" && segments[1] == "v1" &&
         segments[2] == "jwks";
}

Value Pages::openapi_index() {
  Value paths = Value::object();
  for (const GroupVersions& group : group_versions(kinds_)) {
    for (const std::string& version : group.versions) {
      const std::string path = openapi_path(group.group, version);
      const std::string hash = text_hash(openapi_v3(kinds_, group.group, version).dump());
      paths.set(path,
                Value::object({{"serverRelativeURL", "/openapi/v3/" + path + "?hash=" + hash}}));
    }
  }
  return Value::object({{"paths", std::move(paths)}});
}

Value Pages::make(Segments segments, bool aggregated) {
  const size_t size = segments.size();
  if (size == 0) return root_paths(kinds_);
  if (segments[0] == "version" && size == 1) return version_document();
  if (segments[0] == "api") {
    if (size == 1) return aggregated ? aggregated_discovery(kinds_, true) : api_versions_document();
    return api_resource_list(kinds_, "", segments[1]);
  }
  if (segments[0] == "apis") {
    if (size == 1) return aggregated ? aggregated_discovery(kinds_, false) : api_group_list(kinds_);
    if (size == 2) return api_group(kinds_, segments[1]);
    return api_resource_list(kinds_, segments[1], segments[2]);
  }
  if (segments[0] != "openapi" || size < 2) return {};
  if (segments[1] == "v2" && size == 2) return openapi_v2(kinds_);
  if (segments[1] != "v3") return {};
  if (size == 2) return openapi_index();
  if (size == 4 && segments[2] == "api") return openapi_v3(kinds_, "", segments[3]);
  if (size == 5 && segments[2] == "apis") return openapi_v3(kinds_, segments[3], segments[4]);
  return {};
}

std::shared_ptr<const Page> Pages::find(Segments segments, const Accepted& accepted) {
  const bool aggregated = accepted.form == Form::kAggregatedDiscovery;
  const std::string key =
      fmt::format("{}?{}&{}", joined(segments), aggregated, static_cast<int>(accepted.encoding));
  const std::lock_guard lock(mutex_);
  if (const uint64_t edition = kinds_.edition(); edition != edition_) {
    pages_.clear();
    edition_ = edition;
  }
  if (const auto found = pages_.find(key); found != pages_.end()) return found->second;
  const Value value = make(segments, aggregated);
  if (value.is_null()) return nullptr;  // not kept: anyone can ask for any path
  auto page = std::make_shared<Page>();
  page->text = encoded(value, accepted.encoding);
  page->etag = "\"" + text_hash(page->text) + "\"";
  page->content_type = aggregated && segments.size() == 1 ? std::string(kAggregatedContentType)
                                                          : std::string(accepted.content_type());
  if (segments.size() == 2 && segments[0] == "openapi" && segments[1] == "v3") {
    page->content_type = "text/plain; charset=utf-8";  // so the index goes out from Kubernetes too
  }
  pages_[key] = page;
  return page;
}

}  // namespace tessera::apiserver
