#include "http/transport.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "http/openssl_ptr.h"

namespace tessera::http {
namespace {

using Kind = IoResult::Kind;

// The descriptor and the calls on it that do not depend on TLS.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }

  IoResult receive(char* out, size_t size) {
    const ssize_t n = ::recv(fd_, out, size, 0);
    if (n > 0) return {Kind::kOk, static_cast<size_t>(n)};
    if (n == 0) return {Kind::kEof};
    return {retry() ? Kind::kWantRead : Kind::kFailed};
  }

  IoResult send(std::string_view bytes) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return {Kind::kOk, static_cast<size_t>(n)};
    return {retry() ? Kind::kWantWrite : Kind::kFailed};
  }

 private:
  static bool retry() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
  int fd_;
};

class PlainTransport : public Transport {
 public:
  explicit PlainTransport(int fd) : socket_(fd) {}
  IoResult handshake() override { return {Kind::kOk}; }
  IoResult read(char* out, size_t size) override { return socket_.receive(out, size); }
  IoResult write(std::string_view bytes) override { return socket_.send(bytes); }
  void shut_write() override { ::shutdown(socket_.fd(), SHUT_WR); }
  IoResult discard(char* scratch, size_t size) override { return socket_.receive(scratch, size); }
  PeerName peer() const override { return {}; }

 private:
  Socket socket_;
};

// To those who speak plain HTTP to a TLS port.
constexpr std::string_view kPlainAnswer =
    "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

std::string openssl_error_text(unsigned long code) {
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

class TlsTransport : public Transport {
 public:
  TlsTransport(int fd, SslPtr ssl) : socket_(fd), ssl_(std::move(ssl)) {}

  IoResult handshake() override {
    ERR_clear_error();
    const int rc = SSL_do_handshake(ssl_.get());
    if (rc == 1) return {Kind::kOk};
    const unsigned long first = ERR_peek_error();
    if (ERR_GET_REASON(first) == SSL_R_HTTP_REQUEST) socket_.send(kPlainAnswer);
    const IoResult out = outcome(rc);
    const long verified = SSL_get_verify_result(ssl_.get());
    if (out.kind == Kind::kFailed && verified != X509_V_OK && SSL_is_server(ssl_.get()) == 0) {
      fault_ = X509_verify_cert_error_string(verified);
    }
    return out;
  }
  IoResult read(char* out, size_t size) override {
    ERR_clear_error();
    size_t n = 0;
    const int rc = SSL_read_ex(ssl_.get(), out, size, &n);
    return rc == 1 ? IoResult{Kind::kOk, n} : outcome(rc);
  }
  IoResult write(std::string_view bytes) override {
    ERR_clear_error();
    size_t n = 0;
    const int rc = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &n);
    return rc == 1 ? IoResult{Kind::kOk, n} : outcome(rc);
  }
  void shut_write() override {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_.get()) == 1) SSL_shutdown(ssl_.get());
    ERR_clear_error();
    ::shutdown(socket_.fd(), SHUT_WR);
  }
  IoResult discard(char* scratch, size_t size) override { return socket_.receive(scratch, size); }
  PeerName peer() const override;
  std::string fault() const override { return fault_; }

 private:
  IoResult outcome(int rc) {
    const int reason = SSL_get_error(ssl_.get(), rc);
    if (const unsigned long first = ERR_peek_error(); first != 0)
      fault_ = openssl_error_text(first);
    ERR_clear_error();
    switch (reason) {
      case SSL_ERROR_WANT_READ:
        return {Kind::kWantRead};
      case SSL_ERROR_WANT_WRITE:
        return {Kind::kWantWrite};
      case SSL_ERROR_ZERO_RETURN:
        return {Kind::kEof};
      default:
        return {Kind::kFailed};
    }
  }

  Socket socket_;
  SslPtr ssl_;
  std::string fault_;
};

