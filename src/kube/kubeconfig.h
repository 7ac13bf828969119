// kubeconfig files: which API server to call and as whom.
//
// Shape:   the current context (or the one asked for) with its cluster and user; certificates
//          inline (*-data) or as files beside the kubeconfig; bearer tokens inline or from a file.
// Errors:  kBadRequest for a file that is none, kNotFound for a context, cluster or user that is
//          not there, kInvalid for ways of signing in that are not supported (exec, auth-provider,
//          username, skipped verification), each naming file and entry.
// Source:  k8s.io/client-go tools/clientcmd/api/v1 (format).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/client.h"
#include "json/value.h"

namespace tessera::kube {

struct Kubeconfig {
  std::string context;
  std::string ns;  // the context's namespace, "default" where it names none
  http::ClientOptions client;
};

// `directory` is where relative paths in the text start; `name` is what errors call it.
base::Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& directory,
                                          std::string_view context = {},
                                          std::string_view name = "kubeconfig");
base::Result<Kubeconfig> load_kubeconfig(const std::string& path, std::string_view context = {});

struct KubeconfigEntry {
  std::string name;  // of cluster, user and context
  std::string server;
  std::string ca_pem;
  std::string certificate_pem;
  std::string private_key_pem;
};
// The YAML text of a kubeconfig with one context.
std::string make_kubeconfig(const KubeconfigEntry& entry);

// Where a pod finds its API server: the service account's token, CA and namespace under
// `directory`.
base::Result<Kubeconfig> in_cluster_config(std::string_view host, std::string_view port,
                                           const std::string& directory);

}  // namespace tessera::kube
