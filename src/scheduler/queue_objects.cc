#include "scheduler/queue_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/catalog.h"
#include "kube/quantity.h"
#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

using queueing::Amounts;
using queueing::Dim;
using queueing::kUnitsPerGpu;

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kMegabyte = 1'000'000;
constexpr int64_t kUnitsPerMilli = kUnitsPerGpu / 1000;
constexpr size_t kKeysMax = 128;

int32_t clamped(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}

class Reader {
 public:
  Reader(const kube::Object& object, queueing::Dims& dims, const ShareRules& rules)
      : spec_(object["spec"]), status_(object["status"]), dims_(dims), rules_(rules) {
    out_.spec.name = object.name();
  }
  QueueReading take() {
    // Its jobs wait until it is mended.
    if (!out_.problem.empty()) out_.spec.open = false;
    return std::move(out_);
  }

  Amounts quota(const json::Value& map, const char* field, std::string& problem) {
    Amounts out = amounts(map, field, false);
    problem = std::move(out_.problem);
    return out;
  }

  void ours() {
    queueing::QueueSpec& queue = out_.spec;
    queue.parent = text("parent");
    queue.quota = amounts(spec_["quota"], "spec.quota", false);
    queue.limit = amounts(spec_["limit"], "spec.limit", true);
    queue.weight = number("weight", queue.weight);
    queue.priority = clamped(number("priority", queue.priority));
    queue.strict_fifo = flag("strictFifo", false);
    queue.reclaimable = flag("reclaimable", true);
    queue.reservations = clamped(number("reservations", queue.reservations));
    queue.open = !flag("closed", false);
    if (const auto least = duration("minRuntime")) queue.runtime_min = *least;
    queue.runtime_default = duration("defaultRuntime");
  }

  void volcano() {
    queueing::QueueSpec& queue = out_.spec;
    queue.parent = text("parent");
    if (queue.parent == "root") queue.parent.clear();
    queue.limit = amounts(spec_["capability"], "spec.capability", true);
    const Amounts deserved = amounts(spec_["deserved"], "spec.deserved", false);
    const Amounts reserved =
        amounts(spec_.get("guarantee", "resource"), "spec.guarantee.resource", false);
    queue.quota = larger(deserved, reserved);
    queue.weight = number("weight", 1);
    queue.priority = clamped(core::sat_add(number("priority", 0), queue.priority));
    queue.reclaimable = flag("reclaimable", true);
    queue.strict_fifo = text("dequeueStrategy") == "fifo";
    const std::string_view state = status_["state"].as_string();
    queue.open = state != "Closed" && state != "Closing";
    if (spec_["affinity"].size() > 0)
      note("spec.affinity: nodes are not chosen by queue; select them in the pods");
  }

  void kai() {
    queueing::QueueSpec& queue = out_.spec;
    queue.parent = text("parentQueue");
    queue.priority = clamped(number("priority", queue.priority));
    const json::Value& resources = spec_["resources"];
    kai_resource(resources["gpu"], "gpu", queueing::kGpu, kUnitsPerGpu, 1);
    kai_resource(resources["cpu"], "cpu", queueing::kCpu, 1, 1);
    kai_resource(resources["memory"], "memory", queueing::kMemory, kMegabyte, kMib);
    kai_weight(resources);
    const auto preempt = duration("preemptMinRuntime");
    const auto reclaim = duration("reclaimMinRuntime");
    if (preempt && reclaim && *preempt != *reclaim)
      note("spec.preemptMinRuntime and spec.reclaimMinRuntime differ: the longer counts for both");
    queue.runtime_min =
        std::max(preempt.value_or(base::Duration()), reclaim.value_or(base::Duration()));
  }

 private:
  void note(std::string text) { out_.notes.push_back(std::move(text)); }
  void problem(std::string text) {
    if (out_.problem.empty()) out_.problem = std::move(text);
  }

  std::string text(const char* field) { return spec_[field].str(); }

