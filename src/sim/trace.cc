#include "sim/trace.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/file.h"
#include "base/random.h"
#include "scheduler/core/request.h"
#include "sim/csv_reader.h"

namespace tessera::sim {
namespace {

using base::Code;
using base::error;

constexpr int64_t kAmountLimit = 1'000'000'000'000;
constexpr int64_t kGpusMax = scheduler::core::kGpusPerNodeMax;
constexpr int64_t kMilliMax = scheduler::core::kMilliPerGpu;

// Names must be unique: the arrivals file counts in the order of names.
class SeenNames {
 public:
  base::Status add(const CsvReader& csv, size_t column, const std::string& name) {
    auto [at, fresh] = lines_.emplace(name, csv.line());
    if (fresh) return {};
    return csv.bad(column,
                   fmt::format("it stands on line {} already: names must be unique", at->second));
  }

 private:
  std::unordered_map<std::string, size_t> lines_;
};

template <class T>
void sort_by_name(std::vector<T>& items) {
  std::sort(items.begin(), items.end(), [](const T& a, const T& b) { return a.name < b.name; });
}

base::Result<std::vector<std::string>> parse_models(const CsvReader& csv, size_t column) {
  std::vector<std::string> models;
  std::string_view rest = csv.field(column);
  while (!rest.empty()) {
    size_t bar = rest.find('|');
    std::string_view model = rest.substr(0, bar);
    if (model.empty()) return csv.bad(column, "model names must be joined by one '|'");
    models.emplace_back(model);
    if (bar == std::string_view::npos) break;
    rest.remove_prefix(bar + 1);
    if (rest.empty()) return csv.bad(column, "model names must be joined by one '|'");
  }
  std::sort(models.begin(), models.end());
  return models;
}

struct PodColumns {
  size_t name, cpu, memory, gpus, milli;
  std::optional<size_t> spec;
};

base::Result<PodColumns> find_pod_columns(const CsvReader& csv) {
  PodColumns columns{};
  TS_TRY(columns.name, csv.column("name"));
  TS_TRY(columns.cpu, csv.column("cpu_milli"));
  TS_TRY(columns.memory, csv.column("memory_mib"));
  TS_TRY(columns.gpus, csv.column("num_gpu"));
  TS_TRY(columns.milli, csv.column("gpu_milli"));
  columns.spec = csv.find_column("gpu_spec");
  return columns;
}

base::Result<TracePod> parse_pod(const CsvReader& csv, const PodColumns& columns) {
  TracePod pod;
  TS_TRY(pod.name, csv.name(columns.name));
  TS_TRY(pod.cpu_milli, csv.number(columns.cpu, 0, kAmountLimit));
  TS_TRY(pod.memory_mib, csv.number(columns.memory, 0, kAmountLimit));
  TS_TRY(int64_t gpus, csv.number(columns.gpus, 0, kGpusMax));
  TS_TRY(int64_t milli, csv.number(columns.milli, 0, kMilliMax));
  if (gpus > 0 && milli == 0)
    return csv.bad(columns.milli, "with GPUs asked for it must be 1 to 1000");
  if (gpus == 0 && milli != 0) return csv.bad(columns.milli, "with num_gpu 0 it must be 0");
  pod.gpus = static_cast<int32_t>(gpus);
  pod.gpu_milli = static_cast<int32_t>(milli);
  if (columns.spec) {
    TS_TRY(pod.models, parse_models(csv, *columns.spec));
  }
  return pod;
}

}  // namespace

base::Result<std::vector<TraceNode>> parse_trace_nodes(std::string_view text,
                                                       std::string_view file) {
  CsvReader csv(text, file);
  TS_TRY_STATUS(csv.read_header());
  TS_TRY(size_t name, csv.column("sn"));
  TS_TRY(size_t cpu, csv.column("cpu_milli"));
  TS_TRY(size_t memory, csv.column("memory_mib"));
  TS_TRY(size_t gpu, csv.column("gpu"));
  TS_TRY(size_t model, csv.column("model"));
  std::vector<TraceNode> nodes;
  SeenNames seen;
  while (true) {
    TS_TRY(bool more, csv.next_row());
    if (!more) break;
    TraceNode node;
    TS_TRY(node.name, csv.name(name));
    TS_TRY_STATUS(seen.add(csv, name, node.name));
    TS_TRY(node.cpu_milli, csv.number(cpu, 0, kAmountLimit));
    TS_TRY(node.memory_mib, csv.number(memory, 0, kAmountLimit));
    TS_TRY(int64_t gpus, csv.number(gpu, 0, kGpusMax));
    node.gpus = static_cast<int32_t>(gpus);
    node.model = std::string(csv.field(model));
    if (gpus > 0 && node.model.empty())
      return csv.bad(model, "a node with GPUs must name their model");
    nodes.push_back(std::move(node));
  }
  if (nodes.empty())
    return error(Code::kInvalid, "{}:2: there is no node: add one row a node", file);
  sort_by_name(nodes);
  return nodes;
}

base::Result<std::vector<TracePod>> parse_trace_pods(std::string_view text, std::string_view file) {
  CsvReader csv(text, file);
  TS_TRY_STATUS(csv.read_header());
  TS_TRY(PodColumns columns, find_pod_columns(csv));
  std::vector<TracePod> pods;
  SeenNames seen;
  while (true) {
    TS_TRY(bool more, csv.next_row());
    if (!more) break;
    TS_TRY(TracePod pod, parse_pod(csv, columns));
    TS_TRY_STATUS(seen.add(csv, columns.name, pod.name));
    pods.push_back(std::move(pod));
  }
  if (pods.empty()) return error(Code::kInvalid, "{}:2: there is no pod: add one row a pod", file);
  sort_by_name(pods);
  return pods;
}

namespace {

// One line of numbers below `bound`; messages count fields from 1.
base::Result<std::vector<uint32_t>> parse_indices(std::string_view line, size_t bound,
                                                  size_t count_max, std::string_view where,
                                                  std::string_view of_what) {
  std::vector<uint32_t> indices;
  const char* at = line.data();
  const char* end = at + line.size();
  while (true) {
    while (at != end && *at == ' ') ++at;
    if (at == end) return indices;
    if (indices.size() >= count_max) {
      return error(Code::kInvalid, "{}: more than {} numbers", where, count_max);
    }
    uint32_t value = 0;
    auto [next, problem] = std::from_chars(at, end, value);
    if (problem != std::errc() || (next != end && *next != ' ')) {
      std::string_view field(at, static_cast<size_t>(std::find(at, end, ' ') - at));
      return error(Code::kInvalid, "{}: number {} is {}: must be a whole number", where,
                   indices.size() + 1, shown(field));
    }
    if (value >= bound) {
      return error(Code::kInvalid, "{}: number {} is {}: there are {} {}, counted from 0", where,
                   indices.size() + 1, value, bound, of_what);
    }
    indices.push_back(value);
    at = next;
  }
}

base::Status check_ranks(const std::vector<uint32_t>& ranks, size_t nodes, std::string_view where) {
  if (ranks.size() != nodes) {
    return error(Code::kInvalid, "{}: {} ranks for {} nodes: give each node one", where,
                 ranks.size(), nodes);
  }
  std::vector<bool> taken(nodes);
  for (uint32_t rank : ranks) {
    if (taken[rank])
      return error(Code::kInvalid, "{}: rank {} stands twice: ranks must differ", where, rank);
    taken[rank] = true;
  }
  return {};
}

std::string_view take_line(std::string_view& rest) {
  size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

}  // namespace

base::Result<std::vector<Arrivals>> parse_arrivals(std::string_view text, std::string_view file,
                                                   size_t pods, size_t nodes) {
  std::vector<Arrivals> all;
  size_t line = 0;
  while (text.find_first_not_of("\r\n ") != std::string_view::npos) {
    Arrivals arrivals;
    std::string_view head = take_line(text);
    auto seed = head.substr(0, 2) == "S " ? whole_number(head.substr(2)) : std::nullopt;
    if (!seed || *seed < 0) {
      return error(Code::kInvalid, "{}:{}: the line is {}: must be \"S <seed>\"", file, line + 1,
                   shown(head));
    }
    arrivals.seed = static_cast<uint64_t>(*seed);
    for (const Arrivals& other : all) {
      if (other.seed == arrivals.seed) {
        return error(Code::kInvalid, "{}:{}: seed {} stands twice: keep one", file, line + 1,
                     arrivals.seed);
      }
    }
    std::string where = fmt::format("{}:{}", file, line + 2);
    TS_TRY(arrivals.pods, parse_indices(take_line(text), pods, kArrivalsMax, where, "pods"));
    if (arrivals.pods.empty())
      return error(Code::kInvalid, "{}: no pod arrives: list pod indices", where);
    where = fmt::format("{}:{}", file, line + 3);
    TS_TRY(arrivals.node_rank, parse_indices(take_line(text), nodes, nodes + 1, where, "nodes"));
    TS_TRY_STATUS(check_ranks(arrivals.node_rank, nodes, where));
    all.push_back(std::move(arrivals));
    line += 3;
  }
  if (all.empty())
    return error(Code::kInvalid, "{}:1: the file is empty: it must hold three lines a seed", file);
  return all;
}

base::Result<TraceWorkload> read_workload(const std::string& nodes_path,
                                          const std::string& pods_path,
                                          const std::string& arrivals_path) {
  TraceWorkload workload;
  TS_TRY(std::string nodes, base::read_file(nodes_path, kTraceBytesMax));
  TS_TRY(workload.nodes, parse_trace_nodes(nodes, nodes_path));
  TS_TRY(std::string pods, base::read_file(pods_path, kTraceBytesMax));
  TS_TRY(workload.pods, parse_trace_pods(pods, pods_path));
  if (!arrivals_path.empty()) {
    TS_TRY(std::string packed, base::read_file(arrivals_path, kTraceBytesMax));
    auto text = base::gunzip(packed, kTraceBytesMax);
    if (!text) return error(text.error().in(arrivals_path));
    TS_TRY(workload.arrivals,
           parse_arrivals(*text, arrivals_path, workload.pods.size(), workload.nodes.size()));
  }
  std::string_view name = pods_path;
  name.remove_prefix(name.find_last_of('/') == std::string_view::npos ? 0
                                                                      : name.find_last_of('/') + 1);
  if (name.ends_with(".csv")) name.remove_suffix(4);
  if (name.starts_with("openb_pod_list_")) name.remove_prefix(15);
  workload.name = std::string(name);
  return workload;
}

int64_t gpu_milli_total(const std::vector<TraceNode>& nodes) {
  int64_t total = 0;
  for (const TraceNode& node : nodes) total += node.gpus * kMilliMax;
  return total;
}

Arrivals generate_arrivals(const std::vector<TraceNode>& nodes, const std::vector<TracePod>& pods,
                           uint64_t seed, int load_percent) {
  base::Random random(seed);
  Arrivals arrivals;
  arrivals.seed = seed;
  arrivals.pods.resize(pods.size());
  std::iota(arrivals.pods.begin(), arrivals.pods.end(), 0U);
  random.shuffle(arrivals.pods);
  auto asked = [&](uint32_t pod) { return int64_t{pods[pod].gpus} * pods[pod].gpu_milli; };
  int64_t total = 0;
  for (uint32_t pod : arrivals.pods) total += asked(pod);
  int64_t target = gpu_milli_total(nodes) / 100 * load_percent;
  if (total == 0) target = 0;  // no pod asks for a GPU: there is nothing to tune
  while (total < target && arrivals.pods.size() < kArrivalsMax) {
    uint32_t pod = static_cast<uint32_t>(random.below(pods.size()));
    arrivals.pods.push_back(pod);
    total += asked(pod);
  }
  for (size_t at = arrivals.pods.size(); at > 0 && total > target && target > 0; --at) {
    // The order is random already: what falls off the end was drawn by chance.
    if (total - asked(arrivals.pods[at - 1]) < target) break;
    total -= asked(arrivals.pods[at - 1]);
    arrivals.pods.pop_back();
  }
  arrivals.node_rank.resize(nodes.size());
  std::iota(arrivals.node_rank.begin(), arrivals.node_rank.end(), 0U);
  random.shuffle(arrivals.node_rank);
  return arrivals;
}

}  // namespace tessera::sim
