#include "apiserver/routes.h"

#include <gtest/gtest.h>

#include "apiserver/routes_body.h"
#include "apiserver/routes_protobuf.h"
#include "apiserver/routes_test_kinds.h"
#include "http/tls.h"
#include "http/uri.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using kube::Verb;

base::Result<Operation> plan(std::string_view method, std::string_view target) {
  TS_TRY(const http::Target parsed, http::parse_target(target));
  TS_TRY(const ResourcePath path, find_resource(test_kinds(), parsed.segments));
  return plan_operation(path, method, parsed.query);
}

struct Case {
  std::string_view method;
  std::string_view target;
  std::string_view verb;  // or the error's reason
  std::string_view resource;
  std::string_view ns;
  std::string_view name;
};

TEST(Routes, NameVerbAndResource) {
  const Case cases[] = {
      {"GET", "/api/v1/pods", "list", "pods", "", ""},
      {"GET", "/api/v1/pods?watch=true", "watch", "pods", "", ""},
      {"GET", "/api/v1/pods?watch", "watch", "pods", "", ""},
      {"GET", "/api/v1/pods?watch=0", "list", "pods", "", ""},
      {"GET", "/api/v1/namespaces/a/pods", "list", "pods", "a", ""},
      {"POST", "/api/v1/namespaces/a/pods", "create", "pods", "a", ""},
      {"DELETE", "/api/v1/namespaces/a/pods", "deletecollection", "pods", "a", ""},
      {"GET", "/api/v1/namespaces/a/pods/p", "get", "pods", "a", "p"},
      {"GET", "/api/v1/namespaces/a/pods/p?watch=true", "get", "pods", "a", "p"},
      {"PUT", "/api/v1/namespaces/a/pods/p", "update", "pods", "a", "p"},
      {"PATCH", "/api/v1/namespaces/a/pods/p", "patch", "pods", "a", "p"},
      {"DELETE", "/api/v1/namespaces/a/pods/p", "delete", "pods", "a", "p"},
      {"POST", "/api/v1/namespaces/a/pods/p/binding", "create", "pods", "a", "p"},
      {"PUT", "/api/v1/namespaces/a/pods/p/status", "update", "pods", "a", "p"},
      {"GET", "/api/v1/namespaces", "list", "namespaces", "", ""},
      {"GET", "/api/v1/namespaces/a", "get", "namespaces", "", "a"},
      {"PATCH", "/api/v1/namespaces/a/status", "patch", "namespaces", "", "a"},
      {"GET", "/apis/apps/v1/namespaces/a/deployments/d/scale", "get", "deployments", "a", "d"},
      {"GET", "/api/v1/watch/namespaces/a/pods", "watch", "pods", "a", ""},
      {"GET", "/api/v1/watch/namespaces/a/pods/p", "watch", "pods", "a", ""},
      {"GET", "/api/v1/watch/nodes", "watch", "nodes", "", ""},
      {"GET", "/api/v1/namespaces/a/pods/p/exec", "get", "pods", "a", "p"},
      {"POST", "/api/v1/namespaces/a/pods/p/portforward", "create", "pods", "a", "p"},
      // refused
      {"HEAD", "/api/v1/pods", "MethodNotAllowed", "", "", ""},
      {"HEAD", "/api/v1/namespaces/a/pods/p", "MethodNotAllowed", "", "", ""},
      {"DELETE", "/api/v1/namespaces/a/pods/p/exec", "MethodNotAllowed", "", "", ""},
      {"POST", "/api/v1/pods", "MethodNotAllowed", "", "", ""},
      {"DELETE", "/api/v1/pods", "MethodNotAllowed", "", "", ""},
      {"DELETE", "/api/v1/namespaces", "MethodNotAllowed", "", "", ""},
      {"POST", "/api/v1/namespaces/a/pods/p", "MethodNotAllowed", "", "", ""},
      {"GET", "/api/v1/namespaces/a/pods/p/binding", "MethodNotAllowed", "", "", ""},
      {"DELETE", "/api/v1/namespaces/a/pods/p/status", "MethodNotAllowed", "", "", ""},
      {"OPTIONS", "/api/v1/pods", "MethodNotAllowed", "", "", ""},
      {"GET", "/api/v1/pods/p", "NotFound", "", "", ""},
      {"GET", "/api/v1/widgets", "NotFound", "", "", ""},
      {"GET", "/api/v2/pods", "NotFound", "", "", ""},
      {"GET", "/apis/apps/v1/pods", "NotFound", "", "", ""},
      {"GET", "/api/v1/namespaces/a/nodes", "NotFound", "", "", ""},
      {"GET", "/api/v1/namespaces/a/pods/p/scale", "NotFound", "", "", ""},
      {"GET", "/api/v1/namespaces/a/pods/p/status/more", "NotFound", "", "", ""},
      {"GET", "/nothing/here", "NotFound", "", "", ""},
      {"GET", "/api/v1/namespaces/a/pods/x%2Fy", "NotFound", "", "", ""},
      {"GET", "/api/v1/namespaces/a//pods", "NotFound", "", "", ""},
      {"GET", "/api/v1/namespaces/a/pods/x%25y", "BadRequest", "", "", ""},
      {"GET", "/api/v1/namespaces/a/pods/%2e%2e", "BadRequest", "", "", ""},
      {"GET", "/api/v1/namespaces/%2e%2e/pods", "InternalError", "", "", ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.method, c.target));
    const auto operation = plan(c.method, c.target);
    if (c.resource.empty()) {
      ASSERT_FALSE(operation);
      EXPECT_EQ(base::reason_of(operation.error().code), c.verb);
      continue;
    }
    ASSERT_TRUE(operation);
    EXPECT_EQ(operation->verb, c.verb);
    EXPECT_EQ(operation->watch, c.verb == "watch");
    EXPECT_EQ(operation->request.gvr.resource, c.resource);
    EXPECT_EQ(operation->request.ns, c.ns);
    EXPECT_EQ(operation->request.name, c.name);
  }
}

