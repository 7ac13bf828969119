#include "apiserver/crd_schema.h"

#include <algorithm>
#include <iterator>

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr int kDepthMax = 256;
constexpr int64_t kPatternBytesMax = int64_t{8} << 20;  // of a compiled pattern

std::optional<double> number_of(const Value& value) {
  if (!value.is_number()) return std::nullopt;
  return value.as_double();
}

std::optional<int64_t> count_of(const Value& value) {
  if (!value.is_number()) return std::nullopt;
  return value.as_int();
}

std::vector<std::string> texts_of(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

base::Result<CrdSchema::Ptr> compile(const Value& json, int depth);

base::Status compile_list(const Value& list, int depth, CrdSchema::List& out) {
  for (const Value& item : list.items()) {
    TS_TRY(CrdSchema::Ptr one, compile(item, depth));
    out.push_back(std::move(one));
  }
  return {};
}

base::Status compile_parts(const Value& json, int depth, CrdSchema& out) {
  for (const json::Member& member : json["properties"].members()) {  // sorted as all members are
    TS_TRY(CrdSchema::Ptr one, compile(member.value, depth));
    out.properties.emplace_back(std::string(member.name()), std::move(one));
  }
  if (json["items"].is_object()) {
    TS_TRY(out.items, compile(json["items"], depth));
  }
  const Value& additional = json["additionalProperties"];
  if (additional.is_object()) {
    out.has_additional = true;
    TS_TRY(out.additional, compile(additional, depth));
  } else if (additional.is_bool()) {
    out.has_additional = additional.as_bool();
    out.closed = !additional.as_bool();
  }
  TS_TRY_STATUS(compile_list(json["allOf"], depth, out.all_of));
  TS_TRY_STATUS(compile_list(json["anyOf"], depth, out.any_of));
  TS_TRY_STATUS(compile_list(json["oneOf"], depth, out.one_of));
  if (json["not"].is_object()) {
    TS_TRY(out.not_of, compile(json["not"], depth));
  }
  return {};
}

void read_limits(const Value& json, CrdSchema& out) {
  out.minimum = number_of(json["minimum"]);
  out.maximum = number_of(json["maximum"]);
  out.exclusive_minimum = json["exclusiveMinimum"].as_bool();
  out.exclusive_maximum = json["exclusiveMaximum"].as_bool();
  out.multiple_of = number_of(json["multipleOf"]);
  out.min_length = count_of(json["minLength"]);
  out.max_length = count_of(json["maxLength"]);
  out.min_items = count_of(json["minItems"]);
  out.max_items = count_of(json["maxItems"]);
  out.min_properties = count_of(json["minProperties"]);
  out.max_properties = count_of(json["maxProperties"]);
}

base::Result<CrdSchema::Ptr> compile(const Value& json, int depth) {
  if (depth > kDepthMax) {
    return base::error(base::Code::kInvalid, "the schema nests deeper than {} levels", kDepthMax);
  }
  auto out = std::make_unique<CrdSchema>();
  out->type = json["type"].str();
  out->nullable = json["nullable"].as_bool();
  out->int_or_string = json["x-kubernetes-int-or-string"].as_bool();
  out->preserve_unknown = json["x-kubernetes-preserve-unknown-fields"].as_bool();
  out->embedded = json["x-kubernetes-embedded-resource"].as_bool();
  if (is_known_format(out->type, json["format"].as_string())) out->format = json["format"].str();
  if (const Value* given = json.find("default"); given != nullptr && !given->is_null()) {
    out->default_value = *given;
  }
  for (const Value& choice : json["enum"].items()) out->choices.push_back(choice);
  out->required = texts_of(json["required"]);
  out->list_type = json["x-kubernetes-list-type"].str();
  out->map_type = json["x-kubernetes-map-type"].str();
  out->list_keys = texts_of(json["x-kubernetes-list-map-keys"]);
  read_limits(json, *out);
  if (!json["pattern"].as_string().empty()) {
    TS_TRY(out->pattern, compile_pattern(json["pattern"].as_string()));
  }
  TS_TRY_STATUS(compile_parts(json, depth + 1, *out));
  return CrdSchema::Ptr(std::move(out));
}

// What Kubernetes calls the error.
std::string_view pattern_problem(re2::RE2::ErrorCode code) {
  switch (code) {
    case re2::RE2::ErrorBadEscape:
      return "invalid escape sequence";
    case re2::RE2::ErrorBadCharClass:
      return "invalid character class";
    case re2::RE2::ErrorBadCharRange:
      return "invalid character class range";
    case re2::RE2::ErrorMissingBracket:
      return "missing closing ]";
    case re2::RE2::ErrorMissingParen:
      return "missing closing )";
    case re2::RE2::ErrorUnexpectedParen:
      return "unexpected )";
    case re2::RE2::ErrorTrailingBackslash:
      return "trailing backslash at end of expression";
    case re2::RE2::ErrorRepeatArgument:
      return "missing argument to repetition operator";
    case re2::RE2::ErrorRepeatSize:
      return "invalid repeat count";
    case re2::RE2::ErrorRepeatOp:
      return "invalid nested repetition operator";
    case re2::RE2::ErrorBadPerlOp:
      return "invalid or unsupported Perl syntax";
    case re2::RE2::ErrorBadUTF8:
      return "invalid UTF-8";
    case re2::RE2::ErrorBadNamedCapture:
      return "invalid named capture";
    case re2::RE2::ErrorPatternTooLarge:
      return "expression too large";
    default:
      return "regexp/syntax: internal error";
  }
}

}  // namespace

const CrdSchema* CrdSchema::property(std::string_view name) const {
  const auto at = std::lower_bound(
      properties.begin(), properties.end(), name,
      [](const auto& each, std::string_view key) { return std::string_view(each.first) < key; });
  return at != properties.end() && at->first == name ? at->second.get() : nullptr;
}

base::Result<CrdSchema::Ptr> compile_schema(const Value& schema) {
  return compile(schema, 0);
}

base::Result<std::unique_ptr<const re2::RE2>> compile_pattern(std::string_view text) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kPatternBytesMax);
  auto pattern =
      std::make_unique<const re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (pattern->ok()) return pattern;
  const std::string& about = pattern->error_arg();
  return base::error(base::Code::kInvalid, "error parsing regexp: {}: `{}`",
                     pattern_problem(pattern->error_code()), about);
}

bool is_known_format(std::string_view type, std::string_view format) {
  static constexpr std::string_view kOfStrings[] = {
      "bsonobjectid", "uri",        "email",    "hostname",     "ipv4",       "ipv6", "cidr",
      "mac",          "uuid",       "uuid3",    "uuid4",        "uuid5",      "isbn", "isbn10",
      "isbn13",       "creditcard", "ssn",      "hexcolor",     "rgbcolor",   "byte", "password",
      "date",         "duration",   "datetime", "k8sshortname", "k8slongname"};
  if (format.empty()) return false;
  if (type == "integer") return format == "int32" || format == "int64";
  if (type == "number") return format == "float" || format == "double";
  if (!type.empty() && type != "string") return false;
  std::string plain;  // Kubernetes does not heed the dashes
  std::ranges::copy_if(format, std::back_inserter(plain), [](char c) { return c != '-'; });
  return std::ranges::find(kOfStrings, plain) != std::end(kOfStrings);
}

}  // namespace tessera::apiserver