PeerName TlsTransport::peer() const {
  const CertificatePtr certificate(SSL_get1_peer_certificate(ssl_.get()));
  if (!certificate) return {};
  PeerName out;
  Subject subject = subject_of(certificate.get());
  const std::vector<std::string>& names = subject.common_names;
  if (!names.empty()) out.common_name = names.front();
  std::tm end{};
  const ASN1_TIME* not_after = X509_get0_notAfter(certificate.get());
  if (ASN1_TIME_to_tm(not_after, &end) == 1) {
    out.ends = base::Time{static_cast<int64_t>(timegm(&end)) * 1'000'000'000};
  }
  // A resumed session brings the result of its first handshake; the end is looked at every time.
  long result = SSL_get_verify_result(ssl_.get());
  if (result == X509_V_OK && X509_cmp_current_time(not_after) < 0) {
    result = X509_V_ERR_CERT_HAS_EXPIRED;
  }
  if (result != X509_V_OK) {
    out.refused = X509_verify_cert_error_string(result);
  } else if (names.size() != 1) {  // two leave open who the peer is
    out.refused = "the subject must have exactly one common name";
  }
  out.organizations = std::move(subject.organizations);
  return out;
}

// Clients that offer several protocols get HTTP/1.1 by name; others get no answer and speak it
// anyway.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof kHttp11 - 1, offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// `whose`: "server" or "client".
base::Status use_chain(SSL_CTX* context, const std::string& whose,
                       const std::string& certificate_pem, const std::string& private_key_pem) {
  TS_TRY(const CertificatePtr leaf, read_certificate(certificate_pem, whose + " certificate"));
  TS_TRY(const KeyPtr key, read_private_key(private_key_pem, whose + " key"));
  if (SSL_CTX_use_certificate(context, leaf.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return base::error(base::Code::kBadRequest, "the {} certificate and its key cannot be used: {}",
                       whose, openssl_error());
  }
  const BioPtr bio = bio_over(certificate_pem);
  const CertificatePtr first(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    SSL_CTX_add0_chain_cert(context, next);
  }
  ERR_clear_error();
  return {};
}

base::Status believe(SSL_CTX* context, const std::string& ca_pem) {
  const BioPtr bio = bio_over(ca_pem);
  size_t count = 0;
  while (true) {
    const CertificatePtr ca(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!ca) break;
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get());
    ++count;
  }
  ERR_clear_error();
  if (count > 0) return {};
  return base::error(base::Code::kBadRequest, "the server's CA holds no PEM certificate");
}

base::Status verify_clients(SSL_CTX* context, const std::string& ca_pem) {
  const BioPtr bio = bio_over(ca_pem);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  size_t count = 0;
  while (true) {
    const CertificatePtr ca(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!ca) break;
    X509_STORE_add_cert(store, ca.get());
    SSL_CTX_add_client_CA(context, ca.get());
    ++count;
  }
  ERR_clear_error();
  if (count == 0) {
    return base::error(base::Code::kBadRequest, "the client CA holds no PEM certificate");
  }
  // Whoever brings a bad certificate is let in as nobody, as by Kubernetes: a token may still say who they are, and
  // 401 says more than a broken handshake. The result is looked at in peer().
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  return {};
}

}  // namespace

std::unique_ptr<Transport> make_plain_transport(int fd) {
  return std::make_unique<PlainTransport>(fd);
}

std::unique_ptr<Transport> make_tls_transport(int fd, SSL_CTX* context) {
  SslPtr ssl(SSL_new(context));
  if (!ssl || SSL_set_fd(ssl.get(), fd) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  SSL_set_accept_state(ssl.get());
  return std::make_unique<TlsTransport>(fd, std::move(ssl));
}

std::unique_ptr<Transport> make_tls_client_transport(int fd, SSL_CTX* context,
                                                     const std::string& address) {
  SslPtr ssl(SSL_new(context));
  if (!ssl || SSL_set_fd(ssl.get(), fd) != 1 ||
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), address.c_str()) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  SSL_set_connect_state(ssl.get());
  return std::make_unique<TlsTransport>(fd, std::move(ssl));
}

namespace {

// What holds for either end.
base::Result<SslContextPtr> make_context(const SSL_METHOD* method) {
  SslContextPtr context(SSL_CTX_new(method));
  if (!context) {
    return base::error(base::Code::kInternal, "cannot make a TLS context: {}", openssl_error());
  }
  SSL_CTX* c = context.get();
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // An idle watch holds no record buffers (34 kB each otherwise).
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                          SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Sessions are resumed from tickets, which the client keeps; nothing is cached here.
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  return context;
}

}  // namespace

base::Result<SslContextPtr> make_server_context(const ServerOptions& options) {
  TS_TRY(SslContextPtr context, make_context(TLS_server_method()));
  SSL_CTX* c = context.get();
  SSL_CTX_set_num_tickets(c, 1);
  SSL_CTX_set_timeout(c, 3600);
  static constexpr unsigned char kSessionContext[] = "tessera";
  SSL_CTX_set_session_id_context(c, kSessionContext, sizeof kSessionContext - 1);
  SSL_CTX_set_alpn_select_cb(c, choose_protocol, nullptr);
  TS_TRY_STATUS(use_chain(c, "server", options.certificate_pem, options.private_key_pem));
  if (!options.client_ca_pem.empty()) TS_TRY_STATUS(verify_clients(c, options.client_ca_pem));
  return context;
}

base::Result<SslContextPtr> make_client_context(const std::string& ca_pem,
                                                const std::string& certificate_pem,
                                                const std::string& private_key_pem) {
  TS_TRY(SslContextPtr context, make_context(TLS_client_method()));
  SSL_CTX* c = context.get();
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(c, kHttp11, sizeof kHttp11 - 1);
  base::Status ready;
  if (ca_pem.empty()) {
    SSL_CTX_set_default_verify_paths(c);
  } else {
    ready = believe(c, ca_pem);
  }
  if (ready && !certificate_pem.empty()) {
    ready = use_chain(c, "client", certificate_pem, private_key_pem);
  }
  if (!ready) return base::error(base::Code::kUnauthorized, "{}", ready.error().message);
  return context;
}

}  // namespace tessera::http
