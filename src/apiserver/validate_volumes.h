// What Kubernetes demands of volumes and where containers mount them.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

// `at` is the list of volumes.
void validate_volumes(const json::Value& volumes, const Path& at, FieldErrors& errors);
// volumeMounts and volumeDevices; `at` is the container.
void validate_volume_mounts(const json::Value& container, const json::Value& volumes,
                            const Path& at, FieldErrors& errors);

// ".." somewhere between slashes.
bool has_parent_step(std::string_view path);
// The type and steps of a hostPath source; that there is a path is not looked at.
void validate_host_path(const json::Value& source, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
