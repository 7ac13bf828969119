#include "kube/go_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace tessera::kube {
namespace {

using json::Value;

void write(const Value& value, std::string& out);

void write_object(const Value& value, std::string& out) {
  std::vector<const json::Member*> members;
  for (const json::Member& member : value.members()) members.push_back(&member);
  std::ranges::sort(members, {}, [](const json::Member* member) { return member->name(); });
  out += "map[";
  for (size_t i = 0; i < members.size(); ++i) {
    if (i > 0) out += ' ';
    out.append(members[i]->name()) += ':';
    write(members[i]->value, out);
  }
  out += ']';
}

void write(const Value& value, std::string& out) {
  switch (value.type()) {
    case json::Type::kNull:
      out += "<nil>";
      return;
    case json::Type::kString:
      out += value.as_string();
      return;
    case json::Type::kObject:
      return write_object(value, out);
    case json::Type::kArray:
      out += '[';
      for (size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out += ' ';
        write(value.at(i), out);
      }
      out += ']';
      return;
    default:
      out += value.dump();
  }
}

// One piece of the layout of a time: literal text, or a number of so many digits.
struct Piece {
  std::string_view layout;
  bool number = false;
  int least = 0;
  int most = 0;
  std::string_view range;  // "month out of range"
};

constexpr std::array<Piece, 11> kPieces = {{{"2006", true, 0, 9999, ""},
                                            {"-", false, 0, 0, ""},
                                            {"01", true, 1, 12, "month out of range"},
                                            {"-", false, 0, 0, ""},
                                            {"02", true, 1, 31, "day out of range"},
                                            {"T", false, 0, 0, ""},
                                            {"15", true, 0, 23, "hour out of range"},
                                            {":", false, 0, 0, ""},
                                            {"04", true, 0, 59, "minute out of range"},
                                            {":", false, 0, 0, ""},
                                            {"05", true, 0, 59, "second out of range"}}};

constexpr std::string_view kFraction = ".000000";
constexpr std::string_view kZone = "Z07:00";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool all_digits(std::string_view text, size_t count) {
  return text.size() >= count && std::all_of(text.begin(), text.begin() + count, is_digit);
}

bool is_zone(std::string_view text) {
  if (text == "Z") return true;
  return text.size() == 6 && (text[0] == '+' || text[0] == '-') && all_digits(text.substr(1), 2) &&
         text[3] == ':' && all_digits(text.substr(4), 2);
}

// ": month out of range", or empty where the piece fits; `rest` is then what follows. "?" where it does not.
std::string take(const Piece& piece, std::string_view& rest) {
  const size_t size = piece.layout.size();
  if (!piece.number) {
    if (!rest.starts_with(piece.layout)) return "?";
    rest.remove_prefix(size);
    return {};
  }
  if (!all_digits(rest, size)) return "?";
  int number = 0;
  for (size_t i = 0; i < size; ++i) number = number * 10 + (rest[i] - '0');
  if (number < piece.least || number > piece.most) return fmt::format(": {}", piece.range);
  rest.remove_prefix(size);
  return {};
}

// Six digits for MicroTime; for Time any number of them, or none.
bool take_fraction(std::string_view& rest, bool micro) {
  if (micro) {
    if (!rest.starts_with('.') || !all_digits(rest.substr(1), kFraction.size() - 1)) return false;
    rest.remove_prefix(kFraction.size());
    return true;
  }
  if (rest.size() < 2 || (rest[0] != '.' && rest[0] != ',') || !is_digit(rest[1])) return true;
  rest.remove_prefix(1);
  while (!rest.empty() && is_digit(rest[0])) rest.remove_prefix(1);
  return true;
}

}  // namespace

std::string go_text(const Value& value) {
  std::string out;
  write(value, out);
  return out;
}

std::string_view go_type(const Value& value) {
  switch (value.type()) {
    case json::Type::kNull:
      return "<nil>";
    case json::Type::kBool:
      return "bool";
    case json::Type::kInt:
      return "int64";
    case json::Type::kDouble:
      return "float64";
    case json::Type::kString:
      return "string";
    case json::Type::kArray:
      return "[]interface {}";
    case json::Type::kObject:
      return "map[string]interface {}";
  }
  return "<nil>";
}

bool is_go_time(std::string_view text, bool micro) {
  std::string_view rest = text;
  for (const Piece& piece : kPieces) {
    if (!take(piece, rest).empty()) return false;
  }
  if (!take_fraction(rest, micro)) return false;
  const auto digit = [&](size_t at) { return text[at] - '0'; };
  const int year = digit(0) * 1000 + digit(1) * 100 + digit(2) * 10 + digit(3);
  const int month = digit(5) * 10 + digit(6);
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  const bool short_month = month == 4 || month == 6 || month == 9 || month == 11;
  const int days = month == 2 ? (leap ? 29 : 28) : (short_month ? 30 : 31);
  return digit(8) * 10 + digit(9) <= days && is_zone(rest);
}

std::string go_time_error(std::string_view text, bool micro) {
  const std::string layout =
      fmt::format("2006-01-02T15:04:05{}{}", micro ? kFraction : std::string_view(), kZone);
  const std::string quoted = Value(text).dump();
  const auto cannot = [&](std::string_view rest, std::string_view piece) {
    return fmt::format("parsing time {} as \"{}\": cannot parse {} as \"{}\"", quoted, layout,
                       Value(rest).dump(), piece);
  };
  std::string_view rest = text;
  for (const Piece& piece : kPieces) {
    const std::string why = take(piece, rest);
    if (why == "?") return cannot(rest, piece.layout);
    if (!why.empty()) return fmt::format("parsing time {}{}", quoted, why);
  }
  if (!take_fraction(rest, micro)) return cannot(rest, kFraction);
  const size_t zone = rest.starts_with('Z') ? 1 : 6;
  if (!is_zone(rest.substr(0, zone))) return cannot(rest, kZone);
  if (rest.size() > zone) {
    return fmt::format("parsing time {}: extra text: {}", quoted, Value(rest.substr(zone)).dump());
  }
  const bool kept = text.substr(0, 4) >= "1678" && text.substr(0, 4) <= "2261";
  return fmt::format("parsing time {}: {} out of range", quoted, kept ? "day" : "year");
}

}  // namespace tessera::kube
