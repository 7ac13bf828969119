// A JSON value: 16 bytes, immutable subtrees shared between copies.
//
// Shape:   null, bool, 64-bit integer, double, string, array, object. Objects keep their members sorted by key, so that
//          output is canonical and look-up is a binary search. Copying is a reference count; a change copies only the
//          path from the changed value up (copy on write), so thousands of versions of one Pod share what they have in
//          common. Strings of up to 14 bytes live inside the value.
// Errors:  readers never fail: a missing member or a value of another type reads as null, 0, "" or empty.
// Threads: distinct Values may be used from distinct threads even where they share subtrees.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::json {

struct Member;

enum class Type : uint8_t { kNull, kBool, kInt, kDouble, kString, kArray, kObject };

class Value {
 public:
  Value() noexcept : raw_{} {}
  Value(std::nullptr_t) noexcept : raw_{} {}
  Value(bool b) noexcept;
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Value(I i) noexcept : Value(static_cast<int64_t>(i), IntTag{}) {}
  Value(double d) noexcept;
  Value(std::string_view s);
  Value(const char* s) : Value(std::string_view(s)) {}
  Value(const std::string& s) : Value(std::string_view(s)) {}
  Value(const Value& other) noexcept;
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other) noexcept;
  Value& operator=(Value&& other) noexcept;
  ~Value();

  static Value array(std::initializer_list<Value> items = {});
  static Value object(std::initializer_list<std::pair<std::string_view, Value>> members = {});
  // A string that is never freed and whose copies touch no counter: for keys that every object has.
  static Value immortal(std::string_view s);

  Type type() const noexcept;
  bool is_null() const noexcept { return type() == Type::kNull; }
  bool is_bool() const noexcept { return type() == Type::kBool; }
  bool is_int() const noexcept { return type() == Type::kInt; }
  bool is_number() const noexcept { return is_int() || type() == Type::kDouble; }
  bool is_string() const noexcept { return type() == Type::kString; }
  bool is_array() const noexcept { return type() == Type::kArray; }
  bool is_object() const noexcept { return type() == Type::kObject; }

  bool as_bool(bool otherwise = false) const noexcept;
  // Doubles with a whole value within range count as integers.
  int64_t as_int(int64_t otherwise = 0) const noexcept;
  double as_double(double otherwise = 0) const noexcept;
  std::string_view as_string() const& noexcept;
  std::string_view as_string() const&& = delete;
  std::string str() const { return std::string(as_string()); }

  // Elements of an array or members of an object; 0 for anything else.
  size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  std::span<const Value> items() const noexcept;
  std::span<const Member> members() const noexcept;
  const Value& operator[](std::string_view key) const noexcept;
  const Value& operator[](const char* key) const noexcept { return (*this)[std::string_view(key)]; }
  const Value& at(size_t index) const noexcept;
  const Value* find(std::string_view key) const noexcept;
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  // get("spec", "nodeName") is (*this)["spec"]["nodeName"].
  template <class... Keys>
  const Value& get(std::string_view key, Keys... rest) const noexcept {
    if constexpr (sizeof...(rest) == 0) {
      return (*this)[key];
    } else {
      return (*this)[key].get(rest...);
    }
  }

  // Changes. On a value of another type they first make it an empty object or array.
  // References stay good until the next change of the same container.
  Value& set(std::string_view key, Value value);
  Value& ref(std::string_view key);  // the member, made null when missing, for changing in place
  // ref("metadata", "labels") makes the objects on the way.
  template <class... Keys>
  Value& ref(std::string_view key, std::string_view next, Keys... rest) {
    return ref(key).ref(next, rest...);
  }
  bool erase(std::string_view key);
  Value& push_back(Value value);
  Value& ref_at(size_t index);  // index < size()
  void erase_at(size_t index);
  void insert_at(size_t index, Value value);
  void reserve(size_t count);

  // True when both share the same array or object node: equal without looking.
  bool same_node(const Value& other) const noexcept;
  friend bool operator==(const Value& a, const Value& b) noexcept;

  // Compact JSON, members sorted, numbers and escapes as Go's encoder writes them (without HTML escapes).
  std::string dump() const;
  void dump_to(std::string& out) const;
  // The same with line breaks and 4 spaces of indentation, as `kubectl -o json` prints.
  std::string dump_pretty() const;

 private:
  friend class ObjectBuilder;
  friend class Interner;
  struct IntTag {};
  Value(int64_t i, IntTag) noexcept;
  void make_heap_string(std::string_view s);
  // Memory of a counted node: a header, then characters, Values or Members. A node whose count is kImmortal is never
  // counted nor freed.
  struct Node {
    std::atomic<uint32_t> refs{1};
    uint32_t size = 0;  // characters, items or members
  };
  struct alignas(8) ListNode : Node {
    uint32_t capacity = 0;
    std::atomic<uint16_t> common{0};  // bytes, where an Interner has or had it; else 0
    Value* items() { return reinterpret_cast<Value*>(this + 1); }
    Member* members() { return reinterpret_cast<Member*>(this + 1); }
  };
  enum class Tag : uint8_t { kNull, kBool, kInt, kDouble, kInline, kHeap, kArray, kObject };
  static constexpr uint32_t kImmortal = 0xffffffffU;
  static constexpr size_t kInlineMax = 14;
  static const Value kNullValue;

  Tag tag() const noexcept { return static_cast<Tag>(raw_[15]); }
  void set_tag(Tag tag) noexcept { raw_[15] = static_cast<unsigned char>(tag); }
  template <class T>
  T load() const noexcept {
    T out;
    std::memcpy(&out, raw_, sizeof out);
    return out;
  }
  template <class T>
  void store(T value) noexcept {
    std::memcpy(raw_, &value, sizeof value);
  }
  bool counted() const noexcept { return tag() >= Tag::kHeap; }
  size_t width() const noexcept { return tag() == Tag::kObject ? 2 : 1; }  // Values an element
  bool same_bits(const Value& other) const noexcept {
    return std::memcmp(raw_, other.raw_, sizeof raw_) == 0;
  }
  void retain() const noexcept;
  void release() noexcept;
  void free_node() noexcept;
  ListNode& own(Tag wanted, size_t room);
  Value* open_gap(size_t at, size_t count);
  void close_gap(size_t at);
  size_t lower(std::string_view key) const noexcept;

  alignas(8) unsigned char raw_[16];
};

