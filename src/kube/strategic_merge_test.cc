#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "json/parse.h"
#include "json/patch.h"
#include "kube/schema.h"
#include "source_dir.h"

namespace tessera::kube {
namespace {

using json::Value;
using testing::HasSubstr;

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : Value();
}

const SchemaType& pod_spec() {
  return *find_schema("io.k8s.api.core.v1.PodSpec");
}

base::Result<Value> merge(const SchemaType& type, std::string_view target, std::string_view patch) {
  return apply_strategic_merge(type, parsed(target), parsed(patch));
}

struct Case {
  const char* what;
  const char* type;
  const char* target;
  const char* patch;
  const char* result;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.what;
}

constexpr const char* kSpec = "io.k8s.api.core.v1.PodSpec";
constexpr const char* kContainer = "io.k8s.api.core.v1.Container";
constexpr const char* kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
constexpr const char* kDeployment = "io.k8s.api.apps.v1.DeploymentSpec";

const Case kCases[] = {
    {"containers join by name", kSpec, R"({"containers":[{"name":"a","image":"1"},{"name":"b"}]})",
     R"({"containers":[{"name":"a","image":"2"}]})",
     R"({"containers":[{"image":"2","name":"a"},{"name":"b"}]})"},
    {"a new container stands first", kSpec, R"({"containers":[{"name":"a"},{"name":"b"}]})",
     R"({"containers":[{"name":"c","image":null}]})",
     R"({"containers":[{"name":"c"},{"name":"a"},{"name":"b"}]})"},
    {"an order puts it elsewhere", kSpec, R"({"containers":[{"name":"a"},{"name":"b"}]})",
     R"({"$setElementOrder/containers":[{"name":"a"},{"name":"b"},{"name":"c"}],
         "containers":[{"name":"c"}]})",
     R"({"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]})"},
    {"an order alone sorts", kSpec, R"({"containers":[{"name":"a"},{"name":"b"},{"name":"x"}]})",
     R"({"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]})",
     R"({"containers":[{"name":"b"},{"name":"a"},{"name":"x"}]})"},
    {"what only the server has keeps its place", kSpec,
     R"({"containers":[{"name":"s"},{"name":"a"},{"name":"b"}]})",
     R"({"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]})",
     R"({"containers":[{"name":"s"},{"name":"b"},{"name":"a"}]})"},
    {"an element is deleted", kSpec, R"({"containers":[{"name":"a"},{"name":"b"}]})",
     R"({"containers":[{"name":"a","$patch":"delete"}]})", R"({"containers":[{"name":"b"}]})"},
    {"the list is replaced", kSpec, R"({"containers":[{"name":"a"},{"name":"b"}]})",
     R"({"containers":[{"$patch":"replace"},{"name":"c"}]})", R"({"containers":[{"name":"c"}]})"},
    {"tolerations are replaced as a whole", kSpec, R"({"tolerations":[{"key":"a"},{"key":"b"}]})",
     R"({"tolerations":[{"key":"c"}]})", R"({"tolerations":[{"key":"c"}]})"},
    {"env joins by name and null deletes a member", kContainer,
     R"({"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]})",
     R"({"env":[{"name":"B","value":null,"valueFrom":{"fieldRef":{"fieldPath":"x"}}}]})",
     R"({"env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"x"}}}]})"},
    {"ports join by containerPort alone", kContainer,
     R"({"ports":[{"containerPort":53,"protocol":"UDP"},{"containerPort":80}]})",
     R"({"ports":[{"containerPort":53,"name":"dns"}]})",
     R"({"ports":[{"containerPort":53,"name":"dns","protocol":"UDP"},{"containerPort":80}]})"},
    {"command lines are replaced", kContainer, R"({"command":["a","b"]})", R"({"command":["c"]})",
     R"({"command":["c"]})"},
    {"finalizers are a union", kMeta, R"({"finalizers":["a","b"]})", R"({"finalizers":["b","c"]})",
     R"({"finalizers":["a","b","c"]})"},
    {"finalizers are taken out", kMeta, R"({"finalizers":["a","b"]})",
     R"({"$deleteFromPrimitiveList/finalizers":["a","z"]})", R"({"finalizers":["b"]})"},
    {"finalizers with order and deletion", kMeta, R"({"finalizers":["a","b","s"]})",
     R"({"$setElementOrder/finalizers":["c","b"],"$deleteFromPrimitiveList/finalizers":["a"],
         "finalizers":["c"]})",
     R"({"finalizers":["c","b","s"]})"},
    {"owners join by uid", kMeta, R"({"ownerReferences":[{"uid":"1","name":"a"}]})",
     R"({"ownerReferences":[{"uid":"1","controller":true}]})",
     R"({"ownerReferences":[{"controller":true,"name":"a","uid":"1"}]})"},
    {"labels merge and null removes one", kMeta, R"({"labels":{"a":"1","b":"2"}})",
     R"({"labels":{"a":null,"c":"3"}})", R"({"labels":{"b":"2","c":"3"}})"},
    {"a map is replaced", kMeta, R"({"labels":{"a":"1"}})",
     R"({"labels":{"$patch":"replace","c":"3"}})", R"({"labels":{"c":"3"}})"},
    {"a map is emptied", kMeta, R"({"labels":{"a":"1"}})", R"({"labels":{"$patch":"delete"}})",
     R"({"labels":{}})"},
    {"a volume changes its kind", kSpec, R"({"volumes":[{"name":"v","emptyDir":{}}]})",
     R"({"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}]})",
     R"({"volumes":[{"hostPath":{"path":"/x"},"name":"v"}]})"},
    {"a strategy changes its kind", kDeployment,
     R"({"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}})",
     R"({"strategy":{"$retainKeys":["type"],"type":"Recreate"}})",
     R"({"strategy":{"type":"Recreate"}})"},
    {"directives go where nothing was", kSpec, R"({})",
     R"({"volumes":[{"name":"v","$retainKeys":["name"]},{"name":"w","$patch":"delete"}],
         "affinity":{"nodeAffinity":null,"podAffinity":{}},"nodeSelector":{"$patch":"replace","a":"b"}})",
     R"({"affinity":{"podAffinity":{}},"nodeSelector":{"a":"b"},"volumes":[{"name":"v"}]})"},
    {"null deletes", kSpec, R"({"nodeName":"n","hostname":"h"})", R"({"nodeName":null})",
     R"({"hostname":"h"})"},
    {"a field of another type is replaced", kSpec, R"({"nodeName":"n"})", R"({"nodeName":{"a":1}})",
     R"({"nodeName":{"a":1}})"},
    {"unknown fields merge plainly", kSpec, R"({"x":{"a":1},"l":[1]})", R"({"x":{"b":2},"l":[2]})",
     R"({"l":[2],"x":{"a":1,"b":2}})"},
};

