#include "kube/managed_fields.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

namespace tessera::kube {

using base::Code;
using base::Result;
using json::Member;
using json::Value;

namespace {

constexpr size_t kUpdatersMax = 10;
constexpr size_t kManagerBytesMax = 128;
constexpr std::string_view kAncient = "ancient-changes";

int64_t seconds_of(const Value& time) {
  if (!time.is_string()) return 0;
  const auto parsed = base::parse_rfc3339(time.as_string());
  return parsed ? parsed->ns / 1'000'000'000 : 0;
}

bool gives_up(const Value* list) {
  if (list == nullptr || !list->is_array()) return false;
  return list->empty() || (list->size() == 1 && list->at(0).is_object() && list->at(0).empty());
}

Result<FieldOwner> read_entry(const Value& entry, size_t place, bool trusted) {
  FieldOwner owner;
  const std::string_view operation = entry["operation"].as_string();
  if (operation != "Apply" && operation != "Update") {
    return base::error(Code::kBadRequest, "operation must be `Apply` or `Update`");
  }
  owner.applied = operation == "Apply";
  owner.manager = entry["manager"].str();
  owner.api_version = entry["apiVersion"].str();
  owner.subresource = entry["subresource"].str();
  if (owner.api_version.empty()) {
    return base::error(Code::kBadRequest, "apiVersion must not be empty");
  }
  const std::string_view type = entry["fieldsType"].as_string();
  if (type.empty()) {
    return base::error(Code::kBadRequest, "missing fieldsType in managed fields entry {}", place);
  }
  if (type != "FieldsV1") {
    return base::error(Code::kBadRequest, "invalid fieldsType \"{}\" in managed fields entry {}",
                       type, place);
  }
  owner.time = entry["time"];
  const Value& fields = entry["fieldsV1"];
  if (trusted) {
    if (!fields.empty()) owner.set = FieldSet::of_node(fields);
  } else {
    TS_TRY(owner.set, FieldSet::from_fields_v1(fields));
  }
  if (owner.set.node().same_node(fields)) owner.entry = entry;
  return owner;
}

// Objects of one template have the same sets: the last ones that were made stand in for their equals, so that a thousand
// pods keep one copy.
class SetCache {
 public:
  Value shared(const Value& node) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || !node.is_object()) return node;
    Value& slot = slots_[hash(node) % slots_.size()];
    if (!(slot == node)) slot = node;
    return slot;
  }

 private:
  static size_t hash(const Value& node) {
    size_t out = node.size();
    for (const Member& member : node.members()) {
      out = out * 1'000'003 + std::hash<std::string_view>()(member.name());
      if (!member.value.empty()) out = out * 31 + hash(member.value);
    }
    return out;
  }
  std::mutex mutex_;
  std::array<Value, 512> slots_;
};

Value shared_set(const Value& node) {
  static SetCache* const kCache = new SetCache;
  return kCache->shared(node);
}

Value encode_entry(const FieldOwner& owner) {
  if (owner.entry.is_object()) return owner.entry;
  Value entry = Value::object({{"operation", owner.applied ? "Apply" : "Update"},
                               {"apiVersion", owner.api_version},
                               {"fieldsType", "FieldsV1"},
                               {"fieldsV1", shared_set(owner.set.to_fields_v1())}});
  if (!owner.manager.empty()) entry.set("manager", owner.manager);
  if (!owner.subresource.empty()) entry.set("subresource", owner.subresource);
  if (owner.time.is_string()) entry.set("time", owner.time);
  return entry;
}

// Most are "2023-11-14T22:13:20Z", whose order is that of their text.
int compare_times(const Value& a, const Value& b) {
  constexpr size_t kSize = 20;
  const std::string_view x = a.as_string();
  const std::string_view y = b.as_string();
  if (x.size() == kSize && y.size() == kSize && x.back() == 'Z' && y.back() == 'Z') {
    return x.compare(y);
  }
  const int64_t left = seconds_of(a);
  const int64_t right = seconds_of(b);
  return left < right ? -1 : (left > right ? 1 : 0);
}