TEST(Routes, OldWatchPathOfOneObjectSelectsItByName) {
  const auto operation =
      plan("GET", "/api/v1/watch/namespaces/a/pods/p?fieldSelector=spec.nodeName%3Dn");
  ASSERT_TRUE(operation);
  EXPECT_EQ(operation->request.option("fieldSelector"), "metadata.name=p,spec.nodeName=n");
}

struct Read {
  base::Status status;
  kube::Request request;
  std::vector<std::string> warnings;
};

Read read(Verb verb, std::string_view type, std::string_view bytes, Query query = {}) {
  Read out;
  out.request.verb = verb;
  out.request.query = std::move(query);
  const Kind* pod = test_kinds().find({"", "v1", "pods"});
  out.status = read_body({type, bytes}, *pod, out.request, &out.warnings);
  return out;
}

TEST(RoutesBody, ReadsJsonAndYaml) {
  for (const auto& [type, text] :
       {std::pair{"application/json", R"({"kind":"Pod","metadata":{"name":"p"}})"},
        std::pair{"application/json; charset=utf-8", R"({"kind":"Pod","metadata":{"name":"p"}})"},
        std::pair{"", R"({"kind":"Pod","metadata":{"name":"p"}})"},
        std::pair{"application/yaml", "kind: Pod\nmetadata:\n  name: p\n"}}) {
    const Read got = read(Verb::kCreate, type, text);
    ASSERT_TRUE(got.status) << type << got.status.error().message;
    EXPECT_EQ(got.request.body.get("metadata", "name").as_string(), "p") << type;
  }
}

TEST(RoutesBody, DuplicateKeysAreJudgedByFieldValidation) {
  constexpr std::string_view kText = R"({"kind":"Pod","spec":{"nodeName":"a","nodeName":"b"}})";
  const Read strict =
      read(Verb::kCreate, "application/json", kText, {{"fieldValidation", "Strict"}});
  ASSERT_FALSE(strict.status);
  EXPECT_EQ(strict.status.error().code, Code::kBadRequest);
  EXPECT_EQ(strict.status.error().message,
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: "
            "duplicate field \"spec.nodeName\"");
  const Read warn = read(Verb::kCreate, "application/json", kText);
  ASSERT_TRUE(warn.status);
  EXPECT_EQ(warn.warnings, std::vector<std::string>{"duplicate field \"spec.nodeName\""});
  EXPECT_EQ(warn.request.body.get("spec", "nodeName").as_string(), "b");
  const Read ignore =
      read(Verb::kCreate, "application/json", kText, {{"fieldValidation", "Ignore"}});
  EXPECT_TRUE(ignore.status);
  EXPECT_TRUE(ignore.warnings.empty());
  EXPECT_FALSE(read(Verb::kCreate, "application/json", "{}", {{"fieldValidation", "x"}}).status);
}

