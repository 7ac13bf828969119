// A non-blocking byte stream over a socket, plain or TLS, behind one interface.
//
// Shape:   each call does what it can at once and says what it waits for.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/openssl_ptr.h"
#include "http/server.h"

namespace tessera::http {

struct IoResult {
  enum class Kind { kOk, kWantRead, kWantWrite, kEof, kFailed };
  Kind kind = Kind::kFailed;
  size_t bytes = 0;
};

// Who a client certificate says the peer is.
struct PeerName {
  std::string common_name;
  std::vector<std::string> organizations;
  std::optional<base::Time> ends;
  std::string refused;  // why that must not be believed
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual IoResult handshake() = 0;
  virtual IoResult read(char* out, size_t size) = 0;
  virtual IoResult write(std::string_view bytes) = 0;
  // Says good-bye (TLS close_notify, TCP FIN); after that only discard() is called.
  virtual void shut_write() = 0;
  // Throws away what still comes, so that closing sends no reset that would overtake our last
  // answer.
  virtual IoResult discard(char* scratch, size_t size) = 0;
  virtual PeerName peer() const = 0;
  // Why the handshake, or what came after it, failed.
  virtual std::string fault() const { return {}; }
};

// Both take over the descriptor, which must be non-blocking.
std::unique_ptr<Transport> make_plain_transport(int fd);
// Null where OpenSSL cannot make a session.
std::unique_ptr<Transport> make_tls_transport(int fd, SSL_CTX* context);
// The client's end of a connection to the server at this IP address, which its certificate must name.
std::unique_ptr<Transport> make_tls_client_transport(int fd, SSL_CTX* context,
                                                     const std::string& address);
// The server's side of TLS as the options say.
base::Result<SslContextPtr> make_server_context(const ServerOptions& options);
// The client's: whom to believe and who we are. Errors: kUnauthorized for PEM text that cannot be used.
base::Result<SslContextPtr> make_client_context(const std::string& ca_pem,
                                                const std::string& certificate_pem,
                                                const std::string& private_key_pem);

}  // namespace tessera::http
