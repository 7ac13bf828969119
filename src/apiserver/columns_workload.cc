#include "apiserver/columns.h"

namespace tessera::apiserver {
namespace {

using json::Value;

bool has_condition(const Value& object, std::string_view type) {
  for (const Value& condition : object.get("status", "conditions").items()) {
    if (condition["type"].as_string() == type) return condition["status"].as_string() == "True";
  }
  return false;
}

Value job_status(const kube::Object& job, base::Time) {
  for (const char* end : {"Complete", "Failed"}) {
    if (has_condition(job.json(), end)) return Value(end);
  }
  if (job.deleting()) return Value("Terminating");
  for (const char* state : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (has_condition(job.json(), state)) return Value(state);
  }
  return Value("Running");
}

Value job_completions(const kube::Object& job, base::Time) {
  const int64_t done = job.get("status", "succeeded").as_int();
  const Value& wanted = job.get("spec", "completions");
  if (wanted.is_int()) return Value(fmt::format("{}/{}", done, wanted.as_int()));
  const int64_t parallelism = job.get("spec", "parallelism").as_int();
  if (parallelism > 1) return Value(fmt::format("{}/1 of {}", done, parallelism));
  return Value(fmt::format("{}/1", done));
}

Value job_duration(const kube::Object& job, base::Time now) {
  const Value& started = job.get("status", "startTime");
  if (!started.is_string()) return Value("");
  const auto ended = base::parse_rfc3339(job.get("status", "completionTime").as_string());
  return Value(since(started, ended ? *ended : now));
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string first_seen(const kube::Object& event, base::Time now) {
  const Value& first = event["firstTimestamp"];
  return since(first.is_string() ? first : event["eventTime"], now);
}

Value last_seen(const kube::Object& event, base::Time now) {
  if (event["series"].is_object()) return Value(since(event["series"]["lastObservedTime"], now));
  const Value& last = event["lastTimestamp"];
  return Value(last.is_string() ? since(last, now) : first_seen(event, now));
}

Value event_object(const kube::Object& event, base::Time) {
  const std::string kind = lower(event.get("involvedObject", "kind").str());
  const std::string name = event.get("involvedObject", "name").str();
  return Value(name.empty() ? kind : kind + "/" + name);
}

Value event_source(const kube::Object& event, base::Time) {
  const auto first_of = [](const Value& a, const Value& b) {
    return a.as_string().empty() ? b.str() : a.str();
  };
  const std::string component =
      first_of(event.get("source", "component"), event["reportingComponent"]);
  const std::string instance = first_of(event.get("source", "host"), event["reportingInstance"]);
  return Value(instance.empty() ? component : component + ", " + instance);
}

Value event_count(const kube::Object& event, base::Time) {
  if (event["series"].is_object()) return Value(event["series"]["count"].as_int());
  return Value(event["count"].as_int() == 0 ? int64_t{1} : event["count"].as_int());
}

Value event_message(const kube::Object& event, base::Time) {
  std::string_view text = event["message"].as_string();
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return Value("");
  return Value(text.substr(begin, text.find_last_not_of(kSpace) - begin + 1));
}

Cell member(const char* name) {
  return [name](const kube::Object& object, base::Time) { return Value(object[name].as_string()); };
}

}  // namespace

std::vector<Column> deployment_columns() {
  std::vector<Column> out = {
      name_column(),
      text_column("Ready",
                  [](const kube::Object& object, base::Time) {
                    return Value(fmt::format("{}/{}",
                                             object.get("status", "readyReplicas").as_int(),
                                             object.get("spec", "replicas").as_int()));
                  }),
      text_column("Up-to-date", number_at("status", "updatedReplicas")),
      text_column("Available", number_at("status", "availableReplicas")), age_column()};
  add_template_columns(out);
  return out;
}

std::vector<Column> replica_set_columns() {
  std::vector<Column> out = {name_column(), number_column("Desired", number_at("spec", "replicas")),
                             number_column("Current", number_at("status", "replicas")),
                             number_column("Ready", number_at("status", "readyReplicas")),
                             age_column()};
  add_template_columns(out);
  return out;
}

std::vector<Column> job_columns() {
  std::vector<Column> out = {name_column(), text_column("Status", job_status),
                             text_column("Completions", job_completions),
                             text_column("Duration", job_duration), age_column()};
  add_template_columns(out);
  return out;
}

std::vector<Column> event_columns() {
  Column name = name_column();
  name.priority = 1;
  return {text_column("Last Seen", last_seen),
          text_column("Type", member("type")),
          text_column("Reason", member("reason")),
          text_column("Object", event_object),
          wide_column("Subobject",
                      [](const kube::Object& event, base::Time) {
                        return Value(event.get("involvedObject", "fieldPath").as_string());
                      }),
          wide_column("Source", event_source),
          text_column("Message", event_message),
          wide_column("First Seen", [](const kube::Object& event,
                                       base::Time now) { return Value(first_seen(event, now)); }),
          wide_column("Count", event_count),
          name};
}

}  // namespace tessera::apiserver
