// JSON Patch, JSON Merge Patch and JSON Pointer.
//
// Errors:  kBadRequest (not a patch; an unknown op; a pointer that does not parse), kInvalid (a well-formed patch that does
//          not apply: missing path, failed test), with the operation's index and path. Patches that copy without end are
//          stopped by a budget (kTooLarge).
// Threads: pure.
// Source:  RFC 6902, RFC 7386, RFC 6901.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace tessera::json {

// "/a~1b/0" -> {"a/b", "0"}.
base::Result<std::vector<std::string>> parse_pointer(std::string_view pointer);
// The value there, or null where nothing is.
const Value* resolve_pointer(const Value& root, const std::vector<std::string>& path);

base::Result<Value> apply_json_patch(const Value& target, const Value& patch);
Value apply_merge_patch(const Value& target, const Value& patch);
// The merge patch that makes `to` of `from`.
Value diff_merge_patch(const Value& from, const Value& to);

}  // namespace tessera::json
