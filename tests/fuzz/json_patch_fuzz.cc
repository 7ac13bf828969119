// Patches: the text is {"target": ..., "patch": ..., "merge": ...}. Nothing crashes; a refused patch names its operation;
// a merge patch leaves no more than RFC 7386 lets it, and a difference applied gives the other value.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "json/parse.h"
#include "json/patch.h"

using namespace tessera;

namespace {

bool has_null(const json::Value& value) {
  if (value.is_null()) return true;
  for (const json::Member& member : value.members()) {
    if (has_null(member.value)) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = json::parse({reinterpret_cast<const char*>(data), size});
  if (!input) return 0;
  const json::Value target = (*input)["target"];
  const json::Value& patch = (*input)["patch"];
  const json::Value& merge = (*input)["merge"];
  const std::string before = target.dump();

  const auto patched = json::apply_json_patch(target, patch);
  if (!patched) {
    const std::string& message = patched.error().message;
    TS_CHECK(message.starts_with("operation ") || !patch.is_array() || patch.size() > 10'000, "{}",
             message);
  }
  const json::Value merged = json::apply_merge_patch(target, merge);
  TS_CHECK(json::apply_merge_patch(merged, merge) == merged);
  TS_CHECK(target.dump() == before);
  if (!has_null(merge)) {
    const json::Value difference = json::diff_merge_patch(target, merge);
    TS_CHECK(json::apply_merge_patch(target, difference) == merge, "{}", difference.dump());
  }
  return 0;
}
