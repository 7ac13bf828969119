#include "apiserver/front_reply.h"

#include <utility>

#include "apiserver/columns.h"
#include "apiserver/front.h"
#include "apiserver/routes.h"
#include "apiserver/routes_body.h"
#include "json/yaml.h"

namespace tessera::apiserver {
namespace {

using json::Value;

bool wants_pretty(const Exchange& exchange) {
  if (!query_value(exchange.target.query, "pretty").empty()) {
    return query_flag(exchange.target.query, "pretty");
  }
  const std::string_view agent = exchange.request.header("user-agent");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

std::string as_text(const Exchange& exchange, const Value& value) {
  if (exchange.accepted.encoding == Encoding::kYaml) return json::to_yaml(value);
  return wants_pretty(exchange) ? value.dump_pretty() + "\n" : value.dump() + "\n";
}

// Columns of what subresources answer with: a Scale has its own, anything else name and age.
const Kind& kind_of_answer(std::string_view kind) {
  static const Kind kPlain;
  static const Kind kScale = [] {
    Kind scale;
    const auto replicas = [](std::string_view half) {
      return [half](const kube::Object& o, base::Time) {
        return Value(o.get(half, "replicas").as_int());
      };
    };
    scale.columns = {name_column(), number_column("Desired", replicas("spec")),
                     number_column("Available", replicas("status")), age_column()};
    return scale;
  }();
  return kind == "Scale" ? kScale : kPlain;
}

const Kind& columns_for(const Exchange& exchange, const Value& object) {
  const std::string_view kind = object["kind"].as_string();
  const Kind* asked = exchange.kind;
  const bool own = asked != nullptr && (kind == asked->kind || kind == asked->list_kind_name());
  return own ? *asked : kind_of_answer(kind);
}

// A list of a built-in kind says kind and version once, for all its items.
Value with_plain_items(const Exchange& exchange, const Value& list) {
  if (exchange.kind == nullptr || Kinds::builtin().find(exchange.kind->gvr()) == nullptr) {
    return list;
  }
  std::vector<Value> items;
  items.reserve(list["items"].size());
  for (const Value& item : list["items"].items()) {
    Value plain = item;
    plain.erase("apiVersion");
    plain.erase("kind");
    items.push_back(std::move(plain));
  }
  Value out = list;
  out.set("items", json::array_of(items));
  return out;
}

// As Kubernetes names the type: "*core.SecretList".
std::string type_name(const Exchange& exchange, const Value& object) {
  const std::string group = exchange.kind == nullptr ? std::string() : exchange.kind->group;
  std::string out = "*";
  out.append(group.empty() ? "core" : group.substr(0, group.find('.')));
  return out.append(".").append(object["kind"].as_string());
}

base::Result<Value> shaped(const Exchange& exchange, const Value& object, base::Time now) {
  const Accepted& accepted = exchange.accepted;
  const bool list = is_list(object);
  switch (accepted.form) {
    case Form::kTable:
      return to_table(columns_for(exchange, object), object,
                      {.object = exchange.row_object,
                       .version = accepted.version,
                       .column_definitions = true,
                       .now = now});
    case Form::kPartial:
      if (list) {
        return base::error(
            base::Code::kNotAcceptable,
            "you requested PartialObjectMetadata, but the requested object is a list ({})",
            type_name(exchange, object));
      }
      return to_partial_metadata(object, accepted.version);
    case Form::kPartialList:
      if (!list) {
        return base::error(
            base::Code::kNotAcceptable,
            "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
            type_name(exchange, object));
      }
      return to_partial_metadata_list(object, accepted.version);
    default:
      return list ? with_plain_items(exchange, object) : object;
  }
}

}  // namespace

http::Headers reply_headers(const Exchange& exchange) {
  http::Headers headers = {{"Audit-Id", exchange.audit_id}, {"Cache-Control", "no-cache, private"}};
  for (const std::string& warning : exchange.warnings) {
    headers.emplace_back("Warning", warning_header(warning));
  }
  return headers;
}

void send_text(const Exchange& exchange, int status, std::string body, std::string content_type) {
  http::Response response;
  response.status = status;
  response.headers = reply_headers(exchange);
  response.body = std::move(body);
  response.content_type = std::move(content_type);
  exchange.responder->send(std::move(response));
}

void send_page_not_found(const Exchange& exchange) {
  send_text(exchange, 404, "404 page not found\n", "text/plain; charset=utf-8");
}

http::Response refusal(int status, std::string_view why) {
  if (status != 413) return http::plain_refusal(status, why);
  http::Response response;
  response.status = status;
  response.headers = {{"Cache-Control", "no-cache, private"}};
  response.body = status_body(too_large_body()).dump() + "\n";
  return response;
}

void send_error(const Exchange& exchange, const base::Error& error) {
  http::Response response;
  response.status = base::http_status_of(error.code);
  response.headers = reply_headers(exchange);
  if (const int seconds = retry_after_seconds(error); seconds > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(seconds));
  }
  if (error.code == base::Code::kUnauthorized) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  response.body = as_text(exchange, status_body(error, exchange.subject));
  response.content_type = exchange.accepted.content_type();
  exchange.responder->send(std::move(response));
}

void send_object(const Exchange& exchange, int status, const Value& object, base::Time now) {
  const bool is_status = object["kind"].as_string() == "Status";
  base::Result<Value> out = is_status ? object : shaped(exchange, object, now);
  if (!out) return send_error(exchange, out.error());
  send_text(exchange, status, as_text(exchange, *out),
            std::string(exchange.accepted.content_type()));
}

}  // namespace tessera::apiserver
