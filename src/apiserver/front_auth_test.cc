#include "apiserver/front_auth.h"

#include <gtest/gtest.h>

#include "apiserver/front_auth_fixture.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr std::string_view kAuthentication = "/apis/authentication.k8s.io/v1/";
constexpr std::string_view kAuthorization = "/apis/authorization.k8s.io/v1/";

std::string review(std::string_view group, std::string_view kind, std::string_view spec) {
  return fmt::format(R"({{"apiVersion":"{}.k8s.io/v1","kind":"{}","spec":{}}})", group, kind, spec);
}

TEST(FrontAuth, RightsComeFromBindingsAndEndWithThem) {
  FrontBench bench;
  const std::string pods = "/api/v1/namespaces/work/pods";
  EXPECT_EQ(bench.get("jane", pods)->status, 403);
  bench.bind("b", "work", "view", FrontBench::user("jane"));
  EXPECT_EQ(bench.get("jane", pods)->status, 200);
  EXPECT_EQ(bench.get("jane", "/api/v1/namespaces/default/pods")->status, 403);
  EXPECT_EQ(bench.get("jane", "/api/v1/namespaces/work")->status, 200) << "the namespace itself";
  EXPECT_EQ(bench.get("jane", "/api/v1/namespaces/default")->message(),
            "namespaces \"default\" is forbidden: User \"jane\" cannot get resource "
            "\"namespaces\" in API group \"\" in the namespace \"default\"");
  EXPECT_EQ(bench.get("joe", pods)->status, 403);
  bench.send("admin", "DELETE", std::string(FrontBench::kRbac) + "namespaces/work/rolebindings/b");
  EXPECT_EQ(bench.get("jane", pods)->status, 403);
}

TEST(FrontAuth, ListsOfOneNameAreHeldToTheName) {
  FrontBench bench;
  bench.must(std::string(FrontBench::kRbac) + "clusterroles",
             R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
              "metadata":{"name":"one"},"rules":[{"apiGroups":[""],"resources":["secrets"],
              "resourceNames":["a"],"verbs":["list","watch","get"]}]})");
  bench.bind("b", "work", "one", FrontBench::user("jane"));
  const std::string secrets = "/api/v1/namespaces/work/secrets";
  EXPECT_EQ(bench.get("jane", secrets)->status, 403);
  EXPECT_EQ(bench.get("jane", secrets + "?fieldSelector=metadata.name%3Da")->status, 200);
  EXPECT_EQ(bench.get("jane", secrets + "?fieldSelector=metadata.name%3Db")->status, 403);
  EXPECT_EQ(bench.get("jane", secrets + "/a")->status, 404);
}

TEST(FrontAuth, StrangersSeeHealthAndVersionOnly) {
  FrontBench bench;
  for (const char* path : {"/healthz", "/livez", "/readyz", "/version"}) {
    EXPECT_EQ(bench.get("", path)->status, 200) << path;
    EXPECT_EQ(bench.get("wrong", path)->status, 401) << path;
  }
  http::Request bad_certificate;
  bad_certificate.peer_refused = true;
  EXPECT_FALSE(authenticate(bad_certificate, bench.api()->access(), true)) << "worse than none";
  for (const char* path : {"/", "/api", "/apis", "/openapi/v2", "/api/v1/pods", "/readyz/ping"}) {
    EXPECT_EQ(bench.get("", path)->status, 401) << path;
  }
  EXPECT_EQ(bench.get("jane", "/apis")->status, 200);
  EXPECT_EQ(bench.get("jane", "/")->message(), "forbidden: User \"jane\" cannot get path \"/\"");
  EXPECT_EQ(bench.get("jane", "/nothing/<b>")->message(),
            "forbidden: User \"jane\" cannot get path \"/nothing/&lt;b&gt;\"");
}

