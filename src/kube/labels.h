// Label and field selectors, in their text form (query parameters) and as LabelSelector objects.
//
// Shape:   a selector is the AND of its requirements; without any it selects everything.
// Errors:  kBadRequest in Kubernetes' words for text; kInvalid with causes for LabelSelector
//          objects.
// Threads: plain values.
// Source:  k8s.io/apimachinery v0.36.3 pkg/labels, pkg/fields, pkg/apis/meta/v1
//          (LabelSelectorAsSelector).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace tessera::kube {

using StringMap = std::map<std::string, std::string, std::less<>>;

enum class SelectorOp : uint8_t {
  kEquals,     // a=b, a==b
  kNotEquals,  // a!=b; also selects what lacks the key
  kIn,
  kNotIn,  // also selects what lacks the key
  kExists,
  kDoesNotExist,
  kGreaterThan,  // a>5: both sides whole numbers
  kLessThan,
};

struct Requirement {
  std::string key;
  SelectorOp op = SelectorOp::kExists;
  std::vector<std::string> values;  // sorted, none twice
  // `value` is the label's, or nothing where the key is missing.
  bool matches(std::optional<std::string_view> value) const;
  bool operator==(const Requirement&) const = default;
};

class LabelSelector {
 public:
  // Selects everything.
  LabelSelector() = default;
  explicit LabelSelector(std::vector<Requirement> requirements);
  static LabelSelector nothing();

  // "app=web,tier in (a,b),!canary,x!=y,n>5"; empty text selects everything.
  static base::Result<LabelSelector> parse(std::string_view text);
  // A metav1.LabelSelector: null selects nothing, {} everything. `path` is named in errors
  // ("spec.selector").
  static base::Result<LabelSelector> from_json(const json::Value& selector, std::string_view path);

  bool matches(const StringMap& labels) const;
  // The labels member of an object's metadata.
  bool matches(const json::Value& labels) const;
  bool selects_nothing() const { return nothing_; }
  bool selects_everything() const { return !nothing_ && requirements_.empty(); }
  const std::vector<Requirement>& requirements() const { return requirements_; }
  std::string to_string() const;
  bool operator==(const LabelSelector&) const = default;

 private:
  bool nothing_ = false;
  std::vector<Requirement> requirements_;  // sorted by key
};

struct FieldRequirement {
  std::string field;
  bool equal = true;
  std::string value;
  bool operator==(const FieldRequirement&) const = default;
};

class FieldSelector {
 public:
  FieldSelector() = default;
  // "spec.nodeName=n1,status.phase!=Running"; a backslash escapes ',', '=' and itself in values.
  static base::Result<FieldSelector> parse(std::string_view text);

  // `field_of` answers the value of a field by its path; kinds say which paths they have.
  bool matches(const std::function<std::string_view(std::string_view field)>& field_of) const;
  bool selects_everything() const { return requirements_.empty(); }
  const std::vector<FieldRequirement>& requirements() const { return requirements_; }
  // The value that the field must have, when the selector says so.
  std::optional<std::string_view> exact(std::string_view field) const;
  std::string to_string() const;

 private:
  std::vector<FieldRequirement> requirements_;
};

}  // namespace tessera::kube
