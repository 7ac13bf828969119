// An HTTP(S) client for calls to Kubernetes API servers.
//
// Shape:   one Client holds the connections and TLS identity for one server; calls and streams run
//          on one thread of its own; callbacks run on the executor given. A server that is named by
//          its IP address and that no proxy hides is called over connections of our own
//          (direct_client.h), any other through libcurl.
// Errors:  kUnavailable (cannot connect, connection cut), kTimeout, kUnauthorized (TLS refused),
//          kTooLarge; an HTTP error status is an ordinary Response.
// Threads: any. A call that is still open when the Client goes away ends without its callback;
//          after the destruction of a Client or of a subscription on the executor no callback of it
//          runs any more. Not more than connections_max calls are on their way at once (others
//          wait); streams do not count.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/result.h"
#include "base/time.h"
#include "http/server.h"

namespace tessera::http {

struct ClientOptions {
  std::string base_url;  // "https://127.0.0.1:6443"
  std::string ca_pem;
  std::string certificate_pem;
  std::string private_key_pem;
  std::string bearer_token;
  // Where the token is read again from every so often; empty: it stays.
  std::string bearer_token_file;
  base::Duration bearer_token_period = base::seconds(60);
  base::Duration connect_timeout = base::seconds(5);
  base::Duration request_timeout = base::seconds(30);
  size_t body_bytes_max = size_t{256} << 20;
  int connections_max = 16;
  // Whether the environment names a proxy that may be meant for this server: libcurl reads it there.
  bool proxy = false;
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";
  Headers headers;
  std::string body;
};

class BearerToken;
class DirectClient;

class Client {
 public:
  Client(ClientOptions options, base::Executor& executor);
  ~Client();
  void call(ClientRequest request, std::function<void(base::Result<Response>)> done);
  // on_chunk gets the body as it comes; on_close runs once at the end unless the subscription was
  // dropped before. A status other than 200 comes as on_close with the status's code and the body's
  // text as message.
  std::unique_ptr<base::Subscription> stream(ClientRequest request,
                                             std::function<void(std::string)> on_chunk,
                                             std::function<void(base::Status)> on_close);

 private:
  struct Impl;
  std::unique_ptr<BearerToken> token_;
  std::unique_ptr<DirectClient> direct_;  // or
  std::shared_ptr<Impl> impl_;            // libcurl's
};

}  // namespace tessera::http
