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

Column bool_column(std::string name, Cell cell) {
  return {.name = std::move(name), .type = "boolean", .cell = std::move(cell)};
}

Cell text_at(std::initializer_list<const char*> path, const char* otherwise) {
  return
      [steps = std::vector<const char*>(path), otherwise](const kube::Object& object, base::Time) {
        const Value* at = &object.json();
        for (const char* step : steps) at = &(*at)[step];
        return Value(at->is_string() ? at->as_string() : std::string_view(otherwise));
      };
}

Cell number_at(const char* part, const char* field) {
  return [part, field](const kube::Object& object, base::Time) {
    return Value(object.get(part, field).as_int());
  };
}

std::string with_more(const std::vector<std::string>& shown, size_t count) {
  std::string out;
  for (const std::string& one : shown) out += (out.empty() ? "" : ",") + one;
  return count > shown.size() ? fmt::format("{} + {} more...", out, count - shown.size()) : out;
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

std::pair<Column, Column> container_columns(std::initializer_list<const char*> pod_template) {
  const auto of = [steps = std::vector<const char*>(pod_template)](const char* member) -> Cell {
    return [steps, member](const kube::Object& object, base::Time) {
      const Value* at = &object.json();
      for (const char* step : steps) at = &(*at)[step];
      return Value(joined(at->get("spec", "containers"), member));
    };
  };
  return {wide_column("Containers", of("name")), wide_column("Images", of("image"))};
}

void add_template_columns(std::vector<Column>& columns) {
  auto [names, images] = container_columns({"spec", "template"});
  columns.push_back(std::move(names));
  columns.push_back(std::move(images));
  columns.push_back(wide_column("Selector", [](const kube::Object& object, base::Time) {
    return Value(selector_text(object.get("spec", "selector")));
  }));
}

}  // namespace tessera::apiserver
