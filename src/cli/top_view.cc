#include "cli/top_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "kube/node.h"
#include "kube/pod.h"
#include "kube/pod_resources.h"

namespace tessera::cli {
namespace {

using kube::Object;

constexpr std::string_view kWhole[] = {"nvidia.com/gpu", "amd.com/gpu"};

std::vector<int> indexes(std::string_view text) {
  std::vector<int> out;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int value = 0;
    const auto [next, ec] = std::from_chars(at, end, value);
    if (ec != std::errc() || value < 0) break;
    out.push_back(value);
    at = next < end ? next + 1 : next;
  }
  return out;
}

bool is_slice(std::string_view resource) {
  return resource.starts_with("nvidia.com/mig-") || resource == "nvidia.com/gpu.shared";
}

std::string_view short_name(std::string_view resource) {
  return resource.substr(resource.find('/') + 1);
}

NodeLine node_line(const Object& object, Picture& picture) {
  NodeLine line;
  line.name = object.name();
  auto node = kube::decode_node(object);
  if (!node) return line;
  line.ready = node->ready();
  line.cordoned = node->unschedulable;
  line.model = object.label("nvidia.com/gpu.product");
  if (line.model.empty()) line.model = object.label("amd.com/gpu.product-name");
  if (line.model.starts_with("NVIDIA-")) line.model.erase(0, 7);
  line.cpu = kube::amount_of(node->allocatable, "cpu").milli_value();
  line.memory = kube::amount_of(node->allocatable, "memory").value();
  for (const std::string_view resource : kWhole) {
    const int64_t count =
        std::clamp<int64_t>(kube::amount_of(node->capacity, resource).value(), 0, 64);
    line.gpu_milli.resize(line.gpu_milli.size() + static_cast<size_t>(count), 0);
    picture.gpus += count;
  }
  for (const int gpu : indexes(object.annotation("tessera.dev/unhealthy-gpus"))) {
    if (gpu < static_cast<int>(line.gpu_milli.size()))
      line.gpu_milli[static_cast<size_t>(gpu)] = -1;
  }
  for (const auto& [resource, amount] : node->capacity) {
    if (is_slice(resource)) line.slices[std::string(short_name(resource))].second = amount.value();
  }
  return line;
}

void add_pod(const Object& object, Picture& picture, std::map<std::string, size_t>& by_name) {
  NamespaceLine& ns = picture.namespaces[std::string(object.ns())];
  const std::string_view phase = object.get("status", "phase").as_string();
  ns.running += phase == "Running" ? 1 : 0;
  ns.pending += phase == "Pending" ? 1 : 0;
  ns.done += phase == "Succeeded" ? 1 : 0;
  ns.failed += phase == "Failed" ? 1 : 0;
  if (phase == "Succeeded" || phase == "Failed") return;
  const auto it = by_name.find(std::string(object.get("spec", "nodeName").as_string()));
  if (it == by_name.end()) {
    for (const json::Value& condition : object.get("status", "conditions").items()) {
      if (condition["type"].as_string() == "PodScheduled" &&
          condition["status"].as_string() == "False") {
        ++picture.reasons[condition["message"].str()];
      }
    }
    return;
  }
  NodeLine& node = picture.nodes[it->second];
  ++node.pods;
  int64_t milli = 1000;
  const std::string_view share = object.annotation("tessera.dev/share-milli");
  std::from_chars(share.data(), share.data() + share.size(), milli);
  for (const int gpu : indexes(object.annotation("tessera.dev/gpus"))) {
    ns.gpu_milli += milli;
    picture.gpu_milli_used += milli;
    if (gpu < static_cast<int>(node.gpu_milli.size()) &&
        node.gpu_milli[static_cast<size_t>(gpu)] >= 0) {
      node.gpu_milli[static_cast<size_t>(gpu)] += milli;
    }
  }
  auto pod = kube::decode_pod(object);
  if (!pod) return;
  for (const auto& [resource, amount] : kube::pod_requests(*pod)) {
    if (resource == "cpu") node.cpu_used += amount.milli_value();
    if (resource == "memory") node.memory_used += amount.value();
    if (is_slice(resource)) node.slices[std::string(short_name(resource))].first += amount.value();
  }
}

struct Paint {
  bool colour;
  std::string operator()(std::string_view code, std::string_view text) const {
    return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
};

std::string cell(int64_t milli, const Paint& paint) {
  if (milli < 0) return paint("31", "x");
  if (milli == 0) return paint("90", "·");
  if (milli >= 1000) return paint("32", "█");
  return paint("36", milli >= 667 ? "▆" : milli >= 334 ? "▄" : "▂");
}

int percent(int64_t used, int64_t of) {
  return of > 0
             ? static_cast<int>(static_cast<double>(used) * 100.0 / static_cast<double>(of) + 0.5)
             : 0;
}

// Widths of the columns that give way on a narrow terminal.
struct Layout {
  int model = 0;
  int gpus = 0;
};

Layout layout_of(const Picture& picture, int columns) {
  Layout out{.model = columns >= 110 ? 18 : 0, .gpus = 16};
  for (const NodeLine& node : picture.nodes) {
    int width = static_cast<int>(node.gpu_milli.size());
    for (const auto& [name, use] : node.slices) {
      width += static_cast<int>(fmt::format("  {} {}/{}", name, use.first, use.second).size());
    }
    out.gpus = std::max(out.gpus, width);
  }
  // Name, the three figures at the end and the state take 44.
  const int room = columns - 44 - (out.model > 0 ? out.model + 1 : 0);
  out.gpus = std::min(out.gpus, std::max(room, 16));
  return out;
}

std::string gpu_text(const NodeLine& node, int room, const Paint& paint) {
  std::string text;
  int width = 0;
  for (const int64_t milli : node.gpu_milli) {
    if (width == room) return text;
    text += cell(milli, paint);
    ++width;
  }
  for (const auto& [name, use] : node.slices) {
    std::string part =
        fmt::format("{}{} {}/{}", width > 0 ? "  " : "", name, use.first, use.second);
    part.resize(std::min(part.size(), static_cast<size_t>(room - width)));
    width += static_cast<int>(part.size());
    text += part;
  }
  return text.append(static_cast<size_t>(room - width), ' ');
}

std::string node_text(const NodeLine& node, const Layout& layout, const Paint& paint) {
  const std::string model =
      layout.model > 0
          ? fmt::format(" {:<{}}", node.model.substr(0, static_cast<size_t>(layout.model)),
                        layout.model)
          : "";
  const char* state = !node.ready ? "NotReady" : node.cordoned ? "cordoned" : "";
  return fmt::format("{:<14}{} {} {:>4}% {:>4}% {:>5}  {}", node.name.substr(0, 14), model,
                     gpu_text(node, layout.gpus, paint), percent(node.cpu_used, node.cpu),
                     percent(node.memory_used, node.memory), node.pods, paint("33", state));
}

std::string bar(int64_t used, int64_t of, int width, const Paint& paint) {
  const int filled = of > 0 ? static_cast<int>(used * width / of) : 0;
  std::string full;
  std::string rest;
  for (int i = 0; i < width; ++i) (i < filled ? full : rest) += i < filled ? "█" : "░";
  return paint("32", full) + paint("90", rest);
}

}  // namespace

Picture summarize(const std::vector<Object>& nodes, const std::vector<Object>& pods) {
  Picture picture;
  std::map<std::string, size_t> by_name;
  for (const Object& node : nodes) {
    by_name.emplace(node.name(), picture.nodes.size());
    picture.nodes.push_back(node_line(node, picture));
  }
  for (const Object& pod : pods) add_pod(pod, picture, by_name);
  return picture;
}

std::string render(const Picture& picture, int columns, int rows, bool colour) {
  const Paint paint{colour};
  std::vector<std::string> lines;
  NamespaceLine all;
  for (const auto& [name, ns] : picture.namespaces) {
    all.running += ns.running;
    all.pending += ns.pending;
    all.done += ns.done;
    all.failed += ns.failed;
  }
  const Layout layout = layout_of(picture, columns);
  lines.push_back(
      fmt::format("{}  {} nodes  {} whole GPUs  {}% allocated   pods: {} running, {} pending, {} "
                  "done, {} failed",
                  paint("1", "tessera"), picture.nodes.size(), picture.gpus,
                  percent(picture.gpu_milli_used, picture.gpus * 1000), all.running, all.pending,
                  all.done, all.failed));
  lines.push_back(
      bar(picture.gpu_milli_used, picture.gpus * 1000, std::clamp(columns - 2, 10, 100), paint));
  const std::string model = layout.model > 0 ? fmt::format(" {:<{}}", "MODEL", layout.model) : "";
  lines.push_back(paint("1", fmt::format("{:<14}{} {:<{}} {:>5} {:>5} {:>5}", "NODE", model, "GPUS",
                                         layout.gpus, "CPU", "MEM", "PODS")));
  std::vector<std::string> tail;
  tail.push_back(paint("1", fmt::format("{:<14} {:>8} {:>8} {:>8} {:>8}", "NAMESPACE", "RUNNING",
                                        "PENDING", "DONE", "GPUS")));
  for (const auto& [name, ns] : picture.namespaces) {
    tail.push_back(fmt::format("{:<14} {:>8} {:>8} {:>8} {:>8.2f}", name.substr(0, 14), ns.running,
                               ns.pending, ns.done, static_cast<double>(ns.gpu_milli) / 1000));
  }
  for (const auto& [reason, count] : picture.reasons) {
    const std::string line = fmt::format("{} waiting: {}", count, reason);
    tail.push_back(paint("33", line.substr(0, static_cast<size_t>(std::max(columns, 40)))));
  }
  const size_t room = static_cast<size_t>(std::max(rows, 12));
  if (tail.size() > room / 2) tail.resize(room / 2);
  const size_t node_rows = room - tail.size() - lines.size();  // at least 3
  for (size_t i = 0; i < picture.nodes.size(); ++i) {
    if (i + 1 >= node_rows && picture.nodes.size() > node_rows) {
      lines.push_back(fmt::format("... and {} more nodes", picture.nodes.size() - i));
      break;
    }
    lines.push_back(node_text(picture.nodes[i], layout, paint));
  }
  lines.insert(lines.end(), tail.begin(), tail.end());
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace tessera::cli
