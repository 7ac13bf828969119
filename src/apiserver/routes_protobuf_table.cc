#include "apiserver/routes_protobuf_table.h"

#include <charconv>
#include <map>

#include "apiserver/routes_protobuf.h"
#include "base/check.h"

namespace tessera::apiserver {
namespace {

using Table = std::map<std::string_view, ProtobufMessage>;

std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

ProtobufField parse_field(const Table& table, std::string_view word) {
  ProtobufField field;
  const std::string_view number = take_until(word, ':');
  std::from_chars(number.data(), number.data() + number.size(), field.number);
  field.name = take_until(word, ':');
  if (word.ends_with('?')) {
    field.keeps_zero = true;
    word.remove_suffix(1);
  }
  for (; word.starts_with('*') || word.starts_with('%'); word.remove_prefix(1)) {
    (word.front() == '*' ? field.list : field.map) = true;
  }
  TS_CHECK(!word.empty());
  field.code = word.front();
  if (field.code == '@') {
    const auto found = table.find(word.substr(1));
    TS_CHECK(found != table.end());
    field.message = &found->second;
  }
  return field;
}

Table parse_table() {
  Table table;
  for (std::string_view text = kProtobufFields; !text.empty();) {
    std::string_view line = take_until(text, '\n');
    if (!line.empty()) {
      const std::string_view name = take_until(line, ' ');
      table[name].name = name;
    }
  }
  for (std::string_view text = kProtobufFields; !text.empty();) {
    std::string_view line = take_until(text, '\n');
    if (line.empty()) continue;
    ProtobufMessage& message = table[take_until(line, ' ')];
    while (!line.empty()) message.fields.push_back(parse_field(table, take_until(line, ' ')));
  }
  return table;
}

}  // namespace

const ProtobufField* ProtobufMessage::field(uint32_t number) const {
  for (const ProtobufField& one : fields) {
    if (one.number == number) return &one;
  }
  return nullptr;
}

const ProtobufMessage* find_protobuf_message(std::string_view name) {
  static const Table table = parse_table();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace tessera::apiserver