struct Member {
  Value key;  // always a string
  Value value;
  std::string_view name() const noexcept { return key.as_string(); }
};

inline Value::Value(std::string_view s) : raw_{} {
  if (s.size() <= kInlineMax) {
    if (!s.empty()) std::memcpy(raw_, s.data(), s.size());  // an empty view may have no data at all
    raw_[14] = static_cast<unsigned char>(s.size());
    set_tag(Tag::kInline);
  } else {
    make_heap_string(s);
  }
}

inline void Value::retain() const noexcept {
  if (!counted()) return;
  auto* node = load<Node*>();
  if (node->refs.load(std::memory_order_relaxed) != kImmortal) {
    node->refs.fetch_add(1, std::memory_order_relaxed);
  }
}

inline void Value::release() noexcept {
  auto* node = load<Node*>();
  if (node->refs.load(std::memory_order_relaxed) == kImmortal) return;
  if (node->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) free_node();
}

inline Value::Value(const Value& other) noexcept {
  std::memcpy(raw_, other.raw_, sizeof raw_);
  retain();
}

inline Value::Value(Value&& other) noexcept {
  std::memcpy(raw_, other.raw_, sizeof raw_);
  std::memset(other.raw_, 0, sizeof other.raw_);
}

inline Value::~Value() {
  if (counted()) release();
}

inline Type Value::type() const noexcept {
  constexpr Type kTypes[] = {Type::kNull,   Type::kBool,   Type::kInt,   Type::kDouble,
                             Type::kString, Type::kString, Type::kArray, Type::kObject};
  return kTypes[raw_[15]];
}

inline std::string_view Value::as_string() const& noexcept {
  if (tag() == Tag::kInline) return {reinterpret_cast<const char*>(raw_), raw_[14]};
  if (tag() != Tag::kHeap) return {};
  auto* node = load<Node*>();
  return {reinterpret_cast<const char*>(node + 1), node->size};
}

inline size_t Value::size() const noexcept {
  return tag() >= Tag::kArray ? load<Node*>()->size : 0;
}

inline std::span<const Value> Value::items() const noexcept {
  if (tag() != Tag::kArray) return {};
  auto* node = load<ListNode*>();
  return {node->items(), node->size};
}

inline std::span<const Member> Value::members() const noexcept {
  if (tag() != Tag::kObject) return {};
  auto* node = load<ListNode*>();
  return {node->members(), node->size};
}

// A short key is the same only where all its bits are, so a few members are passed faster than a search halves them.
inline const Value* Value::find(std::string_view key) const noexcept {
  constexpr size_t kFew = 16;
  const auto all = members();
  if (key.size() <= kInlineMax && all.size() <= kFew) {
    const Value wanted(key);
    for (const Member& member : all) {
      if (member.key.same_bits(wanted)) return &member.value;
    }
    return nullptr;
  }
  const size_t at = lower(key);
  return at < all.size() && all[at].name() == key ? &all[at].value : nullptr;
}

inline const Value& Value::operator[](std::string_view key) const noexcept {
  const Value* found = find(key);
  return found != nullptr ? *found : kNullValue;
}

inline const Value& Value::at(size_t index) const noexcept {
  const auto all = items();
  return index < all.size() ? all[index] : kNullValue;
}

// Collects members in any order and sorts once: for parsers. add() keeps duplicates; build() keeps the last of each and
// reports the first duplicate's key.
class ObjectBuilder {
 public:
  static Value build(std::span<Member> members, std::string* duplicate);
};

// Arrays from a list that is given away.
Value array_of(std::span<Value> items);

}  // namespace tessera::json
