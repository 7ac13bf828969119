// /healthz, /livez and /readyz: what the server finds when it looks at itself.
//
// Shape:   checks: ping; store (changes can be kept: it is open, and the last batch reached the disk); in /readyz also
//          shutdown. ?verbose lists them, ?exclude=NAME leaves one out, /readyz/NAME asks for one alone.
// Errors:  500 with "[-]NAME failed: reason withheld": why is in the log.
// Threads: any.
// Source:  k8s.io/apiserver/pkg/server/healthz (texts). There is no etcd here, and no check of that name.
#pragma once

#include <span>
#include <string>

#include "apiserver/api.h"
#include "apiserver/routes.h"

namespace tessera::apiserver {

// "/readyz", and what may lie below it.
bool is_health_path(std::span<const std::string> segments);

struct HealthAnswer {
  int status = 200;  // 404: no such check
  std::string text;
};
HealthAnswer health_answer(std::span<const std::string> segments, const Query& query,
                           const Api& api);

}  // namespace tessera::apiserver
