#include "apiserver/server_types.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"

namespace tessera::apiserver {
namespace {

using json::Value;

struct Field {
  std::string_view shown;
  std::string_view path;
  std::string_view code;
  bool optional = false;
};
using Type = std::vector<Field>;

std::string_view take_word(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return word;
}

const Type& type_named(std::string_view name) {
  static const std::map<std::string_view, Type> kTypes = [] {
    std::map<std::string_view, Type> out;
    std::string_view text = kServerTypes;
    while (!text.empty()) {
      std::string_view line = take_word(text, '\n');
      Type& type = out[take_word(line, ' ')];
      while (!line.empty()) {
        std::string_view word = take_word(line, ' ');
        Field field;
        field.shown = take_word(word, ':');
        field.path = take_word(word, ':');
        field.optional = word.ends_with('?');
        field.code = word.substr(0, word.size() - (field.optional ? 1 : 0));
        type.push_back(field);
      }
    }
    return out;
  }();
  const auto found = kTypes.find(name);
  TS_CHECK(found != kTypes.end(), "data/server.types has no {}", name);
  return found->second;
}

const Value& value_at(const Value& object, const Value& above, std::string_view path) {
  static const Value kNone;
  if (path.empty()) return kNone;
  if (path.starts_with('^')) return above[path.substr(1)];
  const Value* at = &object;
  while (!path.empty()) at = &(*at)[take_word(path, '.')];
  return *at;
}

class Writer {
 public:
  explicit Writer(bool indented) : indented_(indented) {}
  std::string take() { return std::move(out_); }

  void write(std::string_view code, const Value& value, const Value& above) {
    const char first = code.front();
    if (first == '*') {
      if (value.is_null()) return text("null");
      return write(code.substr(1), value, above);
    }
    if (first == '[') return list(code.substr(1), value, above);
    if (first == '@') return object(code.substr(1), value, above);
    if (first == '%') return map(value);
    if (value.is_null()) return text(first == 's' ? "\"\"" : zero(first));
    text(value.dump());
  }

 private:
  static std::string_view zero(char code) {
    return code == 'b' ? "false" : code == 'i' ? "0" : code == 'q' ? "\"0\"" : "null";
  }

  void text(std::string_view words) { out_ += words; }

  void item(bool first) {
    if (!first) out_ += ',';
    if (!indented_) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(depth_), ' ');
  }
  void name(std::string_view name) {
    out_ += Value(name).dump();
    out_ += indented_ ? ": " : ":";
  }
  template <class F>
  void block(char open, char close, F inside) {
    out_ += open;
    ++depth_;
    const bool any = inside();
    --depth_;
    if (any && indented_) {
      out_ += '\n';
      out_.append(static_cast<size_t>(depth_), ' ');
    }
    out_ += close;
  }

  void list(std::string_view code, const Value& value, const Value& above) {
    if (value.is_null()) return text("null");
    block('[', ']', [&] {
      for (size_t i = 0; i < value.size(); ++i) {
        item(i == 0);
        write(code, value.at(i), above);
      }
      return !value.empty();
    });
  }

  void map(const Value& value) {
    if (value.empty()) return text("null");
    block('{', '}', [&] {
      bool first = true;
      for (const json::Member& member : value.members()) {
        item(std::exchange(first, false));
        name(member.name());
        text(member.value.dump());
      }
      return true;
    });
  }

  void object(std::string_view type, const Value& value, const Value& above) {
    block('{', '}', [&] {
      bool first = true;
      for (const Field& field : type_named(type)) {
        const Value& found = value_at(value, above, field.path);
        if (field.optional && found.is_null()) continue;
        item(std::exchange(first, false));
        name(field.shown);
        write(field.code, found, value);
      }
      return !first;
    });
  }

  bool indented_;
  int depth_ = 0;
  std::string out_;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

// A line of the diff: in both, or in one of the two texts.
struct Line {
  char sign = ' ';
  std::string_view text;
};

// The longest common lines of the middle; one that is too large is replaced as a whole.
void diff_middle(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b,
                 std::vector<Line>& out) {
  constexpr size_t kCellsMax = 1'000'000;
  const bool small = (a.size() + 1) * (b.size() + 1) <= kCellsMax;
  const size_t width = b.size() + 1;
  std::vector<uint32_t> common(small ? (a.size() + 1) * width : 0);
  for (size_t i = a.size(); small && i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i * width + j] =
          a[i] == b[j] ? common[(i + 1) * width + j + 1] + 1
                       : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (small && i < a.size() && j < b.size() && a[i] == b[j]) {
      out.push_back({' ', a[i]});
      ++i, ++j;
    } else if (i < a.size() && (!small || j == b.size() ||
                                common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      out.push_back({'-', a[i++]});
    } else {
      out.push_back({'+', b[j++]});
    }
  }
}

std::vector<Line> diff_lines(std::vector<std::string_view> a, std::vector<std::string_view> b) {
  std::vector<Line> out;
  size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) {
    out.push_back({' ', a[head++]});
  }
  std::vector<std::string_view> tail;
  while (a.size() > head && b.size() > head && a.back() == b.back()) {
    tail.push_back(a.back());
    a.pop_back();
    b.pop_back();
  }
  const auto skip = static_cast<ptrdiff_t>(head);
  diff_middle({a.begin() + skip, a.end()}, {b.begin() + skip, b.end()}, out);
  for (size_t i = tail.size(); i-- > 0;) out.push_back({' ', tail[i]});
  return out;
}

// "7,3"; a range of one line is its number, an empty one stands after its line.
std::string range_of(size_t before, size_t count) {
  if (count == 1) return std::to_string(before + 1);
  return fmt::format("{},{}", count == 0 ? before : before + 1, count);
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after) {
  constexpr size_t kContext = 3;
  const std::vector<Line> lines = diff_lines(lines_of(before), lines_of(after));
  std::string out;
  size_t at_a = 0;
  size_t at_b = 0;
  for (size_t i = 0; i < lines.size();) {
    // The next change, and the end of the last one that is near to the one before it.
    size_t change = i;
    while (change < lines.size() && lines[change].sign == ' ') ++change;
    if (change == lines.size()) break;
    const size_t begin = change - std::min(change - i, kContext);
    size_t end = change + 1;
    for (size_t k = end; k < lines.size() && k <= end + 2 * kContext; ++k) {
      if (lines[k].sign != ' ') end = k + 1;
    }
    end = std::min(end + kContext, lines.size());
    at_a += begin - i;
    at_b += begin - i;
    size_t count_a = 0;
    size_t count_b = 0;
    std::string text;
    for (size_t k = begin; k < end; ++k) {
      count_a += lines[k].sign != '+';
      count_b += lines[k].sign != '-';
      (text += lines[k].sign) += lines[k].text;
    }
    out += fmt::format("@@ -{} +{} @@\n", range_of(at_a, count_a), range_of(at_b, count_b)) + text;
    at_a += count_a;
    at_b += count_b;
    i = end;
  }
  return out;
}

std::string server_text(std::string_view type, const Value& object) {
  Writer writer(false);
  writer.write("@" + std::string(type), object, Value());
  return writer.take();
}

std::string server_diff(std::string_view type, const Value& before, const Value& after) {
  const auto pretty = [&](const Value& object) {
    Writer writer(true);
    writer.write("@" + std::string(type), object, Value());
    return writer.take() + "\n";
  };
  return unified_diff(pretty(before), pretty(after));
}

}  // namespace tessera::apiserver
