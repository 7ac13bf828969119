#include "scheduler/config_lines.h"

namespace tessera::scheduler {
namespace {

std::string_view take_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

// Whether `text` begins with the key and its colon.
bool begins_with_key(std::string_view text, std::string_view key) {
  const bool quoted = !text.empty() && (text[0] == '"' || text[0] == '\'');
  const char quote = quoted ? text[0] : '\0';
  if (quoted) text.remove_prefix(1);
  if (!text.starts_with(key)) return false;
  text.remove_prefix(key.size());
  if (quoted) {
    if (!text.starts_with(quote)) return false;
    text.remove_prefix(1);
  }
  const size_t colon = text.find_first_not_of(" \t");
  return colon != std::string_view::npos && text[colon] == ':';
}

// Whether a line of a mapping's inside has the key: at its beginning, or after a brace or comma of flow style.
bool has_key(std::string_view line, std::string_view key) {
  bool may_begin = true;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '#' && (i == 0 || line[i - 1] == ' ')) return false;
    if (may_begin && c != ' ' && begins_with_key(line.substr(i), key)) return true;
    may_begin = c == '{' || c == ',' || (may_begin && c == ' ');
  }
  return false;
}

}  // namespace

int line_of(std::string_view yaml, std::string_view path) {
  if (path.empty()) return 0;
  const size_t dot = path.find('.');
  const std::string_view outer = path.substr(0, dot);
  const std::string_view inner =
      dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  int found = 0;
  int number = 0;
  while (!yaml.empty()) {
    const std::string_view line = take_line(yaml);
    ++number;
    const bool inside = line.empty() || line[0] == ' ' || line[0] == '#' || line[0] == '\r';
    if (found == 0) {
      if (!begins_with_key(line, outer)) continue;
      found = number;
      const size_t after = line.find(':');
      if (inner.empty() || has_key(line.substr(after + 1), inner)) return found;
    } else if (!inside && line[0] != '}') {
      return found;
    } else if (has_key(line, inner)) {
      return number;
    }
  }
  return found;
}

}  // namespace tessera::scheduler
