// Metadata that typed objects share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "kube/labels.h"
#include "kube/object.h"

namespace tessera::kube {

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

struct Meta {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  StringMap labels;
  StringMap annotations;
  std::vector<OwnerReference> owners;
  std::vector<std::string> finalizers;
  base::Time created;
  std::optional<base::Time> deleted;  // deletionTimestamp: when it may go at the latest
  std::optional<int64_t> deletion_grace_seconds;

  // The owner that manages the object, or null.
  const OwnerReference* controller() const;
  std::string key() const { return ns.empty() ? name : ns + "/" + name; }
};

// Errors: kInvalid naming the field (a time that is none).
base::Result<Meta> decode_meta(const Object& object);
StringMap decode_string_map(const json::Value& map);
std::vector<std::string> decode_strings(const json::Value& list);
// An optional metav1.Time.
base::Result<std::optional<base::Time>> decode_time(const json::Value& value,
                                                    std::string_view path);

}  // namespace tessera::kube
