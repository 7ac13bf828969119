#include "apiserver/registry_selection.h"

#include <algorithm>

namespace tessera::apiserver {
namespace {

const json::Value& at_path(const json::Value& object, std::string_view path) {
  const json::Value* at = &object;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    at = &(*at)[path.substr(0, dot)];
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return *at;
}

bool selectable(const Kind& kind, std::string_view field) {
  if (field == "metadata.name") return true;
  if (field == "metadata.namespace") return kind.namespaced;
  return std::ranges::find(kind.selectable_fields, field) != kind.selectable_fields.end();
}

}  // namespace

std::string field_text(const Kind& kind, const json::Value& object, std::string_view field) {
  if (object.is_null()) return {};
  if (kind.field_value) {
    if (auto value = kind.field_value(object, field)) return std::move(*value);
  }
  const json::Value& value = at_path(object, field);
  if (value.is_string()) return value.str();
  if (value.is_null()) return {};
  return value.dump();
}

base::Result<Selection> Selection::parse(const Kind& kind, const kube::Request& request) {
  Selection out;
  out.kind_ = &kind;
  out.ns_ = request.ns;
  out.name_ = request.name;
  TS_TRY(out.labels_, kube::LabelSelector::parse(request.option("labelSelector")));
  const std::string_view text = request.option("fieldSelector");
  if (text.empty()) return out;
  TS_TRY(out.fields_, kube::FieldSelector::parse(text));
  for (const kube::FieldRequirement& requirement : out.fields_.requirements()) {
    if (selectable(kind, requirement.field)) continue;
    // Kinds with fields of their own say it otherwise.
    if (!kind.selectable_fields.empty() || kind.custom != nullptr) {
      return base::error(base::Code::kBadRequest, "field label not supported: {}",
                         requirement.field);
    }
    return base::error(base::Code::kBadRequest,
                       "\"{}\" is not a known field selector: only \"metadata.name\", "
                       "\"metadata.namespace\"",
                       requirement.field);
  }
  // A list of one name reads one object.
  if (const auto name = out.fields_.exact("metadata.name"); name && out.name_.empty()) {
    out.name_ = std::string(*name);
  }
  if (const auto ns = out.fields_.exact("metadata.namespace"); ns && out.ns_.empty()) {
    out.ns_ = std::string(*ns);
  }
  return out;
}

std::string Selection::prefix() const {
  if (!kind_->namespaced) return name_;
  return ns_.empty() ? std::string() : ns_ + "/" + name_;
}

bool Selection::matches(const json::Value& object) const {
  if (object.is_null()) return false;
  const json::Value& meta = object["metadata"];
  if (!ns_.empty() && meta["namespace"].as_string() != ns_) return false;
  if (!name_.empty() && meta["name"].as_string() != name_) return false;
  if (!labels_.selects_everything() && !labels_.matches(meta["labels"])) return false;
  if (fields_.selects_everything()) return true;
  std::string text;  // of the field looked at; string_views into the object need no copy
  return fields_.matches([&](std::string_view field) -> std::string_view {
    if (kind_->view && kind_->view->stored_field != nullptr) {
      text = field_text(*kind_, object, kind_->view->stored_field(field));
      return text;
    }
    if (!kind_->field_value) {
      const json::Value& value = at_path(object, field);
      if (value.is_string()) return value.as_string();
    }
    text = field_text(*kind_, object, field);
    return text;
  });
}

}  // namespace tessera::apiserver
