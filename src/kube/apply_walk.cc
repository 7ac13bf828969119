#include "kube/apply_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tessera::kube {

using base::Code;
using base::Result;
using json::Member;
using json::Value;

using Atom = ApplyPlace::Atom;

namespace {

// One list element and its key.
struct Keyed {
  std::string key;
  const Value* value = nullptr;
};

base::Status keyed_elements(const ApplyPlace& place, const Value* list, std::vector<Keyed>& out) {
  if (list == nullptr) return {};
  const auto items = list->items();
  out.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    auto key = place.element_key(items[i]);
    if (!key) return base::error(key.error().code, "element {}: {}", i, key.error().message);
    out.push_back({std::move(*key), &items[i]});
  }
  return {};
}

void sort_by_key(std::vector<Keyed>& elements) {
  const auto less = [](const Keyed& a, const Keyed& b) { return a.key < b.key; };
  // Insertion keeps equal keys in order and needs no buffer; hostile lists are sorted in place.
  if (std::is_sorted(elements.begin(), elements.end(), less)) return;
  std::sort(elements.begin(), elements.end(), [](const Keyed& a, const Keyed& b) {
    return a.key != b.key ? a.key < b.key : a.value < b.value;
  });
}

size_t same_key_end(const std::vector<Keyed>& elements, size_t from) {
  size_t end = from + 1;
  while (end < elements.size() && elements[end].key == elements[from].key) ++end;
  return end;
}

const Value kNull;

// ---- checks

class Checker {
 public:
  explicit Checker(bool duplicates_pass) : duplicates_pass_(duplicates_pass) {}

  void value(const ApplyPlace& place, const Value& value) {
    if (place.raw()) return;
    if (std::string problem = place.type_problem(value); !problem.empty()) {
      return add(std::move(problem));
    }
    if (value.is_object()) return map(place, value);
    if (value.is_array()) return list(place, value);
  }

  base::Status result() const {
    if (problems_.empty()) return {};
    if (problems_.size() == 1) return base::error(Code::kInternal, "{}", problems_.front());
    std::string text = "errors:";
    for (const std::string& problem : problems_) text += "\n  " + problem;
    return base::error(Code::kInternal, "{}", text);
  }

 private:
  void add(std::string problem) {
    constexpr size_t kProblemsMax = 64;
    if (problems_.size() >= kProblemsMax) return;
    problems_.push_back(path_.empty() ? std::move(problem) : path_ + ": " + problem);
  }

  void map(const ApplyPlace& place, const Value& value) {
    for (const Member& member : value.members()) {
      const size_t length = path_.size();
      path_.append(".").append(member.name());
      const ApplyPlace child = place.child(member.name());
      if (!child.known()) {
        add("field not declared in schema");
        path_.resize(length);
        return;
      }
      this->value(child, member.value);
      path_.resize(length);
    }
  }

  void list(const ApplyPlace& place, const Value& value) {
    const ApplyPlace element = place.element();
    const bool atomic = place.atomic(Atom::kList);
    std::vector<Keyed> keys;
    if (!atomic) {
      if (const auto keyed = keyed_elements(place, &value, keys); !keyed) {
        return add(keyed.error().message);
      }
      if (!duplicates_pass_) add_duplicates(keys);
    }
    for (size_t i = 0; i < value.size(); ++i) {
      const size_t length = path_.size();
      path_ += atomic ? fmt::format("[{}]", i) : to_string(FieldPath{keys[i].key});
      this->value(element, value.at(i));
      path_.resize(length);
    }
  }

  void add_duplicates(std::vector<Keyed> keys) {
    sort_by_key(keys);
    for (size_t i = 1; i < keys.size(); ++i) {
      if (keys[i].key == keys[i - 1].key) {
        add("duplicate entries for key " + to_string(FieldPath{keys[i].key}));
      }
    }
  }

  bool duplicates_pass_;
  std::string path_;
  std::vector<std::string> problems_;
};

// ---- the fields of a value

