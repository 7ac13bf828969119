// Requests that lead into a container: log is answered by a ContainerLogs, exec, attach and portforward are refused.
//
// Errors:  as Kubernetes: kInvalid for options, kBadRequest for a container that the pod does not have.
// Threads: any.
// Source:  k8s.io/kubernetes pkg/registry/core/pod (strategy.go, rest/log.go); PodLogOptions' validation.
#pragma once

#include <memory>

#include "apiserver/container_log.h"
#include "apiserver/front_reply.h"

namespace tessera::apiserver {

// What the query asks for; the pod's part is empty.
base::Result<LogQuery> read_log_query(const kube::Request& asked, base::Time now);

// Answers with the log of a container of `pod`. `logs` null: nobody runs pods here.
void answer_log(const std::shared_ptr<Exchange>& exchange, LogQuery query, const json::Value& pod,
                bool node_known, ContainerLogs* logs);

// Why exec, attach or portforward of this pod does not work.
base::Error no_process_error(const json::Value& pod, const kube::Request& asked);

}  // namespace tessera::apiserver
