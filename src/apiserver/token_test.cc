#include "apiserver/token.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace tessera::apiserver {
namespace {

constexpr int64_t kNow = 1'767'225'600;

TokenClaims claims() {
  TokenClaims out;
  out.issuer = "https://issuer.example";
  out.subject = "system:serviceaccount:work:bot";
  out.audiences = {"a", "b"};
  out.id = "id-1";
  out.issued = out.not_before = kNow;
  out.expires = kNow + 600;
  out.ns = "work";
  out.account = {"bot", "uid-1"};
  out.pod = {"p", "uid-2"};
  return out;
}

class TokenTest : public testing::Test {
 protected:
  http::SigningKey key_ = *http::SigningKey::make();

  // A token with this header and body, rightly signed.
  std::string forged(std::string_view header, std::string_view body) {
    std::string text = http::base64url(header) + "." + http::base64url(body);
    const std::string signature = key_.sign(text).value_or("");
    return text.append(".").append(http::base64url(signature));
  }
};

TEST_F(TokenTest, ReadsWhatItWrote) {
  const auto text = write_token(key_, claims());
  ASSERT_TRUE(text);
  const auto read = read_token(key_, *text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, claims());
}

TEST_F(TokenTest, AnotherKeyOrAnyChangeIsRefused) {
  const std::string text = *write_token(key_, claims());
  EXPECT_FALSE(read_token(*http::SigningKey::make(), text));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    const auto read = read_token(key_, changed);
    // The last character of a part may carry bits that are not used.
    if (read) {
      EXPECT_EQ(*read, claims()) << i;
    }
    EXPECT_FALSE(read_token(key_, text.substr(0, i))) << i;
  }
}

TEST_F(TokenTest, OtherAlgorithmsAndShapesAreRefused) {
  const std::string body = R"({"sub":"system:serviceaccount:w:b",
    "kubernetes.io":{"namespace":"w","serviceaccount":{"name":"b"}}})";
  EXPECT_TRUE(read_token(key_, forged(R"({"alg":"ES256"})", body)));
  for (const std::string_view header :
       {R"({"alg":"none"})", R"({"alg":"HS256"})", R"({"alg":"es256"})", "{}", "[]", "", "x"}) {
    EXPECT_FALSE(read_token(key_, forged(header, body))) << header;
  }
  for (const std::string_view other :
       {"", "x", "[]", "{}", R"({"sub":"system:serviceaccount:w:b"})",
        R"({"sub":"admin","kubernetes.io":{"namespace":"w","serviceaccount":{"name":"b"}}})"}) {
    EXPECT_FALSE(read_token(key_, forged(R"({"alg":"ES256"})", other))) << other;
  }
  const std::string unsigned_text =
      http::base64url(R"({"alg":"none"})") + "." + http::base64url(body) + ".";
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("..."),
        std::string("a.b.c"), unsigned_text, std::string(100'000, 'a')}) {
    EXPECT_FALSE(read_token(key_, text)) << text.substr(0, 50);
  }
}

TEST_F(TokenTest, TimesAreHeldWithAMinuteOfGrace) {
  const auto at = [](int64_t seconds) { return base::Time{seconds * 1'000'000'000}; };
  const auto why = [&](const TokenClaims& c, int64_t seconds) {
    const auto status = check_token_times(c, at(seconds));
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(why(claims(), kNow), "");
  EXPECT_EQ(why(claims(), kNow + 660), "");
  EXPECT_EQ(why(claims(), kNow + 661), "service account token has expired");
  EXPECT_EQ(why(claims(), kNow - 60), "");
  EXPECT_EQ(why(claims(), kNow - 61), "service account token is not valid yet");
  TokenClaims endless = claims();
  endless.expires = INT64_MAX;
  EXPECT_EQ(why(endless, kNow), "service account token has expired");
  TokenClaims none = claims();
  none.expires = 0;
  EXPECT_EQ(why(none, kNow), "service account token has expired");
}

TEST_F(TokenTest, KeySetNamesThePublicKeyOnly) {
  const json::Value set = token_key_set(key_);
  ASSERT_EQ(set["keys"].size(), 1u);
  const json::Value& key = set["keys"].at(0);
  EXPECT_EQ(key["kid"].as_string(), key_.id());
  EXPECT_EQ(key["alg"].as_string(), "ES256");
  EXPECT_FALSE(key.contains("d"));
  EXPECT_EQ(http::unbase64url(key["x"].as_string()), key_.x());
}

}  // namespace
}  // namespace tessera::apiserver
