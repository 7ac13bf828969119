// A JSON value: 16 bytes, immutable subtrees shared between copies.
//
// Shape:   null, bool, 64-bit integer, double, string, array, object. Objects keep their members sorted by key, so that
//          output is canonical and look-up is a binary search. Copying is a reference count; a change copies only the
//          path from the changed value up (copy on write), so thousands of versions of one Pod share what they have in
//          common. Strings of up to 14 bytes live inside the value.
// Errors:  readers never fail: a missing member or a value of another type reads as null, 0, "" or empty.
// Threads: distinct Values may be used from distinct threads even where they share subtrees.
#pragma once

#include <concepts>
#include <cstdint>
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
  struct IntTag {};
  Value(int64_t i, IntTag) noexcept;
  struct Node;
  struct StringNode;
  struct ArrayNode;
  struct ObjectNode;
  enum class Tag : uint8_t { kNull, kBool, kInt, kDouble, kInline, kHeap, kArray, kObject };

  Tag tag() const noexcept { return static_cast<Tag>(raw_[15]); }
  void set_tag(Tag tag) noexcept { raw_[15] = static_cast<unsigned char>(tag); }
  template <class T>
  T load() const noexcept;
  template <class T>
  void store(T value) noexcept;
  bool counted() const noexcept { return tag() >= Tag::kHeap; }
  void release() noexcept;
  ArrayNode& own_array();
  ObjectNode& own_object();

  alignas(8) unsigned char raw_[16];
};

struct Member {
  Value key;  // always a string
  Value value;
  std::string_view name() const noexcept { return key.as_string(); }
};

// Collects members in any order and sorts once: for parsers. add() keeps duplicates; build() keeps the last of each and
// reports the first duplicate's key.
class ObjectBuilder {
 public:
  static Value build(std::span<Member> members, std::string* duplicate);
};

// Arrays from a list that is given away.
Value array_of(std::span<Value> items);

}  // namespace tessera::json
