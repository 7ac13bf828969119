// Runs each tests/scenarios/*.yaml on a whole cluster in virtual time.
//
// A scenario is a fleet (sim/fleet.h) and steps, one key each:
//   pods: [{name, count, gpus, milli, mig, shared, cpu, memory, model, run-for, priority-class, labels, spec}]
//         short for Pod objects; `spec` is merged over the rest, `count` makes name-0, name-1, ...
//   apply: [object, ...]            any object as it stands
//   delete: Pod/name                also Job/, Deployment/
//   advance: 10s
//   cordon | uncordon | fail | restore: node
//   sick | well: {node, gpu}
//   expect: {pod: {phase, node, gpus, gone, why}}
//         phase and gpus (the devices, "0,1") must be equal; node is a name or a prefix with "*", "" is none; why is a part
//         of the reason why it waits; "all-distinct-nodes: [pods]" holds pods to nodes of their own.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "sim/lab_testing.h"
#include "source_dir.h"

namespace tessera::sim {
namespace {

using json::Value;

void merge(Value& into, const Value& from) {
  for (const json::Member& member : from.members()) {
    Value& slot = into.ref(member.name());
    if (member.value.is_object() && slot.is_object()) {
      merge(slot, member.value);
    } else {
      slot = member.value;
    }
  }
}

Value pod_object(const Value& line, const std::string& name) {
  Value requests =
      Value::object({{"cpu", line.contains("cpu") ? line["cpu"] : Value("100m")},
                     {"memory", line.contains("memory") ? line["memory"] : Value("64Mi")}});
  Value limits = Value::object();
  Value annotations = Value::object();
  auto number = [&](const char* key) { return fmt::format("{}", line[key].as_int()); };
  if (line.contains("gpus")) limits.set("nvidia.com/gpu", number("gpus"));
  if (line.contains("shared")) limits.set("nvidia.com/gpu.shared", number("shared"));
  if (line.contains("mig")) limits.set("nvidia.com/mig-" + line["mig"].str(), "1");
  if (line.contains("milli")) annotations.set("tessera.dev/gpu-milli", number("milli"));
  if (line.contains("model")) annotations.set("tessera.dev/gpu-model", line["model"]);
  if (line.contains("run-for")) annotations.set("tessera.dev/run-for", line["run-for"]);
  merge(annotations, line["annotations"]);
  Value spec = Value::object(
      {{"restartPolicy", "Never"},
       {"containers",
        Value::array({Value::object(
            {{"name", "main"},
             {"image", "registry.example/x:1"},
             {"resources", Value::object({{"requests", requests}, {"limits", limits}})}})})}});
  if (line.contains("priority-class")) spec.set("priorityClassName", line["priority-class"]);
  merge(spec, line["spec"]);
  Value meta = Value::object({{"name", name}, {"annotations", annotations}});
  if (line.contains("labels")) meta.set("labels", line["labels"]);
  return Value::object({{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", meta}, {"spec", spec}});
}

class Player {
 public:
  explicit Player(const Value& scenario) : lab_(scenario["fleet"].dump()) {}

  void step(const Value& step) {
    ASSERT_EQ(step.size(), 1U) << "a step has one key: " << step.dump();
    const std::string key = step.members()[0].key.str();
    const Value& what = step.members()[0].value;
    if (key == "pods") return pods(what);
    if (key == "apply") return apply(what);
    if (key == "delete") return remove(what.str());
    if (key == "advance") return advance(what);
    if (key == "cordon" || key == "uncordon") return cordon(what.str(), key == "cordon");
    if (key == "fail") return lab_.kubelets().fail_node(what.as_string());
    if (key == "restore") return lab_.kubelets().restore_node(what.as_string());
    if (key == "sick" || key == "well") {
      return lab_.kubelets().set_gpu_healthy(what["node"].as_string(),
                                             static_cast<int>(what["gpu"].as_int()), key == "well");
    }
    if (key == "expect") return expect(what);
    FAIL() << "no such step: " << key;
  }

 private:
  void pods(const Value& lines) {
    for (const Value& line : lines.items()) {
      const std::string name = line["name"].str();
      if (!line.contains("count")) {
        create(pod_object(line, name));
        continue;
      }
      for (int64_t i = 0; i < line["count"].as_int(); ++i)
        create(pod_object(line, fmt::format("{}-{}", name, i)));
    }
  }
  void apply(const Value& objects) {
    for (const Value& object : objects.items()) create(object);
  }
  void create(const Value& object) {
    const auto made = lab_.create(object);
    ASSERT_TRUE(made) << made.error().message << "\n" << object.dump();
  }
  void remove(const std::string& what) {
    const size_t slash = what.find('/');
    ASSERT_NE(slash, std::string::npos) << "delete: Kind/name";
    const auto gone = lab_.remove(what.substr(0, slash), what.substr(slash + 1));
    ASSERT_TRUE(gone) << gone.error().message;
  }
  void advance(const Value& text) {
    const auto d = base::parse_duration(text.as_string());
    ASSERT_TRUE(d) << text.dump();
    lab_.advance(*d);
  }
  void cordon(const std::string& node, bool on) {
    const Value patch =
        Value::object({{"spec", Value::object({{"unschedulable", on ? Value(true) : Value()}})}});
    ASSERT_TRUE(lab_.patch("Node", node, patch));
  }

  void expect(const Value& expected) {
    for (const json::Member& member : expected.members()) {
      const std::string name = member.key.str();
      if (name == "all-distinct-nodes") {
        distinct(member.value);
      } else {
        expect_pod(name, member.value);
      }
    }
  }
  void distinct(const Value& names) {
    std::set<std::string> nodes;
    for (const Value& name : names.items()) nodes.insert(lab_.node_of(name.str()));
    EXPECT_EQ(nodes.size(), names.size()) << names.dump();
    EXPECT_FALSE(nodes.contains("")) << names.dump();
  }
  void expect_pod(const std::string& name, const Value& want) {
    SCOPED_TRACE("pod " + name + " at " + base::to_string(lab_.loop().now()));
    const kube::Object pod = lab_.pod(name);
    if (want["gone"].as_bool()) {
      EXPECT_FALSE(pod);
      return;
    }
    ASSERT_TRUE(pod) << "no such pod";
    const std::string why = lab_.why(name);
    for (const json::Member& member : want.members()) {
      const std::string_view key = member.name();
      const std::string value = member.value.str();
      if (key == "phase") {
        EXPECT_EQ(pod.get("status", "phase").as_string(), value)
            << why << pod.get("status", "message").dump();
      } else if (key == "node") {
        const std::string node = pod.get("spec", "nodeName").str();
        const bool prefix = value.ends_with('*');
        EXPECT_EQ(prefix ? node.substr(0, value.size() - 1) + "*" : node, value) << why;
      } else if (key == "gpus") {
        EXPECT_EQ(pod.annotation("tessera.dev/gpus"), value);
      } else if (key == "why") {
        EXPECT_NE(why.find(value), std::string::npos) << "it says: " << why;
      } else {
        FAIL() << "no such expectation: " << key;
      }
    }
  }

  Lab lab_;
};

std::vector<std::string> scenario_files() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(TESSERA_SOURCE_DIR "/tests/scenarios")) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

class Scenario : public ::testing::TestWithParam<std::string> {};

TEST_P(Scenario, Ends_as_it_says) {
  const auto text = base::read_file(GetParam());
  ASSERT_TRUE(text) << text.error().message;
  const auto scenario = json::parse_yaml(*text);
  ASSERT_TRUE(scenario) << scenario.error().message;
  for (const json::Member& member : scenario->members()) {
    ASSERT_TRUE(member.name() == "what" || member.name() == "fleet" || member.name() == "steps")
        << member.name();
  }
  Player player(*scenario);
  for (size_t i = 0; i < (*scenario)["steps"].size(); ++i) {
    SCOPED_TRACE(fmt::format("step {}", i + 1));
    player.step((*scenario)["steps"].at(i));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Scenario, ::testing::ValuesIn(scenario_files()),
                         [](const auto& file) {
                           std::string name = std::filesystem::path(file.param).stem();
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tessera::sim
