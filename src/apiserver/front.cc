#include "apiserver/front.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "apiserver/audit.h"
#include "apiserver/flow.h"
#include "apiserver/front_auth.h"
#include "apiserver/front_health.h"
#include "apiserver/front_logs.h"
#include "apiserver/front_metrics.h"
#include "apiserver/front_pages.h"
#include "apiserver/front_reply.h"
#include "apiserver/front_watch.h"
#include "apiserver/routes_body.h"
#include "base/log.h"

namespace tessera::apiserver {
namespace {

using base::Code;

base::Result<RowObject> row_object_of(const Query& query) {
  const std::string_view include = query_value(query, "includeObject");
  if (include == "None") return RowObject::kNone;
  if (include == "Object") return RowObject::kObject;
  if (include.empty() || include == "Metadata") return RowObject::kMetadata;
  return base::error(Code::kBadRequest,
                     "Unable to convert to Table as requested: includeObject: Invalid value: "
                     "\"{}\": must be 'Metadata', 'Object', 'None', or empty",
                     include.substr(0, 64));
}

std::string path_of(const http::Request& request) {
  return request.target.substr(0, request.target.find('?'));
}

StatusSubject subject_of(const ResourcePath& path) {
  return {path.kind->group, path.kind->plural, path.kind->kind, path.name, {}};
}

// Notes what was decided; the decision, or why not.
base::Status noted(Exchange& exchange, const base::Result<Decision>& decision) {
  if (exchange.audit) {
    exchange.audit->decision = decision ? "allow" : "forbid";
    exchange.audit->reason = decision ? decision->reason() : std::string();
  }
  if (decision) return {};
  return base::error(decision.error());
}

void note_resource(Exchange& exchange, const Operation& operation) {
  exchange.meter->labels = request_labels(operation, exchange.request);
  exchange.meter->long_running = operation.watch || exchange.into_container;
  if (!exchange.audit) return;
  AuditRecord& record = *exchange.audit;
  record.verb = operation.verb;
  record.resource = operation.request.gvr;
  record.ns = operation.request.ns;
  record.name = operation.request.name;
  record.subresource = operation.request.subresource;
}

}  // namespace

struct Front::Impl : std::enable_shared_from_this<Front::Impl> {
  Impl(Api& core, FrontOptions opts)
      : api(core),
        options(std::move(opts)),
        pages(core.kinds()),
        streams(core),
        random(options.random),
        metrics(std::make_shared<RequestMetrics>(core.clock())) {
    api.access().accept_tokens(options.tokens);
  }

  Api& api;
  const FrontOptions options;
  Pages pages;
  WatchStreams streams;
  std::mutex random_mutex;
  base::Random random;
  const std::shared_ptr<RequestMetrics> metrics;

