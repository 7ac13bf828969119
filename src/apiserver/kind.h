// One row of the kinds table: all that the API server knows of a kind.
//
// Shape:   a new kind is one Kind value in a kinds_*.cc file; everything else (routes, discovery, OpenAPI, storage, watch,
//          patches, tables, LocalClient) is made from it.
// Errors:  validators add causes to a FieldErrors; the server words the Status.
// Threads: a Kind never changes. A table gets rows of CustomResourceDefinitions at run time: readers see one edition whole.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "kube/schema.h"

namespace tessera::apiserver {

// Collects what is wrong with an object, worded as Kubernetes' field.Error (k8s.io/apimachinery/pkg/util/validation/field).
class FieldErrors {
 public:
  void required(std::string field, std::string_view detail = {});
  void invalid(std::string field, const json::Value& value, std::string_view detail);
  void not_supported(std::string field, const json::Value& value,
                     const std::vector<std::string>& supported);
  void duplicate(std::string field, const json::Value& value);
  void forbidden(std::string field, std::string_view detail);
  void not_found(std::string field, const json::Value& value);
  void too_long(std::string field, size_t bytes_max);
  void too_many(std::string field, size_t count, size_t count_max);
  // A cause as it is; and the list itself, for functions that add to one.
  void add(base::Cause cause) { causes_.push_back(std::move(cause)); }
  std::vector<base::Cause>& list() { return causes_; }
  bool empty() const { return causes_.empty(); }
  const std::vector<base::Cause>& causes() const { return causes_; }

 private:
  std::vector<base::Cause> causes_;
};

struct VirtualCreate;
struct CustomKind;

struct Column {
  std::string name{};
  std::string type = "string";  // "string", "integer", "date"
  std::string format{};         // "name" for the first column
  int priority = 0;             // over 0: only with -o wide
  std::function<json::Value(const kube::Object&, base::Time now)> cell{};
  std::string description{};
};

// Another face of a kind: its objects are stored as those of `of`, and only look different here. What a client sends is
// normalized by this kind's schema and turned by to_stored; from there on it is the other kind's in all (defaults,
// preparation, validation, storage, resource versions), after which this kind's own validate hooks look at the stored
// form too. Whatever goes to a client (objects, lists, watch events, the base of a patch) is turned by from_stored.
struct KindView {
  kube::Gvr of{};
  json::Value (*to_stored)(const json::Value& object) = nullptr;
  json::Value (*from_stored)(const json::Value& object) = nullptr;
  // The other kind's name of a selectable field.
  std::string (*stored_field)(std::string_view field) = nullptr;
};

struct Kind {
  std::string group{};
  std::string version = "v1";
  std::string kind{};      // "Pod"
  std::string plural{};    // "pods"
  std::string singular{};  // "pod"
  std::vector<std::string> short_names{};
  std::vector<std::string> categories{};  // "all"
  bool namespaced = true;
  bool status_subresource = false;
  // spec changes count up metadata.generation
  bool has_generation = false;
  // beyond "status": "binding", "eviction", "scale", "ephemeralcontainers", "resize", "log"
  std::vector<std::string> subresources{};