bool entry_less(const FieldOwner& a, const FieldOwner& b) {
  if (a.applied != b.applied) return a.applied;
  if (const int times = compare_times(a.time, b.time); times != 0) return times < 0;
  if (a.manager != b.manager) return a.manager < b.manager;
  if (a.api_version != b.api_version) return a.api_version < b.api_version;
  return a.subresource < b.subresource;
}

bool equal_but_for(const Value& a, const Value& b, std::initializer_list<std::string_view> names) {
  if (a.same_node(b)) return true;
  const auto left = a.members();
  const auto right = b.members();
  const auto skipped = [&](std::span<const Member> members, size_t at) {
    return at < members.size() &&
           std::find(names.begin(), names.end(), members[at].name()) != names.end();
  };
  for (size_t i = 0, j = 0;; ++i, ++j) {
    while (skipped(left, i)) ++i;
    while (skipped(right, j)) ++j;
    if (i == left.size() || j == right.size()) return i == left.size() && j == right.size();
    if (left[i].name() != right[j].name() || !(left[i].value == right[j].value)) return false;
  }
}

// Entries of the object before were written by us.
FieldOwners owners_before(const Value& before) {
  auto owners = FieldOwners::read(before["metadata"]["managedFields"], true);
  return owners ? std::move(*owners) : FieldOwners();
}

FieldOwners owners_to_start_from(const Value& before, const Value& after,
                                 std::string_view subresource) {
  const Value& kept = before["metadata"]["managedFields"];
  const Value* sent = after["metadata"].find("managedFields");
  if (!subresource.empty() || sent == nullptr || sent->same_node(kept)) {
    return owners_before(before);
  }
  if (gives_up(sent)) return {};
  auto owners = FieldOwners::read(*sent, false);
  return owners && !owners->empty() ? std::move(*owners) : owners_before(before);
}

}  // namespace

std::string FieldOwner::id() const {
  std::string out = "{";
  const auto add = [&out](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    if (out.size() > 1) out += ',';
    out.append("\"").append(name).append("\":").append(go_json(Value(value)));
  };
  add("manager", manager);
  add("operation", applied ? "Apply" : "Update");
  add("apiVersion", applied ? "" : std::string_view(api_version));
  add("subresource", subresource);
  return out + "}";
}

bool FieldOwner::is_same(const FieldOwner& other) const {
  return applied == other.applied && manager == other.manager && subresource == other.subresource &&
         (applied || api_version == other.api_version);
}

Result<FieldOwners> FieldOwners::read(const Value& list, bool trusted) {
  FieldOwners owners;
  if (list.is_null()) return owners;
  if (!list.is_array()) {
    return base::error(Code::kBadRequest, "managedFields must be a list, found {}", list.dump());
  }
  owners.owners_.reserve(list.size() + 1);
  for (size_t i = 0; i < list.size(); ++i) {
    TS_TRY(FieldOwner owner, read_entry(list.at(i), i, trusted));
    owners.put(std::move(owner));
  }
  return owners;
}

Value FieldOwners::encode() const {
  if (owners_.empty()) return {};
  std::vector<const FieldOwner*> sorted;
  sorted.reserve(owners_.size());
  for (const FieldOwner& owner : owners_) sorted.push_back(&owner);
  std::sort(sorted.begin(), sorted.end(),
            [](const FieldOwner* a, const FieldOwner* b) { return entry_less(*a, *b); });
  std::vector<Value> entries;
  entries.reserve(sorted.size());
  for (const FieldOwner* owner : sorted) entries.push_back(encode_entry(*owner));
  return json::array_of(entries);
}

FieldOwner* FieldOwners::find(const FieldOwner& like) {
  for (FieldOwner& owner : owners_) {
    if (owner.is_same(like)) return &owner;
  }
  return nullptr;
}

void FieldOwners::put(FieldOwner owner) {
  if (FieldOwner* same = find(owner)) {
    *same = std::move(owner);
  } else {
    owners_.push_back(std::move(owner));
  }
}

void FieldOwners::drop_empty() {
  std::erase_if(owners_, [](const FieldOwner& owner) { return owner.set.empty(); });
}

void FieldOwners::set_fields(FieldOwner& owner, FieldSet set) {
  if (set.same_node(owner.set)) return;
  owner.set = std::move(set);
  owner.entry = Value();
}

