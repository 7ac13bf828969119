// ResourceQuotas at the door: a write and what it adds to status.used are stored together or not at all.
//
// Shape:   the quotas of the namespace are read, the write is judged against each, and committed with the raised quotas
//          on the condition that none of them changed meanwhile: however many come at once, none exceeds a quota. Before a
//          refusal the usage is counted anew, so what was freed a moment ago can be used at once.
// Errors:  kForbidden: "exceeded quota: ...", "failed quota: ...: must specify ...".
// Threads: any.
#pragma once

#include "apiserver/api_core.h"

namespace tessera::apiserver {

// The quotas, raised by the write: to be committed with it. `before` is null for a new object.
base::Result<std::vector<Store::Write>> charge_quotas(Core& core, const Call& call,
                                                      const json::Value& before,
                                                      const json::Value& after);

// Commits the write with its quotas. A new object is tried until only its own name can be in the way; the outcome
// kConflict of an update is the caller's to try again.
base::Result<Store::Outcome> commit_within_quotas(Core& core, const Call& call,
                                                  const json::Value& before, Store::Write& write);

}  // namespace tessera::apiserver
