#include "apiserver/routes_body.h"

#include <charconv>
#include <utility>

#include "apiserver/api_options.h"
#include "apiserver/routes_protobuf.h"
#include "json/parse.h"
#include "json/yaml.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using kube::PatchType;
using kube::Verb;

enum class Format { kJson, kYaml, kProtobuf };

constexpr int kDepthMax = 128;

std::string media_type(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  for (char& c : type) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return type;
}

tl::unexpected<base::Error> unknown_format(std::string_view accepted) {
  return base::error(
      Code::kUnsupportedMediaType,
      "the body of the request was in an unknown format - accepted media types include: {}",
      accepted);
}

base::Result<Format> object_format(std::string_view content_type) {
  const std::string type = media_type(content_type);
  // Clients that send no type at all (curl -d) mean JSON.
  if (type.empty() || type == "application/json") return Format::kJson;
  if (type == "application/yaml") return Format::kYaml;
  if (type == "application/vnd.kubernetes.protobuf") return Format::kProtobuf;
  return unknown_format("application/json, application/yaml, application/vnd.kubernetes.protobuf");
}

std::string_view name_of(Format format) {
  return format == Format::kJson ? "json" : format == Format::kYaml ? "yaml" : "protobuf";
}

base::Result<PatchType> patch_format(std::string_view content_type) {
  const std::string type = media_type(content_type);
  if (type == "application/json-patch+json") return PatchType::kJson;
  if (type == "application/merge-patch+json") return PatchType::kMerge;
  if (type == "application/strategic-merge-patch+json") return PatchType::kStrategic;
  if (type == "application/apply-patch+yaml") return PatchType::kApply;
  return base::error(Code::kUnsupportedMediaType, "415: Unsupported Media Type");
}

base::Result<Value> parse_json(std::string_view text, std::vector<std::string>* duplicates) {
  json::ParseOptions options;
  options.bytes_max = kBodyBytesMax;
  options.depth_max = kDepthMax;
  options.duplicates = duplicates;
  return json::parse(text, options);
}

base::Result<Value> parse_yaml(std::string_view text) {
  json::YamlOptions options;
  options.bytes_max = kBodyBytesMax;
  return json::parse_yaml(text, options);
}

// Duplicate keys by fieldValidation: an error, warnings, or nothing.
base::Status judge_duplicates(const std::vector<std::string>& duplicates,
                              const kube::Request& request, std::string_view context,
                              std::vector<std::string>* warnings) {
  if (duplicates.empty()) return {};
  const std::string_view mode = request.option("fieldValidation");
  if (mode == "Ignore") return {};
  std::string all;
  for (const std::string& path : duplicates) {
    std::string one = fmt::format("duplicate field \"{}\"", path);
    if (mode == "Strict") {
      all.append(all.empty() ? "" : ", ").append(one);
    } else {
      warnings->push_back(std::move(one));
    }
  }
  if (all.empty()) return {};
  return base::error(Code::kBadRequest, "{}strict decoding error: {}", context, all);
}

