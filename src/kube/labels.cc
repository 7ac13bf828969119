#include "kube/labels.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "kube/validate_names.h"

namespace tessera::kube {
namespace {

using base::Code;

std::optional<int64_t> whole_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) out += between;
    out += part;
  }
  return out;
}

// What Kubernetes says of a requirement that makes no sense; empty where it does.
std::string objection_to(const Requirement& r) {
  std::vector<std::string> errors;
  const auto say = [&](std::string_view where, std::string_view value, std::string_view why) {
    errors.push_back(
        fmt::format("{}: Invalid value: {}: {}", where, json::Value(value).dump(), why));
  };
  const bool compares = r.op == SelectorOp::kGreaterThan || r.op == SelectorOp::kLessThan;
  for (size_t i = 0; i < r.values.size(); ++i) {
    if (compares && !whole_number(r.values[i])) {
      say(fmt::format("values[{}]", i), r.values[i],
          "for 'Gt', 'Lt' operators, the value must be an integer");
    }
    if (const Reasons why = check_label_value(r.values[i]); !why.empty()) {
      say(fmt::format("values[{}][{}]", i, r.key), r.values[i], joined(why, "; "));
    }
  }
  if (errors.size() < 2) return errors.empty() ? "" : errors[0];
  return fmt::format("[{}]", joined(errors, ", "));
}

enum class Token : uint8_t {
  kEnd,
  kWord,
  kIn,
  kNotIn,
  kOpen,
  kClose,
  kComma,
  kNot,
  kEquals,
  kNotEquals,
  kGreater,
  kLess
};

struct Lexeme {
  Token token = Token::kEnd;
  std::string_view text;
};

constexpr std::string_view kSpecial = "=!(),><";
constexpr std::string_view kSpace = " \t\r\n";

std::vector<Lexeme> scan(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, Token>, 9> kSymbols = {
      {{"==", Token::kEquals},
       {"!=", Token::kNotEquals},
       {"=", Token::kEquals},
       {"!", Token::kNot},
       {"(", Token::kOpen},
       {")", Token::kClose},
       {",", Token::kComma},
       {">", Token::kGreater},
       {"<", Token::kLess}}};
  std::vector<Lexeme> out;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (text.empty()) break;
    Lexeme next;
    for (const auto& [symbol, token] : kSymbols) {
      if (next.text.empty() && text.starts_with(symbol))
        next = {token, text.substr(0, symbol.size())};
    }
    if (next.text.empty()) {
      size_t end = 0;
      while (end < text.size() && kSpecial.find(text[end]) == text.npos &&
             kSpace.find(text[end]) == text.npos) {
        ++end;
      }
      next.text = text.substr(0, end);
      next.token =
          next.text == "in" ? Token::kIn : (next.text == "notin" ? Token::kNotIn : Token::kWord);
    }
    out.push_back(next);
    text.remove_prefix(next.text.size());
  }
  out.push_back({});
  return out;
}

class SelectorParser {
 public:
  explicit SelectorParser(std::string_view text) : lexemes_(scan(text)) {}

  base::Result<std::vector<Requirement>> run() {
    std::vector<Requirement> out;
    while (true) {
      const Lexeme first = peek();
      if (first.token == Token::kEnd) return out;
      if (first.token != Token::kWord && first.token != Token::kNot) {
        return base::error(Code::kBadRequest,
                           "found '{}', expected: !, identifier, or 'end of string'", first.text);
      }
      auto requirement = read_requirement();
      if (!requirement) {
        return base::error(requirement.error().in("unable to parse requirement"));
      }
      out.push_back(std::move(*requirement));
      const Lexeme next = take();
      if (next.token == Token::kEnd) return out;
      if (next.token != Token::kComma) {
        return base::error(Code::kBadRequest, "found '{}', expected: ',' or 'end of string'",
                           next.text);
      }
      const Lexeme after = peek();
      if (after.token != Token::kWord && after.token != Token::kNot) {
        return base::error(Code::kBadRequest, "found '{}', expected: identifier after ','",
                           after.text);
      }
    }
  }

