#include "apiserver/status_body.h"

#include <algorithm>

#include "apiserver/api_errors.h"
#include "apiserver/api_token.h"

namespace tessera::apiserver {
namespace {

using base::Code;

bool names_subject(Code code) {
  switch (code) {
    case Code::kForbidden:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kConflict:
    case Code::kInvalid:
    case Code::kNever:
      return true;
    default:
      return false;
  }
}

// These say "details" even where there is nothing to say.
bool always_detailed(const base::Error& error) {
  const Code code = error.code;
  if (code == Code::kUnsupportedMediaType) return error.message.starts_with("415: ");
  if (code == Code::kNotAcceptable) return error.message.starts_with("406: ");
  return code == Code::kNotFound || code == Code::kForbidden || code == Code::kMethodNotAllowed ||
         code == Code::kInvalid;
}

bool is_too_large_version(const base::Error& error) {
  return error.code == Code::kTimeout && !error.causes.empty() &&
         error.causes[0].reason == "ResourceVersionTooLarge";
}

bool is_plain(const base::Error& error) {
  return error.causes.size() == 1 && error.causes[0].field == kPlainField;
}

void set_text(json::Value& object, std::string_view key, std::string_view text) {
  if (!text.empty()) object.set(key, text);
}

json::Value causes_of(const base::Error& error) {
  json::Value causes = json::Value::array();
  for (const base::Cause& cause : error.causes) {
    if (cause.field == kContinueField) continue;
    json::Value one = json::Value::object();
    set_text(one, "reason", cause.reason);
    set_text(one, "message", cause.message);
    set_text(one, "field", cause.field);
    causes.push_back(std::move(one));
  }
  if (error.causes.empty() && error.code == Code::kInternal) {
    causes.push_back(json::Value::object({{"message", error.message}}));
  }
  return causes;
}

// "namespaces "x" not found" may speak of another object than the one asked for.
StatusSubject subject_of_not_found(const std::string& message, const StatusSubject& asked) {
  constexpr std::string_view kEnd = "\" not found";
  const size_t quote = message.find(" \"");
  if (!message.ends_with(kEnd) || quote == std::string::npos || message.find(' ') != quote)
    return asked;
  StatusSubject out;
  out.name = message.substr(quote + 2, message.size() - kEnd.size() - quote - 2);
  const size_t dot = std::min(message.find('.'), quote);
  out.resource = message.substr(0, dot);
  if (dot < quote) out.group = message.substr(dot + 1, quote - dot - 1);
  return out;
}

// `Pod "x" is invalid: ...` and `Operation cannot be fulfilled on pods "x": ...` say themselves what they are about (which
// may be the options, or a Scale); other conflicts are about fields.
StatusSubject subject_of_message(const base::Error& error, const StatusSubject& asked) {
  constexpr std::string_view kConflict = "Operation cannot be fulfilled on ";
  std::string_view text = error.message;
  const bool conflict = error.code == Code::kConflict;
  if (conflict && text.starts_with("Apply failed with ")) return {};
  if (conflict && !text.starts_with(kConflict)) return asked;
  if (conflict) text.remove_prefix(kConflict.size());
  const size_t open = text.find(" \"");
  if (open == std::string_view::npos || text.find(' ') != open) return asked;
  const size_t close = text.find(conflict ? "\": " : "\" is invalid: ", open + 2);
  if (close == std::string_view::npos) return asked;
  StatusSubject out;
  const std::string_view what = text.substr(0, open);
  const size_t dot = what.find('.');
  out.resource = out.kind = what.substr(0, dot);
  if (dot != std::string_view::npos) out.group = what.substr(dot + 1);
  out.name = text.substr(open + 2, close - open - 2);
  return out;
}

StatusSubject subject_of(const base::Error& error, const StatusSubject& asked) {
  if (error.code == Code::kNotFound) return subject_of_not_found(error.message, asked);
  const bool told = error.code == Code::kInvalid || error.code == Code::kConflict;
  return told ? subject_of_message(error, asked) : asked;
}

json::Value details_of(const base::Error& error, const StatusSubject& asked) {
  json::Value details = json::Value::object();
  const StatusSubject subject = subject_of(error, asked);
  // kubectl shows the message of an Invalid only where neither causes nor an object are named.
  const bool bare = error.code == Code::kInvalid && error.causes.empty();
  if (names_subject(error.code) && !bare) {
    set_text(details, "name", subject.name);
    set_text(details, "group", subject.group);
    const bool by_kind = error.code == Code::kInvalid || error.code == Code::kNever;
    set_text(details, "kind", by_kind ? subject.kind : subject.resource);
    set_text(details, "uid", subject.uid);
  }
  if (json::Value causes = causes_of(error); !causes.empty()) {
    details.set("causes", std::move(causes));
  }
  if (const int seconds = retry_after_seconds(error); seconds > 0) {
    details.set("retryAfterSeconds", seconds);
  }
  return details;
}

std::string message_of(const base::Error& error) {
  return is_too_large_version(error) && !error.message.starts_with("Timeout: ")
             ? "Timeout: " + error.message
             : error.message;
}

}  // namespace

int retry_after_seconds(const base::Error& error) {
  switch (error.code) {
    case Code::kTooManyRequests:
      return error.causes.empty() ? 1
                                  : 0;  // a disruption budget does not free up by waiting a second
    case Code::kUnavailable:
    case Code::kBusy:
      return 1;
    case Code::kTimeout:
      return is_too_large_version(error) ? 1 : 0;
    default:
      return 0;
  }
}

json::Value status_body(const base::Error& error, const StatusSubject& subject) {
  json::Value status = json::Value::object({{"kind", "Status"},
                                            {"apiVersion", "v1"},
                                            {"metadata", json::Value::object()},
                                            {"status", "Failure"},
                                            {"message", message_of(error)},
                                            {"reason", base::reason_of(error.code)},
                                            {"code", base::http_status_of(error.code)}});
  for (const base::Cause& cause : error.causes) {
    if (cause.field == kContinueField) status.ref("metadata").set("continue", cause.message);
  }
  if (is_plain(error)) {
    status.erase("reason");
    return status;
  }
  json::Value details = details_of(error, subject);
  if (!details.empty() || always_detailed(error)) status.set("details", std::move(details));
  return status;
}

std::string warning_header(std::string_view text) {
  std::string out = "299 - \"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    // Header values carry no control characters: a line break would start another header.
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  out += '"';
  return out;
}

}  // namespace tessera::apiserver
