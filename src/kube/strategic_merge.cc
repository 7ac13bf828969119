#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kube/go_text.h"
#include "kube/schema.h"
#include "kube/strategic_lists.h"

// The rules are those of k8s.io/apimachinery/pkg/util/strategicpatch (v0.36.3), applied to a
// document:
//
// - $patch: replace, delete or merge: in an object, instead of merging; in a list element, about
//   that element.
// - $retainKeys: [a, b]: members of the target that are not named go.
// - $setElementOrder/f: [...]: the order of list f after merging.
// - $deleteFromPrimitiveList/f: [...]: scalars taken out of list f.
// - null deletes the member.
//
// Elements that are new to a list lose their directives and nulls here, where Kubernetes' library
// leaves them in and the server then trips over them ($patch: delete inside a new element adds it;
// null in its limits reads as "0").
//
// Lists without a merge rule are replaced. Elements new to a merged list stand where the patch has
// them, which is before those that only the target has unless an order is given.

namespace tessera::kube {
namespace {

using base::Code;
using base::Result;
using base::Status;
using json::Member;
using json::Value;

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kSetOrder = "$setElementOrder/";
constexpr std::string_view kDeleteFrom = "$deleteFromPrimitiveList/";

bool is_directive(std::string_view key) {
  return key == kPatch || key == kRetainKeys || key.starts_with(kSetOrder) ||
         key.starts_with(kDeleteFrom);
}

tl::unexpected<base::Error> bad_directive(const Value& element) {
  return base::error(Code::kInternal, "unknown patch type: {} in map: {}", go_text(element[kPatch]),
                     go_text(element));
}

tl::unexpected<base::Error> no_list(const Value& found) {
  return base::error(Code::kInternal, "expected a []interface {{}}, but received a {}",
                     go_type(found));
}

// A patch value that stands where the target has nothing: directives and nulls go.
Result<Value> without_directives(const Value& patch);

Result<Value> list_without_directives(const Value& patch) {
  Value out = Value::array();
  for (const Value& item : patch.items()) {
    if (item.is_object() && item.contains(kPatch)) {
      const std::string_view directive = item[kPatch].as_string();
      if (directive == "delete" || directive == "replace") continue;
      if (directive != "merge") {
        return bad_directive(item);
      }
    }
    TS_TRY(Value clean, without_directives(item));
    out.push_back(std::move(clean));
  }
  return out;
}

Result<Value> without_directives(const Value& patch) {
  if (patch.is_array()) return list_without_directives(patch);
  if (!patch.is_object()) return patch;
  Value out = Value::object();
  if (patch[kPatch].as_string() == "delete") return out;
  for (const Member& member : patch.members()) {
    if (is_directive(member.name()) || member.value.is_null()) continue;
    TS_TRY(Value clean, without_directives(member.value));
    out.set(member.name(), std::move(clean));
  }
  return out;
}

// How a member is merged: the field's rules, or none for members of maps and raw JSON.
struct Rule {
  const SchemaField* field = nullptr;
  const SchemaType* element() const {
    return field != nullptr && field->object != nullptr && !field->object->scalar ? field->object
                                                                                  : nullptr;
  }
  bool merges() const { return field != nullptr && field->patch_merge; }
  std::string_view key() const { return field != nullptr ? field->patch_merge_key : ""; }
};

class Merger {
 public:
  // `type` is null for maps and raw JSON: their members merge as plain objects. A field that is a
  // map of structs passes its element type as `values`.
  Result<Value> object(const SchemaType* type, const SchemaType* values, const Value& target,
                       const Value& patch) {
    if (const Value* directive = patch.find(kPatch)) {
      if (*directive == Value("replace")) return replaced(patch);
      if (*directive == Value("delete")) return Value::object();
      if (!(*directive == Value("merge"))) {
        return bad_directive(patch);
      }
    }
    Value out = target;
    TS_TRY_STATUS(retain_keys(patch, out));
    std::vector<std::string_view> done;
    TS_TRY_STATUS(ordered_lists(type, patch, out, done));
    for (const Member& member : patch.members()) {
      const std::string_view key = member.name();
      if (key == kPatch || key == kRetainKeys || key.starts_with(kSetOrder)) continue;
      if (std::find(done.begin(), done.end(), key) != done.end()) continue;
      if (key.starts_with(kDeleteFrom)) {
        TS_TRY_STATUS(delete_scalars(key.substr(kDeleteFrom.size()), member.value, out));
        continue;
      }
      TS_TRY_STATUS(merge_member(rule_of(type, key), values, member, out));
    }
    return out;
  }

 private:
  static Rule rule_of(const SchemaType* type, std::string_view key) {
    return {type != nullptr && !type->scalar ? type->field(key) : nullptr};
  }

  static Result<Value> replaced(const Value& patch) {
    Value out = patch;
    out.erase(kPatch);
    return without_directives(out);
  }

  Status merge_member(const Rule& rule, const SchemaType* values, const Member& member,
                      Value& out) {
    const std::string_view key = member.name();
    const Value& change = member.value;
    if (change.is_null()) {
      out.erase(key);
      return {};
    }
    const Value before = out[key];
    if (before.is_object() && change.is_object()) {
      const bool is_map = rule.field != nullptr && rule.field->map;
      const SchemaType* inner = rule.field != nullptr ? rule.element() : values;
      TS_TRY(Value merged,
             object(is_map ? nullptr : inner, is_map ? inner : nullptr, before, change));
      out.set(key, std::move(merged));
      return {};
    }
    if (before.is_array() && change.is_array() && rule.merges()) {
      TS_TRY(Value merged, list(rule, before, change));
      out.set(key, std::move(merged));
      return {};
    }
    TS_TRY(Value clean, without_directives(change));
    out.set(key, std::move(clean));
    return {};
  }