class StrategicMerge : public testing::TestWithParam<Case> {};

TEST_P(StrategicMerge, GivesWhatKubernetesGives) {
  const Case& c = GetParam();
  auto out = merge(*find_schema(c.type), c.target, c.patch);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->dump(), parsed(c.result).dump());
}

INSTANTIATE_TEST_SUITE_P(Cases, StrategicMerge, testing::ValuesIn(kCases));

// Splits at line ends; lines that begin with # are left out.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0 && text[0] != '#') out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

TEST(StrategicMergeGolden, RandomPatchesGiveWhatTheLibraryOfKubernetesGives) {
  auto text = base::read_file(std::string(TESSERA_SOURCE_DIR) +
                              "/src/kube/testdata/strategic_merge.golden");
  ASSERT_TRUE(text) << text.error().message;
  const SchemaType& pod = *find_kind_schema("", "v1", "Pod");
  const auto lines = lines_of(*text);
  ASSERT_GE(lines.size(), 100U);
  for (const std::string& line : lines) {
    const Value golden = parsed(line);
    auto merged = apply_strategic_merge(pod, golden.at(0), golden.at(1));
    ASSERT_TRUE(merged) << merged.error().message << "\n" << line;
    auto got = normalize(pod, *merged, nullptr);
    auto wanted = normalize(pod, golden.at(2), nullptr);
    ASSERT_TRUE(got && wanted) << line;
    EXPECT_EQ(got->dump(), wanted->dump()) << line;
  }
}

