// Paths, Accept headers and bodies of API requests: whatever a client sends ends in an operation or in an error, and an
// operation speaks only of names that an object can have. Input: lines METHOD, TARGET, ACCEPT, CONTENT-TYPE, then the body.

#include <cstdint>
#include <string_view>

#include "apiserver/front_accept.h"
#include "apiserver/routes.h"
#include "apiserver/routes_body.h"
#include "base/check.h"
#include "http/uri.h"

using namespace tessera;
using namespace tessera::apiserver;

namespace {

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

void run(std::string_view text) {
  const std::string_view method = take_line(text);
  const auto target = http::parse_target(take_line(text));
  const auto accepted =
      negotiate(take_line(text), {.yaml = true, .forms = true, .discovery = true});
  TS_CHECK(accepted.has_value() || accepted.error().code == base::Code::kNotAcceptable);
  if (!target) return;
  const auto path = find_resource(Kinds::builtin(), target->segments);
  if (!path) return;
  TS_CHECK(path->kind != nullptr);
  TS_CHECK(path->name.find('/') == std::string::npos && path->ns.find('/') == std::string::npos);
  auto operation = plan_operation(*path, method, target->query);
  if (!operation) return;
  TS_CHECK(!operation->verb.empty());
  const std::string_view type = take_line(text);
  std::vector<std::string> warnings;
  const auto status = read_body({type, text}, *path->kind, operation->request, &warnings);
  if (!status) TS_CHECK(!status.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}
