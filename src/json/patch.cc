#include "json/patch.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

namespace tessera::json {
namespace {

using base::Code;

// A patch copies subtrees by reference, so that it costs little; what it builds may still be huge when written out.
constexpr size_t kOperationsMax = 10'000;
constexpr size_t kNodesMax = 1'000'000;

using Path = std::span<const std::string>;

std::optional<size_t> index_of(std::string_view token) {
  if (token.empty() || (token.size() > 1 && token[0] == '0')) return std::nullopt;
  size_t index = 0;
  const auto end = std::from_chars(token.data(), token.data() + token.size(), index);
  if (end.ec != std::errc() || end.ptr != token.data() + token.size()) return std::nullopt;
  return index;
}

const Value* step(const Value& value, const std::string& token) {
  if (value.is_object()) return value.find(token);
  if (!value.is_array()) return nullptr;
  const auto index = index_of(token);
  return index && *index < value.size() ? &value.at(*index) : nullptr;
}

const Value* resolve(const Value& root, Path path) {
  const Value* at = &root;
  for (const std::string& token : path) {
    if (at = step(*at, token); at == nullptr) return nullptr;
  }
  return at;
}

// Nodes of a value written out, counted no further than the limit.
size_t count_nodes(const Value& value, size_t limit) {
  size_t count = 1;
  for (const Value& item : value.items()) {
    if (count > limit) return count;
    count += count_nodes(item, limit - count);
  }
  for (const Member& member : value.members()) {
    if (count > limit) return count;
    count += count_nodes(member.value, limit - count);
  }
  return count;
}

int depth_of(const Value& value, int limit) {
  int deepest = 0;
  if (limit <= 0) return 1;
  for (const Value& item : value.items()) deepest = std::max(deepest, depth_of(item, limit - 1));
  for (const Member& m : value.members()) deepest = std::max(deepest, depth_of(m.value, limit - 1));
  return deepest + 1;
}

// One operation at a time on a document, each with the index and path that errors name.
class Patcher {
 public:
  explicit Patcher(Value document) : document_(std::move(document)) {}

  base::Status apply(const Value& operation, size_t index) {
    index_ = index;
    op_ = operation["op"].str();
    text_ = operation["path"].str();
    if (!operation.is_object()) return malformed("is not an object");
    if (!operation["op"].is_string()) return malformed("has no \"op\"");
    if (!operation["path"].is_string()) return malformed("has no \"path\"");
    TS_TRY(const auto path, pointer(text_));
    const Value* value = operation.find("value");
    if ((op_ == "add" || op_ == "replace" || op_ == "test") && value == nullptr) {
      return malformed("has no \"value\"");
    }
    if (op_ == "add") return add(path, *value);
    if (op_ == "remove") {
      TS_TRY_STATUS(remove(path));
      return {};
    }
    if (op_ == "replace") return replace(path, *value);
    if (op_ == "test") return test(path, *value);
    if (op_ != "move" && op_ != "copy") {
      return malformed("has an unknown \"op\"; use add, remove, replace, move, copy or test");
    }
    if (!operation["from"].is_string()) return malformed("has no \"from\"");
    TS_TRY(const auto from, pointer(operation["from"].as_string()));
    return op_ == "move" ? move(from, path) : copy(from, path);
  }
  Value take() { return std::move(document_); }

 private:
  tl::unexpected<base::Error> malformed(std::string_view what) const {
    return base::error(Code::kBadRequest, "operation {} ({} {}) {}", index_,
                       op_.empty() ? "?" : op_, text_, what);
  }
  tl::unexpected<base::Error> unmet(std::string_view what) const {
    return base::error(Code::kInvalid, "operation {} ({} {}): {}", index_, op_, text_, what);
  }
  base::Result<std::vector<std::string>> pointer(std::string_view text) const {
    auto parsed = parse_pointer(text);
    if (!parsed) return malformed(parsed.error().message);
    return parsed;
  }

  // The container at the path's end, ready to be changed; the error names the token that is missing.
  base::Result<Value*> container_of(Path path) {
    if (resolve(document_, path.first(path.size() - 1)) == nullptr) {
      return unmet("the path does not exist");
    }
    Value* at = &document_;
    for (const std::string& token : path.first(path.size() - 1)) {
      at = at->is_object() ? &at->ref(token) : &at->ref_at(*index_of(token));
    }
    if (!at->is_object() && !at->is_array()) return unmet("the parent is neither object nor array");
    return at;
  }

  base::Status charge(const Value& value) {
    nodes_ += count_nodes(value, kNodesMax);
    if (nodes_ > kNodesMax) {
      return base::error(Code::kTooLarge,
                         "operation {} ({} {}): the patch adds more than {} values", index_, op_,
                         text_, kNodesMax);
    }
    constexpr int kDepthMax = 512;
    if (depth_of(value, kDepthMax) + depth_added_ > kDepthMax) {
      return base::error(Code::kTooLarge, "operation {} ({} {}): nested deeper than {} levels",
                         index_, op_, text_, kDepthMax);
    }
    return {};
  }

