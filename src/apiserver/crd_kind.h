// The kinds that a CustomResourceDefinition makes: one for each version.
//
// Shape:   a Kind is made for what clients see of a version (names, subresources, columns) and stays where it is; its schema
//          lies in a CrdSlot, which later forms of the same version share and which is emptied when the definition goes. All
//          versions keep their objects in one table of the store, in the storage version.
// Errors:  make_custom_kinds answers kInvalid for a schema that does not compile; a slot without a schema means that the
//          definition is gone.
// Threads: any.
// Source:  k8s.io/apiextensions-apiserver v0.36.3 pkg/apiserver (customresource_handler.go), pkg/registry/customresource.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/crd_schema.h"
#include "apiserver/crd_types.h"
#include "apiserver/kind.h"
#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

// A schema as it is now.
struct CrdVersion {
  CrdSchema::Ptr schema;
  std::unique_ptr<const CrdTypes> types;
  json::Value openapi;    // openAPIV3Schema as the definition has it
  uint64_t revision = 0;  // of the definition: older objects may lack its defaults
};

class CrdSlot {
 public:
  // Null once the definition is gone.
  std::shared_ptr<const CrdVersion> now() const;
  void set(std::shared_ptr<const CrdVersion> version);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const CrdVersion> now_;
};

struct CustomKind {
  struct Scale {
    std::vector<std::string> spec_replicas;
    std::vector<std::string> status_replicas;
    std::vector<std::string> selector;  // empty: none
  };

  std::shared_ptr<CrdSlot> slot;
  // All versions, served or not, by apiVersion.
  std::map<std::string, std::shared_ptr<CrdSlot>, std::less<>> versions;
  std::vector<std::string> served;  // apiVersions
  std::string storage;              // apiVersion
  std::optional<Scale> scale;
  std::string deprecation;   // what users of this version are told
  bool terminating = false;  // nothing new is made
};

// What stays of a definition from change to change.
struct CrdKinds {
  const Kind* table = nullptr;
  std::map<std::string, std::shared_ptr<CrdSlot>, std::less<>> slots;  // by apiVersion
  std::map<std::string, const Kind*, std::less<>> made;                // by what they are made of
  std::vector<const Kind*> served;                                     // now
};

// Brings `kinds` up to the definition, whose revision is `revision`.
base::Status update_custom_kinds(const json::Value& definition, uint64_t revision, CrdKinds& kinds);
// The definition is gone.
void end_custom_kinds(CrdKinds& kinds);

// A stored object as this kind shows it, and an object of this kind as it is stored. Other kinds: unchanged.
json::Value as_served(const Kind& kind, json::Value object);
json::Value as_stored(const Kind& kind, json::Value object);

// The object of a body: metadata as that of any object, unknown fields dropped and listed, defaults set.
base::Result<json::Value> decode_custom(const Kind& kind, json::Value body,
                                        std::vector<std::string>* unknown);

// "v2" before "v1" before "v1beta1" before "v1alpha1" before anything else.
bool version_before(std::string_view a, std::string_view b);

bool has_condition(const json::Value& definition, std::string_view type);

}  // namespace tessera::apiserver
