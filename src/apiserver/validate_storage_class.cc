#include <algorithm>
#include <limits>
#include <set>

#include "apiserver/validate_meta.h"
#include "apiserver/validate_storage.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kDriverBytesMax = 63;
constexpr size_t kNodeIdBytesMax = 192;
constexpr size_t kParametersMax = 512;
constexpr size_t kParameterBytesMax = 256 * 1024;
constexpr int64_t kTokenSecondsMin = 600;
constexpr int64_t kTokenSecondsMax = int64_t{1} << 32;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

void validate_parameters(const Value& parameters, const Path& at, FieldErrors& errors) {
  if (parameters.size() > kParametersMax) {
    errors.too_long(at.text(), kParametersMax);
    return;
  }
  size_t bytes = 0;
  for (const json::Member& member : parameters.members()) {
    if (member.name().empty()) errors.invalid(at.text(), member.key, "field can not be empty.");
    bytes += member.name().size() + member.value.as_string().size();
  }
  if (bytes > kParameterBytesMax) errors.too_long(at.text(), kParameterBytesMax);
}

void validate_topology_term(const Value& term, const Path& at, FieldErrors& errors) {
  const Path list = at.child("matchLabelExpressions");
  const Value& expressions = term["matchLabelExpressions"];
  std::set<std::string_view> keys;
  for (size_t i = 0; i < expressions.size(); ++i) {
    const Path here = list.at(i);
    const Path values_at = here.child("values");
    const Value& values = expressions.at(i)["values"];
    if (values.empty()) errors.required(values_at.text());
    std::set<std::string_view> seen;
    for (size_t j = 0; j < values.size(); ++j) {
      if (seen.insert(values.at(j).as_string()).second) continue;
      errors.duplicate(values_at.at(j).text(), values.at(j));
    }
    const Value& key = expressions.at(i)["key"];
    validate_label_name(key.as_string(), here.child("key"), errors);
    if (!keys.insert(key.as_string()).second) errors.duplicate(here.text("key"), key);
  }
}

void validate_topologies(const Value& terms, const Path& at, FieldErrors& errors) {
  for (size_t i = 0; i < terms.size(); ++i) {
    const Path here = at.at(i);
    validate_topology_term(terms.at(i), here, errors);
    const auto before = terms.items().first(i);
    if (std::ranges::find(before, terms.at(i)) != before.end()) {
      errors.duplicate(here.text("matchLabelExpressions"), Value(""));
    }
  }
}

void validate_driver(const Value& driver, const Path& at, FieldErrors& errors) {
  validate_driver_name(driver["name"], at.child("name"), errors);
  const Value& node = driver["nodeID"];
  if (node.as_string().empty()) errors.required(at.text("nodeID"));
  if (node.as_string().size() > kNodeIdBytesMax) {
    errors.invalid(at.text("nodeID"), node,
                   fmt::format("must be {} characters or less", kNodeIdBytesMax));
  }
  const Path limit = at.child("allocatable");
  validate_not_negative(driver["allocatable"]["count"], limit.child("count"), errors);
  std::set<std::string_view> seen;
  for (const Value& key : driver["topologyKeys"].items()) {
    if (key.as_string().empty()) errors.required(at.text());
    if (!seen.insert(key.as_string()).second) errors.duplicate(at.text(), key);
    validate_label_name(key.as_string(), at, errors);
  }
}

void validate_token_requests(const Value& requests, const Path& at, FieldErrors& errors) {
  std::set<std::string_view> audiences;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Path here = at.at(i);
    const Value& audience = requests.at(i)["audience"];
    if (!audiences.insert(audience.as_string()).second) {
      errors.duplicate(here.text("audience"), audience);
      continue;
    }
    const Value* seconds = requests.at(i).find("expirationSeconds");
    if (seconds == nullptr) continue;
    if (seconds->as_int() < kTokenSecondsMin) {
      errors.invalid(here.text("expirationSeconds"), *seconds,
                     "may not specify a duration less than 10 minutes");
    } else if (seconds->as_int() > kTokenSecondsMax) {
      errors.invalid(here.text("expirationSeconds"), *seconds,
                     "may not specify a duration larger than 2^32 seconds");
    }
  }
}

}  // namespace

