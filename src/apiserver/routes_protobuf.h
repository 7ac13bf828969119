// Reading the protobuf bodies that client-go's typed clients send (kubectl create configmap, ...).
//
// Shape:   a body is the four bytes "k8s\0" and a runtime.Unknown: 1 typeMeta {1 apiVersion, 2 kind},
//          2 raw. The raw message is read by the table of field numbers in data/protobuf.fields, one
//          message a line:
//            TYPE NUMBER:NAME:CODE ...
//          CODE is s string, b bytes, t bool, i integer, d double, q Quantity, o IntOrString, T Time,
//          U MicroTime, r raw JSON, D Duration, @TYPE a message; before it * for a list, % for a map
//          from strings; after it ? where a zero value says something (elsewhere it is dropped, as
//          Go's omitempty does). Without NAME the message's fields belong to the one that holds it.
//          The answer is the object as JSON would have said it.
// Errors:  kBadRequest for anything that is not such a message, with the byte; kUnsupportedMediaType
//          for a kind that the table lacks.
// Threads: pure.
// Source:  k8s.io/apimachinery/pkg/runtime/serializer/protobuf; struct tags of k8s.io/api v0.36;
//          protobuf encoding.
#pragma once

#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

extern const std::string_view kProtobufFields;

base::Result<json::Value> decode_protobuf(std::string_view body);

}  // namespace tessera::apiserver
