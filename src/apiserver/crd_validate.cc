#include "apiserver/crd_validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/crd_format.h"
#include "apiserver/validate_path.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// Lists in which an element that moved is looked for.
constexpr size_t kSearchedMax = 256;

// What a schema says of a value, and how many of its checks the value passed: of several schemas the one that fits best
// tells what is wrong.
struct Verdict {
  std::vector<base::Cause> errors;
  int passed = 0;

  bool valid() const { return errors.empty(); }
  void add(base::Cause cause) {
    if (errors.size() >= kSchemaErrorsMax) return;
    for (const base::Cause& known : errors) {
      if (known.message == cause.message && known.field == cause.field) return;
    }
    errors.push_back(std::move(cause));
  }
  void merge(Verdict other) {
    passed += other.passed;
    if (errors.empty()) {
      errors = std::move(other.errors);
      return;
    }
    for (base::Cause& cause : other.errors) add(std::move(cause));
  }
};

std::string_view type_of(const Value& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "boolean";
  if (value.is_string()) return "string";
  if (value.is_int()) return "integer";
  if (value.is_number()) return "number";
  return value.is_array() ? "array" : "object";
}

std::string_view format_of(const Value& value) {
  if (value.is_int()) return "int64";
  return value.is_number() ? "float64" : "";
}

bool is_whole(const Value& value) {
  const double number = value.as_double();
  return std::abs(number) < 9007199254740992.0 && std::trunc(number) == number;
}

bool has_type(const CrdSchema& schema, std::string_view type) {
  if (schema.int_or_string) return type == "integer" || type == "string";
  return schema.type == type;
}

std::string type_names(const CrdSchema& schema) {
  return schema.int_or_string ? "integer,string" : schema.type;
}

// A number as Go prints it in a sentence.
std::string number_text(double number) {
  if (std::trunc(number) == number && std::abs(number) < 1e21) return fmt::format("{:.0f}", number);
  return Value(number).dump();
}

std::string too_many_text(int64_t count, int64_t most) {
  return fmt::format("Too many: {}: must have at most {} item{}", count, most,
                     most == 1 ? "" : "s");
}

size_t letters_of(std::string_view text) {
  size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++count;
  }
  return count;
}

class Check {
 public:
  // `prefix` stands before the path in fields, not in sentences.
  explicit Check(std::string_view prefix) : prefix_(prefix) {}

  Verdict validate(const CrdSchema& schema, const Value& value, const Value* before,
                   const Path& at) const {
    Verdict out;
    if (before != nullptr && *before == value) return out;  // it passed once
    if (value.is_null()) {
      check_type(schema, value, at, out);
      check_choices(schema, value, at, out);
      return out;
    }
    if (!type_names(schema).empty() || !schema.format.empty()) {
      check_type(schema, value, at, out);
      ++out.passed;
    }
    out.merge(combinations(schema, value, before, at));
    ++out.passed;
    if (value.is_string()) check_text(schema, value, at, out);
    if (value.is_number()) check_number(schema, value, at, out);
    if (value.is_array()) check_array(schema, value, before, at, out);
    check_choices(schema, value, at, out);
    if (value.is_object()) check_object(schema, value, before, at, out);
    ++out.passed;
    return out;
  }

 private:
  std::string field(const Path& at) const {
    std::string text = at.text();
    if (text.starts_with('.')) text.erase(0, 1);
    if (prefix_.empty()) return text.empty() ? std::string("<nil>") : text;
    if (text.empty()) return std::string(prefix_);
    return fmt::format("{}.{}", prefix_, text);
  }

  void invalid(const Path& at, const Value& value, std::string_view why, Verdict& out) const {
    out.add(kube::invalid_value(field(at), value, fmt::format("{} in body {}", at.text(), why)));
  }
  // Errors of combinations name no field.
  void refuse(const Path& at, std::string_view why, Verdict& out) const {
    const std::string_view place = prefix_.empty() ? std::string_view("<nil>") : prefix_;
    out.add(kube::invalid_value(place, "", fmt::format("\"{}\" {}", at.text(), why)));
  }
  void wrong_type(const Path& at, std::string_view wanted, std::string_view found,
                  Verdict& out) const {
    base::Cause cause = kube::invalid_value(
        field(at), found,
        fmt::format("{} in body must be of type {}: {}", at.text(), wanted, Value(found).dump()));
    cause.reason = "FieldValueTypeInvalid";
    out.add(std::move(cause));
  }

  void check_type(const CrdSchema& schema, const Value& value, const Path& at, Verdict& out) const {
    const std::string names = type_names(schema);
    const std::string_view found = type_of(value);
    if (value.is_null()) {
      if (!names.empty() && !schema.nullable) wrong_type(at, names, found, out);
      return;
    }
    const bool whole = found == "number" && is_whole(value) && has_type(schema, "integer");
    const bool widened = found == "integer" && has_type(schema, "number");
    const bool listed = value.is_string() || value.is_array();
    if (!listed && !schema.format.empty() && !has_type(schema, found) && !whole && !widened &&
        format_of(value) != schema.format) {
      return wrong_type(at, schema.format, format_of(value), out);
    }
    const bool numeric = has_type(schema, "number") || has_type(schema, "integer");
    if (!numeric && !schema.format.empty() && listed) return;
    if (!has_type(schema, found) && !whole && !widened) wrong_type(at, names, found, out);
  }

