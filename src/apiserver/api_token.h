// The numbers and tokens in the options of lists and watches.
//
// Errors:  kBadRequest naming the parameter; kInvalid where Kubernetes forbids a combination.
// Threads: pure.
// Source:  Kubernetes API concepts (resourceVersion, resourceVersionMatch, chunks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/client.h"

namespace tessera::apiserver {

// An option that is a whole number; nothing where it is missing.
base::Result<std::optional<int64_t>> read_integer(const kube::Request& request,
                                                  std::string_view option);
// The same, and what is below 0 is 0.
base::Result<std::optional<uint64_t>> read_number(const kube::Request& request,
                                                  std::string_view option);
// The resourceVersion of a get or watch.
base::Result<std::optional<uint64_t>> read_version(const kube::Request& request);
// Combinations of options that Kubernetes forbids.
base::Status check_list_options(const kube::Request& request);
base::Status check_watch_options(const kube::Request& request);
// "true", "1", "" and so on; a missing option is false.
bool read_flag(const kube::Request& request, std::string_view option);
// Whether a watch begins with the objects that are there.
bool asks_initial_events(const kube::Request& request);

// Where the next page goes on: base64url of {"v":"meta.k8s.io/v1","rv":N,"start":KEY,"rest":M}.
struct ContinueToken {
  uint64_t revision = 0;
  std::string last_key;
  int64_t rest = 0;  // how many items are still to come; 0: not known
  // The moment is no longer kept: goes on at the same place with what is there now. Its revision is -1 in the text.
  bool moment_lost = false;
  std::string text() const;
  static base::Result<ContinueToken> parse(std::string_view text);
};

// The field of a cause of kExpired that brings the token to go on with, for metadata.continue of the Status.
inline constexpr std::string_view kContinueField = "metadata.continue";

// Which version of the data a list shows; both 0: the newest.
struct ListVersion {
  uint64_t exact = 0;
  uint64_t at_least = 0;
  static base::Result<ListVersion> parse(const kube::Request& request);
};

// kTimeout, as Kubernetes answers for a version that has not come yet.
base::Status check_not_ahead(uint64_t wanted, uint64_t current);

}  // namespace tessera::apiserver
