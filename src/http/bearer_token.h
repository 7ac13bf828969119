// The token of a client: given once, or read again from its file every so often, as Kubernetes replaces the tokens of service
// accounts while their pods run.
//
// Errors:  a file that cannot be read leaves the last token in use.
// Threads: any.
#pragma once

#include <mutex>
#include <string>

#include "base/time.h"
#include "http/client.h"

namespace tessera::http {

class BearerToken {
 public:
  explicit BearerToken(const ClientOptions& options);
  // Adds the header; one that the request brings itself counts.
  void sign(ClientRequest& request);

 private:
  std::string current();

  const std::string file_;
  const base::Duration period_;
  std::mutex mutex_;
  std::string token_;
  base::Duration read_at_;
};

}  // namespace tessera::http
