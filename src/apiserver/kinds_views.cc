#include "apiserver/kinds_views.h"

#include <algorithm>
#include <utility>

#include "apiserver/columns.h"
#include "apiserver/validate_core.h"
#include "apiserver/validate_meta.h"
#include "kube/schema.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// A member of events.k8s.io/v1 Event and its name in the core's.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"deprecatedCount", "count"},
    {"deprecatedFirstTimestamp", "firstTimestamp"},
    {"deprecatedLastTimestamp", "lastTimestamp"},
    {"deprecatedSource", "source"},
    {"note", "message"},
    {"regarding", "involvedObject"},
    {"reportingController", "reportingComponent"}};

std::string_view core_name(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name, [](const auto& pair) { return pair.first; });
  return found == std::end(kNames) ? name : found->second;
}

std::string_view new_name(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name, [](const auto& pair) { return pair.second; });
  return found == std::end(kNames) ? name : found->first;
}

// Zero values are written by other rules under the other name, which normalize knows.
Value renamed(const Value& event, std::string_view group, std::string_view api_version,
              std::string_view (*name_of)(std::string_view)) {
  Value out = Value::object();
  for (const json::Member& member : event.members()) out.set(name_of(member.name()), member.value);
  out.set("apiVersion", api_version);
  out.set("kind", "Event");
  const kube::SchemaType* type = kube::find_kind_schema(group, "v1", "Event");
  auto normal = kube::normalize(*type, out, nullptr);
  return normal ? *normal : out;
}

Value to_core(const Value& event) {
  return renamed(event, "", "v1", core_name);
}

Value from_core(const Value& event) {
  return renamed(event, "events.k8s.io", "events.k8s.io/v1", new_name);
}

// "regarding.name" -> "involvedObject.name"
std::string core_field(std::string_view field) {
  const size_t dot = std::min(field.find('.'), field.size());
  return std::string(core_name(field.substr(0, dot))).append(field.substr(dot));
}

void validate_series(const Value& event, FieldErrors& errors) {
  if (!event["series"].is_object()) return;
  if (event["series"]["count"].as_int() < 2) {
    errors.invalid("series.count", Value(""), "should be at least 2");
  }
  if (!event["series"]["lastObservedTime"].is_string()) errors.required("series.lastObservedTime");
}

// Looks at the stored form: what the newer API demands beyond validate_event.
void validate_new_event(const Value& event, FieldErrors& errors) {
  validate_series(event, errors);
  if (!event["eventTime"].is_string()) errors.required("eventTime");
  const std::string_view type = event["type"].as_string();
  if (type != "Normal" && type != "Warning") {
    errors.invalid("type", Value(""), fmt::format("has invalid value: {}", type));
  }
}

void validate_new_event_update(const Value& event, const Value& before, FieldErrors& errors) {
  for (const char* field : {"involvedObject", "reason", "message", "source", "firstTimestamp",
                            "lastTimestamp", "count", "type", "eventTime", "action", "related"}) {
    validate_immutable(event[field], before[field], Path(field), errors);
  }
  validate_immutable(event["reportingComponent"], before["reportingComponent"],
                     Path("reportingController"), errors);
  validate_immutable(event["reportingInstance"], before["reportingInstance"],
                     Path("reportingInstance"), errors);
}

}  // namespace

std::vector<Column> columns_of_view(std::vector<Column> columns, Value (*to_stored)(const Value&)) {
  for (Column& column : columns) {
    if (!column.cell) continue;
    column.cell = [cell = std::move(column.cell), to_stored](const kube::Object& object,
                                                             base::Time now) {
      return cell(kube::Object(to_stored(object.json())), now);
    };
  }
  return columns;
}

void add_view_kinds(Kinds& kinds) {
  kinds.add(autoscaler_v1_kind());
  kinds.add(
      {.group = "events.k8s.io",
       .kind = "Event",
       .plural = "events",
       .singular = "event",
       .short_names = {"ev"},
       .validate = validate_new_event,
       .validate_update = validate_new_event_update,
       .selectable_fields = {"reason", "regarding.kind", "regarding.namespace", "regarding.name",
                             "regarding.uid", "regarding.apiVersion", "regarding.resourceVersion",
                             "regarding.fieldPath", "reportingController", "type"},
       .columns = columns_of_view(event_columns(), to_core),
       .view = KindView{.of = kube::core_v1("events"),
                        .to_stored = to_core,
                        .from_stored = from_core,
                        .stored_field = core_field}});
}

}  // namespace tessera::apiserver
