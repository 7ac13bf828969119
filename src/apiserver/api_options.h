// The query options that every write has: dryRun and fieldValidation.
//
// Errors:  kInvalid in Kubernetes' words, told of CreateOptions, UpdateOptions, PatchOptions or DeleteOptions.
// Threads: pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "kube/client.h"

namespace tessera::apiserver {

// Of a delete also where its body says it.
std::string_view dry_run_word(const kube::Request& request);

// Reads are not looked at.
base::Status check_write_options(const kube::Request& request);

}  // namespace tessera::apiserver
