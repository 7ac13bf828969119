#include "scheduler/translate.h"

#include <gmock/gmock.h>

#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using testing::bound;
using testing::decoded_node;
using testing::decoded_pod;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::node_object;
using testing::pod_object;

class TranslateTest : public ::testing::Test {
 protected:
  core::PodRequest request(std::string_view more, int gpus = 0) {
    auto out = translate_pod(decoded_pod(pod_object("p", more, gpus)), names);
    EXPECT_TRUE(out) << out.error().message;
    return out ? *out : core::PodRequest();
  }
  core::Shape shape(std::string_view more, int gpus = 0) { return request(more, gpus).shape; }
  std::string problem(std::string_view more, int gpus = 0) {
    auto out = translate_pod(decoded_pod(pod_object("p", more, gpus)), names);
    EXPECT_FALSE(out) << more;
    return out ? "" : out.error().message;
  }
  NodeView node(int gpus, std::string_view more = "{}") {
    return translate_node(decoded_node(node_object("n", gpus, more)), names);
  }
  int64_t extended(const core::Shape& of, std::string_view resource) {
    for (const auto& item : of.extended) {
      if (item.id == names.resource(resource)) return item.amount;
    }
    return 0;
  }

  core::Interner names;
};

TEST_F(TranslateTest, Whole_gpus_are_named_by_their_resource) {
  const core::Shape s = shape("{}", 4);
  EXPECT_EQ(s.gpu.count, 4);
  EXPECT_TRUE(s.gpu.whole());
  EXPECT_EQ(s.gpu.resource, names.resource("nvidia.com/gpu"));
  EXPECT_EQ(s.cpu_milli, 1000);
  EXPECT_EQ(s.memory_bytes, int64_t{1} << 30);
}

TEST_F(TranslateTest, Every_dialect_of_a_share_becomes_thousandths_or_memory) {
  struct Case {
    const char* annotations;
    int64_t count;
    int32_t milli;
    int64_t memory_mib;
  };
  for (const Case& c :
       {Case{R"({tessera.dev/gpu-milli: "250"})", 1, 250, 0},
        Case{R"({tessera.dev/gpu-milli: "1000"})", 1, 1000, 0},
        Case{R"({tessera.dev/gpu-milli: "500", tessera.dev/gpu-count: "3"})", 3, 500, 0},
        Case{R"({gpu-fraction: "0.5"})", 1, 500, 0},
        Case{R"({gpu-fraction: "0.125", gpu-fraction-num-devices: "2"})", 2, 125, 0},
        Case{R"({gpu-memory: "4096"})", 1, 1000, 4096},
        Case{R"({gpu-memory: "2000", gpu-fraction-num-devices: "4"})", 4, 1000, 2000}}) {
    const core::Shape s = shape(fmt::format("metadata: {{annotations: {}}}", c.annotations));
    EXPECT_EQ(s.gpu.count, c.count) << c.annotations;
    EXPECT_EQ(s.gpu.milli, c.milli) << c.annotations;
    EXPECT_EQ(s.gpu.memory_mib, c.memory_mib) << c.annotations;
    EXPECT_FALSE(s.gpu.resource.valid()) << "a share takes a GPU of any vendor";
  }
}

TEST_F(TranslateTest, Slices_and_replicas_are_extended_resources) {
  const core::Shape s = shape(R"(
spec:
  containers:
    - {name: a, resources: {limits: {nvidia.com/mig-1g.10gb: 2}}}
    - {name: b, resources: {limits: {nvidia.com/gpu.shared: 1, nvidia.com/mig-1g.10gb: 1}}}
)");
  EXPECT_EQ(s.gpu.count, 0);
  EXPECT_EQ(extended(s, "nvidia.com/mig-1g.10gb"), 3);
  EXPECT_EQ(extended(s, "nvidia.com/gpu.shared"), 1);
}