// Answers the node of what stands below; a failure in a list makes `failed` say why.
class Extractor {
 public:
  Value node(const ApplyPlace& place, const Value& value) {
    switch (place.atom(&value)) {
      case Atom::kScalar:
        return field_node::leaf();
      case Atom::kList:
        if (place.atomic(Atom::kList)) return field_node::leaf();
        return value.is_array() ? list(place, value) : Value();
      case Atom::kMap:
        if (place.atomic(Atom::kMap)) return field_node::leaf();
        return value.is_object() ? map(place, value) : Value();
      default:
        return {};
    }
  }

  base::Status failed;

 private:
  Value map(const ApplyPlace& place, const Value& value) {
    std::vector<Member> children;
    children.reserve(value.size());
    for (const Member& member : value.members()) {
      Value below = node(place.child(member.name()), member.value);
      const bool empty =
          member.value.is_null() || (member.value.is_object() && member.value.empty());
      if (empty || !place.declares(member.name())) below = field_node::marked(std::move(below));
      if (!below.is_null()) children.push_back({field_key(member.name()), std::move(below)});
    }
    return field_node::made(false, std::move(children));
  }

  Value list(const ApplyPlace& place, const Value& value) {
    std::vector<Keyed> keys;
    if (auto keyed = keyed_elements(place, &value, keys); !keyed) {
      failed = std::move(keyed);
      return {};
    }
    sort_by_key(keys);
    std::vector<Member> children;
    const ApplyPlace element = place.element();
    for (size_t i = 0, end = 0; i < keys.size(); i = end) {
      end = same_key_end(keys, i);
      Value below = end - i > 1 ? Value() : node(element, *keys[i].value);
      children.push_back({Value(keys[i].key), field_node::marked(std::move(below))});
    }
    return field_node::made(false, std::move(children));
  }
};

// ---- what changed

// The nodes of a place and all below it.
struct Nodes {
  Value removed;
  Value modified;
  Value added;
};

struct Children {
  std::vector<Member> removed;
  std::vector<Member> modified;
  std::vector<Member> added;

  void add(const Value& key, Nodes&& nodes) {
    if (!nodes.removed.is_null()) removed.push_back({key, std::move(nodes.removed)});
    if (!nodes.modified.is_null()) modified.push_back({key, std::move(nodes.modified)});
    if (!nodes.added.is_null()) added.push_back({key, std::move(nodes.added)});
  }
  Nodes finish() {
    return {field_node::made(false, std::move(removed)),
            field_node::made(false, std::move(modified)),
            field_node::made(false, std::move(added))};
  }
};

bool none(const Nodes& nodes) {
  return nodes.removed.is_null() && nodes.modified.is_null() && nodes.added.is_null();
}

class Comparer {
 public:
  // At most one of the two is null.
  Nodes nodes(const ApplyPlace& place, const Value* before, const Value* after) {
    if (before != nullptr && after != nullptr && before->same_node(*after)) return {};
    bool leaf = false;
    Nodes out;
    if (before != nullptr && after != nullptr && !place.same_atom(*before, *after)) {
      bool ignored = false;
      Nodes first = as(place, place.atom(before), before, after, ignored);
      out = as(place, place.atom(after), before, after, leaf);
      out.removed = field_node::united(out.removed, first.removed);
      out.modified = field_node::united(out.modified, first.modified);
      out.added = field_node::united(out.added, first.added);
    } else {
      out = as(place, place.atom(after != nullptr ? after : before), before, after, leaf);
    }
    if (leaf) return out;
    if (before == nullptr) out.added = field_node::marked(std::move(out.added));
    if (after == nullptr) out.removed = field_node::marked(std::move(out.removed));
    return out;
  }

  base::Status failed;

 private:
  static Nodes leaf_nodes(const Value* before, const Value* after) {
    if (before == nullptr) return {{}, {}, field_node::leaf()};
    if (after == nullptr) return {field_node::leaf(), {}, {}};
    if (*before == *after) return {};
    return {{}, field_node::leaf(), {}};
  }

