#include "apiserver/routes_protobuf.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "apiserver/routes_protobuf_table.h"
#include "base/time.h"
#include "http/tls.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr int kDepthMax = 64;
constexpr std::string_view kMagic{"k8s\0", 4};

// One field off the wire.
struct Item {
  uint32_t number = 0;
  uint32_t wire = 0;
  uint64_t scalar = 0;     // wire types 0, 1 and 5
  std::string_view bytes;  // wire type 2
};

class Wire {
 public:
  explicit Wire(std::string_view bytes) : bytes_(bytes) {}
  bool done() const { return at_ >= bytes_.size(); }

  base::Result<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (done()) return cut();
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return base::error(Code::kBadRequest, "a number runs past 10 bytes at byte {}", at_);
  }

  base::Result<Item> next() {
    TS_TRY(const uint64_t tag, varint());
    Item item;
    item.wire = tag & 7;
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) {
      return base::error(Code::kBadRequest, "a field number is out of range at byte {}", at_);
    }
    item.number = static_cast<uint32_t>(tag >> 3);
    switch (item.wire) {
      case 0: {
        TS_TRY(item.scalar, varint());
        return item;
      }
      case 1:
        return fixed(item, 8);
      case 5:
        return fixed(item, 4);
      case 2: {
        TS_TRY(const uint64_t size, varint());
        if (size > bytes_.size() - at_) return cut();
        item.bytes = bytes_.substr(at_, size);
        at_ += size;
        return item;
      }
      default:
        return base::error(Code::kBadRequest, "wire type {} is not in use at byte {}", item.wire,
                           at_);
    }
  }

 private:
  base::Result<Item> fixed(Item item, size_t size) {
    if (size > bytes_.size() - at_) return cut();
    for (size_t i = 0; i < size; ++i) {
      item.scalar |= uint64_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
    }
    at_ += size;
    return item;
  }
  tl::unexpected<base::Error> cut() const {
    return base::error(Code::kBadRequest, "the message is cut short at byte {}", bytes_.size());
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

bool valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int more = lead < 0x80       ? 0
                     : lead >> 5 == 6  ? 1
                     : lead >> 4 == 14 ? 2
                     : lead >> 3 == 30 ? 3
                                       : -1;
    if (more < 0 || i + static_cast<size_t>(more) >= text.size()) return false;
    uint32_t point = more == 0 ? lead : lead & (0x3fu >> more);
    for (int k = 1; k <= more; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + static_cast<size_t>(k)]);
      if (byte >> 6 != 2) return false;
      point = point << 6 | (byte & 0x3fu);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (point < kLeast[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
      return false;
    i += static_cast<size_t>(more) + 1;
  }
  return true;
}

base::Result<Value> text_value(std::string_view bytes) {
  if (!valid_utf8(bytes)) return base::error(Code::kBadRequest, "a string is not UTF-8");
  return Value(bytes);
}

// The fields of small well-known messages, by number; at most three of them.
base::Result<std::array<Item, 4>> small_message(std::string_view bytes) {
  std::array<Item, 4> items{};
  for (Wire wire(bytes); !wire.done();) {
    TS_TRY(const Item item, wire.next());
    if (item.number < items.size()) items[item.number] = item;
  }
  return items;
}

