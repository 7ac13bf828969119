// The scheduler's ObjectSources on the embedded API, whose definitions come, change and go for real.
#include "scheduler/object_sources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api.h"
#include "apiserver/local_client.h"
#include "base/file.h"
#include "base/loop_clock.h"
#include "json/yaml.h"
#include "source_dir.h"

namespace tessera::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const kube::Gvr kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
const kube::Gvr kGroups{"scheduling.volcano.sh", "v1beta1", "podgroups"};
const kube::Gvr kQueues{"tessera.dev", "v1alpha1", "queues"};

json::Value yaml(std::string_view text) {
  auto value = json::parse_yaml(text);
  EXPECT_TRUE(value) << (value ? "" : value.error().message) << "\n" << text;
  return value ? *value : json::Value();
}

// A definition that takes any object, the last version stored.
json::Value definition(std::string_view group, std::string_view kind, std::string_view plural,
                       std::string_view scope, const std::vector<std::string>& versions) {
  json::Value out =
      yaml(fmt::format(R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {1}.{0}}}
spec:
  group: {0}
  scope: {3}
  names: {{plural: {1}, singular: {4}, kind: {2}}}
  versions: []
)",
                       group, plural, kind, scope, plural.substr(0, plural.size() - 1)));
  for (const std::string& version : versions) {
    json::Value each = yaml(
        "{served: true, storage: false, "
        "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}");
    each.set("name", version);
    each.set("storage", version == versions.back());
    out.ref("spec", "versions").push_back(each);
  }
  return out;
}

class ObjectSourcesTest : public ::testing::Test {
 protected:
  ObjectSourcesTest() {
    apiserver::Api::Options options;
    options.clock = &clock;
    options.executor = &loop;
    auto made = apiserver::Api::open(std::move(options));
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    api = std::move(*made);
    client = std::make_unique<apiserver::LocalClient>(*api, loop, apiserver::system_caller("test"));
  }
  void start() {
    sources = std::make_unique<scheduler::ObjectSources>(
        *client, loop, base::Random(1), scheduler::ObjectSources::Options{},
        scheduler::ObjectSources::Handlers{
            [this](const kube::Object& before, const kube::Object& after) {
              const kube::Object& any = after ? after : before;
              // What every API has from its beginning is of no interest here.
              if (any.api_version() == "v1" || any.kind() == "PriorityClass") return;
              told.push_back(fmt::format("{}{}/{}/{}",
                                         !before ? "+"
                                         : after ? "~"
                                                 : "-",
                                         any.api_version(), any.kind(), any.key()));
            },
            [this] { told.emplace_back("synced"); }});
    sources->start();
    loop.advance(base::seconds(1));
  }
  std::vector<std::string> seen() { return std::exchange(told, {}); }

  kube::Reply call(kube::Request request) {
    kube::Reply out = base::error(base::Code::kTimeout, "no answer");
    client->call(std::move(request), [&out](const kube::Reply& reply) { out = reply; });
    loop.advance(base::millis(100));
    return out;
  }
  void create(const kube::Gvr& gvr, const json::Value& object) {
    kube::Request request;
    request.verb = kube::Verb::kCreate;
    request.gvr = gvr;
    request.ns = object["metadata"]["namespace"].str();
    request.body = object;
    const auto reply = call(std::move(request));
    ASSERT_TRUE(reply) << reply.error().message;
  }
  void remove(const kube::Gvr& gvr, const std::string& ns, const std::string& name) {
    kube::Request request;
    request.verb = kube::Verb::kDelete;
    request.gvr = gvr;
    request.ns = ns;
    request.name = name;
    const auto reply = call(std::move(request));
    ASSERT_TRUE(reply) << reply.error().message;
  }
  void replace_definition(const json::Value& wanted) {
    kube::Request request;
    request.verb = kube::Verb::kPatch;
    request.gvr = kDefinitions;
    request.name = wanted["metadata"]["name"].str();
    request.body.ref("spec") = wanted["spec"];
    const auto reply = call(std::move(request));
    ASSERT_TRUE(reply) << reply.error().message;
  }
  static json::Value group(std::string_view name) {
    return yaml(
        fmt::format("{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, "
                    "metadata: {{namespace: default, name: {}}}, spec: {{minMember: 2}}}}",
                    name));
  }

