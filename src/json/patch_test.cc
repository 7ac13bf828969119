#include "json/patch.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "json/parse.h"

namespace tessera::json {
namespace {

std::string patched(std::string_view target, std::string_view patch) {
  const auto made = apply_json_patch(*parse(target), *parse(patch));
  return made ? made->dump() : made.error().message;
}

TEST(Pointer, Escapes_are_read_and_faults_refused) {
  EXPECT_EQ(*parse_pointer("/a~1b/m~0n/0/"), (std::vector<std::string>{"a/b", "m~n", "0", ""}));
  EXPECT_TRUE(parse_pointer("")->empty());
  for (const char* bad : {"a", "/~", "/~2", "/a~"}) EXPECT_FALSE(parse_pointer(bad)) << bad;
}

// Appendix A of RFC 6902 and what follows from its text.
TEST(JsonPatch, Applies_as_RFC_6902_says) {
  struct Case {
    const char* target;
    const char* patch;
    const char* want;
  };
  for (
      const Case& c : std::initializer_list<Case>{
          {R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux"}])",
           R"({"baz":"qux","foo":"bar"})"},
          {R"({"foo":["bar","baz"]})", R"([{"op":"add","path":"/foo/1","value":"qux"}])",
           R"({"foo":["bar","qux","baz"]})"},
          {R"({"baz":"qux","foo":"bar"})", R"([{"op":"remove","path":"/baz"}])",
           R"({"foo":"bar"})"},
          {R"({"foo":["bar","qux","baz"]})", R"([{"op":"remove","path":"/foo/1"}])",
           R"({"foo":["bar","baz"]})"},
          {R"({"baz":"qux"})", R"([{"op":"replace","path":"/baz","value":"boo"}])",
           R"({"baz":"boo"})"},
          {R"({"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}})",
           R"([{"op":"move","from":"/foo/waldo","path":"/qux/thud"}])",
           R"({"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}})"},
          {R"({"foo":["all","grass","cows","eat"]})",
           R"([{"op":"move","from":"/foo/1","path":"/foo/3"}])",
           R"({"foo":["all","cows","eat","grass"]})"},
          {R"({"baz":"qux","foo":["a",2,"c"]})",
           R"([{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}])",
           R"({"baz":"qux","foo":["a",2,"c"]})"},
          {R"({"/":9,"~1":10})", R"([{"op":"test","path":"/~01","value":10}])",
           R"({"/":9,"~1":10})"},
          {R"({"foo":["bar"]})", R"([{"op":"add","path":"/foo/-","value":["abc"]}])",
           R"({"foo":["bar",["abc"]]})"},
          {R"({"a":{"b":1}})",
           R"([{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2}])",
           R"({"a":{"b":1},"c":{"b":2}})"},
          {R"({"a":1})", R"([{"op":"replace","path":"","value":[1]}])", "[1]"},
          {R"({"a":1})", R"([{"op":"add","path":"/a","value":null}])", R"({"a":null})"},
          {R"({"a":1})", R"([{"op":"move","from":"/a","path":"/a"}])", R"({"a":1})"},
      }) {
    EXPECT_EQ(patched(c.target, c.patch), c.want) << c.patch;
  }
}

TEST(JsonPatch, Errors_name_the_operation_and_its_path) {
  EXPECT_EQ(patched("{}", R"([{"op":"add","path":"/a","value":1},{"op":"remove","path":"/b"}])"),
            "operation 1 (remove /b): the path does not exist");
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"test","path":"/a","value":2}])"),
            "operation 0 (test /a): the test failed: the value is another one");
  EXPECT_EQ(patched(R"({"a":[]})", R"([{"op":"add","path":"/a/1","value":2}])"),
            "operation 0 (add /a/1): the index is out of range");
  EXPECT_EQ(patched(R"({"a":[1,2]})", R"([{"op":"remove","path":"/a/01"}])"),
            "operation 0 (remove /a/01): the path does not exist");
  EXPECT_EQ(patched(R"({"a":{}})", R"([{"op":"move","from":"/a","path":"/a/b"}])"),
            "operation 0 (move /a/b): a value cannot be moved into itself");
  for (const char* bad : {"{}", "[1]", R"([{"op":"add"}])", R"([{"op":"add","path":"/a"}])",
                          R"([{"op":"x","path":"/a"}])", R"([{"op":"add","path":"a","value":1}])",
                          R"([{"op":"copy","path":"/a"}])"}) {
    EXPECT_EQ(apply_json_patch(Value::object(), *parse(bad)).error().code, base::Code::kBadRequest)
        << bad;
  }
}

