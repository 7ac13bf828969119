#include "kube/field_set.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "json/parse.h"
#include "kube/schema.h"

namespace tessera::kube {

using base::Code;
using base::Result;
using json::Member;
using json::Value;

namespace field_node {

bool is_self(const Member& member) noexcept {
  return member.name() == ".";
}

bool is_member(const Value& node) noexcept {
  if (!node.is_object()) return false;
  // "." sorts before every other key.
  return node.empty() || is_self(node.members().front());
}

Value leaf() {
  static const Value kLeaf = Value::object();
  return kLeaf;
}

Value made(bool member, std::vector<Member>&& children) {
  if (children.empty()) return member ? leaf() : Value();
  static const Value kSelf = Value::immortal(".");
  if (member) children.push_back({kSelf, leaf()});
  return json::ObjectBuilder::build(children, nullptr);
}

Value marked(Value node) {
  if (is_member(node)) return node;
  if (node.is_null()) return leaf();
  node.set(".", leaf());
  return node;
}

namespace {

// The children of a node: its members but ".".
std::span<const Member> children_of(const Value& node) {
  const auto members = node.members();
  return !members.empty() && is_self(members.front()) ? members.subspan(1) : members;
}

// Walks the children of two nodes side by side: visit(from a or null, from b or null).
template <class Visit>
void zip(const Value& a, const Value& b, Visit visit) {
  const auto left = children_of(a);
  const auto right = children_of(b);
  size_t i = 0;
  size_t j = 0;
  while (i < left.size() || j < right.size()) {
    int order = 0;
    if (i == left.size()) {
      order = 1;
    } else if (j == right.size()) {
      order = -1;
    } else {
      order = left[i].name().compare(right[j].name());
    }
    visit(order <= 0 ? &left[i] : nullptr, order >= 0 ? &right[j] : nullptr);
    if (order <= 0) ++i;
    if (order >= 0) ++j;
  }
}

bool same(const Value& a, const Value& b) {
  return (a.is_null() && b.is_null()) || a.same_node(b) ||
         (a.is_object() && b.is_object() && a.empty() && b.empty());
}

// Puts together what becomes of `a`; answers `a` itself where nothing changed.
class Rebuilt {
 public:
  explicit Rebuilt(const Value& a) : from_(a) {}
  void child(const Member& member, Value after) {
    if (!same(member.value, after)) changed_ = true;
    if (!after.is_null()) children_.push_back({member.key, std::move(after)});
  }
  void added(const Member& member) {
    changed_ = true;
    children_.push_back(member);
  }
  Value finish(bool member) && {
    if (!changed_ && member == is_member(from_)) return from_;
    return made(member, std::move(children_));
  }

