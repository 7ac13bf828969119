#include "apiserver/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/front_auth_fixture.h"

namespace tessera::apiserver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string metrics(FrontBench& bench) {
  return bench.get("admin", "/metrics")->body;
}

TEST(Metrics, RequestsAreCountedByWhatTheyWereAndHowTheyEnded) {
  FrontBench bench;
  bench.get("admin", "/api/v1/namespaces/work/pods");
  bench.get("admin", "/api/v1/namespaces/work/pods");
  bench.get("admin", "/api/v1/namespaces/work/pods/none");
  bench.get("jane", "/api/v1/pods");
  bench.get("", "/made/up/by/a/stranger");
  const std::string text = metrics(bench);
  const std::string pods = R"(resource="pods",scope="namespace",subresource="",verb="LIST",)";
  EXPECT_THAT(text, HasSubstr(R"(apiserver_request_total{code="200",component="apiserver",)"
                              R"(dry_run="",group="",)" +
                              pods + R"(version="v1"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(resource="pods",scope="resource",subresource="",verb="GET",)"));
  EXPECT_THAT(text, HasSubstr(R"(code="403")"));
  EXPECT_THAT(text, HasSubstr(R"(code="401")"));
  EXPECT_THAT(text, Not(HasSubstr("stranger")));
  EXPECT_THAT(text, HasSubstr("# TYPE apiserver_request_duration_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr(pods + R"(version="v1",le="+Inf"} 2)"));
  EXPECT_THAT(text, HasSubstr("apiserver_request_duration_seconds_count{component=\"apiserver\""));
}

TEST(Metrics, OpenWatchesAreCountedUntilTheyEnd) {
  FrontBench bench;
  const std::string open =
      R"(resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} )";
  const auto watch = bench.get("admin", "/api/v1/pods?watch=1");
  EXPECT_THAT(metrics(bench), HasSubstr("apiserver_longrunning_requests{component=\"apiserver\","
                                        "dry_run=\"\",group=\"\"," +
                                        open + "1\n"));
  EXPECT_THAT(metrics(bench), HasSubstr("{request_kind=\"readOnly\"} 1\n")) << "this one";
  watch->closed();
  EXPECT_THAT(metrics(bench), HasSubstr(open + "0\n"));
}

TEST(Metrics, ObjectsAndTheProcessAreThere) {
  FrontBench bench;
  const auto got = bench.get("admin", "/metrics");
  EXPECT_THAT(got->body, HasSubstr("apiserver_storage_objects{resource=\"serviceaccounts\"} "));
  EXPECT_THAT(got->body,
              HasSubstr("apiserver_resource_objects{group=\"apps\",resource=\"deployments\"} 0\n"));
  for (const char* name : {"process_cpu_seconds_total ", "process_resident_memory_bytes ",
                           "process_open_fds ", "process_start_time_seconds "}) {
    EXPECT_THAT(got->body, HasSubstr(name));
  }
}

TEST(Metrics, AreForThoseWhoMayReadThem) {
  FrontBench bench;
  EXPECT_EQ(bench.get("", "/metrics")->status, 401);
  EXPECT_EQ(bench.get("jane", "/metrics")->message(),
            "forbidden: User \"jane\" cannot get path \"/metrics\"");
  bench.bind("monitors", "", "system:monitoring", FrontBench::user("jane"));
  EXPECT_EQ(bench.get("jane", "/metrics")->status, 200);
}

TEST(Metrics, LabelsAreEscaped) {
  EXPECT_EQ(label_text({{"a", "x\"\\\ny"}, {"b", ""}}), R"(a="x\"\\\ny",b="")");
}

}  // namespace
}  // namespace tessera::apiserver
