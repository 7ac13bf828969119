// Rows of comma-separated fields without quotes, whose columns are found by the header's names.
//
// Errors:  kInvalid, "file:line: column is \"field\": what it must be"; kTooLarge past the limits of trace.h.
// Threads: plain value; it refers to the text it was given.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/trace.h"

namespace tessera::sim {

inline constexpr size_t kCsvColumnsMax = 64;

// A field as an error shows it: short, printable.
inline std::string shown(std::string_view field) {
  std::string out = "\"";
  for (char c : field.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (field.size() > 40 ? "...\"" : "\"");
}

inline std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Splits a text into rows of fields and finds columns by the header's names.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

  base::Status read_header() {
    if (rest_.size() > kTraceBytesMax) {
      return base::error(base::Code::kTooLarge, "{}: {} bytes: the limit is {}", file_,
                         rest_.size(), kTraceBytesMax);
    }
    if (rest_.substr(0, 3) == "\xEF\xBB\xBF") rest_.remove_prefix(3);
    TS_TRY(bool any, next_row());
    if (!any)
      return base::error(base::Code::kInvalid,
                         "{}:1: the file is empty: the first line must name the columns", file_);
    header_.assign(fields_.begin(), fields_.end());
    for (size_t i = 0; i < header_.size(); ++i) {
      if (std::find(header_.begin(), header_.begin() + static_cast<std::ptrdiff_t>(i),
                    header_[i]) != header_.begin() + static_cast<std::ptrdiff_t>(i)) {
        return base::error(base::Code::kInvalid,
                           "{}:1: column {} stands twice: name each column once", file_,
                           shown(header_[i]));
      }
    }
    return {};
  }

  base::Result<size_t> column(std::string_view name) const {
    if (auto at = find_column(name)) return *at;
    return base::error(base::Code::kInvalid, "{}:1: there is no column {}: the header must name it",
                       file_, shown(name));
  }
  std::optional<size_t> find_column(std::string_view name) const {
    auto at = std::find(header_.begin(), header_.end(), name);
    if (at == header_.end()) return std::nullopt;
    return static_cast<size_t>(at - header_.begin());
  }

  // False at the end. Blank lines at the end are passed over.
  base::Result<bool> next_row() {
    if (rest_.find_first_not_of("\r\n") == std::string_view::npos) return false;
    ++line_;
    size_t end = rest_.find('\n');
    std::string_view row = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    TS_TRY_STATUS(split(row));
    if (line_ - 1 > kTraceRowsMax) {
      return base::error(base::Code::kTooLarge, "{}:{}: more than {} rows: split the trace", file_,
                         line_, kTraceRowsMax);
    }
    if (!header_.empty() && fields_.size() != header_.size()) {
      return base::error(base::Code::kInvalid,
                         "{}:{}: the row has {} fields: it must have {}, as the header", file_,
                         line_, fields_.size(), header_.size());
    }
    return true;
  }

  std::string_view field(size_t column) const { return fields_[column]; }
  size_t line() const { return line_; }

  base::Result<int64_t> number(size_t column, int64_t low, int64_t high) const {
    auto value = whole_number(fields_[column]);
    if (value && *value >= low && *value <= high) return *value;
    return bad(column, fmt::format("must be a whole number from {} to {}", low, high));
  }
  base::Result<std::string> name(size_t column) const {
    if (fields_[column].empty()) return bad(column, "must not be empty");
    return std::string(fields_[column]);
  }
  tl::unexpected<base::Error> bad(size_t column, std::string_view mend) const {
    return base::error(base::Code::kInvalid, "{}:{}: {} is {}: {}", file_, line_, header_[column],
                       shown(fields_[column]), mend);
  }

 private:
  base::Status split(std::string_view row) {
    fields_.clear();
    while (true) {
      size_t comma = row.find(',');
      std::string_view field = row.substr(0, comma);
      if (field.size() > kTraceFieldMax) {
        return base::error(base::Code::kTooLarge,
                           "{}:{}: field {} has {} characters: the limit is {}", file_, line_,
                           fields_.size() + 1, field.size(), kTraceFieldMax);
      }
      if (field.find_first_of(std::string_view("\"\0", 2)) != std::string_view::npos) {
        return base::error(base::Code::kInvalid,
                           "{}:{}: field {} is {}: write fields without quotes or zero bytes",
                           file_, line_, fields_.size() + 1, shown(field));
      }
      fields_.push_back(field);
      if (comma == std::string_view::npos) return {};
      if (fields_.size() >= kCsvColumnsMax) {
        return base::error(base::Code::kTooLarge, "{}:{}: more than {} columns", file_, line_,
                           kCsvColumnsMax);
      }
      row.remove_prefix(comma + 1);
    }
  }

  std::string_view rest_;
  std::string_view file_;
  std::vector<std::string_view> header_;
  std::vector<std::string_view> fields_;
  size_t line_ = 0;
};

}  // namespace tessera::sim
