// Query parameters of lists, watches and deletions of many: whatever they say, the Api answers each once, and a watch that
// begins shows only objects that the selectors of the same query select in a list. Input: a query string; a first letter
// says which kind is asked.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/api.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/executor.h"
#include "http/uri.h"
#include "json/parse.h"

using namespace tessera;
using namespace tessera::apiserver;

namespace {

constexpr size_t kBytesMax = 4096;

struct Server {
  base::ManualClock clock;
  base::ManualLoop loop;
  std::unique_ptr<Api> api;

  Server() {
    Api::Options options;
    options.clock = &clock;
    options.executor = &loop;
    auto opened = Api::open(std::move(options));
    TS_CHECK(opened.has_value());
    api = *std::move(opened);
    for (const char* text :
         {R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":{"x":"1"}}})",
          R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"},"type":"t"})"}) {
      kube::Request request;
      request.verb = kube::Verb::kCreate;
      request.gvr = kube::core_v1("secrets");
      request.ns = "default";
      request.body = *json::parse(text);
      TS_CHECK(call(request).result.has_value());
    }
  }

  ApiReply call(kube::Request request) {
    std::optional<ApiReply> reply;
    int answers = 0;
    api->call(system_caller("fuzz"), std::move(request), [&](ApiReply one) {
      reply = std::move(one);
      ++answers;
    });
    loop.run_ready();
    TS_CHECK(answers == 1);
    return *std::move(reply);
  }
};

Server& server() {
  static auto* const kServer = new Server();
  return *kServer;
}

std::set<std::string> names_of(const json::Value& list) {
  std::set<std::string> names;
  for (const json::Value& item : list["items"].items()) {
    names.insert(item.get("metadata", "name").str());
  }
  return names;
}

// What a list with the same selectors and nothing else shows.
std::set<std::string> selected(const kube::Request& asked) {
  kube::Request plain = asked;
  std::erase_if(plain.query, [](const auto& option) {
    return option.first != "labelSelector" && option.first != "fieldSelector";
  });
  const ApiReply reply = server().call(plain);
  return reply.result ? names_of(*reply.result) : std::set<std::string>();
}

void watch(const kube::Request& request) {
  std::set<std::string> seen;
  bool closed = false;
  auto watching = server().api->watch(
      system_caller("fuzz"), request,
      [&](const kube::WatchEvent& event) {
        if (event.type == kube::WatchEvent::Type::kBookmark) return;
        seen.insert(std::string(event.object.name()));
      },
      [&](const base::Status&) { closed = true; });
  server().loop.run_ready();
  if (!watching) {
    TS_CHECK(!watching.error().message.empty());
    return;
  }
  const std::set<std::string> may = selected(request);
  for (const std::string& name : seen) TS_CHECK(may.contains(name), "{}", name);
}

void run(std::string_view text) {
  if (text.empty() || text.size() > kBytesMax) return;
  const char* resources[] = {"secrets", "events", "pods", "bindings"};
  kube::Request request;
  request.verb = kube::Verb::kList;
  request.gvr = kube::core_v1(resources[static_cast<unsigned char>(text[0]) % 4]);
  if (text[0] == 'e') request.gvr.group = "events.k8s.io";
  request.ns = "default";
  const auto target = http::parse_target("/x?" + std::string(text.substr(1)));
  if (!target) return;
  request.query = target->query;
  const ApiReply listed = server().call(request);
  if (listed.result) {
    const std::set<std::string> may = selected(request);
    for (const std::string& name : names_of(*listed.result)) TS_CHECK(may.contains(name));
  } else {
    TS_CHECK(!listed.result.error().message.empty());
  }
  watch(request);
  request.verb = kube::Verb::kDeleteCollection;
  std::erase_if(request.query, [](const auto& option) { return option.first == "dryRun"; });
  request.query.emplace_back("dryRun", "All");
  server().call(request);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}
