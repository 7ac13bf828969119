// An amount of a resource: "500m", "1.5Gi", "12e6"; a decimal number without rounding errors that
// remembers how to be written.
//
// Shape:   value * 10^scale in 64 bits where it fits, else a big decimal on the side; 24 bytes and
//          a pointer that is null nearly always. Copies share the side part.
// Limits:  text of at most 1024 characters. A sum of amounts that differ by more than 1000 digits is the
//          larger one.
// Units:   what the resource counts (cores, bytes, devices). The finest step is 10^-9; finer values
//          are rounded away from zero on parsing. Values with a binary suffix are capped at 2^63-1
//          in magnitude on parsing, others are not.
// Errors:  parse answers kBadRequest in Kubernetes' words; value() and milli_value() saturate at
//          the ends of int64.
// Threads: plain values.
// Source:  k8s.io/apimachinery v0.36.3 pkg/api/resource; checked against it by
//          testdata/quantity.golden.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tessera::kube {

class Quantity {
 public:
  enum class Format : uint8_t { kDecimalSi, kBinarySi, kDecimalExponent };

  Quantity() = default;
  explicit Quantity(int64_t value, Format format = Format::kDecimalSi)
      : value_(value), format_(format) {}
  // value * 10^scale.
  static Quantity scaled(int64_t value, int scale, Format format = Format::kDecimalSi);
  static Quantity milli(int64_t thousandths) { return scaled(thousandths, -3); }
  static base::Result<Quantity> parse(std::string_view text);

  // As Kubernetes writes it. Text that Kubernetes takes for canonical as it was read ("+1Ki") comes
  // back unchanged.
  std::string to_string() const;
  Format format() const { return format_; }

  int sign() const;
  bool is_zero() const { return sign() == 0; }
  // Rounded away from zero to a whole number, or to thousandths.
  int64_t value() const { return scaled_value(0); }
  int64_t milli_value() const { return scaled_value(-3); }
  int64_t scaled_value(int scale) const;
  double approximate() const;

  // The sum or difference takes the other's format where this is zero.
  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);
  Quantity& operator*=(int64_t factor);
  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }
  friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }
  friend Quantity operator*(Quantity a, int64_t factor) { return a *= factor; }
  Quantity negated() const;

  // By amount alone: "1Ki" == "1024".
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b);
  friend bool operator==(const Quantity& a, const Quantity& b) { return (a <=> b) == 0; }

 private:
  struct Side;    // what does not fit above
  struct Number;  // a decimal of any size
  Number number() const;
  static Quantity of(Number number, Format format);

  int64_t value_ = 0;
  int32_t scale_ = 0;
  Format format_ = Format::kDecimalSi;
  std::shared_ptr<const Side> side_;
};

// Amounts by resource name: "cpu", "memory", "nvidia.com/gpu".
using ResourceList = std::map<std::string, Quantity, std::less<>>;

// The amount, or zero where the resource is not listed.
const Quantity& amount_of(const ResourceList& list, std::string_view resource);
void add_to(ResourceList& list, const ResourceList& more);
void raise_to(ResourceList& list, const ResourceList& at_least);

}  // namespace tessera::kube
