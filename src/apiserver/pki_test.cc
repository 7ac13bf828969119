#include <gtest/gtest.h>
#include <sys/stat.h>

#include "apiserver/front.h"
#include "base/clock.h"
#include "base/file.h"
#include "http/tls.h"
#include "kube/kubeconfig.h"

namespace tessera::apiserver {
namespace {

unsigned mode_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777U : 0;
}

TEST(Pki, Is_made_once_and_then_read) {
  const base::TempDir dir;
  base::ManualClock clock;
  const std::string folder = dir.path() + "/pki";
  const auto first = load_or_make_pki(folder, clock);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = load_or_make_pki(folder, clock);
  ASSERT_TRUE(second);
  EXPECT_EQ(first->ca_certificate_pem, second->ca_certificate_pem);
  EXPECT_EQ(first->admin_key_pem, second->admin_key_pem);
  EXPECT_EQ(mode_of(folder), 0700U);
  for (const char* key : {"/ca.key", "/server.key", "/admin.key"}) {
    EXPECT_EQ(mode_of(folder + key), 0600U) << key;
  }
}

TEST(Pki, Certificates_near_their_end_are_renewed_by_the_same_authority) {
  const base::TempDir dir;
  base::ManualClock clock;
  const auto first = load_or_make_pki(dir.path(), clock);
  clock.advance(base::seconds(86400) * 340);
  const auto second = load_or_make_pki(dir.path(), clock);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(first->ca_certificate_pem, second->ca_certificate_pem);
  EXPECT_NE(first->server_certificate_pem, second->server_certificate_pem);
  EXPECT_TRUE(http::check_key_pair({second->server_certificate_pem, second->server_key_pem},
                                   second->ca_certificate_pem));
}

TEST(Pki, A_damaged_or_half_authority_is_refused_with_the_mend) {
  for (const char* file : {"/ca.crt", "/ca.key"}) {
    const base::TempDir dir;
    const base::ManualClock clock;
    ASSERT_TRUE(load_or_make_pki(dir.path(), clock));
    ASSERT_TRUE(base::write_file(dir.path() + file, "not a key"));
    auto damaged = load_or_make_pki(dir.path(), clock);
    ASSERT_FALSE(damaged);
    EXPECT_NE(damaged.error().message.find("delete the folder"), std::string::npos);
    ::unlink((dir.path() + file).c_str());
    auto half = load_or_make_pki(dir.path(), clock);
    ASSERT_FALSE(half);
    EXPECT_NE(half.error().message.find("only one of"), std::string::npos);
  }
}

TEST(Pki, A_damaged_server_certificate_is_made_anew) {
  const base::TempDir dir;
  const base::ManualClock clock;
  ASSERT_TRUE(load_or_make_pki(dir.path(), clock));
  ASSERT_TRUE(base::write_file(dir.path() + "/server.crt", "not a certificate"));
  const auto again = load_or_make_pki(dir.path(), clock);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_NE(again->server_certificate_pem.find("BEGIN CERTIFICATE"), std::string::npos);
}

TEST(Pki, The_kubeconfig_reads_back) {
  const base::TempDir dir;
  const base::ManualClock clock;
  const auto pki = load_or_make_pki(dir.path(), clock);
  const auto config =
      kube::parse_kubeconfig(kubeconfig(*pki, "https://127.0.0.1:6443"), dir.path());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->client.base_url, "https://127.0.0.1:6443");
  EXPECT_EQ(config->client.private_key_pem, pki->admin_key_pem);
}

}  // namespace
}  // namespace tessera::apiserver
