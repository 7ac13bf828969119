// Small steps on JSON objects that defaults and preparations are made of.
#pragma once

#include <string_view>
#include <utility>

#include "json/value.h"

namespace tessera::apiserver {

inline void set_missing(json::Value& object, std::string_view key, json::Value value) {
  if (!object.contains(key)) object.set(key, std::move(value));
}

// Runs f on each element of the list `key`; nothing is touched where it is empty.
template <class F>
void each_of(json::Value& object, std::string_view key, F f) {
  const size_t count = object[key].is_array() ? object[key].size() : 0;
  for (size_t i = 0; i < count; ++i) f(object.ref(key).ref_at(i));
}

// Runs f on the member `key` where it is an object.
template <class F>
void inside(json::Value& object, std::string_view key, F f) {
  if (object[key].is_object()) f(object.ref(key));
}

// What prepare_create and prepare_update of most kinds with a status do.
inline void reset_status(json::Value& object) {
  object.set("status", json::Value::object());
}
inline void keep_status(json::Value& object, const json::Value& before) {
  if (const json::Value* status = before.find("status")) {
    object.set("status", *status);
  } else {
    object.erase("status");
  }
}

}  // namespace tessera::apiserver
