#include "kube/strategic_lists.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "kube/go_text.h"

namespace tessera::kube::strategic {

using base::Code;
using base::Result;
using base::Status;
using json::Value;

Index::Index(const Value& list, std::string_view key) : key_(key) {
  for (const Value& item : list.items()) add(key.empty() ? item : item[key]);
}

int64_t Index::find(const Value& key_value) const {
  const auto at = at_.find(key_value.dump());
  return at == at_.end() ? -1 : at->second;
}

int64_t Index::find_element(const Value& element) const {
  return find(key_.empty() ? element : element[key_]);
}

void Index::add(const Value& key_value) {
  at_.emplace(key_value.dump(), size_++);
}

Result<bool> elements_are_objects(const Value& a, const Value& b) {
  size_t objects = 0;
  size_t lists = 0;
  for (const Value* list : {&a, &b}) {
    for (const Value& item : list->items()) {
      objects += item.is_object() ? 1 : 0;
      lists += item.is_array() ? 1 : 0;
    }
  }
  const size_t all = a.size() + b.size();
  if ((objects != 0 && objects != all) || (lists != 0 && lists != all)) {
    return base::error(Code::kInternal, "list element types are not identical: [{} {}]", go_text(a),
                       go_text(b));
  }
  if (lists != 0) return base::error(Code::kInvalid, "lists of lists are not supported");
  return objects != 0;
}

tl::unexpected<base::Error> no_merge_key(const Value& element, std::string_view key) {
  return base::error(Code::kInternal, "map: {} does not contain declared merge key: {}",
                     go_text(element), key);
}

void erase_matching(Value& list, std::string_view key, const Value& key_value) {
  for (size_t i = list.size(); i-- > 0;) {
    const Value* found = list.at(i).find(key);
    if (found != nullptr && *found == key_value) list.erase_at(i);
  }
}

void add_missing(const Value& more, Value& list) {
  Index index(list, {});
  for (const Value& item : more.items()) {
    if (index.find(item) >= 0) continue;
    index.add(item);
    list.push_back(item);
  }
}

Value without(const Value& list, const Value& gone) {
  const Index index(gone, {});
  Value out = Value::array();
  for (const Value& item : list.items()) {
    if (index.find(item) < 0) out.push_back(item);
  }
  return out;
}

Status check_order(const Value& change, const Value& order, std::string_view key) {
  if (!key.empty()) {
    for (const Value& item : order.items()) {
      if (!item.contains(key)) return no_merge_key(item, key);
    }
  }
  const Index places(order, key);
  int64_t last = -1;
  for (const Value& item : change.items()) {
    if (item.contains("$patch")) continue;
    if (!key.empty() && !item.contains(key)) return no_merge_key(item, key);
    const int64_t place = places.find_element(item);
    if (place < last || place < 0) {
      return base::error(
          Code::kInternal,
          "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
          go_text(change), go_text(order));
    }
    last = place;
  }
  return {};
}

Value server_order(const Value& before, const Value& change, std::string_view key) {
  if (key.empty()) return before;
  Value out = before;
  for (const Value& item : change.items()) {
    if (item["$patch"] == Value("delete")) erase_matching(out, key, item[key]);
  }
  size_t room = before.size() - out.size();
  const Index kept(out, key);
  for (const Value& item : change.items()) {
    if (room == 0) break;
    if (item.contains("$patch") || kept.find_element(item) >= 0) continue;
    out.push_back(item);
    --room;
  }
  return out;
}

Result<Value> in_order(const Value& merged, const Value& order, const Value& server,
                       std::string_view key) {
  const Index wanted(order, key);
  const Index had(server, key);
  struct Item {
    Value value;
    int64_t wanted;
    int64_t had;
    size_t place;
  };
  std::vector<Item> named;
  std::vector<Item> others;
  for (const Value& value : merged.items()) {
    if (!key.empty() && !value.contains(key)) return no_merge_key(value, key);
    const int64_t place = wanted.find_element(value);
    (place >= 0 ? named : others).push_back({value, place, had.find_element(value), named.size()});
  }
  // Of elements that are the same, the order stays.
  std::sort(named.begin(), named.end(), [](const Item& x, const Item& y) {
    return std::tie(x.wanted, x.place) < std::tie(y.wanted, y.place);
  });
  Value out = Value::array();
  out.reserve(merged.size());
  auto other = others.begin();
  for (const Item& item : named) {
    while (other != others.end() && other->had >= 0 && item.had >= 0 && other->had < item.had) {
      out.push_back((other++)->value);
    }
    out.push_back(item.value);
  }
  for (; other != others.end(); ++other) out.push_back(other->value);
  return out;
}

}  // namespace tessera::kube::strategic