  int64_t number(const char* field, int64_t otherwise) {
    const json::Value& value = spec_[field];
    if (value.is_null()) return otherwise;
    if (value.is_int()) return value.as_int();
    problem(fmt::format("spec.{}: {} is no whole number: give one", field, value.dump()));
    return otherwise;
  }

  bool flag(const char* field, bool otherwise) {
    const json::Value& value = spec_[field];
    if (value.is_null() || value.is_bool()) return value.as_bool(otherwise);
    problem(fmt::format("spec.{}: {} is neither true nor false: give one", field, value.dump()));
    return otherwise;
  }

  // "30m"; a bare number is seconds.
  std::optional<base::Duration> duration(const char* field) {
    constexpr int64_t kSecondsMax = int64_t{100} * 365 * 86400;
    const json::Value& value = spec_[field];
    if (value.is_null()) return std::nullopt;
    if (value.is_int() && value.as_int() >= 0)
      return base::seconds(std::min(value.as_int(), kSecondsMax));
    const auto parsed = base::parse_duration(value.as_string());
    if (parsed && parsed->ns >= 0) return *parsed;
    problem(fmt::format("spec.{}: {} is no time from 0: write it as 30m or 1h30m", field,
                        value.dump()));
    return std::nullopt;
  }

  // A quantity that makes sense, or nothing and the problem.
  std::optional<kube::Quantity> quantity(const json::Value& value, const std::string& field) {
    const std::string text = value.is_string() ? value.str() : value.dump();
    const auto parsed = kube::Quantity::parse(text);
    if (!parsed) {
      problem(fmt::format("{}: {} is no amount: write it as 4, 500m or 64Gi", field, value.dump()));
      return std::nullopt;
    }
    if (parsed->sign() < 0) {
      problem(fmt::format("{}: {} is negative: give 0 or more, or leave it out", field, text));
      return std::nullopt;
    }
    return *parsed;
  }

  Dim model_dim(std::string_view name) {
    const gpu::Model* model = gpu::find_model(name);
    return dims_.model(model != nullptr ? model->name : name);
  }

  // Amounts by resource. One key may stand for another ("gpu", "nvidia.com/gpu"): they add up.
  Amounts amounts(const json::Value& map, const char* field, bool is_limit) {
    Amounts out;
    if (map.is_null()) return out;
    if (!map.is_object() || map.size() > kKeysMax) {
      problem(fmt::format("{}: it is no list of up to {} resources with their amounts", field,
                          kKeysMax));
      return out;
    }
    bool gpus = false;
    int64_t parts = 0;
    for (const json::Member& member : map.members()) {
      const std::string_view name = member.name();
      const auto amount = quantity(member.value, fmt::format("{}.{}", field, name));
      if (!amount) continue;
      if (name == "gpu" || name == "nvidia.com/gpu" || name == "amd.com/gpu") {
        gpus = true;
        out.add(queueing::kGpu, core::sat_mul(amount->milli_value(), kUnitsPerMilli));
      } else if (name.starts_with("gpu/")) {
        out.add(model_dim(name.substr(4)), core::sat_mul(amount->milli_value(), kUnitsPerMilli));
      } else if (name == "cpu") {
        out.add(queueing::kCpu, amount->milli_value());
      } else if (name == "memory") {
        out.add(queueing::kMemory, mib(amount->value()));
      } else if (const auto units = gpu_units_of(name, rules_)) {
        parts = core::sat_add(parts, core::sat_mul(amount->value(), *units));
        if (is_limit) out.add(dims_.intern(name), amount->value());
      } else {
        out.add(dims_.intern(name), amount->value());
      }
    }
    if (parts > 0 && (gpus || !is_limit)) out.add(queueing::kGpu, parts);
    return out;
  }

  static int64_t mib(int64_t bytes) { return bytes <= 0 ? 0 : (bytes - 1) / kMib + 1; }

