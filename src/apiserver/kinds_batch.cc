#include "apiserver/kind.h"

namespace tessera::apiserver {

void add_batch_kinds(Kinds& kinds) {
  kinds.add({.group = "batch",
             .kind = "Job",
             .plural = "jobs",
             .singular = "job",
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true});
}

}  // namespace tessera::apiserver
