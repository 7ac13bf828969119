#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "json/parse.h"
#include "kube/apply.h"
#include "source_dir.h"

namespace tessera::kube {
namespace {

using json::Value;

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << text.substr(0, 200);
  return value ? *value : Value();
}

Value normal(const SchemaType& type, const Value& value) {
  std::vector<std::string> unknown;
  auto out = normalize(type, value, &unknown);
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? *out : Value();
}

// The Go type writes a number for a port that was not given (servers fill it in before).
void fill_target_ports(Value& object) {
  const Value ports = object["spec"]["ports"];
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports.at(i).contains("targetPort")) continue;
    object.ref("spec", "ports").ref_at(i).set("targetPort", 0);
  }
}

// The library names several errors in the order of a hash map.
std::vector<std::string> sorted_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Replays one sequence of writes and compares each result.
class Replay {
 public:
  explicit Replay(std::string_view name) : name_(name) {
    const size_t last = name.rfind('/');
    kind_ = name.substr(last + 1);
    api_version_ = name.substr(0, last);
    const size_t slash = api_version_.find('/');
    type_ = slash == std::string::npos ? find_kind_schema("", api_version_, kind_)
                                       : find_kind_schema(api_version_.substr(0, slash),
                                                          api_version_.substr(slash + 1), kind_);
  }

  void step(const Value& step, size_t n) {
    SCOPED_TRACE(name_ + " step " + std::to_string(n) + ": " + step.dump());
    OwnershipRules rules;
    rules.type = type_;
    rules.api_version = api_version_;
    rules.kind = kind_;
    static const FieldSet kSpec{{"f:spec"}};
    static const FieldSet kStatus{{"f:status"}};
    if (kind_ != "ConfigMap") {
      rules.reset = step["sub"].as_string() == "status" ? &kSpec : &kStatus;
    }
    const base::Time now{(1'700'000'000 + static_cast<int64_t>(n)) * 1'000'000'000};
    const FieldWriter writer{step["manager"].as_string(), step["sub"].as_string(), now};
    if (step["op"] == Value("apply")) {
      apply_step(rules, writer, step);
    } else {
      update_step(rules, writer, step);
    }
  }

 private:
  void update_step(const OwnershipRules& rules, const FieldWriter& writer, const Value& step) {
    Value after = normal(*type_, step["in"]);
    if (step["reset"].as_bool()) {
      after.ref("metadata", "managedFields") = Value::array({Value::object()});
    }
    Value list = track_update(rules, live_, after, writer);
    EXPECT_EQ(list.dump_pretty(), step["out"].dump_pretty());
    after.ref("metadata").erase("managedFields");
    if (!list.is_null()) after.ref("metadata", "managedFields") = std::move(list);
    live_ = std::move(after);
  }

  void apply_step(const OwnershipRules& rules, const FieldWriter& writer, const Value& step) {
    const auto out = apply(rules, live_, step["in"], writer, step["force"].as_bool());
    if (step.contains("error")) {
      ASSERT_FALSE(out);
      if (out.error().causes.size() <= 1) {
        EXPECT_EQ(sorted_lines(out.error().message), sorted_lines(step["error"].as_string()));
      }
      std::vector<std::string> causes;
      for (const base::Cause& cause : out.error().causes) {
        causes.push_back(cause.field + " " + cause.message);
      }
      std::sort(causes.begin(), causes.end());
      std::vector<std::string> expected;
      for (const Value& cause : step["causes"].items()) expected.push_back(cause.str());
      EXPECT_EQ(causes, expected);
      return;
    }
    ASSERT_TRUE(out) << out.error().message;
    Value object = *out;
    if (live_.is_null()) object.ref("metadata", "uid") = "1";
    fill_target_ports(object);
    object = normal(*type_, object);
    EXPECT_EQ(object.dump_pretty(), normal(*type_, step["out"]).dump_pretty());
    live_ = std::move(object);
  }

  std::string name_;
  std::string kind_;
  std::string api_version_;
  const SchemaType* type_ = nullptr;
  Value live_;
};

TEST(ApplyGolden, AgreesWithTheFieldManagerOfKubernetes) {
  // Another file of the same form: a longer run.
  const char* other = std::getenv("TESSERA_APPLY_GOLDEN");
  auto packed =
      base::read_file(other != nullptr ? std::string(other)
                                       : TESSERA_SOURCE_DIR "/src/kube/testdata/apply.golden.gz");
  ASSERT_TRUE(packed);
  const auto text = base::gunzip(*packed);
  ASSERT_TRUE(text);
  size_t sequences = 0;
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line[0] == '#') continue;
    const Value sequence = parsed(line);
    Replay replay(sequence["kind"].as_string());
    size_t n = 0;
    for (const Value& step : sequence["steps"].items()) replay.step(step, n++);
    ++sequences;
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GE(sequences, 200U);
}

}  // namespace
}  // namespace tessera::kube
