// Makes equal parts of many values one. Thousands of pods of one template say the same about containers, volumes and
// managed fields; interned, they keep it once.
//
// Shape:   a fixed table of what was seen of late. Strings, arrays and objects below the value itself are looked up from the
//          leaves up; an entry gives way to a newer one of the same slot, so equal parts are usually, not always, one. Parts
//          of more than kBytesMax are left alone, so that the table, which outlives the values, holds little.
// Units:   bytes are of text and nodes, about.
// Threads: one at a time; the values that come out may be used from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "json/value.h"

namespace tessera::json {

class Interner {
 public:
  explicit Interner(size_t slots = 8192) : slots_(slots) {}

  static constexpr size_t kBytesMax = 4096;

  // The value stays equal and shares what it can.
  void intern(Value& value);

 private:
  size_t intern_parts(Value& value);
  size_t intern_part(Value& value);
  void replace(Value& value, uint64_t hash);
  static uint64_t hash_of(const Value& value);
  static bool is_same(const Value& a, const Value& b);

  std::vector<Value> slots_;
};

}  // namespace tessera::json