  base::ManualLoop loop;
  base::LoopClock clock{loop};
  std::unique_ptr<apiserver::Api> api;
  std::unique_ptr<apiserver::LocalClient> client;
  std::unique_ptr<scheduler::ObjectSources> sources;
  std::vector<std::string> told;
};

TEST_F(ObjectSourcesTest, A_Volcano_PodGroup_shows_up_after_its_definition_and_goes_with_it) {
  start();
  EXPECT_THAT(seen(), ElementsAre("synced"));
  create(kDefinitions,
         definition("scheduling.volcano.sh", "PodGroup", "podgroups", "Namespaced", {"v1beta1"}));
  loop.advance(base::seconds(1));
  create(kGroups, group("a"));
  EXPECT_THAT(seen(), ElementsAre("+scheduling.volcano.sh/v1beta1/PodGroup/default/a"));
  EXPECT_EQ(sources->version("scheduling.volcano.sh", "PodGroup"), "v1beta1");
  remove(kDefinitions, "", "podgroups.scheduling.volcano.sh");
  loop.advance(base::seconds(60));
  EXPECT_THAT(seen(), ElementsAre("-scheduling.volcano.sh/v1beta1/PodGroup/default/a"));
  EXPECT_EQ(sources->version("scheduling.volcano.sh", "PodGroup"), "");
  // The same names again.
  create(kDefinitions,
         definition("scheduling.volcano.sh", "PodGroup", "podgroups", "Namespaced", {"v1beta1"}));
  loop.advance(base::seconds(1));
  create(kGroups, group("a"));
  EXPECT_THAT(seen(), ElementsAre("+scheduling.volcano.sh/v1beta1/PodGroup/default/a"));
}

TEST_F(ObjectSourcesTest, Our_queues_are_listed_before_synced) {
  const auto text = base::read_file(TESSERA_SOURCE_DIR "/config/crd/queue.yaml");
  ASSERT_TRUE(text) << text.error().message;
  create(kDefinitions, yaml(*text));
  loop.advance(base::seconds(1));
  create(kQueues, yaml("{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: q}, "
                       "spec: {weight: 2}}"));
  start();
  EXPECT_THAT(seen(), ElementsAre("+tessera.dev/v1alpha1/Queue/q", "synced"));
  remove(kQueues, "", "q");
  EXPECT_THAT(seen(), ElementsAre("-tessera.dev/v1alpha1/Queue/q"));
}

TEST_F(ObjectSourcesTest, Objects_pass_over_to_a_version_that_their_definition_adds) {
  const kube::Gvr classes{"kueue.x-k8s.io", "v1beta1", "workloadpriorityclasses"};
  const auto defined = [&](const std::vector<std::string>& versions) {
    return definition("kueue.x-k8s.io", "WorkloadPriorityClass", "workloadpriorityclasses",
                      "Cluster", versions);
  };
  create(kDefinitions, defined({"v1beta1"}));
  loop.advance(base::seconds(1));
  create(classes, yaml("{apiVersion: kueue.x-k8s.io/v1beta1, kind: WorkloadPriorityClass, "
                       "metadata: {name: high}, value: 7}"));
  start();
  EXPECT_THAT(seen(), ElementsAre("+kueue.x-k8s.io/v1beta1/WorkloadPriorityClass/high", "synced"));
  replace_definition(defined({"v1beta2", "v1beta1"}));
  loop.advance(base::seconds(60));
  EXPECT_THAT(seen(), ElementsAre("~kueue.x-k8s.io/v1beta2/WorkloadPriorityClass/high"));
  remove(classes, "", "high");
  EXPECT_THAT(seen(), ElementsAre("-kueue.x-k8s.io/v1beta2/WorkloadPriorityClass/high"));
  loop.advance(base::seconds(600));
  EXPECT_THAT(seen(), IsEmpty());
}

}  // namespace
}  // namespace tessera::sim
