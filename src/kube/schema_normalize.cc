#include <cmath>
#include <cstdint>
#include <limits>

#include "base/time.h"
#include "kube/go_text.h"
#include "kube/quantity.h"
#include "kube/schema.h"

namespace tessera::kube {
namespace {

using json::Value;

// Where we are, as a list on the stack; written out only when something is to be said.
struct Place {
  const Place* up = nullptr;
  std::string_view name;
  int64_t index = -1;

  void write(std::string& out) const {
    if (up != nullptr) up->write(out);
    if (index >= 0) {
      out += fmt::format("[{}]", index);
    } else if (!name.empty()) {
      if (!out.empty()) out += '.';
      out += name;
    }
  }
  std::string text() const {
    std::string out;
    write(out);
    return out;
  }
};

std::string_view word_of(const Value& value) {
  switch (value.type()) {
    case json::Type::kNull:
      return "null";
    case json::Type::kBool:
      return "bool";
    case json::Type::kInt:
    case json::Type::kDouble:
      return "number";
    case json::Type::kString:
      return "string";
    case json::Type::kArray:
      return "array";
    case json::Type::kObject:
      return "object";
  }
  return "value";
}

const Value& empty_object() {
  static const Value kEmpty = Value::object();
  return kEmpty;
}

// Go's base64.StdEncoding: padded, line breaks are skipped. Answers the offset of the first bad
// byte, -1 for none.
int64_t bad_base64_at(std::string_view text) {
  size_t digits = 0;
  size_t pads = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n' || c == '\r') continue;
    if (c == '=' && digits % 4 + pads >= 2 && pads < 2) {
      ++pads;
      continue;
    }
    const bool digit = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '+' || c == '/';
    if (!digit || pads > 0) return static_cast<int64_t>(i);
    ++digits;
  }
  return (digits + pads) % 4 == 0 ? -1 : static_cast<int64_t>(text.size());
}

bool is_zero(const Value& value) {
  switch (value.type()) {
    case json::Type::kNull:
      return true;
    case json::Type::kBool:
      return !value.as_bool();
    case json::Type::kInt:
    case json::Type::kDouble:
      return value.as_double() == 0;
    case json::Type::kString:
      return value.as_string().empty();
    case json::Type::kArray:
    case json::Type::kObject:
      return value.empty();
  }
  return false;
}

class Normalizer {
 public:
  explicit Normalizer(std::vector<std::string>* unknown) : unknown_(unknown) {}

  // True when all is well; `value` is then as a server would store it. Values that are right as
  // they stand are not touched, so that they stay shared.
  bool object(const SchemaType& type, Value& value, const Place& at) {
    if (type.scalar) return scalar(type.scalar_type, type.object_only, value, at);
    if (!value.is_object()) return refuse(value, "object", at);
    const Value before = value;
    for (const json::Member& member : before.members()) {
      const Place here{&at, member.name()};
      const SchemaField* field = type.field(member.name());
      if (field == nullptr) {
        if (unknown_ != nullptr) unknown_->push_back(here.text());
        value.erase(member.name());
        continue;
      }
      if (!this->member(*field, member.value, value, here)) return false;
    }
    return show_zeros(type, value, at);
  }

  base::Error take_error() { return std::move(error_); }

 private:
  bool member(const SchemaField& field, const Value& before, Value& owner, const Place& at) {
    if (before.is_null()) {
      owner.erase(field.name);
      return true;
    }
    Value after = before;
    if (!this->field(field, after, at)) return false;
    if (field.omit_zero && is_zero(after)) {
      owner.erase(field.name);
    } else if (changed(before, after)) {
      owner.set(field.name, std::move(after));
    }
    return true;
  }

  static bool changed(const Value& before, const Value& after) {
    if (before.type() != after.type()) return true;
    if (before.is_object() || before.is_array()) return !before.same_node(after);
    return !(before == after);
  }

  bool field(const SchemaField& field, Value& value, const Place& at) {
    if (field.map) return map(field, value, at);
    if (field.list) return list(field, value, at);
    return element(field, value, at);
  }

  bool map(const SchemaField& field, Value& value, const Place& at) {
    if (!value.is_object()) return refuse(value, "object", at);
    const Value before = value;
    for (const json::Member& member : before.members()) {
      const Place here{&at, member.name()};
      Value after = member.value;
      if (after.is_null()) after = field.list ? Value::array() : zero(field);
      if (!(field.list ? list(field, after, here) : element(field, after, here))) return false;
      if (changed(member.value, after)) value.set(member.name(), std::move(after));
    }
    return true;
  }

  bool list(const SchemaField& field, Value& value, const Place& at) {
    if (!value.is_array()) return refuse(value, "array", at);
    const Value before = value;
    const auto items = before.items();
    for (size_t i = 0; i < items.size(); ++i) {
      const Place here{&at, {}, static_cast<int64_t>(i)};
      Value after = items[i];
      if (after.is_null()) after = zero(field);
      if (!element(field, after, here)) return false;
      if (changed(items[i], after)) value.ref_at(i) = std::move(after);
    }
    return true;
  }

  bool element(const SchemaField& field, Value& value, const Place& at) {
    if (field.type == FieldType::kObject) return object(*field.object, value, at);
    return scalar(field.type, field.object_only, value, at);
  }

