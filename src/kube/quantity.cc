#include "kube/quantity.h"

#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <charconv>
#include <cmath>
#include <optional>

namespace tessera::kube {
namespace {

using Big = boost::multiprecision::cpp_int;
using Format = Quantity::Format;

constexpr int kNano = -9;
constexpr int kDigitsInt64 = 18;        // any number of so many digits fits
constexpr int64_t kDigitsApart = 1000;  // of summands that are added exactly
constexpr size_t kTextMax = 1024;

struct Suffix {
  std::string_view text;
  int base;
  int exponent;
};
constexpr std::array<Suffix, 16> kSuffixes = {{{"n", 10, -9},
                                               {"u", 10, -6},
                                               {"m", 10, -3},
                                               {"", 10, 0},
                                               {"k", 10, 3},
                                               {"M", 10, 6},
                                               {"G", 10, 9},
                                               {"T", 10, 12},
                                               {"P", 10, 15},
                                               {"E", 10, 18},
                                               {"Ki", 2, 10},
                                               {"Mi", 2, 20},
                                               {"Gi", 2, 30},
                                               {"Ti", 2, 40},
                                               {"Pi", 2, 50},
                                               {"Ei", 2, 60}}};

tl::unexpected<base::Error> wrong_format() {
  return base::error(base::Code::kBadRequest,
                     "quantities must match the regular expression "
                     "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}
tl::unexpected<base::Error> wrong_number() {
  return base::error(base::Code::kBadRequest, "unable to parse numeric part of quantity");
}
tl::unexpected<base::Error> wrong_suffix() {
  return base::error(base::Code::kBadRequest, "unable to parse quantity's suffix");
}

// "-12.50Mi" in its parts: digits are "12" (without leading zeros) and "50".
struct Parts {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  bool any_digit = false;
  std::string_view suffix;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& rest) {
  size_t n = 0;
  while (n < rest.size() && is_digit(rest[n])) ++n;
  const std::string_view taken = rest.substr(0, n);
  rest.remove_prefix(n);
  return taken;
}

// False where the text does not have the form of a quantity.
bool split(std::string_view text, Parts& parts) {
  if (text.empty()) return false;
  if (text[0] == '-' || text[0] == '+') {
    parts.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  parts.whole = take_digits(text);
  parts.any_digit = !parts.whole.empty();
  while (!parts.whole.empty() && parts.whole[0] == '0') parts.whole.remove_prefix(1);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    parts.fraction = take_digits(text);
    parts.any_digit = parts.any_digit || !parts.fraction.empty();
  }
  parts.suffix = text;
  while (!text.empty() && std::string_view("eEinumkKMGTP").find(text[0]) != text.npos) {
    text.remove_prefix(1);
  }
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  take_digits(text);
  return text.empty();
}

struct Unit {
  int base = 10;
  int64_t exponent = 0;
  Format format = Format::kDecimalSi;
};

std::optional<Unit> unit_of(std::string_view suffix) {
  for (const Suffix& known : kSuffixes) {
    if (known.text == suffix) {
      return Unit{known.base, known.exponent,
                  known.base == 2 ? Format::kBinarySi : Format::kDecimalSi};
    }
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  suffix.remove_prefix(1);
  if (suffix[0] == '+') suffix.remove_prefix(1);
  int32_t exponent = 0;
  const auto end = std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
  if (end.ec != std::errc() || end.ptr != suffix.data() + suffix.size()) return std::nullopt;
  return Unit{10, exponent, Format::kDecimalExponent};
}

Big pow10(int64_t exponent) {
  return boost::multiprecision::pow(Big(10), static_cast<unsigned>(exponent));
}

int64_t digits_of(const Big& value) {
  const std::string text = value.str();
  return static_cast<int64_t>(text.size()) - (text[0] == '-' ? 1 : 0);
}

}  // namespace

struct Quantity::Number {
  Big value;
  int64_t scale = 0;

  // Rounds away from zero to a multiple of 10^to.
  void round_to(int64_t to) {
    if (value == 0 || scale >= to) return;
    const int64_t drop = to - scale;
    Big quotient = 0;
    Big remainder = value;
    if (drop <= digits_of(value)) divide_qr(value, pow10(drop), quotient, remainder);
    if (remainder != 0) quotient += value < 0 ? -1 : 1;
    value = quotient;
    scale = to;
  }
  void strip_tens() {
    if (value == 0) {
      scale = 0;
      return;
    }
    while (value % 10 == 0) {
      value /= 10;
      ++scale;
    }
  }
};

struct Quantity::Side {
  bool big = false;
  Number number;     // where big
  std::string text;  // as it was read, where that differs from the canonical form
};

Quantity Quantity::scaled(int64_t value, int scale, Format format) {
  Quantity out(value, format);
  out.scale_ = scale;
  return out;
}

Quantity::Number Quantity::number() const {
  if (side_ && side_->big) return side_->number;
  return Number{value_, scale_};
}

Quantity Quantity::of(Number number, Format format) {
  Quantity out(0, format);
  if (number.value >= INT64_MIN && number.value <= INT64_MAX && number.scale >= INT32_MIN &&
      number.scale <= INT32_MAX) {
    out.value_ = number.value.convert_to<int64_t>();
    out.scale_ = static_cast<int32_t>(number.scale);
    return out;
  }
  auto side = std::make_shared<Side>();
  side->big = true;
  side->number = std::move(number);
  out.side_ = std::move(side);
  return out;
}

base::Result<Quantity> Quantity::parse(std::string_view text) {
  if (text.size() > kTextMax) return wrong_number();
  Parts parts;
  if (!split(text, parts)) return wrong_format();
  const auto unit = unit_of(parts.suffix);
  if (!unit) return wrong_suffix();

  const auto whole_digits = static_cast<int64_t>(std::max<size_t>(parts.whole.size(), 1));
  const auto fraction_digits = static_cast<int64_t>(parts.fraction.size());
  std::string digits = parts.whole.empty() ? "0" : std::string(parts.whole);
  digits += parts.fraction;

  // Kubernetes keeps the text of numbers that it reads in 64 bits and takes for canonical; so must
  // we.
  const bool binary = unit->format == Format::kBinarySi;
  // Written with one digit in front the number must still have an exponent that can be read.
  if (!binary && unit->exponent + whole_digits - 1 > std::numeric_limits<int32_t>::max()) {
    return wrong_suffix();
  }
  const int64_t scale = (binary ? 0 : unit->exponent) - fraction_digits;
  const int64_t room =
      binary
          ? (fraction_digits > 0 ? -1 : kDigitsInt64 - 4 - whole_digits - unit->exponent * 3 / 10)
          : kDigitsInt64 - whole_digits - fraction_digits;
  int64_t value = 0;
  if (room >= 0 && scale >= kNano) {
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const int64_t factor = binary ? int64_t{1} << unit->exponent : 1;
    int64_t product = 0;
    if (!__builtin_mul_overflow(value, factor, &product)) {
      Quantity out =
          scaled(parts.negative ? -product : product, static_cast<int>(scale), unit->format);
      const bool keeps = binary ? (value & 7) != 0
                                : scale % 3 == 0 && digits[0] != '0' && !digits.ends_with("000");
      if (keeps && out.to_string() != text) {
        auto side = std::make_shared<Side>();
        side->text = text;
        out.side_ = std::move(side);
      }
      return out;
    }
  }
  if (!parts.any_digit) return wrong_number();
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));  // no octal
  Number number{Big(digits), scale};
  if (binary) number.value <<= static_cast<unsigned>(unit->exponent);
  number.round_to(kNano);
  Format format = unit->format;
  if (binary) {
    Number rounded = number;
    rounded.round_to(0);
    if (rounded.value > INT64_MAX) number = Number{INT64_MAX, 0};
    // Below one there is no binary form.
    if (number.value != 0 && number.scale < 0 && number.value < pow10(-number.scale)) {
      format = Format::kDecimalSi;
    }
  }
  if (parts.negative) number.value = -number.value;
  return of(std::move(number), format);
}

std::string Quantity::to_string() const {
  if (side_ && !side_->text.empty()) return side_->text;
  if (is_zero()) return "0";
  Number n = number();
  n.strip_tens();
  if (format_ == Format::kBinarySi && n.scale >= 0 && n.scale <= kDigitsApart) {
    Big whole = n.value * pow10(n.scale);
    if (whole >= 1024 || whole <= -1024) {
      size_t step = 0;
      while (step < 6 && whole % 1024 == 0) {
        whole /= 1024;
        ++step;
      }
      return whole.str() + std::string(step == 0 ? "" : kSuffixes[9 + step].text);
    }
  }
  const int64_t over = (n.scale % 3 + 3) % 3;
  n.value *= pow10(over);
  n.scale -= over;
  if (format_ == Format::kDecimalExponent) {
    return n.value.str() + (n.scale == 0 ? "" : fmt::format("e{}", n.scale));
  }
  if (n.scale > 18 && n.scale <= kDigitsApart) {
    n.value *= pow10(n.scale - 18);
    n.scale = 18;
  }
  for (const Suffix& known : kSuffixes) {
    if (known.base == 10 && known.exponent == n.scale)
      return n.value.str() + std::string(known.text);
  }
  return n.value.str() + fmt::format("e{}", n.scale);
}

int Quantity::sign() const {
  if (side_ && side_->big) return side_->number.value.sign();
  return value_ < 0 ? -1 : (value_ > 0 ? 1 : 0);
}

int64_t Quantity::scaled_value(int scale) const {
  if (!side_ && scale_ == scale) return value_;
  if (is_zero()) return 0;
  Number n = number();
  n.round_to(scale);
  const int64_t most = n.value < 0 ? INT64_MIN : INT64_MAX;
  if (n.scale > scale) {
    if (n.scale - scale > kDigitsInt64 + 1) return most;
    n.value *= pow10(n.scale - scale);
  }
  if (n.value < INT64_MIN || n.value > INT64_MAX) return most;
  return n.value.convert_to<int64_t>();
}

double Quantity::approximate() const {
  const Number n = number();
  return n.value.convert_to<double>() * std::pow(10.0, static_cast<double>(n.scale));
}

namespace {

// Brings the smaller scale down to the other; false where they lie too far apart for an exact sum.
bool align(Big& a, int64_t& a_scale, Big& b, int64_t& b_scale) {
  if (a_scale > b_scale + kDigitsApart || b_scale > a_scale + kDigitsApart) return false;
  if (a_scale > b_scale) {
    a *= pow10(a_scale - b_scale);
    a_scale = b_scale;
  } else {
    b *= pow10(b_scale - a_scale);
    b_scale = a_scale;
  }
  return true;
}

}  // namespace

Quantity& Quantity::operator+=(const Quantity& other) {
  if (is_zero()) return *this = of(other.number(), other.format_);
  if (other.is_zero()) return *this = of(number(), format_);
  int64_t sum = 0;
  if (!(side_ && side_->big) && !(other.side_ && other.side_->big) && scale_ == other.scale_ &&
      !__builtin_add_overflow(value_, other.value_, &sum)) {
    value_ = sum;
    side_.reset();
    return *this;
  }
  Number a = number();
  Number b = other.number();
  if (align(a.value, a.scale, b.value, b.scale)) {
    a.value += b.value;
  } else if (b.scale > a.scale) {
    a = std::move(b);
  }
  return *this = of(std::move(a), format_);
}

Quantity Quantity::negated() const {
  Number n = number();
  n.value = -n.value;
  return of(std::move(n), format_);
}

Quantity& Quantity::operator-=(const Quantity& other) {
  return *this += other.negated();
}

Quantity& Quantity::operator*=(int64_t factor) {
  Number n = number();
  n.value *= factor;
  return *this = of(std::move(n), format_);
}

std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
  const bool small = !(a.side_ && a.side_->big) && !(b.side_ && b.side_->big);
  if (small && a.scale_ == b.scale_) return a.value_ <=> b.value_;
  if (a.sign() != b.sign()) return a.sign() <=> b.sign();
  if (a.sign() == 0) return std::strong_ordering::equal;
  Quantity::Number x = a.number();
  Quantity::Number y = b.number();
  // The place of the first digit decides, unless both have the same; then the scales are close.
  const int64_t x_top = digits_of(x.value) + x.scale;
  const int64_t y_top = digits_of(y.value) + y.scale;
  if (x_top != y_top) return a.sign() > 0 ? x_top <=> y_top : y_top <=> x_top;
  if (x.scale > y.scale) x.value *= pow10(x.scale - y.scale);
  if (y.scale > x.scale) y.value *= pow10(y.scale - x.scale);
  return x.value.compare(y.value) <=> 0;
}

const Quantity& amount_of(const ResourceList& list, std::string_view resource) {
  static const Quantity kZero;
  const auto found = list.find(resource);
  return found == list.end() ? kZero : found->second;
}

void add_to(ResourceList& list, const ResourceList& more) {
  for (const auto& [name, amount] : more) {
    const auto [at, added] = list.try_emplace(name, amount);
    if (!added) at->second += amount;
  }
}

void raise_to(ResourceList& list, const ResourceList& at_least) {
  for (const auto& [name, amount] : at_least) {
    const auto [at, added] = list.try_emplace(name, amount);
    if (!added && amount > at->second) at->second = amount;
  }
}

}  // namespace tessera::kube
