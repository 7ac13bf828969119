// Which objects of a kind a list, a watch or a delete of a collection means.
//
// Errors:  kBadRequest in Kubernetes' words for selectors that do not parse or fields that the kind cannot select by.
// Threads: plain values; matches() is pure.
// Source:  Kubernetes API concepts (label and field selectors).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/kind.h"
#include "base/result.h"
#include "kube/client.h"
#include "kube/labels.h"

namespace tessera::apiserver {

// The value of a selectable field ("spec.nodeName") as text; empty for null.
std::string field_text(const Kind& kind, const json::Value& object, std::string_view field);

class Selection {
 public:
  static base::Result<Selection> parse(const Kind& kind, const kube::Request& request);

  // Null matches nothing.
  bool matches(const json::Value& object) const;
  bool matches_all() const {
    return name_.empty() && labels_.selects_everything() && fields_.selects_everything();
  }
  const std::string& ns() const { return ns_; }
  // The prefix of store keys that can match.
  std::string prefix() const;
  // The name when only one is asked for.
  const std::string& name() const { return name_; }
  // What a selectable field must be, when the selector says so.
  std::optional<std::string_view> exact(std::string_view field) const {
    return fields_.exact(field);
  }

 private:
  const Kind* kind_ = nullptr;
  std::string ns_;
  std::string name_;
  kube::LabelSelector labels_;
  kube::FieldSelector fields_;
};

}  // namespace tessera::apiserver
