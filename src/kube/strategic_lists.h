// List steps of the strategic merge patch: elements are the same when their merge key is (or,
// without a key, when they are equal).
//
// Errors:  kBadRequest naming the key that an element lacks.
// Source:  k8s.io/apimachinery/pkg/util/strategicpatch v0.36.3.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "json/value.h"

namespace tessera::kube::strategic {

// Where the first element with a key value stands.
class Index {
 public:
  Index(const json::Value& list, std::string_view key);
  int64_t find(const json::Value& key_value) const;
  int64_t find_element(const json::Value& element) const;
  // The next element of the list has this key value.
  void add(const json::Value& key_value);

 private:
  std::string_view key_;
  int64_t size_ = 0;
  std::unordered_map<std::string, int64_t> at_;
};

base::Result<bool> elements_are_objects(const json::Value& a, const json::Value& b);
tl::unexpected<base::Error> no_merge_key(const json::Value& element, std::string_view key);
void erase_matching(json::Value& list, std::string_view key, const json::Value& key_value);
// Scalars of `more` that `list` lacks go to its end, none twice.
void add_missing(const json::Value& more, json::Value& list);
json::Value without(const json::Value& list, const json::Value& gone);

// That the elements of `change` stand in the order that `order` gives.
base::Status check_order(const json::Value& change, const json::Value& order, std::string_view key);
// The order in which the server's elements count when an order is given. Kubernetes' library deletes and appends in the
// array that it then takes the server's order from, so that elements added by a patch take the places of those that it
// deletes; what users see follows from that, and so do we.
json::Value server_order(const json::Value& before, const json::Value& change,
                         std::string_view key);

// `merged` with the elements that `order` names in that order, and the others merged in between as
// `server` has them.
base::Result<json::Value> in_order(const json::Value& merged, const json::Value& order,
                                   const json::Value& server, std::string_view key);

}  // namespace tessera::kube::strategic
