#include "kube/schema.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include "base/check.h"
#include "kube/schema_data.h"

namespace tessera::kube {
namespace {

struct Base {
  std::string_view word;
  FieldType type;
  bool object_only;
};

constexpr Base kBases[] = {
    {"string", FieldType::kString, false},     {"bytes", FieldType::kBytes, false},
    {"bool", FieldType::kBool, false},         {"int32", FieldType::kInt32, false},
    {"int64", FieldType::kInt64, false},       {"double", FieldType::kDouble, false},
    {"quantity", FieldType::kQuantity, false}, {"intorstring", FieldType::kIntOrString, false},
    {"time", FieldType::kTime, false},         {"microtime", FieldType::kMicroTime, false},
    {"object", FieldType::kAny, true},         {"any", FieldType::kAny, false},
};

const Base* find_base(std::string_view word) {
  for (const Base& base : kBases) {
    if (base.word == word) return &base;
  }
  return nullptr;
}

std::string_view next_word(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

struct KindRow {
  SchemaKind kind;
  const SchemaType* type;
};

auto order_of(const SchemaKind& kind) {
  return std::tie(kind.group, kind.version, kind.kind);
}

// The table, read once from data/kubernetes.schema (its head describes the format). Texts are views
// into it.
class Table {
 public:
  explicit Table(std::string_view text) {
    read_types(text);
    read_fields(text);
    for (const SchemaType* type : all_) {
      for (const SchemaKind& kind : type->kinds) kinds_.push_back({kind, type});
    }
    std::sort(kinds_.begin(), kinds_.end(), [](const KindRow& a, const KindRow& b) {
      return order_of(a.kind) < order_of(b.kind);
    });
  }

  const std::vector<const SchemaType*>& all() const { return all_; }

  const SchemaType* find(std::string_view name) const {
    const auto at =
        std::lower_bound(all_.begin(), all_.end(), name,
                         [](const SchemaType* t, std::string_view n) { return t->name < n; });
    return at != all_.end() && (*at)->name == name ? *at : nullptr;
  }

  const SchemaType* find(const SchemaKind& kind) const {
    const auto at = std::lower_bound(
        kinds_.begin(), kinds_.end(), kind,
        [](const KindRow& a, const SchemaKind& b) { return order_of(a.kind) < order_of(b); });
    return at != kinds_.end() && order_of(at->kind) == order_of(kind) ? at->type : nullptr;
  }

 private:
  template <class F>
  static void each_line(std::string_view text, F f) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      if (end > 0 && text[0] != '#') f(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  void read_types(std::string_view text) {
    each_line(text, [this](std::string_view line) {
      if (line[0] == ' ') return;
      types_.push_back(read_type(line));
      all_.push_back(&types_.back());
    });
    TS_CHECK(
        std::is_sorted(all_.begin(), all_.end(),
                       [](const SchemaType* a, const SchemaType* b) { return a->name < b->name; }),
        "kubernetes.schema is not sorted");
  }

  static SchemaType read_type(std::string_view line) {
    SchemaType type;
    type.scalar = next_word(line) == "scalar";
    type.name = next_word(line);
    if (type.scalar) {
      const Base* base = find_base(next_word(line));
      TS_CHECK(base != nullptr, "kubernetes.schema: {} has no known base", type.name);
      type.scalar_type = base->type;
      type.object_only = base->object_only;
      return type;
    }
    while (!line.empty()) {
      std::string_view word = next_word(line);
      if (word == "atomic") {
        type.atomic = true;
        continue;
      }
      const size_t first = word.find('/');
      const size_t last = word.rfind('/');
      type.kinds.push_back(
          {word.substr(0, first), word.substr(first + 1, last - first - 1), word.substr(last + 1)});
    }
    return type;
  }

  void read_fields(std::string_view text) {
    auto type = types_.begin();
    bool begun = false;
    each_line(text, [&](std::string_view line) {
      if (line[0] != ' ') {
        if (begun) ++type;
        begun = true;
        return;
      }
      type->fields.push_back(read_field(line.substr(1)));
    });
    for (SchemaType& each : types_) {
      for (const SchemaField& field : each.fields) {
        if (field.show_zero) each.shown.push_back(&field);
      }
    }
  }

  SchemaField read_field(std::string_view line) const {
    SchemaField field;
    field.name = next_word(line);
    std::string_view base = next_word(line);
    field.map = take_prefix(base, "{}");
    field.list = take_prefix(base, "[]");
    if (const Base* known = find_base(base)) {
      field.type = known->type;
      field.object_only = known->object_only;
    } else {
      field.object = find(base);
      TS_CHECK(field.object != nullptr, "kubernetes.schema: no type {}", base);
      field.type = field.object->scalar ? field.object->scalar_type : FieldType::kObject;
      field.object_only = field.object->object_only;
    }
    while (!line.empty()) read_rule(field, next_word(line));
    return field;
  }

  static void read_rule(SchemaField& field, std::string_view rule) {
    if (rule == "!") field.required = true;
    if (rule == "-") field.omit_zero = true;
    if (rule == "+") field.show_zero = true;
    if (rule == "retain") field.patch_retain_keys = true;
    if (rule == "set") field.list_set = true;
    if (rule == "atomic") field.atomic = true;
    if (rule == "merge") field.patch_merge = true;
    if (take_prefix(rule, "merge=")) {
      field.patch_merge = true;
      field.patch_merge_key = rule;
    }
    if (!take_prefix(rule, "keys=")) return;
    for (size_t end = 0; !rule.empty(); rule.remove_prefix(std::min(end + 1, rule.size()))) {
      end = std::min(rule.find(','), rule.size());
      field.list_map_keys.push_back(rule.substr(0, end));
    }
  }

  std::deque<SchemaType> types_;
  std::vector<const SchemaType*> all_;
  std::vector<KindRow> kinds_;
};

const Table& table() {
  static const Table* const kTable = new Table(kSchemaText);
  return *kTable;
}

}  // namespace

const SchemaField* SchemaType::field(std::string_view key) const {
  const auto at =
      std::lower_bound(fields.begin(), fields.end(), key,
                       [](const SchemaField& f, std::string_view k) { return f.name < k; });
  return at != fields.end() && at->name == key ? &*at : nullptr;
}

const SchemaType* find_kind_schema(std::string_view group, std::string_view version,
                                   std::string_view kind) {
  return table().find(SchemaKind{group, version, kind});
}

const SchemaType* find_schema(std::string_view full_name) {
  return table().find(full_name);
}

const std::vector<const SchemaType*>& all_schemas() {
  return table().all();
}

}  // namespace tessera::kube