 private:
  // Words stay words where no operator can stand.
  static Lexeme as_value(Lexeme lexeme) {
    if (lexeme.token == Token::kIn || lexeme.token == Token::kNotIn) lexeme.token = Token::kWord;
    return lexeme;
  }
  Lexeme peek() const { return as_value(lexemes_[at_]); }
  Lexeme take_raw() {
    const Lexeme lexeme = lexemes_[at_];
    if (at_ + 1 < lexemes_.size()) ++at_;
    return lexeme;
  }
  Lexeme take() { return as_value(take_raw()); }

  base::Result<Requirement> read_requirement() {
    Requirement out;
    Lexeme word = take();
    const bool negated = word.token == Token::kNot;
    if (negated) word = take();
    if (word.token != Token::kWord) {
      return base::error(Code::kBadRequest, "found '{}', expected: identifier", word.text);
    }
    out.key = word.text;
    if (const Reasons why = check_qualified_name(word.text); !why.empty()) {
      return base::error(Code::kBadRequest, "<nil>: Invalid value: {}: {}",
                         json::Value(word.text).dump(), joined(why, "; "));
    }
    if (negated) {
      out.op = SelectorOp::kDoesNotExist;
      return out;
    }
    if (peek().token == Token::kEnd || peek().token == Token::kComma) return out;
    TS_TRY_STATUS(read_operator(out.op));
    const bool set = out.op == SelectorOp::kIn || out.op == SelectorOp::kNotIn;
    TS_TRY_STATUS(set ? read_set(out.values) : read_value(out.values));
    std::ranges::sort(out.values);
    out.values.erase(std::unique(out.values.begin(), out.values.end()), out.values.end());
    if (const std::string why = objection_to(out); !why.empty()) {
      return base::error(Code::kBadRequest, "{}", why);
    }
    return out;
  }

