#include "apiserver/front_logs.h"

#include <charconv>
#include <mutex>
#include <utility>

#include "apiserver/api_errors.h"
#include "apiserver/routes.h"

namespace tessera::apiserver {
namespace {

using base::Code;

constexpr std::array<std::string_view, 3> kContainerLists = {"initContainers", "containers",
                                                             "ephemeralContainers"};

// As Kubernetes reads these: there, and neither 0 nor false.
bool flag(const kube::Request& asked, std::string_view key) {
  for (const auto& [name, value] : asked.query) {
    if (name != key) continue;
    std::string low = value;
    for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return low != "0" && low != "false";
  }
  return false;
}

base::Result<std::optional<int64_t>> number(const kube::Request& asked, std::string_view key) {
  const std::string_view text = asked.option(key);
  if (text.empty()) return std::optional<int64_t>();
  int64_t out = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault == std::errc() && end == text.data() + text.size()) return std::optional(out);
  return base::error(
      Code::kBadRequest, "strconv.ParseInt: parsing \"{}\": {}", text.substr(0, 64),
      fault == std::errc::result_out_of_range ? "value out of range" : "invalid syntax");
}

base::Result<std::optional<base::Time>> time_option(const kube::Request& asked) {
  const std::string_view text = asked.option("sinceTime");
  if (text.empty()) return std::optional<base::Time>();
  if (const auto time = base::parse_rfc3339(text)) {
    constexpr int64_t kSecond = 1'000'000'000;
    return std::optional(base::Time{time->ns - ((time->ns % kSecond) + kSecond) % kSecond});
  }
  return base::error(Code::kBadRequest,
                     "parsing time \"{0}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{0}\" "
                     "as \"2006\"",
                     text.substr(0, 64));
}

base::Cause too_small(std::string_view field, int64_t value, std::string_view bound) {
  return {"FieldValueInvalid", fmt::format("Invalid value: {}: must be {}", value, bound),
          std::string(field)};
}

// Passes the pieces of a log on to the client. The stream begins with the first of them.
class StreamReader : public LogReader {
 public:
  explicit StreamReader(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  void fail(base::Error error) override {
    exchange_->seat.reset();
    send_error(*exchange_, error);
  }
  bool write(std::string text) override {
    begin();
    return exchange_->responder->write(std::move(text));
  }
  void end() override {
    begin();
    exchange_->responder->end_stream();
  }

 private:
  void begin() {
    if (std::exchange(begun_, true)) return;
    exchange_->seat.reset();
    exchange_->responder->begin_stream(200, "text/plain", reply_headers(*exchange_));
  }

  const std::shared_ptr<Exchange> exchange_;
  bool begun_ = false;
};

bool has_container(const json::Value& pod, std::string_view container) {
  for (const std::string_view list : kContainerLists) {
    for (const json::Value& one : pod.get("spec", list).items()) {
      if (one["name"].as_string() == container) return true;
    }
  }
  return false;
}

// The container asked for, or the only one there is.
base::Result<std::string> choose_container(const json::Value& pod, std::string_view asked) {
  const std::string_view name = pod.get("metadata", "name").as_string();
  if (!asked.empty()) {
    if (has_container(pod, asked)) return std::string(asked);
    return base::error(Code::kBadRequest, "container {} is not valid for pod {}", asked, name);
  }
  const json::Value& containers = pod.get("spec", "containers");
  if (containers.size() == 1) return containers.at(0)["name"].str();
  std::string all;
  for (const std::string_view list : kContainerLists) {
    for (const json::Value& one : pod.get("spec", list).items()) {
      all.append(all.empty() ? "" : " ").append(one["name"].as_string());
    }
  }
  return base::error(Code::kBadRequest,
                     "a container name must be specified for pod {}, choose one of: [{}]", name,
                     all);
}

}  // namespace

base::Result<LogQuery> read_log_query(const kube::Request& asked, base::Time now) {
  LogQuery out;
  out.container = asked.option("container");
  out.follow = flag(asked, "follow");
  out.previous = flag(asked, "previous");
  out.timestamps = flag(asked, "timestamps");
  TS_TRY(out.tail_lines, number(asked, "tailLines"));
  TS_TRY(out.limit_bytes, number(asked, "limitBytes"));
  TS_TRY(const auto seconds, number(asked, "sinceSeconds"));
  TS_TRY(out.since, time_option(asked));
  std::vector<base::Cause> causes;
  if (out.tail_lines && *out.tail_lines < 0) {
    causes.push_back(too_small("tailLines", *out.tail_lines, "greater than or equal to 0"));
  }
  if (out.limit_bytes && *out.limit_bytes < 1) {
    causes.push_back(too_small("limitBytes", *out.limit_bytes, "greater than 0"));
  }
  if (seconds && out.since) {
    causes.push_back({"FieldValueForbidden",
                      "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
                      "[]"});
  } else if (seconds && *seconds < 1) {
    causes.push_back(too_small("sinceSeconds", *seconds, "greater than 0"));
  }
  if (!asked.option("stream").empty()) {
    causes.push_back({"FieldValueForbidden", "Forbidden: may not be specified", "stream"});
  }
  if (!causes.empty()) {
    Kind options;
    options.kind = "PodLogOptions";
    return base::error(invalid(options, asked.name, std::move(causes)));
  }
  constexpr int64_t kCentury = int64_t{100} * 366 * 86400;
  if (seconds) out.since = now - base::seconds(std::min(*seconds, kCentury));
  return out;
}

void answer_log(const std::shared_ptr<Exchange>& exchange, LogQuery query, const json::Value& pod,
                bool node_known, ContainerLogs* logs) {
  const auto reader = std::make_shared<StreamReader>(exchange);
  auto container = choose_container(pod, query.container);
  if (!container) return reader->fail(container.error());
  query.container = std::move(*container);
  query.ns = pod.get("metadata", "namespace").str();
  query.pod = pod.get("metadata", "name").str();
  query.uid = pod.get("metadata", "uid").str();
  query.node = pod.get("spec", "nodeName").str();
  if (query.node.empty()) {  // the log of what has not begun is empty
    exchange->seat.reset();
    return send_text(*exchange, 204, {}, {});
  }
  if (!node_known) {  // Kubernetes looks for the node where it looks for pods, and says so
    return reader->fail({Code::kNotFound, fmt::format("pods \"{}\" not found", query.node), {}});
  }
  if (logs == nullptr) {
    return reader->fail(plain_error(fmt::format(
        "no kubelet answers on node {}: no simulated nodes run in this server", query.node)));
  }
  logs->read(std::move(query), reader);
}

base::Error no_process_error(const json::Value& pod, const kube::Request& asked) {
  const std::string_view name = pod.get("metadata", "name").as_string();
  if (asked.subresource != "portforward") {
    if (auto known = choose_container(pod, asked.option("container")); !known) return known.error();
  }
  if (pod.get("spec", "nodeName").as_string().empty()) {
    return {Code::kBadRequest, fmt::format("pod {} does not have a host assigned", name), {}};
  }
  const std::string_view what = asked.subresource == "portforward" ? "ports to forward"
                                : asked.subresource == "exec"      ? "place to run a command"
                                                                   : "process to attach to";
  return {
      Code::kBadRequest,
      fmt::format("simulated pods have no {}: no container of pod {} runs anywhere", what, name),
      {}};
}

}  // namespace tessera::apiserver
