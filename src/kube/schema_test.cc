#include "kube/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/parse.h"

namespace tessera::kube {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::HasSubstr;

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : Value();
}

const SchemaType& kind(std::string_view group, std::string_view name) {
  const SchemaType* type = find_kind_schema(group, "v1", name);
  EXPECT_NE(type, nullptr) << name;
  return *type;
}

Value normalized(std::string_view group, std::string_view name, std::string_view text) {
  auto out = normalize(kind(group, name), parsed(text), nullptr);
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? *out : Value();
}

std::string refusal(std::string_view name, std::string_view text) {
  auto out = normalize(kind("", name), parsed(text), nullptr);
  EXPECT_FALSE(out) << text;
  if (out) return {};
  EXPECT_EQ(out.error().code, base::Code::kBadRequest);
  return out.error().message;
}

std::string pod_with_resources(std::string_view resources) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"q"}},"spec":{{"containers":)"
      R"([{{"name":"c0","image":"x","resources":{{"limits":{}}}}}]}}}})",
      resources);
}

TEST(Schema, KnowsKindsByGroupVersionAndKind) {
  EXPECT_EQ(kind("", "Pod").name, "io.k8s.api.core.v1.Pod");
  EXPECT_EQ(kind("apps", "Deployment").name, "io.k8s.api.apps.v1.Deployment");
  EXPECT_EQ(kind("events.k8s.io", "Event").name, "io.k8s.api.events.v1.Event");
  EXPECT_EQ(kind("apiextensions.k8s.io", "CustomResourceDefinition").fields.size(), 5U);
  EXPECT_EQ(find_kind_schema("apps", "v1", "Pod"), nullptr);
  EXPECT_EQ(find_kind_schema("", "v2", "Pod"), nullptr);
}

TEST(Schema, FieldsCarryTheRulesOfPatches) {
  const SchemaType& spec = *find_schema("io.k8s.api.core.v1.PodSpec");
  const SchemaField& containers = *spec.field("containers");
  EXPECT_TRUE(containers.list && containers.required && containers.patch_merge);
  EXPECT_EQ(containers.patch_merge_key, "name");
  EXPECT_THAT(containers.list_map_keys, ElementsAre("name"));
  EXPECT_TRUE(spec.field("volumes")->patch_retain_keys);
  EXPECT_TRUE(spec.field("tolerations")->atomic);
  const SchemaField& ports = *find_schema("io.k8s.api.core.v1.Container")->field("ports");
  EXPECT_THAT(ports.list_map_keys, ElementsAre("containerPort", "protocol"));
  EXPECT_EQ(ports.patch_merge_key, "containerPort");
  EXPECT_TRUE(find_schema("io.k8s.api.core.v1.ObjectReference")->atomic);
}

TEST(Schema, EveryTypeIsFoundByItsNameAndEveryReferenceLeadsSomewhere) {
  for (const SchemaType* type : all_schemas()) {
    EXPECT_EQ(find_schema(type->name), type);
    EXPECT_TRUE(!type->scalar || type->fields.empty()) << type->name;
    for (const SchemaField& field : type->fields) {
      EXPECT_EQ(type->field(field.name), &field) << type->name;
      EXPECT_TRUE(field.type != FieldType::kObject || field.object != nullptr) << type->name;
    }
  }
}

TEST(Normalize, WritesQuantitiesCanonically) {
  const Value pod = normalized(
      "", "Pod",
      pod_with_resources(
          R"({"nvidia.com/gpu":"3000m","a/b":"3Ki","c/d":"1e1","cpu":0.5,"memory":1073741824})"));
  EXPECT_EQ(pod["spec"]["containers"].at(0).get("resources", "limits").dump(),
            R"({"a/b":"3Ki","c/d":"10","cpu":"500m","memory":"1073741824","nvidia.com/gpu":"3"})");
}

TEST(Normalize, C39_Row13And14And19_WhatIsNoQuantityIsABadRequest) {
  for (const char* bad : {R"({"nvidia.com/gpu":"two"})", R"({"nvidia.com/gpu":"1 "})", R"([1])",
                          R"({"nvidia.com/gpu":true})", R"({"nvidia.com/gpu":[1]})"}) {
    EXPECT_THAT(refusal("Pod", pod_with_resources(bad)),
                HasSubstr("spec.containers[0].resources.limits"));
  }
}

TEST(Normalize, NamesPathAndExpectedTypeOfAWrongValue) {
  EXPECT_EQ(
      refusal("Pod", R"({"spec":{"containers":[{"name":"a","image":1}]}})"),
      "json: cannot unmarshal number into Go struct field spec.containers[0].image of type string");
  EXPECT_EQ(refusal("Pod", R"({"spec":{"containers":{}}})"),
            "json: cannot unmarshal object into Go struct field spec.containers of type array");
  EXPECT_EQ(refusal("Pod", R"({"metadata":{"labels":{"a":1}}})"),
            "json: cannot unmarshal number into Go struct field metadata.labels.a of type string");
  EXPECT_EQ(refusal("Pod", R"({"spec":{"priority":"5"}})"),
            "json: cannot unmarshal string into Go struct field spec.priority of type int32");
  EXPECT_EQ(refusal("Pod", R"({"spec":{"priority":1.5}})"),
            "json: cannot unmarshal number 1.5 into Go struct field spec.priority of type int32");
  EXPECT_EQ(
      refusal("Pod", R"({"spec":{"priority":2147483648}})"),
      "json: cannot unmarshal number 2147483648 into Go struct field spec.priority of type int32");
  EXPECT_EQ(refusal("Pod", R"({"spec":{"hostNetwork":"yes"}})"),
            "json: cannot unmarshal string into Go struct field spec.hostNetwork of type bool");
  EXPECT_EQ(refusal("Pod", R"([])"), "json: cannot unmarshal array into Go value of type object");
}

