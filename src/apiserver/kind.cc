#include "apiserver/kind.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
void FieldErrors::required(std::string field, std::string_view detail) {
  causes_.push_back(kube::required_value(field, detail));
}

void FieldErrors::invalid(std::string field, const json::Value& value, std::string_view detail) {
  causes_.push_back(kube::invalid_value(field, value, detail));
}

void FieldErrors::not_supported(std::string field, const json::Value& value,
                                const std::vector<std::string>& supported) {
  causes_.push_back(kube::not_supported(field, value, supported));
}

void FieldErrors::duplicate(std::string field, const json::Value& value) {
  causes_.push_back(kube::duplicate_value(field, value));
}

void FieldErrors::forbidden(std::string field, std::string_view detail) {
  causes_.push_back(kube::forbidden(field, detail));
}

void FieldErrors::not_found(std::string field, const json::Value& value) {
  causes_.push_back({"FieldValueNotFound", "Not found: " + value.dump(), std::move(field)});
}

void FieldErrors::too_long(std::string field, size_t bytes_max) {
  causes_.push_back({"FieldValueTooLong",
                     fmt::format("Too long: may not be more than {} bytes", bytes_max),
                     std::move(field)});
}

void FieldErrors::too_many(std::string field, size_t count, size_t count_max) {
  causes_.push_back({"FieldValueTooMany",
                     fmt::format("Too many: {}: must have at most {} items", count, count_max),
                     std::move(field)});
}

const Kinds& Kinds::builtin() {
  static const Kinds* const kBuiltin = [] {
    auto* kinds = new Kinds();
    add_core_kinds(*kinds);
    add_apps_kinds(*kinds);
    add_batch_kinds(*kinds);
    add_storage_kinds(*kinds);
    add_network_kinds(*kinds);
    add_policy_kinds(*kinds);
    add_review_kinds(*kinds);
    add_other_kinds(*kinds);
    add_view_kinds(*kinds);
    add_extension_kinds(*kinds);
    return kinds;
  }();
  return *kBuiltin;
}

// Kinds are never freed: requests hold plain pointers to them.
const Kind* Kinds::keep(Kind kind) {
  static std::mutex mutex;
  static auto* const kKinds = new std::deque<Kind>();
  const std::lock_guard lock(mutex);
  return &kKinds->emplace_back(std::move(kind));
}

void Kinds::add(Kind kind) {
  TS_CHECK(find(kind.gvr()) == nullptr, "kind {} of {} is there twice", kind.kind,
           kind.api_version());
  if (kind.schema == nullptr) {
    kind.schema = kube::find_kind_schema(kind.group, kind.version, kind.kind);
  }
  all_.push_back(keep(std::move(kind)));
}

std::shared_ptr<const Kinds::Custom> Kinds::custom() const {
  const std::lock_guard lock(mutex_);
  return custom_;
}

void Kinds::publish(std::vector<const Kind*> served, std::vector<const Kind*> tables) {
  auto next = std::make_shared<Custom>();
  next->served = std::move(served);
  next->tables = std::move(tables);
  const std::lock_guard lock(mutex_);
  next->edition = custom_->edition + 1;
  custom_ = std::move(next);
}

uint64_t Kinds::edition() const {
  return custom()->edition;
}

std::vector<const Kind*> Kinds::all() const {
  std::vector<const Kind*> out = all_;
  const auto more = custom();
  out.insert(out.end(), more->served.begin(), more->served.end());
  return out;
}

std::vector<const Kind*> Kinds::tables() const {
  std::vector<const Kind*> out = all_;
  const auto more = custom();
  out.insert(out.end(), more->tables.begin(), more->tables.end());
  return out;
}

const Kind* Kinds::find(const kube::Gvr& gvr) const {
  const auto fits = [&](const Kind* kind) {
    return kind->plural == gvr.resource && kind->group == gvr.group && kind->version == gvr.version;
  };
  if (const auto at = std::ranges::find_if(all_, fits); at != all_.end()) return *at;
  const auto more = custom();
  const auto at = std::ranges::find_if(more->served, fits);
  return at == more->served.end() ? nullptr : *at;
}

const Kind* Kinds::find_kind(std::string_view group, std::string_view version,
                             std::string_view kind) const {
  const auto fits = [&](const Kind* each) {
    return each->kind == kind && each->group == group && each->version == version;
  };
  if (const auto at = std::ranges::find_if(all_, fits); at != all_.end()) return *at;
  const auto more = custom();
  const auto at = std::ranges::find_if(more->served, fits);
  return at == more->served.end() ? nullptr : *at;
}

}  // namespace tessera::apiserver
