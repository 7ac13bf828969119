// Reading YAML: yaml-cpp scans and parses, this file builds the values, follows aliases and keeps the limits.

#include "json/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "json/parse.h"
#include "json/yaml_scalar.h"

namespace tessera::json {
namespace {

using base::Code;

struct Fault {
  Code code;
  int line;  // from 0, as yaml-cpp counts
  int column;
  std::string message;
};

[[noreturn]] void fail(const YAML::Mark& mark, std::string message, Code code = Code::kBadRequest) {
  throw Fault{code, mark.line, mark.column, std::move(message)};
}

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string out = Value(text.substr(0, kShown)).dump();
  if (text.size() > kShown) out += "...";
  return out;
}

// What stands in a mapping's key place, as the JSON key it becomes.
std::string key_text(const Value& key, const YAML::Mark& mark) {
  if (key.is_string()) return key.str();
  if (key.type() == Type::kDouble) return fmt::format("{}", static_cast<float>(key.as_double()));
  if (key.is_null()) fail(mark, "a key is empty; write one before the ':', in quotes if need be");
  return key.dump();
}

// yaml-cpp reads the escapes \N and \_ as the single bytes 0x85 and 0xa0; in UTF-8 these characters have two.
std::string with_whole_escapes(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (c == 0x85 || c == 0xa0) out += '\xc2';
    out.append(text, i, length);
    i += length;
  }
  return out;
}

