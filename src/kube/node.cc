#include "kube/node.h"

namespace tessera::kube {

const Condition* Node::condition(std::string_view type) const {
  for (const Condition& one : conditions) {
    if (one.type == type) return &one;
  }
  return nullptr;
}

bool Node::ready() const {
  const Condition* found = condition("Ready");
  return found != nullptr && found->is_true();
}

std::vector<Condition> decode_conditions(const json::Value& conditions) {
  std::vector<Condition> out;
  out.reserve(conditions.size());
  for (const json::Value& item : conditions.items()) {
    out.push_back(
        {item["type"].str(), item["status"].str(), item["reason"].str(), item["message"].str()});
  }
  return out;
}

base::Result<ResourceList> decode_resource_list(const json::Value& list, std::string_view path) {
  ResourceList out;
  for (const json::Member& member : list.members()) {
    if (member.value.is_int()) {
      out.emplace_hint(out.end(), member.name(), Quantity(member.value.as_int()));
      continue;
    }
    const std::string text = member.value.is_string() ? member.value.str() : member.value.dump();
    auto amount = Quantity::parse(text);
    if (!amount) {
      return base::error(base::Code::kInvalid, "{}.{}: \"{}\": {}", path, member.name(), text,
                         amount.error().message);
    }
    out.emplace_hint(out.end(), member.name(), std::move(*amount));
  }
  return out;
}

base::Result<Node> decode_node(const Object& object) {
  Node out;
  TS_TRY(out.meta, decode_meta(object));
  const json::Value& spec = object["spec"];
  for (const json::Value& item : spec["taints"].items()) {
    const auto effect = taint_effect_of(item["effect"].as_string());
    if (!effect || *effect == TaintEffect::kAny) {
      return base::error(base::Code::kInvalid,
                         "spec.taints[{}].effect: \"{}\" is not one of NoSchedule, "
                         "PreferNoSchedule, NoExecute",
                         out.taints.size(), item["effect"].as_string());
    }
    out.taints.push_back({item["key"].str(), item["value"].str(), *effect});
  }
  out.unschedulable = spec["unschedulable"].as_bool();
  TS_TRY(out.capacity, decode_resource_list(object.get("status", "capacity"), "status.capacity"));
  TS_TRY(out.allocatable,
         decode_resource_list(object.get("status", "allocatable"), "status.allocatable"));
  out.conditions = decode_conditions(object.get("status", "conditions"));
  return out;
}

}  // namespace tessera::kube
