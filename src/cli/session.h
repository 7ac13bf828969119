// A connection from a kubeconfig, used one call at a time: for commands that talk to a running cluster.
//
// Errors:  as kube::Client; kTimeout where the server does not answer.
// Threads: the caller's thread blocks; the client works on a thread of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/result.h"
#include "kube/http_client.h"
#include "kube/kubeconfig.h"

namespace tessera::cli {

class Session {
 public:
  static base::Result<std::unique_ptr<Session>> open(const std::string& kubeconfig_path);
  ~Session();

  kube::Reply call(kube::Request request);
  // A GET of any path of the API: discovery.
  base::Result<json::Value> get_path(const std::string& path);
  kube::Client& client() { return *client_; }
  base::Executor& executor() { return loop_; }
  const std::string& ns() const { return config_.ns; }

 private:
  explicit Session(kube::Kubeconfig config);

  kube::Kubeconfig config_;
  base::LoopThread loop_{"session"};
  std::unique_ptr<http::Client> http_;
  std::unique_ptr<kube::HttpClient> client_;
};

// Where a kind is served: its resource name and whether it has namespaces.
struct Mapping {
  kube::Gvr gvr;
  bool namespaced = true;
};

// Asks the server's discovery, once for each group version.
class Mapper {
 public:
  explicit Mapper(Session& session) : session_(session) {}
  base::Result<Mapping> find(const json::Value& object);

 private:
  Session& session_;
  std::vector<std::pair<std::string, json::Value>> lists_;  // apiVersion -> APIResourceList
};

}  // namespace tessera::cli
