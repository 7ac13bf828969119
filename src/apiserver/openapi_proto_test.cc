#include "apiserver/openapi_proto.h"

#include <gtest/gtest.h>

#include "apiserver/openapi_doc.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using json::Value;

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out.push_back("0123456789abcdef"[static_cast<unsigned char>(c) >> 4]);
    out.push_back("0123456789abcdef"[static_cast<unsigned char>(c) & 15]);
  }
  return out;
}

std::string encoded(std::string_view text) {
  auto document = json::parse(text);
  EXPECT_TRUE(document) << text;
  return openapi_v2_protobuf(*document);
}

TEST(OpenapiProto, TheHeadOfADocument) {
  EXPECT_EQ(hex(encoded(R"({"swagger":"2.0","info":{"title":"K","version":"1"},"unknown":1})")),
            "0a03322e30"  // 1: "2.0"
            "1206"
            "0a014b120131");  // 2: {1: "K", 2: "1"}
}

TEST(OpenapiProto, ASchemaInADefinition) {
  const std::string text = encoded(
      R"({"definitions":{"T":{"type":"object","maximum":1,"minLength":300,"required":["a"],
          "additionalProperties":false,"properties":{"a":{"$ref":"R"}},"x-y":"z"}}})");
  EXPECT_EQ(hex(text),
            "4a42"
            "0a40"  // 9: {1: named
            "0a0154"
            "123b"                    // 1: "T", 2: schema
            "39000000000000f03f"      // 7: 1.0
            "60ac02"                  // 12: 300
            "9a010161"                // 19: "a"
            "aa01021000"              // 21: {2: false}
            "b201080a066f626a656374"  // 22: {1: "object"}
            "ca010a"
            "0a08"
            "0a0161"
            "1203"
            "0a0152"  // 25: {1: {1: "a", 2: {1: "R"}}}
            "fa010b"
            "0a03782d79"
            "1204"
            "12027a0a");  // 31: {1: "x-y", 2: {2: "z\n"}}
}

TEST(OpenapiProto, ParametersStandByWhereTheyAre) {
  EXPECT_EQ(hex(encoded(R"({"paths":{"/p":{"parameters":[{"in":"query","name":"q","type":"string"},
                            {"in":"body","name":"b"},{"$ref":"r"}]}}})")),
            "4238"
            "1236"
            "0a022f70"
            "1230"
            "4a18"
            "0a16"
            "1214"
            "1a12"
            "12057175657279"
            "220171"
            "3206737472696e67"
            "4a0d"
            "0a0b"
            "0a09"
            "120162"
            "1a04626f6479"
            "4a05"
            "1203"
            "0a0172");
}

TEST(OpenapiProto, TheDocumentOfAllKindsIsMade) {
  const std::string text = openapi_v2_protobuf(openapi_v2(Kinds::builtin()));
  EXPECT_NE(text.find("io.k8s.api.core.v1.Pod"), std::string::npos);
  EXPECT_GT(text.size(), 100'000u);
}

}  // namespace
}  // namespace tessera::apiserver
