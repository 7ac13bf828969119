// pods/resize, pods/ephemeralcontainers, and PUT of what is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::HasSubstr;

base::Result<Value> part(TestApi& api, const char* subresource, std::string_view patch) {
  return api.patch("pods", "default", "p", patch, kube::PatchType::kStrategic, subresource);
}

void make_pod(TestApi& api) {
  Value pod = TestApi::pod("p");
  pod.ref("spec", "containers").ref_at(0).ref("resources", "requests").set("cpu", "1");
  ASSERT_TRUE(api.create("pods", pod));
}

TEST(PodResize, Changes_amounts_and_nothing_else) {
  TestApi api;
  make_pod(api);
  const auto done = part(api, "resize", R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":
      [{"name":"c0","resources":{"requests":{"cpu":"2"}}}]}})");
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ((*done)["spec"]["containers"].at(0)["resources"]["requests"]["cpu"].as_string(), "2");
  EXPECT_EQ((*done)["metadata"]["generation"].as_int(), 2);
  EXPECT_FALSE((*done)["metadata"].contains("labels"));
}

TEST(PodResize, Keeps_devices_and_the_class_of_service) {
  TestApi api;
  make_pod(api);
  EXPECT_THAT(part(api, "resize", R"({"spec":{"containers":[{"name":"c0","resources":
      {"limits":{"nvidia.com/gpu":1},"requests":{"nvidia.com/gpu":1}}}]}})")
                  .error()
                  .message,
              HasSubstr("spec: Forbidden: only cpu and memory resources are mutable"));
  EXPECT_THAT(part(api, "resize", R"({"spec":{"containers":[{"name":"c0","resources":
      {"limits":{"cpu":"1","memory":"1Gi"},"requests":{"memory":"1Gi"}}}]}})")
                  .error()
                  .message,
              HasSubstr("Pod QOS Class may not change as a result of resizing"));
  EXPECT_THAT(part(api, "resize", R"({"spec":{"containers":[{"name":"c0","resources":
      {"requests":{"cpu":null,"memory":"1Gi"}}}]}})")
                  .error()
                  .message,
              HasSubstr("resource requests cannot be removed"));
}

TEST(PodResize, Counts_against_quotas) {
  TestApi api;
  make_pod(api);
  ASSERT_TRUE(api.create("resourcequotas", TestApi::parse(R"({"apiVersion":"v1","kind":
      "ResourceQuota","metadata":{"name":"q","namespace":"default"},"spec":{"hard":
      {"requests.cpu":"2"}}})")));
  EXPECT_TRUE(part(api, "resize", R"({"spec":{"containers":[{"name":"c0","resources":
      {"requests":{"cpu":"2"}}}]}})"));
  EXPECT_THAT(part(api, "resize", R"({"spec":{"containers":[{"name":"c0","resources":
      {"requests":{"cpu":"3"}}}]}})")
                  .error()
                  .message,
              HasSubstr("exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2"));
}

TEST(EphemeralContainers, Are_added_and_stay) {
  TestApi api;
  make_pod(api);
  const auto done = part(api, "ephemeralcontainers", R"({"spec":{"ephemeralContainers":
      [{"name":"debug","image":"x:1","targetContainerName":"c0"}]}})");
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ((*done)["spec"]["ephemeralContainers"].size(), 1U);
  EXPECT_THAT(part(api, "ephemeralcontainers", R"({"spec":{"ephemeralContainers":
      [{"name":"debug","$patch":"delete"}]}})")
                  .error()
                  .message,
              HasSubstr("existing ephemeral containers \"debug\" may not be removed"));
  EXPECT_THAT(part(api, "ephemeralcontainers", R"({"spec":{"ephemeralContainers":
      [{"name":"c0","image":"x:1"}]}})")
                  .error()
                  .message,
              HasSubstr("Duplicate value: \"c0\""));
  EXPECT_THAT(part(api, "ephemeralcontainers", R"({"spec":{"ephemeralContainers":
      [{"name":"e","image":"x:1","ports":[{"containerPort":1}]}]}})")
                  .error()
                  .message,
              HasSubstr("cannot be set for an Ephemeral Container"));
}

TEST(Puts, Make_leases_and_the_like_but_nothing_else) {
  TestApi api;
  Value lease = TestApi::parse(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":
      {"name":"l","namespace":"default"},"spec":{"holderIdentity":"a"}})");
  const auto reply = api.reply(
      TestApi::request(kube::Verb::kUpdate, "leases.coordination.k8s.io", "default", "l", lease));
  ASSERT_TRUE(reply.result) << reply.result.error().message;
  EXPECT_EQ(reply.http_status, 201);
  lease.ref("spec", "holderIdentity") = "b";
  EXPECT_EQ(api.reply(TestApi::request(kube::Verb::kUpdate, "leases.coordination.k8s.io", "default",
                                       "l", lease))
                .http_status,
            200);
  EXPECT_EQ(api.update("configmaps", TestApi::config_map("m", "1")).error().code, Code::kNotFound);
}

TEST(Puts, Make_nothing_where_a_uid_says_that_it_was_there) {
  TestApi api;
  Value lease = TestApi::parse(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":
      {"name":"l","namespace":"default","uid":"a-uid"},"spec":{"holderIdentity":"a"}})");
  const auto reply = api.reply(
      TestApi::request(kube::Verb::kUpdate, "leases.coordination.k8s.io", "default", "l", lease));
  ASSERT_FALSE(reply.result);
  EXPECT_EQ(reply.result.error().code, Code::kConflict);
  EXPECT_THAT(reply.result.error().message,
              HasSubstr("UID in precondition: a-uid, UID in object meta: "));
}

}  // namespace
}  // namespace tessera::apiserver
