#include "scheduler/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "json/yaml.h"
#include "kube/validate_names.h"
#include "scheduler/config_lines.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using base::Duration;
using base::seconds;
using json::Value;

constexpr std::string_view kApiVersion = "tessera.dev/v1alpha1";
constexpr Duration kDay = seconds(86'400);
constexpr size_t kNamesMax = 64;
constexpr size_t kShown = 60;  // of a text in an error

std::string shown(const Value& value) {
  std::string text = value.dump();
  if (text.size() <= kShown) return text;
  size_t end = kShown;  // not in the middle of a character
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// Names of fields are shown as they are, other keys quoted.
std::string shown_path(const std::string& path) {
  const bool plain = path.size() <= kShown && std::ranges::all_of(path, [](char c) {
                       return c == '.' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                              (c >= 'a' && c <= 'z');
                     });
  return plain ? path : shown(path);
}

// A value with its place in the document.
class Node {
 public:
  Node(std::string_view text, std::string_view origin, const Value& value, std::string path = {})
      : text_(text), origin_(origin), value_(value), path_(std::move(path)) {}

  const Value& value() const { return value_; }

  Node at(std::string_view key) const {
    return {text_, origin_, value_[key],
            path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
  }

  template <class... Args>
  tl::unexpected<base::Error> bad(fmt::format_string<Args...> format, Args&&... args) const {
    std::string where(origin_);
    if (const int line = line_of(text_, path_); line > 0) where += fmt::format(": line {}", line);
    if (!path_.empty()) where += ": " + shown_path(path_);
    return base::error(Code::kInvalid, "{}: {}", where,
                       fmt::format(format, std::forward<Args>(args)...));
  }

  // A mapping with none but these keys, and a value for each that is there.
  base::Status keys(std::initializer_list<std::string_view> known) const {
    if (!value_.is_object()) {
      return bad("must be a mapping with {}, not {}", fmt::join(known, ", "), shown(value_));
    }
    for (const json::Member& member : value_.members()) {
      const Node child = at(member.name());
      if (std::ranges::find(known, member.name()) == known.end()) {
        return child.bad("no such field; fields are {}", fmt::join(known, ", "));
      }
      if (member.value.is_null()) return child.bad("has no value; give one or leave the field out");
    }
    return {};
  }

  base::Status read(Duration& out, Duration low, Duration high) const {
    if (value_.is_null()) return {};
    if (!value_.is_string()) {
      return bad("must be a duration as 90s, 10m or 1h30m, not {}", shown(value_));
    }
    const auto parsed = base::parse_duration(value_.as_string());
    if (!parsed) return bad("must be a duration as 90s, 10m or 1h30m, not {}", shown(value_));
    if (*parsed < low || *parsed > high) {
      return bad("must be {} to {}, not {}", base::to_string(low), base::to_string(high),
                 base::to_string(*parsed));
    }
    out = *parsed;
    return {};
  }

  // A duration that is off where the field is left out; `without` says what is so then.
  base::Status read(std::optional<Duration>& out, Duration high, std::string_view without) const {
    if (value_.is_null()) return {};
    const auto parsed = value_.is_string()
                            ? base::parse_duration(value_.as_string())
                            : base::Result<Duration>(Duration{value_.as_double(1) == 0 ? 0 : 1});
    if (parsed && parsed->ns <= 0) return bad("must be more than 0; leave it out and {}", without);
    Duration given;
    TS_TRY_STATUS(read(given, seconds(1), high));
    out = given;
    return {};
  }

  base::Status read(int32_t& out, int32_t low, int32_t high) const {
    if (value_.is_null()) return {};
    if (!value_.is_int() || value_.as_int() < low || value_.as_int() > high) {
      return bad("must be a whole number from {} to {}, not {}", low, high, shown(value_));
    }
    out = static_cast<int32_t>(value_.as_int());
    return {};
  }

  base::Status read(bool& out) const {
    if (value_.is_null()) return {};
    if (!value_.is_bool()) return bad("must be true or false, not {}", shown(value_));
    out = value_.as_bool();
    return {};
  }

  // `check` answers why a name is none.
  base::Status read(std::string& out, kube::Reasons (*check)(std::string_view)) const {
    if (value_.is_null()) return {};
    if (!value_.is_string() || value_.as_string().empty())
      return bad("must be a name, not {}", shown(value_));
    if (const auto reasons = check(value_.as_string()); !reasons.empty()) {
      return bad("{} is no name here: {}", shown(value_), reasons[0]);
    }
    out = value_.str();
    return {};
  }

 private:
  std::string_view text_;
  std::string_view origin_;
  const Value& value_;
  std::string path_;
};

base::Status read_kind(const Node& root) {
  const auto must_be = [&](std::string_view field, std::string_view wanted) -> base::Status {
    const Value& value = root.value()[field];
    if (value.is_null()) return root.bad("{} is missing; write {}: {}", field, field, wanted);
    if (value.as_string() != wanted)
      return root.at(field).bad("must be {}, not {}", wanted, shown(value));
    return {};
  };
  TS_TRY_STATUS(must_be("apiVersion", kApiVersion));
  return must_be("kind", "SchedulerConfig");
}

base::Status read_names(const Node& node, std::vector<std::string>& out) {
  const Value& value = node.value();
  if (value.is_null()) return {};
  if (!value.is_array() || value.empty()) {
    return node.bad("must list names of schedulers, as [tessera], not {}", shown(value));
  }
  if (value.size() > kNamesMax) return node.bad("must be at most {} names", kNamesMax);
  out.clear();
  for (const Value& name : value.items()) {
    if (!name.is_string()) return node.bad("{} is no name; quote it", shown(name));
    if (const auto reasons = kube::check_dns1123_subdomain(name.as_string()); !reasons.empty()) {
      return node.bad("{} is no name here: {}", shown(name), reasons[0]);
    }
    if (std::ranges::find(out, name.as_string()) != out.end()) {
      return node.bad("{} stands twice; leave one out", shown(name));
    }
    out.push_back(name.str());
  }
  return {};
}

base::Status read_policy(const Node& node, core::Policy& out) {
  if (node.value().is_null()) return {};
  const auto policy = core::parse_policy(node.value().as_string());
  if (!policy) {
    std::vector<std::string_view> known;
    for (const core::Policy each : core::all_policies()) known.push_back(core::name_of(each));
    return node.bad("must be one of {}, not {}", fmt::join(known, ", "), shown(node.value()));
  }
  out = *policy;
  return {};
}

base::Status read_shard(const Node& node, std::optional<SchedulerConfig::Shard>& out) {
  if (node.value().is_null()) return {};
  TS_TRY_STATUS(node.keys({"key", "value"}));
  for (const char* field : {"key", "value"}) {
    if (!node.value().contains(field)) {
      return node.bad("{} is missing; a shard is a label of nodes, as {{key: pool, value: a}}",
                      field);
    }
  }
  SchedulerConfig::Shard shard;
  TS_TRY_STATUS(node.at("key").read(shard.key, kube::check_qualified_name));
  const Value& value = node.value()["value"];
  if (!value.is_string() || !value.as_string().empty()) {
    TS_TRY_STATUS(node.at("value").read(shard.value, kube::check_label_value));
  }
  out = std::move(shard);
  return {};
}

base::Status read_election(const Node& node, SchedulerConfig::LeaderElection& out) {
  if (node.value().is_null()) return {};
  TS_TRY_STATUS(
      node.keys({"enabled", "namespace", "name", "leaseDuration", "renewDeadline", "retryPeriod"}));
  TS_TRY_STATUS(node.at("enabled").read(out.enabled));
  TS_TRY_STATUS(node.at("namespace").read(out.ns, kube::check_dns1123_label));
  TS_TRY_STATUS(node.at("name").read(out.name, kube::check_dns1123_subdomain));
  const Duration hour = seconds(3600);
  TS_TRY_STATUS(node.at("leaseDuration").read(out.lease_duration, seconds(3), hour));
  TS_TRY_STATUS(node.at("renewDeadline").read(out.renew_deadline, seconds(2), hour));
  TS_TRY_STATUS(node.at("retryPeriod").read(out.retry_period, base::millis(100), hour));
  if (out.lease_duration.ns % seconds(1).ns != 0) {
    return node.at("leaseDuration")
        .bad("must be whole seconds, not {}", base::to_string(out.lease_duration));
  }
  // Room for an answer between each two.
  if (out.renew_deadline > out.lease_duration - seconds(1)) {
    return node.bad("renewDeadline {} must be at least 1s below leaseDuration {}",
                    base::to_string(out.renew_deadline), base::to_string(out.lease_duration));
  }
  if (out.retry_period > out.renew_deadline - seconds(1)) {
    return node.bad("retryPeriod {} must be at least 1s below renewDeadline {}",
                    base::to_string(out.retry_period), base::to_string(out.renew_deadline));
  }
  return {};
}

base::Status read_queueing(const Node& root, SchedulerConfig& out) {
  TS_TRY_STATUS(root.at("halfLife").read(out.half_life, kDay * 3650, "the past counts nothing"));
  TS_TRY_STATUS(
      root.at("patience").read(out.patience, kDay * 3650, "no gang is tried before its turn"));
  TS_TRY_STATUS(root.at("reservationsMax").read(out.reservations_max, 0, 1000));
  TS_TRY_STATUS(root.at("brokenAfter").read(out.broken_after, Duration{}, kDay));
  TS_TRY_STATUS(root.at("claimTimeout").read(out.claim_timeout, seconds(1), kDay));
  return root.at("evictions").read(out.evictions);
}

base::Status read_driver(const Node& root, SchedulerConfig& out) {
  TS_TRY_STATUS(root.at("explainPeriod").read(out.explain_period, seconds(1), kDay));
  TS_TRY_STATUS(root.at("volumeTimeout").read(out.volume_timeout, seconds(1), kDay));
  return root.at("bindsInFlightMax").read(out.binds_in_flight_max, 1, 100'000);
}

}  // namespace

base::Result<SchedulerConfig> parse_config(std::string_view yaml, std::string_view origin) {
  json::YamlOptions limits;
  limits.bytes_max = kConfigBytesMax;
  limits.depth_max = 16;
  limits.nodes_max = 10'000;
  const auto documents = json::parse_yaml_stream(yaml, limits);
  if (!documents) return base::error(documents.error().in(origin));
  const Value nothing;
  const Node root(yaml, origin, documents->empty() ? nothing : documents->front());
  if (root.value().is_null()) {
    return root.bad("is empty; write apiVersion: {} and kind: SchedulerConfig", kApiVersion);
  }
  if (documents->size() > 1) {
    return root.bad("holds {} documents; leave one of them", documents->size());
  }
  if (!root.value().is_object()) return root.bad("must be a mapping with apiVersion and kind");
  TS_TRY_STATUS(read_kind(root));
  TS_TRY_STATUS(
      root.keys({"apiVersion", "kind", "schedulerNames", "policy", "halfLife", "patience",
                 "reservationsMax", "brokenAfter", "claimTimeout", "explainPeriod", "volumeTimeout",
                 "bindsInFlightMax", "evictions", "shard", "leaderElection"}));
  SchedulerConfig out;
  TS_TRY_STATUS(read_names(root.at("schedulerNames"), out.scheduler_names));
  TS_TRY_STATUS(read_policy(root.at("policy"), out.policy));
  TS_TRY_STATUS(read_queueing(root, out));
  TS_TRY_STATUS(read_driver(root, out));
  TS_TRY_STATUS(read_shard(root.at("shard"), out.shard));
  TS_TRY_STATUS(read_election(root.at("leaderElection"), out.leader_election));
  return out;
}

base::Status can_change(const SchedulerConfig& now, const SchedulerConfig& next) {
  std::vector<std::string_view> fixed;
  if (now.scheduler_names != next.scheduler_names) fixed.push_back("schedulerNames");
  if (now.shard != next.shard) fixed.push_back("shard");
  if (now.leader_election != next.leader_election) fixed.push_back("leaderElection");
  if (fixed.empty()) return {};
  return base::error(
      Code::kInvalid,
      "{} cannot change while the scheduler runs; restart it, or take the change back",
      fmt::join(fixed, ", "));
}

base::Duration request_timeout(const SchedulerConfig::LeaderElection& election) {
  const int64_t left = std::min((election.lease_duration - election.renew_deadline).ns,
                                (election.renew_deadline - election.retry_period).ns);
  return std::min(seconds(4), base::nanos(left / 5 * 4));
}

}  // namespace tessera::scheduler
