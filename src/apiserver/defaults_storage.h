// The values that Kubernetes fills into volumes, claims, classes of storage and CSI drivers.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/{core,storage}/v1/defaults.go, pkg/registry/core/{persistentvolume,
//          persistentvolumeclaim}.
#pragma once

#include "json/value.h"

namespace tessera::apiserver {

void default_persistent_volume(json::Value& object);
void prepare_new_persistent_volume(json::Value& object);
// Also each claim template of a StatefulSet.
void default_persistent_volume_claim(json::Value& object);
// dataSource and dataSourceRef say the same: the one that is missing follows the other.
void prepare_new_persistent_volume_claim(json::Value& object);
void prepare_persistent_volume_claim_update(json::Value& object, const json::Value& before);
void default_storage_class(json::Value& object);
void default_csi_driver(json::Value& object);

}  // namespace tessera::apiserver