// Go's zero Time is null in JSON.
base::Result<Value> time_value(std::string_view bytes, bool micro) {
  TS_TRY(const auto items, small_message(bytes));
  const auto seconds = static_cast<int64_t>(items[1].scalar);
  const auto nanos = static_cast<int64_t>(items[2].scalar);
  if (seconds == 0 && nanos == 0) return Value();
  if (seconds > 9'000'000'000 || seconds < -9'000'000'000 || nanos < 0 || nanos > 999'999'999) {
    return base::error(Code::kBadRequest, "a time is out of range: {} s", seconds);
  }
  const base::Time time{seconds * 1'000'000'000 + nanos};
  return Value(micro ? base::to_rfc3339_micro(time) : base::to_rfc3339(time));
}

base::Result<Value> int_or_string(std::string_view bytes) {
  TS_TRY(const auto items, small_message(bytes));
  if (items[1].scalar == 1) return text_value(items[3].bytes);
  return Value(static_cast<int32_t>(items[2].scalar));
}

base::Result<Value> decode_message(const ProtobufMessage& type, std::string_view bytes, int depth);
base::Status decode_into(const ProtobufMessage& type, std::string_view bytes, int depth,
                         Value& out);

base::Result<Value> scalar_value(char code, uint64_t scalar) {
  switch (code) {
    case 't':
      return Value(scalar != 0);
    case 'i':
      return Value(static_cast<int64_t>(scalar));
    case 'd':
      return Value(std::bit_cast<double>(scalar));
    default:
      return base::error(Code::kBadRequest, "a number stands where text or a message belongs");
  }
}

base::Result<Value> bytes_value(const ProtobufField& field, std::string_view bytes, int depth) {
  switch (field.code) {
    case 's':
      return text_value(bytes);
    case 'b':
      return Value(http::base64(bytes));
    case 'T':
      return time_value(bytes, false);
    case 'U':
      return time_value(bytes, true);
    case 'o':
      return int_or_string(bytes);
    case '@':
      return decode_message(*field.message, bytes, depth + 1);
    case 'q': {
      TS_TRY(const auto items, small_message(bytes));
      return items[1].bytes.empty() ? Value("0") : text_value(items[1].bytes);
    }
    case 'r': {
      TS_TRY(const auto items, small_message(bytes));
      return items[1].bytes.empty() ? Value() : json::parse(items[1].bytes);
    }
    case 'D': {
      TS_TRY(const auto items, small_message(bytes));
      return Value(base::to_string(base::nanos(static_cast<int64_t>(items[1].scalar))));
    }
    default:
      return base::error(Code::kBadRequest, "text stands where a number belongs");
  }
}

base::Result<Value> item_value(const ProtobufField& field, const Item& item, int depth) {
  return item.wire == 2 ? bytes_value(field, item.bytes, depth)
                        : scalar_value(field.code, item.scalar);
}

// What Go decodes where a map entry has no value.
Value zero_value(char code) {
  switch (code) {
    case 't':
      return false;
    case 'i':
    case 'd':
      return 0;
    case 'q':
      return "0";
    case '@':
      return Value::object();
    default:
      return "";
  }
}

base::Status add_map_entry(const ProtobufField& field, std::string_view bytes, int depth,
                           Value& out) {
  TS_TRY(const auto items, small_message(bytes));
  TS_TRY(const Value key, text_value(items[1].bytes));
  Value value = field.list ? Value::array() : zero_value(field.code);
  if (field.list) {  // the value is a message whose field 1 repeats
    for (Wire wire(items[2].bytes); !wire.done();) {
      TS_TRY(const Item item, wire.next());
      TS_TRY(Value one, item_value(field, item, depth));
      value.push_back(std::move(one));
    }
  } else if (items[2].number != 0) {
    TS_TRY(value, item_value(field, items[2], depth));
  }
  out.ref(field.name).set(key.as_string(), std::move(value));
  return {};
}

base::Status add_list_item(const ProtobufField& field, const Item& item, int depth, Value& out) {
  Value& list = out.ref(field.name);
  const bool packed = item.wire == 2 && (field.code == 'i' || field.code == 't');
  if (!packed) {
    TS_TRY(Value one, item_value(field, item, depth));
    list.push_back(std::move(one));
    return {};
  }
  for (Wire wire(item.bytes); !wire.done();) {
    TS_TRY(const uint64_t scalar, wire.varint());
    TS_TRY(Value one, scalar_value(field.code, scalar));
    list.push_back(std::move(one));
  }
  return {};
}

bool says_nothing(const ProtobufField& field, const Value& value) {
  if (value.is_null()) return true;
  if (field.keeps_zero) return false;
  if (value.is_object() || value.is_array()) return value.empty();
  if (value.is_string()) return value.as_string().empty();
  return value.is_bool() ? !value.as_bool() : value.as_double() == 0;
}

base::Status decode_into(const ProtobufMessage& type, std::string_view bytes, int depth,
                         Value& out) {
  if (depth > kDepthMax) {
    return base::error(Code::kBadRequest, "messages are nested more than {} deep", kDepthMax);
  }
  for (Wire wire(bytes); !wire.done();) {
    TS_TRY(const Item item, wire.next());
    const ProtobufField* field = type.field(item.number);
    if (field == nullptr) continue;  // of a newer version: skipped, as Go does
    if (field->name.empty()) {
      if (field->message == nullptr || item.wire != 2) continue;
      TS_TRY_STATUS(decode_into(*field->message, item.bytes, depth + 1, out));
    } else if (field->map) {
      TS_TRY_STATUS(add_map_entry(*field, item.bytes, depth, out));
    } else if (field->list) {
      TS_TRY_STATUS(add_list_item(*field, item, depth, out));
    } else {
      TS_TRY(Value value, item_value(*field, item, depth));
      if (!says_nothing(*field, value)) out.set(field->name, std::move(value));
    }
  }
  return {};
}

base::Result<Value> decode_message(const ProtobufMessage& type, std::string_view bytes, int depth) {
  Value out = Value::object();
  TS_TRY_STATUS(decode_into(type, bytes, depth, out));
  return out;
}

// "apps/v1", "Deployment" -> "apps/v1.Deployment"; Go's packages drop what follows the first dot of
// a group.
std::string message_name(std::string_view api_version, std::string_view kind) {
  if (kind == "DeleteOptions") return "meta/v1.DeleteOptions";
  const size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return fmt::format("core/{}.{}", api_version, kind);
  const std::string_view group = api_version.substr(0, slash);
  return fmt::format("{}/{}.{}", group.substr(0, group.find('.')), api_version.substr(slash + 1),
                     kind);
}

}  // namespace

base::Result<Value> decode_protobuf(std::string_view body) {
  if (!body.starts_with(kMagic)) {
    return base::error(Code::kBadRequest,
                       "the body does not start with Kubernetes' protobuf prefix");
  }
  TS_TRY(const auto envelope, small_message(body.substr(kMagic.size())));
  TS_TRY(const auto type_meta, small_message(envelope[1].bytes));
  TS_TRY(const Value api_version, text_value(type_meta[1].bytes));
  TS_TRY(const Value kind, text_value(type_meta[2].bytes));
  const std::string name = message_name(api_version.as_string(), kind.as_string());
  const ProtobufMessage* type = find_protobuf_message(name);
  if (type == nullptr) {
    return base::error(Code::kUnsupportedMediaType,
                       "kind \"{}\" of \"{}\" is not read as protobuf: send it as application/json",
                       kind.as_string(), api_version.as_string());
  }
  TS_TRY(Value object, decode_message(*type, envelope[2].bytes, 0));
  object.set("apiVersion", api_version);
  object.set("kind", kind);
  return object;
}

}  // namespace tessera::apiserver
