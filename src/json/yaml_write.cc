// Writing YAML as go-yaml v2 does, which kubectl prints with: keys sorted, lists not indented, strings plain where they
// read back as the same string. Long lines are not folded.

#include <array>

#include "json/yaml.h"
#include "json/yaml_scalar.h"

namespace tessera::json {
namespace {

enum class Style { kPlain, kSingle, kDouble, kLiteral };

bool blank_or_end(std::string_view s, size_t at) {
  return at >= s.size() || s[at] == ' ' || s[at] == '\t' || s[at] == '\n';
}

// Bytes of a character that must be escaped: control characters, line breaks of Unicode, byte order marks; 0: none.
size_t special_at(std::string_view s, size_t at) {
  const auto c = static_cast<unsigned char>(s[at]);
  if ((c < 0x20 && c != '\n') || c == 0x7f) return 1;
  if (c < 0x80) return 0;
  const std::string_view rest = s.substr(at);
  if (c == 0xc2 && rest.size() > 1 && static_cast<unsigned char>(rest[1]) < 0xa0) return 2;
  for (const std::string_view bad :
       {"\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    if (rest.starts_with(bad)) return 3;
  }
  return 0;
}

// Sexagesimal numbers of YAML 1.1, "1:30": quoted for other readers' sake.
bool base60(std::string_view s) {
  const size_t from = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
  return s.size() > from && s[from] >= '0' && s[from] <= '9' && s.find(':') != s.npos &&
         s.find_first_not_of("0123456789_:.", from) == s.npos;
}

bool plain_allowed(std::string_view s) {
  if (s.empty() || s.front() == ' ' || s.back() == ' ') return false;
  if (s.starts_with("---") || s.starts_with("...")) return false;
  if (std::string_view("#,[]{}&*!|>'\"%@`").find(s[0]) != s.npos) return false;
  if ((s[0] == '-' || s[0] == '?' || s[0] == ':') && blank_or_end(s, 1)) return false;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == ':' && blank_or_end(s, i + 1)) return false;
    if (s[i] == '#' && i > 0 && s[i - 1] == ' ') return false;
  }
  return true;
}

// A block keeps lines as they are; not where they begin or end with white space or nothing stands on the first.
bool literal_allowed(std::string_view s) {
  if (s[0] == ' ' || s[0] == '\n' || s.back() == ' ') return false;
  return s.find(" \n") == s.npos;
}

Style style_of(std::string_view s, bool key) {
  for (size_t i = 0; i < s.size(); ++i) {
    if (special_at(s, i) > 0) return Style::kDouble;
  }
  if (s.find('\n') != s.npos) {
    return !key && literal_allowed(s) ? Style::kLiteral : Style::kDouble;
  }
  if (!resolve_plain(s).is_string() || s == "<<" || base60(s)) return Style::kDouble;
  return plain_allowed(s) ? Style::kPlain : Style::kSingle;
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  // A value that stands on a line of its own, or after "- ", with `indent` for what follows.
  void block(const Value& v, size_t indent) {
    if (v.is_object() && !v.empty()) {
      bool first = true;
      for (const Member& member : v.members()) {
        if (!first) out_.append(indent, ' ');
        first = false;
        write_member(member, indent);
      }
      return;
    }
    if (v.is_array() && !v.empty()) {
      bool first = true;
      for (const Value& item : v.items()) {
        if (!first) out_.append(indent, ' ');
        first = false;
        out_ += "- ";
        block(item, indent + 2);
      }
      return;
    }
    inline_value(v, indent < 2 ? 0 : indent - 2);
    out_ += '\n';
  }

 private:
  void write_member(const Member& member, size_t indent) {
    constexpr size_t kKeyMax = 128;  // a longer one needs the explicit form
    const bool explicit_key = member.name().size() > kKeyMax;
    if (explicit_key) out_ += "? ";
    string(member.name(), true, indent);
    if (explicit_key) out_.append("\n").append(indent, ' ');
    out_ += ':';
    const Value& v = member.value;
    if (v.is_object() && !v.empty()) {
      out_.append("\n").append(indent + 2, ' ');
      block(v, indent + 2);
    } else if (v.is_array() && !v.empty()) {
      out_.append("\n").append(indent, ' ');
      block(v, indent);
    } else {
      out_ += ' ';
      inline_value(v, indent);
      out_ += '\n';
    }
  }

  void inline_value(const Value& v, size_t indent) {
    if (v.is_string()) {
      string(v.as_string(), false, indent);
    } else {
      v.dump_to(out_);  // null, true, 1.5, {} and [] are the same in YAML
    }
  }

  void string(std::string_view s, bool key, size_t indent) {
    switch (style_of(s, key)) {
      case Style::kPlain:
        out_ += s;
        return;
      case Style::kSingle:
        single(s);
        return;
      case Style::kDouble:
        double_quoted(s);
        return;
      case Style::kLiteral:
        literal(s, indent + 2);
        return;
    }
  }

  void single(std::string_view s) {
    out_ += '\'';
    for (const char c : s) {
      if (c == '\'') out_ += '\'';
      out_ += c;
    }
    out_ += '\'';
  }

  void double_quoted(std::string_view s) {
    out_ += '"';
    for (size_t i = 0; i < s.size();) {
      if (const size_t width = special_at(s, i); width > 0) {
        escape(s.substr(i, width));
        i += width;
        continue;
      }
      if (s[i] == '\n') {
        out_ += "\\n";
      } else {
        if (s[i] == '"' || s[i] == '\\') out_ += '\\';
        out_ += s[i];
      }
      ++i;
    }
    out_ += '"';
  }

  void escape(std::string_view c) {
    const auto byte = [&](size_t i) {
      return static_cast<unsigned>(static_cast<unsigned char>(c[i]));
    };
    if (c == "\t") {
      out_ += "\\t";
    } else if (c == "\r") {
      out_ += "\\r";
    } else if (c.size() == 1) {
      out_ += fmt::format("\\x{:02X}", byte(0));
    } else if (c.size() == 2) {
      out_ += fmt::format("\\u{:04X}", (byte(0) & 31) << 6 | (byte(1) & 63));
    } else {
      out_ += fmt::format("\\u{:04X}", (byte(0) & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63));
    }
  }

  void literal(std::string_view s, size_t indent) {
    out_ += s.back() != '\n' ? "|-" : (s.ends_with("\n\n") ? "|+" : "|");
    if (s.back() == '\n') s.remove_suffix(1);
    while (true) {
      const size_t end = s.find('\n');
      out_ += '\n';
      if (end != 0 && !s.empty()) out_.append(indent, ' ').append(s.substr(0, end));
      if (end == s.npos) return;
      s.remove_prefix(end + 1);
    }
  }

  std::string& out_;
};

}  // namespace

std::string to_yaml(const Value& value) {
  std::string out;
  Writer(out).block(value, 0);
  return out;
}

}  // namespace tessera::json
