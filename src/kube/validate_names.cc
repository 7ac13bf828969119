#include "kube/validate_names.h"

#include <algorithm>

namespace tessera::kube {
namespace {

constexpr std::string_view kLabelPattern = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kSubdomainPattern =
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
constexpr size_t kAnnotationsBytesMax = 256 << 10;

bool lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool lower_or_digit(char c) {
  return lower(c) || digit(c);
}
bool letter_or_digit(char c) {
  return lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

bool is_label(std::string_view s) {
  return !s.empty() && lower_or_digit(s.front()) && lower_or_digit(s.back()) &&
         std::ranges::all_of(s, [](char c) { return lower_or_digit(c) || c == '-'; });
}

bool is_subdomain(std::string_view s) {
  while (true) {
    const size_t dot = s.find('.');
    if (!is_label(s.substr(0, dot))) return false;
    if (dot == s.npos) return true;
    s.remove_prefix(dot + 1);
  }
}

bool is_label_text(std::string_view s) {
  return !s.empty() && letter_or_digit(s.front()) && letter_or_digit(s.back()) &&
         std::ranges::all_of(
             s, [](char c) { return letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

std::string too_long(size_t length_max) {
  return fmt::format("must be no more than {} characters", length_max);
}
// Kubernetes words it so for the keys and values of labels.
std::string too_many_bytes(size_t bytes_max) {
  return fmt::format("must be no more than {} bytes", bytes_max);
}

std::string pattern_error(std::string_view what, std::string_view pattern,
                          std::initializer_list<std::string_view> examples) {
  std::string out(what);
  out += " (e.g. ";
  bool first = true;
  for (const std::string_view example : examples) {
    out += fmt::format("{}'{}', ", first ? "" : " or ", example);
    first = false;
  }
  return out + fmt::format("regex used for validation is '{}')", pattern);
}

void refuse_parent_paths(std::string_view text, Reasons& reasons) {
  if (text == ".") {
    reasons.emplace_back("must not be '.'");
  } else if (text == "..") {
    reasons.emplace_back("must not be '..'");
  } else if (text.starts_with("..")) {
    reasons.emplace_back("must not start with '..'");
  }
}

std::string label_key_error() {
  return pattern_error(
      "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
      "alphanumeric character",
      "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", {"MyName", "my.name", "123-abc"});
}

std::string with_detail(std::string text, std::string_view detail) {
  if (!detail.empty()) text += fmt::format(": {}", detail);
  return text;
}

}  // namespace

Reasons check_dns1123_label(std::string_view text) {
  Reasons reasons;
  if (text.size() > 63) reasons.push_back(too_long(63));
  if (is_label(text)) return reasons;
  if (is_subdomain(text)) {
    reasons.emplace_back("must not contain dots");
  } else {
    reasons.push_back(pattern_error(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
        "must start and end with an alphanumeric character",
        kLabelPattern, {"my-name", "123-abc"}));
  }
  return reasons;
}

Reasons check_dns1123_subdomain(std::string_view text) {
  Reasons reasons;
  if (text.size() > 253) reasons.push_back(too_long(253));
  if (!is_subdomain(text)) {
    reasons.push_back(pattern_error(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        "'.', and must start and end with an alphanumeric character",
        kSubdomainPattern, {"example.com"}));
  }
  return reasons;
}

Reasons check_dns1035_label(std::string_view text) {
  Reasons reasons;
  if (text.size() > 63) reasons.push_back(too_long(63));
  if (!is_label(text) || !lower(text[0])) {
    reasons.push_back(pattern_error(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic character, and end with an alphanumeric character",
        "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"}));
  }
  return reasons;
}

Reasons check_qualified_name(std::string_view text) {
  Reasons reasons;
  std::string_view name = text;
  if (const size_t slash = text.find('/'); slash != text.npos) {
    if (text.find('/', slash + 1) != text.npos) {
      return {"a valid label key " + label_key_error() +
              " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"};
    }
    const std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (prefix.empty()) {
      reasons.emplace_back("prefix part must be non-empty");
    } else {
      for (const std::string& why : check_dns1123_subdomain(prefix)) {
        reasons.push_back("prefix part " + why);
      }
    }
  }
  if (name.empty()) {
    reasons.emplace_back("name part must be non-empty");
  } else if (name.size() > 63) {
    reasons.push_back("name part " + too_many_bytes(63));
  }
  if (!is_label_text(name)) reasons.push_back("name part " + label_key_error());
  return reasons;
}

Reasons check_label_value(std::string_view text) {
  Reasons reasons;
  if (text.size() > 63) reasons.push_back(too_many_bytes(63));
  if (!text.empty() && !is_label_text(text)) {
    reasons.push_back(pattern_error(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character",
        "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", {"MyValue", "my_value", "12345"}));
  }
  return reasons;
}

Reasons check_config_map_key(std::string_view text) {
  Reasons reasons;
  if (text.size() > 253) reasons.push_back(too_long(253));
  if (text.empty() || !std::ranges::all_of(text, [](char c) {
        return letter_or_digit(c) || c == '-' || c == '_' || c == '.';
      })) {
    reasons.push_back(
        pattern_error("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                      "[-._a-zA-Z0-9]+", {"key.name", "KEY_NAME", "key-name"}));
  }
  refuse_parent_paths(text, reasons);
  return reasons;
}

Reasons check_path_segment(std::string_view text) {
  Reasons reasons;
  if (text == "." || text == "..") return {fmt::format("may not be '{}'", text)};
  for (const char c : {'/', '%'}) {
    if (text.find(c) != text.npos) reasons.push_back(fmt::format("may not contain '{}'", c));
  }
  return reasons;
}

Reasons check_env_name(std::string_view text) {
  if (text.empty()) return {"environment variable name must be non-empty"};
  const bool good =
      std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '='; });
  if (good) return {};
  return {
      "a valid environment variable name must consist only of printable ASCII characters other "
      "than "
      "'='"};
}

Reasons check_port_name(std::string_view text) {
  Reasons reasons;
  if (text.size() > 15) reasons.push_back(too_long(15));
  if (text.empty() ||
      !std::ranges::all_of(text, [](char c) { return lower_or_digit(c) || c == '-'; })) {
    reasons.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!std::ranges::any_of(text, lower)) {
    reasons.emplace_back("must contain at least one letter (a-z)");
  }
  if (text.find("--") != text.npos) reasons.emplace_back("must not contain consecutive hyphens");
  if (text.starts_with('-') || text.ends_with('-')) {
    reasons.emplace_back("must not begin or end with a hyphen");
  }
  return reasons;
}

void validate_labels(const json::Value& labels, std::string_view path,
                     std::vector<base::Cause>& causes) {
  for (const json::Member& member : labels.members()) {
    for (const std::string& why : check_qualified_name(member.name())) {
      causes.push_back(invalid_value(path, member.key, why));
    }
    for (const std::string& why : check_label_value(member.value.as_string())) {
      causes.push_back(invalid_value(path, member.value, why));
    }
  }
}

void validate_annotations(const json::Value& annotations, std::string_view path,
                          std::vector<base::Cause>& causes) {
  size_t bytes = 0;
  for (const json::Member& member : annotations.members()) {
    std::string name(member.name());
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    for (const std::string& why : check_qualified_name(name)) {
      causes.push_back(invalid_value(path, member.key, why));
    }
    bytes += member.name().size() + member.value.as_string().size();
  }
  if (bytes > kAnnotationsBytesMax) {
    causes.push_back({"FieldValueTooLong",
                      fmt::format("Too long: may not be more than {} bytes", kAnnotationsBytesMax),
                      std::string(path)});
  }
}

base::Cause invalid_value(std::string_view field, const json::Value& value, std::string_view why) {
  return {"FieldValueInvalid", with_detail("Invalid value: " + value.dump(), why),
          std::string(field)};
}

base::Cause required_value(std::string_view field, std::string_view why) {
  return {"FieldValueRequired", with_detail("Required value", why), std::string(field)};
}

base::Cause not_supported(std::string_view field, const json::Value& value,
                          const std::vector<std::string>& supported) {
  std::string list;
  for (const std::string& one : supported) {
    list += (list.empty() ? "supported values: " : ", ") + json::Value(one).dump();
  }
  return {"FieldValueNotSupported", with_detail("Unsupported value: " + value.dump(), list),
          std::string(field)};
}

base::Cause forbidden(std::string_view field, std::string_view why) {
  return {"FieldValueForbidden", with_detail("Forbidden", why), std::string(field)};
}

base::Cause duplicate_value(std::string_view field, const json::Value& value) {
  return {"FieldValueDuplicate", "Duplicate value: " + value.dump(), std::string(field)};
}

}  // namespace tessera::kube