TEST_F(TranslateTest, A_share_that_cannot_be_read_names_the_annotation) {
  struct Case {
    const char* annotations;
    const char* says;
  };
  for (const Case& c :
       {Case{R"({tessera.dev/gpu-milli: "0"})", "from 1 to 1000"},
        Case{R"({tessera.dev/gpu-milli: "1001"})", "tessera.dev/gpu-milli"},
        Case{R"({tessera.dev/gpu-milli: "half"})", "\"half\" is not a whole number"},
        Case{R"({tessera.dev/gpu-milli: ""})", "tessera.dev/gpu-milli"},
        Case{R"({tessera.dev/gpu-milli: "99999999999999999999"})", "from 1 to 1000"},
        Case{R"({gpu-fraction: "1.5"})", "annotation gpu-fraction"},
        Case{R"({gpu-fraction: "0"})", "annotation gpu-fraction"},
        Case{R"({gpu-memory: "4Gi"})", "annotation gpu-memory"},
        Case{R"({gpu-memory: "0"})", "annotation gpu-memory"},
        Case{R"({gpu-fraction: "0.5", gpu-fraction-num-devices: "17"})", "from 1 to 16"},
        Case{R"({tessera.dev/gpu-milli: "5", tessera.dev/gpu-count: "0"})", "gpu-count"},
        Case{R"({gpu-fraction: "0.5", gpu-memory: "100"})", "keep one"},
        Case{R"({tessera.dev/gpu-milli: "5", gpu-fraction: "0.5"})", "keep one"}}) {
    EXPECT_THAT(problem(fmt::format("metadata: {{annotations: {}}}", c.annotations)),
                HasSubstr(c.says));
  }
}

TEST_F(TranslateTest, Whole_gpus_and_a_share_or_two_vendors_exclude_each_other) {
  EXPECT_THAT(problem(R"(metadata: {annotations: {gpu-fraction: "0.5"}})", 1),
              HasSubstr("keep one"));
  EXPECT_THAT(problem(R"(
spec:
  containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1, amd.com/gpu: 1}}}])"),
              HasSubstr("two vendors"));
}

TEST_F(TranslateTest, C13_init_containers_and_sidecars_count_as_kubernetes_counts_them) {
  const core::Shape s = shape(R"(
spec:
  initContainers:
    - {name: prep, resources: {limits: {nvidia.com/gpu: 1}}}
    - {name: cache, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}
    - {name: convert, resources: {limits: {nvidia.com/gpu: 2}}}
  containers: [{name: train, resources: {limits: {nvidia.com/gpu: 1}}}]
)");
  EXPECT_EQ(s.gpu.count, 3);
}

TEST_F(TranslateTest, C39_huge_amounts_stay_what_they_are) {
  const core::Shape s = shape(R"(
spec:
  containers:
    - {name: a, resources: {limits: {nvidia.com/gpu: 9223372036854775807}}}
    - {name: b, resources: {limits: {nvidia.com/gpu: 9223372036854775807, memory: 8Ei}}}
)");
  EXPECT_EQ(s.gpu.count, INT64_MAX);
  EXPECT_EQ(s.memory_bytes, INT64_MAX);
}

TEST_F(TranslateTest, Models_are_known_by_any_of_their_names) {
  const core::Shape s =
      shape(R"(metadata: {annotations: {tessera.dev/gpu-model: "NVIDIA-H200 | ACME-1||H200"}})");
  EXPECT_EQ(s.models.size(), 2U) << "the label's value and the short name are one product";
  EXPECT_THAT(s.models, ::testing::Contains(names.model("ACME-1")));
  EXPECT_THAT(s.models, ::testing::Contains(node(8).spec.model));
}

