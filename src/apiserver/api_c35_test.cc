// Case C35: what kubectl's describe and get ask of the server about GPUs on a node. The rest of the case runs a real
// kubectl (tests/e2e/kubectl_c35.sh).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

class C35 : public ::testing::Test {
 protected:
  C35() {
    EXPECT_TRUE(api.create("nodes", TestApi::parse(R"({"apiVersion":"v1","kind":"Node","metadata":
        {"name":"n1","labels":{"nvidia.com/gpu.product":"NVIDIA-A100-SXM4-40GB"}},"status":{
        "capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"8"}}})")));
    add("r1", 4, "Running", true);
    add("r2", 2, "Running", true);
    add("done", 1, "Succeeded", true);
    add("bad", 1, "Failed", true);
    add("wait", 1, "Pending", false);
  }
  void add(const std::string& name, int gpus, const std::string& phase, bool bound) {
    Value pod = TestApi::pod(name);
    if (bound) pod.ref("spec", "nodeName") = "n1";
    pod.ref("spec", "containers").ref_at(0).ref("resources", "limits").set("nvidia.com/gpu", gpus);
    ASSERT_TRUE(api.create("pods", pod));
    ASSERT_TRUE(api.patch("pods", "default", name,
                          fmt::format(R"({{"status":{{"phase":"{}"}}}})", phase),
                          kube::PatchType::kMerge, "status"));
  }
  std::vector<std::string> selected(const std::string& selector) {
    const auto list = api.list("pods", "", {{"fieldSelector", selector}});
    std::vector<std::string> out;
    EXPECT_TRUE(list) << list.error().message;
    if (!list) return out;
    for (const Value& pod : (*list)["items"].items()) out.push_back(pod["metadata"]["name"].str());
    return out;
  }

  TestApi api;
};

TEST_F(C35, Keys_with_dots_come_back_untouched) {
  const auto node = api.get("nodes", "", "n1");
  ASSERT_TRUE(node);
  EXPECT_EQ((*node)["status"]["allocatable"]["nvidia.com/gpu"].as_string(), "8");
  const auto found =
      api.list("nodes", "", {{"labelSelector", "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB"}});
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)["items"].size(), 1U);
}

TEST_F(C35, Field_selectors_of_describe_are_evaluated) {
  using ::testing::ElementsAre;
  EXPECT_THAT(selected("spec.nodeName=n1"), ElementsAre("bad", "done", "r1", "r2"));
  EXPECT_THAT(selected("spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed"),
              ElementsAre("r1", "r2"));
  EXPECT_THAT(selected("status.phase=Pending"), ElementsAre("wait"));
}

TEST_F(C35, A_field_that_is_not_supported_is_a_bad_request) {
  const auto list = api.list("pods", "default", {{"fieldSelector", "spec.foo=1"}});
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, Code::kBadRequest);
  EXPECT_THAT(list.error().message, ::testing::HasSubstr("not supported"));
}

}  // namespace
}  // namespace tessera::apiserver
