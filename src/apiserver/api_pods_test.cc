#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ApiPods, Binding_sets_the_node_once) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
  Value body = TestApi::parse(R"({"apiVersion":"v1","kind":"Binding",
    "metadata":{"annotations":{"example.com/gpus":"0,1"}},"target":{"kind":"Node","name":"n1"}})");
  auto request = TestApi::request(kube::Verb::kCreate, "pods", "default", "x", body);
  request.subresource = "binding";
  const auto bound = api.reply(request);
  ASSERT_TRUE(bound.result);
  EXPECT_EQ(bound.http_status, 201);
  EXPECT_EQ((*bound.result)["kind"].as_string(), "Status");
  const auto pod = api.get("pods", "default", "x");
  EXPECT_EQ((*pod)["spec"]["nodeName"].as_string(), "n1");
  EXPECT_EQ((*pod)["metadata"]["annotations"]["example.com/gpus"].as_string(), "0,1");
  const Value& condition = (*pod)["status"]["conditions"].at(0);
  EXPECT_EQ(condition["type"].as_string(), "PodScheduled");
  EXPECT_EQ(condition["status"].as_string(), "True");
  const auto again = api.bind("default", "x", "n2");
  EXPECT_EQ(again.error().code, Code::kConflict);
  EXPECT_EQ(again.error().message,
            "Operation cannot be fulfilled on pods/binding \"x\": pod x is already assigned to "
            "node \"n1\"");
  EXPECT_EQ(api.bind("default", "none", "n2").error().code, Code::kNotFound);
  EXPECT_EQ(api.bind("default", "x", "").error().message, "target.name: Required value");
}

TEST(ApiPods, Binding_ends_the_nomination) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
  auto nominate = TestApi::request(kube::Verb::kPatch, "pods", "default", "x",
                                   TestApi::parse(R"({"status":{"nominatedNodeName":"n1"}})"));
  nominate.subresource = "status";
  const auto nominated = api.reply(nominate);
  ASSERT_TRUE(nominated.result);
  EXPECT_EQ((*nominated.result)["status"]["nominatedNodeName"].as_string(), "n1");
  ASSERT_TRUE(api.bind("default", "x", "n2"));
  EXPECT_FALSE((*api.get("pods", "default", "x"))["status"].contains("nominatedNodeName"));
}

TEST(ApiPods, What_binding_wrote_about_devices_stays) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
  auto bind = TestApi::request(kube::Verb::kCreate, "pods", "default", "x",
                               TestApi::parse(R"({"apiVersion":"v1","kind":"Binding",
    "metadata":{"annotations":{"tessera.dev/gpus":"0","tessera.dev/share-milli":"900"}},
    "target":{"kind":"Node","name":"n1"}})"));
  bind.subresource = "binding";
  ASSERT_TRUE(api.reply(bind).result);
  auto patch = TestApi::request(kube::Verb::kPatch, "pods", "default", "x",
                                TestApi::parse(R"({"metadata":{"annotations":
    {"tessera.dev/share-milli":"1","other":"x"}}})"));
  const auto refused = api.reply(patch);
  ASSERT_FALSE(refused.result);
  EXPECT_EQ(refused.result.error().code, Code::kInvalid);
  EXPECT_THAT(refused.result.error().message, HasSubstr("tessera.dev/share-milli"));
  patch.body = TestApi::parse(R"({"metadata":{"annotations":{"other":"x"}}})");
  EXPECT_TRUE(api.reply(patch).result);
}

TEST(ApiPods, Eviction_ends_the_pod_with_grace) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
  ASSERT_TRUE(api.bind("default", "x", "n1"));
  auto request = TestApi::request(kube::Verb::kCreate, "pods", "default", "x",
                                  TestApi::parse(R"({"apiVersion":"policy/v1","kind":"Eviction",
        "metadata":{"name":"x","namespace":"default"},"deleteOptions":{"gracePeriodSeconds":7}})"));
  request.subresource = "eviction";
  const auto evicted = api.reply(request);
  ASSERT_TRUE(evicted.result);
  EXPECT_EQ(evicted.http_status, 201);
  EXPECT_EQ((*evicted.result)["status"].as_string(), "Success");
  EXPECT_EQ((*api.get("pods", "default", "x"))["metadata"]["deletionGracePeriodSeconds"].as_int(),
            7);
}

TEST(ApiAdmission, Pods_get_account_tolerations_and_priority) {
  TestApi api;
  const auto pod = api.create("pods", TestApi::pod("x"));
  ASSERT_TRUE(pod) << pod.error().message;
  const Value& spec = (*pod)["spec"];
  EXPECT_EQ(spec["serviceAccountName"].as_string(), "default");
  EXPECT_EQ(spec["priority"].as_int(-1), 0);
  EXPECT_EQ(spec["preemptionPolicy"].as_string(), "PreemptLowerPriority");
  ASSERT_EQ(spec["tolerations"].size(), 2U);
  EXPECT_EQ(spec["tolerations"].at(0)["key"].as_string(), "node.kubernetes.io/not-ready");
  EXPECT_EQ(spec["tolerations"].at(1)["tolerationSeconds"].as_int(), 300);
}

