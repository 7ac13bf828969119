#include "kube/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "json/parse.h"

namespace tessera::kube {

using base::Code;
using base::Result;
using json::Value;

namespace {

constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr size_t kAnnotationBytesMax = size_t{256} << 10;
constexpr std::string_view kBeforeFirst = "before-first-apply";

std::string kind_text(std::string_view api_version, std::string_view kind) {
  const size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return fmt::format("/{}, Kind={}", api_version, kind);
  return fmt::format("{}, Kind={}", api_version, kind);
}

base::Status check_request(const OwnershipRules& rules, const Value& applied) {
  if (!applied.is_object()) {
    return base::error(Code::kBadRequest, "the applied configuration must be an object");
  }
  const std::string_view api_version = applied["apiVersion"].as_string();
  const std::string_view kind = applied["kind"].as_string();
  if (api_version != rules.api_version || kind != rules.kind) {
    return base::error(Code::kBadRequest, "invalid object type: {}", kind_text(api_version, kind));
  }
  if (!applied["metadata"]["managedFields"].is_null()) {
    return base::error(Code::kBadRequest, "metadata.managedFields must be nil");
  }
  const auto typed = check_typed(ApplyPlace(*rules.type), applied, false);
  if (typed) return {};
  return base::error(typed.error().code, "failed to create typed patch object ({}/{}; {}): {}",
                     applied["metadata"]["namespace"].as_string(),
                     applied["metadata"]["name"].as_string(), kind_text(api_version, kind),
                     typed.error().message);
}

// One field that somebody else owns.
struct Conflict {
  const FieldOwner* owner;
  FieldPath path;
};

std::string shown(const FieldOwner& owner) {
  std::string out = Value(owner.manager).dump();
  if (!owner.subresource.empty()) {
    out += " with subresource " + Value(owner.subresource).dump();
  }
  if (!owner.applied) out += " using " + owner.api_version;
  return out;
}

base::Error conflict_error(const std::vector<Conflict>& conflicts) {
  base::Error error;
  error.code = Code::kConflict;
  for (const Conflict& each : conflicts) {
    error.causes.push_back(
        {"FieldManagerConflict", "conflict with " + shown(*each.owner), to_string(each.path)});
  }
  if (conflicts.size() == 1) {
    error.message = fmt::format("Apply failed with 1 conflict: conflict with {}: {}",
                                shown(*conflicts[0].owner), to_string(conflicts[0].path));
    return error;
  }
  error.message = fmt::format("Apply failed with {} conflicts: ", conflicts.size());
  const FieldOwner* last = nullptr;
  for (const Conflict& each : conflicts) {
    if (each.owner != last) {
      error.message +=
          fmt::format("{}conflicts with {}:", last == nullptr ? "" : "\n", shown(*each.owner));
      last = each.owner;
    }
    error.message += "\n- " + to_string(each.path);
  }
  return error;
}

// By manager, then in the order of the fields.
std::vector<Conflict> conflicts_with(const FieldOwners& owners, const FieldChanges& changes,
                                     const FieldOwner& self) {
  std::vector<const FieldOwner*> others;
  for (const FieldOwner& owner : owners.all()) {
    if (!owner.is_same(self)) others.push_back(&owner);
  }
  std::sort(others.begin(), others.end(),
            [](const FieldOwner* a, const FieldOwner* b) { return a->id() < b->id(); });
  const FieldSet written = changes.modified.united_with(changes.added);
  std::vector<Conflict> out;
  for (const FieldOwner* owner : others) {
    owner->set.intersected_with(written).each(
        [&](const FieldPath& path) { out.push_back({owner, path}); });
  }
  return out;
}

// What the client-side apply annotation says and still is so: kubectl may take it over.
Result<FieldSet> allowed_by_annotation(const OwnershipRules& rules, const Value& live) {
  const Value& text = live["metadata"]["annotations"][kLastApplied];
  std::vector<std::string> duplicates;
  json::ParseOptions options;
  options.duplicates = &duplicates;
  TS_TRY(const Value last, json::parse(text.as_string(), options));
  if (last["apiVersion"].as_string() != rules.api_version) {
    return base::error(Code::kBadRequest, "the last applied configuration is of another version");
  }
  const ApplyPlace place(*rules.type);
  TS_TRY_STATUS(check_typed(place, last, false));
  TS_TRY(const FieldSet fields, fields_of(place, last));
  TS_TRY(const FieldChanges changes, compare(place, last, live));
  return fields.without(changes.modified).without(changes.added).without(changes.removed);
}

// Takes from `merged` what the manager applied last and does not apply now, unless somebody owns it.
Result<Value> pruned(const ApplyPlace& place, const Value& merged, const FieldOwners& owners,
                     const FieldSet& last) {
  if (last.empty()) return merged;
  const FieldSet last_named = with_named_fields(place, last);
  Value out = without_fields(place, merged, last_named);
  TS_TRY(const FieldSet merged_fields, fields_of(place, merged));
  const FieldSet all = with_named_fields(place, merged_fields);
  FieldSet owned;
  for (const FieldOwner& owner : owners.all()) owned = owned.united_with(owner.set);
  // Back comes what somebody owns, ...
  TS_TRY(FieldSet left, fields_of(place, out));
  const FieldSet kept = with_named_fields(place, left).united_with(with_named_fields(place, owned));
  out = without_fields(place, merged, all.without(kept));
  // ... and what went with its parent though the manager never applied it.
  TS_TRY(left, fields_of(place, out));
  const FieldSet gone = all.without(with_named_fields(place, left)).intersected_with(last_named);
  return without_fields(place, merged, gone);
}

struct Applied {
  Value object;  // without managedFields
  bool changed = false;
  FieldOwners owners;
};

class Application {
 public:
  Application(const OwnershipRules& rules, const Value& live, const Value& applied,
              const FieldWriter& writer)
      : rules_(rules), place_(*rules.type), live_(live), applied_(applied), writer_(writer) {
    self_.manager = writer.manager.empty() ? "unknown" : std::string(writer.manager);
    self_.api_version = rules.api_version;
    self_.subresource = writer.subresource;
    self_.applied = true;
  }

