// What Kubernetes warns of in pods and templates of pods.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "apiserver/validate_path.h"
#include "apiserver/validate_resources.h"
#include "apiserver/warnings.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using Texts = std::vector<std::string>;
using Named = std::pair<std::string_view, std::string_view>;

constexpr std::array<Named, 8> kNodeLabels = {
    {{"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
     {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
     {"failure-domain.beta.kubernetes.io/region",
      "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
     {"failure-domain.beta.kubernetes.io/zone",
      "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
     {"beta.kubernetes.io/instance-type",
      "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
     {"app.kubernetes.io/created-by", "deprecated since v1.9"},
     {"scheduler.alpha.kubernetes.io/preferAvoidPods",
      "deprecated since v1.22; use Taints and Tolerations instead"},
     {"node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"}}};

constexpr std::array<Named, 3> kAnnotations = {
    {{"scheduler.alpha.kubernetes.io/critical-pod",
      "non-functional in v1.16+; use the \"priorityClassName\" field instead"},
     {"security.alpha.kubernetes.io/sysctls",
      "non-functional in v1.11+; use the \"sysctls\" field instead"},
     {"security.alpha.kubernetes.io/unsafe-sysctls",
      "non-functional in v1.11+; use the \"sysctls\" field instead"}}};

constexpr std::array<Named, 9> kVolumes = {
    {{"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
     {"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
     {"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
     {"flocker", "deprecated in v1.22, non-functional in v1.25+"},
     {"storageos", "deprecated in v1.22, non-functional in v1.25+"},
     {"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
     {"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
     {"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
     {"rbd", "deprecated in v1.28, non-functional in v1.31+"}}};

constexpr std::string_view kNoPods = "a null labelSelector results in matching no pod";

template <size_t N>
std::string_view word_of(const std::array<Named, N>& table, std::string_view name) {
  const auto* found = std::ranges::find(table, name, &Named::first);
  return found == table.end() ? std::string_view() : found->second;
}

void say(Texts& out, const Path& at, std::string_view text) {
  out.push_back(fmt::format("{}: {}", at.text(), text));
}

void warn_of_term(const Value& term, const Path& at, Texts& out) {
  const Path expressions = at.child("matchExpressions");
  for (size_t i = 0; i < term["matchExpressions"].size(); ++i) {
    const std::string_view key = term["matchExpressions"].at(i)["key"].as_string();
    const std::string_view word = word_of(kNodeLabels, key);
    const Path here = expressions.at(i);
    if (!word.empty()) say(out, here.child("key"), fmt::format("{} is {}", key, word));
  }
}

void warn_of_node_labels(const Value& spec, const Path& at, Texts& out) {
  const Path selector = at.child("nodeSelector");
  for (const json::Member& member : spec["nodeSelector"].members()) {
    const std::string_view word = word_of(kNodeLabels, member.name());
    if (!word.empty()) say(out, selector.key(member.name()), word);
  }
  const Value& affinity = spec["affinity"]["nodeAffinity"];
  const Path affinity_at = at.child("affinity");
  const Path node_at = affinity_at.child("nodeAffinity");
  const Path required_at = node_at.child("requiredDuringSchedulingIgnoredDuringExecution");
  const Path terms_at = required_at.child("nodeSelectorTerms");
  const Value& terms =
      affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  for (size_t i = 0; i < terms.size(); ++i) warn_of_term(terms.at(i), terms_at.at(i), out);
  const Path preferred_at = node_at.child("preferredDuringSchedulingIgnoredDuringExecution");
  const Value& preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"];
  for (size_t i = 0; i < preferred.size(); ++i) {
    const Path here = preferred_at.at(i);
    warn_of_term(preferred.at(i)["preference"], here.child("preference"), out);
  }
}

void warn_of_spread(const Value& spec, const Path& at, Texts& out) {
  const Path all = at.child("topologySpreadConstraints");
  for (size_t i = 0; i < spec["topologySpreadConstraints"].size(); ++i) {
    const Value& one = spec["topologySpreadConstraints"].at(i);
    const Path here = all.at(i);
    const std::string_view key = one["topologyKey"].as_string();
    const std::string_view word = word_of(kNodeLabels, key);
    if (!word.empty()) say(out, here.child("topologyKey"), fmt::format("{} is {}", key, word));
    if (one["labelSelector"].is_null()) say(out, here.child("labelSelector"), kNoPods);
  }
}

void warn_of_lists(const Value& spec, const Path& at, Texts& out) {
  const Path aliases = at.child("hostAliases");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < spec["hostAliases"].size(); ++i) {
    const std::string_view ip = spec["hostAliases"].at(i)["ip"].as_string();
    const Path here = aliases.at(i);
    if (!seen.insert(ip).second) say(out, here.child("ip"), fmt::format("duplicate ip \"{}\"", ip));
  }
  const Path secrets = at.child("imagePullSecrets");
  seen.clear();
  for (size_t i = 0; i < spec["imagePullSecrets"].size(); ++i) {
    const std::string_view name = spec["imagePullSecrets"].at(i)["name"].as_string();
    const Path here = secrets.at(i);
    if (!seen.insert(name).second) {
      say(out, here.child("name"), fmt::format("duplicate name \"{}\"", name));
    }
  }
  for (size_t i = 0; i < spec["imagePullSecrets"].size(); ++i) {
    const Path here = secrets.at(i);
    if (spec["imagePullSecrets"].at(i)["name"].as_string().empty()) {
      say(out, here.child("name"), "invalid empty name \"\"");
    }
  }
}

void warn_of_fraction(const Value& list, const char* name, const Path& at, Texts& out) {
  const Value* amount = list.find(name);
  if (amount == nullptr || is_whole_amount(quantity_of(*amount))) return;
  say(out, at.key(name),
      fmt::format("fractional byte value \"{}\" is invalid, must be an integer",
                  amount->as_string()));
}

void warn_of_env(const Value& env, const Path& at, Texts& out) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i < env.size(); ++i) {
    const Value& item = env.at(i);
    const std::string_view name = item["name"].as_string();
    if (seen.insert(name).second) continue;
    // A value made of the earlier one does not hide it.
    const std::string reference = fmt::format("$({})", name);
    const std::string_view value = item["value"].as_string();
    const bool builds_on = value != reference && value.find(reference) != value.npos;
    if (builds_on && item["valueFrom"].is_null()) continue;
    say(out, at.at(i),
        fmt::format("hides previous definition of \"{}\", which may be dropped when using apply",
                    name));
  }
}

template <class F>
void each_container(const Value& spec, const Path& at, F f) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    const Path all = at.child(list);
    for (size_t i = 0; i < spec[list].size(); ++i) f(spec[list].at(i), all.at(i));
  }
}

void warn_of_containers(const Value& spec, const Path& at, Texts& out) {
  each_container(spec, at, [&](const Value& container, const Path& here) {
    const Path resources = here.child("resources");
    for (const char* name : {"memory", "ephemeral-storage"}) {
      for (const char* list : {"limits", "requests"}) {
        warn_of_fraction(container["resources"][list], name, resources.child(list), out);
      }
    }
    warn_of_env(container["env"], here.child("env"), out);
  });
}

struct Port {
  std::string place;
  std::string host_ip;
  int64_t host_port;
};

// What two definitions of one port mean together; empty: nothing wrong.
std::string_view clash(const Port& one, const Port& other) {
  if (one.host_ip == other.host_ip && one.host_port == other.host_port) return "duplicate";
  if (one.host_port == 0 || other.host_port == 0) return "overlapping";
  const bool one_open = one.host_ip.empty() != other.host_ip.empty();
  return one.host_port == other.host_port && one_open ? "dangerously ambiguous"
                                                      : std::string_view();
}

void warn_of_ports(const Value& spec, const Path& at, Texts& out) {
  std::map<std::string, std::vector<Port>> seen;
  each_container(spec, at, [&](const Value& container, const Path& here) {
    const Path ports = here.child("ports");
    for (size_t i = 0; i < container["ports"].size(); ++i) {
      const Value& port = container["ports"].at(i);
      const Port one{ports.at(i).text(), port["hostIP"].str(), port["hostPort"].as_int()};
      auto& others =
          seen[fmt::format("{}/{}", port["containerPort"].as_int(), port["protocol"].as_string())];
      for (const Port& other : others) {
        const std::string_view word = clash(one, other);
        if (word.empty()) continue;
        out.push_back(fmt::format("{}: {} port definition with {}", one.place, word, other.place));
      }
      others.push_back(one);
    }
  });
  std::map<std::string, std::string, std::less<>> names;
  each_container(spec, at, [&](const Value& container, const Path& here) {
    const Path ports = here.child("ports");
    for (size_t i = 0; i < container["ports"].size(); ++i) {
      const std::string name = container["ports"].at(i)["name"].str();
      if (name.empty()) continue;
      const auto [known, first] = names.emplace(name, ports.at(i).text());
      if (first) continue;
      say(out, ports.at(i),
          fmt::format("duplicate port name \"{}\" with {}, services and probes that select ports "
                      "by name will use {}",
                      name, known->second, known->second));
    }
  });
}

void warn_of_pod_affinity(const Value& spec, const Path& at, Texts& out) {
  const Path affinity_at = at.child("affinity");
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Value& affinity = spec["affinity"][kind];
    const Path kind_at = affinity_at.child(kind);
    const Path required = kind_at.child("requiredDuringSchedulingIgnoredDuringExecution");
    const Value& terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"];
    for (size_t i = 0; i < terms.size(); ++i) {
      const Path here = required.at(i);
      if (terms.at(i)["labelSelector"].is_null()) say(out, here.child("labelSelector"), kNoPods);
    }
    const Path preferred = kind_at.child("preferredDuringSchedulingIgnoredDuringExecution");
    const Value& weighted = affinity["preferredDuringSchedulingIgnoredDuringExecution"];
    for (size_t i = 0; i < weighted.size(); ++i) {
      const Path here = preferred.at(i);
      const Path term = here.child("podAffinityTerm");
      if (weighted.at(i)["podAffinityTerm"]["labelSelector"].is_null()) {
        say(out, term.child("labelSelector"), kNoPods);
      }
    }
  }
}

void warn_of_annotations(const Value& meta, const Path& at, Texts& out) {
  const Path annotations = at.child("annotations");
  for (const auto& [name, word] : kAnnotations) {
    if (meta["annotations"].contains(name)) say(out, annotations.key(name), word);
  }
}

void warn_of_volumes(const Value& spec, const Path& at, Texts& out) {
  const Path volumes = at.child("volumes");
  for (size_t i = 0; i < spec["volumes"].size(); ++i) {
    const Path here = volumes.at(i);
    for (const auto& [name, word] : kVolumes) {
      if (!spec["volumes"].at(i).contains(name)) continue;
      say(out, here.child(name == "storageos" ? "storageOS" : name), word);
    }
  }
}

}  // namespace

void warn_of_pod(const Value& pod, std::string_view at, Texts& out) {
  const Path root(at);
  const Path spec_at = root.child("spec");
  const Value& spec = pod["spec"];
  warn_of_node_labels(spec, spec_at, out);
  warn_of_spread(spec, spec_at, out);
  warn_of_annotations(pod["metadata"], root.child("metadata"), out);
  warn_of_volumes(spec, spec_at, out);
  warn_of_lists(spec, spec_at, out);
  for (const char* name : {"memory", "ephemeral-storage"}) {
    warn_of_fraction(spec["overhead"], name, spec_at.child("overhead"), out);
  }
  warn_of_containers(spec, spec_at, out);
  warn_of_ports(spec, spec_at, out);
  if (spec["terminationGracePeriodSeconds"].as_int() < 0) {
    say(out, spec_at.child("terminationGracePeriodSeconds"),
        "must be >= 0; negative values are invalid and will be treated as 1");
  }
  warn_of_pod_affinity(spec, spec_at, out);
}

}  // namespace tessera::apiserver
