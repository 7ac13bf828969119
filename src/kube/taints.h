// Taints of nodes and the tolerations of pods.
//
// Source:  Kubernetes API reference, Taint and Toleration (v1.36).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera::kube {

enum class TaintEffect : uint8_t { kAny, kNoSchedule, kPreferNoSchedule, kNoExecute };

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  bool operator==(const Taint&) const = default;
  std::string to_string() const;  // "key=value:NoSchedule"
};

struct Toleration {
  enum class Op : uint8_t { kEqual, kExists, kLt, kGt };
  std::string key;  // empty with kExists: every taint
  Op op = Op::kEqual;
  std::string value;
  TaintEffect effect = TaintEffect::kAny;
  std::optional<int64_t> seconds;  // for NoExecute: how long
  bool operator==(const Toleration&) const = default;
};

bool tolerates(const Toleration& toleration, const Taint& taint);
// The first taint with one of the effects NoSchedule and NoExecute that nothing tolerates; null
// when there is none.
const Taint* find_untolerated(std::span<const Taint> taints,
                              std::span<const Toleration> tolerations);

std::string_view to_string(TaintEffect effect);
// kAny for "".
std::optional<TaintEffect> taint_effect_of(std::string_view text);

}  // namespace tessera::kube
