// Input: a JSON list of writes [{apply: bool, object, manager, force, fields}] to one Deployment; `fields`, where given,
// are managedFields that the writer sends. Applying the same once more changes nothing, and a list that was written reads
// back as it is.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "json/parse.h"
#include "kube/apply.h"

namespace {

using namespace tessera;
using json::Value;

const Value& fields_of(const Value& object) {
  return object["metadata"]["managedFields"];
}

Value with_fields(Value object, const Value& fields) {
  if (fields.is_null()) {
    if (object["metadata"].is_object()) object.ref("metadata").erase("managedFields");
  } else {
    object.ref("metadata", "managedFields") = fields;
  }
  return object;
}

void check_list(const Value& list) {
  auto owners = kube::FieldOwners::read(list, false);
  TS_CHECK(owners && owners->encode() == list, "a written list does not read back");
}

Value write(const kube::OwnershipRules& rules, const Value& live, const Value& input, int64_t n) {
  const kube::FieldWriter writer{input["manager"].as_string(), {}, base::Time{n * 1'000'000'000}};
  std::vector<std::string> unknown;
  if (input["apply"].as_bool()) {
    auto out = kube::apply(rules, live, input["object"], writer, input["force"].as_bool());
    if (!out) {
      TS_CHECK(!out.error().message.empty(), "an error without a message");
      return live;
    }
    check_list(fields_of(*out));
    // As a server stores it: the library leaves null where all of a map was taken away.
    const auto normal = kube::normalize(*rules.type, *out, &unknown);
    if (!normal) return live;
    const auto again = kube::apply(rules, *normal, input["object"], writer, true);
    TS_CHECK(again, "what was applied once cannot be applied again");
    const auto same = kube::normalize(*rules.type, *again, &unknown);
    TS_CHECK(same && with_fields(*same, {}) == with_fields(*normal, {}),
             "applying twice changes the object");
    return *normal;
  }
  auto after = kube::normalize(*rules.type, with_fields(input["object"], {}), &unknown);
  if (!after) return live;
  Value object = with_fields(*after, input["fields"]);
  Value list = kube::track_update(rules, live, object, writer);
  check_list(list);
  return with_fields(std::move(object), list);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto input = json::parse({reinterpret_cast<const char*>(data), size});
  if (!input) return 0;
  kube::OwnershipRules rules;
  rules.type = kube::find_kind_schema("apps", "v1", "Deployment");
  rules.api_version = "apps/v1";
  rules.kind = "Deployment";
  rules.reset = &kube::reset_fields("Deployment", true, false, "");
  Value live;
  int64_t n = 0;
  for (const Value& each : input->items()) {
    if (++n > 16) break;
    live = write(rules, live, each, n);
  }
  return 0;
}