TEST(Routes, NumbersOfAListAreNumbers) {
  Query query = {{"limit", "-1"}, {"timeoutSeconds", "5"}};
  EXPECT_TRUE(check_list_query(query));
  EXPECT_EQ(query, (Query{{"timeoutSeconds", "5"}}));
  for (const std::string_view word : {"x", "1.5", "1 ", "99999999999999999999"}) {
    query = {{"limit", std::string(word)}};
    const auto checked = check_list_query(query);
    ASSERT_FALSE(checked) << word;
    EXPECT_EQ(checked.error().code, Code::kBadRequest);
  }
}

TEST(RoutesBody, OnlyAllIsADryRun) {
  EXPECT_TRUE(read(Verb::kCreate, "application/json", "{}", {{"dryRun", "All"}}).status);
  const Read some = read(Verb::kCreate, "application/json", "{}", {{"dryRun", "Some"}});
  ASSERT_FALSE(some.status);
  EXPECT_EQ(some.status.error().message,
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: "
            "supported values: \"All\"");
}

TEST(RoutesBody, RefusesWhatItCannotRead) {
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  struct {
    Verb verb;
    std::string_view type;
    std::string bytes;
    Code code;
  } const cases[] = {
      {Verb::kCreate, "text/plain", "{}", Code::kUnsupportedMediaType},
      {Verb::kCreate, "application/json", "{", Code::kBadRequest},
      {Verb::kCreate, "application/json", "", Code::kBadRequest},
      {Verb::kCreate, "application/json", "[]", Code::kBadRequest},
      {Verb::kCreate, "application/json", deep, Code::kBadRequest},
      {Verb::kCreate, "application/json", "{\"a\":\"\xff\"}", Code::kBadRequest},
      {Verb::kCreate, "application/yaml", "a: [", Code::kBadRequest},
      {Verb::kCreate, "application/vnd.kubernetes.protobuf", "{}", Code::kBadRequest},
      {Verb::kUpdate, "application/json", std::string(kBodyBytesMax + 1, ' '), Code::kTooLarge},
      {Verb::kPatch, "application/json", "{}", Code::kUnsupportedMediaType},
      {Verb::kPatch, "application/json-patch+json", "{}", Code::kBadRequest},
      {Verb::kPatch, "application/merge-patch+json", "[]", Code::kBadRequest},
      {Verb::kPatch, "application/strategic-merge-patch+json", "{\"a\":}", Code::kBadRequest},
      {Verb::kDelete, "application/json", R"({"kind":"Pod"})", Code::kBadRequest},
      {Verb::kDelete, "application/json", "7", Code::kBadRequest},
      {Verb::kDelete, "application/json",
       R"({"orphanDependents":true,"propagationPolicy":"Orphan"})", Code::kInvalid},
  };
  for (const auto& c : cases) {
    const Read got = read(c.verb, c.type, c.bytes);
    ASSERT_FALSE(got.status) << c.bytes.substr(0, 80);
    EXPECT_EQ(got.status.error().code, c.code) << c.type << ": " << got.status.error().message;
  }
}

TEST(RoutesBody, PatchTypeComesFromTheContentType) {
  using kube::PatchType;
  EXPECT_EQ(read(Verb::kPatch, "application/merge-patch+json", "{}").request.patch_type,
            PatchType::kMerge);
  EXPECT_EQ(read(Verb::kPatch, "application/json-patch+json", "[]").request.patch_type,
            PatchType::kJson);
  EXPECT_EQ(read(Verb::kPatch, "application/strategic-merge-patch+json", "{}").request.patch_type,
            PatchType::kStrategic);
  const Read apply = read(Verb::kPatch, "application/apply-patch+yaml", "kind: Pod\n");
  EXPECT_EQ(apply.request.patch_type, PatchType::kApply);
}

