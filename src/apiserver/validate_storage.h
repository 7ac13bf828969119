// What Kubernetes demands of volumes, claims and classes of storage, and of what CSI drivers say of themselves.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation, pkg/apis/storage/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

void validate_persistent_volume(const json::Value& object, FieldErrors& errors);
void validate_persistent_volume_update(const json::Value& object, const json::Value& before,
                                       FieldErrors& errors);
void validate_persistent_volume_claim(const json::Value& object, FieldErrors& errors);
void validate_persistent_volume_claim_update(const json::Value& object, const json::Value& before,
                                             FieldErrors& errors);
// Also of claim templates; `at` is the spec.
void validate_claim_spec(const json::Value& spec, const Path& at, FieldErrors& errors);

void validate_storage_class(const json::Value& object, FieldErrors& errors);
void validate_storage_class_update(const json::Value& object, const json::Value& before,
                                   FieldErrors& errors);
void validate_csi_node(const json::Value& object, FieldErrors& errors);
void validate_csi_node_update(const json::Value& object, const json::Value& before,
                              FieldErrors& errors);
void validate_csi_driver(const json::Value& object, FieldErrors& errors);
void validate_csi_driver_update(const json::Value& object, const json::Value& before,
                                FieldErrors& errors);
void validate_volume_attachment(const json::Value& object, FieldErrors& errors);
void validate_volume_attachment_update(const json::Value& object, const json::Value& before,
                                       FieldErrors& errors);
// 63 bytes of a DNS name, in any letters.
void validate_driver_name(const json::Value& name, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
