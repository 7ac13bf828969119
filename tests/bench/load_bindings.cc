#include "load_bindings.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace tessera::load {
namespace {

// The string after `before` up to the next quote.
std::string_view quoted_after(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == text.npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, text.find('"'));
}

double percentile_ms(const std::vector<uint64_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return static_cast<double>(sorted[std::min(at, sorted.size() - 1)]) / 1000;
}

std::string latencies(std::string_view name, std::vector<uint64_t> micros) {
  std::ranges::sort(micros);
  return fmt::format(R"("{0}_p50_ms":{1:.3f},"{0}_p99_ms":{2:.3f},"{0}_max_ms":{3:.3f})", name,
                     percentile_ms(micros, 0.5), percentile_ms(micros, 0.99),
                     micros.empty() ? 0 : static_cast<double>(micros.back()) / 1000);
}

}  // namespace

void Bindings::take(std::string_view bytes, uint64_t now) {
  rest_.append(bytes);
  size_t at = 0;
  for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', at)) {
    line(std::string_view(rest_).substr(at, end - at), now);
    at = end + 1;
  }
  rest_.erase(0, at);
}

void Bindings::line(std::string_view text, uint64_t now) {
  const std::string_view name = quoted_after(text, R"("metadata":{"name":")");
  uint64_t version = 0;
  const std::string_view digits = quoted_after(text, R"("resourceVersion":")");
  std::from_chars(digits.data(), digits.data() + digits.size(), version);
  version_ = std::max(version_, version);
  if (!name.starts_with(prefix_)) return;
  if (text.starts_with(R"({"type":"DELETED")")) return;
  Group* group = nullptr;
  if (group_size_ > 1) group = &groups_[std::string(name.substr(0, name.rfind('-')))];
  Pod& pod = pods_[std::string(name)];
  if (pod.seen == 0) {
    pod.seen = now;
    if (group != nullptr && group->first_seen == 0) group->first_seen = now;
  }
  if (pod.bound != 0 || quoted_after(text, R"("nodeName":")").empty()) return;
  pod.bound = now;
  if (bound_++ == 0) first_bound_at_ = now;
  last_bound_at_ = now;
  if (group == nullptr) return;
  ++group->bound;
  group->last_bound = now;
}

size_t Bindings::groups_whole() const {
  return static_cast<size_t>(std::ranges::count_if(
      groups_, [this](const auto& one) { return one.second.bound >= group_size_; }));
}

size_t Bindings::groups_partial() const {
  return static_cast<size_t>(std::ranges::count_if(groups_, [this](const auto& one) {
    return one.second.bound > 0 && one.second.bound < group_size_;
  }));
}

std::string Bindings::as_json() const {
  std::vector<uint64_t> of_pods;
  std::vector<uint64_t> of_groups;
  for (const auto& [name, pod] : pods_) {
    if (pod.bound != 0) of_pods.push_back(pod.bound - pod.seen);
  }
  for (const auto& [name, group] : groups_) {
    if (group.bound >= group_size_) of_groups.push_back(group.last_bound - group.first_seen);
  }
  std::string out = fmt::format(R"("seen":{},"bound":{},"bound_span_s":{:.3f},{})", pods_.size(),
                                bound_, static_cast<double>(last_bound_at_ - first_bound_at_) / 1e6,
                                latencies("pod", std::move(of_pods)));
  if (group_size_ < 2) return out;
  return out + fmt::format(R"(,"gangs_whole":{},"gangs_partial":{},{})", groups_whole(),
                           groups_partial(), latencies("gang", std::move(of_groups)));
}

}  // namespace tessera::load
