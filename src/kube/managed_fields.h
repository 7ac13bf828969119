// Who owns which fields of an object: metadata.managedFields, kept on every write.
//
// Shape:   track_update() answers the list that an object has after a create, update or patch. Owners() is the list
//          taken apart; apply.h works on it too. Sets stay as they are stored (FieldSet), entries that do not change keep
//          their nodes, and a write costs about what it changes.
// Units:   times in whole seconds, as Kubernetes stores them.
// Errors:  Owners::read answers kBadRequest for entries that are none; track_update takes the list of the object before
//          the write then, as Kubernetes does.
// Threads: pure.
// Source:  k8s.io/apimachinery/pkg/util/managedfields/internal v0.36.3 (fieldmanager.go, managedfields.go,
//          managedfieldsupdater.go, capmanagers.go, stripmeta.go, skipnonapplied.go), structured-merge-diff merge/update.go.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/apply_walk.h"
#include "kube/field_set.h"
#include "kube/schema.h"

namespace tessera::kube {

// What a kind (and subresource) says about owning its fields.
struct OwnershipRules {
  const SchemaType* type = nullptr;
  std::string_view api_version;  // "apps/v1"
  std::string_view kind;
  // Fields that the resource or subresource of the write does not change, hence never owns: reset_fields().
  const FieldSet* reset = nullptr;
  // A custom resource: nothing is in it before its first writer, and its type may have changed since.
  bool custom = false;
  // Other versions that the kind is served in, with the same fields; entries of versions not served go.
  std::function<bool(std::string_view api_version)> serves;
};

struct FieldWriter {
  std::string_view manager;  // the fieldManager option, or manager_of_user_agent()
  std::string_view subresource;
  base::Time now;
};

// {status} for the resource of a kind with a status; for /status the spec and what of the metadata its kind resets.
const FieldSet& reset_fields(std::string_view kind, bool has_status, bool custom,
                             std::string_view subresource);

// "kubectl/v1.36.3 (linux/amd64) ..." -> "kubectl"; at most 128 bytes.
std::string manager_of_user_agent(std::string_view user_agent);

// The list after a write. `before` is null for a create; `after` is the object to be stored, with the list that the
// request came with (managedFields [] or [{}] gives the ownership up; none keeps that of `before`). Null: no list.
// The write of an object that nobody owns a field of stays untracked until something is applied.
json::Value track_update(const OwnershipRules& rules, const json::Value& before,
                         const json::Value& after, const FieldWriter& writer);

// The list of `after`, or that of `before` where the two objects differ in nothing but its times: such a write is none.
json::Value keep_times(const json::Value& before, const json::Value& after);

// One entry.
struct FieldOwner {
  std::string manager;
  std::string api_version;
  std::string subresource;
  bool applied = false;  // operation Apply, else Update
  json::Value time;      // RFC 3339 text, or null
  FieldSet set;
  json::Value entry;  // as it was read; null once changed

  // Orders and identifies owners: an applier is one whatever its version.
  std::string id() const;
  bool is_same(const FieldOwner& other) const;
};

class FieldOwners {
 public:
  // `trusted`: the list was written by encode().
  static base::Result<FieldOwners> read(const json::Value& list, bool trusted);
  // Null where nobody owns anything.
  json::Value encode() const;

  bool empty() const { return owners_.empty(); }
  std::vector<FieldOwner>& all() { return owners_; }
  const std::vector<FieldOwner>& all() const { return owners_; }
  FieldOwner* find(const FieldOwner& like);
  void put(FieldOwner owner);
  void drop_empty();
  void set_fields(FieldOwner& owner, FieldSet set);

 private:
  std::vector<FieldOwner> owners_;
};

// Steps that updates and applies share.
namespace ownership {

// Never owned: apiVersion, kind, metadata.name, uid, ...
const FieldSet& never_owned();
// What a write changed, as far as it counts here.
base::Result<FieldChanges> changes(const OwnershipRules& rules, const json::Value& before,
                                   const json::Value& after);
// Drops owners whose version is not served, and fits sets of custom resources to their type.
void reconcile(const OwnershipRules& rules, FieldOwners& owners);
// Takes what changed from everybody but `writer`.
void take_from_others(FieldOwners& owners, const FieldChanges& changes, const FieldOwner& writer);
// An update by a manager that has read the list; without capping.
base::Status update(const OwnershipRules& rules, const json::Value& before,
                    const json::Value& after, const FieldWriter& writer, FieldOwners& owners);
// At most ten updaters: the oldest become "ancient-changes".
void cap_updaters(FieldOwners& owners);
json::Value time_text(base::Time time);

}  // namespace ownership
}  // namespace tessera::kube
