// The part of the API server that turns CustomResourceDefinitions into kinds, and takes them away again.
//
// Shape:   a definition gets its names (NamesAccepted), is established and from then on served; one that is deleted first
//          loses its objects, then its finalizer. What the store's changes show is published to the Kinds of the server at
//          once, one edition after the other; what is written in answer goes the way of all writes.
// Threads: load before anything else; on_change on the Api's executor, as the store's observer.
// Source:  k8s.io/apiextensions-apiserver v0.36.3 pkg/controller/status, establish, finalizer, apiapproval.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/api_core.h"
#include "apiserver/crd_kind.h"

namespace tessera::apiserver {

class CrdController : public std::enable_shared_from_this<CrdController> {
 public:
  explicit CrdController(const std::shared_ptr<Core>& core);
  ~CrdController();

  // The kinds of the definitions that lie on disk, before the store reads the objects.
  static void load(const std::vector<StoredRow>& rows, Kinds& kinds,
                   std::map<std::string, CrdKinds>& made);
  void adopt(std::map<std::string, CrdKinds> made) { made_ = std::move(made); }

  // Looks at all definitions soon.
  void arm();
  void on_change(const Store::Change& change);

 private:
  void run();
  void sync(Core& core, const json::Value& definition);
  void publish(Core& core) const;
  bool clear(Core& core, const json::Value& definition);
  void write(Core& core, const std::string& name, std::function<void(json::Value&)> change) const;

  const std::weak_ptr<Core> core_;
  const Kind* definitions_ = nullptr;
  std::map<std::string, CrdKinds> made_;  // by the uid of the definition
  bool armed_ = false;
};

// What status.acceptedNames and the first two conditions of a definition should be, given the names that the other
// definitions of its group have.
void settle_names(const std::vector<json::Value>& others, json::Value& definition, base::Time now);

}  // namespace tessera::apiserver