  Result<Applied> run(FieldOwners owners, bool force) {
    ownership::reconcile(rules_, owners);
    TS_TRY(const Value merged, merge_applied(place_, live_, applied_));
    FieldSet last;
    if (const FieldOwner* previous = owners.find(self_)) {
      last = previous->set;
      self_.time = previous->time;
    }
    TS_TRY(FieldSet set, fields_of(place_, applied_));
    if (rules_.reset != nullptr) set = set.without_trees(*rules_.reset);
    // Stripped only at the end: on its way the set also keeps what must not be pruned.
    self_.set = std::move(set);
    owners.put(self_);
    TS_TRY(Applied out, finish(merged, last, std::move(owners), force));
    return out;
  }

 private:
  Result<Applied> finish(const Value& merged, const FieldSet& last, FieldOwners owners,
                         bool force) {
    Applied out;
    TS_TRY(out.object, pruned(place_, merged, owners, last));
    TS_TRY(const FieldChanges changes, ownership::changes(rules_, live_, out.object));
    if (!force) {
      const auto conflicts = conflicts_with(owners, changes, self_);
      if (!conflicts.empty()) TS_TRY_STATUS(let_kubectl(conflicts));
    }
    ownership::take_from_others(owners, changes, self_);
    out.changed = !(out.object == live_);
    if (FieldOwner* self = owners.find(self_)) {
      owners.set_fields(*self, self->set.without(ownership::never_owned()));
      self->entry = Value();
      if (out.changed) self->time = ownership::time_text(writer_.now);
    }
    owners.drop_empty();
    out.owners = std::move(owners);
    return out;
  }

  // kubectl may take back what it applied from the client's side; other conflicts are answered.
  base::Status let_kubectl(const std::vector<Conflict>& conflicts) {
    if (writer_.manager != "kubectl") return base::error(conflict_error(conflicts));
    const auto allowed = allowed_by_annotation(rules_, live_);
    if (!allowed) return base::error(conflict_error(conflicts));
    std::vector<Conflict> left;
    for (const Conflict& each : conflicts) {
      if (!allowed->has(each.path)) left.push_back(each);
    }
    if (left.empty()) return {};
    return base::error(conflict_error(left));
  }

  const OwnershipRules& rules_;
  const ApplyPlace place_;
  const Value& live_;
  const Value& applied_;
  const FieldWriter& writer_;
  FieldOwner self_;
};

void refresh_annotation(const Value& applied, Value& object) {
  if (object["metadata"]["annotations"][kLastApplied].as_string().empty()) return;
  Value config = applied;
  if (config["metadata"]["annotations"].contains(kLastApplied)) {
    config.ref("metadata", "annotations").erase(kLastApplied);
  }
  Value& annotations = object.ref("metadata", "annotations");
  annotations.set(kLastApplied, go_json(config) + "\n");
  size_t bytes = 0;
  for (const json::Member& member : annotations.members()) {
    bytes += member.name().size() + member.value.as_string().size();
  }
  if (bytes > kAnnotationBytesMax) annotations.erase(kLastApplied);
}

// What an object is before anything is applied to it.
Value fresh_object(const OwnershipRules& rules) {
  Value object = rules.custom ? Value::object() : empty_object(*rules.type);
  object.set("apiVersion", rules.api_version);
  object.set("kind", rules.kind);
  return object;
}

}  // namespace

Result<Value> apply(const OwnershipRules& rules, const Value& live, const Value& applied,
                    const FieldWriter& writer, bool force) {
  TS_TRY_STATUS(check_request(rules, applied));
  Value before = live.is_null() ? fresh_object(rules) : live;
  auto owners = FieldOwners::read(before["metadata"]["managedFields"], false);
  if (!owners) return base::error(owners.error().in("failed to decode managed fields"));
  if (before["metadata"].contains("managedFields")) {
    before.ref("metadata").erase("managedFields");
  }
  if (owners->empty() && !live.is_null()) {
    FieldWriter first = writer;
    first.manager = kBeforeFirst;
    TS_TRY_STATUS(ownership::update(rules, Value(), before, first, *owners));
    ownership::cap_updaters(*owners);
  }
  Application application(rules, before, applied, writer);
  TS_TRY(Applied out, application.run(std::move(*owners), force));
  Value list = out.owners.encode();
  if (list.is_null()) {
    out.object.ref("metadata").erase("managedFields");
  } else {
    out.object.ref("metadata", "managedFields") = std::move(list);
  }
  if (writer.manager == "kubectl") refresh_annotation(applied, out.object);
  return std::move(out.object);
}

}  // namespace tessera::kube