  Nodes as(const ApplyPlace& place, Atom atom, const Value* before, const Value* after,
           bool& leaf) {
    leaf = true;
    if (atom == Atom::kNone) return leaf_nodes(before, after);
    if (atom == Atom::kScalar || place.atomic(atom)) return leaf_nodes(before, after);
    const json::Type type = atom == Atom::kMap ? json::Type::kObject : json::Type::kArray;
    const Value* left = before != nullptr && before->type() == type ? before : nullptr;
    const Value* right = after != nullptr && after->type() == type ? after : nullptr;
    if ((left == nullptr || left->empty()) && (right == nullptr || right->empty())) {
      return leaf_nodes(before, after);
    }
    leaf = false;
    if (atom == Atom::kList) return list(place, left, right);
    return map(place, left != nullptr ? *left : kNull, right != nullptr ? *right : kNull);
  }

  Nodes map(const ApplyPlace& place, const Value& before, const Value& after) {
    const auto left = before.members();
    const auto right = after.members();
    Children children;
    size_t i = 0;
    size_t j = 0;
    while (i < left.size() || j < right.size()) {
      const int order = i == left.size()    ? 1
                        : j == right.size() ? -1
                                            : left[i].name().compare(right[j].name());
      const Value* a = order <= 0 ? &left[i].value : nullptr;
      const Value* b = order >= 0 ? &right[j].value : nullptr;
      const std::string_view name = order <= 0 ? left[i].name() : right[j].name();
      if (order <= 0) ++i;
      if (order >= 0) ++j;
      if (a != nullptr && b != nullptr && (a->same_node(*b) || same_scalar(*a, *b))) continue;
      Nodes below = nodes(place.child(name), a, b);
      if (!none(below)) children.add(field_key(name), std::move(below));
    }
    return children.finish();
  }

  static bool same_scalar(const Value& a, const Value& b) {
    return !a.is_object() && !a.is_array() && a == b;
  }

  Nodes list(const ApplyPlace& place, const Value* before, const Value* after) {
    std::vector<Keyed> left;
    std::vector<Keyed> right;
    if (!few_changed(place, before, after, left, right)) {
      for (auto* side : {&left, &right}) {
        side->clear();
        auto keyed = keyed_elements(place, side == &left ? before : after, *side);
        if (!keyed) {
          failed = std::move(keyed);
          return {};
        }
      }
    }
    sort_by_key(left);
    sort_by_key(right);
    const ApplyPlace element = place.element();
    Children children;
    size_t i = 0;
    size_t j = 0;
    while (i < left.size() || j < right.size()) {
      const int order = i == left.size()    ? 1
                        : j == right.size() ? -1
                                            : left[i].key.compare(right[j].key);
      const size_t i_end = order <= 0 ? same_key_end(left, i) : i;
      const size_t j_end = order >= 0 ? same_key_end(right, j) : j;
      const std::span<const Keyed> a(left.data() + i, i_end - i);
      const std::span<const Keyed> b(right.data() + j, j_end - j);
      Nodes below = elements(element, a, b);
      if (!none(below)) {
        children.add(Value(a.empty() ? b.front().key : a.front().key), std::move(below));
      }
      i = i_end;
      j = j_end;
    }
    return children.finish();
  }