void validate_driver_name(const Value& name, const Path& at, FieldErrors& errors) {
  const std::string_view text = name.as_string();
  if (text.empty()) {
    errors.required(at.text());
    return;
  }
  if (text.size() > kDriverBytesMax) errors.too_long(at.text(), kDriverBytesMax);
  add_reasons(kube::check_dns1123_subdomain(lower(text)), name, at, errors);
}

void validate_storage_class(const Value& object, FieldErrors& errors) {
  const Path provisioner("provisioner");
  const std::string name = lower(object["provisioner"].as_string());
  if (name.empty()) {
    errors.required(provisioner.text());
  } else {
    add_reasons(kube::check_qualified_name(name), Value(name), provisioner, errors);
  }
  validate_parameters(object["parameters"], Path("parameters"), errors);
  validate_choice(object["reclaimPolicy"], {"Delete", "Retain"}, Path("reclaimPolicy"), errors);
  validate_choice(object["volumeBindingMode"], {"Immediate", "WaitForFirstConsumer"},
                  Path("volumeBindingMode"), errors);
  validate_topologies(object["allowedTopologies"], Path("allowedTopologies"), errors);
}

void validate_storage_class_update(const Value& object, const Value& before, FieldErrors& errors) {
  for (const char* field : {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) {
    validate_immutable(object[field], before[field], Path(field), errors);
  }
}

void validate_csi_node(const Value& object, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.child("drivers");
  const Value& drivers = object["spec"]["drivers"];
  std::set<std::string_view> names;
  for (size_t i = 0; i < drivers.size(); ++i) {
    const Path here = list.at(i);
    validate_driver(drivers.at(i), here, errors);
    const Value& name = drivers.at(i)["name"];
    if (!names.insert(name.as_string()).second) errors.duplicate(here.text("name"), name);
  }
}

void validate_csi_node_update(const Value& object, const Value& before, FieldErrors& errors) {
  for (const Value& old : before["spec"]["drivers"].items()) {
    for (const Value& driver : object["spec"]["drivers"].items()) {
      if (!(driver["name"] == old["name"])) continue;
      Value now = driver;
      Value then = old;
      now.erase("allocatable");
      then.erase("allocatable");
      if (!(now == then)) errors.invalid("spec.drivers", now, "field is immutable");
    }
  }
}

void validate_csi_driver(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  validate_choice(spec["fsGroupPolicy"], {"File", "None", "ReadWriteOnceWithFSType"},
                  at.child("fsGroupPolicy"), errors);
  validate_token_requests(spec["tokenRequests"], at.child("tokenRequests"), errors);
  for (const Value& mode : spec["volumeLifecycleModes"].items()) {
    validate_choice(mode, {"Persistent", "Ephemeral"}, at.child("volumeLifecycleModes"), errors);
  }
}

void validate_csi_driver_update(const Value& object, const Value& before, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  const Value& old = before["spec"];
  // Kubernetes misspells the first.
  validate_immutable(spec["attachRequired"], old["attachRequired"], at.child("attachedRequired"),
                     errors);
  validate_immutable(spec["volumeLifecycleModes"], old["volumeLifecycleModes"],
                     at.child("volumeLifecycleModes"), errors);
}

void validate_volume_attachment(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  validate_driver_name(spec["attacher"], at.child("attacher"), errors);
  const Path source_at = at.child("source");
  const Value& source = spec["source"];
  constexpr std::string_view kOne =
      "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  const Value* name = source.find("persistentVolumeName");
  const bool inside = source.contains("inlineVolumeSpec");
  if (name == nullptr && !inside) {
    errors.required(source_at.text(), kOne);
  } else if (name != nullptr && inside) {
    errors.forbidden(source_at.text(), kOne);
  } else if (name != nullptr && name->as_string().empty()) {
    errors.required(source_at.text("persistentVolumeName"),
                    "must specify non empty persistentVolumeName");
  } else if (name != nullptr) {
    validate_dns_subdomain(name->as_string(), source_at.child("persistentVolumeName"), errors);
  }
  validate_dns_subdomain(spec["nodeName"].as_string(), at.child("nodeName"), errors);
}

void validate_volume_attachment_update(const Value& object, const Value& before,
                                       FieldErrors& errors) {
  validate_immutable(object["spec"], before["spec"], Path("spec"), errors);
}

}  // namespace tessera::apiserver