// The beginning of a body, as Kubernetes shows what it could not read.
std::string shown_body(std::string_view bytes) {
  constexpr size_t kShownMax = 30;
  const std::string_view start = bytes.substr(0, kShownMax);
  std::string out;
  if (start.starts_with('{')) {
    out = start;
  } else {
    for (const char c : start) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return bytes.size() > kShownMax ? out + " ..." : out;
}

base::Status check_says_kind(const RawBody& raw, const Value& body, const Kind& kind) {
  if (!body["kind"].as_string().empty()) return {};
  constexpr size_t kWholeMax = 4096;
  const std::string text = raw.bytes.starts_with('{') ? std::string(raw.bytes.substr(0, kWholeMax))
                                                      : body.dump().substr(0, kWholeMax);
  return base::error(
      Code::kBadRequest,
      "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in "
      "'{}' ({})",
      kind.kind, text, shown_body(raw.bytes));
}

base::Status read_object(const RawBody& raw, const Kind& kind, kube::Request& request,
                         std::vector<std::string>* warnings) {
  TS_TRY(const Format format, object_format(raw.content_type));
  std::vector<std::string> duplicates;
  base::Result<Value> body = format == Format::kJson   ? parse_json(raw.bytes, &duplicates)
                             : format == Format::kYaml ? parse_yaml(raw.bytes)
                                                       : decode_protobuf(raw.bytes);
  if (!body && body.error().code == Code::kBadRequest) {
    return base::error(Code::kBadRequest,
                       "the object provided is unrecognized (must be of type {}): "
                       "couldn't get version/kind; {} parse error: {}",
                       kind.kind, name_of(format), body.error().message);
  }
  if (!body) return base::error(std::move(body).error());
  if (body->is_null()) body = Value::object();  // "null" is an object of which nothing is said
  if (!body->is_object()) {
    return base::error(Code::kBadRequest,
                       "the object provided is unrecognized (must be of type {}): couldn't get "
                       "version/kind; json parse error: the body is no object",
                       kind.kind);
  }
  if (kind.custom != nullptr) TS_TRY_STATUS(check_says_kind(raw, *body, kind));
  const std::string context = fmt::format(
      "{} in version \"{}\" cannot be handled as a {}: ", kind.kind, kind.version, kind.kind);
  TS_TRY_STATUS(judge_duplicates(duplicates, request, context, warnings));
  request.body = std::move(*body);
  return {};
}

base::Status read_patch(const RawBody& raw, kube::Request& request) {
  TS_TRY(request.patch_type, patch_format(raw.content_type));
  std::vector<std::string> duplicates;
  base::Result<Value> patch = request.patch_type == PatchType::kApply
                                  ? parse_yaml(raw.bytes)
                                  : parse_json(raw.bytes, &duplicates);
  if (!patch && patch.error().code == Code::kBadRequest) {
    const std::string& why = patch.error().message;
    if (request.patch_type == PatchType::kStrategic && why.ends_with("incomplete JSON")) {
      return base::error(Code::kBadRequest, "unexpected end of JSON input");
    }
    return base::error(Code::kBadRequest, "error decoding patch: {}", why);
  }
  if (!patch) return base::error(std::move(patch).error());
  const bool is_list = request.patch_type == PatchType::kJson;
  if (is_list ? !patch->is_array() : !patch->is_object()) {
    return base::error(Code::kBadRequest, "error decoding patch: this patch must be {}",
                       is_list ? "a list of operations" : "an object");
  }
  for (const std::string& path : duplicates) {
    request.faults.push_back(fmt::format("duplicate field \"{}\"", path));
  }
  request.body = std::move(*patch);
  return {};
}

base::Status add_query_options(kube::Request& request) {
  Value& body = request.body;
  if (!body.is_object()) body = Value::object();
  if (const auto policy = request.option("propagationPolicy"); !policy.empty()) {
    body.set("propagationPolicy", policy);
  }
  if (const auto orphan = request.option("orphanDependents"); !orphan.empty()) {
    body.set("orphanDependents", query_flag(request.query, "orphanDependents"));
  }
  if (const auto grace = request.option("gracePeriodSeconds"); !grace.empty()) {
    int64_t seconds = 0;
    const auto [end, bad] = std::from_chars(grace.data(), grace.data() + grace.size(), seconds);
    if (bad != std::errc() || end != grace.data() + grace.size()) {
      return base::error(Code::kBadRequest,
                         "gracePeriodSeconds \"{}\" is not a whole number of seconds", grace);
    }
    body.set("gracePeriodSeconds", seconds);
  }
  return {};
}

base::Status check_propagation(const Value& options) {
  const Value& policy = options["propagationPolicy"];
  if (options["orphanDependents"].is_null() || policy.is_null()) return {};
  base::Error error{Code::kInvalid, {}, {}};
  const std::string why =
      fmt::format("Invalid value: {}: orphanDependents and deletionPropagation cannot be both set",
                  policy.dump());
  error.message = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: " + why;
  error.causes.push_back({"FieldValueInvalid", why, "propagationPolicy"});
  return base::error(std::move(error));
}

// A body counts more than the query; a dry run asked for in the body is one for the core too.
base::Status read_delete_options(const RawBody& raw, kube::Request& request) {
  if (raw.bytes.empty()) return add_query_options(request);
  TS_TRY(const Format format, object_format(raw.content_type));
  std::vector<std::string> ignored;
  base::Result<Value> body = format == Format::kJson   ? parse_json(raw.bytes, &ignored)
                             : format == Format::kYaml ? parse_yaml(raw.bytes)
                                                       : decode_protobuf(raw.bytes);
  if (!body && body.error().code == Code::kBadRequest) {
    return base::error(Code::kBadRequest, "couldn't get version/kind; {} parse error: {}",
                       name_of(format), body.error().message);
  }
  if (!body) return base::error(std::move(body).error());
  request.body = std::move(*body);
  if (!request.body.is_object()) {
    return base::error(Code::kBadRequest, "the body of a delete must be a DeleteOptions object");
  }
  const std::string_view kind = request.body["kind"].as_string();
  if (!kind.empty() && kind != "DeleteOptions") {
    return base::error(Code::kBadRequest,
                       "no kind \"{}\" is registered for version \"{}\": the body of a delete must "
                       "be a DeleteOptions",
                       kind, request.body["apiVersion"].as_string());
  }
  TS_TRY_STATUS(check_propagation(request.body));
  // Where there is a body, the query does not count.
  std::erase_if(request.query, [](const auto& option) {
    return option.first == "dryRun" || option.first == "propagationPolicy" ||
           option.first == "gracePeriodSeconds" || option.first == "orphanDependents";
  });
  if (!request.body["dryRun"].empty()) {
    request.query.emplace_back("dryRun", request.body["dryRun"].at(0).str());
  }
  return {};
}

}  // namespace

base::Error too_large_body() {
  return {Code::kTooLarge, fmt::format("Request entity too large: limit is {}", kBodyBytesMax), {}};
}

base::Status read_body(const RawBody& raw, const Kind& kind, kube::Request& request,
                       std::vector<std::string>* warnings) {
  if (raw.bytes.size() > kBodyBytesMax) {
    return base::error(too_large_body());
  }
  const bool deletes = request.verb == Verb::kDelete || request.verb == Verb::kDeleteCollection;
  if (!deletes || raw.bytes.empty()) TS_TRY_STATUS(check_write_options(request));
  switch (request.verb) {
    case Verb::kCreate:
    case Verb::kUpdate:
      return read_object(raw, kind, request, warnings);
    case Verb::kPatch:
      return read_patch(raw, request);
    case Verb::kDelete:
    case Verb::kDeleteCollection:
      return read_delete_options(raw, request);
    default:
      return {};
  }
}

}  // namespace tessera::apiserver
