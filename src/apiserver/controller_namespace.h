// Namespaces that are being deleted, and what every namespace has.
//
// Shape:   a terminating namespace is emptied kind by kind through the API; when a fresh list of every kind is empty, its
//          finalizer "kubernetes" is taken off. Every other namespace gets the service account "default".
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/namespace, pkg/controller/serviceaccount (behaviour).
#pragma once

#include <memory>
#include <string>

#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class NamespaceController {
 public:
  NamespaceController(Cluster& cluster, const Kinds& kinds);
  void start() { queue_.enqueue_all(namespaces_); }

 private:
  void sync(const std::string& name, Done done);
  void ensure_account(const std::string& name, Done done);
  void empty(const kube::Object& object, Done done);
  Action clear_kind(const std::string& ns, const Kind& kind, const std::shared_ptr<size_t>& left);
  void finalize(const kube::Object& object, Done done);

  Cluster& cluster_;
  const Kinds& kinds_;
  Cache& namespaces_;
  Cache& accounts_;
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
