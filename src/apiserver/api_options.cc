#include "apiserver/api_options.h"

#include <fmt/format.h>

#include "apiserver/api_errors.h"
#include "apiserver/kind.h"

namespace tessera::apiserver {
namespace {

using kube::Verb;

constexpr size_t kShownBytes = 64;

bool is_delete(Verb verb) {
  return verb == Verb::kDelete || verb == Verb::kDeleteCollection;
}

}  // namespace

std::string_view dry_run_word(const kube::Request& request) {
  const std::string_view word = request.option("dryRun");
  if (!word.empty() || !is_delete(request.verb)) return word;
  return request.body["dryRun"].empty() ? word : request.body["dryRun"].at(0).as_string();
}

base::Status check_write_options(const kube::Request& request) {
  const Verb verb = request.verb;
  if (verb == Verb::kGet || verb == Verb::kList) return {};
  FieldErrors errors;
  const std::string_view word = dry_run_word(request);
  if (!word.empty() && word != "All") {
    errors.not_supported("dryRun", json::Value::array({word.substr(0, kShownBytes)}), {"All"});
  }
  const std::string_view mode = request.option("fieldValidation");
  const bool known = mode.empty() || mode == "Strict" || mode == "Warn" || mode == "Ignore";
  if (!known && !is_delete(verb)) {
    errors.not_supported("fieldValidation", mode.substr(0, kShownBytes),
                         {"", "Ignore", "Strict", "Warn"});
  }
  if (errors.empty()) return {};
  const std::string_view options = verb == Verb::kCreate   ? "CreateOptions"
                                   : verb == Verb::kUpdate ? "UpdateOptions"
                                   : verb == Verb::kPatch  ? "PatchOptions"
                                                           : "DeleteOptions";
  return base::error(invalid_options(options, errors.causes()));
}

}  // namespace tessera::apiserver
