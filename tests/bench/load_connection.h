// One HTTP/1.1 connection over TLS, driven by readiness: a request out, its answer in, the next.
//
// Shape:   connect() blocks until the handshake is done; after that nothing does. send() begins a request; advance() does
//          what the socket allows and says what came of it. A stream (watch) is kStreaming once its header has come.
// Errors:  kFailed with why() set: the peer is gone or what it says is no HTTP.
// Threads: one.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::load {

// Where a server is and who asks.
struct Target {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
};

// A TLS context for all connections to one server; exits with a message where the files are not what they should be.
SSL_CTX* make_context(const Target& target);

class Connection {
 public:
  enum class Outcome { kPending, kDone, kStreaming, kFailed };

  Connection(SSL_CTX* context, const Target& target);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  // Of the answer that is complete. Its body is kept until the next send().
  int status() const { return status_; }
  const std::string& body() const { return body_; }
  const std::string& why() const { return why_; }

  void connect();
  Outcome send(std::string_view method, std::string_view target, std::string_view content_type,
               std::string_view body);
  Outcome advance();
  // Throws away what comes on a stream.
  Outcome drain();
  // Appends what has come on a stream, without its framing.
  Outcome receive(std::string& out);

 private:
  Outcome fail(std::string why);
  Outcome write_some();
  Outcome read_some();
  bool parse_head();
  bool take_body();
  bool take_chunks();

  SSL_CTX* const context_;
  const Target target_;
  SSL* ssl_ = nullptr;
  int fd_ = -1;
  std::string out_;
  size_t sent_ = 0;
  std::string in_;  // not yet understood
  std::string body_;
  std::string why_;
  int status_ = 0;
  bool head_done_ = false;
  bool chunked_ = false;
  bool stream_ = false;
  size_t length_ = 0;
};

}  // namespace tessera::load
