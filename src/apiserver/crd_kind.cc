#include "apiserver/crd_kind.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>

#include "apiserver/crd_columns.h"
#include "apiserver/crd_prune.h"
#include "apiserver/crd_validate.h"
#include "kube/schema.h"

namespace tessera::apiserver {
namespace {

using json::Value;

std::vector<std::string> texts_of(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

// ".spec.replicas"
std::vector<std::string> steps_of(std::string_view path) {
  std::vector<std::string> out;
  if (path.starts_with('.')) path.remove_prefix(1);
  while (!path.empty()) {
    const size_t dot = path.find('.');
    out.emplace_back(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return out;
}

const Value& at_steps(const Value& object, const std::vector<std::string>& steps) {
  const Value* at = &object;
  for (const std::string& step : steps) at = &(*at)[step];
  return *at;
}

std::string joined(const std::vector<std::string>& steps) {
  std::string out;
  for (const std::string& step : steps) out.append(".").append(step);
  return out;
}

void check_replicas(const Value& object, const std::vector<std::string>& steps,
                    FieldErrors& errors) {
  const Value& count = at_steps(object, steps);
  if (count.is_null()) return;
  const std::string path = joined(steps);
  if (!count.is_int()) {
    errors.invalid(path, 0,
                   fmt::format("{} accessor error: {} is of the type {}, expected int64", path,
                               count.dump(), count.is_string() ? "string" : "float64"));
  } else if (count.as_int() < 0) {
    errors.invalid(path, count, "should be a non-negative integer");
  } else if (count.as_int() > std::numeric_limits<int32_t>::max()) {
    errors.invalid(
        path, count,
        fmt::format("should be less than or equal to {}", std::numeric_limits<int32_t>::max()));
  }
}

void check_selector(const Value& object, const CustomKind& custom, FieldErrors& errors) {
  if (custom.scale->selector.empty()) return;
  const Value& selector = at_steps(object, custom.scale->selector);
  if (selector.is_null() || selector.is_string()) return;
  const std::string path = joined(custom.scale->selector);
  errors.invalid(path, "",
                 fmt::format("{} accessor error: {} is of the type map[string]interface {{}}, "
                             "expected string",
                             path, selector.dump()));
}

void validate_object(const CustomKind& custom, const Value& object, const Value* before,
                     FieldErrors& errors) {
  const auto now = custom.slot->now();
  if (now == nullptr) return;
  const CrdSchema& schema = *now->schema;
  validate_by_schema(schema, object, before, "", errors);
  if (custom.scale) {
    check_replicas(object, custom.scale->spec_replicas, errors);
    check_replicas(object, custom.scale->status_replicas, errors);
    check_selector(object, custom, errors);
  }
  validate_embedded(schema, object, errors);
  FieldErrors old;
  if (before != nullptr) validate_lists(schema, *before, old);
  if (old.empty()) validate_lists(schema, object, errors);
}

void validate_status(const CustomKind& custom, const Value& object, const Value& before,
                     FieldErrors& errors) {
  const auto now = custom.slot->now();
  if (now == nullptr) return;
  const CrdSchema* status = now->schema->property("status");
  if (status != nullptr && object.contains("status")) {
    validate_by_schema(*status, object["status"], before.find("status"), "status", errors);
  }
  if (custom.scale) {
    check_replicas(object, custom.scale->status_replicas, errors);
    check_selector(object, custom, errors);
  }
  FieldErrors old;
  validate_lists(*now->schema, before, old);
  if (old.empty()) validate_lists(*now->schema, object, errors);
}

std::string deprecation_of(const Value& definition, const Value& version) {
  if (!version["deprecated"].as_bool()) return {};
  if (!version["deprecationWarning"].is_null()) return version["deprecationWarning"].str();
  std::string text =
      fmt::format("{}/{} {} is deprecated", definition["spec"]["group"].as_string(),
                  version["name"].as_string(), definition["spec"]["names"]["kind"].as_string());
  // The version that a client would rather use.
  const Value* better = nullptr;
  for (const Value& other : definition["spec"]["versions"].items()) {
    const std::string_view name = other["name"].as_string();
    if (!other["served"].as_bool() || other["deprecated"].as_bool()) continue;
    if (!version_before(name, version["name"].as_string())) continue;
    if (better == nullptr || version_before(name, (*better)["name"].as_string())) better = &other;
  }
  if (better != nullptr) {
    text +=
        fmt::format("; use {}/{} {}", definition["spec"]["group"].as_string(),
                    (*better)["name"].as_string(), definition["spec"]["names"]["kind"].as_string());
  }
  return text;
}

void set_hooks(const std::shared_ptr<const CustomKind>& custom, Kind& kind) {
  if (kind.status_subresource) {
    kind.prepare_create = [](Value& object) { object.erase("status"); };
  }
  kind.validate_create = [custom](const Value& object, FieldErrors& errors) {
    validate_object(*custom, object, nullptr, errors);
  };
  kind.validate_update = [custom](const Value& object, const Value& before, FieldErrors& errors) {
    validate_object(*custom, object, &before, errors);
  };
  kind.validate_status = [custom](const Value& object, const Value& before, FieldErrors& errors) {
    validate_status(*custom, object, before, errors);
  };
}

Kind names_of(const Value& definition) {
  const Value& spec = definition["spec"];
  const Value& names = definition["status"]["acceptedNames"];
  Kind kind;
  kind.group = spec["group"].str();
  kind.kind = names["kind"].str();
  kind.plural = names["plural"].str();
  kind.singular = names["singular"].str();
  kind.list_kind = names["listKind"].str();
  kind.short_names = texts_of(names["shortNames"]);
  kind.categories = texts_of(names["categories"]);
  kind.namespaced = spec["scope"].as_string() == "Namespaced";
  kind.has_generation = true;
  return kind;
}

Kind kind_of(const Value& definition, const Value& version, const CrdKinds& kinds,
             std::shared_ptr<CustomKind> custom) {
  Kind kind = names_of(definition);
  const Value& subresources = version["subresources"];
  kind.version = version["name"].str();
  kind.stored_as = kinds.table;
  kind.status_subresource = !subresources["status"].is_null();
  kind.columns = custom_columns(version["additionalPrinterColumns"]);
  for (const Value& field : version["selectableFields"].items()) {
    std::string_view path = field["jsonPath"].as_string();
    if (path.starts_with('.')) path.remove_prefix(1);
    kind.selectable_fields.emplace_back(path);
  }
  if (const Value& scale = subresources["scale"]; scale.is_object()) {
    kind.subresources.push_back("scale");
    custom->scale = CustomKind::Scale{steps_of(scale["specReplicasPath"].as_string()),
                                      steps_of(scale["statusReplicasPath"].as_string()),
                                      steps_of(scale["labelSelectorPath"].as_string())};
  }
  custom->slot = kinds.slots.find(kind.api_version())->second;
  custom->versions = kinds.slots;
  custom->deprecation = deprecation_of(definition, version);
  kind.custom = custom;
  set_hooks(custom, kind);
  return kind;
}

// All but the schema: where it is the same, so is the kind.
std::string print_of(const Value& definition, const Value& version, const CustomKind& custom) {
  Value shape = version;
  shape.erase("schema");
  Value all = Value::object({{"version", std::move(shape)},
                             {"names", definition["status"]["acceptedNames"]},
                             {"scope", definition["spec"]["scope"]},
                             {"storage", custom.storage},
                             {"terminating", custom.terminating},
                             {"deprecation", deprecation_of(definition, version)}});
  for (const std::string& each : custom.served) all.ref("served").push_back(each);
  return all.dump();
}

base::Status fill_slots(const Value& definition, uint64_t revision, CrdKinds& kinds) {
  const std::string group = definition["spec"]["group"].str() + "/";
  for (const Value& version : definition["spec"]["versions"].items()) {
    std::shared_ptr<CrdSlot>& slot = kinds.slots[group + version["name"].str()];
    if (slot == nullptr) slot = std::make_shared<CrdSlot>();
    const Value& schema = version["schema"]["openAPIV3Schema"];
    const auto now = slot->now();
    if (now != nullptr && now->openapi == schema) continue;
    auto next = std::make_shared<CrdVersion>();
    TS_TRY(next->schema, compile_schema(schema));
    next->types = std::make_unique<const CrdTypes>(*next->schema, "custom");
    next->openapi = schema;
    next->revision = revision;
    slot->set(std::move(next));
  }
  return {};
}

// "v1beta2": kind of release and its numbers; nothing where it is no such name.
struct Release {
  int stage = 0;  // 3: release, 2: beta, 1: alpha, 0: none
  int64_t major = 0;
  int64_t minor = 0;
  auto order() const { return std::tie(stage, major, minor); }
};

Release release_of(std::string_view name) {
  const auto number = [](std::string_view& text, int64_t& out) {
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (bad != std::errc() || out <= 0 || text.front() == '0') return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
  };
  Release out;
  if (!name.starts_with('v')) return out;
  name.remove_prefix(1);
  if (name.empty() || !number(name, out.major)) return {};
  if (name.empty()) {
    out.stage = 3;
    return out;
  }
  out.stage = name.starts_with("beta") ? 2 : 1;
  if (!name.starts_with("beta") && !name.starts_with("alpha")) return {};
  name.remove_prefix(out.stage == 2 ? 4 : 5);
  if (name.empty() || !number(name, out.minor) || !name.empty()) return {};
  return out;
}

}  // namespace

std::shared_ptr<const CrdVersion> CrdSlot::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

void CrdSlot::set(std::shared_ptr<const CrdVersion> version) {
  const std::lock_guard lock(mutex_);
  now_.swap(version);  // the old one goes after the lock
}

bool has_condition(const Value& definition, std::string_view type) {
  for (const Value& condition : definition["status"]["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition["status"].as_string() == "True";
  }
  return false;
}

bool version_before(std::string_view a, std::string_view b) {
  const Release left = release_of(a);
  const Release right = release_of(b);
  if (left.stage == 0 && right.stage == 0) return a < b;
  return left.order() > right.order();
}

base::Status update_custom_kinds(const Value& definition, uint64_t revision, CrdKinds& kinds) {
  kinds.served.clear();
  if (!has_condition(definition, "Established")) return {};
  TS_TRY_STATUS(fill_slots(definition, revision, kinds));
  if (kinds.table == nullptr) kinds.table = Kinds::keep(names_of(definition));
  CustomKind all;
  const std::string group = definition["spec"]["group"].str() + "/";
  all.terminating = has_condition(definition, "Terminating");
  for (const Value& version : definition["spec"]["versions"].items()) {
    const std::string name = group + version["name"].str();
    if (version["served"].as_bool()) all.served.push_back(name);
    if (version["storage"].as_bool()) all.storage = name;
  }
  for (const Value& version : definition["spec"]["versions"].items()) {
    if (!version["served"].as_bool()) continue;
    const Kind*& made = kinds.made[print_of(definition, version, all)];
    if (made == nullptr) {
      made = Kinds::keep(kind_of(definition, version, kinds, std::make_shared<CustomKind>(all)));
    }
    kinds.served.push_back(made);
  }
  std::ranges::sort(kinds.served, [](const Kind* a, const Kind* b) {
    return version_before(a->version, b->version);
  });
  return {};
}

void end_custom_kinds(CrdKinds& kinds) {
  kinds.served.clear();
  for (const auto& [name, slot] : kinds.slots) slot->set(nullptr);
}

Value as_served(const Kind& kind, Value object) {
  if (kind.custom == nullptr || !object.is_object()) return object;
  const auto stored = kind.custom->versions.find(object["apiVersion"].as_string());
  const auto now = stored == kind.custom->versions.end() ? nullptr : stored->second->now();
  if (now != nullptr) {
    uint64_t revision = 0;
    const std::string_view text = object["metadata"]["resourceVersion"].as_string();
    std::from_chars(text.data(), text.data() + text.size(), revision);
    if (revision <= now->revision) {
      prune_unknown(*now->schema, object, nullptr);
      fill_defaults(*now->schema, object);
    }
  }
  const std::string version = kind.api_version();
  if (object["apiVersion"].as_string() != version) object.set("apiVersion", version);
  return object;
}

Value as_stored(const Kind& kind, Value object) {
  if (kind.custom == nullptr || !object.is_object()) return object;
  if (object["apiVersion"].as_string() == kind.custom->storage) return object;
  object.set("apiVersion", kind.custom->storage);
  const auto stored = kind.custom->versions.find(kind.custom->storage);
  const auto now = stored == kind.custom->versions.end() ? nullptr : stored->second->now();
  if (now == nullptr) return object;
  prune_unknown(*now->schema, object, nullptr);
  fill_defaults(*now->schema, object);
  return object;
}

base::Result<Value> decode_custom(const Kind& kind, Value body, std::vector<std::string>* unknown) {
  static const kube::SchemaType* const kMeta =
      kube::find_schema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  const auto now = kind.custom->slot->now();
  if (now == nullptr) {
    return base::error(base::Code::kNotFound, "the server could not find the requested resource");
  }
  if (body.contains("metadata")) {
    std::vector<std::string> of_meta;
    TS_TRY(Value meta, kube::normalize(*kMeta, body["metadata"], &of_meta));
    for (const std::string& field : of_meta) unknown->push_back("metadata." + field);
    body.set("metadata", std::move(meta));
  }
  std::vector<std::string> of_schema;
  prune_unknown(*now->schema, body, &of_schema);
  unknown->insert(unknown->end(), of_schema.begin(), of_schema.end());
  fill_defaults(*now->schema, body);
  return body;
}

}  // namespace tessera::apiserver