TEST(FrontAuth, AccountTokensNameTheirAccountWhileItLives) {
  FrontBench bench;
  const std::string token = bench.account_token();
  const auto whoami = [&] {
    return bench.post(token, std::string(kAuthentication) + "selfsubjectreviews",
                      review("authentication", "SelfSubjectReview", "{}"));
  };
  // SelfSubjectReview has no spec: it is dropped with a warning.
  const Value info = whoami()->json()["status"]["userInfo"];
  EXPECT_EQ(info["username"].as_string(), "system:serviceaccount:work:bot");
  EXPECT_EQ(info["groups"].dump(),
            R"(["system:serviceaccounts","system:serviceaccounts:work","system:authenticated"])");
  EXPECT_TRUE(info["extra"].contains("authentication.kubernetes.io/credential-id"));
  bench.bind("b", "work", "view", R"({"kind":"ServiceAccount","name":"bot","namespace":"work"})");
  EXPECT_EQ(bench.get(token, "/api/v1/namespaces/work/pods")->status, 200);
  EXPECT_EQ(bench.get(token, "/api/v1/pods")->status, 403);
  bench.send("admin", "DELETE", "/api/v1/namespaces/work/serviceaccounts/bot");
  EXPECT_EQ(whoami()->status, 401);
  bench.must("/api/v1/namespaces/work/serviceaccounts",
             R"({"kind":"ServiceAccount","metadata":{"name":"bot"}})");
  EXPECT_EQ(whoami()->status, 401) << "another account of the same name";
}

TEST(FrontAuth, AccountTokensExpire) {
  FrontBench bench;
  const std::string token = bench.account_token(R"({"expirationSeconds":600})");
  EXPECT_EQ(bench.get(token, "/apis")->status, 200);
  bench.api().clock().advance(base::seconds(661));
  EXPECT_EQ(bench.get(token, "/apis")->status, 401);
}

TEST(FrontAuth, BoundTokensEndWithTheirPodOrSecret) {
  FrontBench bench;
  const Value secret =
      bench.must("/api/v1/namespaces/work/secrets", R"({"kind":"Secret","metadata":{"name":"s"}})");
  const std::string token =
      bench.account_token(R"({"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"s"}})");
  EXPECT_EQ(bench.get(token, "/apis")->status, 200);
  bench.send("admin", "DELETE", "/api/v1/namespaces/work/secrets/s");
  EXPECT_EQ(bench.get(token, "/apis")->status, 401);
  bench.must("/api/v1/namespaces/work/pods", R"({"kind":"Pod","metadata":{"name":"p"},"spec":
    {"serviceAccountName":"bot","containers":[{"name":"c","image":"registry.example/x:1"}]}})");
  const std::string pod_token =
      bench.account_token(R"({"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"}})");
  EXPECT_EQ(bench.get(pod_token, "/apis")->status, 200);
  bench.send("admin", "DELETE", "/api/v1/namespaces/work/pods/p?gracePeriodSeconds=0");
  EXPECT_EQ(bench.get(pod_token, "/apis")->status, 401);
}

TEST(FrontAuth, TokenRequestsAreChecked) {
  FrontBench bench;
  bench.must("/api/v1/namespaces/work/serviceaccounts", R"({"metadata":{"name":"other"}})");
  bench.must("/api/v1/namespaces/work/pods", R"({"kind":"Pod","metadata":{"name":"p"},"spec":
    {"serviceAccountName":"other","containers":[{"name":"c","image":"registry.example/x:1"}]}})");
  struct {
    std::string_view account, spec;
    int status;
    std::string_view message;
  } const cases[] = {
      {"bot", R"({"expirationSeconds":599})", 422,
       "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: "
       "599: may not specify a duration less than 10 minutes"},
      {"bot", R"({"expirationSeconds":4294967297})", 422,
       "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: "
       "4294967297: may not specify a duration larger than 2^32 seconds"},
      {"gone", "{}", 404, "serviceaccounts \"gone\" not found"},
      {"bot", R"({"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"}})", 400,
       "cannot bind token for serviceaccount \"bot\" to pod running with different serviceaccount "
       "name."},
      {"bot", R"({"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"q"}})", 404,
       "pods \"q\" not found"},
      {"bot", R"({"boundObjectRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"q"}})", 400,
       "cannot bind token to object of type apps/v1, Kind=Deployment"},
  };
  for (const auto& c : cases) {
    const auto answer = bench.post(
        "admin", fmt::format("/api/v1/namespaces/work/serviceaccounts/{}/token", c.account),
        review("authentication", "TokenRequest", c.spec));
    EXPECT_EQ(answer->status, c.status) << answer->body;
    EXPECT_EQ(answer->message(), c.message);
  }
  EXPECT_EQ(bench.get("admin", "/api/v1/namespaces/work/serviceaccounts/bot/token")->status, 405);
}

