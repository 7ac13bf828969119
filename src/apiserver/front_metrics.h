// What /metrics says beyond the requests: objects, flow control, audit log, process; and the labels of a request.
//
// Threads: any.
// Source:  names as kube-apiserver's where the meaning is the same; what only this server has begins with tessera_.
#pragma once

#include <span>
#include <string>

#include "apiserver/api.h"
#include "apiserver/metrics.h"
#include "apiserver/routes.h"

namespace tessera::apiserver {

class AuditLog;
class FlowControl;

RequestLabels request_labels(const Operation& operation, const http::Request& request);
// A path that names no resource, as a label: one of few, so that nobody makes labels without end.
std::string path_label(std::span<const std::string> segments);
// `audit` and `flow` may be null.
std::string api_metrics(const Api& api, const AuditLog* audit, const FlowControl* flow);

}  // namespace tessera::apiserver