 private:
  const Value& from_;
  std::vector<Member> children_;
  bool changed_ = false;
};

}  // namespace

Value united(const Value& a, const Value& b) {
  if (b.is_null() || same(a, b)) return a;
  if (a.is_null()) return b;
  Rebuilt out(a);
  zip(a, b, [&](const Member* left, const Member* right) {
    if (left == nullptr) {
      out.added(*right);
    } else {
      out.child(*left, right == nullptr ? left->value : united(left->value, right->value));
    }
  });
  return std::move(out).finish(is_member(a) || is_member(b));
}

Value intersected(const Value& a, const Value& b) {
  if (same(a, b)) return a;
  if (a.is_null() || b.is_null()) return {};
  Rebuilt out(a);
  zip(a, b, [&](const Member* left, const Member* right) {
    if (left == nullptr) return;
    out.child(*left, right == nullptr ? Value() : intersected(left->value, right->value));
  });
  return std::move(out).finish(is_member(a) && is_member(b));
}

Value without(const Value& a, const Value& b) {
  if (b.is_null()) return a;
  if (same(a, b)) return {};
  Rebuilt out(a);
  zip(a, b, [&](const Member* left, const Member* right) {
    if (left == nullptr) return;
    out.child(*left, right == nullptr ? left->value : without(left->value, right->value));
  });
  return std::move(out).finish(is_member(a) && !is_member(b));
}

Value without_trees(const Value& a, const Value& b) {
  if (b.is_null()) return a;
  if (same(a, b)) return {};
  Rebuilt out(a);
  zip(a, b, [&](const Member* left, const Member* right) {
    if (left == nullptr) return;
    Value after = left->value;
    if (right != nullptr) {
      after = is_member(right->value) ? Value() : without_trees(left->value, right->value);
    }
    out.child(*left, std::move(after));
  });
  return std::move(out).finish(is_member(a) && !is_member(b));
}

}  // namespace field_node

namespace {

Result<std::string> canonical_key(std::string_view key) {
  if (key.size() < 2 || key[1] != ':') {
    return base::error(Code::kBadRequest,
                       "\"{}\" is no step of a field path: write f:, k:, v: or i: before it", key);
  }
  const std::string_view text = key.substr(2);
  if (key[0] == 'v') {
    TS_TRY(const Value value, json::parse(text));
    return set_element_key(value);
  }
  if (key[0] == 'k') {
    TS_TRY(const Value value, json::parse(text));
    if (!value.is_object()) {
      return base::error(Code::kBadRequest, "\"{}\" must have a JSON object of keys after k:", key);
    }
    return "k:" + go_json(value);
  }
  if (key[0] == 'i') {
    int64_t index = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (problem != std::errc() || end != text.data() + text.size()) {
      return base::error(Code::kBadRequest, "\"{}\" must have a whole number after i:", key);
    }
    return "i:" + std::to_string(index);
  }
  return std::string(key[0] == 'f' ? key : std::string_view());
}

// Two spellings of one key are one child.
void join_equal_keys(std::vector<Member>& children) {
  std::stable_sort(children.begin(), children.end(),
                   [](const Member& a, const Member& b) { return a.name() < b.name(); });
  size_t kept = 0;
  for (size_t i = 1; i < children.size(); ++i) {
    if (children[i].name() == children[kept].name()) {
      children[kept].value = field_node::united(children[kept].value, children[i].value);
    } else if (++kept != i) {
      children[kept] = std::move(children[i]);
    }
  }
  children.resize(kept + 1);
}

// The node as this file makes nodes; the same one where it is so already.
Result<Value> canonical(const Value& node) {
  if (node.is_null()) return field_node::leaf();
  if (!node.is_object()) {
    return base::error(Code::kBadRequest, "a set of fields must be an object, found {}",
                       node.dump());
  }
  bool changed = false;
  bool member = false;
  std::vector<Member> children;
  for (const Member& each : node.members()) {
    if (field_node::is_self(each)) {
      member = true;
      changed = changed || !each.value.is_object() || !each.value.empty();
      continue;
    }
    TS_TRY(const std::string key, canonical_key(each.name()));
    if (key.empty()) {
      changed = true;
      continue;
    }
    TS_TRY(Value child, canonical(each.value));
    changed = changed || key != each.name() || !child.same_node(each.value);
    children.push_back({Value(key), std::move(child)});
  }
  if (children.empty()) return field_node::leaf();
  if (!changed) return node;
  join_equal_keys(children);
  return field_node::made(member, std::move(children));
}

int type_rank(const Value& value) {
  if (value.is_number()) return 0;
  if (value.is_string()) return 1;
  if (value.is_bool()) return 2;
  if (value.is_array()) return 3;
  return value.is_object() ? 4 : 5;
}

int compare_values(const Value& a, const Value& b) {
  if (type_rank(a) != type_rank(b)) return type_rank(a) < type_rank(b) ? -1 : 1;
  if (a.is_int() && b.is_int()) {
    return a.as_int() < b.as_int() ? -1 : (a.as_int() > b.as_int() ? 1 : 0);
  }
  if (a.is_number()) {
    return a.as_double() < b.as_double() ? -1 : (a.as_double() > b.as_double() ? 1 : 0);
  }
  if (a.is_string()) return a.as_string().compare(b.as_string());
  if (a.is_bool()) return static_cast<int>(a.as_bool()) - static_cast<int>(b.as_bool());
  return a.dump().compare(b.dump());
}

int compare_keys(const Value& a, const Value& b) {
  const auto left = a.members();
  const auto right = b.members();
  for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
    if (const int names = left[i].name().compare(right[i].name()); names != 0) return names;
    if (const int values = compare_values(left[i].value, right[i].value); values != 0) {
      return values;
    }
  }
  return left.size() < right.size() ? -1 : (left.size() > right.size() ? 1 : 0);
}

Value parsed(std::string_view key) {
  auto value = json::parse(key.substr(2));
  return value ? *value : Value();
}

// Fields, keys, values, places; each kind in its own order.
bool step_less(std::string_view a, std::string_view b) {
  constexpr std::string_view kOrder = "fkvi";
  if (a[0] != b[0]) return kOrder.find(a[0]) < kOrder.find(b[0]);
  if (a[0] == 'f') return a < b;
  if (a[0] == 'k') return compare_keys(parsed(a), parsed(b)) < 0;
  return compare_values(parsed(a), parsed(b)) < 0;
}

size_t count(const Value& node) {
  size_t members = field_node::is_member(node) ? 1 : 0;
  for (const Member& member : node.members()) {
    if (!field_node::is_self(member)) members += count(member.value);
  }
  return members;
}

void each_below(const Value& node, FieldPath& path,
                const std::function<void(const FieldPath&)>& visit) {
  std::vector<const Member*> children;
  for (const Member& member : node.members()) {
    if (!field_node::is_self(member)) children.push_back(&member);
  }
  std::sort(children.begin(), children.end(),
            [](const Member* a, const Member* b) { return step_less(a->name(), b->name()); });
  for (const Member* child : children) {
    if (!field_node::is_member(child->value)) continue;
    path.emplace_back(child->name());
    visit(path);
    path.pop_back();
  }
  for (const Member* child : children) {
    if (child->value.empty()) continue;
    path.emplace_back(child->name());
    each_below(child->value, path, visit);
    path.pop_back();
  }
}

// As Go prints a value in a path.
std::string shown(const Value& value) {
  return value.is_null() ? "null" : value.dump();
}

}  // namespace

