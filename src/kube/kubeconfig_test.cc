#include "kube/kubeconfig.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tessera::kube {
namespace {

constexpr const char* kText = R"(apiVersion: v1
kind: Config
current-context: two
clusters:
- name: c
  cluster: {server: "https://127.0.0.1:6443/", certificate-authority-data: Q0E=}
- name: d
  cluster: {server: "https://[::1]:1", certificate-authority: ca.pem}
contexts:
- {name: one, context: {cluster: c, user: u}}
- {name: two, context: {cluster: c, user: t, namespace: team}}
- {name: three, context: {cluster: d, user: f}}
- {name: bad-cluster, context: {cluster: x, user: u}}
- {name: exec, context: {cluster: c, user: e}}
- {name: half, context: {cluster: c, user: h}}
- {name: crooked, context: {cluster: c, user: b}}
users:
- {name: u, user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}}
- {name: t, user: {token: secret}}
- {name: f, user: {tokenFile: token}}
- {name: e, user: {exec: {command: login}}}
- {name: h, user: {client-certificate-data: Q0VSVA==}}
- {name: b, user: {client-certificate-data: "!!!", client-key-data: S0VZ}}
)";

TEST(Kubeconfig, Gives_server_and_identity_of_the_current_context) {
  const auto config = parse_kubeconfig(kText, ".");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->context, "two");
  EXPECT_EQ(config->ns, "team");
  EXPECT_EQ(config->client.base_url, "https://127.0.0.1:6443");
  EXPECT_EQ(config->client.ca_pem, "CA");
  EXPECT_EQ(config->client.bearer_token, "secret");
  const auto one = parse_kubeconfig(kText, ".", "one");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->ns, "default");
  EXPECT_EQ(one->client.certificate_pem, "CERT");
  EXPECT_EQ(one->client.private_key_pem, "KEY");
}

TEST(Kubeconfig, Files_are_found_beside_it) {
  const base::TempDir dir;
  ASSERT_TRUE(base::write_file(dir.path() + "/config", kText));
  ASSERT_TRUE(base::write_file(dir.path() + "/ca.pem", "CA2"));
  ASSERT_TRUE(base::write_file(dir.path() + "/token", "t0ken\n"));
  const auto config = load_kubeconfig(dir.path() + "/config", "three");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->client.ca_pem, "CA2");
  EXPECT_EQ(config->client.bearer_token, "t0ken");
  EXPECT_EQ(load_kubeconfig(dir.path() + "/none").error().code, base::Code::kNotFound);
}

TEST(Kubeconfig, Errors_name_file_and_entry) {
  const auto message = [](std::string_view context) {
    const auto config = parse_kubeconfig(kText, ".", context, "my.yaml");
    return config ? "no error" : config.error().message;
  };
  EXPECT_EQ(message("nope"),
            "my.yaml: no context named \"nope\"; there are: one, two, three, bad-cluster, exec, "
            "half, crooked");
  EXPECT_EQ(message("bad-cluster"), "my.yaml: no cluster named \"x\"; there are: c, d");
  EXPECT_EQ(message("exec"),
            "my.yaml: users.e.exec: is not supported; use a client certificate or a token");
  EXPECT_EQ(message("half"),
            "my.yaml: users.h: has only one of client-certificate and client-key; give both");
  EXPECT_TRUE(message("crooked").starts_with("my.yaml: users.b.client-certificate-data: "))
      << message("crooked");
  EXPECT_EQ(parse_kubeconfig("a: [", ".").error().code, base::Code::kBadRequest);
  EXPECT_EQ(parse_kubeconfig("kind: Pod", ".").error().message,
            "kubeconfig: is no kubeconfig: kind is \"Pod\", not \"Config\"");
  EXPECT_EQ(parse_kubeconfig("kind: Config", ".").error().code, base::Code::kNotFound);
}

TEST(Kubeconfig, What_is_made_reads_back) {
  const auto config = parse_kubeconfig(
      make_kubeconfig({"tessera", "https://127.0.0.1:7443", "CA", "CERT", "KEY"}), ".");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->context, "tessera");
  EXPECT_EQ(config->client.base_url, "https://127.0.0.1:7443");
  EXPECT_EQ(config->client.ca_pem, "CA");
  EXPECT_EQ(config->client.certificate_pem, "CERT");
  EXPECT_EQ(config->client.private_key_pem, "KEY");
}

TEST(InCluster, Reads_the_service_account) {
  const base::TempDir dir;
  ASSERT_TRUE(base::write_file(dir.path() + "/token", "tok"));
  ASSERT_TRUE(base::write_file(dir.path() + "/ca.crt", "CA"));
  ASSERT_TRUE(base::write_file(dir.path() + "/namespace", "ns"));
  const auto config = in_cluster_config("fd00::1", "443", dir.path());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->client.base_url, "https://[fd00::1]:443");
  EXPECT_EQ(config->ns, "ns");
  EXPECT_FALSE(in_cluster_config("", "", dir.path()));
}

}  // namespace
}  // namespace tessera::kube
