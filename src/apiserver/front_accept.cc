#include "apiserver/front_accept.h"

#include <cstdlib>
#include <optional>

namespace tessera::apiserver {
namespace {

constexpr size_t kClausesMax = 64;

struct Clause {
  std::string type;  // "application/json"
  std::string group;
  std::string version;
  std::string as;
  double q = 1;
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string_view take(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return trim(word);
}

double parse_q(std::string_view text) {
  // "1", "0.8", "0.123": digits only, so that nothing else (inf, hex) slips in.
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789.") != text.npos)
    return 1;
  const double q = std::strtod(std::string(text).c_str(), nullptr);
  return q > 1 ? 1 : q;
}

Clause parse_clause(std::string_view text) {
  Clause clause;
  clause.type = take(text, ';');
  while (!text.empty()) {
    std::string_view value = take(text, ';');
    const std::string_view key = take(value, '=');
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    if (key == "g") clause.group = value;
    if (key == "v") clause.version = value;
    if (key == "as") clause.as = value;
    if (key == "q") clause.q = parse_q(value);
  }
  return clause;
}

std::optional<Encoding> encoding_of(const Clause& clause, const Offers& offers) {
  if (offers.openapi_protobuf &&
      (clause.type == kOpenapiProtobuf || clause.type == kOpenapiProtobufOld)) {
    return Encoding::kProtobuf;
  }
  if (clause.type == "application/json" || clause.type == "*/*" || clause.type == "application/*") {
    return Encoding::kJson;
  }
  if (offers.yaml && clause.type == "application/yaml") return Encoding::kYaml;
  if (offers.text && (clause.type == "text/plain" || clause.type == "text/*")) {
    return Encoding::kJson;
  }
  return std::nullopt;
}

std::optional<Form> form_of(const Clause& clause, const Offers& offers) {
  if (clause.as.empty()) return Form::kObject;
  if (offers.forms && clause.group == "meta.k8s.io" &&
      (clause.version == "v1" || clause.version == "v1beta1")) {
    if (clause.as == "Table") return Form::kTable;
    if (clause.as == "PartialObjectMetadata") return Form::kPartial;
    if (clause.as == "PartialObjectMetadataList") return Form::kPartialList;
  }
  if (offers.discovery && clause.group == "apidiscovery.k8s.io" && clause.version == "v2" &&
      clause.as == "APIGroupDiscoveryList") {
    return Form::kAggregatedDiscovery;
  }
  return std::nullopt;
}

}  // namespace

base::Result<Accepted> negotiate(std::string_view accept, const Offers& offers) {
  if (trim(accept).empty()) return Accepted{};
  std::optional<Accepted> best;
  double best_q = 0;
  bool known = false;  // some clause asks for a type that is made, if in a form that is not
  for (size_t i = 0; i < kClausesMax && !accept.empty(); ++i) {
    const Clause clause = parse_clause(take(accept, ','));
    const auto encoding = encoding_of(clause, offers);
    known = known || encoding;
    const auto form = form_of(clause, offers);
    if (!encoding || !form || clause.q <= best_q) continue;
    best_q = clause.q;
    best = {*encoding, *form, *form == Form::kObject ? std::string() : clause.version};
  }
  if (best) return *best;
  const std::string_view made =
      offers.yaml ? "application/json, application/yaml" : "application/json";
  if (known) {
    return base::error(base::Code::kNotAcceptable,
                       "only the following media types are accepted: {}", made);
  }
  return base::error(base::Code::kNotAcceptable,
                     "406: Not Acceptable\n\nAvailable representations: {}{}",
                     offers.text ? "text/plain, " : "", made);
}

}  // namespace tessera::apiserver
