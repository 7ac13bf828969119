#include "apiserver/crd_columns.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "apiserver/columns.h"

namespace tessera::apiserver {
namespace {

using json::Value;

tl::unexpected<base::Error> bad_path(std::string_view text) {
  return base::error(base::Code::kInvalid, "unrecognized JSONPath \"{}\"", text.substr(0, 64));
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || static_cast<unsigned char>(c) >= 0x80;
}

constexpr int kDepthMax = 16;  // of filters in filters

}  // namespace

class JsonPath::Parser {
 public:
  Parser(std::string_view text, int depth) : text_(text), depth_(depth) {}

  base::Result<JsonPath> run() {
    JsonPath out;
    if (depth_ > kDepthMax) return bad_path(text_);
    if (peek() == '$' || peek() == '@') ++at_;
    while (at_ < text_.size()) {
      TS_TRY(Step step, next());
      // "." alone is the whole object.
      if (step.kind == Kind::kName && step.name.empty()) {
        if (at_ < text_.size()) return bad_path(text_);
        continue;
      }
      out.steps_.push_back(std::move(step));
    }
    return out;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  base::Result<Step> next() {
    Step step;
    if (peek() == '[') return bracket();
    if (peek() == '.') {
      ++at_;
      if (peek() == '[') return bracket();
      if (peek() == '.') {
        ++at_;
        step.kind = Kind::kDeep;
      }
    }
    if (peek() == '*') {
      ++at_;
      if (step.kind == Kind::kDeep) return bad_path(text_);
      step.kind = Kind::kAll;
      return step;
    }
    while (at_ < text_.size()) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        step.name += text_[at_ + 1];
        at_ += 2;
      } else if (is_name_byte(text_[at_]) || text_[at_] == '/' || text_[at_] == '$') {
        step.name += text_[at_++];
      } else {
        break;
      }
    }
    const bool ends = at_ >= text_.size() || text_[at_] == '.' || text_[at_] == '[';
    if (!ends || (step.kind == Kind::kDeep && step.name.empty())) return bad_path(text_);
    return step;
  }

  // Where the bracket that opens at at_ closes; quotes hide brackets.
  size_t closing() const {
    int open = 0;
    char quote = '\0';
    for (size_t i = at_; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '[') {
        ++open;
      } else if (c == ']' && --open == 0) {
        return i;
      }
    }
    return std::string_view::npos;
  }

  base::Result<Step> bracket() {
    const size_t end = closing();
    if (end == std::string_view::npos) return bad_path(text_);
    const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    Step step;
    if (inner == "*") {
      step.kind = Kind::kAll;
      return step;
    }
    if (inner.size() >= 2 && (inner.front() == '\'' || inner.front() == '"') &&
        inner.back() == inner.front()) {
      step.name = inner.substr(1, inner.size() - 2);
      return step;
    }
    if (inner.starts_with("?(") && inner.ends_with(")")) {
      return filter(inner.substr(2, inner.size() - 3));
    }
    return range(inner);
  }

  static bool read_number(std::string_view text, int64_t& out) {
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out);
    return bad == std::errc() && end == text.data() + text.size();
  }

  base::Result<Step> range(std::string_view inner) {
    Step step;
    const size_t colon = inner.find(':');
    if (colon == std::string_view::npos) {
      step.kind = Kind::kIndex;
      if (!read_number(inner, step.from)) return bad_path(text_);
      return step;
    }
    step.kind = Kind::kSlice;
    const std::string_view from = inner.substr(0, colon);
    const std::string_view to = inner.substr(colon + 1);
    step.open_end = to.empty();
    if (!from.empty() && !read_number(from, step.from)) return bad_path(text_);
    if (!to.empty() && !read_number(to, step.to)) return bad_path(text_);
    return step;
  }

  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
  }

  // Where the operator stands outside of quotes.
  static size_t operator_at(std::string_view text, std::string_view& found) {
    char quote = '\0';
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (quote != '\0') {
        if (c == quote) quote = '\0';
        continue;
      }
      if (c == '\'' || c == '"') quote = c;
      for (const std::string_view word : {"==", "!=", "<=", ">=", "<", ">"}) {
        if (!text.substr(i).starts_with(word)) continue;
        found = word;
        return i;
      }
    }
    return std::string_view::npos;
  }

  base::Status side(std::string_view text, std::shared_ptr<const JsonPath>& path, Value& literal) {
    text = trimmed(text);
    if (text.starts_with("@") || text.starts_with("$") || text.starts_with(".")) {
      TS_TRY(JsonPath parsed, Parser(text, depth_ + 1).run());
      path = std::make_shared<const JsonPath>(std::move(parsed));
      return {};
    }
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
        text.back() == text.front()) {
      literal = text.substr(1, text.size() - 2);
      return {};
    }
    int64_t number = 0;
    double real = 0;
    if (text == "true" || text == "false") {
      literal = text == "true";
    } else if (read_number(text, number)) {
      literal = number;
    } else if (const auto [end, bad] =
                   std::from_chars(text.data(), text.data() + text.size(), real);
               bad == std::errc() && end == text.data() + text.size() && std::isfinite(real)) {
      literal = real;
    } else {
      return bad_path(text_);
    }
    return {};
  }

  base::Result<Step> filter(std::string_view inner) {
    Step step;
    step.kind = Kind::kFilter;
    std::string_view word;
    const size_t at = operator_at(inner, word);
    Value none;
    TS_TRY_STATUS(side(inner.substr(0, at), step.left, none));
    if (step.left == nullptr) return bad_path(text_);
    if (at == std::string_view::npos) return step;
    step.name = word;
    TS_TRY_STATUS(side(inner.substr(at + word.size()), step.right, step.literal));
    return step;
  }

  std::string_view text_;
  int depth_;
  size_t at_ = 0;
};

