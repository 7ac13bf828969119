// An HTTPS server for a small number of trusted-but-verified clients: kubectl, components,
// dashboards.
//
// Shape:   HTTP/1.1 with keep-alive and chunked streaming over TLS 1.2+ (or plain on loopback when
//          no certificate is given). The handler gets each request with its whole body and a
//          Responder, and may answer at once or later, from any thread, with one response or a
//          stream (watch).
// Units:   sizes in bytes.
// Errors:  start() answers kUnavailable "address already in use" with the port; malformed, too
//          large (413), too slow (408) requests are answered and dropped by the server itself. A
//          client certificate that is expired, not yet valid, of another CA or not for clients
//          makes its peer nobody, and is logged with the reason. A
//          stream whose peer reads too slowly (more than stream_backlog_max unsent) is cut.
// Threads: runs its own I/O threads (threads option); the handler is called on them and must not
//          block.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace tessera::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;  // "GET"
  std::string target;  // as sent, "/api/v1/pods?limit=5"
  Headers headers;     // names in lower case
  std::string body;
  // From a verified client certificate: CN, and each O. Empty without one.
  std::string peer_common_name;
  std::vector<std::string> peer_organizations;
  bool peer_refused = false;  // there was one that must not be believed
  std::string peer_address;   // "127.0.0.1"

  std::string_view header(std::string_view lower_case_name) const;
};

struct Response {
  int status = 200;
  Headers headers;  // content-length, date and connection are the server's own
  std::string body;
  std::string content_type = "application/json";
};

// Answers one request. Copies refer to the same request. Exactly one of send() or begin_stream()
// takes effect; where all copies go away without either, the client gets 500. All members may be
// called from any thread, also after the peer is gone (then they do nothing).
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void send(Response response) = 0;
  virtual void begin_stream(int status, std::string content_type, Headers headers = {}) = 0;
  // False once the peer is gone or was cut for reading too slowly.
  virtual bool write(std::string chunk) = 0;
  virtual void end_stream() = 0;
  // Runs once when the connection ends before end_stream or send; at once when it already has.
  virtual void on_closed(std::function<void()> callback) = 0;
};

using Handler = std::function<void(Request, std::shared_ptr<Responder>)>;

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;            // 0: any free one, see Server::port()
  std::string certificate_pem;  // with its chain; empty: plain HTTP
  std::string private_key_pem;
  std::string client_ca_pem;  // when set, client certificates are requested and, if sent, verified
  int threads = 1;
  size_t header_bytes_max = 64 << 10;
  size_t body_bytes_max = 8 << 20;
  size_t stream_backlog_max = 16 << 20;
  size_t connections_max = 4096;
  base::Duration request_timeout =
      base::seconds(60);  // to receive one request once its first byte came
  base::Duration idle_timeout = base::seconds(300);
  // How a request that the server itself refuses is answered; without it in plain text: "400 Bad Request: <why>".
  std::function<Response(int status, std::string_view why)> refusal{};
};

// "400 Bad Request: <why>" as plain text.
Response plain_refusal(int status, std::string_view why);

class Server {
 public:
  Server(ServerOptions options, Handler handler);
  ~Server();
  base::Status start();
  uint16_t port() const;
  // For connections that begin from now on. Errors: kBadRequest, and the old one stays.
  base::Status use_certificate(const std::string& certificate_pem,
                               const std::string& private_key_pem);
  // Stops listening, closes all connections, joins its threads.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::http
