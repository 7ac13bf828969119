#include "apiserver/front.h"

#include <mutex>
#include <utility>

#include "apiserver/front_auth.h"
#include "apiserver/front_pages.h"
#include "apiserver/front_reply.h"
#include "apiserver/front_watch.h"
#include "apiserver/routes_body.h"
#include "base/log.h"

namespace tessera::apiserver {
namespace {

using base::Code;

RowObject row_object_of(const Query& query) {
  const std::string_view include = query_value(query, "includeObject");
  if (include == "None") return RowObject::kNone;
  if (include == "Object") return RowObject::kObject;
  return RowObject::kMetadata;
}

std::string path_of(const http::Request& request) {
  return request.target.substr(0, request.target.find('?'));
}

StatusSubject subject_of(const ResourcePath& path) {
  return {path.kind->group, path.kind->plural, path.kind->kind, path.name, {}};
}

}  // namespace

struct Front::Impl {
  Impl(Api& core, FrontOptions opts)
      : api(core),
        options(std::move(opts)),
        pages(core.kinds()),
        streams(core),
        random(options.random) {}

  Api& api;
  const FrontOptions options;
  Pages pages;
  WatchStreams streams;
  std::mutex random_mutex;
  base::Random random;

  void handle(http::Request request, std::shared_ptr<http::Responder> responder);
  base::Status answer(std::shared_ptr<Exchange> exchange);
  base::Status answer_page(Exchange& exchange);
  base::Status answer_health(Exchange& exchange);
  base::Status answer_resource(std::shared_ptr<Exchange> exchange, const Caller& caller);
  void limit_watch(Query& query);
  base::Status answer_watch(Exchange& exchange, const Caller& caller, Operation operation);
};

void Front::Impl::handle(http::Request request, std::shared_ptr<http::Responder> responder) {
  auto exchange = std::make_shared<Exchange>();
  exchange->request = std::move(request);
  exchange->responder = std::move(responder);
  {
    const std::lock_guard lock(random_mutex);
    exchange->audit_id = random.uuid();
  }
  if (base::Status done = answer(exchange); !done) {
    base::log_debug("refused method={} path={} reason={}", exchange->request.method,
                    path_of(exchange->request), base::reason_of(done.error().code));
    send_error(*exchange, done.error());
  }
}

base::Status Front::Impl::answer(std::shared_ptr<Exchange> exchange) {
  TS_TRY(exchange->target, http::parse_target(exchange->request.target));
  const auto& segments = exchange->target.segments;
  if (is_health_path(segments)) return answer_health(*exchange);
  const bool open_to_all = segments.size() == 1 && segments[0] == "version";
  if (open_to_all) return answer_page(*exchange);
  TS_TRY(Caller sender, authenticate(exchange->request, options.tokens));
  TS_TRY(const Caller caller, impersonate(exchange->request, std::move(sender)));
  if (is_page_path(segments)) {
    TS_TRY_STATUS(authorize_path(caller, exchange->request.method, path_of(exchange->request)));
    return answer_page(*exchange);
  }
  return answer_resource(std::move(exchange), caller);
}

base::Status Front::Impl::answer_health(Exchange& exchange) {
  std::string text =
      health_text(exchange.target.segments, query_flag(exchange.target.query, "verbose"));
  if (text.empty()) return base::error(unknown_path_error());
  send_text(exchange, 200, std::move(text), "text/plain; charset=utf-8");
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
                                      {.yaml = true, .forms = false, .discovery = discovery}));
  const auto page = pages.find(segments, exchange.accepted);
  if (!page) return base::error(unknown_path_error());
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
  TS_TRY(const ResourcePath path, find_resource(api.kinds(), exchange->target.segments));
  exchange->kind = path.kind;
  exchange->subject = subject_of(path);
  exchange->row_object = row_object_of(query);
  TS_TRY(Operation operation, plan_operation(path, exchange->request.method, query));
  TS_TRY_STATUS(authorize(caller, operation));
  TS_TRY(exchange->accepted,
         negotiate(exchange->request.header("accept"), {.yaml = !operation.watch}));
  if (operation.watch) return answer_watch(*exchange, caller, std::move(operation));
  const RawBody raw{exchange->request.header("content-type"), exchange->request.body};
  TS_TRY_STATUS(read_body(raw, *path.kind, operation.request, &exchange->warnings));
  if (exchange->subject.name.empty()) {
    exchange->subject.name = operation.request.body.get("metadata", "name").str();
  }
  exchange->request.body = {};
  const base::Clock* clock = &api.clock();
  api.call(caller, std::move(operation.request), [exchange, clock](ApiReply reply) {
    for (std::string& warning : reply.warnings) exchange->warnings.push_back(std::move(warning));
    if (!reply.result) return send_error(*exchange, reply.result.error());
    send_object(*exchange, reply.http_status, *reply.result, clock->now());
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