  // Each may be empty. They get the object after normalize() and in this order: defaults, prepare_*, validate*.
  // Metadata is not theirs: the server calls validate_metadata (validate_meta.h) for every kind. prepare_update is for
  // the main resource and keeps the old status; for the status subresource the server itself takes everything but the
  // status from the old object and calls neither prepare_update nor validate*.
  // prepare_create finds metadata.name and metadata.uid set.
  std::function<void(json::Value& object)> defaults{};
  std::function<void(json::Value& object)> prepare_create{};  // e.g. resets status
  std::function<void(json::Value& object, const json::Value& before)> prepare_update{};
  std::function<void(const json::Value& object, FieldErrors&)> validate{};
  std::function<void(const json::Value& object, const json::Value& before, FieldErrors&)>
      validate_update{};
  // Beside validate, for a new object only.
  std::function<void(const json::Value& object, FieldErrors&)> validate_create{};
  // The same for a write of the status alone, and what the first delete of an object does to it while it waits.
  std::function<void(const json::Value& object, const json::Value& before, FieldErrors&)>
      validate_status{};
  std::function<void(json::Value& object, base::Time now)> prepare_delete{};
  // How metadata.name must look: "dns1123-subdomain" (default), "dns1123-label", "dns1035-label", "path-segment".
  std::string name_rule = "dns1123-subdomain";
  // Field selector paths beyond metadata.name and metadata.namespace: "spec.nodeName", "status.phase".
  std::vector<std::string> selectable_fields{};
  // The value of a selectable field where it is not simply what stands at its path ("source" of events, false where a
  // bool is absent). Nothing: it is.
  std::function<std::optional<std::string>(const json::Value& object, std::string_view field)>
      field_value{};
  std::vector<Column> columns{};  // NAME and AGE are added where empty
  // What a client is warned of at every request, as "v1 Endpoints is deprecated in ..."; empty: nothing.
  std::string deprecation{};
  // Set where the objects are another kind's: events.k8s.io/v1 Event.
  std::optional<KindView> view{};
  // Set for a kind that is only asked and never stored, as reviews are: what a create answers (auth.h). It has no other
  // verb and no other hook.
  std::function<base::Result<json::Value>(VirtualCreate& call)> virtual_create{};
  // Set for a kind that a CustomResourceDefinition makes (crd_kind.h).
  std::shared_ptr<const CustomKind> custom{};
  // Under which kind the objects lie in the store, where it is another: the versions of a custom kind share one.
  const Kind* stored_as = nullptr;
  std::string list_kind{};  // empty: the kind's name and "List"

  std::string list_kind_name() const { return list_kind.empty() ? kind + "List" : list_kind; }
  kube::Gvr gvr() const { return {group, version, plural}; }
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  const kube::SchemaType* schema = nullptr;  // set at registration from group, version and kind
};

// The kind that names a table of the store.
inline const Kind* table_of(const Kind* kind) {
  return kind->stored_as != nullptr ? kind->stored_as : kind;
}

// The table: built-in rows, and those that publish() puts behind them. Kinds keep their address for the life of the program.
class Kinds {
 public:
  Kinds() = default;
  // The built-in rows of another table.
  explicit Kinds(const Kinds& base) : all_(base.all_) {}
  Kinds& operator=(const Kinds&) = delete;

  // All built-in kinds.
  static const Kinds& builtin();

  // Before the table has readers.
  void add(Kind kind);
  const Kind* find(const kube::Gvr& gvr) const;
  const Kind* find_kind(std::string_view group, std::string_view version,
                        std::string_view kind) const;
  std::vector<const Kind*> all() const;
  // Those that name tables of the store.
  std::vector<const Kind*> tables() const;

  // Gives a kind made at run time an address for good.
  static const Kind* keep(Kind kind);
  // From now on the custom kinds are these; `tables` are the kinds that their objects lie under. Any thread.
  void publish(std::vector<const Kind*> served, std::vector<const Kind*> tables);
  // Counts what was published.
  uint64_t edition() const;

 private:
  struct Custom {
    std::vector<const Kind*> served;
    std::vector<const Kind*> tables;
    uint64_t edition = 0;
  };
  std::shared_ptr<const Custom> custom() const;

  std::vector<const Kind*> all_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Custom> custom_ = std::make_shared<const Custom>();
};

// Each kinds_*.cc file adds its rows.
void add_core_kinds(Kinds& kinds);
void add_apps_kinds(Kinds& kinds);     // Deployment, ReplicaSet, StatefulSet, DaemonSet, ...
void add_batch_kinds(Kinds& kinds);    // Job, CronJob
void add_storage_kinds(Kinds& kinds);  // volumes, claims, classes, CSI
void add_network_kinds(Kinds& kinds);  // NetworkPolicy, Ingress, EndpointSlice, ...
void add_policy_kinds(Kinds& kinds);   // ResourceQuota, LimitRange, PodDisruptionBudget, RBAC, ...
void add_review_kinds(Kinds& kinds);   // SubjectAccessReview, TokenReview, ...
void add_view_kinds(Kinds& kinds);   // events.k8s.io Event, autoscaling/v1 HorizontalPodAutoscaler
void add_other_kinds(Kinds& kinds);  // PriorityClass, Lease, ...
void add_extension_kinds(Kinds& kinds);  // CustomResourceDefinition

}  // namespace tessera::apiserver