base::Result<JsonPath> JsonPath::parse(std::string_view text) {
  return Parser(text, 0).run();
}

std::vector<Value> JsonPath::find(const Value& object, size_t limit) const {
  std::vector<Value> out;
  walk(object, 0, limit, out);
  return out;
}

bool JsonPath::holds(const Step& filter, const Value& value) {
  const std::vector<Value> left = filter.left->find(value, 1);
  if (left.empty()) return false;
  if (filter.name.empty()) return true;
  Value right = filter.literal;
  if (filter.right != nullptr) {
    const std::vector<Value> found = filter.right->find(value, 1);
    if (found.empty()) return false;
    right = found[0];
  }
  if (filter.name == "==") return left[0] == right;
  if (filter.name == "!=") return !(left[0] == right);
  int order = 0;
  if (left[0].is_number() && right.is_number()) {
    const double difference = left[0].as_double() - right.as_double();
    order = difference < 0 ? -1 : (difference > 0 ? 1 : 0);
  } else if (left[0].is_string() && right.is_string()) {
    order = left[0].as_string().compare(right.as_string());
  } else {
    return false;
  }
  const bool less = filter.name[0] == '<';
  if (order == 0) return filter.name.size() == 2;
  return less ? order < 0 : order > 0;
}

void JsonPath::walk(const Value& value, size_t step, size_t limit, std::vector<Value>& out) const {
  if (out.size() >= limit) return;
  if (step == steps_.size()) {
    out.push_back(value);
    return;
  }
  const Step& now = steps_[step];
  const auto size = static_cast<int64_t>(value.size());
  switch (now.kind) {
    case Kind::kName:
      if (const Value* member = value.find(now.name)) walk(*member, step + 1, limit, out);
      return;
    case Kind::kIndex: {
      const int64_t at = now.from < 0 ? now.from + size : now.from;
      if (value.is_array() && at >= 0 && at < size) {
        walk(value.at(static_cast<size_t>(at)), step + 1, limit, out);
      }
      return;
    }
    case Kind::kSlice: {
      if (!value.is_array()) return;
      const int64_t from = now.from < 0 ? now.from + size : now.from;
      const int64_t to = now.open_end ? size : (now.to < 0 ? now.to + size : now.to);
      for (int64_t i = std::max<int64_t>(from, 0); i < std::min(to, size); ++i) {
        walk(value.at(static_cast<size_t>(i)), step + 1, limit, out);
      }
      return;
    }
    case Kind::kAll:
    case Kind::kFilter:
      for (const Value& item : value.items()) {
        if (now.kind == Kind::kAll || holds(now, item)) walk(item, step + 1, limit, out);
      }
      if (now.kind == Kind::kFilter) return;
      for (const json::Member& member : value.members()) walk(member.value, step + 1, limit, out);
      return;
    case Kind::kDeep:
      if (const Value* member = value.find(now.name)) walk(*member, step + 1, limit, out);
      for (const Value& item : value.items()) walk(item, step, limit, out);
      for (const json::Member& member : value.members()) walk(member.value, step, limit, out);
      return;
  }
}

namespace {

Value cell_of(std::string_view type, const Value& value, base::Time now) {
  if (value.is_null()) return {};
  if (type == "string") return value.is_string() ? value : Value(value.dump());
  if (type == "integer") {
    if (value.is_int()) return value;
    constexpr double kMax = 9e18;
    const double number = value.as_double();
    const bool fits = value.is_number() && number > -kMax && number < kMax;
    return fits ? Value(static_cast<int64_t>(number)) : Value();
  }
  if (type == "number") return value.is_number() ? value : Value();
  if (type == "boolean") return value.is_bool() ? value : Value();
  if (type != "date" || !value.is_string()) return {};
  const auto then = base::parse_rfc3339(value.as_string());
  return then ? Value(base::to_human(now - *then)) : Value("<invalid>");
}

Column column_of(const Value& printer, JsonPath path) {
  Column column;
  column.name = printer["name"].str();
  column.type = printer["type"].str();
  column.format = printer["format"].str();
  column.priority = static_cast<int>(printer["priority"].as_int());
  column.description = printer["description"].str();
  if (column.description.empty()) {
    column.description = fmt::format("Custom resource definition column (in JSONPath format): {}",
                                     printer["jsonPath"].as_string());
  }
  column.cell = [type = column.type, path = std::move(path)](const kube::Object& object,
                                                             base::Time now) {
    const std::vector<Value> found = path.find(object.json(), 1);
    return found.empty() ? Value() : cell_of(type, found[0], now);
  };
  return column;
}

}  // namespace

std::vector<Column> custom_columns(const Value& printer_columns) {
  std::vector<Column> out = {name_column()};
  if (printer_columns.empty()) {
    const Value age = Value::object(
        {{"name", "Age"}, {"type", "date"}, {"jsonPath", ".metadata.creationTimestamp"}});
    if (auto path = JsonPath::parse(age["jsonPath"].as_string())) {
      out.push_back(column_of(age, std::move(*path)));
    }
    return out;
  }
  for (const Value& printer : printer_columns.items()) {
    auto path = JsonPath::parse(printer["jsonPath"].as_string());
    if (!path) break;  // the columns before it stay, as with Kubernetes
    out.push_back(column_of(printer, std::move(*path)));
  }
  return out;
}

}  // namespace tessera::apiserver