  // Where most elements stand unchanged in their places, the others alone, unless a key stands twice.
  static bool few_changed(const ApplyPlace& place, const Value* before, const Value* after,
                          std::vector<Keyed>& left, std::vector<Keyed>& right) {
    constexpr size_t kChangedMax = 4;
    constexpr size_t kListMax = 256;
    if (before == nullptr || after == nullptr || before->size() != after->size() ||
        before->size() > kListMax) {
      return false;
    }
    const auto a = before->items();
    const auto b = after->items();
    size_t changed[kChangedMax];
    size_t count = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i].same_node(b[i]) || same_scalar(a[i], b[i])) continue;
      if (count == kChangedMax) return false;
      changed[count++] = i;
    }
    for (size_t n = 0; n < count; ++n) {
      for (size_t i = 0; i < a.size(); ++i) {
        if (i == changed[n]) continue;
        if (place.same_key(a[changed[n]], a[i]) || place.same_key(b[changed[n]], b[i]))
          return false;
      }
      auto before_key = place.element_key(a[changed[n]]);
      auto after_key = place.element_key(b[changed[n]]);
      if (!before_key || !after_key) return false;
      left.push_back({std::move(*before_key), &a[changed[n]]});
      right.push_back({std::move(*after_key), &b[changed[n]]});
    }
    return true;
  }

  // Elements of one key. Where it stands several times they count as one atomic value.
  Nodes elements(const ApplyPlace& element, std::span<const Keyed> before,
                 std::span<const Keyed> after) {
    if (before.size() <= 1 && after.size() <= 1) {
      return nodes(element, before.empty() ? nullptr : before.front().value,
                   after.empty() ? nullptr : after.front().value);
    }
    Nodes out;
    if (before.size() >= 2 && after.size() >= 2) {
      const bool equal =
          std::equal(before.begin(), before.end(), after.begin(), after.end(),
                     [](const Keyed& a, const Keyed& b) { return *a.value == *b.value; });
      if (!equal) out.modified = field_node::leaf();
    } else if (before.size() >= 2) {
      if (!after.empty()) out = nodes(element, nullptr, after.front().value);
      out.removed = field_node::marked(std::move(out.removed));
    } else {
      if (!before.empty()) out = nodes(element, before.front().value, nullptr);
      out.added = field_node::marked(std::move(out.added));
    }
    return out;
  }
};

// ---- merging

class Merger {
 public:
  // Nothing where neither side leaves anything.
  std::optional<Value> merged(const ApplyPlace& place, const Value* live, const Value* applied) {
    if (applied == nullptr) return *live;
    if (live == nullptr) return *applied;
    const Atom atom = place.atom(applied);
    if (atom == Atom::kNone || atom == Atom::kScalar || place.atomic(atom)) return *applied;
    const json::Type type = atom == Atom::kMap ? json::Type::kObject : json::Type::kArray;
    const Value* left = live->type() == type ? live : nullptr;
    const Value* right = applied->type() == type ? applied : nullptr;
    const bool nothing_left = left == nullptr || left->empty();
    if (nothing_left && (right == nullptr || right->empty())) return *applied;
    if (right == nullptr || right->empty()) return *left;
    if (atom == Atom::kList) return list(place, nothing_left ? kNull : *left, *right);
    return map(place, nothing_left ? kNull : *left, *right);
  }

  base::Status failed;

 private:
  std::optional<Value> map(const ApplyPlace& place, const Value& live, const Value& applied) {
    Value out = live.is_object() ? live : Value::object();
    for (const Member& member : applied.members()) {
      const Value* before = live.find(member.name());
      auto value = merged(place.child(member.name()), before, &member.value);
      if (!value) {
        out.erase(member.name());
      } else if (before == nullptr || !before->same_node(*value)) {
        out.set(member.name(), std::move(*value));
      }
    }
    if (out.empty()) return std::nullopt;
    return out;
  }

  std::optional<Value> list(const ApplyPlace& place, const Value& live, const Value& applied);
};

// Finds elements of a list by key.
class KeyIndex {
 public:
  explicit KeyIndex(const std::vector<Keyed>& elements) : sorted_(elements) {
    sort_by_key(sorted_);
  }
  // Null: no such key. An element that stands twice reads as null JSON.
  const Value* find(const std::string& key) const {
    const auto at =
        std::lower_bound(sorted_.begin(), sorted_.end(), key,
                         [](const Keyed& k, const std::string& s) { return k.key < s; });
    if (at == sorted_.end() || at->key != key) return nullptr;
    const auto next = at + 1;
    return next != sorted_.end() && next->key == key ? &kNull : at->value;
  }
  size_t place_of(const std::string& key) const {
    const auto at =
        std::lower_bound(sorted_.begin(), sorted_.end(), key,
                         [](const Keyed& k, const std::string& s) { return k.key < s; });
    return static_cast<size_t>(at - sorted_.begin());
  }
  size_t size() const { return sorted_.size(); }