  base::Status read_operator(SelectorOp& op) {
    const Lexeme lexeme = take_raw();
    switch (lexeme.token) {
      case Token::kIn:
        op = SelectorOp::kIn;
        return {};
      case Token::kNotIn:
        op = SelectorOp::kNotIn;
        return {};
      case Token::kEquals:
        op = SelectorOp::kEquals;
        return {};
      case Token::kNotEquals:
        op = SelectorOp::kNotEquals;
        return {};
      case Token::kGreater:
        op = SelectorOp::kGreaterThan;
        return {};
      case Token::kLess:
        op = SelectorOp::kLessThan;
        return {};
      default:
        return base::error(Code::kBadRequest, "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                           lexeme.text);
    }
  }

  base::Status read_value(std::vector<std::string>& values) {
    if (peek().token == Token::kEnd || peek().token == Token::kComma) {
      values.emplace_back();
      return {};
    }
    const Lexeme word = take();
    if (word.token != Token::kWord) {
      return base::error(Code::kBadRequest, "found '{}', expected: identifier", word.text);
    }
    values.emplace_back(word.text);
    return {};
  }

  // "(a,b)"; an empty place is an empty value.
  base::Status read_set(std::vector<std::string>& values) {
    const Lexeme open = take();
    if (open.token != Token::kOpen) {
      return base::error(Code::kBadRequest, "found '{}' expected: '('", open.text);
    }
    while (true) {
      Lexeme next = take();
      values.emplace_back();
      if (next.token == Token::kWord) {
        values.back() = next.text;
        next = take();
        if (next.token != Token::kComma && next.token != Token::kClose) {
          return base::error(Code::kBadRequest, "found '{}', expected: ',' or ')'", next.text);
        }
      }
      if (next.token == Token::kClose) return {};
      if (next.token != Token::kComma) {
        return base::error(Code::kBadRequest, "found '{}', expected: ',', or identifier",
                           next.text);
      }
    }
  }

  std::vector<Lexeme> lexemes_;
  size_t at_ = 0;
};

std::string text_of(const Requirement& r) {
  const std::string values = joined(r.values, ",");
  switch (r.op) {
    case SelectorOp::kEquals:
      return r.key + "=" + values;
    case SelectorOp::kNotEquals:
      return r.key + "!=" + values;
    case SelectorOp::kIn:
      return r.key + " in (" + values + ")";
    case SelectorOp::kNotIn:
      return r.key + " notin (" + values + ")";
    case SelectorOp::kExists:
      return r.key;
    case SelectorOp::kDoesNotExist:
      return "!" + r.key;
    case SelectorOp::kGreaterThan:
      return r.key + ">" + values;
    case SelectorOp::kLessThan:
      return r.key + "<" + values;
  }
  return r.key;
}

std::optional<SelectorOp> op_of(std::string_view word) {
  if (word == "In") return SelectorOp::kIn;
  if (word == "NotIn") return SelectorOp::kNotIn;
  if (word == "Exists") return SelectorOp::kExists;
  if (word == "DoesNotExist") return SelectorOp::kDoesNotExist;
  return std::nullopt;
}

// One of matchExpressions.
Requirement read_expression(const json::Value& expression, const std::string& path,
                            std::vector<base::Cause>& causes) {
  Requirement out;
  out.key = expression["key"].as_string();
  for (const json::Value& value : expression["values"].items()) out.values.push_back(value.str());
  const auto op = op_of(expression["operator"].as_string());
  out.op = op.value_or(SelectorOp::kExists);
  if (!op) {
    causes.push_back(
        invalid_value(path + ".operator", expression["operator"], "not a valid selector operator"));
  } else if (*op == SelectorOp::kIn || *op == SelectorOp::kNotIn) {
    if (out.values.empty()) {
      causes.push_back(
          required_value(path + ".values", "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (!out.values.empty()) {
    causes.push_back(forbidden(
        path + ".values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  }
  for (const std::string& why : check_qualified_name(out.key)) {
    causes.push_back(invalid_value(path + ".key", out.key, why));
  }
  for (size_t i = 0; i < out.values.size(); ++i) {
    for (const std::string& why : check_label_value(out.values[i])) {
      causes.push_back(invalid_value(fmt::format("{}.values[{}]", path, i), out.values[i], why));
    }
  }
  std::ranges::sort(out.values);
  out.values.erase(std::unique(out.values.begin(), out.values.end()), out.values.end());
  return out;
}

}  // namespace

bool Requirement::matches(std::optional<std::string_view> value) const {
  const auto listed = [&] { return std::ranges::find(values, *value) != values.end(); };
  switch (op) {
    case SelectorOp::kEquals:
    case SelectorOp::kIn:
      return value && listed();
    case SelectorOp::kNotEquals:
    case SelectorOp::kNotIn:
      return !value || !listed();
    case SelectorOp::kExists:
      return value.has_value();
    case SelectorOp::kDoesNotExist:
      return !value;
    case SelectorOp::kGreaterThan:
    case SelectorOp::kLessThan:
      break;
  }
  if (!value || values.size() != 1) return false;
  const auto left = whole_number(*value);
  const auto right = whole_number(values[0]);
  if (!left || !right) return false;
  return op == SelectorOp::kGreaterThan ? *left > *right : *left < *right;
}

LabelSelector::LabelSelector(std::vector<Requirement> requirements)
    : requirements_(std::move(requirements)) {
  std::ranges::stable_sort(requirements_, {}, &Requirement::key);
}

LabelSelector LabelSelector::nothing() {
  LabelSelector out;
  out.nothing_ = true;
  return out;
}

base::Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  TS_TRY(auto requirements, SelectorParser(text).run());
  return LabelSelector(std::move(requirements));
}

base::Result<LabelSelector> LabelSelector::from_json(const json::Value& selector,
                                                     std::string_view path) {
  if (selector.is_null()) return nothing();
  std::vector<base::Cause> causes;
  std::vector<Requirement> requirements;
  validate_labels(selector["matchLabels"], fmt::format("{}.matchLabels", path), causes);
  for (const json::Member& member : selector["matchLabels"].members()) {
    requirements.push_back({std::string(member.name()), SelectorOp::kEquals, {member.value.str()}});
  }
  size_t index = 0;
  for (const json::Value& expression : selector["matchExpressions"].items()) {
    requirements.push_back(
        read_expression(expression, fmt::format("{}.matchExpressions[{}]", path, index++), causes));
  }
  if (causes.empty()) return LabelSelector(std::move(requirements));
  std::string message = causes[0].field + ": " + causes[0].message;
  return base::error(base::Error{Code::kInvalid, std::move(message), std::move(causes)});
}

bool LabelSelector::matches(const StringMap& labels) const {
  if (nothing_) return false;
  return std::ranges::all_of(requirements_, [&](const Requirement& r) {
    const auto found = labels.find(r.key);
    return r.matches(found == labels.end() ? std::nullopt
                                           : std::optional<std::string_view>(found->second));
  });
}

bool LabelSelector::matches(const json::Value& labels) const {
  if (nothing_) return false;
  return std::ranges::all_of(requirements_, [&](const Requirement& r) {
    const json::Value* found = labels.find(r.key);
    return r.matches(found == nullptr ? std::nullopt
                                      : std::optional<std::string_view>(found->as_string()));
  });
}

std::string LabelSelector::to_string() const {
  std::string out;
  for (const Requirement& requirement : requirements_) {
    if (!out.empty()) out += ',';
    out += text_of(requirement);
  }
  return out;
}

namespace {

// "a\,b" -> "a,b".
base::Result<std::string> unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      const std::string_view pair = text.substr(i, 2);
      if (pair.size() < 2 || (pair[1] != '\\' && pair[1] != ',' && pair[1] != '=')) {
        return base::error(Code::kBadRequest, "invalid field selector: invalid escape sequence: {}",
                           pair);
      }
      ++i;
    } else if (text[i] == ',' || text[i] == '=') {
      return base::error(Code::kBadRequest,
                         "invalid field selector: unescaped character in value: {}",
                         static_cast<int>(text[i]));
    }
    out += text[i];
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == ',' || c == '=') out += '\\';
    out += c;
  }
  return out;
}

// Cuts at commas that no backslash precedes.
std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == ',') {
      out.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  out.push_back(text.substr(begin));
  return out;
}

}  // namespace

