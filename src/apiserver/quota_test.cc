// What counts against a quota: usage by kind, scopes, verdicts.
#include "apiserver/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/quota_scopes.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::Quantity;
using kube::ResourceList;

constexpr base::Time kNow{1'767'225'600'000'000'000};

Value parse(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << (value ? "" : value.error().message);
  return value ? *value : Value();
}

const Kind& kind(const char* plural) {
  static const auto* const kRows = [] {
    auto* rows = new std::vector<Kind>();
    for (const auto* name : {"pods", "services", "persistentvolumeclaims", "secrets"}) {
      Kind one;
      one.plural = name;
      rows->push_back(one);
    }
    Kind jobs;
    jobs.group = "batch";
    jobs.plural = "jobs";
    rows->push_back(jobs);
    return rows;
  }();
  for (const Kind& each : *kRows) {
    if (each.plural == plural) return each;
  }
  ADD_FAILURE() << plural;
  return kRows->front();
}

QuotaItem item(const char* plural, std::string_view spec, std::string_view status = "{}") {
  Value object = Value::object({{"metadata", Value::object({{"name", "x"}, {"namespace", "t"}})}});
  object.set("spec", parse(spec));
  object.set("status", parse(status));
  return {kind(plural), object, kNow};
}

std::string usage(const QuotaItem& of) {
  return resource_list_json(of.usage).dump();
}

Value quota(std::string_view spec) {
  Value out = parse(R"({"metadata":{"name":"q","namespace":"t"}})");
  out.set("spec", parse(spec));
  return out;
}

TEST(QuotaUsage, A_gpu_limit_alone_counts_as_a_request) {
  const auto pod = item("pods", R"({"containers":[{"name":"c","resources":
      {"limits":{"nvidia.com/gpu":2,"cpu":"500m"}}}]})");
  EXPECT_EQ(usage(pod), R"({"count/pods":"1","cpu":"500m","limits.cpu":"500m","pods":"1",)"
                        R"("requests.cpu":"500m","requests.nvidia.com/gpu":"2"})");
}

TEST(QuotaUsage, Finished_pods_keep_only_their_place_in_the_store) {
  const char* spec = R"({"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":2}}}]})";
  for (const char* phase : {R"({"phase":"Succeeded"})", R"({"phase":"Failed"})"}) {
    EXPECT_EQ(usage(item("pods", spec, phase)), R"({"count/pods":"1"})");
  }
}

TEST(QuotaUsage, Terminating_pods_count_until_they_should_be_gone) {
  Value pod = parse(R"({"metadata":{"name":"x","deletionTimestamp":"2026-01-01T00:00:00Z",
      "deletionGracePeriodSeconds":30},"spec":{"containers":[{"name":"c"}]}})");
  EXPECT_TRUE(QuotaItem(kind("pods"), pod, kNow + base::seconds(30)).usage.contains("pods"));
  EXPECT_FALSE(QuotaItem(kind("pods"), pod, kNow + base::seconds(31)).usage.contains("pods"));
}

TEST(QuotaUsage, Services_count_their_node_ports_and_load_balancers) {
  EXPECT_EQ(usage(item("services", R"({"type":"ClusterIP","ports":[{"port":1}]})")),
            R"({"count/services":"1","services":"1","services.loadbalancers":"0",)"
            R"("services.nodeports":"0"})");
  EXPECT_EQ(usage(item("services", R"({"type":"LoadBalancer","ports":[{"port":1},{"port":2}]})")),
            R"({"count/services":"1","services":"1","services.loadbalancers":"1",)"
            R"("services.nodeports":"2"})");
}

TEST(QuotaUsage, Claims_count_in_all_and_for_their_class) {
  EXPECT_EQ(usage(item("persistentvolumeclaims", R"({"storageClassName":"fast",
      "resources":{"requests":{"storage":"1Gi"}}})")),
            R"({"count/persistentvolumeclaims":"1",)"
            R"("fast.storageclass.storage.k8s.io/persistentvolumeclaims":"1",)"
            R"("fast.storageclass.storage.k8s.io/requests.storage":"1Gi",)"
            R"("persistentvolumeclaims":"1","requests.storage":"1Gi"})");
}

TEST(QuotaUsage, Objects_count_by_resource_and_group_and_by_their_old_names) {
  EXPECT_EQ(usage(item("jobs", "{}")), R"({"count/jobs.batch":"1"})");
  EXPECT_EQ(usage(item("secrets", "{}")), R"({"count/secrets":"1","secrets":"1"})");
}

TEST(QuotaUsage, Only_requests_of_extended_resources_are_tracked) {
  EXPECT_TRUE(quota_tracks(kind("pods"), "requests.nvidia.com/gpu"));
  EXPECT_TRUE(quota_tracks(kind("pods"), "requests.nvidia.com/mig-1g.5gb"));
  EXPECT_FALSE(quota_tracks(kind("pods"), "nvidia.com/gpu"));
  EXPECT_FALSE(quota_tracks(kind("pods"), "limits.nvidia.com/gpu"));
  EXPECT_FALSE(quota_tracks(kind("pods"), "secrets"));
  EXPECT_TRUE(quota_tracks(kind("jobs"), "count/jobs.batch"));
  EXPECT_FALSE(quota_tracks(kind("jobs"), "count/jobs"));
}

