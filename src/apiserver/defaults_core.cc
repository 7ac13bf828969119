#include "apiserver/defaults_core.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/json_edit.h"

namespace tessera::apiserver {
namespace {

using json::Value;

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      group = (group << 8) | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += k <= count ? kDigits[(group >> (18 - 6 * k)) & 63U] : '=';
    }
  }
  return out;
}

}  // namespace

void default_namespace(Value& object) {
  const Value name = object["metadata"]["name"];
  if (!name.as_string().empty()) {
    object.ref("metadata", "labels").set("kubernetes.io/metadata.name", name);
  }
  set_missing(object.ref("status"), "phase", "Active");
}

void prepare_new_namespace(Value& object) {
  object.set("status", Value::object({{"phase", "Active"}}));
  object.ref("spec").set("finalizers", Value::array({"kubernetes"}));
}

void default_node(Value& object) {
  const Value capacity = object["status"]["capacity"];
  if (!capacity.empty() && object["status"]["allocatable"].empty()) {
    object.ref("status").set("allocatable", capacity);
  }
}

void default_secret(Value& object) {
  set_missing(object, "type", "Opaque");
  const Value plain = object["stringData"];
  if (plain.is_null()) return;
  for (const json::Member& member : plain.members()) {
    object.ref("data").set(member.name(), to_base64(member.value.as_string()));
  }
  object.erase("stringData");
}

}  // namespace tessera::apiserver