 private:
  std::vector<Keyed> sorted_;
};

// The first key that an applied list has twice; null: none.
const std::string* key_twice(const std::vector<Keyed>& elements, const KeyIndex& index) {
  const auto at = std::find_if(elements.begin(), elements.end(),
                               [&](const Keyed& each) { return index.find(each.key) == &kNull; });
  return at != elements.end() ? &at->key : nullptr;
}

std::optional<Value> Merger::list(const ApplyPlace& place, const Value& live,
                                  const Value& applied) {
  std::vector<Keyed> left;
  std::vector<Keyed> right;
  for (auto* side : {&right, &left}) {
    if (auto keyed = keyed_elements(place, side == &left ? &live : &applied, *side); !keyed) {
      failed = std::move(keyed);
      return std::nullopt;
    }
  }
  const KeyIndex in_left(left);
  const KeyIndex in_right(right);
  if (const std::string* key = key_twice(right, in_right)) {
    failed =
        base::error(Code::kInternal, "duplicate entries for key {}", to_string(FieldPath{*key}));
    return std::nullopt;
  }
  // Elements that both have, in the order of `applied`; the next one to be placed.
  std::vector<const std::string*> shared;
  for (const Keyed& each : right) {
    if (in_left.find(each.key) != nullptr) shared.push_back(&each.key);
  }
  size_t next_shared = 0;
  std::vector<bool> done(right.size(), false);
  const ApplyPlace element = place.element();
  Value out = Value::array();
  const auto take = [&](const Value* a, const Value* b) {
    if (auto value = merged(element, a, b)) out.push_back(std::move(*value));
  };
  size_t l = 0;
  size_t r = 0;
  while (l < left.size() || r < right.size()) {
    if (l < left.size() && r < right.size()) {
      const std::string& key = left[l].key;
      if (key == right[r].key) {
        done[in_right.place_of(key)] = true;
        take(in_left.find(key), right[r].value);
        ++l;
        ++r;
        ++next_shared;
        continue;
      }
      // Shared, but not the one that comes next.
      if (in_right.find(key) != nullptr && next_shared < shared.size() &&
          *shared[next_shared] != key) {
        ++l;
        continue;
      }
    }
    if (l < left.size()) {
      const std::string& key = left[l].key;
      if (in_right.find(key) == nullptr) {
        take(left[l].value, nullptr);
        ++l;
        continue;
      }
      if (done[in_right.place_of(key)]) ++l;
    }
    if (r < right.size()) {
      const std::string& key = right[r].key;
      done[in_right.place_of(key)] = true;
      take(in_left.find(key), right[r].value);
      ++r;
      if (next_shared < shared.size() && *shared[next_shared] == key) ++next_shared;
    }
  }
  if (out.empty()) return std::nullopt;
  return out == live ? live : out;
}

// ---- removing

Value removed_from(const ApplyPlace& place, const Value& value, const Value& node);

Value list_without(const ApplyPlace& place, const Value& value, const Value& node) {
  if (value.empty() || place.atomic(Atom::kList)) return {};
  const ApplyPlace element = place.element();
  Value out = Value::array();
  bool changed = false;
  for (const Value& item : value.items()) {
    const auto key = place.element_key(item);
    const Value* below = key ? node.find(*key) : nullptr;
    if (below == nullptr) {
      out.push_back(item);
      continue;
    }
    changed = true;
    if (!field_node::is_member(*below)) out.push_back(removed_from(element, item, *below));
  }
  if (out.empty()) return {};
  return changed ? out : value;
}

Value map_without(const ApplyPlace& place, const Value& value, const Value& node) {
  if (value.empty() || place.atomic(Atom::kMap)) return {};
  Value out = value;
  for (const Member& member : node.members()) {
    if (!member.name().starts_with("f:")) continue;
    const std::string_view name = member.name().substr(2);
    const Value* child = out.find(name);
    if (child == nullptr) continue;
    if (field_node::is_member(member.value)) {
      out.erase(name);
    } else {
      out.set(name, removed_from(place.child(name), *child, member.value));
    }
  }
  return out.empty() ? Value() : out;
}

