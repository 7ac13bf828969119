// Content negotiation: what a client's Accept header asks for and we can make.
//
// Shape:   the first clause that can be served wins, by q, then by order. A clause asks for an
//          encoding (JSON, YAML) and a form (as=Table, as=PartialObjectMetadata,
//          as=APIGroupDiscoveryList); protobuf is made of the OpenAPI v2 document alone, and
//          clients that prefer it for objects name JSON after it.
// Errors:  kNotAcceptable listing what is made: in one wording where no type fits, in another where no form does.
// Threads: pure.
// Source:  RFC 9110 section 12.5.1; k8s.io/apiserver/pkg/endpoints/handlers/negotiation.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/openapi_proto.h"
#include "base/result.h"

namespace tessera::apiserver {

enum class Encoding { kJson, kYaml, kProtobuf };
enum class Form { kObject, kTable, kPartial, kPartialList, kAggregatedDiscovery };

struct Accepted {
  Encoding encoding = Encoding::kJson;
  Form form = Form::kObject;
  std::string version;  // of the form's group: "v1"
  bool operator==(const Accepted&) const = default;
  std::string_view content_type() const {
    if (encoding == Encoding::kProtobuf) return kOpenapiProtobuf;
    return encoding == Encoding::kYaml ? "application/yaml" : "application/json";
  }
};

// What the path at hand can answer with.
struct Offers {
  bool yaml = true;
  bool forms = true;       // tables and partial metadata
  bool discovery = false;  // the aggregated form
  bool openapi_protobuf = false;
  bool text = false;  // plain text, with errors in JSON: logs
};

base::Result<Accepted> negotiate(std::string_view accept, const Offers& offers);

}  // namespace tessera::apiserver
