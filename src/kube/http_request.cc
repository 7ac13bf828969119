// kube::Request to HTTP and back: paths, media types, Status objects, watch framing. No I/O.

#include <array>

#include "http/uri.h"
#include "json/parse.h"
#include "kube/http_client.h"

namespace tessera::kube {
namespace {

using base::Code;

std::string_view method_of(Verb verb) {
  switch (verb) {
    case Verb::kGet:
    case Verb::kList:
      return "GET";
    case Verb::kCreate:
      return "POST";
    case Verb::kUpdate:
      return "PUT";
    case Verb::kPatch:
      return "PATCH";
    case Verb::kDelete:
    case Verb::kDeleteCollection:
      return "DELETE";
  }
  return "GET";
}

std::string_view media_type_of(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return "application/json";
}

bool needs_name(const Request& request) {
  switch (request.verb) {
    case Verb::kGet:
    case Verb::kUpdate:
    case Verb::kPatch:
    case Verb::kDelete:
      return true;
    case Verb::kCreate:
      return !request.subresource.empty();
    default:
      return false;
  }
}

json::ParseOptions reading(Detail detail, size_t bytes_max, std::vector<std::string>& duplicates) {
  json::ParseOptions out;
  out.bytes_max = bytes_max;
  out.duplicates = &duplicates;
  if (detail == Detail::kLean) {
    out.leave_out = "managedFields";
    out.leave_out_in = "metadata";
  }
  return out;
}

std::string_view beginning_of(std::string_view body) {
  return body.substr(0, 200);
}

}  // namespace

std::string path_of(const Request& request) {
  std::string out = request.gvr.group.empty() ? "/api/" : "/apis/" + request.gvr.group + "/";
  out += request.gvr.version;
  if (!request.ns.empty()) out += "/namespaces/" + http::percent_encode(request.ns);
  out += "/" + request.gvr.resource;
  if (!request.name.empty()) out += "/" + http::percent_encode(request.name);
  if (!request.subresource.empty()) out += "/" + request.subresource;
  return out;
}

base::Result<http::ClientRequest> to_http(const Request& request, bool watch) {
  if (request.gvr.version.empty() || request.gvr.resource.empty()) {
    return base::error(Code::kBadRequest, "the request names no resource");
  }
  if (needs_name(request) && request.name.empty()) {
    return base::error(Code::kBadRequest, "the request names no object of {}",
                       request.gvr.resource);
  }
  http::ClientRequest out;
  out.method = method_of(request.verb);
  out.target = path_of(request);
  auto query = request.query;
  if (watch) query.emplace_back("watch", "true");
  if (!query.empty()) out.target += "?" + http::make_query(query);
  out.headers.emplace_back("accept", "application/json");
  if (!request.body.is_null()) {
    out.headers.emplace_back("content-type", request.verb == Verb::kPatch
                                                 ? media_type_of(request.patch_type)
                                                 : "application/json");
    out.body = request.body.dump();
  }
  return out;
}

base::Error error_of_status(const json::Value& status) {
  base::Error out;
  out.message = status["message"].as_string();
  const std::string_view reason = status["reason"].as_string();
  out.code = base::code_of_http_status(static_cast<int>(status["code"].as_int(500)));
  for (int i = 0; i < static_cast<int>(Code::kBusy); ++i) {
    if (base::reason_of(static_cast<Code>(i)) == reason) out.code = static_cast<Code>(i);
  }
  if (reason == "Gone") out.code = Code::kExpired;
  if (out.message.empty()) out.message = reason.empty() ? "the server gave no reason" : reason;
  for (const json::Value& cause : status["details"]["causes"].items()) {
    out.causes.push_back({cause["reason"].str(), cause["message"].str(), cause["field"].str()});
  }
  return out;
}

void share_parts(json::Interner& interner, json::Value& object_or_list) {
  if (object_or_list["items"].is_array()) {
    json::Value& items = object_or_list.ref("items");
    for (size_t i = 0; i < items.size(); ++i) share_parts(interner, items.ref_at(i));
    return;
  }
  // Not the whole, nor all of its metadata: that no other object has.
  for (const char* key : {"metadata", "spec", "status"}) {
    if (object_or_list.contains(key)) interner.intern(object_or_list.ref(key));
  }
}

Reply from_http(const http::Response& response, Detail detail) {
  const bool good = response.status >= 200 && response.status < 300;
  if (good && response.body.empty()) return json::Value();
  std::vector<std::string> duplicates;  // servers may repeat keys; the last one wins, as in Go
  auto body = json::parse(response.body, reading(detail, size_t{1} << 30, duplicates));
  const bool status = body && (*body)["kind"].as_string() == "Status";
  if (good) {
    if (!body) {
      return base::error(Code::kUnavailable, "the server's answer is not JSON: {}",
                         body.error().message);
    }
    if (status && (*body)["status"].as_string() == "Failure") {
      return base::error(error_of_status(*body));
    }
    return std::move(*body);
  }
  if (status) return base::error(error_of_status(*body));
  return base::error(base::code_of_http_status(response.status), "HTTP status {}: {}",
                     response.status, beginning_of(response.body));
}

namespace {

base::Result<WatchEvent> read_event(std::string_view line, Detail detail,
                                    json::Interner* interner) {
  static constexpr std::array<std::pair<std::string_view, WatchEvent::Type>, 5> kTypes = {
      {{"ADDED", WatchEvent::Type::kAdded},
       {"MODIFIED", WatchEvent::Type::kModified},
       {"DELETED", WatchEvent::Type::kDeleted},
       {"BOOKMARK", WatchEvent::Type::kBookmark},
       {"ERROR", WatchEvent::Type::kError}}};
  std::vector<std::string> duplicates;
  auto event = json::parse(line, reading(detail, size_t{64} << 20, duplicates));
  if (!event) {
    return base::error(Code::kUnavailable, "the watch stream is not JSON: {}",
                       event.error().message);
  }
  for (const auto& [name, type] : kTypes) {
    if (name != (*event)["type"].as_string()) continue;
    json::Value object = std::move(event->ref("object"));
    if (interner != nullptr) share_parts(*interner, object);
    return WatchEvent{type, Object(std::move(object))};
  }
  return base::error(Code::kUnavailable, "the watch stream has an event of unknown type {}",
                     (*event)["type"].dump());
}

}  // namespace

base::Result<std::vector<WatchEvent>> WatchLines::feed(std::string_view chunk) {
  std::vector<WatchEvent> out;
  while (!chunk.empty()) {
    const size_t end = chunk.find('\n');
    if (rest_.size() + std::min(end, chunk.size()) > line_bytes_max_) {
      return base::error(Code::kTooLarge, "a watch event is over the limit of {} bytes",
                         line_bytes_max_);
    }
    if (end == chunk.npos) {
      rest_ += chunk;
      break;
    }
    std::string_view line = chunk.substr(0, end);
    if (!rest_.empty()) line = rest_.append(line);
    if (line.find_first_not_of(" \r\t") != line.npos) {
      TS_TRY(auto event, read_event(line, detail_, interner_));
      out.push_back(std::move(event));
    }
    rest_.clear();
    chunk.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace tessera::kube
