#include "scheduler/queue_objects.h"

#include <gmock/gmock.h>

#include "scheduler/scheduler_testing.h"
#include "scheduler/translate.h"

namespace tessera::scheduler {
namespace {

using queueing::Amounts;
using queueing::kCpu;
using queueing::kGpu;
using queueing::kMemory;
using queueing::kUnlimited;
using queueing::QueueSpec;
using testing::decoded_pod;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::pod_object;
using testing::yaml;

class QueueObjectsTest : public ::testing::Test {
 protected:
  QueueReading read(std::string_view api_version, std::string_view rest) {
    json::Value object = yaml("{kind: Queue, metadata: {name: q}}");
    object.set("apiVersion", api_version);
    testing::merge(object, yaml(rest));
    auto out = read_queue_object(kube::Object(object), dims, rules);
    EXPECT_TRUE(out);
    return out ? *out : QueueReading();
  }
  QueueReading ours(std::string_view spec) {
    return read("tessera.dev/v1alpha1", fmt::format("spec: {}", spec));
  }
  QueueReading volcano(std::string_view rest) {
    return read("scheduling.volcano.sh/v1beta1", rest);
  }
  QueueReading kai(std::string_view spec) {
    return read("scheduling.run.ai/v2", fmt::format("spec: {}", spec));
  }
  Amounts amounts(std::string_view more, int gpus = 0) {
    auto request = translate_pod(decoded_pod(pod_object("p", more, gpus)), names);
    EXPECT_TRUE(request) << request.error().message;
    return request ? member_amounts(*request, names, dims, rules) : Amounts();
  }