TEST_F(TranslateTest, A_node_has_its_devices_model_and_memory) {
  const NodeView view = node(8);
  EXPECT_EQ(view.spec.gpus, 8);
  EXPECT_EQ(view.spec.gpus_unhealthy, 0U);
  EXPECT_GT(view.spec.gpu_memory_mib, 130'000);
  EXPECT_EQ(view.spec.cpu_milli, 64'000);
  EXPECT_EQ(view.spec.pods_max, 110);
  EXPECT_TRUE(view.spec.ready);
  EXPECT_FALSE(view.spec.unschedulable);
  EXPECT_EQ(view.spec.gpu_resource, names.resource("nvidia.com/gpu"));
}

TEST_F(TranslateTest, Sick_gpus_are_those_named_or_else_the_last_ones) {
  EXPECT_EQ(node(4, R"(metadata: {annotations: {tessera.dev/unhealthy-gpus: "0,2"}})")
                .spec.gpus_unhealthy,
            0b0101U);
  EXPECT_EQ(node(4, R"(status: {allocatable: {nvidia.com/gpu: "3"}})").spec.gpus_unhealthy,
            0b1000U);
  const NodeView both = node(4, R"(
metadata: {annotations: {tessera.dev/unhealthy-gpus: "0"}}
status: {allocatable: {nvidia.com/gpu: "3"}})");
  EXPECT_EQ(both.spec.gpus_unhealthy, 0b0001U);
  EXPECT_EQ(both.spec.gpus, 4) << "a pod on the sick GPU keeps its device";
  EXPECT_EQ(node(2, R"(status: {allocatable: {nvidia.com/gpu: "-5"}})").spec.gpus_unhealthy, 0b11U);
}

TEST_F(TranslateTest, Whole_gpus_beside_cut_ones_keep_their_physical_index) {
  const NodeView view = node(2, R"(metadata: {annotations: {tessera.dev/gpu-indexes: "2,3"}})");
  EXPECT_THAT(view.gpu_index, ElementsAre(2, 3));
  core::PodRequest one = request("{}", 1);
  const auto written = binding_annotations({core::NodeId(0), 0b10, 1000}, view, one);
  EXPECT_THAT(written, ElementsAre(std::pair<std::string, std::string>("tessera.dev/gpus", "3")));
  const auto seen =
      placement_of(bound(pod_object("p", "{}", 1), "n", "3"), view, core::NodeId(0), one);
  EXPECT_EQ(seen.devices, 0b10U);
}

TEST_F(TranslateTest, More_gpus_than_the_core_can_count_are_left_out) {
  const NodeView view = node(99);
  EXPECT_EQ(view.spec.gpus, 16);
  EXPECT_EQ(view.gpu_index.size(), 16U);
}

TEST_F(TranslateTest, Binding_writes_what_it_reads_again) {
  const NodeView view = node(4);
  core::PodRequest share =
      request(R"(metadata: {annotations: {gpu-fraction: "0.25", gpu-fraction-num-devices: "2"}})");
  const core::Placement placed{core::NodeId(7), 0b1010, 250};
  testing::yaml("{}");
  json::Value annotated = pod_object("p").json();
  for (const auto& [key, value] : binding_annotations(placed, view, share)) {
    annotated.ref("metadata", "annotations", key) = value;
  }
  EXPECT_EQ(
      annotated["metadata"]["annotations"].dump(),
      R"({"tessera.dev/gpus":"1,3","tessera.dev/share-gpus":"2","tessera.dev/share-milli":"250"})");
  EXPECT_EQ(placement_of(kube::Object(annotated), view, core::NodeId(7), share), placed);
  EXPECT_TRUE(binding_annotations({core::NodeId(7), 0, 1000}, view, request("{}")).empty());
}

TEST_F(TranslateTest, A_share_is_what_the_pod_asks_for_whatever_its_annotations_say_later) {
  const NodeView view = node(4);
  const core::PodRequest share =
      request(R"(metadata: {annotations: {tessera.dev/gpu-milli: "900"}})");
  json::Value edited = pod_object("p").json();
  edited.ref("metadata", "annotations", "tessera.dev/gpus") = "0";
  edited.ref("metadata", "annotations", "tessera.dev/share-milli") = "1";
  EXPECT_EQ(placement_of(kube::Object(edited), view, core::NodeId(0), share).milli, 900);
}

TEST_F(TranslateTest, A_bound_pod_without_our_annotations_leaves_the_devices_to_the_core) {
  const NodeView view = node(4);
  const auto by_memory = request(R"(metadata: {annotations: {gpu-memory: "2048"}})");
  const auto seen = placement_of(bound(pod_object("p"), "n"), view, core::NodeId(0), by_memory);
  EXPECT_EQ(seen.devices, 0U);
  EXPECT_EQ(seen.milli, 0);
  const auto odd =
      placement_of(bound(pod_object("p"), "n", "9,x,-1"), view, core::NodeId(0), request("{}", 1));
  EXPECT_EQ(odd.devices, 0U) << "indexes that the node does not have";
}

TEST_F(TranslateTest, A_bound_pod_counts_whatever_its_wishes_are) {
  const auto pod = decoded_pod(
      bound(pod_object("p", R"(metadata: {annotations: {gpu-fraction: "9"}})", 2), "n"));
  EXPECT_FALSE(translate_pod(pod, names));
  const core::PodRequest request = translate_bound_pod(pod, names);
  EXPECT_EQ(request.shape.gpu.count, 2);
  EXPECT_EQ(request.shape.cpu_milli, 1000);
}

TEST_F(TranslateTest, Node_selector_affinity_and_tolerations_keep_their_meaning) {
  const core::Shape s = shape(R"(
spec:
  nodeSelector: {pool: train}
  tolerations:
    - {key: dedicated, operator: Equal, value: train, effect: NoSchedule}
    - {operator: Exists}
    - {key: size, operator: Gt, value: "3"}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{key: mem, operator: Gt, values: ["40"]}]
          - matchFields: [{key: metadata.name, operator: In, values: [n9]}]
      preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 10, preference: {matchExpressions: [{key: x, operator: DoesNotExist}]}}
)");
  ASSERT_EQ(s.node_selector.size(), 1U);
  ASSERT_EQ(s.required.size(), 2U);
  EXPECT_EQ(s.required[0].expressions[0].op, core::Op::kGt);
  EXPECT_EQ(s.required[0].expressions[0].bound, 40);
  EXPECT_EQ(s.required[1].fields[0].values[0], names.string("n9"));
  EXPECT_EQ(s.preferred[0].weight, 10);
  ASSERT_EQ(s.tolerations.size(), 2U) << "numeric comparison does not tolerate here";
  EXPECT_EQ(s.tolerations[0].effect, core::Effect::kNoSchedule);
  EXPECT_FALSE(s.tolerations[0].exists);
  EXPECT_TRUE(s.tolerations[1].exists);
  EXPECT_FALSE(s.tolerations[1].key.valid());
}

