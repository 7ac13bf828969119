#include <gtest/gtest.h>

#include "http/openssl_ptr.h"
#include "http/server.h"
#include "http/testing/rig.h"

namespace tessera::http {
namespace {

using SessionPtr = OpensslPtr<SSL_SESSION, SSL_SESSION_free>;

struct Visit {
  std::string answer;
  bool resumed = false;
  SessionPtr session;
};

Visit visit(SSL_CTX* context, uint16_t port, SSL_SESSION* session) {
  Visit out;
  const SslPtr ssl(SSL_new(context));
  const BioPtr connection(BIO_new_connect(("127.0.0.1:" + std::to_string(port)).c_str()));
  if (BIO_do_connect(connection.get()) != 1) return out;
  BIO_up_ref(connection.get());
  SSL_set_bio(ssl.get(), connection.get(), connection.get());
  if (session != nullptr) SSL_set_session(ssl.get(), session);
  if (SSL_connect(ssl.get()) != 1) return out;
  out.resumed = SSL_session_reused(ssl.get()) == 1;
  const std::string request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
  SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
  char buffer[4096];
  int n = 0;
  while ((n = SSL_read(ssl.get(), buffer, sizeof buffer)) > 0) {
    out.answer.append(buffer, static_cast<size_t>(n));
  }
  SSL_shutdown(ssl.get());
  out.session.reset(SSL_get1_session(ssl.get()));
  return out;
}

TEST(ServerTls, OnlyVersion12AndNewerAreSpoken) {
  Server server(testing::tls_server(), testing::echo);
  ASSERT_TRUE(server.start());
  for (const auto& [version, spoken] :
       {std::pair(TLS1_VERSION, false), std::pair(TLS1_1_VERSION, false),
        std::pair(TLS1_2_VERSION, true), std::pair(TLS1_3_VERSION, true)}) {
    const SslContextPtr context(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_security_level(context.get(), 0);
    SSL_CTX_set_min_proto_version(context.get(), version);
    SSL_CTX_set_max_proto_version(context.get(), version);
    EXPECT_EQ(!visit(context.get(), server.port(), nullptr).answer.empty(), spoken) << version;
  }
}

TEST(ServerResumption, AResumedSessionStillKnowsWhoTheClientIs) {
  Server server(testing::tls_server(), testing::echo);
  ASSERT_TRUE(server.start());
  const auto& identity = testing::certificates().client;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const SslContextPtr context(SSL_CTX_new(TLS_client_method()));
    const CertificatePtr certificate = read_certificate(identity.certificate_pem, "test").value();
    const KeyPtr key = read_private_key(identity.private_key_pem, "test").value();
    SSL_CTX_use_certificate(context.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), key.get());
    SSL_CTX_set_max_proto_version(context.get(), version);
    const Visit first = visit(context.get(), server.port(), nullptr);
    EXPECT_FALSE(first.resumed);
    const Visit second = visit(context.get(), server.port(), first.session.get());
    EXPECT_TRUE(second.resumed) << version;
    for (const Visit* each : {&first, &second}) {
      EXPECT_NE(each->answer.find("|admin|system:masters,devs,"), std::string::npos) << version;
    }
  }
}

}  // namespace
}  // namespace tessera::http