  void handle(http::Request request, std::shared_ptr<http::Responder> responder);
  base::Status answer(std::shared_ptr<Exchange> exchange);
  base::Status answer_page(Exchange& exchange);
  base::Status answer_health(Exchange& exchange);
  base::Status answer_metrics(Exchange& exchange);
  base::Status answer_issuer(Exchange& exchange);
  base::Status answer_resource(std::shared_ptr<Exchange> exchange, const Caller& caller);
  base::Status run(const std::shared_ptr<Exchange>& exchange, const Caller& caller,
                   Operation operation);
  base::Result<Caller> identify(Exchange& exchange, bool open);
  base::Status may_see(Exchange& exchange, const Caller& caller);
  void start_audit(Exchange& exchange);
  void finish(const Exchange& exchange, const base::Status& done) const;
  void limit_watch(Query& query);
  base::Status answer_watch(Exchange& exchange, const Caller& caller, Operation operation);
  void refuse_patch(const std::shared_ptr<Exchange>& exchange, const Caller& caller,
                    kube::Request asked, base::Error why);
  base::Status answer_container(const std::shared_ptr<Exchange>& exchange, const Caller& caller,
                                kube::Request asked);
};

void Front::Impl::handle(http::Request request, std::shared_ptr<http::Responder> responder) {
  auto exchange = std::make_shared<Exchange>();
  exchange->request = std::move(request);
  exchange->meter = std::make_shared<RequestMetrics::Meter>();
  exchange->meter->labels.verb = exchange->request.method.substr(0, 16);
  exchange->meter->mutating =
      exchange->request.method != "GET" && exchange->request.method != "HEAD";
  exchange->responder = metrics->metered(exchange->meter, std::move(responder));
  {
    const std::lock_guard lock(random_mutex);
    exchange->audit_id = random.uuid();
  }
  if (options.audit != nullptr) start_audit(*exchange);
  finish(*exchange, answer(exchange));
}

void Front::Impl::finish(const Exchange& exchange, const base::Status& done) const {
  if (done) return;
  base::log_debug("refused method={} path={} reason={}", exchange.request.method,
                  path_of(exchange.request), base::reason_of(done.error().code));
  send_error(exchange, done.error());
}

void Front::Impl::start_audit(Exchange& exchange) {
  auto record = std::make_shared<AuditRecord>();
  record->id = exchange.audit_id;
  record->uri = exchange.request.target;
  record->verb = exchange.request.method;
  for (char& c : record->verb) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  record->source_ip = exchange.request.peer_address;
  record->user.user_agent = exchange.request.header("user-agent");
  record->received = api.clock().now();
  exchange.responder = audited(*options.audit, record, std::move(exchange.responder));
  exchange.audit = std::move(record);
}

// Who asks, or as whom they act.
base::Result<Caller> Front::Impl::identify(Exchange& exchange, bool open) {
  TS_TRY(Caller sender, authenticate(exchange.request, api.access(), open));
  if (exchange.audit) exchange.audit->user = sender;
  TS_TRY(Caller caller, impersonate(exchange.request, std::move(sender), api.access()));
  const bool masked = std::ranges::any_of(
      exchange.request.headers, [](const auto& h) { return h.first == "impersonate-user"; });
  if (exchange.audit && masked) exchange.audit->impersonated = caller;
  return caller;
}

base::Status Front::Impl::may_see(Exchange& exchange, const Caller& caller) {
  return noted(exchange, authorize_path(api.access(), caller, exchange.request.method,
                                        path_of(exchange.request)));
}

base::Status Front::Impl::answer(std::shared_ptr<Exchange> exchange) {
  auto target = http::parse_target(exchange->request.target);
  if (!target) {
    // Where no request can be made out there is no Status either, as from Kubernetes.
    const http::Response refused = http::plain_refusal(400, target.error().message);
    send_text(*exchange, 400, refused.body, refused.content_type);
    return {};
  }
  exchange->target = std::move(*target);
  const auto& segments = exchange->target.segments;
  TS_TRY(const Caller caller, identify(*exchange, is_open_path(segments)));
  const bool api_path = !segments.empty() && (segments[0] == "api" || segments[0] == "apis");
  const bool health = is_health_path(segments);
  exchange->meter->labels.subresource = path_label(segments);
  if (health && segments.size() == 1) return answer_health(*exchange);
  if (!api_path || is_page_path(segments)) TS_TRY_STATUS(may_see(*exchange, caller));
  if (health) return answer_health(*exchange);
  if (segments.size() == 1 && segments[0] == "metrics") return answer_metrics(*exchange);
  if (is_issuer_path(segments)) return answer_issuer(*exchange);
  if (is_page_path(segments)) return answer_page(*exchange);
  if (!api_path) {
    send_page_not_found(*exchange);
    return {};
  }
  return answer_resource(std::move(exchange), caller);
}

base::Status Front::Impl::answer_health(Exchange& exchange) {
  HealthAnswer found = health_answer(exchange.target.segments, exchange.target.query, api);
  if (found.status == 404) {
    send_page_not_found(exchange);
  } else {
    send_text(exchange, found.status, std::move(found.text), "text/plain; charset=utf-8");
  }
  return {};
}

base::Status Front::Impl::answer_metrics(Exchange& exchange) {
  std::string text = metrics->text() + api_metrics(api, options.audit, options.flow);
  send_text(exchange, 200, std::move(text),
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
  return {};
}

base::Status Front::Impl::answer_issuer(Exchange& exchange) {
  TS_TRY(const http::SigningKey key, api.access().key());
  const std::string issuer(api.access().issuer());
  const bool keys = exchange.target.segments[0] == "openid";
  const json::Value document =
      keys ? token_key_set(key) : token_issuer_document(issuer, issuer + "/openid/v1/jwks");
  send_text(exchange, 200, document.dump(), keys ? "application/jwk-set+json" : "application/json");
  return {};
}

base::Status Front::Impl::answer_page(Exchange& exchange) {
  if (exchange.request.method != "GET" && exchange.request.method != "HEAD") {
    return base::error(Code::kMethodNotAllowed,
                       "the server does not allow this method on the requested resource");
  }
  const auto& segments = exchange.target.segments;
  const bool discovery = segments.size() == 1 && (segments[0] == "api" || segments[0] == "apis");
  TS_TRY(exchange.accepted, negotiate(exchange.request.header("accept"),
                                      {.yaml = true,
                                       .forms = false,
                                       .discovery = discovery,
                                       .openapi_protobuf = is_openapi_v2_path(segments)}));
  const auto page = pages.find(segments, exchange.accepted);
  if (!page) {
    // What lies below a group is the API's own to refuse.
    const bool below = segments.size() == (segments[0] == "api" ? 2u : 3u);
    if (below && segments[0] != "openapi") return base::error(unknown_path_error());
    send_page_not_found(exchange);
    return {};
  }
  http::Response response;
  response.headers = {{"Audit-Id", exchange.audit_id},
                      {"Cache-Control", "public"},
                      {"ETag", page->etag},
                      {"Vary", "Accept"}};
  response.content_type = page->content_type;
  if (exchange.request.header("if-none-match") == page->etag) {
    response.status = 304;
  } else {
    response.body = page->text;
  }
  exchange.responder->send(std::move(response));
  return {};
}

base::Status Front::Impl::answer_resource(std::shared_ptr<Exchange> exchange,
                                          const Caller& caller) {
  const Query& query = exchange->target.query;
  if (is_strange_group(api.kinds(), exchange->target.segments)) {
    send_page_not_found(*exchange);
    return {};
  }
  TS_TRY(const ResourcePath path, find_resource(api.kinds(), exchange->target.segments));
  exchange->kind = path.kind;
  exchange->subject = subject_of(path);
  exchange->into_container = leads_into_container(path);
  TS_TRY(Operation operation, plan_operation(path, exchange->request.method, query));
  note_resource(*exchange, operation);
  TS_TRY_STATUS(noted(*exchange, authorize(api.access(), caller, operation)));
  if (!path.kind->deprecation.empty()) exchange->warnings.push_back(path.kind->deprecation);
  TS_TRY(exchange->accepted,
         negotiate(exchange->request.header("accept"),
                   {.yaml = !operation.watch, .text = path.subresource == "log"}));
  if (exchange->accepted.form == Form::kTable) {
    TS_TRY(exchange->row_object, row_object_of(query));
  }
  if (operation.request.verb == kube::Verb::kList) {
    TS_TRY_STATUS(check_list_query(operation.request.query));
  }
  const bool exempt = is_master(caller) || path.kind->group == "coordination.k8s.io";
  if (options.flow == nullptr || exempt) return run(exchange, caller, std::move(operation));
  return options.flow->submit(caller.user, [self = shared_from_this(), exchange, caller,
                                            operation](FlowControl::Seat seat) {
    // A watch gives its seat back once it has begun.
    if (!operation.watch) exchange->seat = seat;
    self->finish(*exchange, self->run(exchange, caller, operation));
  });
}

// On its way: the caller may, and it is its turn.
base::Status Front::Impl::run(const std::shared_ptr<Exchange>& exchange, const Caller& caller,
                              Operation operation) {
  if (operation.watch) return answer_watch(*exchange, caller, std::move(operation));
  if (exchange->into_container) {
    return answer_container(exchange, caller, std::move(operation.request));
  }
  const RawBody raw{exchange->request.header("content-type"), exchange->request.body};
  const auto read = read_body(raw, *exchange->kind, operation.request, &exchange->warnings);
  if (!read && operation.request.verb == kube::Verb::kPatch) {
    refuse_patch(exchange, caller, std::move(operation.request), read.error());
    return {};
  }
  TS_TRY_STATUS(read);
  if (exchange->subject.name.empty()) {
    exchange->subject.name = operation.request.body.get("metadata", "name").str();
  }
  exchange->request.body = {};
  const base::Clock* clock = &api.clock();
  api.call(caller, std::move(operation.request), [exchange, clock](ApiReply reply) {
    for (std::string& warning : reply.warnings) exchange->warnings.push_back(std::move(warning));
    exchange->seat.reset();
    if (!reply.result) return send_error(*exchange, reply.result.error());
    send_object(*exchange, reply.http_status, *reply.result, clock->now());
  });
  return {};
}

// That there is nothing to patch is told before what is wrong with the patch; an apply would make it.
void Front::Impl::refuse_patch(const std::shared_ptr<Exchange>& exchange, const Caller& caller,
                               kube::Request asked, base::Error why) {
  const bool told_first = why.code == Code::kUnsupportedMediaType || why.code == Code::kInvalid ||
                          why.code == Code::kTooLarge;
  if (told_first || asked.patch_type == kube::PatchType::kApply) {
    exchange->seat.reset();
    return send_error(*exchange, why);
  }
  asked.verb = kube::Verb::kGet;
  asked.subresource.clear();
  asked.query.clear();
  api.call(caller, std::move(asked), [exchange, why = std::move(why)](ApiReply reply) {
    exchange->seat.reset();
    const bool missing = !reply.result && reply.result.error().code == Code::kNotFound;
    send_error(*exchange, missing ? reply.result.error() : why);
  });
}

// A pod may have a log; a process to talk to it never has.
base::Status Front::Impl::answer_container(const std::shared_ptr<Exchange>& exchange,
                                           const Caller& caller, kube::Request asked) {
  LogQuery query;
  const bool log = asked.subresource == "log";
  if (log) {
    TS_TRY(query, read_log_query(asked, api.clock().now()));
  }
  kube::Request pod = asked;
  pod.verb = kube::Verb::kGet;
  pod.subresource.clear();
  pod.query.clear();
  api.call(caller, std::move(pod),
           [self = shared_from_this(), exchange, log, asked = std::move(asked),
            query = std::move(query)](ApiReply reply) {
             if (log && reply.result) {
               const std::string node = reply.result->get("spec", "nodeName").str();
               const bool known = !self->api.access().find("", "nodes", "", node).is_null();
               return answer_log(exchange, query, *reply.result, known, self->options.logs);
             }
             exchange->seat.reset();
             send_error(*exchange, reply.result ? no_process_error(*reply.result, asked)
                                                : reply.result.error());
           });
  return {};
}

// A watch that names no end gets one between 30 and 60 minutes, so that clients do not all come back at once.
void Front::Impl::limit_watch(Query& query) {
  const std::string_view asked = query_value(query, "timeoutSeconds");
  if (!asked.empty() && asked != "0") return;
  std::erase_if(query, [](const auto& option) { return option.first == "timeoutSeconds"; });
  const std::lock_guard lock(random_mutex);
  query.emplace_back("timeoutSeconds", std::to_string(1800 + random.below(1800)));
}

base::Status Front::Impl::answer_watch(Exchange& exchange, const Caller& caller,
                                       Operation operation) {
  limit_watch(operation.request.query);
  const WatchForm form{exchange.kind, exchange.accepted, exchange.row_object};
  return streams.start(caller, std::move(operation.request), form, exchange.responder,
                       reply_headers(exchange));
}

Front::Front(Api& api, FrontOptions options)
    : impl_(std::make_shared<Impl>(api, std::move(options))) {}
Front::~Front() = default;

void Front::handle(http::Request request, std::shared_ptr<http::Responder> responder) {
  impl_->handle(std::move(request), std::move(responder));
}

}  // namespace tessera::apiserver
