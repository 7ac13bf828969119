#include "apiserver/columns.h"

#include <utility>

#include "kube/labels.h"

namespace tessera::apiserver {

using json::Value;

Column name_column() {
  return {.name = "Name", .format = "name", .cell = [](const kube::Object& object, base::Time) {
            return Value(object.name());
          }};
}

Column age_column() {
  return text_column("Age", [](const kube::Object& object, base::Time now) {
    return Value(since(object.metadata()["creationTimestamp"], now));
  });
}

Column text_column(std::string name, Cell cell) {
  return {.name = std::move(name), .cell = std::move(cell)};
}

Column wide_column(std::string name, Cell cell) {
  return {.name = std::move(name), .priority = 1, .cell = std::move(cell)};
}

Column number_column(std::string name, Cell cell) {
  return {.name = std::move(name), .type = "integer", .cell = std::move(cell)};
}

std::string since(const Value& time, base::Time now) {
  if (!time.is_string()) return "<unknown>";
  auto then = base::parse_rfc3339(time.as_string());
  return then ? base::to_human(now - *then) : "<unknown>";
}

std::string joined(const Value& list, std::string_view member) {
  std::string out;
  for (const Value& item : list.items()) {
    if (!out.empty()) out += ',';
    out += item[member].as_string();
  }
  return out;
}

std::string labels_text(const Value& labels) {
  std::string out;
  for (const json::Member& member : labels.members()) {
    if (!out.empty()) out += ',';
    out.append(member.name()).append("=").append(member.value.as_string());
  }
  return out.empty() ? "<none>" : out;
}

std::string selector_text(const Value& selector) {
  if (!selector.is_object()) return "<none>";
  auto parsed = kube::LabelSelector::from_json(selector, "selector");
  if (!parsed) return "<error>";
  const std::string text = parsed->to_string();
  return text.empty() ? "<none>" : text;
}

void add_template_columns(std::vector<Column>& columns) {
  columns.push_back(wide_column("Containers", [](const kube::Object& object, base::Time) {
    return Value(joined(object.get("spec", "template", "spec", "containers"), "name"));
  }));
  columns.push_back(wide_column("Images", [](const kube::Object& object, base::Time) {
    return Value(joined(object.get("spec", "template", "spec", "containers"), "image"));
  }));
  columns.push_back(wide_column("Selector", [](const kube::Object& object, base::Time) {
    return Value(selector_text(object.get("spec", "selector")));
  }));
}

}  // namespace tessera::apiserver
