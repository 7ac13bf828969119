// Whatever a client sends, it gets one answer, and the server goes on.
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"
#include "base/random.h"

namespace tessera::apiserver {
namespace {

using json::Value;

const char* const kResources[] = {"pods",
                                  "namespaces",
                                  "nodes",
                                  "services",
                                  "configmaps",
                                  "secrets",
                                  "events",
                                  "deployments.apps",
                                  "replicasets.apps",
                                  "jobs.batch",
                                  "priorityclasses.scheduling.k8s.io",
                                  "leases.coordination.k8s.io"};
const char* const kSubresources[] = {"",      "",         "",        "status",
                                     "scale", "eviction", "binding", "finalize"};
const char* const kOptions[] = {"labelSelector",
                                "fieldSelector",
                                "limit",
                                "continue",
                                "resourceVersion",
                                "resourceVersionMatch",
                                "dryRun",
                                "fieldValidation",
                                "propagationPolicy",
                                "gracePeriodSeconds",
                                "sendInitialEvents",
                                "timeoutSeconds",
                                "allowWatchBookmarks"};

std::string odd_text(base::Random& random) {
  const char* const kTexts[] = {"",
                                "0",
                                "-1",
                                "18446744073709551616",
                                "All",
                                "true",
                                "a=b",
                                "a in",
                                "!",
                                "metadata.name=x",
                                "Exact",
                                "Strict",
                                "../x",
                                "\xc3",
                                "NotOlderThan",
                                "Foreground",
                                "==,=",
                                "eyJ2Ijoi"};
  if (random.chance(0.05)) return std::string(5000, 'x');
  return kTexts[random.below(std::size(kTexts))];
}

Value odd_value(base::Random& random) {
  switch (random.below(8)) {
    case 0:
      return {};
    case 1:
      return Value(true);
    case 2:
      return Value(INT64_MIN);
    case 3:
      return Value(1e300);
    case 4:
      return Value::array({Value(1), Value::array()});
    case 5:
      return Value::object({{"a", Value()}, {"$patch", "delete"}});
    default:
      return Value(odd_text(random));
  }
}

// Changes one place of the value.
void spoil(Value& value, base::Random& random) {
  if (value.is_object() && !value.empty() && random.chance(0.85)) {
    const std::string key(value.members()[random.below(value.size())].name());
    return spoil(value.ref(key), random);
  }
  if (value.is_array() && !value.empty() && random.chance(0.85)) {
    return spoil(value.ref_at(random.below(value.size())), random);
  }
  if (value.is_object() && random.chance(0.5)) {
    value.set(odd_text(random), odd_value(random));
  } else {
    value = odd_value(random);
  }
}

Value some_body(base::Random& random) {
  const char* const kBodies[] = {
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"default",
        "labels":{"a":"b"},"finalizers":["example.com/x"],"ownerReferences":[{"apiVersion":"v1",
        "kind":"Node","name":"n","uid":"u"}]},"spec":{"nodeName":"n1","tolerations":[{"key":"k"}],
        "containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1"}}}]},
        "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})",
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"type":"NodePort",
        "clusterIP":"10.96.0.9","ports":[{"port":80,"nodePort":30001}]}})",
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"replicas":1,
        "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
        "spec":{"containers":[{"name":"c","image":"i"}]}}}})",
      R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"x","annotations":{"a":"b"}},
        "target":{"kind":"Node","name":"n1"}})",
      R"({"kind":"Scale","spec":{"replicas":2},"metadata":{"resourceVersion":"1"}})",
      R"({"kind":"Eviction","apiVersion":"policy/v1","deleteOptions":{"gracePeriodSeconds":1}})",
      R"({"preconditions":{"uid":"u"},"propagationPolicy":"Orphan","dryRun":["All"]})",
      R"([{"op":"add","path":"/metadata/labels","value":{"a":"b"}},
        {"op":"copy","from":"/spec","path":"/status"}])",
      R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"x"},"involvedObject":{},
        "lastTimestamp":"2026-01-01T00:00:00Z","series":{"count":1}})"};
  Value body = TestApi::parse(kBodies[random.below(std::size(kBodies))]);
  for (uint64_t i = random.below(4); i > 0; --i) spoil(body, random);
  return body;
}

kube::Request some_request(base::Random& random) {
  auto request = TestApi::request(static_cast<kube::Verb>(random.below(7)),
                                  kResources[random.below(std::size(kResources))],
                                  random.chance(0.8) ? "default" : odd_text(random),
                                  random.chance(0.8) ? "x" : odd_text(random), some_body(random));
  request.subresource = kSubresources[random.below(std::size(kSubresources))];
  request.patch_type = static_cast<kube::PatchType>(random.below(4));
  for (uint64_t i = random.below(3); i > 0; --i) {
    request.query.emplace_back(kOptions[random.below(std::size(kOptions))], odd_text(random));
  }
  const bool cluster_wide = request.gvr.resource == "nodes" ||
                            request.gvr.resource == "namespaces" ||
                            request.gvr.resource == "priorityclasses";
  if (cluster_wide && random.chance(0.9)) request.ns.clear();
  return request;
}

TEST(ApiHostile, Every_request_gets_one_answer_and_the_server_goes_on) {
  base::Random random(7);
  for (int round = 0; round < 20; ++round) {
    TestApi api;
    std::vector<std::unique_ptr<base::Subscription>> watches;
    int answers = 0;
    for (int i = 0; i < 500; ++i) {
      kube::Request request = some_request(random);
      if (random.chance(0.05)) {
        auto watch = api->watch(
            system_caller("test"), request, [](const kube::WatchEvent&) {},
            [](const base::Status&) {});
        if (watch) watches.push_back(std::move(*watch));
      }
      api->call(system_caller("test"), std::move(request), [&](const ApiReply& reply) {
        ++answers;
        EXPECT_TRUE(reply.result || !reply.result.error().message.empty());
      });
      if (random.chance(0.3)) api.loop().run_ready();
    }
    api.advance(base::seconds(100));
    EXPECT_EQ(answers, 500);
    ASSERT_TRUE(api.create("configmaps", TestApi::config_map("fine", "1", "kube-system")));
  }
}

}  // namespace
}  // namespace tessera::apiserver
