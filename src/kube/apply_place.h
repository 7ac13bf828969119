// Where in a type a value stands, and how server-side apply treats it there.
//
// Shape:   a small value made from the type of a kind; child() and element() go down. A list is atomic, a set, or a map
//          by keys; a map or struct is granular or atomic; raw JSON is taken as it comes (its lists are atomic).
// Errors:  element_key says why an element of a list has no key.
// Threads: plain values; the types live as long as the program or longer than the place.
// Source:  k8s.io/kube-openapi/pkg/schemaconv, sigs.k8s.io/structured-merge-diff/v6/schema and typed/helpers.go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/schema.h"

namespace tessera::kube {

class ApplyPlace {
 public:
  // How a value is walked. For raw JSON it depends on the value, otherwise on the type alone.
  enum class Atom : uint8_t { kNone, kMap, kList, kScalar };

  ApplyPlace() = default;  // nothing is known here
  explicit ApplyPlace(const SchemaType& type);

  // The atom that stands here: by its type, or by `value` for raw JSON (where null may be any, walked as a map).
  Atom atom(const json::Value* value) const;
  // Whether raw JSON of these two is walked alike.
  bool same_atom(const json::Value& a, const json::Value& b) const;
  bool atomic(Atom atom) const;
  bool raw() const { return form_ == Form::kRaw || form_ == Form::kRawAtomic; }
  bool granular_raw() const { return form_ == Form::kRaw; }
  bool known() const { return form_ != Form::kNone; }

  // The place of a member of a map or struct; not known() for a field that the struct lacks.
  ApplyPlace child(std::string_view name) const;
  // Whether `name` is a field of the struct here.
  bool declares(std::string_view name) const;
  ApplyPlace element() const;
  // The key of an element of a list that is a map or a set: k:{...} or v:...
  base::Result<std::string> element_key(const json::Value& element) const;

  // False where two elements have keys that differ for sure.
  bool same_key(const json::Value& a, const json::Value& b) const;

  // What is wrong with the type of a value here; empty: nothing. Not about what is inside.
  std::string type_problem(const json::Value& value) const;
  const SchemaType* struct_type() const { return form_ == Form::kStruct ? type_ : nullptr; }

 private:
  enum class Form : uint8_t { kNone, kStruct, kMap, kList, kScalar, kRaw, kRawAtomic };
  explicit ApplyPlace(const SchemaField& field);
  static ApplyPlace base_of(const SchemaField& field);
  static ApplyPlace raw_json();
  base::Result<std::string> map_key(const json::Value& element) const;

  Form form_ = Form::kNone;
  bool atomic_ = false;
  FieldType scalar_ = FieldType::kAny;
  const SchemaType* type_ = nullptr;    // of a struct
  const SchemaField* field_ = nullptr;  // of a list or map
};

// An object of the type as a server has it before anything is written into it: the structs that are always there, and
// null for lists that are never left out. What is not in it counts as added by the first writer.
json::Value empty_object(const SchemaType& type);

}  // namespace tessera::kube