TEST(RoutesBody, DeleteOptionsComeFromBodyOrQuery) {
  const Read query =
      read(Verb::kDelete, "", "", {{"gracePeriodSeconds", "0"}, {"propagationPolicy", "Orphan"}});
  ASSERT_TRUE(query.status);
  EXPECT_EQ(query.request.body.dump(), R"({"gracePeriodSeconds":0,"propagationPolicy":"Orphan"})");
  EXPECT_FALSE(read(Verb::kDelete, "", "", {{"gracePeriodSeconds", "soon"}}).status);
  const Read body = read(Verb::kDelete, "application/json",
                         R"({"kind":"DeleteOptions","dryRun":["All"],"gracePeriodSeconds":7})");
  ASSERT_TRUE(body.status);
  EXPECT_EQ(body.request.option("dryRun"), "All");
  EXPECT_EQ(body.request.body["gracePeriodSeconds"].as_int(), 7);
}

// Bodies as kubectl 1.36.3 sent them, in base64.
base::Result<json::Value> from_protobuf(std::string_view base64) {
  TS_TRY(const std::string bytes, http::unbase64(base64));
  return decode_protobuf(bytes);
}

TEST(RoutesProtobuf, ReadsWhatKubectlCreateSends) {
  const auto config_map =
      from_protobuf("azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhsKEQoBYRIAGgAiACoAMgA4AEIAEgYKAXgSAXkaACIA");
  ASSERT_TRUE(config_map) << config_map.error().message;
  EXPECT_EQ(config_map->dump(),
            R"({"apiVersion":"v1","data":{"x":"y"},"kind":"ConfigMap","metadata":{"name":"a"}})");
}

TEST(RoutesProtobuf, ReadsNestedMessagesListsMapsAndInlineOnes) {
  const auto deployment = from_protobuf(
      "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErIBChsKAWQSABoAIgAqADIAOABCAFoICgNhcHASAWQShAEIAhIK"
      "CggKA2FwcBIBZBpsChoKABIAGgAiACoAMgA4AEIAWggKA2FwcBIBZBJOEjAKBW5naW54EgduZ2lueDoxKgAyCgoA"
      "EAAYUCIAKgBCAGoAcgCAAQCIAQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDAgA"
      "EAAYACAAKAA4ABoAIgA=");
  ASSERT_TRUE(deployment) << deployment.error().message;
  EXPECT_EQ((*deployment)["spec"]["replicas"].as_int(), 2);
  EXPECT_EQ(deployment->get("spec", "selector", "matchLabels").dump(), R"({"app":"d"})");
  const json::Value& pod = deployment->get("spec", "template", "spec");
  EXPECT_EQ(
      pod.dump(),
      R"({"containers":[{"image":"nginx:1","name":"nginx","ports":[{"containerPort":80}]}]})");
  const auto secret =
      from_protobuf("azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBcxIAGgAiACoAMgA4AEIAEgYKAWsSAXYaABoAIgA=");
  ASSERT_TRUE(secret);
  EXPECT_EQ((*secret)["data"].dump(), R"({"k":"dg=="})");
}

TEST(RoutesProtobuf, NothingMalformedIsRead) {
  const auto good =
      http::unbase64("azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhsKEQoBYRIAGgAiACoAMgA4AEIAEgYKAXgSAXkaACIA");
  ASSERT_TRUE(good);
  for (size_t size = 0; size < good->size(); ++size) {
    (void)decode_protobuf(std::string_view(*good).substr(0, size));  // must not crash
    std::string flipped = *good;
    flipped[size] = static_cast<char>(flipped[size] ^ 0x55);
    (void)decode_protobuf(flipped);
  }
  EXPECT_FALSE(decode_protobuf(good->substr(0, good->size() - 5)));
  EXPECT_FALSE(decode_protobuf("{}"));
}

}  // namespace
}  // namespace tessera::apiserver
