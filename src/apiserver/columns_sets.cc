#include "apiserver/columns.h"

namespace tessera::apiserver {
namespace {

using json::Value;

Value stateful_ready(const kube::Object& set, base::Time) {
  return Value(fmt::format("{}/{}", set.get("status", "readyReplicas").as_int(),
                           set.get("spec", "replicas").as_int()));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// "statefulset.apps/web"
Value revision_owner(const kube::Object& revision, base::Time) {
  for (const Value& owner : revision.metadata()["ownerReferences"].items()) {
    if (!owner["controller"].as_bool()) continue;
    const std::string_view version = owner["apiVersion"].as_string();
    const size_t slash = version.find('/');
    std::string kind = owner["kind"].str();
    if (slash != version.npos) kind.append(".").append(version.substr(0, slash));
    return Value(lower(kind) + "/" + owner["name"].str());
  }
  return Value("<none>");
}

Value suspended(const kube::Object& job, base::Time) {
  const Value& suspend = job.get("spec", "suspend");
  if (!suspend.is_bool()) return Value("<unset>");
  return Value(suspend.as_bool() ? "True" : "False");
}

Value last_schedule(const kube::Object& job, base::Time now) {
  const Value& last = job.get("status", "lastScheduleTime");
  return Value(last.is_string() ? since(last, now) : "<none>");
}

}  // namespace

std::vector<Column> stateful_set_columns() {
  auto [names, images] = container_columns({"spec", "template"});
  return {name_column(), text_column("Ready", stateful_ready), age_column(), names, images};
}

std::vector<Column> daemon_set_columns() {
  std::vector<Column> out = {
      name_column(),
      number_column("Desired", number_at("status", "desiredNumberScheduled")),
      number_column("Current", number_at("status", "currentNumberScheduled")),
      number_column("Ready", number_at("status", "numberReady")),
      number_column("Up-to-date", number_at("status", "updatedNumberScheduled")),
      number_column("Available", number_at("status", "numberAvailable")),
      text_column("Node Selector",
                  [](const kube::Object& set, base::Time) {
                    return Value(labels_text(set.get("spec", "template", "spec", "nodeSelector")));
                  }),
      age_column()};
  add_template_columns(out);
  return out;
}

std::vector<Column> controller_revision_columns() {
  return {name_column(), text_column("Controller", revision_owner),
          text_column("Revision", [](const kube::Object& revision,
                                     base::Time) { return Value(revision["revision"].as_int()); }),
          age_column()};
}

std::vector<Column> cron_job_columns() {
  auto [names, images] = container_columns({"spec", "jobTemplate", "spec", "template"});
  return {
      name_column(),
      text_column("Schedule", text_at({"spec", "schedule"})),
      text_column("Timezone", text_at({"spec", "timeZone"}, "<none>")),
      bool_column("Suspend", suspended),
      number_column("Active", [](const kube::Object& job,
                                 base::Time) { return Value(job.get("status", "active").size()); }),
      text_column("Last Schedule", last_schedule),
      age_column(),
      names,
      images,
      wide_column("Selector", [](const kube::Object& job, base::Time) {
        return Value(selector_text(job.get("spec", "jobTemplate", "spec", "selector")));
      })};
}

std::vector<Column> pod_template_columns() {
  auto [names, images] = container_columns({"template"});
  names.priority = 0;
  images.priority = 0;
  return {name_column(), names, images,
          text_column("Pod Labels", [](const kube::Object& object, base::Time) {
            return Value(labels_text(object.get("template", "metadata", "labels")));
          })};
}

std::vector<Column> replication_controller_columns() {
  auto [names, images] = container_columns({"spec", "template"});
  return {name_column(),
          number_column("Desired", number_at("spec", "replicas")),
          number_column("Current", number_at("status", "replicas")),
          number_column("Ready", number_at("status", "readyReplicas")),
          age_column(),
          names,
          images,
          wide_column("Selector", [](const kube::Object& object, base::Time) {
            return Value(labels_text(object.get("spec", "selector")));
          })};
}

}  // namespace tessera::apiserver
