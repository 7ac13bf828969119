// The definitions of config/crd on the embedded API: they are taken, and they hold objects to what the scheduler reads.

#include <gmock/gmock.h>

#include "apiserver/definitions.h"
#include "scheduler/groups.h"
#include "scheduler/queue_objects.h"
#include "sim/lab_testing.h"

namespace tessera::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFleet = "name: lab\nracks: [{name: r1, nodes: [{name: a}]}]";

class CrdManifests : public ::testing::Test {
 protected:
  CrdManifests() {
    base::Status done = base::error(base::Code::kTimeout, "no answer");
    apiserver::install_definitions(lab.client(), lab.loop(), apiserver::builtin_definitions(),
                                   [&](const base::Status& status) { done = status; });
    lab.advance(base::seconds(1));
    EXPECT_TRUE(done) << done.error().message;
  }
  kube::Reply create(kube::Gvr gvr, const json::Value& body, std::string ns = {}) {
    kube::Request request;
    request.verb = kube::Verb::kCreate;
    request.gvr = std::move(gvr);
    request.ns = std::move(ns);
    request.body = body;
    request.query = {{"fieldValidation", "Strict"}};
    return lab.call(std::move(request));
  }
  kube::Reply make(std::string_view kind, const char* plural, std::string_view spec) {
    auto object = json::parse_yaml(fmt::format(
        "{{apiVersion: tessera.dev/v1alpha1, kind: {}, metadata: {{name: o{}}}, spec: {}}}", kind,
        ++made_, spec));
    EXPECT_TRUE(object) << object.error().message;
    return create({"tessera.dev", "v1alpha1", plural}, *object);
  }
  // As its users write it, by kubectl's strict validation.
  kube::Reply apply(std::string_view manifest) {
    auto object = json::parse_yaml(manifest);
    EXPECT_TRUE(object) << object.error().message;
    const std::string version = (*object)["apiVersion"].str();
    const size_t slash = version.find('/');
    const bool group = (*object)["kind"].as_string() == "PodGroup";
    return create(
        {version.substr(0, slash), version.substr(slash + 1), group ? "podgroups" : "queues"},
        *object, group ? "default" : "");
  }
  kube::Reply queue(std::string_view spec) { return make("Queue", "queues", spec); }
  kube::Reply reservation(std::string_view spec) {
    return make("Reservation", "reservations", spec);
  }

  Lab lab{kFleet};
  int made_ = 0;
};

TEST_F(CrdManifests, A_queue_is_taken_with_defaults_that_the_scheduler_reads) {
  const auto made = queue(R"(
{parent: top, quota: {gpu: 4, cpu: 500m, nvidia.com/mig-1g.10gb: 7, gpu/H100: "2.5"}, limit: {memory: 64Gi},
 strictFifo: true, minRuntime: 10m, defaultRuntime: 1h30m}
)");
  ASSERT_TRUE(made) << made.error().message;
  const json::Value& spec = (*made)["spec"];
  EXPECT_EQ(spec["weight"].as_int(), 1);
  EXPECT_EQ(spec["priority"].as_int(), 100);
  EXPECT_EQ(spec["reservations"].as_int(), 1);
  EXPECT_TRUE(spec["reclaimable"].as_bool());
  scheduler::queueing::Dims dims;
  const auto read = scheduler::read_queue_object(kube::Object(*made), dims, {});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->problem, "");
  EXPECT_EQ(read->spec.quota.at(scheduler::queueing::kGpu), 35000);
  EXPECT_EQ(read->spec.runtime_default, base::seconds(5400));
}

TEST_F(CrdManifests, A_queue_that_makes_no_sense_is_refused_with_the_field) {
  struct Case {
    const char* spec;
    const char* field;
  };
  for (const Case& c :
       {Case{"{weight: -1}", "spec.weight"}, Case{"{weight: 1000001}", "spec.weight"},
        Case{"{quota: {gpu: \"-1\"}}", "spec.quota"}, Case{"{quota: {gpu: -1}}", "spec.quota"},
        Case{"{limit: {gpu: many}}", "spec.limit"}, Case{"{minRuntime: soon}", "spec.minRuntime"},
        Case{"{closed: maybe}", "spec.closed"}, Case{"{shares: 3}", "spec.shares"}}) {
    const auto made = queue(c.spec);
    ASSERT_FALSE(made) << c.spec;
    EXPECT_THAT(made.error().message, HasSubstr(c.field));
  }
}

TEST_F(CrdManifests, A_reservation_names_queue_amount_and_span) {
  const auto made =
      reservation("{queue: q, resources: {gpu: 16}, start: '2026-12-01T08:00:00Z', duration: 2h}");
  ASSERT_TRUE(made) << made.error().message;
  for (const char* spec :
       {"{queue: q, resources: {gpu: 16}, duration: 2h}",
        "{queue: q, resources: {}, start: '2026-12-01T08:00:00Z', duration: 2h}",
        "{queue: q, resources: {gpu: 1}, start: tomorrow, duration: 2h}",
        "{queue: '', resources: {gpu: 1}, start: '2026-12-01T08:00:00Z', duration: 2h}"}) {
    EXPECT_FALSE(reservation(spec)) << spec;
  }
}

