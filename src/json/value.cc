#include "json/value.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include "base/check.h"

namespace tessera::json {

// Values move by their bits: nothing points into them.
static_assert(sizeof(Member) == 2 * sizeof(Value));

const Value Value::kNullValue;

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

void Value::make_heap_string(std::string_view s) {
  TS_CHECK(s.size() < 0xffffffffU, "string of {} bytes", s.size());
  void* memory = std::malloc(sizeof(Node) + s.size());
  if (memory == nullptr) throw std::bad_alloc();
  auto* node = new (memory) Node();
  node->size = static_cast<uint32_t>(s.size());
  std::memcpy(static_cast<void*>(node + 1), s.data(), s.size());
  store(node);
  set_tag(Tag::kHeap);
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

void Value::free_node() noexcept {
  if (tag() >= Tag::kArray) {
    auto* node = load<ListNode*>();
    Value* all = node->items();
    for (size_t i = 0; i < node->size * width(); ++i) all[i].~Value();
  }
  std::free(load<Node*>());
}

// Makes this an array or object of its own with room for `room` elements: what it was, where the type fits; else empty.
Value::ListNode& Value::own(Tag wanted, size_t room) {
  TS_CHECK(room < 0xffffffffU, "{} elements", room);
  const size_t element = wanted == Tag::kObject ? sizeof(Member) : sizeof(Value);
  ListNode* old = tag() == wanted ? load<ListNode*>() : nullptr;
  const bool alone = old != nullptr && old->refs.load(std::memory_order_acquire) == 1;
  if (alone) old->common.store(0, std::memory_order_relaxed);
  if (alone && old->capacity >= room) return *old;
  const size_t size = old != nullptr ? old->size : 0;
  size_t capacity = std::max(room, size);
  if (alone) capacity = std::max(capacity, size + size / 2 + 1);  // it grows, and may go on
  void* memory = std::realloc(static_cast<void*>(alone ? old : nullptr),
                              sizeof(ListNode) + capacity * element);
  if (memory == nullptr) throw std::bad_alloc();
  auto* node = alone ? static_cast<ListNode*>(memory) : new (memory) ListNode();
  node->capacity = static_cast<uint32_t>(capacity);
  if (!alone) {
    if (old != nullptr) {
      node->size = old->size;
      std::memcpy(static_cast<void*>(node->items()), old->items(), size * element);
      for (size_t i = 0; i < size * width(); ++i) node->items()[i].retain();
    }
    if (counted()) release();
  }
  store(node);
  set_tag(wanted);
  return *node;
}

// Room for one element at an index of a node of its own; the gap holds nulls.
Value* Value::open_gap(size_t at, size_t count) {
  auto* node = load<ListNode*>();
  Value* gap = node->items() + at * count;
  std::memmove(static_cast<void*>(gap + count), gap, (node->size - at) * count * sizeof(Value));
  for (size_t i = 0; i < count; ++i) new (gap + i) Value();
  ++node->size;
  return gap;
}

void Value::close_gap(size_t at) {
  auto* node = load<ListNode*>();
  const size_t count = width();
  Value* gap = node->items() + at * count;
  for (size_t i = 0; i < count; ++i) gap[i].~Value();
  --node->size;
  std::memmove(static_cast<void*>(gap), gap + count, (node->size - at) * count * sizeof(Value));
}

Value Value::array(std::initializer_list<Value> items) {
  Value out;
  out.own(Tag::kArray, items.size());
  for (const Value& item : items) out.push_back(item);
  return out;
}

Value Value::object(std::initializer_list<std::pair<std::string_view, Value>> members) {
  Value out;
  out.own(Tag::kObject, members.size());
  for (const auto& [key, value] : members) out.set(key, value);
  return out;
}

Value Value::immortal(std::string_view s) {
  Value out(s);
  if (out.counted()) out.load<Node*>()->refs.store(kImmortal, std::memory_order_relaxed);
  return out;
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

// The first member that does not sort before the key.
size_t Value::lower(std::string_view key) const noexcept {
  const auto all = members();
  const auto it =
      std::lower_bound(all.begin(), all.end(), key,
                       [](const Member& m, std::string_view k) { return m.name() < k; });
  return static_cast<size_t>(it - all.begin());
}

Value& Value::set(std::string_view key, Value value) {
  return ref(key) = std::move(value);
}

Value& Value::ref(std::string_view key) {
  const size_t at = lower(key);
  const auto all = members();
  if (at < all.size() && all[at].name() == key) {
    return own(Tag::kObject, 0).members()[at].value;
  }
  Value name(key);  // `key` may lie in what own() frees
  own(Tag::kObject, all.size() + 1);
  Value* gap = open_gap(at, 2);
  gap[0] = std::move(name);
  return gap[1];
}

bool Value::erase(std::string_view key) {
  if (!contains(key)) return false;
  const size_t at = lower(key);
  own(Tag::kObject, 0);
  close_gap(at);
  return true;
}

Value& Value::push_back(Value value) {
  const size_t count = items().size();
  own(Tag::kArray, count + 1);
  return *open_gap(count, 1) = std::move(value);
}

Value& Value::ref_at(size_t index) {
  ListNode& node = own(Tag::kArray, 0);
  TS_CHECK(index < node.size, "index {} of {}", index, node.size);
  return node.items()[index];
}

void Value::erase_at(size_t index) {
  const ListNode& node = own(Tag::kArray, 0);
  TS_CHECK(index < node.size, "index {} of {}", index, node.size);
  close_gap(index);
}

void Value::insert_at(size_t index, Value value) {
  const size_t count = items().size();
  TS_CHECK(index <= count, "index {} of {}", index, count);
  own(Tag::kArray, count + 1);
  *open_gap(index, 1) = std::move(value);
}

void Value::reserve(size_t count) {
  if (tag() >= Tag::kArray) own(tag(), count);
}

bool Value::same_node(const Value& other) const noexcept {
  return tag() >= Tag::kArray && same_bits(other);
}

bool operator==(const Value& a, const Value& b) noexcept {
  if (a.same_bits(b) && a.type() != Type::kDouble) return true;
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
      return std::ranges::equal(a.items(), b.items());
    case Type::kObject:
      break;
  }
  return std::ranges::equal(a.members(), b.members(), [](const Member& x, const Member& y) {
    return x.key == y.key && x.value == y.value;
  });
}

Value ObjectBuilder::build(std::span<Member> members, std::string* duplicate) {
  const auto less = [](const Member& a, const Member& b) { return a.name() < b.name(); };
  if (!std::ranges::is_sorted(members, less)) std::ranges::stable_sort(members, less);
  Value out;
  Value::ListNode& node = out.own(Value::Tag::kObject, members.size());
  bool twice = false;
  for (size_t i = 0; i < members.size(); ++i) {
    if (i + 1 < members.size() && members[i].name() == members[i + 1].name()) {
      if (!twice && duplicate != nullptr) *duplicate = members[i].name();
      twice = true;
      continue;
    }
    new (node.members() + node.size++) Member(std::move(members[i]));
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
