#include "json/interner.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace tessera::json {
namespace {

constexpr const char* kText =
    R"({"metadata":{"name":"a name of some length","uid":"x"},"spec":{"long":["a text of some length",{"k":1}]}})";

TEST(Interner, Equal_parts_of_two_values_become_one) {
  Interner interner;
  Value a = *parse(kText);
  Value b = *parse(kText);
  b.ref("metadata", "uid") = "y";
  const Value before = b;
  interner.intern(a);
  interner.intern(b);
  EXPECT_TRUE(a["spec"].same_node(b["spec"]));
  EXPECT_EQ(a.get("metadata", "name").as_string().data(),
            b.get("metadata", "name").as_string().data());
  EXPECT_FALSE(a["metadata"].same_node(b["metadata"]));
  EXPECT_TRUE(a == *parse(kText));
  EXPECT_TRUE(b == before);
}

TEST(Interner, Leaves_copies_made_before_as_they_were) {
  Interner interner;
  Value a = *parse(kText);
  interner.intern(a);
  Value b = *parse(kText);
  const Value copy = b;
  interner.intern(b);
  EXPECT_TRUE(copy == *parse(kText));
  EXPECT_FALSE(copy["spec"].same_node(b["spec"]));
}

TEST(Interner, A_change_of_an_interned_value_changes_no_other) {
  Interner interner(1);
  Value a = *parse(kText);
  interner.intern(a);
  Value b = a;
  b.ref("spec", "long").push_back("more");
  interner.intern(b);
  EXPECT_TRUE(a == *parse(kText));
  EXPECT_EQ(b.get("spec", "long").size(), 3U);
}

TEST(Interner, What_was_changed_in_place_is_looked_at_again) {
  Interner interner(1 << 16);
  Value a = *parse(R"({"spec":{"x":"a text of some length"}})");
  interner.intern(a);
  interner = Interner(1 << 16);  // nothing shares it now
  a.ref("spec", "x") = "another text of some length";
  interner.intern(a);
  Value b = *parse(R"({"spec":{"x":"another text of some length"}})");
  interner.intern(b);
  EXPECT_TRUE(a["spec"].same_node(b["spec"]));
}

TEST(Interner, Large_parts_are_left_alone_and_small_parts_within_them_are_not) {
  Interner interner;
  const std::string large(Interner::kBytesMax + 1, 'x');
  const auto make = [&] {
    return Value::object({{"data", Value::object({{"large", large}, {"small", *parse(kText)}})}});
  };
  Value a = make();
  Value b = make();
  interner.intern(a);
  interner.intern(b);
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(a["data"].same_node(b["data"]));
  EXPECT_NE(a.get("data", "large").as_string().data(), b.get("data", "large").as_string().data());
  EXPECT_TRUE(a.get("data", "small").same_node(b.get("data", "small")));
}

TEST(Interner, Scalars_and_empty_containers_pass) {
  Interner interner;
  for (const char* text :
       {"1", "null", "\"a text of some length\"", "[]", "{}", R"({"a":[],"b":{}})"}) {
    Value v = *parse(text);
    interner.intern(v);
    EXPECT_TRUE(v == *parse(text)) << text;
  }
}

}  // namespace
}  // namespace tessera::json
