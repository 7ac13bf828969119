// The definitions of config/crd, compiled in, and how they come into a cluster.
//
// Shape:   ours (group tessera.dev) are applied at every start, so that a new version of tessera brings its own up to date; what
//          is as it should be makes no revision. Kinds of others (PodGroups and Queues of Volcano, scheduler-plugins, KAI) are
//          made only where nobody has defined them. Done once all that was written is served.
// Errors:  of the first definition that failed, after all were tried; nothing else is undone. What may pass is tried again for
//          ten seconds.
// Threads: any; works on `executor`, which must be the client's, and ends there. Both outlive the callback.
// Source:  config/crd; the names and versions are those of Volcano 1.15, scheduler-plugins, KAI 0.20.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/executor.h"
#include "base/result.h"
#include "kube/client.h"

namespace tessera::apiserver {

struct Definition {
  std::string_view file{};  // "queue.yaml"
  std::string_view text{};
};

// By name of the file.
const std::vector<Definition>& builtin_definitions();

void install_definitions(kube::Client& client, base::Executor& executor,
                         std::vector<Definition> definitions,
                         std::function<void(base::Status)> done);

}  // namespace tessera::apiserver
