#include "apiserver/node_access.h"

#include <gtest/gtest.h>

#include "apiserver/front_auth_fixture.h"
#include "apiserver/rbac_defaults.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using json::Value;

class NodeAccess : public testing::Test {
 protected:
  NodeAccess() {
    for (const char* node : {"n1", "n2"}) {
      bench_.must("/api/v1/nodes", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", node));
    }
    for (const char* name : {"volume", "env", "pull", "other"}) {
      bench_.must(core_ + "secrets", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name));
    }
    bench_.must(core_ + "pods", R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1",
      "imagePullSecrets":[{"name":"pull"}],
      "containers":[{"name":"c","image":"i","envFrom":[{"secretRef":{"name":"env"}}]}],
      "volumes":[{"name":"v","secret":{"secretName":"volume"}},
                 {"name":"w","persistentVolumeClaim":{"claimName":"claim"}}]}})");
  }
  // As the kubelet of a node.
  std::shared_ptr<TestAnswer> as(std::string_view node, std::string method, std::string path,
                                 std::string body = {}) {
    return bench_.send("admin", std::move(method), std::move(path), std::move(body),
                       {{"impersonate-user", "system:node:" + std::string(node)},
                        {"impersonate-group", "system:nodes"}});
  }
  int get(std::string_view node, const std::string& path) { return as(node, "GET", path)->status; }

  FrontBench bench_;
  const std::string core_ = "/api/v1/namespaces/work/";
};

TEST_F(NodeAccess, SecretsAreReadByTheNodesWhosePodsReferToThem) {
  for (const char* name : {"volume", "env", "pull"}) {
    EXPECT_EQ(get("n1", core_ + "secrets/" + name), 200) << name;
    EXPECT_EQ(get("n2", core_ + "secrets/" + name), 403) << name;
  }
  EXPECT_EQ(as("n1", "GET", core_ + "secrets/other")->message(),
            "secrets \"other\" is forbidden: User \"system:node:n1\" cannot get resource "
            "\"secrets\" in API group \"\" in the namespace \"work\": no relationship found "
            "between node 'n1' and this object");
  EXPECT_EQ(get("n1", core_ + "secrets"), 403);
  EXPECT_EQ(get("n1", core_ + "secrets?fieldSelector=metadata.name%3Denv"), 200);
  EXPECT_EQ(as("n1", "DELETE", core_ + "secrets/env")->status, 403);
  EXPECT_EQ(get("n1", core_ + "persistentvolumeclaims/claim"), 404) << "it may, there is none";
  EXPECT_EQ(get("n2", core_ + "persistentvolumeclaims/claim"), 403);
  EXPECT_EQ(as("n1", "DELETE", core_ + "pods/p?gracePeriodSeconds=0")->status, 200);
  EXPECT_EQ(get("n1", core_ + "secrets/env"), 403) << "the pod is gone";
}

TEST_F(NodeAccess, NodesTouchThemselvesAlone) {
  EXPECT_EQ(get("n1", "/api/v1/nodes/n1"), 200);
  EXPECT_EQ(get("n1", "/api/v1/nodes/n2"), 403);
  EXPECT_EQ(get("n1", "/api/v1/nodes"), 403);
  EXPECT_EQ(as("n1", "POST", "/api/v1/nodes", R"({"metadata":{"name":"n3"}})")->message(),
            "nodes \"n3\" is forbidden: node \"n1\" is not allowed to modify node \"n3\"");
  EXPECT_EQ(as("n3", "POST", "/api/v1/nodes", R"({"metadata":{"name":"n3"}})")->status, 201);
  EXPECT_EQ(as("n1", "DELETE", "/api/v1/nodes/n1")->status, 403);
}