FieldSet::FieldSet(std::initializer_list<FieldPath> paths) {
  for (const FieldPath& path : paths) insert(path);
}

Result<FieldSet> FieldSet::from_fields_v1(const Value& fields) {
  TS_TRY(Value node, canonical(fields));
  if (node.empty()) return FieldSet();
  // The whole object is nobody's.
  if (field_node::is_member(node)) node.erase(".");
  return FieldSet(std::move(node));
}

size_t FieldSet::size() const {
  return count(node_);
}

bool FieldSet::has(const FieldPath& path) const {
  const Value* node = &node_;
  for (const std::string& step : path) {
    node = node->find(step);
    if (node == nullptr) return false;
  }
  return !path.empty() && field_node::is_member(*node);
}

void FieldSet::insert(const FieldPath& path) {
  if (path.empty()) return;
  Value tree = field_node::leaf();
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    tree = Value::object({{*step, tree}});
  }
  node_ = field_node::united(node_, tree);
}

void FieldSet::each(const std::function<void(const FieldPath&)>& visit) const {
  FieldPath path;
  each_below(node_, path, visit);
}

FieldSet FieldSet::united_with(const FieldSet& other) const {
  return FieldSet(field_node::united(node_, other.node_));
}
FieldSet FieldSet::intersected_with(const FieldSet& other) const {
  return FieldSet(field_node::intersected(node_, other.node_));
}
FieldSet FieldSet::without(const FieldSet& other) const {
  return FieldSet(field_node::without(node_, other.node_));
}
FieldSet FieldSet::without_trees(const FieldSet& other) const {
  return FieldSet(field_node::without_trees(node_, other.node_));
}

std::string to_string(const FieldPath& path) {
  std::string out;
  for (const std::string& step : path) {
    const std::string_view text = std::string_view(step).substr(2);
    if (step[0] == 'f') {
      out.append(".").append(text);
    } else if (step[0] == 'i') {
      out.append("[").append(text).append("]");
    } else if (step[0] == 'v') {
      out.append("[=").append(shown(parsed(step))).append("]");
    } else {
      const Value keys = parsed(step);
      out += '[';
      bool first = true;
      for (const Member& key : keys.members()) {
        if (!first) out += ',';
        first = false;
        out.append(key.name()).append("=").append(shown(key.value));
      }
      out += ']';
    }
  }
  return out;
}

std::string go_json(const Value& value) {
  std::string text = value.dump();
  if (text.find_first_of("<>&") == std::string::npos) return text;
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

namespace {

// Keys of the fields that Kubernetes has: made once, shared by all objects.
class FieldKeys {
 public:
  FieldKeys() {
    for (const SchemaType* type : all_schemas()) {
      for (const SchemaField& field : type->fields) {
        if (!keys_.contains(field.name)) {
          keys_.emplace(field.name, Value::immortal("f:" + std::string(field.name)));
        }
      }
    }
  }
  const Value* find(std::string_view name) const {
    const auto at = keys_.find(name);
    return at == keys_.end() ? nullptr : &at->second;
  }

 private:
  std::unordered_map<std::string_view, Value> keys_;
};

}  // namespace

Value field_key(std::string_view name) {
  static const FieldKeys* const kKeys = new FieldKeys;
  if (const Value* known = kKeys->find(name)) return *known;
  std::string key;
  key.reserve(name.size() + 2);
  key.append("f:").append(name);
  return Value(key);
}

std::string map_element_key(const std::vector<std::pair<std::string_view, Value>>& keys) {
  Value object = Value::object();
  for (const auto& [name, value] : keys) object.set(name, value);
  return "k:" + go_json(object);
}

std::string set_element_key(const Value& element) {
  return "v:" + go_json(element);
}

}  // namespace tessera::kube
