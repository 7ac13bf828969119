// Pods and what is around them, in any dialect of gangs and queues: the input is a YAML stream. Each object is read as a pod
// whose group, owners and namespace are among the others, and as a queue. Every reading is one that the engine can take.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "json/yaml.h"
#include "kube/object.h"
#include "scheduler/groups.h"
#include "scheduler/queue_objects.h"

using namespace tessera;

namespace {

void check_group(const kube::Object& pod, const scheduler::GroupSources& sources) {
  const scheduler::Group group = scheduler::read_group(pod, sources);
  const scheduler::queueing::GangSpec& spec = group.spec;
  TS_CHECK(!group.key.empty());
  TS_CHECK(!spec.queue.empty());
  TS_CHECK(spec.min_members >= 1);
  TS_CHECK(group.subgroup_names.size() == spec.subgroup_mins.size());
  TS_CHECK(group.subgroup >= 0);
  TS_CHECK(static_cast<size_t>(group.subgroup) < std::max<size_t>(spec.subgroup_mins.size(), 1));
  TS_CHECK(!spec.runtime || spec.runtime->ns > 0);
  int64_t sum = 0;
  for (const int32_t least : spec.subgroup_mins) {
    TS_CHECK(least >= 0);
    sum += least;
  }
  TS_CHECK(sum <= spec.min_members || !group.waits.empty() || spec.min_members == INT32_MAX);
}

void check_queue(const kube::Object& object) {
  scheduler::queueing::Dims dims;
  const auto read = scheduler::read_queue_object(object, dims, {});
  if (!read) return;
  for (const auto* amounts : {&read->spec.quota, &read->spec.limit}) {
    for (const auto& [dim, amount] : *amounts) TS_CHECK(dim < dims.size() && amount >= 0);
  }
  TS_CHECK(read->problem.empty() || !read->spec.open);
  scheduler::queueing::QueueTree::build({read->spec, read->spec});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto documents =
      json::parse_yaml_stream(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!documents) return 0;
  std::vector<kube::Object> world(documents->begin(), documents->end());
  scheduler::GroupSources sources;
  sources.object = [&world](std::string_view group, std::string_view kind, std::string_view,
                            std::string_view name) {
    for (const kube::Object& each : world) {
      if (each.kind() == kind && each.name() == name && each.api_version().starts_with(group))
        return each;
    }
    return kube::Object();
  };
  sources.ns = [&world](std::string_view) { return world.empty() ? kube::Object() : world.back(); };
  sources.priority_class = [](std::string_view name) {
    return name.size() % 2 == 0 ? std::optional(static_cast<int32_t>(name.size())) : std::nullopt;
  };
  sources.queue_exists = [](std::string_view name) { return name.size() % 2 == 0; };
  for (const kube::Object& object : world) {
    check_group(object, sources);
    check_queue(object);
  }
  return 0;
}