  static Amounts larger(const Amounts& a, const Amounts& b) {
    Amounts out = a;
    for (const auto& [dim, amount] : b) {
      const int64_t more = amount - a.at(dim);
      if (!a.has(dim) || more > 0) out.add(dim, std::max<int64_t>(more, 0));
    }
    return out;
  }

  // A number from 0, or -1 for unlimited; nothing where it is absent or makes no sense.
  std::optional<int64_t> kai_amount(const json::Value& value, const std::string& field,
                                    int64_t factor, int64_t unit) {
    if (value.is_null()) return std::nullopt;
    const double amount = value.as_double(std::numeric_limits<double>::quiet_NaN());
    if (value.is_number() && amount == -1) return queueing::kUnlimited;
    if (!value.is_number() || !std::isfinite(amount) || amount < 0) {
      problem(fmt::format("{}: {} is no number from 0, nor -1 for unlimited: give one", field,
                          value.dump()));
      return std::nullopt;
    }
    const double units =
        std::ceil(amount * static_cast<double>(factor) / static_cast<double>(unit) - 1e-6);
    constexpr double kMost = 9e18;
    return units >= kMost ? queueing::kUnlimited : static_cast<int64_t>(units);
  }

  void kai_resource(const json::Value& of, const char* name, Dim dim, int64_t factor,
                    int64_t unit) {
    const auto limit =
        kai_amount(of["limit"], fmt::format("spec.resources.{}.limit", name), factor, unit);
    const auto quota =
        kai_amount(of["quota"], fmt::format("spec.resources.{}.quota", name), factor, unit);
    if (limit && *limit != queueing::kUnlimited) out_.spec.limit.add(dim, *limit);
    // What is not limited cannot be more than the limit all the same.
    if (quota) out_.spec.quota.add(dim, *quota == queueing::kUnlimited && limit ? *limit : *quota);
  }

  void kai_weight(const json::Value& resources) {
    const json::Value& gpu = resources.get("gpu", "overQuotaWeight");
    for (const char* other : {"cpu", "memory"}) {
      const json::Value& weight = resources.get(other, "overQuotaWeight");
      if (!weight.is_null() && weight != gpu)
        note(
            fmt::format("spec.resources.{}.overQuotaWeight differs from that of gpu, which counts "
                        "for all",
                        other));
    }
    if (gpu.is_null()) return;
    const double weight = gpu.as_double(-1);
    if (!gpu.is_number() || !(weight >= 0) || weight > static_cast<double>(queueing::kWeightMax)) {
      problem(fmt::format("spec.resources.gpu.overQuotaWeight: {} is out of range: give 0 to {}",
                          gpu.dump(), queueing::kWeightMax));
      return;
    }
    out_.spec.weight = weight > 0 ? std::max<int64_t>(std::llround(weight), 1) : 0;
    if (static_cast<double>(out_.spec.weight) != weight)
      note(fmt::format("spec.resources.gpu.overQuotaWeight: {} is rounded to {}", gpu.dump(),
                       out_.spec.weight));
  }

  const json::Value& spec_;
  const json::Value& status_;
  queueing::Dims& dims_;
  const ShareRules& rules_;
  QueueReading out_{};
};

}  // namespace

std::optional<QueueReading> read_queue_object(const kube::Object& object, queueing::Dims& dims,
                                              const ShareRules& rules) {
  if (object.kind() != "Queue") return std::nullopt;
  const std::string_view group = group_of(object.api_version());
  Reader reader(object, dims, rules);
  if (group == "tessera.dev") {
    reader.ours();
  } else if (group == "scheduling.volcano.sh") {
    if (object.name() == "root") return std::nullopt;
    reader.volcano();
  } else if (group == "scheduling.run.ai") {
    reader.kai();
  } else {
    return std::nullopt;
  }
  return reader.take();
}

Amounts read_amounts(const json::Value& map, const char* field, queueing::Dims& dims,
                     const ShareRules& rules, std::string& problem) {
  return Reader(kube::Object(), dims, rules).quota(map, field, problem);
}

}  // namespace tessera::scheduler