TEST(FrontAuth, TokenReviewsTellWhoseATokenIs) {
  FrontBench bench;
  const auto ask = [&](const std::string& token, std::string_view audiences) {
    return bench.must(
        std::string(kAuthentication) + "tokenreviews",
        review("authentication", "TokenReview",
               fmt::format(R"({{"token":"{}","audiences":{}}})", token, audiences)))["status"];
  };
  const std::string own = bench.account_token();
  const std::string vault = bench.account_token(R"({"audiences":["vault","db"]})");
  const Value known = ask(own, "[]");
  EXPECT_TRUE(known["authenticated"].as_bool());
  EXPECT_EQ(known["user"]["username"].as_string(), "system:serviceaccount:work:bot");
  EXPECT_EQ(known["audiences"].dump(), R"(["https://kubernetes.default.svc"])");
  EXPECT_FALSE(ask(vault, "[]")["authenticated"].as_bool());
  EXPECT_EQ(ask(vault, R"(["db","web"])")["audiences"].dump(), R"(["db"])");
  EXPECT_EQ(bench.get(vault, "/apis")->status, 401) << "not for this server";
  EXPECT_EQ(ask("jane", "[]")["user"]["username"].as_string(), "jane");
  EXPECT_EQ(ask("nonsense", "[]")["error"].as_string(), "invalid bearer token");
  EXPECT_EQ(bench
                .post("admin", std::string(kAuthentication) + "tokenreviews",
                      review("authentication", "TokenReview", "{}"))
                ->status,
            400);
}

TEST(FrontAuth, MayIAndMayThey) {
  FrontBench bench;
  bench.bind("b", "work", "view", FrontBench::user("jane"));
  const auto self = [&](std::string_view spec) {
    return bench
        .post("jane", std::string(kAuthorization) + "selfsubjectaccessreviews",
              review("authorization", "SelfSubjectAccessReview", spec))
        ->json()["status"];
  };
  EXPECT_TRUE(self(R"({"resourceAttributes":{"namespace":"work","verb":"list",
                       "resource":"pods"}})")["allowed"]
                  .as_bool());
  EXPECT_FALSE(self(R"({"resourceAttributes":{"namespace":"work","verb":"delete",
                        "resource":"pods"}})")["allowed"]
                   .as_bool());
  EXPECT_TRUE(
      self(R"({"nonResourceAttributes":{"path":"/apis","verb":"get"}})")["allowed"].as_bool());
  const std::string reviews = std::string(kAuthorization) + "subjectaccessreviews";
  const std::string ask = review("authorization", "SubjectAccessReview",
                                 R"({"user":"jane","resourceAttributes":{"namespace":"work",
                                     "verb":"get","group":"apps","resource":"deployments"}})");
  EXPECT_EQ(bench.post("jane", reviews, ask)->status, 403) << "only about herself";
  EXPECT_EQ(bench.must(reviews, ask)["status"]["reason"].as_string(),
            "RBAC: allowed by RoleBinding \"b/work\" of ClusterRole \"view\" to User \"jane\"");
  const auto wrong =
      bench.post("admin", reviews, review("authorization", "SubjectAccessReview", "{}"));
  EXPECT_EQ(wrong->status, 422);
  EXPECT_EQ(wrong->json()["details"]["causes"].size(), 2u);
  const std::string local =
      std::string(kAuthorization) + "namespaces/work/localsubjectaccessreviews";
  EXPECT_TRUE(bench
                  .must(local, review("authorization", "LocalSubjectAccessReview",
                                      R"({"user":"jane","resourceAttributes":{"namespace":"work",
                                           "verb":"get","resource":"pods"}})"))["status"]["allowed"]
                  .as_bool());
  EXPECT_EQ(bench
                .post("admin", local,
                      review("authorization", "LocalSubjectAccessReview",
                             R"({"user":"jane","resourceAttributes":{"namespace":"x",
                                  "verb":"get","resource":"pods"}})"))
                ->status,
            422);
}

TEST(FrontAuth, RulesReviewListsWhatHolds) {
  FrontBench bench;
  bench.bind("b", "work", "view", FrontBench::user("jane"));
  const auto rules = [&](std::string_view ns) {
    return bench
        .post("jane", std::string(kAuthorization) + "selfsubjectrulesreviews",
              review("authorization", "SelfSubjectRulesReview",
                     fmt::format(R"({{"namespace":"{}"}})", ns)))
        ->json()["status"];
  };
  EXPECT_GT(rules("work")["resourceRules"].size(), rules("default")["resourceRules"].size());
  EXPECT_FALSE(rules("work")["nonResourceRules"].empty());
  EXPECT_FALSE(rules("work")["incomplete"].as_bool(true));
  EXPECT_TRUE(rules("")["resourceRules"].is_null());
}