class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view text, const YamlOptions& options) : text_(text), options_(options) {}

  std::vector<Value> take() { return std::move(documents_); }
  // yaml-cpp takes the end of the text for a closing quote, so the last scalar must be looked at again.
  const std::optional<YAML::Mark>& last_quoted() const { return last_quoted_; }
  int document() const { return document_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // At a character that begins nothing yaml-cpp makes empty documents for ever.
    if (document_ > 0 && mark.pos == document_at_) {
      fail(mark, "a character that begins no value, such as ','; quote the text");
    }
    document_at_ = mark.pos;
    // yaml-cpp takes what follows a document's end for another one.
    if (++document_ > 1 && !line_starts_with(mark.line, "---")) {
      --document_;
      fail(mark,
           "text after the end of the document; check the indentation, or write '---' between "
           "documents");
    }
    anchors_.clear();
    values_.clear();
    nodes_ = 0;
  }
  void OnDocumentEnd() override {
    if (!values_.empty() && !values_.back().value.is_null()) {
      documents_.push_back(std::move(values_.back().value));
    }
    values_.clear();
  }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    count(mark, 1);
    put(mark, {Value(), 1, 0}, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      fail(mark, "an alias inside the very node that it names; a value cannot contain itself");
    }
    const Built built = found->second;
    count(mark, built.nodes);
    check_depth(mark, built.height);
    put(mark, built, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    count(mark, 1);
    if (tag != "?") last_quoted_ = mark;
    if (tag == "?" && text == "<<" && at_key()) {
      frames_.back().merging = true;
      frames_.back().key_next = false;
      return;
    }
    put(mark, {scalar(mark, tag, tag == "?" ? text : with_whole_escapes(text)), 1, 0}, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, false, "tag:yaml.org,2002:seq");
  }
  void OnSequenceEnd() override {
    const Frame frame = close();
    std::vector<Value> items;
    Built built{Value(), 1, 0};
    for (size_t i = frame.start; i < values_.size(); ++i) {
      built.nodes += values_[i].nodes;
      built.height = std::max(built.height, values_[i].height + 1);
      items.push_back(std::move(values_[i].value));
    }
    values_.resize(frame.start);
    built.value = array_of(items);
    put(frame.mark, std::move(built), frame.anchor);
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, true, "tag:yaml.org,2002:map");
  }
  void OnMapEnd() override {
    const Frame frame = close();
    const auto members = std::span(members_).subspan(frame.start);
    std::string twice;
    Value made = ObjectBuilder::build(members, &twice);
    if (!twice.empty()) {
      const YAML::Mark& mark = mark_of_second(made, frame.start);
      fail(mark, fmt::format("key {} stands twice in one mapping; keep one", quoted(last_key_)));
    }
    for (const Value& source : frame.merges) {
      for (const Member& member : source.members()) {
        if (!made.contains(member.name())) made.set(member.name(), member.value);
      }
    }
    members_.resize(frame.start);
    key_marks_.resize(frame.start);
    key_names_.resize(frame.start);
    put(frame.mark, {std::move(made), frame.nodes, frame.height}, frame.anchor);
  }

 private:
  // A finished value with the nodes it would have written out, and how deep it goes.
  struct Built {
    Value value;
    size_t nodes = 1;
    int height = 0;
  };
  struct Frame {
    bool map = false;
    size_t start = 0;  // of its children in values_ or members_
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    bool key_next = true;
    bool merging = false;
    std::vector<Value> merges;
    size_t nodes = 1;
    int height = 0;
  };

  bool at_key() const { return !frames_.empty() && frames_.back().map && frames_.back().key_next; }

  void count(const YAML::Mark& mark, size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > options_.nodes_max) {
      fail(mark,
           fmt::format("more than {} values with aliases written out; use fewer aliases",
                       options_.nodes_max),
           Code::kTooLarge);
    }
  }
  void check_depth(const YAML::Mark& mark, int height) const {
    if (static_cast<int>(frames_.size()) + height > options_.depth_max) {
      fail(mark, fmt::format("nested deeper than {} levels", options_.depth_max), Code::kTooLarge);
    }
  }

  Value scalar(const YAML::Mark& mark, const std::string& tag, const std::string& text) const {
    constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return Value(text);
    const Value plain = resolve_plain(text);
    if (plain.type() == Type::kDouble && !std::isfinite(plain.as_double())) {
      fail(mark, fmt::format("{} is no number that JSON can hold; quote it if it is text", text));
    }
    if (tag == "?" || tag.empty()) return plain;
    const std::string_view kind = tag.starts_with(kPrefix)
                                      ? std::string_view(tag).substr(kPrefix.size())
                                      : std::string_view();
    if (kind == "int" && plain.is_int()) return plain;
    if (kind == "bool" && plain.is_bool()) return plain;
    if (kind == "null" && plain.is_null()) return plain;
    if (kind == "float" && plain.is_number()) return Value(plain.as_double());
    fail(mark, fmt::format("tag {} does not fit the value {}; leave the tag out", quoted(tag),
                           quoted(text)));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, bool map,
            std::string_view plain_tag) {
    count(mark, 1);
    if (at_key()) fail(mark, "a key that is a list or a mapping; keys must be plain text");
    if (!tag.empty() && tag != "?" && tag != "!" && tag != plain_tag) {
      fail(mark, fmt::format("unknown tag {}; leave it out", quoted(tag)));
    }
    Frame frame;
    frame.map = map;
    frame.start = map ? members_.size() : values_.size();
    frame.mark = mark;
    frame.anchor = anchor;
    frames_.push_back(std::move(frame));
    check_depth(mark, 0);
  }
  Frame close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    return frame;
  }

  void put(const YAML::Mark& mark, Built built, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_.insert_or_assign(anchor, built);
    if (frames_.empty() || !frames_.back().map) {
      values_.push_back(std::move(built));
      return;
    }
    Frame& frame = frames_.back();
    frame.nodes += built.nodes;
    if (frame.key_next) {
      if (built.value.is_array() || built.value.is_object()) {
        fail(mark, "a key that is a list or a mapping; keys must be plain text");
      }
      key_names_.push_back(key_text(built.value, mark));
      members_.push_back(Member{Value(key_names_.back()), Value()});
      key_marks_.push_back(mark);
      frame.key_next = false;
      return;
    }
    frame.height = std::max(frame.height, built.height + 1);
    frame.key_next = true;
    if (!frame.merging) {
      members_.back().value = std::move(built.value);
      return;
    }
    frame.merging = false;
    merge(mark, frame, built.value);
  }

  void merge(const YAML::Mark& mark, Frame& frame, const Value& source) {
    if (source.is_object()) {
      frame.merges.push_back(source);
      return;
    }
    const bool all = source.is_array() && std::ranges::all_of(source.items(), &Value::is_object);
    if (!all) fail(mark, "'<<' takes a mapping or a list of mappings; quote it if it is a key");
    for (const Value& item : source.items()) frame.merges.push_back(item);
  }

  // The place where a key stands for the second time; leaves the key in last_key_.
  const YAML::Mark& mark_of_second(const Value& made, size_t start) {
    std::unordered_map<std::string_view, bool> seen(made.size());
    for (size_t i = start; i < key_names_.size(); ++i) {
      if (seen[key_names_[i]]) {
        last_key_ = key_names_[i];
        return key_marks_[i];
      }
      seen[key_names_[i]] = true;
    }
    return key_marks_.back();
  }

  bool line_starts_with(int line, std::string_view prefix) {
    while (line_ < line && line_start_ < text_.size()) {
      const size_t end = text_.find('\n', line_start_);
      line_start_ = end == text_.npos ? text_.size() : end + 1;
      ++line_;
    }
    return text_.substr(line_start_).starts_with(prefix);
  }

  std::string_view text_;
  const YamlOptions& options_;
  std::vector<Value> documents_;
  int document_ = 0;
  int document_at_ = -1;  // where the last one began
  int line_ = 0;          // line_start_ is where this line begins; moves forward only
  size_t line_start_ = 0;
  std::vector<Frame> frames_;
  std::vector<Built> values_;
  std::vector<Member> members_;
  std::vector<YAML::Mark> key_marks_;
  std::vector<std::string> key_names_;
  std::string last_key_;
  std::optional<YAML::Mark> last_quoted_;
  std::unordered_map<YAML::anchor_t, Built> anchors_;
  size_t nodes_ = 0;
};

