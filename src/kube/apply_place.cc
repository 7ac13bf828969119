#include "kube/apply_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/field_set.h"

namespace tessera::kube {

using base::Code;
using base::Result;
using json::Value;

namespace {

constexpr std::string_view kRawExtension = "io.k8s.apimachinery.pkg.runtime.RawExtension";

// Keys that stand in a list's key though the element lacks them.
struct KeyDefault {
  std::string_view type;
  std::string_view field;
  const char* text;
};
constexpr KeyDefault kKeyDefaults[] = {
    {"io.k8s.api.core.v1.ContainerPort", "protocol", "TCP"},
    {"io.k8s.api.core.v1.ServicePort", "protocol", "TCP"},
    {"io.k8s.api.core.v1.LocalObjectReference", "name", ""},
};

Value zero_of(FieldType type) {
  switch (type) {
    case FieldType::kBool:
      return false;
    case FieldType::kInt32:
    case FieldType::kInt64:
    case FieldType::kDouble:
      return 0;
    case FieldType::kObject:
      return Value::object();
    case FieldType::kTime:
    case FieldType::kMicroTime:
      return {};  // the zero time is written as null
    default:
      return "";
  }
}

Value key_default(const SchemaType& type, const SchemaField& field) {
  for (const KeyDefault& each : kKeyDefaults) {
    if (each.type == type.name && each.field == field.name) return each.text;
  }
  return field.show_zero ? zero_of(field.type) : Value();
}

bool is_scalar(const Value& value) {
  return value.is_bool() || value.is_number() || value.is_string();
}

// How Go's %v prints what a JSON value is read as.
std::string go_text(const Value& value) {
  if (value.is_null()) return "<nil>";
  if (value.is_string()) return value.str();
  std::string out;
  if (value.is_array()) {
    for (const Value& item : value.items()) {
      out.append(out.empty() ? "" : " ").append(go_text(item));
    }
    return "[" + out + "]";
  }
  if (!value.is_object()) return value.dump();
  for (const json::Member& member : value.members()) {
    out.append(out.empty() ? "" : " ").append(member.name()).append(":");
    out.append(go_text(member.value));
  }
  return "map[" + out + "]";
}

std::string_view go_type(const Value& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  if (value.is_int()) return "int64";
  if (value.is_number()) return "float64";
  return value.is_array() ? "[]interface {}" : "map[string]interface {}";
}

}  // namespace

ApplyPlace::ApplyPlace(const SchemaType& type) {
  if (type.scalar) {
    form_ = type.name == kRawExtension ? Form::kRawAtomic : Form::kRaw;
    if (type.scalar_type != FieldType::kAny) form_ = Form::kScalar;
    scalar_ = type.scalar_type;
    return;
  }
  form_ = type.fields.empty() ? Form::kRaw : Form::kStruct;
  atomic_ = type.atomic;
  type_ = &type;
}

ApplyPlace::ApplyPlace(const SchemaField& field) {
  if (!field.map && !field.list) {
    *this = base_of(field);
    if (field.atomic) {
      atomic_ = true;
      if (form_ == Form::kRaw) form_ = Form::kRawAtomic;
    }
    return;
  }
  form_ = field.map ? Form::kMap : Form::kList;
  field_ = &field;
  if (field.map) {
    atomic_ = field.atomic && !field.list;
  } else {
    atomic_ =
        field.atomic || (field.list_map_keys.empty() && !field.list_set && !field.patch_merge);
  }
}

ApplyPlace ApplyPlace::base_of(const SchemaField& field) {
  if (field.object != nullptr) return ApplyPlace(*field.object);
  if (field.type == FieldType::kAny || field.type == FieldType::kObject) return raw_json();
  ApplyPlace place;
  place.form_ = Form::kScalar;
  place.scalar_ = field.type;
  return place;
}

ApplyPlace ApplyPlace::raw_json() {
  ApplyPlace place;
  place.form_ = Form::kRaw;
  return place;
}

ApplyPlace::Atom ApplyPlace::atom(const Value* value) const {
  switch (form_) {
    case Form::kNone:
      return Atom::kNone;
    case Form::kStruct:
    case Form::kMap:
      return Atom::kMap;
    case Form::kList:
      return Atom::kList;
    case Form::kScalar:
      return Atom::kScalar;
    default:
      break;
  }
  if (value == nullptr || value->is_null() || value->is_object()) return Atom::kMap;
  return value->is_array() ? Atom::kList : Atom::kScalar;
}

bool ApplyPlace::same_atom(const Value& a, const Value& b) const {
  return !raw() || (a.is_null() == b.is_null() && atom(&a) == atom(&b));
}

bool ApplyPlace::atomic(Atom atom) const {
  if (form_ == Form::kRaw) return atom == Atom::kList;
  return atomic_ || form_ == Form::kRawAtomic;
}

bool ApplyPlace::declares(std::string_view name) const {
  return form_ == Form::kStruct && type_->field(name) != nullptr;
}

ApplyPlace ApplyPlace::child(std::string_view name) const {
  if (form_ == Form::kStruct) {
    const SchemaField* field = type_->field(name);
    return field == nullptr ? ApplyPlace() : ApplyPlace(*field);
  }
  if (form_ == Form::kMap) {
    if (!field_->list) return base_of(*field_);
    ApplyPlace list;
    list.form_ = Form::kList;
    list.field_ = field_;
    list.atomic_ = true;
    return list;
  }
  return raw() ? *this : ApplyPlace();
}

ApplyPlace ApplyPlace::element() const {
  if (form_ == Form::kList) return base_of(*field_);
  return raw() ? *this : ApplyPlace();
}

Result<std::string> ApplyPlace::element_key(const Value& element) const {
  if (form_ != Form::kList || atomic_) {
    return base::error(Code::kInternal, "invalid indexing of non-associative list");
  }
  if (!field_->list_map_keys.empty() || !field_->patch_merge_key.empty()) return map_key(element);
  if (is_scalar(element)) return set_element_key(element);
  if (element.is_object()) {
    return base::error(Code::kInternal,
                       "associative list without keys has an element that's a map type");
  }
  if (element.is_array()) {
    return base::error(Code::kInternal, "not supported: associative list with lists as elements");
  }
  return base::error(Code::kInternal,
                     "associative list without keys has an element that's an explicit null");
}

Result<std::string> ApplyPlace::map_key(const Value& element) const {
  if (!element.is_object()) {
    return base::error(Code::kInternal, "associative list with keys may not have {} element{}",
                       element.is_null() ? "a null" : "non-map", element.is_null() ? "" : "s");
  }
  const bool by_merge_key = field_->list_map_keys.empty();
  const size_t count = by_merge_key ? 1 : field_->list_map_keys.size();
  std::vector<std::pair<std::string_view, Value>> keys;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = by_merge_key ? field_->patch_merge_key : field_->list_map_keys[i];
    if (const Value* value = element.find(name)) {
      keys.emplace_back(name, *value);
      continue;
    }
    const SchemaType* type = field_->object;
    const SchemaField* field = type != nullptr ? type->field(name) : nullptr;
    if (field == nullptr) continue;
    if (Value value = key_default(*type, *field); !value.is_null()) {
      keys.emplace_back(name, std::move(value));
    }
  }
  if (!keys.empty()) return map_element_key(keys);
  std::string names;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = by_merge_key ? field_->patch_merge_key : field_->list_map_keys[i];
    names.append(fmt::format("{}\"{}\"", names.empty() ? "" : " ", name));
  }
  return base::error(Code::kInternal,
                     "associative list with keys has an element that omits all key fields [{}] "
                     "(and doesn't have default values for any key fields)",
                     names);
}