TEST(FrontAuth, ReviewsAreNeverStoredAndOnlyCreated) {
  FrontBench bench;
  const std::string reviews = std::string(kAuthentication) + "tokenreviews";
  const uint64_t before = bench.api()->revision();
  bench.must(reviews, review("authentication", "TokenReview", R"({"token":"x"})"));
  EXPECT_EQ(bench.api()->revision(), before);
  EXPECT_EQ(bench.get("admin", reviews)->status, 405);
  EXPECT_EQ(bench.get("admin", reviews + "/x")->status, 405);
  EXPECT_EQ(bench.send("admin", "DELETE", reviews)->status, 405);
  const Value resources = bench.get("admin", "/apis/authentication.k8s.io/v1")->json();
  for (const Value& resource : resources["resources"].items()) {
    EXPECT_EQ(resource["verbs"].dump(), R"(["create"])");
  }
  const Value paths = bench.get("admin", "/openapi/v3/apis/authentication.k8s.io/v1")->json();
  EXPECT_EQ(paths["paths"][reviews].members().size(), 1u) << paths["paths"][reviews].dump();
}

TEST(FrontAuth, ImpersonationNeedsTheRightForEachPart) {
  FrontBench bench;
  const auto as = [&](std::string_view token, http::Headers headers) {
    return bench.send(std::string(token), "POST",
                      std::string(kAuthentication) + "selfsubjectreviews",
                      R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})",
                      std::move(headers));
  };
  const http::Headers whole = {{"impersonate-user", "bob"},
                               {"impersonate-group", "dev"},
                               {"impersonate-uid", "42"},
                               {"impersonate-extra-scopes%2fa", "one"},
                               {"impersonate-extra-scopes%2fa", "two"}};
  EXPECT_EQ(as("admin", whole)->json()["status"]["userInfo"].dump(),
            R"({"extra":{"scopes/a":["one","two"]},"groups":["dev","system:authenticated"],)"
            R"("uid":"42","username":"bob"})");
  EXPECT_EQ(as("jane", whole)->message(),
            "users \"bob\" is forbidden: User \"jane\" cannot impersonate resource \"users\" in "
            "API group \"\" at the cluster scope");
  bench.must(std::string(FrontBench::kRbac) + "clusterroles",
             R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
              "metadata":{"name":"mask"},"rules":[
              {"apiGroups":[""],"resources":["users"],"resourceNames":["bob"],
               "verbs":["impersonate"]},
              {"apiGroups":[""],"resources":["groups"],"resourceNames":["dev"],
               "verbs":["impersonate"]}]})");
  bench.bind("mask", "", "mask", FrontBench::user("jane"));
  EXPECT_EQ(as("jane", {{"impersonate-user", "bob"}, {"impersonate-group", "dev"}})->status, 201);
  EXPECT_EQ(
      as("jane", {{"impersonate-user", "bob"}, {"impersonate-group", "system:masters"}})->status,
      403);
  EXPECT_EQ(as("jane", {{"impersonate-user", "eve"}})->status, 403);
  EXPECT_NE(as("jane", whole)->message().find("userextras/scopes/a"), std::string::npos);
  EXPECT_EQ(as("admin", {{"impersonate-group", "dev"}})->status, 400);
  const Value account = as("admin", {{"impersonate-user", "system:serviceaccount:work:bot"}})
                            ->json()["status"]["userInfo"];
  EXPECT_EQ(account["groups"].dump(),
            R"(["system:serviceaccounts","system:serviceaccounts:work","system:authenticated"])");
}

