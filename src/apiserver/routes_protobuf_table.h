// The table of data/protobuf.fields, parsed once.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::apiserver {

struct ProtobufMessage;

struct ProtobufField {
  uint32_t number = 0;
  std::string_view name;  // empty: inline
  char code = 's';        // '@' for a message
  const ProtobufMessage* message = nullptr;
  bool list = false;
  bool map = false;
  bool keeps_zero = false;
};

struct ProtobufMessage {
  std::string_view name;  // "core/v1.Pod"
  std::vector<ProtobufField> fields;
  const ProtobufField* field(uint32_t number) const;
};

// Null when the table lacks it.
const ProtobufMessage* find_protobuf_message(std::string_view name);

}  // namespace tessera::apiserver