bool ApplyPlace::same_key(const Value& a, const Value& b) const {
  if (!a.is_object() || !b.is_object()) return a == b;
  if (field_->list_map_keys.empty()) {
    return a[field_->patch_merge_key] == b[field_->patch_merge_key];
  }
  // A key that is left out may be its default.
  return std::all_of(field_->list_map_keys.begin(), field_->list_map_keys.end(),
                     [&](std::string_view name) {
                       const Value& x = a[name];
                       const Value& y = b[name];
                       return x.is_null() || y.is_null() || x == y;
                     });
}

std::string ApplyPlace::type_problem(const Value& value) const {
  if (value.is_null() || raw() || form_ == Form::kNone) return {};
  if (form_ == Form::kList) {
    return value.is_array() ? "" : fmt::format("expected list, got &{{{}}}", go_text(value));
  }
  if (form_ != Form::kScalar) {
    return value.is_object() ? "" : fmt::format("expected map, got &{{{}}}", go_text(value));
  }
  switch (scalar_) {
    case FieldType::kString:
    case FieldType::kBytes:
      if (value.is_string()) return {};
      return fmt::format(
          "expected string, got &value.valueUnstructured{{Value:{}}}",
          is_scalar(value) ? value.dump() : fmt::format("{}{}", go_type(value), value.dump()));
    case FieldType::kBool:
      return value.is_bool() ? "" : fmt::format("expected boolean, got &{{{}}}", go_text(value));
    case FieldType::kInt32:
    case FieldType::kInt64:
    case FieldType::kDouble:
      if (value.is_number()) return {};
      return fmt::format("expected numeric (int or float), got {}", go_type(value));
    default:
      return is_scalar(value) ? ""
                              : fmt::format("expected any scalar, got &{{{}}}", go_text(value));
  }
}

Value empty_object(const SchemaType& type) {
  Value out = Value::object();
  for (const SchemaField& field : type.fields) {
    if (field.list || field.map) {
      if (!field.omit_zero) out.set(field.name, Value());
      continue;
    }
    if (!field.show_zero) {
      // A pointer that is never left out.
      if (field.required && field.object != nullptr) out.set(field.name, Value());
      continue;
    }
    if (field.object != nullptr && !field.object->scalar) {
      out.set(field.name, empty_object(*field.object));
    } else {
      out.set(field.name, zero_of(field.type));
    }
  }
  return out;
}

}  // namespace tessera::kube
