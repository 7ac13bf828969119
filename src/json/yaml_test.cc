#include "json/yaml.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "base/random.h"
#include "json/parse.h"
#include "source_dir.h"

namespace tessera::json {
namespace {

std::string read(std::string_view text) {
  const auto value = parse_yaml(text);
  return value ? value->dump() : value.error().message;
}

TEST(Yaml, Reads_blocks_flows_and_JSON) {
  EXPECT_EQ(read("a: 1\nb:\n- x\n- w: [1, {z: 2}]\n"), R"({"a":1,"b":["x",{"w":[1,{"z":2}]}]})");
  EXPECT_EQ(read("{\n\t\"a\": [1, true]\n}"), R"({"a":[1,true]})");
  EXPECT_EQ(read("--- |\n text\n  more\n"), R"("text\n more\n")");
  EXPECT_EQ(read("a: >\n  x\n  y\n"), R"({"a":"x y\n"})");
  EXPECT_EQ(read("a:\nb: ''\nc: ~\n"), R"({"a":null,"b":"","c":null})");
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "a: é\r\nb: 2\r\n"),
            R"({"a":"é","b":2})");
}

TEST(Yaml, Plain_scalars_take_the_types_that_Kubernetes_gives_them) {
  const auto text = base::read_file(TESSERA_SOURCE_DIR "/src/json/testdata/yaml_plain.golden");
  ASSERT_TRUE(text) << text.error().message;
  std::istringstream lines(*text);
  size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const size_t tab = line.find('\t');
    const std::string scalar = line.substr(0, tab);
    const auto value = parse_yaml("k: " + scalar);
    ++rows;
    if (line.ends_with("\terror")) {
      EXPECT_FALSE(value) << line;
      continue;
    }
    ASSERT_TRUE(value) << scalar << ": " << value.error().message;
    const auto want = parse(line.substr(tab + 1));
    ASSERT_TRUE(want) << line;
    EXPECT_TRUE((*value)["k"] == *want) << line << " but read " << (*value)["k"].dump();
    EXPECT_EQ((*value)["k"].is_string(), want->is_string()) << line;
  }
  EXPECT_GT(rows, 100U);
}

TEST(Yaml, Quoted_scalars_stay_strings) {
  EXPECT_EQ(read("[\"1\", 'true', !!str 5, \"~\"]"), R"(["1","true","5","~"])");
  EXPECT_EQ(read("[!!int '7', !!float 3]").find("does not fit"), std::string::npos);
}

TEST(Yaml, Keys_become_strings) {
  EXPECT_EQ(read("1: a\nyes: b\n0x10: c\n'q': d\n"), R"({"1":"a","16":"c","q":"d","true":"b"})");
}

TEST(Yaml, Aliases_and_merge_keys_are_followed) {
  EXPECT_EQ(read("a: &x {p: 1, q: 2}\nb: *x\nc:\n  <<: *x\n  q: 3\n"),
            R"({"a":{"p":1,"q":2},"b":{"p":1,"q":2},"c":{"p":1,"q":3}})");
  EXPECT_EQ(read("- &a {p: 1}\n- &b {p: 2, q: 2}\n- <<: [*a, *b]\n  r: 3\n"),
            R"([{"p":1},{"p":2,"q":2},{"p":1,"q":2,"r":3}])");
  EXPECT_EQ(read("a: &k name\n*k : 1\n"), R"({"a":"name","name":1})");
  EXPECT_EQ(read("'<<': 1\n"), R"({"<<":1})");
}

TEST(Yaml, Streams_have_many_documents_and_empty_ones_are_left_out) {
  const auto all = parse_yaml_stream("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n");
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[1].dump(), R"({"b":2})");
  EXPECT_TRUE(parse_yaml_stream("")->empty());
  EXPECT_FALSE(parse_yaml("---\na: 1\n---\nb: 2\n"));
  EXPECT_FALSE(parse_yaml("# nothing"));
}

TEST(Yaml, Errors_name_document_line_and_column_and_the_mend) {
  struct Case {
    const char* text;
    std::vector<const char*> want;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"a: 1\nb: 2\na: 3\n",
            {"document 1, line 3, column 1", "key \"a\" stands twice", "keep one"}},
           {"x: 1\n---\nb: 1\n'b': 2\n", {"document 2, line 4, column 1", "\"b\""}},
           {"a:\n\t- 1\n", {"line 2", "tabs"}},
           {"a: [1, 2\n", {"line", "not valid YAML", "close the bracket"}},
           {"a: *nope\n", {"line 1", "nope"}},
           {"a: &a [*a]\n", {"line 1, column 8", "cannot contain itself"}},
           {"[1] [2]\n", {"document 1", "after the end of the document"}},
           {"a: 'x\n", {"close the quote"}},
           {"? [1]\n: 2\n", {"keys must be plain text"}},
           {"a: .inf\n", {"line 1, column 4", "JSON"}},
           {"a: !foo 1\n", {"tag", "leave the tag out"}},
           {"a: 1\nb: \xff\n", {"line 2, column 4", "0xff", "UTF-8"}},
           {"a: \x04\n", {"line 1, column 4"}},
           {"a: b: c\n", {"line 1"}},
           {"<<: 5\n", {"'<<' takes a mapping"}},
           {"~: 1\n", {"key is empty"}},
       }) {
    const auto value = parse_yaml(c.text);
    ASSERT_FALSE(value) << c.text << " read as " << value->dump();
    for (const char* want : c.want) {
      EXPECT_NE(value.error().message.find(want), std::string::npos)
          << c.text << " gave: " << value.error().message;
    }
  }
}

