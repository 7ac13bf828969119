// Calls and streams over connections of our own: what http::Client uses where the server is named by its IP address and no
// proxy stands between, as for every component inside a cluster. A call costs a third of what it costs through libcurl.
//
// Shape:   HTTP/1.1 with keep-alive; up to connections_max lanes for calls, each with one call under way, and one lane a
//          stream. A call whose kept connection turns out to be closed before anything came is sent again on a new one.
// Errors:  as http::Client.
// Threads: as http::Client; one thread of its own.
// Source:  RFC 9112.
#pragma once

#include <functional>
#include <memory>

#include "http/client.h"

namespace tessera::http {

class DirectClient {
 public:
  // Whether it can be used for this server; otherwise libcurl must be.
  static bool serves(const ClientOptions& options);

  DirectClient(const ClientOptions& options, base::Executor& executor);
  ~DirectClient();
  DirectClient(const DirectClient&) = delete;
  DirectClient& operator=(const DirectClient&) = delete;

  void call(ClientRequest request, std::function<void(base::Result<Response>)> done);
  std::unique_ptr<base::Subscription> stream(ClientRequest request,
                                             std::function<void(std::string)> on_chunk,
                                             std::function<void(base::Status)> on_close);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tessera::http
