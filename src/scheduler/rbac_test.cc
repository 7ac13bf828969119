// config/rbac/scheduler.yaml has what the scheduler asks of the API: every kind that it watches, and what it writes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "json/yaml.h"
#include "scheduler/watched_kinds.h"
#include "source_dir.h"

namespace tessera::scheduler {
namespace {

using Rights = std::set<std::string>;  // "verb resource.group", " name" where it is one object's

Rights rights_of(const json::Value& role) {
  Rights out;
  for (const json::Value& rule : role["rules"].items()) {
    for (const json::Value& group : rule["apiGroups"].items()) {
      for (const json::Value& resource : rule["resources"].items()) {
        for (const json::Value& verb : rule["verbs"].items()) {
          std::string right = fmt::format("{} {}.{}", verb.str(), resource.str(), group.str());
          for (const json::Value& name : rule["resourceNames"].items()) right += " " + name.str();
          EXPECT_TRUE(out.insert(right).second) << right << " twice";
        }
      }
    }
  }
  return out;
}

TEST(SchedulerRights, Are_those_that_it_uses) {
  const auto text = base::read_file(TESSERA_SOURCE_DIR "/config/rbac/scheduler.yaml", 1 << 20);
  ASSERT_TRUE(text) << text.error().message;
  const auto documents = json::parse_yaml_stream(*text);
  ASSERT_TRUE(documents) << documents.error().message;
  Rights everywhere, here;
  for (const json::Value& document : *documents) {
    if (document["kind"].as_string() == "ClusterRole") everywhere = rights_of(document);
    if (document["kind"].as_string() == "Role") here = rights_of(document);
  }
  Rights wanted = {"get pods.",
                   "create pods/binding.",
                   "create pods/eviction.",
                   "patch pods/status.",
                   "create events.",
                   "patch events.",
                   "update persistentvolumeclaims.",
                   "update persistentvolumes.",
                   "patch jobs.batch",
                   "patch podgroups/status.scheduling.k8s.io",
                   "patch podgroups/status.scheduling.x-k8s.io",
                   "patch podgroups/status.scheduling.volcano.sh",
                   "patch podgroups/status.scheduling.run.ai",
                   "patch queues/status.scheduling.volcano.sh",
                   "patch queues/status.scheduling.run.ai",
                   "patch queues/status.tessera.dev"};
  std::vector<std::string> watched = {"nodes.",
                                      "pods.",
                                      "persistentvolumeclaims.",
                                      "persistentvolumes.",
                                      "storageclasses.storage.k8s.io",
                                      "customresourcedefinitions.apiextensions.k8s.io"};
  for (const WatchedKind& kind : watched_kinds())
    watched.push_back(fmt::format("{}.{}", kind.resource, kind.group));
  for (const std::string& kind : watched) {
    wanted.insert("list " + kind);
    wanted.insert("watch " + kind);
  }
  EXPECT_THAT(everywhere, ::testing::ContainerEq(wanted));
  EXPECT_THAT(here, ::testing::ContainerEq(Rights{
                        "create leases.coordination.k8s.io",
                        "get leases.coordination.k8s.io tessera-scheduler",
                        "update leases.coordination.k8s.io tessera-scheduler",
                        "get configmaps. tessera-scheduler", "list configmaps. tessera-scheduler",
                        "watch configmaps. tessera-scheduler"}));
}

}  // namespace
}  // namespace tessera::scheduler
