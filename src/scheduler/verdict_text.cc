// A Verdict as JSON and as text.

#include <fmt/format.h>

#include "scheduler/verdict.h"

namespace tessera::scheduler {
namespace {

// At most `most` bytes, whole characters, with dots where something is left out.
std::string cut(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most > 3 ? most - 3 : 0;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

json::Value cut_list(const std::vector<std::string>& items, size_t bytes, size_t& left_out) {
  json::Value out = json::Value::array();
  size_t used = 0;
  for (const std::string& item : items) {
    used += item.size();
    if (used > bytes && !out.empty()) {
      ++left_out;
      used = bytes + 1;
    } else {
      out.push_back(cut(item, bytes));
    }
  }
  return out;
}

class Json {
 public:
  explicit Json(size_t most) : most_(most) {}
  void text(json::Value& out, std::string_view key, std::string_view value) const {
    if (!value.empty()) out.set(key, cut(value, most_));
  }
  json::Value of(const Verdict& verdict) const {
    json::Value out = json::Value::object();
    text(out, "job", verdict.job);
    text(out, "queue", verdict.queue);
    out.set("reason", verdict.reason);
    text(out, "sentence", verdict.sentence);
    json::Value binds = constraint(verdict.constraint);
    if (!binds.empty()) out.set("constraint", std::move(binds));
    if (!verdict.nearest_node.empty() || !verdict.nearest_short.empty()) {
      json::Value nearest = json::Value::object();
      text(nearest, "node", verdict.nearest_node);
      text(nearest, "shortOf", verdict.nearest_short);
      out.set("nearest", std::move(nearest));
    }
    if (verdict.never) out.set("never", true);
    size_t dropped = 0;
    if (!verdict.mends.empty()) out.set("mends", cut_list(verdict.mends, most_, dropped));
    out.set("position", verdict.position);
    if (verdict.planned_start) out.set("plannedStart", base::to_rfc3339(*verdict.planned_start));
    if (verdict.estimated) out.set("estimated", true);
    auto more = static_cast<size_t>(verdict.planned_nodes_more);
    if (!verdict.planned_nodes.empty())
      out.set("plannedNodes", cut_list(verdict.planned_nodes, most_, more));
    if (more > 0) out.set("plannedNodesMore", more);
    out.set("members", verdict.members);
    out.set("minMembers", verdict.min_members);
    out.set("placed", verdict.placed);
    out.set("since", base::to_rfc3339(verdict.since));
    return out;
  }

 private:
  json::Value constraint(const Constraint& at) const {
    json::Value out = json::Value::object();
    text(out, "queue", at.queue);
    text(out, "resource", at.resource);
    text(out, "need", at.need);
    text(out, "have", at.have);
    text(out, "limit", at.limit);
    text(out, "job", at.job);
    text(out, "reservation", at.reservation);
    return out;
  }
  size_t most_;
};

// Reads fields; the first one of another type is the error.
class Fields {
 public:
  void text(const json::Value& in, const char* key, std::string& out) {
    const json::Value& value = in[key];
    if (value.is_null()) return;
    if (!value.is_string()) return fail(key, "text");
    out = value.str();
  }
  void number(const json::Value& in, const char* key, int64_t& out) {
    const json::Value& value = in[key];
    if (value.is_null()) return;
    if (!value.is_int() || value.as_int() < 0) return fail(key, "a whole number from 0");
    out = value.as_int();
  }
  void list(const json::Value& in, const char* key, std::vector<std::string>& out) {
    const json::Value& value = in[key];
    if (!value.is_null() && !value.is_array()) return fail(key, "a list of texts");
    for (const json::Value& item : value.items()) {
      if (!item.is_string()) return fail(key, "a list of texts");
      out.push_back(item.str());
    }
  }
  std::optional<base::Time> time(const json::Value& in, const char* key) {
    const json::Value& value = in[key];
    if (value.is_null()) return std::nullopt;
    const auto parsed = base::parse_rfc3339(value.as_string());
    if (parsed) return *parsed;
    fail(key, "a time such as 2026-11-30T09:27:03Z");
    return std::nullopt;
  }
  void fail(const char* key, const char* wanted) {
    if (problem.empty()) problem = fmt::format("{} is not {}", key, wanted);
  }
  std::string problem{};
};

std::string joined_nodes(const Verdict& verdict) {
  std::string out = fmt::format("{}", fmt::join(verdict.planned_nodes, ", "));
  if (verdict.planned_nodes_more > 0)
    out += fmt::format(" and {} more", verdict.planned_nodes_more);
  return out;
}

std::string line(std::string_view what, std::string_view text) {
  return fmt::format("  {:<15}{}\n", what, text);
}

}  // namespace

json::Value to_json(const Verdict& verdict) {
  json::Value out;
  for (size_t most = 600; most >= 4; most /= 2) {
    out = Json(most).of(verdict);
    if (out.dump().size() <= kVerdictBytesMax) break;
  }
  return out;
}

base::Result<Verdict> parse_verdict(const json::Value& value) {
  if (!value.is_object()) return base::error(base::Code::kBadRequest, "verdict: not an object");
  Verdict out;
  Fields fields;
  fields.text(value, "job", out.job);
  fields.text(value, "queue", out.queue);
  fields.text(value, "reason", out.reason);
  if (out.reason.empty()) fields.fail("reason", "given");
  fields.text(value, "sentence", out.sentence);
  const json::Value& at = value["constraint"];
  fields.text(at, "queue", out.constraint.queue);
  fields.text(at, "resource", out.constraint.resource);
  fields.text(at, "need", out.constraint.need);
  fields.text(at, "have", out.constraint.have);
  fields.text(at, "limit", out.constraint.limit);
  fields.text(at, "job", out.constraint.job);
  fields.text(at, "reservation", out.constraint.reservation);
  fields.text(value["nearest"], "node", out.nearest_node);
  fields.text(value["nearest"], "shortOf", out.nearest_short);
  out.never = value["never"].as_bool();
  fields.list(value, "mends", out.mends);
  fields.number(value, "position", out.position);
  out.planned_start = fields.time(value, "plannedStart");
  out.estimated = value["estimated"].as_bool();
  fields.list(value, "plannedNodes", out.planned_nodes);
  fields.number(value, "plannedNodesMore", out.planned_nodes_more);
  fields.number(value, "members", out.members);
  fields.number(value, "minMembers", out.min_members);
  fields.number(value, "placed", out.placed);
  out.since = fields.time(value, "since").value_or(base::Time());
  if (!fields.problem.empty())
    return base::error(base::Code::kBadRequest, "verdict: {}", fields.problem);
  return out;
}

std::string to_text(const Verdict& verdict) {
  if (verdict.reason == "None" && verdict.sentence.empty())
    return fmt::format("{} does not wait\n", verdict.job);
  std::string out =
      fmt::format("{} waits in queue \"{}\" ({})\n", verdict.job, verdict.queue, verdict.reason);
  if (!verdict.sentence.empty()) out += line("Why:", verdict.sentence);
  for (size_t i = 0; i < verdict.mends.size(); ++i)
    out += line(i > 0 ? "" : verdict.never ? "To mend it:" : "Needs:", verdict.mends[i]);
  if (!verdict.nearest_node.empty())
    out += line("Nearest node:",
                fmt::format("{}, short of {}", verdict.nearest_node, verdict.nearest_short));
  if (verdict.planned_start)
    out += line("Planned start:",
                fmt::format("{} on {}{}", base::to_rfc3339(*verdict.planned_start),
                            joined_nodes(verdict), verdict.estimated ? " (estimated)" : ""));
  out += line("In line:", verdict.position == 0
                              ? std::string("first")
                              : fmt::format("{} of its queue before it", verdict.position));
  if (verdict.min_members > 1 || verdict.members > 1)
    out += line("Members:", fmt::format("{} exist, {} must start together, {} have a place",
                                        verdict.members, verdict.min_members, verdict.placed));
  out += line("Waiting since:", base::to_rfc3339(verdict.since));
  return out;
}

}  // namespace tessera::scheduler
