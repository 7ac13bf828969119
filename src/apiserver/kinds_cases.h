// Tables of objects and what is wrong with them, for the tests of the kinds.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds_fixture.h"
#include "json/patch.h"

namespace tessera::apiserver::testing_kinds {

// `change` is merged into an object that is fine; `wrong` is a line of what is refused then, "" where nothing is.
struct RuleCase {
  const char* change;
  const char* wrong;
};

inline void expect_line(const Outcome& outcome, const RuleCase& c) {
  if (std::string_view(c.wrong).empty()) {
    EXPECT_TRUE(outcome.accepted()) << c.change << "\n" << outcome.text();
  } else {
    EXPECT_THAT(outcome.text(), testing::HasSubstr(c.wrong)) << c.change;
  }
}

inline void expect_rules(const Kind& kind, const char* base, const std::vector<RuleCase>& cases) {
  const json::Value good = from_yaml(base);
  const Outcome plain = create(kind, good);
  EXPECT_TRUE(plain.accepted()) << kind.kind << "\n" << plain.text();
  for (const RuleCase& c : cases) {
    expect_line(create(kind, json::apply_merge_patch(good, from_yaml(c.change))), c);
  }
}

inline void expect_update_rules(const Kind& kind, const char* base,
                                const std::vector<RuleCase>& cases) {
  const Outcome before = create(kind, from_yaml(base));
  ASSERT_TRUE(before.accepted()) << kind.kind << "\n" << before.text();
  for (const RuleCase& c : cases) {
    const json::Value after = json::apply_merge_patch(before.object, from_yaml(c.change));
    expect_line(update(kind, after, before.object), c);
  }
}

// The object as a server stores it.
inline json::Value stored(const Kind& kind, std::string_view text) {
  const Outcome outcome = create(kind, from_yaml(text));
  EXPECT_TRUE(outcome.accepted()) << kind.kind << "\n" << outcome.text();
  return outcome.object;
}

// All cells, by header: "Name=web Ready=1/2". Wide ones follow a bar.
inline std::string row(const Kind& kind, const json::Value& object, base::Time now = {}) {
  std::string narrow;
  std::string wide;
  for (const Column& column : kind.columns) {
    const json::Value value = column.cell(kube::Object(object), now);
    std::string& out = column.priority > 0 ? wide : narrow;
    out += (out.empty() ? "" : "; ") + column.name + "=" +
           (value.is_string() ? value.str() : value.dump());
  }
  return wide.empty() ? narrow : narrow + " | " + wide;
}

}  // namespace tessera::apiserver::testing_kinds