  void check_choices(const CrdSchema& schema, const Value& value, const Path& at,
                     Verdict& out) const {
    if (schema.choices.empty()) return;
    for (const Value& choice : schema.choices) {
      if (!choice.is_null() && choice == value) return;
    }
    std::vector<std::string> words;
    for (const Value& choice : schema.choices) {
      words.push_back(choice.is_string() ? choice.str() : choice.dump());
    }
    out.add(kube::not_supported(field(at), value, words));
  }

  void check_text(const CrdSchema& schema, const Value& value, const Path& at, Verdict& out) const {
    const std::string_view text = value.as_string();
    const auto letters = static_cast<int64_t>(letters_of(text));
    if (schema.max_length && letters > *schema.max_length) {
      out.add({"FieldValueTooLong",
               fmt::format("Too long: may not be more than {} bytes", *schema.max_length),
               field(at)});
    } else if (schema.min_length && letters < *schema.min_length) {
      invalid(at, value, fmt::format("should be at least {} chars long", *schema.min_length), out);
    } else if (schema.pattern != nullptr &&
               !re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()),
                                       *schema.pattern)) {
      invalid(at, value, fmt::format("should match '{}'", schema.pattern->pattern()), out);
    }
    if (!schema.format.empty() && schema.type != "integer" && schema.type != "number" &&
        !has_format(schema.format, text)) {
      wrong_type(at, schema.format, text, out);
    }
  }

  // What a type cannot hold.
  void check_range(const CrdSchema& schema, const Value& value, const Path& at,
                   Verdict& out) const {
    const double number = value.as_double();
    bool fits = schema.type != "integer" || value.is_int() || is_whole(value);
    if (fits && schema.type == "integer" && schema.format == "int32") {
      fits = number >= std::numeric_limits<int32_t>::min() &&
             number <= std::numeric_limits<int32_t>::max();
    } else if (schema.type == "number" && schema.format == "float") {
      fits = std::abs(number) <= std::numeric_limits<float>::max();
    }
    if (fits) return;
    const std::string_view place = prefix_.empty() ? std::string_view("<nil>") : prefix_;
    out.add(
        kube::invalid_value(place, "",
                            fmt::format("Checked value must be of type {} {} in {}", schema.type,
                                        schema.format.empty() ? std::string("(default format)")
                                                              : "with format " + schema.format,
                                        at.text())));
  }

  void check_number(const CrdSchema& schema, const Value& value, const Path& at,
                    Verdict& out) const {
    check_range(schema, value, at, out);
    const double number = value.as_double();
    if (schema.multiple_of) check_multiple(*schema.multiple_of, value, at, out);
    if (schema.minimum &&
        (number < *schema.minimum || (schema.exclusive_minimum && number == *schema.minimum))) {
      invalid(
          at, value,
          fmt::format("should be greater than {}{}", schema.exclusive_minimum ? "" : "or equal to ",
                      number_text(*schema.minimum)),
          out);
    }
    if (schema.maximum &&
        (number > *schema.maximum || (schema.exclusive_maximum && number == *schema.maximum))) {
      invalid(
          at, value,
          fmt::format("should be less than {}{}", schema.exclusive_maximum ? "" : "or equal to ",
                      number_text(*schema.maximum)),
          out);
    }
    ++out.passed;
  }

  void check_multiple(double factor, const Value& value, const Path& at, Verdict& out) const {
    if (factor <= 0 || (value.is_int() && factor < 1)) {
      const std::string text = number_text(value.is_int() ? std::trunc(factor) : factor);
      out.add(kube::invalid_value(
          field(at), factor,
          fmt::format("factor MultipleOf declared for {} must be positive: {}", at.text(), text)));
      return;
    }
    const double times = factor < 1 ? 1 / factor * value.as_double() : value.as_double() / factor;
    const bool fits = value.is_int() && factor < 9e18
                          ? value.as_int() % static_cast<int64_t>(factor) == 0
                          : std::abs(times - std::round(times)) < 1e-9;
    if (!fits) {
      invalid(at, value, fmt::format("should be a multiple of {}", number_text(factor)), out);
    }
  }

  // The element of a list that is a map which has the same keys: most often it stands where it stood.
  static const Value* same_element(const CrdSchema& list, const Value& value, size_t index,
                                   const Value* before) {
    if (before == nullptr || list.list_type != "map") return nullptr;
    const auto same = [&](const Value& old) {
      return std::ranges::all_of(
          list.list_keys, [&](const std::string& key) { return old[key] == value.at(index)[key]; });
    };
    if (index < before->size() && same(before->at(index))) return &before->at(index);
    if (before->size() > kSearchedMax) return nullptr;
    for (const Value& old : before->items()) {
      if (same(old)) return &old;
    }
    return nullptr;
  }

  void check_array(const CrdSchema& schema, const Value& value, const Value* before, const Path& at,
                   Verdict& out) const {
    const auto count = static_cast<int64_t>(value.size());
    if (schema.items != nullptr) {
      for (size_t i = 0; i < value.size() && out.errors.size() < kSchemaErrorsMax; ++i) {
        const Path place = at.at(i);
        out.merge(
            validate(*schema.items, value.at(i), same_element(schema, value, i, before), place));
      }
    }
    if (schema.min_items && count < *schema.min_items) {
      invalid(at, count, fmt::format("should have at least {} items", *schema.min_items), out);
    }
    if (schema.max_items && count > *schema.max_items) {
      out.add({"FieldValueTooMany", too_many_text(count, *schema.max_items), field(at)});
    }
    ++out.passed;
  }

  void check_object(const CrdSchema& schema, const Value& value, const Value* before,
                    const Path& at, Verdict& out) const {
    const auto count = static_cast<int64_t>(value.size());
    if (schema.min_properties && count < *schema.min_properties) {
      invalid(at, count, fmt::format("should have at least {} properties", *schema.min_properties),
              out);
    }
    if (schema.max_properties && count > *schema.max_properties) {
      out.add({"FieldValueTooMany", too_many_text(count, *schema.max_properties), field(at)});
    }
    for (const json::Member& member : value.members()) {
      if (out.errors.size() >= kSchemaErrorsMax) break;
      const Path place = at.child(member.name());
      const Value* then = before == nullptr ? nullptr : before->find(member.name());
      if (const CrdSchema* property = schema.property(member.name())) {
        out.merge(validate(*property, member.value, then, place));
      } else if (schema.closed) {
        out.add(kube::invalid_value(
            field(at), member.key,
            fmt::format("{}.{} in body is a forbidden property", at.text(), member.name())));
      } else if (schema.additional != nullptr) {
        out.merge(validate(*schema.additional, member.value, then, place));
      }
    }
    for (const std::string& name : schema.required) {
      const Path place = at.child(name);
      if (!value.contains(name)) out.add(kube::required_value(field(place)));
    }
  }

  Verdict combinations(const CrdSchema& schema, const Value& value, const Value* before,
                       const Path& at) const {
    Verdict out;
    if (!schema.any_of.empty()) any_of(schema, value, before, at, out);
    if (!schema.one_of.empty()) one_of(schema, value, before, at, out);
    if (!schema.all_of.empty()) {
      size_t passed = 0;
      for (const CrdSchema::Ptr& each : schema.all_of) {
        Verdict one = validate(*each, value, before, at);
        if (one.valid()) ++passed;
        out.merge(std::move(one));
      }
      if (passed != schema.all_of.size()) {
        refuse(at,
               passed == 0 ? "must validate all the schemas (allOf). None validated"
                           : "must validate all the schemas (allOf)",
               out);
      }
    }
    if (schema.not_of != nullptr && validate(*schema.not_of, value, nullptr, at).valid()) {
      refuse(at, "must not validate the schema (not)", out);
    }
    ++out.passed;
    return out;
  }

  void any_of(const CrdSchema& schema, const Value& value, const Value* before, const Path& at,
              Verdict& out) const {
    Verdict best;
    bool first = true;
    for (const CrdSchema::Ptr& each : schema.any_of) {
      Verdict one = validate(*each, value, before, at);
      if (one.valid()) return out.merge(std::move(one));
      if (first || one.passed > best.passed) best = std::move(one);
      first = false;
    }
    refuse(at, "must validate at least one schema (anyOf)", out);
    out.merge(std::move(best));
  }

  void one_of(const CrdSchema& schema, const Value& value, const Value* before, const Path& at,
              Verdict& out) const {
    Verdict best;
    Verdict fitting;
    bool first = true;
    size_t valid = 0;
    for (const CrdSchema::Ptr& each : schema.one_of) {
      Verdict one = validate(*each, value, before, at);
      if (one.valid()) {
        if (valid++ == 0) fitting = std::move(one);
      } else if (valid == 0 && (first || one.passed > best.passed)) {
        best = std::move(one);
        first = false;
      }
    }
    if (valid == 1) return out.merge(std::move(fitting));
    refuse(at,
           valid == 0
               ? std::string("must validate one and only one schema (oneOf). Found none valid")
               : fmt::format("must validate one and only one schema (oneOf). Found {} valid "
                             "alternatives",
                             valid),
           out);
    if (valid == 0) out.merge(std::move(best));
  }

  std::string_view prefix_;
};

}  // namespace

void validate_by_schema(const CrdSchema& schema, const Value& value, const Value* before,
                        std::string_view at, FieldErrors& errors) {
  const Path root("");
  for (base::Cause& cause : Check(at).validate(schema, value, before, root).errors) {
    errors.add(std::move(cause));
  }
}

}  // namespace tessera::apiserver
