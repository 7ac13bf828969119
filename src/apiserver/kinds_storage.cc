#include "apiserver/columns.h"
#include "apiserver/defaults_storage.h"
#include "apiserver/json_edit.h"
#include "apiserver/kind.h"
#include "apiserver/validate_storage.h"

namespace tessera::apiserver {
namespace {

void add_volumes(Kinds& kinds) {
  kinds.add({.kind = "PersistentVolume",
             .plural = "persistentvolumes",
             .singular = "persistentvolume",
             .short_names = {"pv"},
             .namespaced = false,
             .status_subresource = true,
             .defaults = default_persistent_volume,
             .prepare_create = prepare_new_persistent_volume,
             .prepare_update = keep_status,
             .validate = validate_persistent_volume,
             .validate_update = validate_persistent_volume_update,
             .columns = persistent_volume_columns()});
  kinds.add({.kind = "PersistentVolumeClaim",
             .plural = "persistentvolumeclaims",
             .singular = "persistentvolumeclaim",
             .short_names = {"pvc"},
             .status_subresource = true,
             .defaults = default_persistent_volume_claim,
             .prepare_create = prepare_new_persistent_volume_claim,
             .prepare_update = prepare_persistent_volume_claim_update,
             .validate = validate_persistent_volume_claim,
             .validate_update = validate_persistent_volume_claim_update,
             .columns = persistent_volume_claim_columns()});
}

void add_csi(Kinds& kinds) {
  kinds.add({.group = "storage.k8s.io",
             .kind = "CSINode",
             .plural = "csinodes",
             .singular = "csinode",
             .namespaced = false,
             .validate = validate_csi_node,
             .validate_update = validate_csi_node_update,
             .columns = csi_node_columns()});
  kinds.add({.group = "storage.k8s.io",
             .kind = "CSIDriver",
             .plural = "csidrivers",
             .singular = "csidriver",
             .namespaced = false,
             .defaults = default_csi_driver,
             .validate = validate_csi_driver,
             .validate_update = validate_csi_driver_update,
             .columns = csi_driver_columns()});
  kinds.add({.group = "storage.k8s.io",
             .kind = "VolumeAttachment",
             .plural = "volumeattachments",
             .singular = "volumeattachment",
             .namespaced = false,
             .status_subresource = true,
             .prepare_create =
                 [](json::Value& object) {
                   object.set("status", json::Value::object({{"attached", false}}));
                 },
             .prepare_update = keep_status,
             .validate = validate_volume_attachment,
             .validate_update = validate_volume_attachment_update,
             .columns = volume_attachment_columns()});
}

}  // namespace

void add_storage_kinds(Kinds& kinds) {
  add_volumes(kinds);
  kinds.add({.group = "storage.k8s.io",
             .kind = "StorageClass",
             .plural = "storageclasses",
             .singular = "storageclass",
             .short_names = {"sc"},
             .namespaced = false,
             .defaults = default_storage_class,
             .validate = validate_storage_class,
             .validate_update = validate_storage_class_update,
             .columns = storage_class_columns()});
  add_csi(kinds);
}

}  // namespace tessera::apiserver