// The text from a line and column (both from 0) on.
std::string_view text_from(std::string_view text, int line, int column) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(std::min(text.size(), static_cast<size_t>(std::max(column, 0))));
}

// True for "'abc" and "\"abc", after a tag and an anchor, where the quote is never closed.
bool unclosed_quote(std::string_view s) {
  while (s.starts_with('!') || s.starts_with('&')) {
    s.remove_prefix(std::min(s.find_first_of(" \t\r\n"), s.size()));
    s.remove_prefix(std::min(s.find_first_not_of(" \t\r\n"), s.size()));
  }
  if (s.empty() || (s[0] != '\'' && s[0] != '"')) return false;
  const char quote = s[0];
  for (size_t i = 1; i < s.size(); ++i) {
    if (quote == '"' && s[i] == '\\') {
      ++i;
    } else if (s[i] == quote) {
      if (quote == '"' || i + 1 == s.size() || s[i + 1] != quote) return false;
      ++i;
    }
  }
  return true;
}

// What to do about an error that yaml-cpp found; empty where its own message says enough.
std::string mend_for(std::string_view text, const YAML::Exception& e) {
  using namespace YAML::ErrorMsg;
  const std::string& message = e.msg;
  const std::string_view line = text_from(text, e.mark.line, 0);
  const std::string_view space = line.substr(0, line.find_first_not_of(" \t"));
  if (message == TAB_IN_INDENTATION || space.find('\t') != space.npos) {
    return "; indent with spaces, not tabs";
  }
  if (message == UNKNOWN_ANCHOR) {
    const std::string_view name = text_from(text, e.mark.line, e.mark.column);
    return fmt::format(": {}", name.substr(0, name.find_first_of(" \t\r\n,]}")));
  }
  if (message == END_OF_MAP || message == END_OF_SEQ) {
    return "; check the indentation and that a ': ' follows each key";
  }
  if (message == END_OF_MAP_FLOW || message == END_OF_SEQ_FLOW) return "; close the bracket";
  if (message == MAP_VALUE || message == MAP_KEY) {
    return "; check the indentation, and quote text that contains ': '";
  }
  if (message == UNKNOWN_TOKEN) return "; quote text that starts with a special character";
  if (message == EOF_IN_SCALAR) return "; close the quote";
  return "";
}

base::Error at(int document, int line, int column, std::string_view message, Code code) {
  return base::Error{code,
                     fmt::format("document {}, line {}, column {}: {}", std::max(document, 1),
                                 std::max(line, 0) + 1, std::max(column, 0) + 1, message),
                     {}};
}

bool looks_like_json(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && (text[first] == '{' || text[first] == '[');
}

}  // namespace

base::Result<std::vector<Value>> parse_yaml_stream(std::string_view text,
                                                   const YamlOptions& options) {
  if (text.size() > options.bytes_max) {
    return base::error(Code::kTooLarge, "YAML text of {} bytes is over the limit of {}",
                       text.size(), options.bytes_max);
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  // JSON may be indented with tabs, which YAML forbids.
  if (looks_like_json(text)) {
    auto value = parse(text, {.bytes_max = options.bytes_max, .depth_max = options.depth_max});
    if (value) return std::vector<Value>{std::move(*value)};
  }
  if (const size_t bad = find_bad_yaml_byte(text); bad != text.npos) {
    const std::string_view before = text.substr(0, bad);
    const auto line = static_cast<int>(std::ranges::count(before, '\n'));
    const size_t start = before.rfind('\n');
    const size_t column = start == before.npos ? bad : bad - start - 1;
    return base::error(at(1, line, static_cast<int>(column),
                          fmt::format("byte 0x{:02x} is not text in UTF-8; save the file as UTF-8",
                                      static_cast<unsigned char>(text[bad])),
                          Code::kBadRequest));
  }
  Builder builder(text, options);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    if (const auto& mark = builder.last_quoted();
        mark && unclosed_quote(text_from(text, mark->line, mark->column))) {
      fail(*mark, "a quote that is never closed; close the quote");
    }
  } catch (const Fault& fault) {
    return base::error(at(builder.document(), fault.line, fault.column, fault.message, fault.code));
  } catch (const YAML::Exception& e) {
    return base::error(at(builder.document(), e.mark.line, e.mark.column,
                          fmt::format("not valid YAML: {}{}", e.msg, mend_for(text, e)),
                          Code::kBadRequest));
  }
  return builder.take();
}

base::Result<Value> parse_yaml(std::string_view text, const YamlOptions& options) {
  TS_TRY(auto documents, parse_yaml_stream(text, options));
  if (documents.size() == 1) return std::move(documents[0]);
  if (documents.empty()) {
    return base::error(Code::kBadRequest, "no YAML document in the text; write one");
  }
  return base::error(Code::kBadRequest, "{} YAML documents where one is expected; keep one",
                     documents.size());
}

}  // namespace tessera::json
