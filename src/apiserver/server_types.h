// Specs as Kubernetes' own server prints them in messages: by the names and in the order of its internal types.
//
// Shape:   data/server.types holds one type a line, TYPE FIELD..., a field as SHOWN:PATH:CODE. PATH says where the public
//          object has it: "a.b" below, "^a" in the object above; empty: nowhere. Codes: s text, b bool, i number, q
//          quantity, # as it is sent, % a map, @TYPE; before these * for what may be null and [ for a list. A ? at the end
//          leaves out what is not there.
// Threads: any.
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core; tests/tools/kubernetes/server_types writes the file. Unified diffs with
//          three lines about each change, as its apimachinery prints them.
// Does not show: metadata of templates beyond labels and annotations.
#pragma once

#include <string>
#include <string_view>

#include "json/value.h"

namespace tessera::apiserver {

// One line of JSON. `type` is one of data/server.types.
std::string server_text(std::string_view type, const json::Value& object);
// What is different, line by line; empty where nothing is.
std::string server_diff(std::string_view type, const json::Value& before, const json::Value& after);
// A unified diff of two texts whose lines all end.
std::string unified_diff(std::string_view before, std::string_view after);

// The text of data/server.types.
extern const std::string_view kServerTypes;

}  // namespace tessera::apiserver