  queueing::Dims dims;
  core::Interner names;
  ShareRules rules;
};

TEST_F(QueueObjectsTest, Our_queue_says_all_that_the_engine_knows) {
  const QueueReading reading = ours(R"(
{parent: top, weight: 3, priority: 200, strictFifo: true, reclaimable: false, reservations: 2, closed: true,
 minRuntime: 10m, defaultRuntime: 1h30m,
 quota: {gpu: "4", cpu: 500m, memory: 1Gi, gpu/H100: 2},
 limit: {nvidia.com/gpu: "8.5", gpu/NVIDIA-H200: 6, example.com/licence: 3}}
)");
  EXPECT_EQ(reading.problem, "");
  EXPECT_THAT(reading.notes, IsEmpty());
  const QueueSpec& queue = reading.spec;
  EXPECT_EQ(queue.name, "q");
  EXPECT_EQ(queue.parent, "top");
  EXPECT_EQ(queue.weight, 3);
  EXPECT_EQ(queue.priority, 200);
  EXPECT_TRUE(queue.strict_fifo);
  EXPECT_FALSE(queue.reclaimable);
  EXPECT_EQ(queue.reservations, 2);
  EXPECT_FALSE(queue.open);
  EXPECT_EQ(queue.runtime_min, base::seconds(600));
  EXPECT_EQ(queue.runtime_default, base::seconds(5400));
  EXPECT_EQ(queue.quota.at(kGpu), 28000);
  EXPECT_EQ(queue.quota.at(kCpu), 500);
  EXPECT_EQ(queue.quota.at(kMemory), 1024);
  EXPECT_EQ(queue.limit.at(kGpu), 59500);
  EXPECT_EQ(queue.limit.at(dims.intern("example.com/licence")), 3);
  const core::ModelId model =
      translate_node(testing::decoded_node(testing::node_object("n")), names).spec.model;
  EXPECT_EQ(queue.limit.at(dims.model(names.text(model))), 42000)
      << "a model has one name, whatever a queue calls it";
}

TEST_F(QueueObjectsTest, An_empty_queue_has_the_defaults) {
  for (const char* api :
       {"tessera.dev/v1alpha1", "scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2"}) {
    const QueueReading reading = read(api, "{}");
    EXPECT_EQ(reading.problem, "") << api;
    EXPECT_THAT(reading.notes, IsEmpty()) << api;
    EXPECT_TRUE(reading.spec.quota.empty());
    EXPECT_TRUE(reading.spec.limit.empty());
    EXPECT_EQ(reading.spec.weight, 1);
    EXPECT_EQ(reading.spec.priority, 100) << api;
    EXPECT_TRUE(reading.spec.open);
    EXPECT_TRUE(reading.spec.reclaimable);
    EXPECT_FALSE(reading.spec.runtime_default);
  }
}

TEST_F(QueueObjectsTest, Slices_in_a_quota_are_parts_of_a_GPU) {
  const QueueReading reading = ours(R"(
{quota: {nvidia.com/mig-1g.10gb: 3, nvidia.com/mig-3g.40gb: 1}, limit: {nvidia.com/mig-1g.10gb: 7}}
)");
  EXPECT_EQ(reading.problem, "");
  EXPECT_EQ(reading.spec.quota.at(kGpu), 6000);
  EXPECT_FALSE(reading.spec.limit.has(kGpu)) << "whole GPUs are not limited by it";
  EXPECT_EQ(reading.spec.limit.at(dims.intern("nvidia.com/mig-1g.10gb")), 7);
  EXPECT_EQ(ours("{limit: {gpu: 1, nvidia.com/mig-1g.10gb: 7}}").spec.limit.at(kGpu), 14000);
}

TEST_F(QueueObjectsTest, A_resource_of_a_GPU_counts_its_part) {
  struct Case {
    const char* resource;
    int64_t units;
  };
  rules.replicas_per_gpu = 4;
  for (const Case& c :
       {Case{"nvidia.com/gpu", 7000}, Case{"amd.com/gpu", 7000},
        Case{"nvidia.com/gpu.shared", 1750}, Case{"nvidia.com/mig-1g.10gb", 1000},
        Case{"nvidia.com/mig-1g.10gb.me", 1000}, Case{"nvidia.com/mig-1g.20gb", 1000},
        Case{"nvidia.com/mig-2g.20gb", 2000}, Case{"nvidia.com/mig-3g.40gb", 3000},
        Case{"nvidia.com/mig-7g.80gb", 7000}, Case{"nvidia.com/mig-1g.6gb", 1750},
        Case{"nvidia.com/mig-4g.24gb", 7000}, Case{"nvidia.com/mig-1c.3g.40gb", 1000},
        Case{"nvidia.com/mig-2g.999gb", 2000}}) {
    EXPECT_EQ(gpu_units_of(c.resource, rules), c.units) << c.resource;
  }
  EXPECT_FALSE(gpu_units_of("nvidia.com/mig-xyz", rules));
  EXPECT_FALSE(gpu_units_of("example.com/fpga", rules));
  rules.replicas_per_gpu = 0;
  EXPECT_EQ(gpu_units_of("nvidia.com/gpu.shared", rules), 7000);
}

TEST_F(QueueObjectsTest, Volcanos_queue_keeps_its_meaning) {
  const QueueReading reading = volcano(R"(
spec: {weight: 4, parent: root, priority: 5, reclaimable: false, dequeueStrategy: fifo,
  capability: {cpu: "100", memory: 100Gi, nvidia.com/gpu: 16},
  deserved: {cpu: "50", nvidia.com/gpu: 8}, guarantee: {resource: {nvidia.com/gpu: 10, memory: 1Gi}}}
status: {state: Open}
)");
  EXPECT_EQ(reading.problem, "");
  const QueueSpec& queue = reading.spec;
  EXPECT_EQ(queue.parent, "");
  EXPECT_EQ(queue.weight, 4);
  EXPECT_EQ(queue.priority, 105);
  EXPECT_FALSE(queue.reclaimable);
  EXPECT_TRUE(queue.strict_fifo);
  EXPECT_TRUE(queue.open);
  EXPECT_EQ(queue.limit, (Amounts{{kGpu, 112000}, {kCpu, 100000}, {kMemory, 102400}}));
  EXPECT_EQ(queue.quota, (Amounts{{kGpu, 70000}, {kCpu, 50000}, {kMemory, 1024}}));
  for (const char* state : {"Closed", "Closing"})
    EXPECT_FALSE(volcano(fmt::format("status: {{state: {}}}", state)).spec.open);
  EXPECT_EQ(volcano("spec: {parent: a}").spec.parent, "a");
  EXPECT_FALSE(read_queue_object(
      kube::Object(
          yaml("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: root}}")),
      dims, rules));
}

TEST_F(QueueObjectsTest, KAIs_queue_keeps_its_meaning) {
  const QueueReading reading = kai(R"(
{parentQueue: dept, priority: 120, preemptMinRuntime: 1m, reclaimMinRuntime: 5m,
 resources: {gpu: {quota: 2.5, limit: -1, overQuotaWeight: 3}, cpu: {quota: 4000, limit: 8000},
             memory: {quota: -1, limit: 1048.576}}}
)");
  EXPECT_EQ(reading.problem, "");
  const QueueSpec& queue = reading.spec;
  EXPECT_EQ(queue.parent, "dept");
  EXPECT_EQ(queue.priority, 120);
  EXPECT_EQ(queue.weight, 3);
  EXPECT_EQ(queue.runtime_min, base::seconds(300));
  EXPECT_THAT(reading.notes, ElementsAre(HasSubstr("the longer counts")));
  EXPECT_EQ(queue.quota, (Amounts{{kGpu, 17500}, {kCpu, 4000}, {kMemory, 1000}}));
  EXPECT_EQ(queue.limit, (Amounts{{kCpu, 8000}, {kMemory, 1000}}));
  EXPECT_EQ(kai("{resources: {gpu: {quota: -1}}}").spec.quota.at(kGpu), kUnlimited);
  const QueueReading half = kai("{resources: {gpu: {overQuotaWeight: 0.5}}}");
  EXPECT_EQ(half.spec.weight, 1);
  EXPECT_THAT(half.notes, ElementsAre(HasSubstr("rounded to 1")));
  EXPECT_EQ(kai("{resources: {gpu: {overQuotaWeight: 0}}}").spec.weight, 0);
}

TEST_F(QueueObjectsTest, What_makes_no_sense_closes_the_queue_with_the_field) {
  struct Case {
    const char* api;
    const char* spec;
    const char* problem;
  };
  const char* kOurs = "tessera.dev/v1alpha1";
  const char* kVolcano = "scheduling.volcano.sh/v1beta1";
  const char* kKai = "scheduling.run.ai/v2";
  for (const Case& c :
       {Case{kOurs, "{quota: {gpu: -1}}", "spec.quota.gpu: -1 is negative"},
        Case{kOurs, "{limit: {gpu: many}}", "spec.limit.gpu: \"many\" is no amount"},
        Case{kOurs, "{limit: 3}", "spec.limit: it is no list"},
        Case{kOurs, "{weight: heavy}", "spec.weight: \"heavy\" is no whole number"},
        Case{kOurs, "{weight: 1.5}", "spec.weight: 1.5 is no whole number"},
        Case{kOurs, "{closed: maybe}", "spec.closed: \"maybe\" is neither"},
        Case{kOurs, "{minRuntime: soon}", "spec.minRuntime: \"soon\" is no time"},
        Case{kVolcano, "{capability: {cpu: x}}", "spec.capability.cpu: \"x\" is no amount"},
        Case{kVolcano, "{guarantee: {resource: {cpu: -2}}}", "spec.guarantee.resource.cpu"},
        Case{kKai, "{resources: {gpu: {quota: -2}}}", "spec.resources.gpu.quota: -2 is no number"},
        Case{kKai, "{resources: {cpu: {limit: text}}}", "spec.resources.cpu.limit"},
        Case{kKai, "{resources: {gpu: {overQuotaWeight: -1}}}", "overQuotaWeight: -1 is out of"},
        Case{kKai, "{resources: {gpu: {overQuotaWeight: 1e300}}}", "is out of range"}}) {
    const QueueReading reading = read(c.api, fmt::format("spec: {}", c.spec));
    EXPECT_THAT(reading.problem, HasSubstr(c.problem));
    EXPECT_FALSE(reading.spec.open);
  }
  // What the tree itself finds wrong.
  const auto in_tree = [&](std::string_view spec) {
    return queueing::QueueTree::build({ours(spec).spec}).at(queueing::QueueId(1)).problem;
  };
  EXPECT_THAT(in_tree("{weight: -1}"), HasSubstr("weight -1 is out of range"));
  EXPECT_THAT(in_tree("{weight: 9223372036854775807}"), HasSubstr("is out of range"));
  EXPECT_THAT(in_tree("{quota: {gpu: 2}, limit: {gpu: 1}}"), HasSubstr("quota is above the limit"));
  EXPECT_THAT(in_tree("{parent: nowhere}"), HasSubstr("\"nowhere\" does not exist"));
}

TEST_F(QueueObjectsTest, Objects_of_any_shape_are_read_without_harm) {
  for (const char* odd : {"null", "[]", "{}", "3", "text", "{a: 1}", "1e308", "-1", "{gpu: 1e400}",
                          "{cpu: 9223372036854775807, gpu: 9223372036854775807}"}) {
    ours(
        fmt::format("{{quota: {0}, limit: {0}, weight: {0}, priority: {0}, minRuntime: {0}, "
                    "defaultRuntime: {0}, reservations: {0}, parent: {0}, closed: {0}}}",
                    odd));
    volcano(
        fmt::format("{{spec: {{capability: {0}, deserved: {0}, guarantee: {0}, weight: {0}, "
                    "priority: {0}}}, status: {0}}}",
                    odd));
    kai(fmt::format("{{resources: {{gpu: {0}, cpu: {{quota: {0}, limit: {0}}}}}, priority: {0}}}",
                    odd));
    ours(odd);
  }
  EXPECT_FALSE(read_queue_object(kube::Object(), dims, rules));
  EXPECT_FALSE(
      read_queue_object(kube::Object(yaml("{apiVersion: x/v1, kind: Queue}")), dims, rules));
}

TEST_F(QueueObjectsTest, A_pod_takes_GPUs_cores_and_memory_from_its_queue) {
  EXPECT_EQ(amounts("{}", 4), (Amounts{{kGpu, 28000}, {kCpu, 1000}, {kMemory, 1024}}));
  EXPECT_EQ(amounts("{}"), (Amounts{{kCpu, 1000}, {kMemory, 1024}}));
  struct Case {
    const char* annotations;
    int64_t units;
  };
  rules.gpu_memory_mib = 40'000;
  for (const Case& c :
       {Case{"{tessera.dev/gpu-milli: '250'}", 1750}, Case{"{gpu-fraction: '0.5'}", 3500},
        Case{"{tessera.dev/gpu-milli: '1', tessera.dev/gpu-count: '3'}", 21},
        Case{"{gpu-memory: '10000'}", 1750}, Case{"{gpu-memory: '50000'}", 7000},
        Case{"{gpu-memory: '10000', gpu-fraction-num-devices: '2'}", 3500},
        Case{"{gpu-memory: '50000', tessera.dev/gpu-model: 'H200'}", 2447}}) {
    const Amounts taken = amounts(fmt::format("metadata: {{annotations: {}}}", c.annotations));
    EXPECT_EQ(taken.at(kGpu), c.units) << c.annotations;
  }
  rules.gpu_memory_mib = 0;
  EXPECT_EQ(amounts("metadata: {annotations: {gpu-memory: '10'}}").at(kGpu), 7000);
}

TEST_F(QueueObjectsTest, Slices_and_replicas_count_as_parts_and_by_name) {
  rules.replicas_per_gpu = 4;
  const Amounts taken = amounts(R"(
spec:
  containers:
  - name: a
    resources:
      limits: {nvidia.com/mig-1g.10gb: 2, nvidia.com/gpu.shared: 1, example.com/fpga: 3, ephemeral-storage: 1Gi}
)");
  EXPECT_EQ(taken.at(kGpu), 3750);
  EXPECT_EQ(taken.at(dims.intern("nvidia.com/mig-1g.10gb")), 2);
  EXPECT_EQ(taken.at(dims.intern("nvidia.com/gpu.shared")), 1);
  EXPECT_EQ(taken.at(dims.intern("example.com/fpga")), 3);
  EXPECT_FALSE(taken.has(dims.intern("ephemeral-storage")));
  dims.intern("pods");
  EXPECT_EQ(amounts("{}").at(dims.intern("pods")), 1);
}

TEST_F(QueueObjectsTest, Amounts_of_any_size_and_number_of_names_stay_in_bounds) {
  core::PodRequest request;
  request.shape.gpu.count = core::kAmountMax;
  request.shape.memory_bytes = core::kAmountMax;
  request.shape.cpu_milli = -5;
  request.shape.gpu.memory_mib = core::kAmountMax;
  for (int i = 0; i < 400; ++i)
    request.shape.extended.push_back({names.resource(fmt::format("e.com/{}", i)), 1});
  request.shape.extended.push_back({names.resource("nvidia.com/mig-7g.80gb"), core::kAmountMax});
  request.shape.extended.push_back({names.resource("e.com/neg"), -1});
  const Amounts taken = member_amounts(request, names, dims, rules);
  EXPECT_EQ(taken.at(kGpu), core::kAmountMax);
  EXPECT_EQ(taken.at(kMemory), int64_t{1} << 43);
  EXPECT_FALSE(taken.has(kCpu));
  EXPECT_EQ(dims.size(), kNamesMax);
}

}  // namespace
}  // namespace tessera::scheduler
