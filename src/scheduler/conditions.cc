#include "scheduler/conditions.h"

#include <fmt/format.h>

#include <charconv>

#include "json/patch.h"

namespace tessera::scheduler {
namespace {

constexpr size_t kMessageMax = 1024;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

size_t past_digits(std::string_view text, size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

std::string bounded(std::string_view text) {
  if (text.size() <= kMessageMax) return std::string(text);
  size_t end = kMessageMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

std::string next_transition(std::string_view before) {
  int64_t count = 0;
  const auto read = std::from_chars(before.data(), before.data() + before.size(), count);
  const bool number = read.ec == std::errc() && read.ptr == before.data() + before.size();
  return fmt::format("{}", number && count >= 0 && count < INT64_MAX ? count + 1 : 1);
}

}  // namespace

bool same_but_for_numbers(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      i = past_digits(a, i);
      j = past_digits(b, j);
    } else if (a[i++] != b[j++]) {
      return false;
    }
  }
  return i == a.size() && j == b.size();
}

const json::Value& condition_of(const json::Value& status, std::string_view type) {
  static const json::Value kNone;
  for (const json::Value& each : status["conditions"].items()) {
    if (each["type"].as_string() == type) return each;
  }
  return kNone;
}

bool set_condition(json::Value& status, const Condition& condition, base::Time now,
                   bool transition_ids) {
  const json::Value before = condition_of(status, condition.type);
  const std::string message = bounded(condition.message);
  const bool turns = before["status"].as_string() != condition.status;
  const std::string_view said = before["message"].as_string();
  const bool same_message = condition.exact ? said == message : same_but_for_numbers(said, message);
  if (!turns && before["reason"].as_string() == condition.reason && same_message) return false;
  json::Value made = before.is_object() ? before : json::Value::object();
  made.set("type", condition.type);
  made.set("status", condition.status);
  made.set("reason", condition.reason);
  made.set("message", message);
  if (turns || !made.contains("lastTransitionTime"))
    made.set("lastTransitionTime", base::to_rfc3339(now));
  if (transition_ids && turns)
    made.set("transitionID", next_transition(before["transitionID"].as_string()));
  json::Value list = json::Value::array();
  bool placed = false;
  for (const json::Value& each : status["conditions"].items()) {
    const bool mine = each["type"].as_string() == condition.type;
    if (mine && placed) continue;  // one of a type
    list.push_back(mine ? made : each);
    placed |= mine;
  }
  if (!placed) list.push_back(made);
  status.set("conditions", std::move(list));
  return true;
}

json::Value status_patch(const json::Value& before, const json::Value& wanted) {
  const json::Value diff =
      json::diff_merge_patch(before.is_object() ? before : json::Value::object(), wanted);
  if (diff.is_object() && diff.empty()) return {};
  return json::Value::object({{"status", diff}});
}

}  // namespace tessera::scheduler