TEST(StrategicMergeErrors, NameWhatIsWrong) {
  const struct {
    const char* target;
    const char* patch;
    const char* message;
  } cases[] = {
      {R"({"containers":[{"name":"a"}]})", R"({"containers":[{"image":"x"}]})",
       "does not contain declared merge key: name"},
      {R"({"containers":[{"name":"a"}]})", R"({"containers":[{"$patch":"delete"}]})",
       "does not contain declared merge key: name"},
      {R"({"containers":[{"name":"a"}]})", R"({"containers":["x"]})",
       "list element types are not identical: [[map[name:a]] [x]]"},
      {R"({})", R"({"affinity":{},"$patch":"x"})",
       "unknown patch type: x in map: map[$patch:x affinity:map[]]"},
      {R"({"volumes":[{"name":"v"}]})",
       R"({"volumes":[{"name":"v","$retainKeys":["name"],"emptyDir":{}}]})",
       "invalid patch format of retainKeys"},
      {R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"({"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],
           "containers":[{"name":"b"},{"name":"a"}]})",
       "doesn't match $setElementOrder list:\n[map[name:a] map[name:b]]"},
      {R"({"containers":[{"name":"a"}]})", R"({"$setElementOrder/containers":"a"})",
       "expected a []interface {}, but received a string"},
      {R"({})", R"([])", "must be an object"},
  };
  for (const auto& c : cases) {
    auto out = merge(pod_spec(), c.target, c.patch);
    ASSERT_FALSE(out) << c.patch;
    EXPECT_THAT(out.error().message, HasSubstr(c.message));
  }
}

// Random pod specs: containers of a few names, labels, scalars.
Value random_spec(base::Random& random) {
  Value spec = Value::object();
  Value containers = Value::array();
  for (const char* name : {"a", "b", "c", "d"}) {
    if (random.below(2) == 0) continue;
    Value container = Value::object({{"name", name}});
    if (random.below(2) == 0) container.set("image", fmt::format("i{}", random.below(3)));
    containers.push_back(std::move(container));
  }
  if (!containers.empty()) spec.set("containers", std::move(containers));
  for (const char* key : {"x", "y"}) {
    if (random.below(2) == 0) spec.ref("nodeSelector").set(key, fmt::format("{}", random.below(3)));
  }
  if (random.below(2) == 0) spec.set("hostname", fmt::format("h{}", random.below(3)));
  return spec;
}

TEST(StrategicMergeProperties, ApplyingTwiceIsApplyingOnceAndAnEmptyPatchChangesNothing) {
  base::Random random(7);
  for (int i = 0; i < 500; ++i) {
    const Value target = random_spec(random);
    const Value patch = random_spec(random);
    auto once = apply_strategic_merge(pod_spec(), target, patch);
    ASSERT_TRUE(once);
    auto twice = apply_strategic_merge(pod_spec(), *once, patch);
    ASSERT_TRUE(twice);
    EXPECT_EQ(once->dump(), twice->dump());
    auto same = apply_strategic_merge(pod_spec(), target, Value::object());
    ASSERT_TRUE(same);
    EXPECT_TRUE(same->same_node(target));
  }
}

TEST(StrategicMergeProperties, WithoutMergedListsItIsAMergePatch) {
  base::Random random(8);
  for (int i = 0; i < 500; ++i) {
    Value target = random_spec(random);
    Value patch = random_spec(random);
    target.erase("containers");
    patch.erase("containers");
    if (random.below(2) == 0) patch.set("hostname", nullptr);
    auto out = apply_strategic_merge(pod_spec(), target, patch);
    ASSERT_TRUE(out);
    EXPECT_EQ(out->dump(), json::apply_merge_patch(target, patch).dump());
  }
}

}  // namespace
}  // namespace tessera::kube
