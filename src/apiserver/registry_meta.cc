#include "apiserver/registry_meta.h"

namespace tessera::apiserver {

using json::Value;

void carry_meta(Value& object, const Value& before) {
  const Value& old = before["metadata"];
  Value& meta = object.ref("metadata");
  const auto carry = [&](const char* field, bool only_missing) {
    if (only_missing && !meta[field].is_null()) return;
    if (old.contains(field)) {
      if (!(meta[field] == old[field])) meta.set(field, old[field]);
    } else if (meta.contains(field)) {
      meta.erase(field);
    }
  };
  carry("name", true);
  carry("namespace", true);
  carry("generateName", true);
  carry("uid", true);
  carry("creationTimestamp", false);
  // A deletion once begun is not taken back.
  carry("deletionTimestamp", true);
  carry("deletionGracePeriodSeconds", true);
  carry("generation", false);
  carry("resourceVersion", false);
  carry("managedFields", false);
  meta.erase("selfLink");
}

}  // namespace tessera::apiserver
