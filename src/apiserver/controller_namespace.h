// Namespaces that are being deleted, and what every namespace has.
//
// Shape:   a terminating namespace is emptied through the API, pods first, then kind by kind; its conditions tell what is
//          left, and when a fresh list of every kind is empty its finalizer "kubernetes" is taken off. Every other namespace
//          gets the service account "default" and, where the certificate is known, the ConfigMap kube-root-ca.crt.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/{namespace,serviceaccount,certificates} (behaviour).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class NamespaceController {
 public:
  NamespaceController(Cluster& cluster, const Kinds& kinds, std::string root_ca_pem);
  void start() { queue_.enqueue_all(namespaces_); }

 private:
  void sync(const std::string& name, Done done);
  // What a pass over the namespace left behind.
  struct Rest {
    std::map<std::string, size_t> by_kind;  // "pods."
    std::map<std::string, size_t> by_finalizer;
    std::vector<std::string> errors;
    bool told = true;  // the conditions speak of the rest
    base::Status status;
  };
  using RestPtr = std::shared_ptr<Rest>;

  Action ensure_account(const std::string& name);
  Action ensure_certificate(const std::string& name);
  void empty(const kube::Object& object, Done done);
  void empty_others(const kube::Object& object, const RestPtr& rest, Done done);
  void pass_done(const kube::Object& object, const RestPtr& rest, Done done);
  Action clear_kind(const std::string& ns, const Kind& kind, const RestPtr& rest);
  void finalize(const kube::Object& object, Done done);

  Cluster& cluster_;
  const Kinds& kinds_;
  Cache& namespaces_;
  Cache& accounts_;
  Cache& config_maps_;
  const std::string root_ca_pem_;
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
