#include "apiserver/defaults_storage.h"

#include "apiserver/json_edit.h"

namespace tessera::apiserver {
namespace {

using json::Value;

void join_data_sources(Value& object) {
  const Value& spec = object["spec"];
  const Value source = spec["dataSource"];
  const Value ref = spec["dataSourceRef"];
  if (source.is_object() && ref.is_null()) {
    object.ref("spec").set("dataSourceRef", source);
  } else if (ref.is_object() && source.is_null() && ref["namespace"].as_string().empty()) {
    Value copy = ref;
    copy.erase("namespace");
    object.ref("spec").set("dataSource", std::move(copy));
  }
}

}  // namespace

void default_persistent_volume(Value& object) {
  inside(object, "spec", [](Value& spec) {
    set_missing(spec, "persistentVolumeReclaimPolicy", "Retain");
    set_missing(spec, "volumeMode", "Filesystem");
    // "" is the type of a host path that is not looked at.
    inside(spec, "hostPath", [](Value& path) { set_missing(path, "type", ""); });
  });
  set_missing(object.ref("status"), "phase", "Pending");
}

void prepare_new_persistent_volume(Value& object) {
  object.set("status",
             Value::object({{"phase", "Pending"},
                            {"lastPhaseTransitionTime", object["metadata"]["creationTimestamp"]}}));
}

void default_persistent_volume_claim(Value& object) {
  inside(object, "spec", [](Value& spec) { set_missing(spec, "volumeMode", "Filesystem"); });
  set_missing(object.ref("status"), "phase", "Pending");
}

void prepare_new_persistent_volume_claim(Value& object) {
  object.set("status", Value::object({{"phase", "Pending"}}));
  join_data_sources(object);
}

void prepare_persistent_volume_claim_update(Value& object, const Value& before) {
  keep_status(object, before);
  join_data_sources(object);
}

void default_storage_class(Value& object) {
  set_missing(object, "reclaimPolicy", "Delete");
  set_missing(object, "volumeBindingMode", "Immediate");
}

void default_csi_driver(Value& object) {
  inside(object, "spec", [](Value& spec) {
    set_missing(spec, "attachRequired", true);
    for (const char* field :
         {"podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"}) {
      set_missing(spec, field, false);
    }
    set_missing(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if (spec["volumeLifecycleModes"].empty()) {
      spec.set("volumeLifecycleModes", Value::array({"Persistent"}));
    }
  });
}

}  // namespace tessera::apiserver
