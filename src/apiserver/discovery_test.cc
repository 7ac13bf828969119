#include "apiserver/discovery.h"

#include <gtest/gtest.h>

#include <set>

#include "apiserver/front_pages.h"
#include "apiserver/openapi_doc.h"
#include "apiserver/routes_test_kinds.h"

namespace tessera::apiserver {
namespace {

using json::Value;

TEST(Discovery, GroupsAndVersionsComeFromTheKinds) {
  const Value groups = api_group_list(test_kinds());
  ASSERT_EQ(groups["groups"].size(), 1u);
  EXPECT_EQ(groups["groups"].at(0).dump(),
            R"({"name":"apps","preferredVersion":{"groupVersion":"apps/v1","version":"v1"},)"
            R"("versions":[{"groupVersion":"apps/v1","version":"v1"}]})");
  EXPECT_EQ(api_group(test_kinds(), "apps")["kind"].as_string(), "APIGroup");
  EXPECT_TRUE(api_group(test_kinds(), "nothing").is_null());
  EXPECT_TRUE(api_resource_list(test_kinds(), "apps", "v2").is_null());
}

TEST(Discovery, ResourcesHaveVerbsShortNamesCategoriesAndSubresources) {
  const Value list = api_resource_list(test_kinds(), "", "v1");
  EXPECT_EQ(list["groupVersion"].as_string(), "v1");
  std::set<std::string> names;
  for (const Value& resource : list["resources"].items()) names.insert(resource["name"].str());
  EXPECT_EQ(names, (std::set<std::string>{"namespaces", "namespaces/status", "nodes",
                                          "nodes/status", "pods", "pods/binding", "pods/eviction",
                                          "pods/status", "configmaps"}));
  for (const Value& resource : list["resources"].items()) {
    if (resource["name"].as_string() == "pods") {
      EXPECT_EQ(resource["shortNames"].dump(), R"(["po"])");
      EXPECT_EQ(resource["categories"].dump(), R"(["all"])");
      EXPECT_TRUE(resource["namespaced"].as_bool());
      EXPECT_EQ(resource["verbs"].size(), 8u);
    }
    if (resource["name"].as_string() == "pods/eviction") {
      EXPECT_EQ(resource["group"].as_string(), "policy");
      EXPECT_EQ(resource["kind"].as_string(), "Eviction");
      EXPECT_EQ(resource["verbs"].dump(), R"(["create"])");
    }
  }
}

TEST(Discovery, AggregatedFormHoldsEverythingOfItsRoot) {
  const Value core = aggregated_discovery(test_kinds(), true);
  ASSERT_EQ(core["items"].size(), 1u);
  EXPECT_EQ(core["items"].at(0)["versions"].at(0)["resources"].size(), 4u);
  const Value others = aggregated_discovery(test_kinds(), false);
  ASSERT_EQ(others["items"].size(), 1u);
  const Value& deployments = others["items"].at(0)["versions"].at(0)["resources"].at(0);
  EXPECT_EQ(deployments["resource"].as_string(), "deployments");
  EXPECT_EQ(deployments["scope"].as_string(), "Namespaced");
  EXPECT_EQ(deployments["subresources"].at(0)["responseKind"]["kind"].as_string(), "Scale");
}

// Every reference in a document leads somewhere in it.
void expect_references_resolve(const Value& root, const Value& at) {
  if (const Value* ref = at.find("$ref")) {
    std::string_view path = ref->as_string();
    ASSERT_TRUE(path.starts_with("#/"));
    path.remove_prefix(2);
    const Value* to = &root;
    while (to != nullptr && !path.empty()) {
      const size_t slash = path.find('/');
      to = to->find(path.substr(0, slash));
      path.remove_prefix(slash == path.npos ? path.size() : slash + 1);
    }
    EXPECT_NE(to, nullptr) << ref->as_string();
  }
  if (at.is_object()) {
    for (const json::Member& member : at.members()) expect_references_resolve(root, member.value);
  }
  for (const Value& item : at.is_array() ? at.items() : std::span<const Value>()) {
    expect_references_resolve(root, item);
  }
}

TEST(OpenApi, V3DocumentIsWholeAndTellsOfFieldValidation) {
  const Value document = openapi_v3(test_kinds(), "", "v1");
  expect_references_resolve(document, document);
  const Value& patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
  EXPECT_EQ(patch["x-kubernetes-group-version-kind"].dump(),
            R"({"group":"","kind":"Pod","version":"v1"})");
  EXPECT_EQ(patch["x-kubernetes-action"].as_string(), "patch");
  bool found = false;
  for (const Value& parameter : patch["parameters"].items()) {
    found |= parameter["name"].as_string() == "fieldValidation" &&
             parameter["in"].as_string() == "query";
  }
  EXPECT_TRUE(found);
  const Value& pod = document["components"]["schemas"]["io.k8s.api.core.v1.Pod"];
  EXPECT_EQ(pod["x-kubernetes-group-version-kind"].at(0)["kind"].as_string(), "Pod");
  EXPECT_TRUE(document["components"]["schemas"].contains("io.k8s.api.core.v1.PodList"));
  EXPECT_TRUE(openapi_v3(test_kinds(), "nothing", "v1").is_null());
}

TEST(OpenApi, V2DocumentHoldsAllGroups) {
  const Value document = openapi_v2(test_kinds());
  expect_references_resolve(document, document);
  EXPECT_EQ(document["swagger"].as_string(), "2.0");
  EXPECT_TRUE(document["definitions"].contains("io.k8s.api.apps.v1.Deployment"));
  EXPECT_TRUE(
      document["paths"].contains("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"));
}

TEST(Pages, AreMadeOnceAndTellTheirVersion) {
  Pages pages(test_kinds());
  const std::vector<std::string> index = {"openapi", "v3"};
  const auto first = pages.find(index, {});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(pages.find(index, {}), first);
  EXPECT_NE(first->text.find("/openapi/v3/apis/apps/v1?hash="), std::string::npos);
  EXPECT_EQ(first->etag.size(), 18u);
  const std::vector<std::string> api = {"api"};
  const Accepted aggregated{Encoding::kJson, Form::kAggregatedDiscovery, "v2"};
  EXPECT_EQ(pages.find(api, aggregated)->content_type, kAggregatedContentType);
  EXPECT_EQ(pages.find(api, {})->content_type, "application/json");
  const std::vector<std::string> unknown = {"apis", "nothing"};
  EXPECT_EQ(pages.find(unknown, {}), nullptr);
}

}  // namespace
}  // namespace tessera::apiserver