base::Result<FieldSelector> FieldSelector::parse(std::string_view text) {
  FieldSelector out;
  for (const std::string_view term : split_terms(text)) {
    if (term.empty()) continue;
    size_t at = 0;
    while (at < term.size() && term[at] != '=' && !term.substr(at).starts_with("!=")) ++at;
    if (at == term.size()) {
      return base::error(Code::kBadRequest, "invalid selector: '{}'; can't understand '{}'", text,
                         term);
    }
    const std::string_view rest = term.substr(at);
    const bool equal = rest[0] == '=';
    const size_t width = !equal || rest.starts_with("==") ? 2 : 1;
    TS_TRY(std::string value, unescaped(rest.substr(width)));
    out.requirements_.push_back({std::string(term.substr(0, at)), equal, std::move(value)});
  }
  std::ranges::sort(out.requirements_, {},
                    [](const FieldRequirement& r) { return std::tie(r.field, r.equal, r.value); });
  return out;
}

bool FieldSelector::matches(
    const std::function<std::string_view(std::string_view field)>& field_of) const {
  return std::ranges::all_of(requirements_, [&](const FieldRequirement& r) {
    return (field_of(r.field) == r.value) == r.equal;
  });
}

std::optional<std::string_view> FieldSelector::exact(std::string_view field) const {
  for (const FieldRequirement& r : requirements_) {
    if (r.equal && r.field == field) return r.value;
  }
  return std::nullopt;
}

std::string FieldSelector::to_string() const {
  std::string out;
  for (const FieldRequirement& r : requirements_) {
    if (!out.empty()) out += ',';
    out += r.field + (r.equal ? "=" : "!=") + escaped(r.value);
  }
  return out;
}

}  // namespace tessera::kube
