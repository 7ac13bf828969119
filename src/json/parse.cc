#include "json/parse.h"

#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <unordered_map>

namespace tessera::json {
namespace {

using boost::json::error_code;
using boost::json::string_view;

// Keys longer than a Value holds inline and that most objects carry: one immortal copy serves all.
const Value* shared_key(std::string_view key) {
  // Never destroyed: values made from it may outlive this unit.
  static const auto& table = *new std::unordered_map<std::string_view, Value>([] {
    std::unordered_map<std::string_view, Value> made;
    for (const char* key_text : {"resourceVersion",
                                 "creationTimestamp",
                                 "deletionTimestamp",
                                 "ownerReferences",
                                 "lastTransitionTime",
                                 "lastProbeTime",
                                 "lastHeartbeatTime",
                                 "terminationGracePeriodSeconds",
                                 "deletionGracePeriodSeconds",
                                 "containerStatuses",
                                 "initContainerStatuses",
                                 "terminationMessagePath",
                                 "terminationMessagePolicy",
                                 "imagePullPolicy",
                                 "securityContext",
                                 "serviceAccountName",
                                 "enableServiceLinks",
                                 "preemptionPolicy",
                                 "initContainers",
                                 "observedGeneration",
                                 "holderIdentity",
                                 "leaseDurationSeconds",
                                 "blockOwnerDeletion",
                                 "tolerationSeconds",
                                 "priorityClassName",
                                 "allocatable",
                                 "automountServiceAccountToken",
                                 "kubernetes.io/hostname",
                                 "kubernetes.io/metadata.name",
                                 "ephemeral-storage",
                                 "app.kubernetes.io/name",
                                 "nvidia.com/gpu.product",
                                 "tessera.dev/run-for",
                                 "tessera.dev/gpu-milli",
                                 "kubelet.kubernetes.io",
                                 "fieldsType",
                                 "managedFields"}) {
      made.emplace(key_text, Value::immortal(key_text));
    }
    return made;
  }());
  const auto it = table.find(key);
  return it != table.end() ? &it->second : nullptr;
}

// Builds Values from Boost.JSON's parse events, on explicit stacks.
struct Handler {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  struct Frame {
    bool object;
    size_t start;  // where its children begin in `values` or `members`
  };

  std::vector<Value> values;
  std::vector<Member> members;
  std::vector<Frame> frames;
  std::string text;       // the string or key being collected
  std::string duplicate;  // path of the first duplicate key
  std::vector<std::string>* duplicates = nullptr;
  std::string_view leave_out;
  std::string_view leave_out_in;
  size_t left_out_depth =
      0;  // 0: nothing is left out now; 1: the member's own value; more: inside it

  // Whether a value that comes belongs to a member that is left out; its end ends that member.
  bool left_out() {
    if (left_out_depth == 0) return false;
    text.clear();
    if (left_out_depth == 1) left_out_depth = 0;
    return true;
  }
  bool is_left_out(std::string_view key) const {
    if (leave_out.empty() || key != leave_out || frames.size() < 2) return false;
    return frames[frames.size() - 2].object &&
           members[frames.back().start - 1].name() == leave_out_in;
  }
  bool opens_left_out() {
    if (left_out_depth == 0) return false;
    ++left_out_depth;
    return true;
  }
  bool closes_left_out() {
    if (left_out_depth == 0) return false;
    if (--left_out_depth == 1) left_out_depth = 0;
    return true;
  }

  std::string path() const {
    std::string out;
    size_t depth = 0;
    for (const Frame& frame : frames) {
      ++depth;
      const size_t end = depth < frames.size() && frames[depth].object == frame.object
                             ? frames[depth].start
                             : (frame.object ? members.size() : values.size());
      if (frame.object) {
        if (end == 0 || end <= frame.start) continue;
        if (!out.empty()) out += '.';
        out += members[end - 1].name();
      } else {
        out += fmt::format("[{}]", end - frame.start);
      }
    }
    return out;
  }

