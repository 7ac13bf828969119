#include "apiserver/warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> of_spec(std::string_view spec) {
  std::vector<std::string> out;
  warn_of_pod(Value::object({{"spec", TestApi::parse(spec)}}), "", out);
  return out;
}

TEST(Warnings, Name_variables_that_hide_others) {
  EXPECT_THAT(
      of_spec(R"({"containers":[{"env":[{"name":"A","value":"b"},{"name":"A"}]}]})"),
      ElementsAre("spec.containers[0].env[1]: hides previous definition of \"A\", which may "
                  "be dropped when using apply"));
  EXPECT_THAT(of_spec(R"({"containers":[{"env":[{"name":"A"},{"name":"A","value":"$(A)c"}]}]})"),
              IsEmpty());
}

TEST(Warnings, Tell_ports_that_clash) {
  EXPECT_THAT(of_spec(R"({"containers":[{"ports":[{"containerPort":1,"protocol":"TCP"}]},
                {"ports":[{"containerPort":1,"protocol":"TCP","hostPort":2}]}]})"),
              ElementsAre("spec.containers[1].ports[0]: overlapping port definition with "
                          "spec.containers[0].ports[0]"));
}

TEST(Warnings, Tell_fractions_of_bytes_but_not_large_amounts) {
  EXPECT_THAT(of_spec(R"({"containers":[{"resources":{"limits":{"memory":"1500m"}}}]})"),
              ElementsAre("spec.containers[0].resources.limits[memory]: fractional byte value "
                          "\"1500m\" is invalid, must be an integer"));
  EXPECT_THAT(of_spec(R"({"containers":[{"resources":{"limits":{"memory":"1E"}}}]})"), IsEmpty());
}

TEST(Warnings, Come_with_a_create_and_with_a_change_of_the_spec_only) {
  TestApi api;
  Value deployment = TestApi::parse(R"({"apiVersion":"apps/v1","kind":"Deployment",
    "metadata":{"name":"d","namespace":"default"},"spec":{"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}}}}})");
  deployment.ref("spec", "template", "spec") = TestApi::pod("p")["spec"];
  deployment.ref("spec", "template", "spec").ref("nodeSelector").set("beta.kubernetes.io/os", "x");
  const auto count = [&](kube::Verb verb, const Value& body) {
    auto request = TestApi::request(verb, "deployments.apps", "default",
                                    verb == kube::Verb::kCreate ? "" : "d", body);
    return api.reply(std::move(request)).warnings.size();
  };
  EXPECT_EQ(count(kube::Verb::kCreate, deployment), 1U);
  EXPECT_EQ(count(kube::Verb::kPatch, TestApi::parse(R"({"metadata":{"labels":{"x":"y"}}})")), 0U);
  EXPECT_EQ(count(kube::Verb::kPatch, TestApi::parse(R"({"spec":{"minReadySeconds":1}})")), 1U);
}

TEST(Warnings, Tell_formats_that_nobody_heeds_once_for_all_versions_that_share_them) {
  const Value definition = TestApi::parse(R"({"spec":{"versions":[
    {"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{
      "a":{"type":"string","format":"k8s-short-name"},"b":{"type":"string","format":"odd"}}}}},
    {"name":"v2","schema":{"openAPIV3Schema":{"type":"object","properties":{
      "a":{"type":"string","format":"k8s-short-name"},"b":{"type":"string","format":"odd"}}}}}
  ]}})");
  Kind kind;
  kind.group = "apiextensions.k8s.io";
  EXPECT_THAT(warnings_of(kind, definition, Value()), ElementsAre("unrecognized format \"odd\""));
  EXPECT_THAT(warnings_of(kind, definition, definition), IsEmpty());
}

}  // namespace
}  // namespace tessera::apiserver
