#include "json/interner.h"

#include <functional>

namespace tessera::json {
namespace {

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 29);
}

}  // namespace

void Interner::intern(Value& value) {
  if (value.tag() >= Value::Tag::kArray) intern_parts(value);
}

// What others also hold is left as it is: parts that change are changed in a node of the value's own. Returns the bytes of
// all, which only matter up to the limit.
size_t Interner::intern_parts(Value& value) {
  const size_t count = value.size() * value.width();
  const auto part_at = [&](size_t i) -> Value& {
    return value.load<Value::ListNode*>()->items()[i];
  };
  size_t bytes = sizeof(Value::ListNode) + count * sizeof(Value);
  for (size_t i = 0; i < count; ++i) {
    if (!part_at(i).counted()) continue;
    if (value.load<Value::Node*>()->refs.load(std::memory_order_acquire) == 1) {
      bytes += intern_part(part_at(i));
      continue;
    }
    Value part = part_at(i);
    bytes += intern_part(part);
    if (!part.same_bits(part_at(i))) value.own(value.tag(), 0).items()[i] = std::move(part);
  }
  return bytes;
}

size_t Interner::intern_part(Value& value) {
  if (value.tag() == Value::Tag::kHeap) {
    auto* text = value.load<Value::Node*>();
    const size_t size = text->size;
    const bool immortal = text->refs.load(std::memory_order_relaxed) == Value::kImmortal;
    if (!immortal && size <= kBytesMax) replace(value, hash_of(value));
    return size;
  }
  if (const size_t known = value.load<Value::ListNode*>()->common.load(std::memory_order_relaxed)) {
    return known;
  }
  const size_t bytes = intern_parts(value);
  if (bytes > kBytesMax) return bytes;
  replace(value, hash_of(value));
  value.load<Value::ListNode*>()->common.store(static_cast<uint16_t>(bytes),
                                               std::memory_order_relaxed);
  return bytes;
}

void Interner::replace(Value& value, uint64_t hash) {
  Value& slot = slots_[hash % slots_.size()];
  if (is_same(slot, value)) {
    value = slot;
  } else {
    slot = value;
  }
}

// Of a list whose parts are interned: equal parts have the same bits.
uint64_t Interner::hash_of(const Value& value) {
  if (value.tag() == Value::Tag::kHeap) return std::hash<std::string_view>()(value.as_string());
  auto* node = value.load<Value::ListNode*>();
  uint64_t hash = static_cast<uint64_t>(value.tag());
  for (size_t i = 0; i < node->size * value.width(); ++i) {
    uint64_t words[2];
    std::memcpy(words, node->items()[i].raw_, sizeof words);
    hash = mix(mix(hash, words[0]), words[1]);
  }
  return hash;
}

bool Interner::is_same(const Value& a, const Value& b) {
  if (a.tag() != b.tag()) return false;
  if (a.tag() == Value::Tag::kHeap) return a.as_string() == b.as_string();
  if (a.size() != b.size()) return false;
  return std::memcmp(static_cast<const void*>(a.load<Value::ListNode*>()->items()),
                     b.load<Value::ListNode*>()->items(),
                     a.size() * a.width() * sizeof(Value)) == 0;
}

}  // namespace tessera::json
