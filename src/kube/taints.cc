#include "kube/taints.h"

#include <algorithm>
#include <charconv>

namespace tessera::kube {
namespace {

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect != TaintEffect::kAny && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  switch (toleration.op) {
    case Toleration::Op::kExists:
      return true;
    case Toleration::Op::kEqual:
      return toleration.value == taint.value;
    case Toleration::Op::kLt:
    case Toleration::Op::kGt:
      break;
  }
  const auto bound = whole_number(toleration.value);
  const auto value = whole_number(taint.value);
  if (!bound || !value) return false;
  return toleration.op == Toleration::Op::kLt ? *value < *bound : *value > *bound;
}

const Taint* find_untolerated(std::span<const Taint> taints,
                              std::span<const Toleration> tolerations) {
  for (const Taint& taint : taints) {
    if (taint.effect != TaintEffect::kNoSchedule && taint.effect != TaintEffect::kNoExecute)
      continue;
    if (std::ranges::none_of(tolerations, [&](auto& t) { return tolerates(t, taint); }))
      return &taint;
  }
  return nullptr;
}

std::string Taint::to_string() const {
  std::string out = key;
  if (!value.empty()) out += "=" + value;
  return out.append(":").append(kube::to_string(effect));
}

std::string_view to_string(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kAny:
      return "";
    case TaintEffect::kNoSchedule:
      return "NoSchedule";
    case TaintEffect::kPreferNoSchedule:
      return "PreferNoSchedule";
    case TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "";
}

std::optional<TaintEffect> taint_effect_of(std::string_view text) {
  for (const TaintEffect effect : {TaintEffect::kAny, TaintEffect::kNoSchedule,
                                   TaintEffect::kPreferNoSchedule, TaintEffect::kNoExecute}) {
    if (to_string(effect) == text) return effect;
  }
  return std::nullopt;
}

}  // namespace tessera::kube
