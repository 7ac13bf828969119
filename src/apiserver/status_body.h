// Errors as metav1.Status objects.
//
// Shape:   status_body(error, subject): the subject is what the request was about; which of its
//          parts the Status shows depends on the error's code, as in Kubernetes (a bad request has
//          no details; Invalid names the kind where NotFound names the resource).
// Threads: pure.
// Source:  k8s.io/apimachinery/pkg/api/errors and pkg/apis/meta/v1/types.go (Status,
//          StatusDetails).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

struct StatusSubject {
  std::string group;
  std::string resource;  // "pods"
  std::string kind;      // "Pod"
  std::string name;
  std::string uid;
};

json::Value status_body(const base::Error& error, const StatusSubject& subject = {});

// Seconds that the client should wait before it tries again; 0 where waiting does not help.
int retry_after_seconds(const base::Error& error);

// The value of a Warning header: 299 - "text".
std::string warning_header(std::string_view text);

}  // namespace tessera::apiserver
