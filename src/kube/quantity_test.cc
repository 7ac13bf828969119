#include "kube/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>

#include "base/file.h"
#include "source_dir.h"

namespace tessera::kube {
namespace {

Quantity q(std::string_view text) {
  auto parsed = Quantity::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : Quantity();
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == '\t') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

void check_row(const std::vector<std::string>& row) {
  const auto parsed = Quantity::parse(row[1]);
  if (row[0] == "bad") {
    ASSERT_FALSE(parsed) << row[1];
    const std::string& why = parsed.error().message;
    const char* want = row[2] == "format"    ? "quantities must match the regular expression"
                       : row[2] == "numeric" ? "unable to parse numeric part of quantity"
                                             : "unable to parse quantity's suffix";
    EXPECT_TRUE(why.starts_with(want)) << row[1] << ": " << why;
    return;
  }
  ASSERT_TRUE(parsed) << row[1];
  if (row[0] == "q") {
    EXPECT_EQ(parsed->to_string(), row[2] == "=" ? row[1] : row[2]) << row[1];
    EXPECT_TRUE(row[3] == "?" || std::to_string(parsed->value()) == row[3]) << row[1];
    EXPECT_TRUE(row[4] == "?" || std::to_string(parsed->milli_value()) == row[4]) << row[1];
    return;
  }
  const Quantity b = q(row[2]);
  const auto order = *parsed <=> b;
  EXPECT_EQ(order < 0 ? "-1" : (order > 0 ? "1" : "0"), row[3]) << row[1] << " " << row[2];
  EXPECT_EQ((*parsed + b).to_string(), row[4]) << row[1] << " + " << row[2];
  EXPECT_EQ((*parsed - b).to_string(), row[5]) << row[1] << " - " << row[2];
}

TEST(Quantity, Behaves_as_the_library_of_Kubernetes) {
  const auto text = base::read_file(TESSERA_SOURCE_DIR "/src/kube/testdata/quantity.golden");
  ASSERT_TRUE(text) << text.error().message;
  std::istringstream lines(*text);
  size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    check_row(fields_of(line));
    ++rows;
  }
  EXPECT_GT(rows, 1000U);
}

TEST(Quantity, Past_the_last_suffix_the_number_grows) {
  EXPECT_EQ(q("1000E").to_string(), "1000E");
  EXPECT_EQ((q("7Ei") * 1024).to_string(), "7168Ei");
}

TEST(Quantity, Values_out_of_range_saturate) {
  EXPECT_EQ(q("1e30").value(), INT64_MAX);
  EXPECT_EQ(q("-1e30").value(), INT64_MIN);
  EXPECT_EQ(q("8E").milli_value(), INT64_MAX);
  EXPECT_EQ(q("1e2147483647").value(), INT64_MAX);
}

TEST(Quantity, Negative_values_round_away_from_zero) {
  EXPECT_EQ(q("-1.5").value(), -2);
  EXPECT_EQ(q("-1.5Ki").value(), -1536);
  EXPECT_EQ(q("-1.0001Ki").value(), -1025);
}

TEST(Quantity, Huge_exponents_cost_nothing) {
  const Quantity huge = q("1e2147483647");
  EXPECT_TRUE(huge > q("9e2147483646"));
  EXPECT_EQ((huge + q("1")).to_string(), huge.to_string());
  EXPECT_EQ(q("1e-2147483648").to_string(), "1e-9");
  EXPECT_FALSE(Quantity::parse("1e2147483648"));
  EXPECT_FALSE(Quantity::parse(std::string(5000, '9')));
}

TEST(Quantity, A_sum_starts_in_the_format_of_its_first_amount) {
  Quantity sum;
  sum += q("1Gi");
  sum += q("512Mi");
  EXPECT_EQ(sum.to_string(), "1536Mi");
}

TEST(Quantity, Sums_of_whole_numbers_are_those_of_integers) {
  rc::check([](int32_t a, int32_t b) {
    const Quantity x(a);
    const Quantity y = Quantity::parse(std::to_string(b)).value();
    RC_ASSERT((x + y).value() == int64_t{a} + b);
    RC_ASSERT((x - y).value() == int64_t{a} - b);
    RC_ASSERT((x < y) == (a < b));
  });
}

TEST(Quantity, Text_reads_back_to_the_same_amount) {
  rc::check([](int64_t mantissa, uint8_t suffix) {
    static const char* const kAll[] = {"n", "u",  "m",  "",   "k",  "M",  "G",  "T",  "P",
                                       "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e7", "E-5"};
    const Quantity x = Quantity::parse(std::to_string(mantissa) + kAll[suffix % 18]).value();
    const Quantity y = Quantity::parse(x.to_string()).value();
    RC_ASSERT(x == y);
    RC_ASSERT((x - y).is_zero());
    RC_ASSERT((Quantity() + x).to_string() == (Quantity() + y).to_string());
  });
}

}  // namespace
}  // namespace tessera::kube