TEST(ApiAdmission, Priority_comes_from_the_class) {
  TestApi api;
  Value pod = TestApi::pod("x");
  pod.ref("spec", "priorityClassName") = "high";
  const auto unknown = api.create("pods", pod);
  EXPECT_EQ(unknown.error().code, Code::kForbidden);
  EXPECT_EQ(unknown.error().message,
            "pods \"x\" is forbidden: no PriorityClass with name high was found");
  ASSERT_TRUE(api.create("priorityclasses.scheduling.k8s.io",
                         TestApi::parse(R"({"apiVersion":"scheduling.k8s.io/v1",
    "kind":"PriorityClass","metadata":{"name":"high"},"value":1000,"preemptionPolicy":"Never"})")));
  const auto made = api.create("pods", pod);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["spec"]["priority"].as_int(), 1000);
  EXPECT_EQ((*made)["spec"]["preemptionPolicy"].as_string(), "Never");
  pod.ref("metadata", "name") = "y";
  pod.ref("spec", "priority") = 5;
  EXPECT_THAT(api.create("pods", pod).error().message,
              HasSubstr("the integer value of priority (5) must not be provided in pod spec"));
  ASSERT_TRUE(api.create("priorityclasses.scheduling.k8s.io",
                         TestApi::parse(R"({"apiVersion":"scheduling.k8s.io/v1",
    "kind":"PriorityClass","metadata":{"name":"usual"},"value":7,"globalDefault":true})")));
  const auto usual = api.create("pods", TestApi::pod("z"));
  ASSERT_TRUE(usual);
  EXPECT_EQ((*usual)["spec"]["priority"].as_int(), 7);
  EXPECT_EQ((*usual)["spec"]["priorityClassName"].as_string(), "usual");
}

TEST(ApiAdmission, A_new_cluster_has_what_every_cluster_has) {
  TestApi api;
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    EXPECT_TRUE(api.get("namespaces", "", name)) << name;
  }
  const auto critical = api.get("priorityclasses.scheduling.k8s.io", "", "system-node-critical");
  ASSERT_TRUE(critical);
  EXPECT_EQ((*critical)["value"].as_int(), 2000001000);
  const auto service = api.get("services", "default", "kubernetes");
  ASSERT_TRUE(service);
  EXPECT_EQ((*service)["spec"]["clusterIP"].as_string(), "10.96.0.1");
}

TEST(ApiAdmission, What_every_cluster_has_comes_back_when_it_is_deleted) {
  TestApi api;
  const auto before = api.get("services", "default", "kubernetes");
  ASSERT_TRUE(api.remove("services", "default", "kubernetes"));
  const auto after = api.get("services", "default", "kubernetes");
  ASSERT_TRUE(after);
  EXPECT_EQ((*after)["spec"]["clusterIP"].as_string(), "10.96.0.1");
  EXPECT_NE((*after)["metadata"]["uid"], (*before)["metadata"]["uid"]);

  ASSERT_TRUE(api.remove("namespaces", "", "kube-node-lease"));
  Value ending = *api.get("namespaces", "", "kube-node-lease");
  ending.ref("spec").set("finalizers", Value::array({}));
  ASSERT_TRUE(api.update("namespaces", ending, "finalize"));
  const auto anew = api.get("namespaces", "", "kube-node-lease");
  ASSERT_TRUE(anew);
  EXPECT_NE((*anew)["metadata"]["uid"], ending["metadata"]["uid"]);
}

TEST(ApiAdmission, Services_get_an_address_of_their_own) {
  TestApi api;
  const auto service = [](std::string_view name, std::string_view more) {
    Value out = TestApi::parse(R"({"apiVersion":"v1","kind":"Service",
      "metadata":{"namespace":"default"},"spec":{"ports":[{"port":80}]}})");
    out.ref("metadata", "name") = name;
    const Value fields = TestApi::parse(more);
    for (const auto& member : fields.members()) out.ref("spec").set(member.name(), member.value);
    return out;
  };
  const auto a = api.create("services", service("a", "{}"));
  ASSERT_TRUE(a) << a.error().message;
  const std::string address = (*a)["spec"]["clusterIP"].str();
  EXPECT_THAT(address, StartsWith("10.96."));
  EXPECT_EQ((*a)["spec"]["clusterIPs"].at(0).as_string(), address);
  const Value same = service("b", R"({"clusterIP":")" + address + "\"}");
  const auto taken = api.create("services", same);
  EXPECT_EQ(taken.error().code, Code::kInvalid);
  EXPECT_THAT(taken.error().message, HasSubstr("provided IP is already allocated"));
  const auto updated = api.update("services", service("a", R"({"type":"NodePort"})"));
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ((*updated)["spec"]["clusterIP"].as_string(), address);
  EXPECT_GE((*updated)["spec"]["ports"].at(0)["nodePort"].as_int(), 30000);
  ASSERT_TRUE(api.remove("services", "default", "a"));
  EXPECT_TRUE(api.create("services", same));
  const auto headless = api.create("services", service("h", R"({"clusterIP":"None"})"));
  ASSERT_TRUE(headless) << headless.error().message;
  EXPECT_EQ((*headless)["spec"]["clusterIP"].as_string(), "None");
}

TEST(ApiAdmission, Events_expire) {
  TestApi api({.event_ttl = base::seconds(100)});
  const auto event = [](const char* name) {
    Value out = TestApi::parse(R"({"apiVersion":"v1","kind":"Event","metadata":{
      "namespace":"default"},"involvedObject":{"kind":"Pod","name":"x","namespace":"default"},
      "reason":"Test","type":"Normal","message":"m"})");
    out.ref("metadata", "name") = name;
    return out;
  };
  const auto made = api.create("events", event("old"));
  ASSERT_TRUE(made) << made.error().message;
  api.advance(base::seconds(90));
  ASSERT_TRUE(api.create("events", event("new")));
  api.advance(base::seconds(70));
  EXPECT_FALSE(api.get("events", "default", "old"));
  EXPECT_TRUE(api.get("events", "default", "new"));
  api.advance(base::seconds(200));
  EXPECT_FALSE(api.get("events", "default", "new"));
}

}  // namespace
}  // namespace tessera::apiserver