  static Value zero(const SchemaField& field) {
    switch (field.type) {
      case FieldType::kBool:
        return Value(false);
      case FieldType::kInt32:
      case FieldType::kInt64:
      case FieldType::kIntOrString:
      case FieldType::kDouble:
        return Value(0);
      case FieldType::kQuantity:
        return Value("0");
      case FieldType::kObject:
        return empty_object();
      case FieldType::kString:
      case FieldType::kBytes:
        return Value("");
      default:
        return {};
    }
  }

  bool show_zeros(const SchemaType& type, Value& value, const Place& at) {
    for (const SchemaField* field : type.shown) {
      if (value.contains(field->name)) continue;
      Value shown = zero(*field);
      if (field->type == FieldType::kObject && !object(*field->object, shown, at)) return false;
      value.set(field->name, std::move(shown));
    }
    return true;
  }

  bool scalar(FieldType type, bool object_only, Value& value, const Place& at) {
    switch (type) {
      case FieldType::kString:
        return value.is_string() || refuse(value, "string", at);
      case FieldType::kBool:
        return value.is_bool() || refuse(value, "bool", at);
      case FieldType::kInt32:
        return integer(value, true, at);
      case FieldType::kInt64:
        return integer(value, false, at);
      case FieldType::kDouble:
        return value.is_number() || refuse(value, "float64", at);
      case FieldType::kBytes:
        return bytes(value, at);
      case FieldType::kQuantity:
        return quantity(value, at);
      case FieldType::kIntOrString:
        return value.is_string() || (value.is_number() ? integer(value, true, at)
                                                       : refuse(value, "int32 or string", at));
      case FieldType::kTime:
      case FieldType::kMicroTime:
        return time(type == FieldType::kMicroTime, value, at);
      case FieldType::kAny:
        return !object_only || value.is_object() || refuse(value, "object", at);
      case FieldType::kObject:
        break;
    }
    return refuse(value, "object", at);
  }

  bool integer(Value& value, bool narrow, const Place& at) {
    const std::string_view type = narrow ? "int32" : "int64";
    if (!value.is_number()) return refuse(value, type, at);
    if (!value.is_int()) {
      const double real = value.as_double();
      // A whole number written as 3.0; anything past 2^53 may have lost digits.
      if (std::trunc(real) != real || std::fabs(real) > 9007199254740992.0) {
        return refuse_number(value, type, at);
      }
      value = Value(static_cast<int64_t>(real));
    }
    const int64_t whole = value.as_int();
    if (narrow && (whole < std::numeric_limits<int32_t>::min() ||
                   whole > std::numeric_limits<int32_t>::max())) {
      return refuse_number(value, type, at);
    }
    return true;
  }

  // Bytes and times are told without their place, as Kubernetes tells them.
  bool bytes(const Value& value, const Place& at) {
    if (!value.is_string()) return refuse(value, "string with base64 text", at);
    const int64_t bad = bad_base64_at(value.as_string());
    return bad < 0 || say("illegal base64 data at input byte {}", bad);
  }

  bool quantity(Value& value, const Place& at) {
    if (!value.is_string() && !value.is_number()) return refuse(value, "quantity", at);
    const std::string text = value.is_string() ? value.str() : value.dump();
    auto parsed = Quantity::parse(text);
    if (!parsed) return say("{}: {}", at.text(), parsed.error().message);
    std::string canonical = parsed->to_string();
    if (!value.is_string() || canonical != text) value = Value(canonical);
    return true;
  }

  bool time(bool micro, Value& value, const Place& at) {
    if (!value.is_string()) return refuse(value, "string", at);
    auto parsed = base::parse_rfc3339(value.as_string());
    if (!parsed || !is_go_time(value.as_string(), micro)) {
      return say("{}", go_time_error(value.as_string(), micro));
    }
    const std::string canonical =
        micro ? base::to_rfc3339_micro(*parsed) : base::to_rfc3339(*parsed);
    if (canonical != value.as_string()) value = Value(canonical);
    return true;
  }

  bool refuse(const Value& value, std::string_view type, const Place& at) {
    const std::string where = at.text();
    if (where.empty()) {
      return say("json: cannot unmarshal {} into Go value of type {}", word_of(value), type);
    }
    return say("json: cannot unmarshal {} into Go struct field {} of type {}", word_of(value),
               where, type);
  }

  bool refuse_number(const Value& value, std::string_view type, const Place& at) {
    return say("json: cannot unmarshal number {} into Go struct field {} of type {}", value.dump(),
               at.text(), type);
  }

  template <class... Args>
  bool say(fmt::format_string<Args...> format, Args&&... args) {
    error_ = {base::Code::kBadRequest, fmt::format(format, std::forward<Args>(args)...), {}};
    return false;
  }

  std::vector<std::string>* unknown_;
  base::Error error_;
};

}  // namespace

base::Result<Value> normalize(const SchemaType& type, const Value& value,
                              std::vector<std::string>* unknown) {
  Value out = value;
  Normalizer normalizer(unknown);
  if (!normalizer.object(type, out, Place{})) return base::error(normalizer.take_error());
  return out;
}

}  // namespace tessera::kube