Value removed_from(const ApplyPlace& place, const Value& value, const Value& node) {
  switch (place.atom(&value)) {
    case Atom::kMap:
      return value.is_object() ? map_without(place, value, node) : Value();
    case Atom::kList:
      return value.is_array() ? list_without(place, value, node) : Value();
    default:
      return value;
  }
}

// ---- sets by type

ApplyPlace place_at(const ApplyPlace& place, std::string_view key) {
  if (key.starts_with("f:")) {
    return place.atom(nullptr) == Atom::kMap ? place.child(key.substr(2)) : ApplyPlace();
  }
  return place.atom(nullptr) == Atom::kList && key.starts_with("k:") ? place.element()
                                                                     : ApplyPlace();
}

Value named(const ApplyPlace& place, const Value& node) {
  if (node.is_null() || !place.known()) return node;
  Value out = node;
  for (const Member& member : node.members()) {
    if (field_node::is_self(member) || member.value.empty()) continue;
    Value below = named(place_at(place, member.name()), member.value);
    if (member.name().starts_with("f:") && place.declares(member.name().substr(2))) {
      below = field_node::marked(std::move(below));
    }
    if (!below.same_node(member.value)) out.set(member.name(), std::move(below));
  }
  return out;
}

Value fitted(const ApplyPlace& place, const Value& node) {
  if (node.is_null() || node.empty() || !place.known() || place.granular_raw()) return node;
  const Atom atom = place.atom(nullptr);
  if (atom == Atom::kScalar) return node;
  if (place.atomic(atom)) return field_node::leaf();
  Value out = node;
  for (const Member& member : node.members()) {
    if (field_node::is_self(member)) continue;
    const ApplyPlace below = atom == Atom::kList ? place.element() : place_at(place, member.name());
    Value fit = fitted(below, member.value);
    if (!fit.same_node(member.value)) out.set(member.name(), std::move(fit));
  }
  return out;
}

}  // namespace

base::Status check_typed(const ApplyPlace& place, const Value& value, bool duplicates_pass) {
  Checker checker(duplicates_pass);
  checker.value(place, value);
  return checker.result();
}

Result<FieldSet> fields_of(const ApplyPlace& place, const Value& value) {
  Extractor extractor;
  Value node = extractor.node(place, value);
  TS_TRY_STATUS(extractor.failed);
  if (field_node::is_member(node)) return FieldSet();
  return FieldSet::of_node(std::move(node));
}

Result<FieldChanges> compare(const ApplyPlace& place, const Value& before, const Value& after) {
  Comparer comparer;
  Nodes nodes = comparer.nodes(place, &before, &after);
  TS_TRY_STATUS(comparer.failed);
  FieldChanges out;
  for (const auto& [node, set] :
       {std::pair{&nodes.removed, &out.removed}, std::pair{&nodes.modified, &out.modified},
        std::pair{&nodes.added, &out.added}}) {
    if (!field_node::is_member(*node)) *set = FieldSet::of_node(*node);
  }
  return out;
}

Result<Value> merge_applied(const ApplyPlace& place, const Value& live, const Value& applied) {
  Merger merger;
  auto out = merger.merged(place, &live, &applied);
  TS_TRY_STATUS(merger.failed);
  return out ? std::move(*out) : Value();
}

Value without_fields(const ApplyPlace& place, const Value& value, const FieldSet& set) {
  return set.empty() ? value : removed_from(place, value, set.node());
}

FieldSet with_named_fields(const ApplyPlace& place, const FieldSet& set) {
  return FieldSet::of_node(named(place, set.node()));
}

FieldSet fit_to_type(const ApplyPlace& place, const FieldSet& set) {
  return FieldSet::of_node(fitted(place, set.node()));
}

}  // namespace tessera::kube
