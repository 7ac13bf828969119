// Input: a JSON list [target, patch]. Both are merged as a pod; what comes out is normalised, and a
// second normalisation changes nothing.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "json/parse.h"
#include "kube/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  auto input = json::parse({reinterpret_cast<const char*>(data), size});
  if (!input) return 0;
  const kube::SchemaType& pod = *kube::find_kind_schema("", "v1", "Pod");
  auto merged = kube::apply_strategic_merge(pod, input->at(0), input->at(1));
  if (!merged) {
    TS_CHECK(!merged.error().message.empty(), "an error without a message");
    return 0;
  }
  std::vector<std::string> unknown;
  auto normal = kube::normalize(pod, *merged, &unknown);
  if (!normal) return 0;
  unknown.clear();
  auto again = kube::normalize(pod, *normal, &unknown);
  TS_CHECK(again && *again == *normal && unknown.empty(), "normalize is not idempotent");
  return 0;
}