const FieldSet& reset_fields(std::string_view kind, bool has_status, bool custom,
                             std::string_view subresource) {
  static const FieldSet kNothing;
  static const FieldSet kStatus{{"f:status"}};
  static const FieldSet kSpec{{"f:spec"}};
  static const FieldSet kSpecAndMeta{{"f:spec"}, {"f:metadata"}};
  static const FieldSet kSpecAndLabels{{"f:spec"}, {"f:metadata", "f:labels"}};
  static const FieldSet kPod{
      {"f:spec"}, {"f:metadata", "f:deletionTimestamp"}, {"f:metadata", "f:ownerReferences"}};
  constexpr std::string_view kMetaToo[] = {"PodGroup",
                                           "ServiceCIDR",
                                           "StorageVersionMigration",
                                           "ResourceClaim",
                                           "FlowSchema",
                                           "PriorityLevelConfiguration",
                                           "VolumeAttachment",
                                           "ValidatingAdmissionPolicy"};
  if (!has_status) return kNothing;
  if (subresource != "status") return kStatus;
  if (custom) return kSpecAndMeta;
  if (kind == "Pod") return kPod;
  if (kind == "Deployment") return kSpecAndLabels;
  const bool meta = std::find(std::begin(kMetaToo), std::end(kMetaToo), kind) != std::end(kMetaToo);
  return meta ? kSpecAndMeta : kSpec;
}

std::string manager_of_user_agent(std::string_view user_agent) {
  const std::string_view name = user_agent.substr(0, user_agent.find('/'));
  std::string out;
  // Whole printable characters, as Kubernetes takes them.
  for (size_t i = 0; i < name.size();) {
    size_t length = 1;
    const auto lead = static_cast<unsigned char>(name[i]);
    if (lead >= 0xc0) length = lead >= 0xf0 ? 4 : (lead >= 0xe0 ? 3 : 2);
    if (i + length > name.size() || out.size() + length > kManagerBytesMax) break;
    if (lead >= 0x20 && lead != 0x7f) out.append(name.substr(i, length));
    i += length;
  }
  return out;
}