TEST_F(TranslateTest, Required_affinity_without_terms_matches_no_node) {
  const core::Shape s = shape(R"(
spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}})");
  ASSERT_EQ(s.required.size(), 1U);
  EXPECT_FALSE(core::matches(s.required[0], {}, names.string("n"), names));
}

TEST_F(TranslateTest,
       Rules_between_pods_are_about_the_pods_own_namespace_unless_they_say_otherwise) {
  const core::PodRequest r = request(R"(
metadata: {labels: {app: web, rev: "7"}}
spec:
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: rack, labelSelector: {matchLabels: {app: db}}, namespaces: [b, a]}
        - {topologyKey: rack, labelSelector: {matchLabels: {app: db}}, namespaceSelector: {}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [rev, none]}
        - {topologyKey: zone}
  topologySpreadConstraints:
    - {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
    - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
)");
  ASSERT_EQ(r.affinity.size(), 2U);
  EXPECT_EQ(r.affinity[0].namespaces.size(), 2U);
  EXPECT_TRUE(r.affinity[1].namespaces.empty()) << "all namespaces";
  ASSERT_EQ(r.anti_affinity.size(), 2U);
  EXPECT_THAT(r.anti_affinity[0].namespaces, ElementsAre(names.string("default")));
  EXPECT_EQ(r.anti_affinity[0].selector.size(), 2U)
      << "app and rev; a key that the pod lacks is left out";
  EXPECT_FALSE(core::selects(r.anti_affinity[1], names.string("default"), r.labels, names))
      << "no selector selects no pod";
  ASSERT_EQ(r.spread.size(), 2U);
  EXPECT_EQ(r.spread[0].max_skew, 2);
  EXPECT_TRUE(r.spread[0].required);
  EXPECT_FALSE(r.spread[1].required);
}

TEST_F(TranslateTest, A_namespace_selector_is_refused_with_the_mend) {
  EXPECT_THAT(problem(R"(
spec:
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: rack, labelSelector: {}, namespaceSelector: {matchLabels: {team: a}}})"),
              HasSubstr("list namespaces"));
}

}  // namespace
}  // namespace tessera::scheduler
