#include "apiserver/server_types.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace tessera::apiserver {
namespace {

json::Value parse(std::string_view text) {
  return json::parse(text).value_or(json::Value());
}

TEST(ServerTypes, Objects_are_shown_by_the_names_of_the_server) {
  EXPECT_EQ(server_text("Toleration", parse(R"({"key":"a","operator":"Exists"})")),
            R"({"Key":"a","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null})");
  EXPECT_EQ(server_text("ResourceRequirements", parse(R"({"limits":{"cpu":"1"},"claims":[]})")),
            R"({"Limits":{"cpu":"1"},"Requests":null,"Claims":[]})");
  const std::string pod =
      server_text("PodSpec", parse(R"({"hostNetwork":true,"securityContext":{"runAsUser":7}})"));
  EXPECT_NE(pod.find(R"("SecurityContext":{"HostNetwork":true,"HostPID":false)"), pod.npos) << pod;
  EXPECT_NE(pod.find(R"("RunAsUser":7)"), pod.npos);
  EXPECT_NE(pod.find(R"("Containers":null)"), pod.npos);
}

TEST(ServerTypes, A_change_is_shown_with_three_lines_about_it) {
  EXPECT_EQ(server_diff("PersistentVolumeClaimSpec", parse(R"({"accessModes":["ReadWriteOnce"],
                                  "resources":{"requests":{"storage":"1Gi"}}})"),
                        parse(R"({"accessModes":["ReadWriteOnce"],
                                  "resources":{"requests":{"storage":"2Gi"}}})")),
            "@@ -6,7 +6,7 @@\n  \"Resources\": {\n   \"Limits\": null,\n   \"Requests\": {\n"
            "-   \"storage\": \"1Gi\"\n+   \"storage\": \"2Gi\"\n   }\n  },\n"
            "  \"VolumeName\": \"\",\n");
  EXPECT_EQ(server_diff("Toleration", parse("{}"), parse("{}")), "");
}

TEST(UnifiedDiff, Ranges_and_near_changes) {
  EXPECT_EQ(unified_diff("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(unified_diff("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
  EXPECT_EQ(unified_diff("a\nb\nc\n", "a\nc\nd\n"), "@@ -1,3 +1,3 @@\n a\n-b\n c\n+d\n");
  std::string a;
  for (int i = 0; i < 30; ++i) a += std::to_string(i) + "\n";
  std::string b = a;
  b.replace(b.find("5\n"), 1, "x");
  b.replace(b.find("\n25\n") + 1, 2, "y");
  EXPECT_EQ(unified_diff(a, b),
            "@@ -3,7 +3,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"
            "@@ -23,7 +23,7 @@\n 22\n 23\n 24\n-25\n+y\n 26\n 27\n 28\n");
}

}  // namespace
}  // namespace tessera::apiserver