TEST(Yaml, An_alias_bomb_is_refused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    bomb += fmt::format("a{0}: &a{0} [", i);
    for (int k = 0; k < 9; ++k) bomb += fmt::format("{}*a{}", k == 0 ? "" : ",", i - 1);
    bomb += "]\n";
  }
  const auto value = parse_yaml(bomb);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, base::Code::kTooLarge);

  std::string merges = "a0: &a0 {x: 1, y: 2}\n";
  for (int i = 1; i < 40; ++i) {
    merges += fmt::format("a{0}: &a{0} {{<<: [*a{1}, *a{1}], k{0}: *a{1}}}\n", i, i - 1);
  }
  EXPECT_EQ(parse_yaml(merges).error().code, base::Code::kTooLarge);
}

TEST(Yaml, Depth_and_size_are_limited) {
  EXPECT_FALSE(parse_yaml(std::string(100'000, '[')));
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested += "- ";
  EXPECT_EQ(parse_yaml(nested + "x").error().code, base::Code::kTooLarge);
  EXPECT_EQ(parse_yaml("a: 1", {.bytes_max = 2}).error().code, base::Code::kTooLarge);
  std::string through_aliases = "a0: &a0 [x]\n";
  for (int i = 1; i < 200; ++i) through_aliases += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
  EXPECT_EQ(parse_yaml(through_aliases).error().code, base::Code::kTooLarge);
}

TEST(ToYaml, Writes_as_kubectl_does) {
  const Value v = *parse(R"({"b":{"list":[{"name":"x","on":"yes"},[1,2],"- a"],"none":{},"no":[]},
    "a":["",null,true,"true","12","1.5","0x1F",3.5,"a: b","a #b","#c","multi\nline\n","x\ny","1:30",
         " lead","it's","tab\there","@at","key:","2001-01-01"]})");
  EXPECT_EQ(to_yaml(v), R"(a:
- ""
- null
- true
- "true"
- "12"
- "1.5"
- "0x1F"
- 3.5
- 'a: b'
- 'a #b'
- '#c'
- |
  multi
  line
- |-
  x
  y
- "1:30"
- ' lead'
- it's
- "tab\there"
- '@at'
- 'key:'
- 2001-01-01
b:
  list:
  - name: x
    "on": "yes"
  - - 1
    - 2
  - '- a'
  "no": []
  none: {}
)");
}

// Values of all shapes, with strings made of what is hard to quote.
Value random_value(base::Random& random, int depth) {
  static constexpr std::string_view kPieces[] = {
      "a",   "é",  " ",    "\n",   "\t",     ":",      ": ",     "#",  " #", "-",  "- ", "'",
      "\"",  "\\", "true", "no",   "1",      "0x",     ".",      "e",  "~",  "&a", "*a", "!x",
      "|",   ">",  "%",    "@",    "`",      "{",      "}",      "[",  "]",  ",",  "?",  "---",
      "...", "\r", "\x01", "\x7f", "\u0085", "\u2028", "\ufeff", "😀", "<<", "=",  "_",  "null"};
  const auto text = [&] {
    std::string out;
    for (uint64_t n = random.below(6); n > 0; --n) out += kPieces[random.below(std::size(kPieces))];
    if (random.below(40) == 0) out += std::string(random.below(3000), 'k');
    return out;
  };
  switch (random.below(depth > 0 ? 8 : 6)) {
    case 0:
      return {};
    case 1:
      return random.chance(0.5);
    case 2:
      return static_cast<int64_t>(random.next()) >> random.below(64);
    case 3:
      return random.unit() * 1e6 - 5e5;
    case 6: {
      Value out = Value::array();
      for (uint64_t n = random.below(5); n > 0; --n) out.push_back(random_value(random, depth - 1));
      return out;
    }
    case 7: {
      Value out = Value::object();
      for (uint64_t n = random.below(5); n > 0; --n)
        out.set(text(), random_value(random, depth - 1));
      return out;
    }
    default:
      return text();
  }
}

TEST(ToYaml, What_is_written_reads_back) {
  base::Random random(11);
  for (int i = 0; i < 20'000; ++i) {
    const Value v = random_value(random, 4);
    const std::string text = to_yaml(v);
    const auto back = parse_yaml_stream(text);
    ASSERT_TRUE(back) << back.error().message << "\n" << text;
    const Value read_back = back->empty() ? Value() : (*back)[0];
    ASSERT_TRUE(read_back == v) << v.dump() << "\n" << text << "\n" << read_back.dump();
  }
}

TEST(Yaml, A_character_that_begins_nothing_is_refused_and_ends) {
  for (const char* text : {"--- , b", "--- , b yes\n\n   mor'\n.. .\n", ", a", "---\n, a: 1\n"}) {
    const auto read = parse_yaml_stream(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find("line "), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace tessera::json