  void put(Value v) {
    if (!frames.empty() && frames.back().object) {
      members.back().value = std::move(v);
    } else {
      values.push_back(std::move(v));
    }
  }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) {
    if (opens_left_out()) return true;
    frames.push_back({true, members.size()});
    return true;
  }
  bool on_object_end(std::size_t, error_code& ec) {
    if (closes_left_out()) return true;
    const Frame frame = frames.back();
    std::string twice;
    Value made = ObjectBuilder::build(std::span(members).subspan(frame.start), &twice);
    members.resize(frame.start);
    frames.pop_back();
    if (!twice.empty()) {
      std::string at = path();
      at += (at.empty() ? "" : ".") + twice;
      if (duplicates == nullptr) {
        duplicate = at;
        ec = boost::json::error::syntax;
        return false;
      }
      duplicates->push_back(std::move(at));
    }
    put(std::move(made));
    return true;
  }
  bool on_array_begin(error_code&) {
    if (opens_left_out()) return true;
    frames.push_back({false, values.size()});
    return true;
  }
  bool on_array_end(std::size_t, error_code&) {
    if (closes_left_out()) return true;
    const Frame frame = frames.back();
    Value made = array_of(std::span(values).subspan(frame.start));
    values.resize(frame.start);
    frames.pop_back();
    put(std::move(made));
    return true;
  }
  bool on_key_part(string_view s, std::size_t, error_code&) {
    if (left_out_depth != 0) return true;
    text.append(s.data(), s.size());
    return true;
  }
  bool on_key(string_view s, std::size_t, error_code&) {
    if (left_out_depth != 0) return true;
    text.append(s.data(), s.size());
    if (is_left_out(text)) {
      left_out_depth = 1;
      text.clear();
      return true;
    }
    const Value* shared = shared_key(text);
    members.push_back(Member{shared != nullptr ? *shared : Value(text), Value()});
    text.clear();
    return true;
  }
  bool on_string_part(string_view s, std::size_t, error_code&) {
    if (left_out_depth != 0) return true;
    text.append(s.data(), s.size());
    return true;
  }
  bool on_string(string_view s, std::size_t, error_code&) {
    if (left_out()) return true;
    text.append(s.data(), s.size());
    put(Value(text));
    text.clear();
    return true;
  }
  bool on_number_part(string_view s, error_code&) {
    text.append(s.data(), s.size());
    return true;
  }
  bool on_int64(int64_t i, string_view, error_code&) {
    if (left_out()) return true;
    text.clear();
    put(Value(i));
    return true;
  }
  bool on_uint64(uint64_t u, string_view, error_code&) {
    if (left_out()) return true;
    text.clear();
    put(Value(static_cast<double>(u)));
    return true;
  }
  // Boost.JSON's own number may be off by the last bit, so the text is read again.
  bool on_double(double d, string_view s, error_code& ec) {
    if (left_out()) return true;
    text.append(s.data(), s.size());
    const auto end = std::from_chars(text.data(), text.data() + text.size(), d);
    text.clear();
    const bool too_small = end.ec == std::errc::result_out_of_range && std::fabs(d) < 1;
    if (end.ec != std::errc() && !too_small) {
      ec = boost::json::error::exponent_overflow;
      return false;
    }
    put(Value(too_small ? 0.0 : d));
    return true;
  }
  bool on_bool(bool b, error_code&) {
    if (left_out()) return true;
    put(Value(b));
    return true;
  }
  bool on_null(error_code&) {
    if (left_out()) return true;
    put(Value());
    return true;
  }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }
};

std::string place(std::string_view text, size_t offset) {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < offset && i < text.size(); ++i) {
    ++column;
    if (text[i] == '\n') {
      ++line;
      column = 1;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace

base::Result<Value> parse(std::string_view text, const ParseOptions& options) {
  if (text.size() > options.bytes_max) {
    return base::error(base::Code::kTooLarge, "JSON text of {} bytes is over the limit of {}",
                       text.size(), options.bytes_max);
  }
  boost::json::parse_options boost_options;
  boost_options.max_depth = static_cast<size_t>(options.depth_max);
  boost::json::basic_parser<Handler> parser(boost_options);
  parser.handler().duplicates = options.duplicates;
  parser.handler().leave_out = options.leave_out;
  parser.handler().leave_out_in = options.leave_out_in;
  error_code ec;
  const size_t used = parser.write_some(false, text.data(), text.size(), ec);
  Handler& handler = parser.handler();
  if (!handler.duplicate.empty()) {
    return base::error(base::Code::kBadRequest, "{}: key \"{}\" stands twice; keep one",
                       place(text, used), handler.duplicate);
  }
  if (!ec && used < text.size()) ec = boost::json::error::extra_data;
  if (ec) {
    const std::string path = handler.path();
    return base::error(base::Code::kBadRequest, "{}{}{}: not valid JSON: {}", place(text, used),
                       path.empty() ? "" : ", at ", path, ec.message());
  }
  return std::move(handler.values.back());
}

}  // namespace tessera::json