TEST(FrontAuth, NobodyGrantsWhatTheyDoNotHold) {
  FrontBench bench;
  bench.bind("b", "work", "admin", FrontBench::user("jane"));
  const std::string base = std::string(FrontBench::kRbac) + "namespaces/work/";
  const auto role = [](std::string_view name, std::string_view rule) {
    return fmt::format(R"({{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role",
      "metadata":{{"name":"{}"}},"rules":[{}]}})",
                       name, rule);
  };
  const auto binding = [](std::string_view name, std::string_view kind, std::string_view target) {
    return fmt::format(R"({{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
      "metadata":{{"name":"{}"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"{}",
      "name":"{}"}},"subjects":[{}]}})",
                       name, kind, target, FrontBench::user("joe"));
  };
  constexpr std::string_view kPods = R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})";
  constexpr std::string_view kNodes = R"({"verbs":["get"],"apiGroups":[""],"resources":["nodes"]})";
  EXPECT_EQ(bench.post("jane", base + "roles", role("r", kPods))->status, 201);
  const auto more = bench.post("jane", base + "roles", role("n", kNodes));
  EXPECT_EQ(more->status, 403);
  EXPECT_EQ(more->message(),
            "roles.rbac.authorization.k8s.io \"n\" is forbidden: user \"jane\" "
            "(groups=[\"team\" \"system:authenticated\"]) is attempting to grant RBAC permissions "
            "not currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\"]}");
  EXPECT_EQ(bench.send("jane", "PUT", base + "roles/r", role("r", kNodes))->status, 403);
  EXPECT_EQ(bench.post("jane", base + "rolebindings", binding("v", "ClusterRole", "view"))->status,
            201);
  EXPECT_EQ(bench.post("jane", base + "rolebindings", binding("x", "ClusterRole", "cluster-admin"))
                ->status,
            403);
  EXPECT_EQ(bench.post("jane", base + "rolebindings", binding("y", "Role", "gone"))->status, 404);
  bench.must(base + "roles",
             role("binder", R"({"verbs":["bind"],"apiGroups":["rbac.authorization.k8s.io"],
                                "resources":["clusterroles"],"resourceNames":["cluster-admin"]})"));
  bench.must(base + "rolebindings",
             fmt::format(R"({{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
      "metadata":{{"name":"binder"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io",
      "kind":"Role","name":"binder"}},"subjects":[{}]}})",
                         FrontBench::user("jane")));
  EXPECT_EQ(bench.post("jane", base + "rolebindings", binding("x", "ClusterRole", "cluster-admin"))
                ->status,
            201);
}

TEST(FrontAuth, AnUpdateThatMakesTheObjectNeedsTheRightToCreate) {
  FrontBench bench;
  bench.must(std::string(FrontBench::kRbac) + "clusterroles",
             R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":
              {"name":"put"},"rules":[{"verbs":["update"],"apiGroups":["coordination.k8s.io"],
              "resources":["leases"]}]})");
  bench.bind("put", "work", "put", FrontBench::user("jane"));
  const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/work/leases/l";
  const std::string body =
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"},"spec":{}})";
  EXPECT_EQ(bench.send("jane", "PUT", lease, body)->message(),
            "leases.coordination.k8s.io \"l\" is forbidden: User \"jane\" cannot create resource "
            "\"leases\" in API group \"coordination.k8s.io\" in the namespace \"work\"");
  EXPECT_EQ(bench.send("admin", "PUT", lease, body)->status, 201);
  EXPECT_EQ(bench.send("jane", "PUT", lease, body)->status, 200);
}

TEST(FrontAuth, AggregatedRolesAreWrittenOut) {
  FrontBench bench;
  const std::string view = std::string(FrontBench::kRbac) + "clusterroles/view";
  const size_t rules = bench.get("admin", view)->json()["rules"].size();
  EXPECT_GT(rules, 5u);
  bench.must(std::string(FrontBench::kRbac) + "clusterroles",
             R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":
              {"name":"q","labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}},
              "rules":[{"verbs":["get"],"apiGroups":["tessera.dev"],"resources":["queues"]}]})");
  EXPECT_EQ(bench.get("admin", view)->json()["rules"].size(), rules + 1);
}

TEST(FrontAuth, IssuerDocumentsAreThereForThoseWhoMay) {
  FrontBench bench;
  const std::string token = bench.account_token();
  EXPECT_EQ(bench.get(token, "/openid/v1/jwks")->json()["keys"].size(), 1u);
  EXPECT_EQ(bench.get(token, "/.well-known/openid-configuration")->json()["issuer"].as_string(),
            "https://kubernetes.default.svc");
  EXPECT_EQ(bench.get("jane", "/openid/v1/jwks")->status, 403);
  EXPECT_EQ(bench.get("", "/openid/v1/jwks")->status, 401);
}

}  // namespace
}  // namespace tessera::apiserver