namespace ownership {

const FieldSet& never_owned() {
  static const FieldSet kSet{{"f:apiVersion"},
                             {"f:kind"},
                             {"f:metadata"},
                             {"f:metadata", "f:name"},
                             {"f:metadata", "f:namespace"},
                             {"f:metadata", "f:creationTimestamp"},
                             {"f:metadata", "f:selfLink"},
                             {"f:metadata", "f:uid"},
                             {"f:metadata", "f:clusterName"},
                             {"f:metadata", "f:generation"},
                             {"f:metadata", "f:managedFields"},
                             {"f:metadata", "f:resourceVersion"}};
  return kSet;
}

Value time_text(base::Time time) {
  return base::to_rfc3339(time);
}

Result<FieldChanges> changes(const OwnershipRules& rules, const Value& before, const Value& after) {
  Value start;
  if (before.is_null()) {
    start = rules.custom ? Value::object() : empty_object(*rules.type);
  }
  TS_TRY(FieldChanges changes,
         compare(ApplyPlace(*rules.type), before.is_null() ? start : before, after));
  if (rules.reset != nullptr && !rules.reset->empty()) {
    changes.removed = changes.removed.without_trees(*rules.reset);
    changes.modified = changes.modified.without_trees(*rules.reset);
    changes.added = changes.added.without_trees(*rules.reset);
  }
  return changes;
}

void reconcile(const OwnershipRules& rules, FieldOwners& owners) {
  std::erase_if(owners.all(), [&](const FieldOwner& owner) {
    return owner.api_version != rules.api_version &&
           !(rules.serves && rules.serves(owner.api_version));
  });
  if (!rules.custom) return;
  const ApplyPlace place(*rules.type);
  for (FieldOwner& owner : owners.all()) {
    owners.set_fields(owner, fit_to_type(place, owner.set));
  }
}

void take_from_others(FieldOwners& owners, const FieldChanges& changes, const FieldOwner& writer) {
  for (FieldOwner& owner : owners.all()) {
    if (owner.is_same(writer)) continue;
    FieldSet left = owner.set.without(changes.modified).without(changes.added);
    owners.set_fields(owner, left.without(changes.removed));
  }
  owners.drop_empty();
}

base::Status update(const OwnershipRules& rules, const Value& before, const Value& after,
                    const FieldWriter& writer, FieldOwners& owners) {
  reconcile(rules, owners);
  TS_TRY(const FieldChanges changed, changes(rules, before, after));
  if (changed.none()) return {};
  FieldOwner self;
  self.manager = writer.manager.empty() ? "unknown" : std::string(writer.manager);
  self.api_version = rules.api_version;
  self.subresource = writer.subresource;
  take_from_others(owners, changed, self);
  self.set = changed.modified.united_with(changed.added).without(never_owned());
  self.time = time_text(writer.now);
  FieldOwner* previous = owners.find(self);
  if (previous == nullptr) {
    if (!self.set.empty()) owners.put(std::move(self));
    return {};
  }
  owners.set_fields(*previous, previous->set.without(changed.removed).united_with(self.set));
  if (!self.set.empty() && !(previous->time == self.time)) {
    previous->time = self.time;
    if (previous->entry.is_object()) previous->entry.set("time", self.time);
  }
  owners.drop_empty();
  return {};
}

void cap_updaters(FieldOwners& owners) {
  std::vector<FieldOwner>& all = owners.all();
  const auto updaters =
      std::count_if(all.begin(), all.end(), [](const FieldOwner& o) { return !o.applied; });
  if (updaters <= static_cast<ptrdiff_t>(kUpdatersMax)) return;
  std::vector<FieldOwner> oldest;
  for (const FieldOwner& owner : all) {
    if (!owner.applied) oldest.push_back(owner);
  }
  std::sort(oldest.begin(), oldest.end(), [](const FieldOwner& a, const FieldOwner& b) {
    const int64_t x = seconds_of(a.time);
    const int64_t y = seconds_of(b.time);
    return x != y ? x < y : a.id() < b.id();
  });
  auto left = static_cast<size_t>(updaters);
  std::vector<FieldOwner> firsts;  // one of each version
  const auto drop = [&all](const FieldOwner& gone) {
    std::erase_if(all, [&](const FieldOwner& owner) { return owner.is_same(gone); });
  };
  for (const FieldOwner& owner : oldest) {
    if (left <= kUpdatersMax) return;
    const auto first = std::find_if(firsts.begin(), firsts.end(), [&](const FieldOwner& f) {
      return f.api_version == owner.api_version;
    });
    if (first == firsts.end()) {
      firsts.push_back(owner);
      continue;
    }
    FieldOwner bucket;
    bucket.manager = kAncient;
    bucket.api_version = owner.api_version;
    if (const FieldOwner* known = owners.find(bucket)) {
      bucket.set = known->set;
    } else {
      bucket.set = first->set;
      drop(*first);
    }
    bucket.set = owner.set.united_with(bucket.set);
    bucket.time = owner.time;
    drop(owner);
    owners.put(std::move(bucket));
    --left;
  }
}

}  // namespace ownership

Value track_update(const OwnershipRules& rules, const Value& before, const Value& after,
                   const FieldWriter& writer) {
  const Value& kept = before["metadata"]["managedFields"];
  if (before.same_node(after)) return kept;
  FieldOwners owners = owners_to_start_from(before, after, writer.subresource);
  if (owners.empty() && before.is_object()) return {};
  if (!ownership::update(rules, before, after, writer, owners)) return {};
  ownership::cap_updaters(owners);
  return owners.encode();
}

Value keep_times(const Value& before, const Value& after) {
  const Value& old_list = before["metadata"]["managedFields"];
  const Value& new_list = after["metadata"]["managedFields"];
  if (old_list.same_node(new_list) || !old_list.is_array() || old_list.size() != new_list.size()) {
    return new_list;
  }
  for (size_t i = 0; i < old_list.size(); ++i) {
    if (!equal_but_for(old_list.at(i), new_list.at(i), {"time"})) return new_list;
  }
  const bool same =
      equal_but_for(before, after, {"metadata"}) &&
      equal_but_for(before["metadata"], after["metadata"], {"managedFields", "resourceVersion"});
  return same ? old_list : new_list;
}

}  // namespace tessera::kube
