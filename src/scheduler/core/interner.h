// Names as small integers: label keys and values, resource names, GPU models. Filters compare
// integers only.
//
// Shape:   three independent dense numberings that start at 0. Ids are never given back, so a name
//          keeps its id for the life of the interner.
// Threads: one writer (the scheduler's strand).
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/ids.h"

namespace tessera::scheduler::core {

using StringId = base::Id<struct StringTag>;
using ResourceId = base::Id<struct ResourceTag>;
using ModelId = base::Id<struct ModelTag>;

// One numbering.
template <class IdType>
class NameTable {
 public:
  NameTable() = default;
  NameTable(const NameTable& other) : names_(other.names_) { index(); }
  NameTable& operator=(const NameTable& other) {
    names_ = other.names_;
    index();
    return *this;
  }
  IdType intern(std::string_view name) {
    auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    names_.emplace_back(name);
    IdType id(static_cast<int32_t>(names_.size() - 1));
    ids_.emplace(names_.back(), id);
    return id;
  }
  // Invalid where the name was never interned.
  IdType find(std::string_view name) const {
    auto found = ids_.find(name);
    return found == ids_.end() ? IdType() : found->second;
  }
  std::string_view name(IdType id) const {
    return id.valid() ? std::string_view(names_[static_cast<size_t>(id.value)]) : "";
  }
  size_t size() const { return names_.size(); }

 private:
  void index() {
    ids_.clear();
    for (size_t i = 0; i < names_.size(); ++i)
      ids_.emplace(names_[i], IdType(static_cast<int32_t>(i)));
  }
  std::deque<std::string>
      names_;  // a deque never moves its strings: the map's keys point into them
  std::unordered_map<std::string_view, IdType> ids_;
};

class Interner {
 public:
  StringId string(std::string_view text);
  ResourceId resource(std::string_view name) { return resources_.intern(name); }
  ModelId model(std::string_view name) { return models_.intern(name); }

  std::string_view text(StringId id) const { return strings_.name(id); }
  std::string_view text(ResourceId id) const { return resources_.name(id); }
  std::string_view text(ModelId id) const { return models_.name(id); }
  // The string read as a decimal integer, for the operators Gt and Lt; read once, when it is
  // interned.
  std::optional<int64_t> number(StringId id) const;
  size_t models() const { return models_.size(); }

 private:
  NameTable<StringId> strings_;
  NameTable<ResourceId> resources_;
  NameTable<ModelId> models_;
  std::unordered_map<int32_t, int64_t> numbers_;
};

}  // namespace tessera::scheduler::core