  base::Status add(Path path, const Value& value) {
    depth_added_ = static_cast<int>(std::min<size_t>(path.size(), 100'000));
    TS_TRY_STATUS(charge(value));
    if (path.empty()) {
      document_ = value;
      return {};
    }
    TS_TRY(Value * container, container_of(path));
    const std::string& last = path.back();
    if (container->is_object()) {
      container->set(last, value);
      return {};
    }
    const auto index = last == "-" ? container->size() : index_of(last);
    if (!index || *index > container->size()) return unmet("the index is out of range");
    container->insert_at(*index, value);
    return {};
  }

  base::Result<Value> remove(Path path) {
    if (path.empty()) return std::exchange(document_, Value());
    const Value* old = resolve(document_, path);
    if (old == nullptr) return unmet("the path does not exist");
    Value removed = *old;
    TS_TRY(Value * container, container_of(path));
    if (container->is_object()) {
      container->erase(path.back());
    } else {
      container->erase_at(*index_of(path.back()));
    }
    return removed;
  }

  base::Status replace(Path path, const Value& value) {
    depth_added_ = static_cast<int>(std::min<size_t>(path.size(), 100'000));
    TS_TRY_STATUS(charge(value));
    if (path.empty()) {
      document_ = value;
      return {};
    }
    TS_TRY(Value * container, container_of(path));
    // A member that is not there is added, as Kubernetes' patches do; an item is not.
    if (container->is_array() && resolve(document_, path) == nullptr) {
      return unmet("the path does not exist");
    }
    if (container->is_object()) {
      container->set(path.back(), value);
    } else {
      container->ref_at(*index_of(path.back())) = value;
    }
    return {};
  }

  base::Status test(Path path, const Value& value) {
    const Value* found = resolve(document_, path);
    if (found == nullptr) return unmet("the path does not exist");
    if (!(*found == value)) return unmet("the test failed: the value is another one");
    return {};
  }

  base::Status move(Path from, Path to) {
    if (resolve(document_, from) == nullptr) return unmet("\"from\" does not exist");
    if (from.size() < to.size() && std::ranges::equal(from, to.first(from.size()))) {
      return unmet("a value cannot be moved into itself");
    }
    if (std::ranges::equal(from, to)) return {};
    TS_TRY(const Value value, remove(from));
    return add(to, value);
  }

  base::Status copy(Path from, Path to) {
    const Value* found = resolve(document_, from);
    if (found == nullptr) return unmet("\"from\" does not exist");
    const Value value = *found;
    return add(to, value);
  }

  Value document_;
  size_t index_ = 0;
  std::string op_;
  std::string text_;
  size_t nodes_ = 0;
  int depth_added_ = 0;
};

}  // namespace

base::Result<std::vector<std::string>> parse_pointer(std::string_view pointer) {
  std::vector<std::string> out;
  if (pointer.empty()) return out;
  if (pointer[0] != '/') {
    return base::error(Code::kBadRequest, "pointer {} does not start with '/'",
                       Value(pointer).dump());
  }
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      out.emplace_back();
    } else if (pointer[i] != '~') {
      out.back() += pointer[i];
    } else {
      const char next = i + 1 < pointer.size() ? pointer[++i] : ' ';
      if (next != '0' && next != '1') {
        return base::error(Code::kBadRequest, "pointer {} has a '~' without 0 or 1 after it",
                           Value(pointer).dump());
      }
      out.back() += next == '0' ? '~' : '/';
    }
  }
  return out;
}

const Value* resolve_pointer(const Value& root, const std::vector<std::string>& path) {
  return resolve(root, path);
}

base::Result<Value> apply_json_patch(const Value& target, const Value& patch) {
  if (!patch.is_array()) {
    return base::error(Code::kBadRequest, "a JSON patch is an array of operations");
  }
  if (patch.size() > kOperationsMax) {
    return base::error(Code::kTooLarge,
                       "the allowed maximum operations in a JSON patch is {}, got {}",
                       kOperationsMax, patch.size());
  }
  Patcher patcher(target);
  size_t index = 0;
  for (const Value& operation : patch.items()) {
    TS_TRY_STATUS(patcher.apply(operation, index++));
  }
  return patcher.take();
}

Value apply_merge_patch(const Value& target, const Value& patch) {
  if (!patch.is_object()) return patch;
  Value out = target.is_object() ? target : Value::object();
  for (const Member& member : patch.members()) {
    if (member.value.is_null()) {
      out.erase(member.name());
      continue;
    }
    const Value before = out[member.name()];
    Value after = apply_merge_patch(before, member.value);
    const bool known = out.contains(member.name());
    if (!known || !(after == before)) out.set(member.name(), std::move(after));
  }
  return out;
}

Value diff_merge_patch(const Value& from, const Value& to) {
  if (!from.is_object() || !to.is_object()) return to;
  Value out = Value::object();
  for (const Member& member : from.members()) {
    if (!to.contains(member.name())) out.set(member.name(), nullptr);
  }
  for (const Member& member : to.members()) {
    const Value* before = from.find(member.name());
    if (before != nullptr && *before == member.value) continue;
    out.set(member.name(),
            before != nullptr ? diff_merge_patch(*before, member.value) : member.value);
  }
  return out;
}

}  // namespace tessera::json