struct Scope {
  const char* name;
  const char* quota;
  const char* pod;
  bool counts;
};

class QuotaScope : public ::testing::TestWithParam<Scope> {};

TEST_P(QuotaScope, Selects_pods) {
  Value spec = parse(GetParam().quota);
  spec.set("hard", parse(R"({"pods":"1"})"));
  EXPECT_EQ(scopes_match(spec, item("pods", GetParam().pod)), GetParam().counts);
  EXPECT_FALSE(scopes_match(spec, item("secrets", "{}")));
}

constexpr const char* kBare = R"({"containers":[{"name":"c"}]})";
constexpr const char* kSized =
    R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]})";
constexpr const char* kTimed = R"({"activeDeadlineSeconds":5,"containers":[{"name":"c"}]})";
constexpr const char* kHigh = R"({"priorityClassName":"high","containers":[{"name":"c"}]})";
constexpr const char* kFar = R"({"containers":[{"name":"c"}],"affinity":{"podAntiAffinity":
  {"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z","namespaces":["b"]}]}}})";
#define TS_CLASS(op, values)                                                              \
  R"({"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":")" op \
  R"(","values":)" values R"(}]}})"

INSTANTIATE_TEST_SUITE_P(
    Scopes, QuotaScope,
    ::testing::Values(
        Scope{"best_effort", R"({"scopes":["BestEffort"]})", kBare, true},
        Scope{"best_effort_not", R"({"scopes":["BestEffort"]})", kSized, false},
        Scope{"not_best_effort", R"({"scopes":["NotBestEffort"]})", kSized, true},
        Scope{"not_best_effort_not", R"({"scopes":["NotBestEffort"]})", kBare, false},
        Scope{"terminating", R"({"scopes":["Terminating"]})", kTimed, true},
        Scope{"terminating_not", R"({"scopes":["Terminating"]})", kBare, false},
        Scope{"not_terminating", R"({"scopes":["NotTerminating"]})", kTimed, false},
        Scope{"priority", R"({"scopes":["PriorityClass"]})", kHigh, true},
        Scope{"priority_not", R"({"scopes":["PriorityClass"]})", kBare, false},
        Scope{"all_hold", R"({"scopes":["PriorityClass","Terminating"]})", kHigh, false},
        Scope{"class_in", TS_CLASS("In", R"(["high","low"])"), kHigh, true},
        Scope{"class_in_not", TS_CLASS("In", R"(["low"])"), kHigh, false},
        Scope{"class_in_none", TS_CLASS("In", R"(["low"])"), kBare, false},
        Scope{"class_not_in", TS_CLASS("NotIn", R"(["high"])"), kHigh, false},
        Scope{"class_not_in_none", TS_CLASS("NotIn", R"(["high"])"), kBare, true},
        Scope{"class_exists", TS_CLASS("Exists", "[]"), kHigh, true},
        Scope{"class_absent", TS_CLASS("DoesNotExist", "[]"), kHigh, false},
        Scope{"far", R"({"scopes":["CrossNamespacePodAffinity"]})", kFar, true},
        Scope{"far_not", R"({"scopes":["CrossNamespacePodAffinity"]})", kBare, false}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(QuotaVerdicts, A_refusal_names_what_was_asked_used_and_allowed) {
  const auto verdict =
      judge_quota(quota(R"({"hard":{"requests.nvidia.com/gpu":"4","pods":"9"}})"),
                  {{"requests.nvidia.com/gpu", Quantity(3)}, {"pods", Quantity(1)}},
                  {{"requests.nvidia.com/gpu", Quantity(2)}, {"pods", Quantity(1)}});
  EXPECT_EQ(verdict.refusal,
            "exceeded quota: q, requested: requests.nvidia.com/gpu=2, used: "
            "requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4");
}

TEST(QuotaVerdicts, Less_is_always_let_in) {
  const auto verdict =
      judge_quota(quota(R"({"hard":{"services.nodeports":"1"}})"),
                  {{"services.nodeports", Quantity(5)}}, {{"services.nodeports", Quantity(-1)}});
  EXPECT_EQ(verdict.refusal, "");
  EXPECT_EQ(amount_of(verdict.used, "services.nodeports").value(), 4);
}

TEST(QuotaVerdicts, Compute_quotas_want_every_container_to_name_its_share) {
  const auto pod = item("pods", R"({"containers":[{"name":"b"},{"name":"a"}],
      "initContainers":[{"name":"i","resources":{"limits":{"cpu":"1"}}}]})");
  const Value spec = parse(R"({"hard":{"limits.cpu":"2","requests.memory":"1","pods":"3",
      "requests.nvidia.com/gpu":"1"}})");
  EXPECT_EQ(missing_resources(spec, *pod.pod),
            "must specify limits.cpu for: a,b; requests.memory for: a,b,i");
}

}  // namespace
}  // namespace tessera::apiserver
