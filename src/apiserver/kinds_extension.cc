#include "apiserver/columns.h"
#include "apiserver/crd_definition.h"
#include "apiserver/kind.h"

namespace tessera::apiserver {
namespace {

Column created_at_column() {
  return {.name = "Created At", .type = "date", .cell = [](const kube::Object& object, base::Time) {
            return object.metadata()["creationTimestamp"];
          }};
}

}  // namespace

void add_extension_kinds(Kinds& kinds) {
  kinds.add({.group = "apiextensions.k8s.io",
             .kind = "CustomResourceDefinition",
             .plural = "customresourcedefinitions",
             .singular = "customresourcedefinition",
             .short_names = {"crd", "crds"},
             .categories = {"api-extensions"},
             .namespaced = false,
             .status_subresource = true,
             .has_generation = true,
             .defaults = default_definition,
             .prepare_create = prepare_new_definition,
             .prepare_update = prepare_changed_definition,
             .validate = validate_definition,
             .validate_update = validate_definition_update,
             .validate_create = validate_new_definition,
             .prepare_delete = prepare_definition_delete,
             .columns = {name_column(), created_at_column()}});
}

}  // namespace tessera::apiserver
