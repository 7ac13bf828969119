#include "http/tls.h"

#include <gtest/gtest.h>

#include "http/testing/rig.h"

namespace tessera::http {
namespace {

using testing::certificates;

const base::Time kFrom = base::parse_rfc3339("2026-01-01T00:00:00Z").value();
const base::Time kTo = base::parse_rfc3339("2036-01-01T00:00:00Z").value();

TEST(Tls, IssuedCertificatesBelongToTheirCa) {
  const auto& all = certificates();
  EXPECT_TRUE(check_key_pair(all.ca, all.ca.certificate_pem));
  EXPECT_TRUE(check_key_pair(all.server, all.ca.certificate_pem));
  EXPECT_FALSE(check_key_pair(all.stranger, all.ca.certificate_pem));
  EXPECT_FALSE(check_key_pair({all.server.certificate_pem, all.client.private_key_pem},
                              all.ca.certificate_pem));
}

TEST(Tls, TheEndIsTheOneAskedFor) {
  const KeyPair ca = make_ca("ca", kFrom, kTo).value();
  EXPECT_EQ(not_after_of(ca.certificate_pem).value(), kTo);
  EXPECT_EQ(ca.private_key_pem.substr(0, 27), "-----BEGIN PRIVATE KEY-----");
}

TEST(Tls, BadRequestsAreRefusedWithTheirReason) {
  const KeyPair ca = make_ca("ca", kFrom, kTo).value();
  CertificateRequest request{"x", {}, {}, {"1.2.3"}, true, kFrom, kTo};
  EXPECT_NE(issue(ca, request).error().message.find("1.2.3"), std::string::npos);
  request.ip_addresses = {"::1"};
  EXPECT_TRUE(issue(ca, request));
  request.not_after = kFrom;
  EXPECT_EQ(issue(ca, request).error().code, base::Code::kBadRequest);
  EXPECT_EQ(make_ca(std::string(1000, 'x'), kFrom, kTo).error().code, base::Code::kBadRequest);
  EXPECT_EQ(issue({ca.certificate_pem, certificates().ca.private_key_pem}, request).error().code,
            base::Code::kBadRequest);
}

TEST(Tls, DamagedPemIsABadRequest) {
  const std::string pem = certificates().ca.certificate_pem;
  for (const std::string& text : {std::string(), std::string("nonsense"), pem.substr(0, 100),
                                  certificates().ca.private_key_pem}) {
    const auto result = not_after_of(text);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, base::Code::kBadRequest);
  }
}

TEST(Base64, KnownVectors) {
  // RFC 4648 section 10.
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : vectors) {
    EXPECT_EQ(base64(plain), coded);
    EXPECT_EQ(unbase64(coded).value(), plain);
  }
}

TEST(Base64, AllBytesComeBackAlsoFolded) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  std::string coded = base64(bytes);
  EXPECT_EQ(unbase64(coded).value(), bytes);
  coded.insert(76, "\r\n");
  EXPECT_EQ(unbase64(coded).value(), bytes);
}

TEST(Base64, MalformedTextIsRefused) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zm9v!", "Zm 9v", "=Zm9"}) {
    EXPECT_FALSE(unbase64(text)) << text;
  }
}

}  // namespace
}  // namespace tessera::http
