// What is asked, in which order: a seeded mix of get, list, create and patch on pods, as components and people ask them.
//
// Shape:   50 % get by name, 10 % list (one namespace, a label, at most 20 pods), 20 % create (a pod of about 2 KB), 20 %
//          patch (merge, strategic and apply in turn by chance). Names that were not acknowledged yet are never asked for.
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::load {

enum class Op : uint8_t { kGet, kList, kCreate, kMergePatch, kStrategicPatch, kApplyPatch };
constexpr size_t kOps = 6;
constexpr std::string_view kOpNames[kOps] = {
    "get", "list", "create", "patch_merge", "patch_strategic", "patch_apply"};

constexpr int kNamespaces = 10;
constexpr int kApplications = 20;  // values of the label `app`

struct Ask {
  Op op = Op::kGet;
  std::string method = "GET";
  std::string target{};
  std::string content_type{};
  std::string body{};
  std::string created{};  // the path of the pod, for acknowledge()
};

std::string namespace_name(int number);

class Plan {
 public:
  explicit Plan(uint64_t seed) : random_(seed) {}

  Ask next();
  Ask create();
  Ask patch();
  void acknowledge(const Ask& ask);
  size_t pods() const { return pods_.size(); }

 private:
  size_t below(size_t bound) { return static_cast<size_t>(random_() % bound); }
  Ask list();

  std::mt19937_64 random_;
  uint64_t created_ = 0;
  uint64_t patched_ = 0;
  std::vector<std::string> pods_;  // their paths
};

}  // namespace tessera::load