TEST(Normalize, RefusesBadTimesAndBase64) {
  EXPECT_THAT(refusal("Pod", R"({"metadata":{"creationTimestamp":"yesterday"}})"),
              HasSubstr("parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse "
                        "\"yesterday\" as \"2006\""));
  EXPECT_EQ(refusal("Secret", R"({"data":{"k":"a*b="}})"), "illegal base64 data at input byte 1");
  EXPECT_EQ(refusal("Secret", R"({"data":{"k":"abc"}})"), "illegal base64 data at input byte 3");
  const Value fine = normalized("", "Secret", R"({"data":{"k":"YQ==","l":"YWI=","m":"YWJj"}})");
  EXPECT_EQ(fine["data"].size(), 3U);
}

TEST(Normalize, ListsUnknownFieldsAndDropsThem) {
  std::vector<std::string> unknown;
  auto out = normalize(
      kind("", "Pod"),
      parsed(R"({"spec":{"containers":[{"name":"a","imag":"x"}],"foo":{}},"b":1})"), &unknown);
  ASSERT_TRUE(out);
  EXPECT_THAT(unknown, ElementsAre("b", "spec.containers[0].imag", "spec.foo"));
  EXPECT_EQ((*out)["spec"].dump(), R"({"containers":[{"name":"a","resources":{}}]})");
}

TEST(Normalize, TreatsZeroValuesAsAServerDoes) {
  const Value pod = normalized("", "Pod",
                               R"({"metadata":{"name":"a","labels":{},"uid":null},)"
                               R"("spec":{"hostNetwork":false,"nodeName":""}})");
  EXPECT_EQ(pod.dump(), R"({"metadata":{"name":"a"},"spec":{},"status":{}})");
  const Value event = normalized("", "Event", R"({"metadata":{"name":"e"}})");
  EXPECT_EQ(
      event.dump(),
      R"({"eventTime":null,"firstTimestamp":null,"involvedObject":{},"lastTimestamp":null,)"
      R"("metadata":{"name":"e"},"reportingComponent":"","reportingInstance":"","source":{}})");
  // A pointer in Go: zero is a value.
  const Value job = normalized("batch", "Job", R"({"spec":{"parallelism":0}})");
  EXPECT_EQ(job["spec"]["parallelism"], Value(0));
}

TEST(Normalize, SharesWhatNeedsNoChangeAndIsIdempotent) {
  const Value once = normalized("", "Pod", pod_with_resources(R"({"nvidia.com/gpu":"3000m"})"));
  auto twice = normalize(kind("", "Pod"), once, nullptr);
  ASSERT_TRUE(twice);
  EXPECT_TRUE(twice->same_node(once));
}

TEST(Normalize, KeepsRawJsonAndMapsOfLists) {
  const Value review = normalized("authorization.k8s.io", "SubjectAccessReview",
                                  R"({"spec":{"extra":{"a":["x","y"]}}})");
  EXPECT_EQ(review["spec"].dump(), R"({"extra":{"a":["x","y"]}})");
  const Value crd = normalized(
      "apiextensions.k8s.io", "CustomResourceDefinition",
      R"({"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"default":{"a":null}}}}]}})");
  EXPECT_EQ(crd["spec"]["versions"].at(0).get("schema", "openAPIV3Schema", "default").dump(),
            R"({"a":null})");
}

TEST(OpenApi, CarriesWhatKubectlReads) {
  const Value v3 = openapi_schema(kind("", "Pod"), true);
  EXPECT_EQ(v3["x-kubernetes-group-version-kind"].dump(),
            R"([{"group":"","kind":"Pod","version":"v1"}])");
  EXPECT_EQ(v3["properties"]["spec"].dump(),
            R"({"allOf":[{"$ref":"#/components/schemas/io.k8s.api.core.v1.PodSpec"}]})");
  const Value spec = openapi_schema(*find_schema("io.k8s.api.core.v1.PodSpec"), false);
  EXPECT_EQ(
      spec["properties"]["volumes"].dump(),
      R"({"items":{"$ref":"#/definitions/io.k8s.api.core.v1.Volume"},"type":"array",)"
      R"("x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map",)"
      R"("x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge,retainKeys"})");
  EXPECT_EQ(spec["required"].dump(), R"(["containers"])");
  EXPECT_EQ(
      openapi_schema(*find_schema("io.k8s.apimachinery.pkg.api.resource.Quantity"), false).dump(),
      R"({"type":"string"})");
}

}  // namespace
}  // namespace tessera::kube