TEST_F(NodeAccess, PodsOfOthersAreOutOfReach) {
  bench_.must(core_ + "pods",
              R"({"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  EXPECT_EQ(get("n1", core_ + "pods/p"), 200);
  EXPECT_EQ(get("n1", core_ + "pods/q"), 403);
  EXPECT_EQ(get("n1", "/api/v1/pods"), 403);
  EXPECT_EQ(get("n1", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"), 200);
  EXPECT_EQ(get("n1", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2"), 403);
  EXPECT_EQ(as("n2", "DELETE", core_ + "pods/p")->message(),
            "pods \"p\" is forbidden: node \"n2\" can only delete pods with spec.nodeName set to "
            "itself");
  EXPECT_EQ(as("n1", "POST", core_ + "pods",
               R"({"metadata":{"name":"r"},"spec":{"nodeName":"n1",
                  "containers":[{"name":"c","image":"i"}]}})")
                ->message(),
            "pods \"r\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" "
            "annotation, node \"n1\" can only create mirror pods");
  const std::string eviction = R"({"apiVersion":"policy/v1","kind":"Eviction",
    "metadata":{"name":"p"}})";
  EXPECT_EQ(as("n2", "POST", core_ + "pods/p/eviction", eviction)->status, 403);
  EXPECT_EQ(as("n1", "POST", core_ + "pods/p/eviction", eviction)->status, 201);
}

TEST_F(NodeAccess, OnlyTheGroupMakesANode) {
  const auto got = bench_.get("admin", "/api/v1/nodes/n1",
                              {{"impersonate-user", "system:node:n1"}, {"impersonate-group", "x"}});
  EXPECT_EQ(got->status, 403);
  EXPECT_FALSE(node_of({.user = "system:node:a", .groups = {"system:authenticated"}}));
  EXPECT_FALSE(node_of({.user = "admin", .groups = {"system:nodes"}}));
  EXPECT_EQ(node_of({.user = "system:node:a", .groups = {"system:nodes"}}), "a");
  EXPECT_EQ(get("", "/api/v1/nodes/n1"), 403) << "the kubelet of no node";
}

Value role_of(std::string_view rules, std::string_view autoupdate = "true") {
  return TestApi::parse(fmt::format(
      R"({{"metadata":{{"name":"r","annotations":
         {{"rbac.authorization.kubernetes.io/autoupdate":"{}"}}}},"rules":{}}})",
      autoupdate, rules));
}

TEST(DefaultRoles, AnOlderRoleGetsTheRulesThatItLacks) {
  const Value wanted = role_of(
      R"([{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]},
          {"nonResourceURLs":["/metrics"],"verbs":["get"]}])");
  const Value old = role_of(
      R"([{"apiGroups":["*"],"resources":["pods"],"verbs":["get"]},
          {"apiGroups":["own"],"resources":["x"],"verbs":["y"]}])");
  const Value now = reconciled(old, wanted);
  EXPECT_EQ(now["rules"].size(), 4u) << now.dump();
  EXPECT_TRUE(not_covered(policy_rules(now["rules"]), policy_rules(wanted["rules"])).empty());
  EXPECT_EQ(now["rules"].at(1), old["rules"].at(1)) << "what others added stays";
  EXPECT_EQ(reconciled(now, wanted), now);
  const Value kept = role_of("[]", "false");
  EXPECT_EQ(reconciled(kept, wanted), kept);
}

TEST(DefaultRoles, AreMendedWhenTheServerStartsAgain) {
  const base::TempDir dir;
  const auto open = [&] {
    Api::Options options;
    options.data_dir = dir.path();
    return std::make_unique<TestApi>(std::move(options));
  };
  kube::Request request;
  request.gvr = {"rbac.authorization.k8s.io", "v1", "clusterroles"};
  request.name = "system:node";
  size_t rules = 0;
  {
    const auto api = open();
    auto found = api->reply(request).result;
    ASSERT_TRUE(found) << found.error().message;
    rules = (*found)["rules"].size();
    Value less = *found;
    less.set("rules", Value::array());
    kube::Request update = request;
    update.verb = kube::Verb::kUpdate;
    update.body = less;
    ASSERT_TRUE(api->reply(update).result);
  }
  const auto again = open();
  const auto found = again->reply(request).result;
  ASSERT_TRUE(found);
  EXPECT_GE((*found)["rules"].size(), rules);
}

}  // namespace
}  // namespace tessera::apiserver
