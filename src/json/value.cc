#include "json/value.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "base/check.h"

namespace tessera::json {
namespace {

constexpr uint32_t kImmortal = 0xffffffffU;
constexpr size_t kInlineMax = 14;

const Value kNullValue;

}  // namespace

// Memory of one counted node: {refs}{payload}. A node whose count is kImmortal is never counted nor freed.
struct Value::Node {
  std::atomic<uint32_t> refs{1};
};

struct Value::StringNode : Node {
  uint32_t size = 0;
  char* data() { return reinterpret_cast<char*>(this + 1); }
};

struct Value::ArrayNode : Node {
  std::vector<Value> items;
};

struct Value::ObjectNode : Node {
  std::vector<Member> members;

  std::vector<Member>::iterator lower(std::string_view key) {
    return std::lower_bound(members.begin(), members.end(), key,
                            [](const Member& m, std::string_view k) { return m.name() < k; });
  }
};

template <class T>
T Value::load() const noexcept {
  T out;
  std::memcpy(&out, raw_, sizeof out);
  return out;
}

template <class T>
void Value::store(T value) noexcept {
  std::memcpy(raw_, &value, sizeof value);
}

Value::Value(bool b) noexcept : raw_{} {
  raw_[0] = b ? 1 : 0;
  set_tag(Tag::kBool);
}

Value::Value(int64_t i, IntTag) noexcept : raw_{} {
  store(i);
  set_tag(Tag::kInt);
}

Value::Value(double d) noexcept : raw_{} {
  store(d);
  set_tag(Tag::kDouble);
}

Value::Value(std::string_view s) : raw_{} {
  if (s.size() <= kInlineMax) {
    if (!s.empty()) std::memcpy(raw_, s.data(), s.size());  // an empty view may have no data at all
    raw_[14] = static_cast<unsigned char>(s.size());
    set_tag(Tag::kInline);
    return;
  }
  TS_CHECK(s.size() < 0xffffffffU, "string of {} bytes", s.size());
  void* memory = std::malloc(sizeof(StringNode) + s.size());
  if (memory == nullptr) throw std::bad_alloc();
  auto* node = new (memory) StringNode();
  node->size = static_cast<uint32_t>(s.size());
  std::memcpy(node->data(), s.data(), s.size());
  store(node);
  set_tag(Tag::kHeap);
}

Value::Value(const Value& other) noexcept {
  std::memcpy(raw_, other.raw_, sizeof raw_);
  if (!counted()) return;
  auto* node = load<Node*>();
  if (node->refs.load(std::memory_order_relaxed) != kImmortal) {
    node->refs.fetch_add(1, std::memory_order_relaxed);
  }
}

Value::Value(Value&& other) noexcept {
  std::memcpy(raw_, other.raw_, sizeof raw_);
  std::memset(other.raw_, 0, sizeof other.raw_);
}

Value& Value::operator=(const Value& other) noexcept {
  if (this != &other) *this = Value(other);
  return *this;
}

Value& Value::operator=(Value&& other) noexcept {
  if (this == &other) return *this;
  // The old value goes last: it may own `other` (v = v["a"]).
  Value old(std::move(*this));
  std::memcpy(raw_, other.raw_, sizeof raw_);
  std::memset(other.raw_, 0, sizeof other.raw_);
  return *this;
}

Value::~Value() {
  if (counted()) release();
}

void Value::release() noexcept {
  auto* node = load<Node*>();
  if (node->refs.load(std::memory_order_relaxed) == kImmortal) return;
  if (node->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  switch (tag()) {
    case Tag::kHeap:
      std::free(node);
      break;
    case Tag::kArray:
      delete static_cast<ArrayNode*>(node);
      break;
    default:
      delete static_cast<ObjectNode*>(node);
      break;
  }
}

Value Value::array(std::initializer_list<Value> items) {
  Value out;
  auto* node = new ArrayNode();
  node->items.assign(items.begin(), items.end());
  out.store(node);
  out.set_tag(Tag::kArray);
  return out;
}

Value Value::object(std::initializer_list<std::pair<std::string_view, Value>> members) {
  Value out;
  out.store(new ObjectNode());
  out.set_tag(Tag::kObject);
  out.reserve(members.size());
  for (const auto& [key, value] : members) out.set(key, value);
  return out;
}

Value Value::immortal(std::string_view s) {
  Value out(s);
  if (out.counted()) out.load<Node*>()->refs.store(kImmortal, std::memory_order_relaxed);
  return out;
}

Type Value::type() const noexcept {
  switch (tag()) {
    case Tag::kNull:
      return Type::kNull;
    case Tag::kBool:
      return Type::kBool;
    case Tag::kInt:
      return Type::kInt;
    case Tag::kDouble:
      return Type::kDouble;
    case Tag::kInline:
    case Tag::kHeap:
      return Type::kString;
    case Tag::kArray:
      return Type::kArray;
    case Tag::kObject:
      return Type::kObject;
  }
  return Type::kNull;
}

bool Value::as_bool(bool otherwise) const noexcept {
  return tag() == Tag::kBool ? raw_[0] != 0 : otherwise;
}

int64_t Value::as_int(int64_t otherwise) const noexcept {
  if (tag() == Tag::kInt) return load<int64_t>();
  if (tag() == Tag::kDouble) {
    const auto d = load<double>();
    if (d >= -0x1p63 && d < 0x1p63 && d == std::floor(d)) return static_cast<int64_t>(d);
  }
  return otherwise;
}

double Value::as_double(double otherwise) const noexcept {
  if (tag() == Tag::kDouble) return load<double>();
  return tag() == Tag::kInt ? static_cast<double>(load<int64_t>()) : otherwise;
}

std::string_view Value::as_string() const& noexcept {
  if (tag() == Tag::kInline) return {reinterpret_cast<const char*>(raw_), raw_[14]};
  if (tag() != Tag::kHeap) return {};
  auto* node = load<StringNode*>();
  return {node->data(), node->size};
}

size_t Value::size() const noexcept {
  if (tag() == Tag::kArray) return load<ArrayNode*>()->items.size();
  if (tag() == Tag::kObject) return load<ObjectNode*>()->members.size();
  return 0;
}

std::span<const Value> Value::items() const noexcept {
  if (tag() != Tag::kArray) return {};
  return load<ArrayNode*>()->items;
}

std::span<const Member> Value::members() const noexcept {
  if (tag() != Tag::kObject) return {};
  return load<ObjectNode*>()->members;
}

const Value* Value::find(std::string_view key) const noexcept {
  if (tag() != Tag::kObject) return nullptr;
  auto* node = load<ObjectNode*>();
  auto it = node->lower(key);
  return it != node->members.end() && it->name() == key ? &it->value : nullptr;
}

const Value& Value::operator[](std::string_view key) const noexcept {
  const Value* found = find(key);
  return found != nullptr ? *found : kNullValue;
}

const Value& Value::at(size_t index) const noexcept {
  const auto all = items();
  return index < all.size() ? all[index] : kNullValue;
}

Value::ArrayNode& Value::own_array() {
  if (tag() != Tag::kArray) *this = array();
  auto* node = load<ArrayNode*>();
  if (node->refs.load(std::memory_order_acquire) != 1) {
    auto* copy = new ArrayNode();
    copy->items = node->items;
    release();
    store(copy);
    node = copy;
  }
  return *node;
}

Value::ObjectNode& Value::own_object() {
  if (tag() != Tag::kObject) *this = object();
  auto* node = load<ObjectNode*>();
  if (node->refs.load(std::memory_order_acquire) != 1) {
    auto* copy = new ObjectNode();
    copy->members = node->members;
    release();
    store(copy);
    node = copy;
  }
  return *node;
}

Value& Value::set(std::string_view key, Value value) {
  return ref(key) = std::move(value);
}

Value& Value::ref(std::string_view key) {
  ObjectNode& node = own_object();
  auto it = node.lower(key);
  if (it == node.members.end() || it->name() != key) {
    it = node.members.insert(it, Member{Value(key), Value()});
  }
  return it->value;
}

bool Value::erase(std::string_view key) {
  if (!contains(key)) return false;
  ObjectNode& node = own_object();
  node.members.erase(node.lower(key));
  return true;
}

Value& Value::push_back(Value value) {
  return own_array().items.emplace_back(std::move(value));
}

Value& Value::ref_at(size_t index) {
  ArrayNode& node = own_array();
  TS_CHECK(index < node.items.size(), "index {} of {}", index, node.items.size());
  return node.items[index];
}

void Value::erase_at(size_t index) {
  ArrayNode& node = own_array();
  TS_CHECK(index < node.items.size(), "index {} of {}", index, node.items.size());
  node.items.erase(node.items.begin() + static_cast<std::ptrdiff_t>(index));
}

void Value::insert_at(size_t index, Value value) {
  ArrayNode& node = own_array();
  TS_CHECK(index <= node.items.size(), "index {} of {}", index, node.items.size());
  node.items.insert(node.items.begin() + static_cast<std::ptrdiff_t>(index), std::move(value));
}

void Value::reserve(size_t count) {
  if (tag() == Tag::kArray) own_array().items.reserve(count);
  if (tag() == Tag::kObject) own_object().members.reserve(count);
}

bool Value::same_node(const Value& other) const noexcept {
  return tag() >= Tag::kArray && tag() == other.tag() && load<Node*>() == other.load<Node*>();
}

bool operator==(const Value& a, const Value& b) noexcept {
  if (a.type() != b.type()) return a.is_number() && b.is_number() && a.as_double() == b.as_double();
  switch (a.type()) {
    case Type::kNull:
      return true;
    case Type::kBool:
      return a.as_bool() == b.as_bool();
    case Type::kInt:
      return a.as_int() == b.as_int();
    case Type::kDouble:
      return a.as_double() == b.as_double();
    case Type::kString:
      return a.as_string() == b.as_string();
    case Type::kArray:
      return a.same_node(b) || std::ranges::equal(a.items(), b.items());
    case Type::kObject:
      break;
  }
  return a.same_node(b) || std::ranges::equal(a.members(), b.members(), [](auto& x, auto& y) {
           return x.key == y.key && x.value == y.value;
         });
}

Value ObjectBuilder::build(std::span<Member> members, std::string* duplicate) {
  Value out = Value::object();
  auto& sorted = out.own_object().members;
  sorted.reserve(members.size());
  for (Member& member : members) sorted.push_back(std::move(member));
  auto less = [](const Member& a, const Member& b) { return a.name() < b.name(); };
  if (!std::ranges::is_sorted(sorted, less)) std::ranges::stable_sort(sorted, less);
  for (size_t i = sorted.size(); i-- > 1;) {
    if (sorted[i - 1].name() != sorted[i].name()) continue;
    if (duplicate != nullptr) *duplicate = sorted[i].name();
    sorted.erase(sorted.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
  return out;
}

Value array_of(std::span<Value> items) {
  Value out = Value::array();
  out.reserve(items.size());
  for (Value& item : items) out.push_back(std::move(item));
  return out;
}

}  // namespace tessera::json