TEST(JsonPatch, Copies_without_end_are_stopped) {
  Value patch = Value::array();
  for (int i = 0; i < 100; ++i) {
    patch.push_back(*parse(R"({"op":"copy","from":"","path":"/a"})"));
    patch.push_back(*parse(R"({"op":"copy","from":"","path":"/b"})"));
  }
  EXPECT_EQ(apply_json_patch(*parse(R"({"x":[1,2,3]})"), patch).error().code,
            base::Code::kTooLarge);
}

TEST(MergePatch, Applies_as_RFC_7386_says) {
  struct Case {
    const char* target;
    const char* patch;
    const char* want;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
           {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
           {R"({"a":"b"})", R"({"a":null})", "{}"},
           {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
           {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
           {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
           {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
           {R"({"a":"foo"})", "null", "null"},
           {R"({"e":null})", R"({"a":1})", R"({"a":1,"e":null})"},
           {"[1,2]", R"({"a":"b","c":null})", R"({"a":"b"})"},
           {"{}", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
       }) {
    EXPECT_EQ(apply_merge_patch(*parse(c.target), *parse(c.patch)).dump(), c.want) << c.patch;
  }
}

TEST(MergePatch, What_it_does_not_touch_stays_shared) {
  const Value target = *parse(R"({"spec":{"a":1},"status":{"b":1}})");
  const Value made = apply_merge_patch(target, *parse(R"({"status":{"b":2},"spec":{"a":1}})"));
  EXPECT_TRUE(made["spec"].same_node(target["spec"]));
  EXPECT_EQ(target.get("status", "b").as_int(), 1);
}

Value random_tree(base::Random& random, int depth, bool nulls) {
  const uint64_t kind = random.below(depth > 0 ? 6 : 3);
  if (kind == 0 && nulls) return {};
  if (kind < 3) return static_cast<int64_t>(random.below(3));
  if (kind == 3) return Value::array({random_tree(random, depth - 1, nulls)});
  Value out = Value::object();
  for (uint64_t n = random.below(4); n > 0; --n) {
    out.set(std::string(1, static_cast<char>('a' + random.below(4))),
            random_tree(random, depth - 1, nulls));
  }
  return out;
}

// RFC 7386 section 2, word for word, on plain maps.
Value merge_by_the_book(const Value& target, const Value& patch) {
  if (!patch.is_object()) return patch;
  std::map<std::string, Value, std::less<>> result;
  for (const Member& m : target.members()) result.emplace(m.name(), m.value);
  for (const Member& m : patch.members()) {
    if (m.value.is_null()) {
      result.erase(m.key.str());
    } else {
      Value& slot = result[m.key.str()];
      slot = merge_by_the_book(slot, m.value);
    }
  }
  Value out = Value::object();
  for (const auto& [key, value] : result) out.set(key, value);
  return out;
}

TEST(MergePatch, Agrees_with_the_pseudocode_of_the_RFC) {
  base::Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    const Value target = random_tree(random, 4, true);
    const Value patch = random_tree(random, 4, true);
    ASSERT_EQ(apply_merge_patch(target, patch).dump(), merge_by_the_book(target, patch).dump())
        << target.dump() << " " << patch.dump();
  }
}

TEST(MergePatch, A_difference_applied_gives_the_other_value) {
  base::Random random(6);
  for (int i = 0; i < 20'000; ++i) {
    const Value from = random_tree(random, 4, false);
    const Value to = random_tree(random, 4, false);
    const Value patch = diff_merge_patch(from, to);
    ASSERT_EQ(apply_merge_patch(from, patch).dump(), to.dump())
        << from.dump() << " " << patch.dump();
    ASSERT_TRUE(!(from == to && from.is_object()) || patch.empty());
  }
}

}  // namespace
}  // namespace tessera::json
