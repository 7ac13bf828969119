// Values and errors as Go prints them, where Kubernetes shows them in its messages.
//
// Errors:  none.
// Threads: pure.
// Source:  Go's fmt (%v of decoded JSON) and time.Parse.
#pragma once

#include <string>
#include <string_view>

#include "json/value.h"

namespace tessera::kube {

// map[a:1 b:[x y]], with keys in order.
std::string go_text(const json::Value& value);

// string, map[string]interface {}, ...: the type that Go decodes the value to.
std::string_view go_type(const json::Value& value);

// Whether Go takes a text that parse_rfc3339 takes: the day is one of the month, and a MicroTime has six digits behind the
// point.
bool is_go_time(std::string_view text, bool micro);

// Why `text` is no time of metav1.Time (RFC 3339), or of metav1.MicroTime: parsing time "x" as "2006-...": cannot parse ...
std::string go_time_error(std::string_view text, bool micro);

}  // namespace tessera::kube