TEST_F(CrdManifests, PodGroups_of_others_apply_as_they_are_and_are_read) {
  struct Case {
    const char* manifest;
    const char* pod;  // what makes it a member
    int64_t minimum;
  };
  for (const Case& c : {Case{R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g}
spec:
  minMember: 3
  minTaskMember: {worker: 2}
  queue: research
  priorityClassName: high
  minResources: {cpu: "3", memory: 3Gi, nvidia.com/gpu: 3}
  networkTopology: {mode: hard, highestTierAllowed: 1}
  subGroupPolicy: [{name: s, subGroupSize: 2, labelSelector: {matchLabels: {a: b}}}]
status: {phase: Pending}
)",
                             "{annotations: {scheduling.k8s.io/group-name: g}}", 3},
                        Case{R"(
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 4, scheduleTimeoutSeconds: 10, minResources: {cpu: 2}}
)",
                             "{labels: {scheduling.x-k8s.io/pod-group: g}}", 4},
                        Case{R"(
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: g}
spec:
  minMember: 5
  queue: research
  priorityClassName: train
  topologyConstraint: {topology: t, requiredTopologyLevel: rack}
  stalenessGracePeriod: 60s
)",
                             "{annotations: {pod-group-name: g}}", 5},
                        Case{R"(
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {schedulingPolicy: {gang: {minCount: 6}}}
)",
                             "", 6}}) {
    const auto made = apply(c.manifest);
    ASSERT_TRUE(made) << made.error().message << c.manifest;
    auto pod = json::parse_yaml(
        fmt::format("{{apiVersion: v1, kind: Pod, metadata: {}, spec: {{schedulingGroup: {}}}}}",
                    *c.pod != 0 ? c.pod : "{}", *c.pod != 0 ? "null" : "{podGroupName: g}"));
    ASSERT_TRUE(pod);
    pod->ref("metadata").set("namespace", "default");
    scheduler::GroupSources sources;
    sources.object = [&](std::string_view, std::string_view kind, std::string_view,
                         std::string_view name) {
      return kind == "PodGroup" && name == "g" ? kube::Object(*made) : kube::Object();
    };
    const scheduler::Group read = scheduler::read_group(kube::Object(*pod), sources);
    EXPECT_EQ(read.object.api_version, (*made)["apiVersion"].as_string());
    EXPECT_EQ(read.spec.min_members, c.minimum);
  }
}

TEST_F(CrdManifests, Queues_of_others_apply_as_they_are_and_are_read) {
  for (const char* manifest : {R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec:
  weight: 2
  reclaimable: true
  parent: root
  capability: {cpu: "64", nvidia.com/gpu: 16}
  deserved: {nvidia.com/gpu: "8"}
  guarantee: {resource: {nvidia.com/gpu: "4"}}
  affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [a]}}
  extendClusters: [{name: other, weight: 1}]
)",
                               R"(
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: research}
spec:
  displayName: Research
  priority: 101
  resources:
    gpu: {quota: 8, limit: 16, overQuotaWeight: 2}
    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}
    memory: {quota: -1, limit: -1, overQuotaWeight: 1}
  preemptMinRuntime: 5m
)"}) {
    const auto made = apply(manifest);
    ASSERT_TRUE(made) << made.error().message << manifest;
    scheduler::queueing::Dims dims;
    const auto read = scheduler::read_queue_object(kube::Object(*made), dims, {});
    ASSERT_TRUE(read);
    EXPECT_EQ(read->problem, "");
    EXPECT_EQ(read->spec.quota.at(scheduler::queueing::kGpu), 56000);
    EXPECT_EQ(read->spec.limit.at(scheduler::queueing::kGpu), 112000);
  }
}

TEST_F(CrdManifests, What_makes_no_sense_in_those_of_others_is_refused_with_the_field) {
  for (const auto& [version, kind, spec, field] :
       {std::tuple{"scheduling.volcano.sh/v1beta1", "PodGroup", "{minMember: many}",
                   "spec.minMember"},
        std::tuple{"scheduling.volcano.sh/v1beta1", "Queue", "{capability: {cpu: [1]}}",
                   "spec.capability.cpu"},
        std::tuple{"scheduling.x-k8s.io/v1alpha1", "PodGroup", "{minMember: 0}", "spec.minMember"},
        std::tuple{"scheduling.run.ai/v2", "Queue", "{resources: {gpu: {quota: lots}}}",
                   "spec.resources.gpu.quota"},
        std::tuple{"scheduling.run.ai/v2alpha2", "PodGroup", "{subGroups: [{minMember: 1}]}",
                   "spec.subGroups[0].name"}}) {
    const auto made = apply(fmt::format(
        "{{apiVersion: {}, kind: {}, metadata: {{name: x}}, spec: {}}}", version, kind, spec));
    ASSERT_FALSE(made) << spec;
    EXPECT_THAT(made.error().message, HasSubstr(field));
  }
}

}  // namespace
}  // namespace tessera::sim
