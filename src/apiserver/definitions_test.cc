#include "apiserver/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "apiserver/api_fixture.h"
#include "apiserver/crd_fixture.h"
#include "apiserver/local_client.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::HasSubstr;

constexpr const char* kCrds = "customresourcedefinitions.apiextensions.k8s.io";
constexpr const char* kVolcano = "podgroups.scheduling.volcano.sh";

// Answers the first calls with an error, as a server that is not ready yet.
class Shy : public kube::Client {
 public:
  Shy(kube::Client& inner, base::Executor& executor, int refusals, Code code)
      : inner_(inner), executor_(executor), refusals_(refusals), code_(code) {}
  void call(kube::Request request, std::function<void(kube::Reply)> done) override {
    ++calls;
    if (refusals_-- <= 0) return inner_.call(std::move(request), std::move(done));
    executor_.post([done = std::move(done), code = code_] {
      done(base::error(base::Error{code, "not now", {}}));
    });
  }
  std::unique_ptr<base::Subscription> watch(kube::Request, std::function<void(kube::WatchEvent)>,
                                            std::function<void(base::Status)>) override {
    return nullptr;
  }
  int calls = 0;

 private:
  kube::Client& inner_;
  base::Executor& executor_;
  int refusals_;
  Code code_;
};

class Definitions : public ::testing::Test {
 protected:
  base::Status install(std::vector<Definition> definitions, kube::Client* through = nullptr) {
    std::optional<base::Status> out;
    install_definitions(through != nullptr ? *through : client, api.loop(), std::move(definitions),
                        [&](const base::Status& status) { out = status; });
    api.advance(base::seconds(20));
    EXPECT_TRUE(out) << "no answer";
    return out.value_or(base::Status{});
  }
  std::string versions() {
    std::string out;
    const auto list = api.list(kCrds, "");
    for (const Value& item : (*list)["items"].items()) {
      out += item["metadata"]["name"].str() + "@" + item["metadata"]["resourceVersion"].str() + " ";
    }
    return out;
  }

  TestApi api;
  LocalClient client{*api, api.loop(), system_caller("installer")};
};

TEST_F(Definitions, All_of_them_are_served_and_a_second_time_nothing_is_written) {
  const auto& all = builtin_definitions();
  EXPECT_EQ(all.size(), 7u);
  const base::Status done = install(all);
  ASSERT_TRUE(done) << done.error().message;
  for (const auto& [group, version, plural] :
       {std::tuple{"tessera.dev", "v1alpha1", "queues"},
        std::tuple{"tessera.dev", "v1alpha1", "reservations"},
        std::tuple{"scheduling.volcano.sh", "v1beta1", "podgroups"},
        std::tuple{"scheduling.volcano.sh", "v1beta1", "queues"},
        std::tuple{"scheduling.x-k8s.io", "v1alpha1", "podgroups"},
        std::tuple{"scheduling.run.ai", "v2", "queues"},
        std::tuple{"scheduling.run.ai", "v2alpha2", "podgroups"}}) {
    kube::Request request;
    request.verb = kube::Verb::kList;
    request.gvr = {group, version, plural};
    EXPECT_TRUE(api.reply(std::move(request)).result) << plural << "." << group;
  }
  const std::string before = versions();
  ASSERT_TRUE(install(all));
  EXPECT_EQ(versions(), before);
}

TEST_F(Definitions, An_older_one_of_ours_is_brought_up_to_date) {
  const auto& all = builtin_definitions();
  const auto ours = std::ranges::find(all, "queue.yaml", &Definition::file);
  ASSERT_NE(ours, all.end());
  Value older = yaml_of(ours->text);
  older.ref("spec").ref("versions").ref_at(0).set("additionalPrinterColumns", Value::array());
  older.ref("spec").ref("names").set("shortNames", Value::array({"old"}));
  const std::string text = older.dump();
  ASSERT_TRUE(install({{"queue.yaml", text}}));
  ASSERT_TRUE(install({*ours}));
  const auto now = api.get(kCrds, "", "queues.tessera.dev");
  ASSERT_TRUE(now);
  EXPECT_EQ((*now)["spec"]["names"]["shortNames"].dump(), R"(["tq"])");
  EXPECT_EQ((*now)["spec"]["versions"].at(0)["additionalPrinterColumns"].size(), 9u);
}

TEST_F(Definitions, What_others_have_defined_stays_as_it_is) {
  Value theirs = widget_definition();
  theirs.ref("metadata").set("name", kVolcano);
  theirs.ref("spec").set("group", "scheduling.volcano.sh");
  theirs.ref("spec").set(
      "names", yaml_of("{plural: podgroups, singular: podgroup, kind: PodGroup, listKind: PGs}"));
  ASSERT_TRUE(api.create(kCrds, theirs));
  const auto before = api.get(kCrds, "", kVolcano);
  ASSERT_TRUE(install(builtin_definitions()));
  EXPECT_EQ(api.get(kCrds, "", kVolcano)->dump(), before->dump());
}

TEST_F(Definitions, A_bad_one_is_told_by_its_file_and_the_others_are_there) {
  std::vector<Definition> all = builtin_definitions();
  all.insert(all.begin(), {"broken.yaml", "{spec: ["});
  all.insert(all.begin(), {"wrong.yaml",
                           "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, "
                           "metadata: {name: x.tessera.dev}, spec: {group: tessera.dev}}"});
  const base::Status done = install(all);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("broken.yaml"));
  EXPECT_EQ((*api.list(kCrds, ""))["items"].size(), 7u);
}

TEST_F(Definitions, What_may_pass_is_tried_again_and_what_may_not_is_told) {
  Shy shy(client, api.loop(), 9, Code::kUnavailable);
  const base::Status done = install(builtin_definitions(), &shy);
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ((*api.list(kCrds, ""))["items"].size(), 7u);
  Shy closed(client, api.loop(), 1000000, Code::kUnavailable);
  EXPECT_EQ(install(builtin_definitions(), &closed).error().code, Code::kUnavailable);
  EXPECT_LT(closed.calls, 7 * 40);
  Shy strict(client, api.loop(), 1000000, Code::kForbidden);
  const base::Status refused = install(builtin_definitions(), &strict);
  ASSERT_FALSE(refused);
  EXPECT_EQ(strict.calls, 7);
  EXPECT_THAT(refused.error().message, HasSubstr("definition kai_podgroup.yaml: not now"));
}

TEST_F(Definitions, A_name_that_is_taken_is_told_in_the_end) {
  Value theirs = widget_definition();
  theirs.ref("metadata").set("name", "claims.tessera.dev");
  theirs.ref("spec").set("group", "tessera.dev");
  theirs.ref("spec").set("names",
                         yaml_of("{plural: claims, singular: queue, kind: Claim, listKind: Cs}"));
  ASSERT_TRUE(api.create(kCrds, theirs));
  api.advance(base::seconds(1));
  const base::Status done = install(builtin_definitions());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message,
            "definition queue.yaml: queues.tessera.dev is not served: see its conditions");
}

TEST(BuiltinDefinitions, None_ends_at_once) {
  TestApi api;
  LocalClient client(*api, api.loop(), system_caller("installer"));
  bool ended = false;
  install_definitions(client, api.loop(), {}, [&](const base::Status& s) { ended = bool(s); });
  api.loop().run_ready();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace tessera::apiserver