  Status retain_keys(const Value& patch, Value& out) {
    const Value* keys = patch.find(kRetainKeys);
    if (keys == nullptr) return {};
    if (!keys->is_array()) {
      return base::error(Code::kBadRequest, "invalid patch format of retainKeys");
    }
    const auto named = [&](std::string_view key) {
      const auto items = keys->items();
      return std::any_of(items.begin(), items.end(),
                         [&](const Value& k) { return k.is_string() && k.as_string() == key; });
    };
    for (const Member& member : patch.members()) {
      if (is_directive(member.name()) || member.value.is_null() || named(member.name())) continue;
      return base::error(Code::kBadRequest, "invalid patch format of retainKeys");
    }
    const Value before = out;
    for (const Member& member : before.members()) {
      if (!named(member.name())) out.erase(member.name());
    }
    return {};
  }

  // Lists that come with an order are merged together with it; `done` names them.
  Status ordered_lists(const SchemaType* type, const Value& patch, Value& out,
                       std::vector<std::string_view>& done) {
    for (const Member& member : patch.members()) {
      if (!member.name().starts_with(kSetOrder)) continue;
      const std::string_view key = member.name().substr(kSetOrder.size());
      if (!member.value.is_array()) return no_list(member.value);
      const Rule rule = rule_of(type, key);
      const Value before = out[key];
      const Value change = patch[key];
      if ((!before.is_null() && !before.is_array()) || (!change.is_null() && !change.is_array())) {
        return no_list(change.is_null() || change.is_array() ? before : change);
      }
      if (before.is_null() && change.is_null()) continue;
      TS_TRY_STATUS(strategic::check_order(change, member.value, rule.key()));
      TS_TRY(Value merged, merged_list(rule, before, change));
      const Value server = strategic::server_order(before, change, rule.key());
      TS_TRY(Value sorted, strategic::in_order(merged, member.value, server, rule.key()));
      out.set(key, std::move(sorted));
      done.push_back(key);
    }
    return {};
  }

  Result<Value> merged_list(const Rule& rule, const Value& before, const Value& change) {
    if (change.is_null()) return before;
    if (before.is_null() || !rule.merges()) return without_directives(change);
    return list(rule, before, change);
  }

  Result<Value> list(const Rule& rule, const Value& before, const Value& change) {
    if (before.empty() && change.empty()) return before;
    TS_TRY(const bool maps, strategic::elements_are_objects(before, change));
    Value merged = before;
    if (maps) {
      if (rule.key().empty()) {
        return base::error(Code::kInternal, "cannot merge lists without merge key for {}",
                           rule.field->name);
      }
      TS_TRY(const Value changes, special_elements(rule.key(), change, merged));
      const Value base = merged;
      TS_TRY_STATUS(merge_elements(rule, changes, merged));
      return strategic::in_order(merged, changes, base, rule.key());
    }
    strategic::add_missing(change, merged);
    return strategic::in_order(merged, change, before, {});
  }

  // Carries out $patch elements on `merged`; answers the others.
  Result<Value> special_elements(std::string_view key, const Value& change, Value& merged) {
    Value rest = Value::array();
    bool replace = false;
    for (const Value& item : change.items()) {
      const Value* directive = item.find(kPatch);
      if (directive == nullptr) {
        rest.push_back(item);
      } else if (*directive == Value("replace")) {
        replace = true;
      } else if (*directive == Value("delete")) {
        if (!item.contains(key)) return strategic::no_merge_key(item, key);
        strategic::erase_matching(merged, key, item[key]);
      } else {
        return bad_directive(item);
      }
    }
    if (!replace) return rest;
    TS_TRY(merged, without_directives(rest));
    return Value::array();
  }

  Status merge_elements(const Rule& rule, const Value& changes, Value& merged) {
    strategic::Index index(merged, rule.key());
    for (const Value& item : changes.items()) {
      if (!item.contains(rule.key())) return strategic::no_merge_key(item, rule.key());
      const int64_t at = index.find(item[rule.key()]);
      if (at < 0) {
        TS_TRY(Value clean, without_directives(item));
        index.add(item[rule.key()]);
        merged.push_back(std::move(clean));
        continue;
      }
      const Value before = merged.at(static_cast<size_t>(at));
      TS_TRY(Value after, object(rule.element(), nullptr, before, item));
      merged.ref_at(static_cast<size_t>(at)) = std::move(after);
    }
    return {};
  }

  Status delete_scalars(std::string_view key, const Value& gone, Value& out) {
    const Value before = out[key];
    if (!before.is_array()) return {};
    if (!gone.is_array()) {
      return base::error(Code::kBadRequest, "invalid patch format of primitive list");
    }
    out.set(key, strategic::without(before, gone));
    return {};
  }
};

}  // namespace

Result<Value> apply_strategic_merge(const SchemaType& type, const Value& target,
                                    const Value& patch) {
  if (!patch.is_object()) {
    return base::error(Code::kBadRequest, "a strategic merge patch must be an object");
  }
  return Merger().object(&type, nullptr, target.is_object() ? target : Value::object(), patch);
}

}  // namespace tessera::kube
