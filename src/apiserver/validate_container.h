// What Kubernetes demands of the containers of a pod or template.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

// containers and initContainers of `spec`; `at` is the spec.
void validate_containers(const json::Value& spec, const Path& at, FieldErrors& errors);

// A probe or lifecycle hook: exactly one of exec, httpGet, tcpSocket, grpc, sleep.
void validate_handler(const json::Value& handler, const Path& at, FieldErrors& errors);

// 1 to 65535, or a port's name.
void validate_port_or_name(const json::Value& port, const Path& at, FieldErrors& errors);
void validate_port_number(const json::Value& port, const Path& at, FieldErrors& errors);
// runAsUser and runAsGroup.
void validate_user_ids(const json::Value& security, const Path& at, FieldErrors& errors);
// An empty value is `Required value`, one not in `allowed` is `Unsupported value`.
void validate_word(const json::Value& word, const std::vector<std::string>& allowed, const Path& at,
                   FieldErrors& errors);

}  // namespace tessera::apiserver
