#include "http/signing_key.h"

#include <gtest/gtest.h>

#include "http/tls.h"

namespace tessera::http {
namespace {

TEST(SigningKey, VerifiesWhatItSignedAndNothingElse) {
  const auto key = SigningKey::make();
  const auto other = SigningKey::make();
  ASSERT_TRUE(key && other);
  const auto signature = key->sign("header.claims");
  ASSERT_TRUE(signature);
  EXPECT_EQ(signature->size(), 64u);
  EXPECT_TRUE(key->verify("header.claims", *signature));
  EXPECT_FALSE(key->verify("header.claimz", *signature));
  EXPECT_FALSE(other->verify("header.claims", *signature));
  EXPECT_FALSE(key->verify("header.claims", ""));
  EXPECT_FALSE(key->verify("header.claims", std::string(64, '\0')));
  EXPECT_FALSE(key->verify("header.claims", std::string(64, '\xff')));
  EXPECT_FALSE(key->verify("header.claims", *signature + "x"));
}

TEST(SigningKey, IsTheSameAfterPem) {
  const auto key = SigningKey::make();
  ASSERT_TRUE(key);
  const auto again = SigningKey::from_pem(*key->pem());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id(), key->id());
  EXPECT_EQ(again->x(), key->x());
  EXPECT_EQ(key->x().size(), 32u);
  EXPECT_EQ(key->id().size(), 43u);
  EXPECT_TRUE(again->verify("t", *key->sign("t")));
}

TEST(SigningKey, RefusesOtherText) {
  for (const std::string_view pem : {"", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n"}) {
    EXPECT_FALSE(SigningKey::from_pem(pem)) << pem;
  }
}

TEST(Base64Url, GoesBothWays) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(unbase64url(base64url(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(base64url("\xfb\xff"), "-_8");
  for (const std::string_view text : {"a", "+/8", "ab=", "a b"}) {
    EXPECT_FALSE(unbase64url(text)) << text;
  }
}

}  // namespace
}  // namespace tessera::http
