#include "apiserver/api.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "apiserver/admission.h"
#include "apiserver/admission_events.h"
#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/api_options.h"
#include "apiserver/api_token.h"
#include "apiserver/auth.h"
#include "apiserver/auth_reviews.h"
#include "apiserver/crd_controller.h"
#include "apiserver/rbac_aggregation.h"
#include "apiserver/rbac_defaults.h"
#include "apiserver/sqlite_log.h"
#include "apiserver/token_request.h"
#include "base/check.h"
#include "base/log.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using kube::Verb;

base::Error no_such_resource() {
  return {Code::kNotFound, "the server could not find the requested resource", {}};
}

FieldValidation read_validation(const kube::Request& request) {
  const std::string_view text = request.option("fieldValidation");
  if (text == "Strict") return FieldValidation::kStrict;
  return text == "Ignore" ? FieldValidation::kIgnore : FieldValidation::kWarn;
}

// An object or a list of the stored kind as the view shows it; all else as it is.
json::Value shown_as(const Kind& view, const Kind& stored, json::Value answer) {
  if (answer["apiVersion"].as_string() != stored.api_version()) return answer;
  const std::string_view kind = answer["kind"].as_string();
  if (kind == stored.kind) return view.view->from_stored(answer);
  if (kind != stored.kind + "List") return answer;
  answer.set("apiVersion", view.api_version());
  answer.set("kind", view.kind + "List");
  std::vector<json::Value> items;
  for (const json::Value& item : answer["items"].items()) {
    items.push_back(view.view->from_stored(item));
  }
  answer.set("items", json::array_of(items));
  return answer;
}

bool has_subresource(const Kind& kind, const std::string& name) {
  if (name.empty()) return true;
  if (name == "status") return kind.status_subresource;
  return std::ranges::find(kind.subresources, name) != kind.subresources.end();
}

// What the address of a request says must fit the kind.
base::Status check_address(const Kind& kind, const kube::Request& request) {
  const bool collection = request.verb == Verb::kList || request.verb == Verb::kDeleteCollection;
  const bool create = request.verb == Verb::kCreate;
  if (!has_subresource(kind, request.subresource)) return base::error(no_such_resource());
  if (!kind.namespaced && !request.ns.empty()) return base::error(no_such_resource());
  if (kind.namespaced && request.ns.empty() && request.verb != Verb::kList) {
    return base::error(
        bad_request("an empty namespace may not be set during " +
                    std::string(create ? "creation" : "this request: name the namespace")));
  }
  const bool named = !request.name.empty();
  if (!named && !collection && (!create || !request.subresource.empty())) {
    return base::error(method_not_allowed());
  }
  return {};
}

// Whoever uses a version that is to go is told, whatever comes of the call.
void warn_deprecated(Call& call) {
  if (call.kind->custom->deprecation.empty()) return;
  call.done = [text = call.kind->custom->deprecation, done = std::move(call.done)](ApiReply reply) {
    reply.warnings.insert(reply.warnings.begin(), text);
    done(std::move(reply));
  };
}

void dispatch(Core& core, const CallPtr& call) {
  const std::string& sub = call->request.subresource;
  const Verb verb = call->request.verb;
  if (call->kind->virtual_create) {
    if (verb != Verb::kCreate || !sub.empty()) return fail(core, call, method_not_allowed());
    return call->kind == core.bindings ? do_bindings(core, call) : do_virtual_create(core, call);
  }
  if (sub == "token" && verb == Verb::kCreate) return do_token(core, call);
  if (sub == "binding" && verb == Verb::kCreate) return do_binding(core, call);
  if (sub == "eviction" && verb == Verb::kCreate) return do_eviction(core, call);
  const bool edits = verb == Verb::kUpdate || verb == Verb::kPatch;
  if (sub == "scale" && (verb == Verb::kGet || edits)) return do_scale(core, call);
  const bool half =
      sub == "status" || sub == "ephemeralcontainers" || sub == "resize" || sub == "finalize";
  if (!sub.empty() && !(half && (verb == Verb::kGet || edits))) {
    return fail(core, call, method_not_allowed());
  }
  switch (verb) {
    case Verb::kGet:
      return do_get(core, call);
    case Verb::kList:
      return do_list(core, call);
    case Verb::kCreate:
      return do_create(core, call);
    case Verb::kUpdate:
      return put_creates(core, *call) ? create_by_put(core, call) : do_update(core, call);
    case Verb::kPatch:
      return do_patch(core, call);
    case Verb::kDelete:
      return do_delete(core, call);
    case Verb::kDeleteCollection:
      return do_delete_collection(core, call);
  }
}

// The request is carried out on the kind that is stored; the answer shows the face that was asked for.
void look_through(const Core& core, const CallPtr& call) {
  call->view = call->kind;
  call->kind = core.options.kinds->find(call->view->view->of);
  call->done = [view = call->view, stored = call->kind,
                done = std::move(call->done)](ApiReply reply) {
    if (reply.result) reply.result = shown_as(*view, *stored, *std::move(reply.result));
    done(std::move(reply));
  };
}

base::Result<WatchHub::Wanted> read_watch(const Core& core, const kube::Request& request) {
  WatchHub::Wanted wanted;
  wanted.kind = core.options.kinds->find(request.gvr);
  if (wanted.kind == nullptr) return base::error(no_such_resource());
  if (wanted.kind->virtual_create) return base::error(method_not_allowed());
  TS_TRY(wanted.selection, Selection::parse(*wanted.kind, request));
  if (wanted.kind->view) {
    wanted.view = wanted.kind;
    wanted.kind = core.options.kinds->find(wanted.view->view->of);
  }
  TS_TRY_STATUS(check_watch_options(request));
  TS_TRY(const auto version, read_version(request));
  TS_TRY(const auto timeout, read_number(request, "timeoutSeconds"));
  constexpr uint64_t kYear = 366 * 86400;
  wanted.timeout = base::seconds(static_cast<int64_t>(std::min(timeout.value_or(0), kYear)));
  wanted.since = version.value_or(0);
  wanted.bookmarks = read_flag(request, "allowWatchBookmarks");
  const bool initial = asks_initial_events(request);
  wanted.at_least = initial;
  wanted.initial_bookmark = initial && wanted.bookmarks;
  wanted.only_new = !initial && wanted.since == 0;
  return wanted;
}

base::Status check_start(const Core& core, const WatchHub::Wanted& wanted) {
  if (wanted.since == 0) return {};
  if (wanted.at_least) return check_not_ahead(wanted.since, core.store->revision());
  const uint64_t oldest = core.store->oldest();
  if (wanted.since >= oldest) return {};
  return base::error(Code::kExpired, "too old resource version: {} ({})", wanted.since, oldest);
}

}  // namespace

Caller system_caller(std::string_view component) {
  return {"system:" + std::string(component),
          {"system:masters", "system:authenticated"},
          "tessera/" + std::string(component)};
}

struct Api::Impl {
  std::shared_ptr<Core> core;
  std::shared_ptr<EventExpiry> events;
  std::shared_ptr<RoleAggregation> aggregation;
  std::shared_ptr<CrdController> definitions;
  std::map<std::string, CrdKinds> restored;  // kinds of the definitions on disk
  std::atomic<bool> closed{false};

  base::Status restore();
  void observe();
  base::Status make_initial_objects();
  void resume();
};

base::Status Api::Impl::restore() {
  const Options& options = core->options;
  std::unique_ptr<RowLog> log;
  std::vector<StoredRow> rows;
  uint64_t revision = 1;
  if (!options.data_dir.empty()) {
    TS_TRY(SqliteLog::Loaded loaded, SqliteLog::open(options.data_dir));
    log = std::move(loaded.log);
    rows = std::move(loaded.rows);
    revision = std::max<uint64_t>(loaded.revision, 1);
    core->stir(revision);
  }
  core->store = std::make_shared<Store>(
      *options.executor, std::move(log),
      Store::History{options.history_events_max, options.history_bytes_max});
  CrdController::load(rows, *core->kinds, restored);
  const base::Status read = core->store->restore(*options.kinds, std::move(rows), revision);
  if (!read) return base::error(read.error().in("in " + options.data_dir));
  core->hub = std::make_shared<WatchHub>(*options.executor, core->store, options.bookmark_period);
  core->access =
      std::make_shared<Access>(core->store, *options.kinds, *options.clock, options.token_key_pem);
  return {};
}

// A role or binding of an earlier version gets what it lacks; all else that is there stays as it is.
void bring_forward(Core& core, const CallPtr& call, const json::Value& found,
                   const json::Value& wanted) {
  if (call->kind->group != "rbac.authorization.k8s.io") return;
  if (reconciled(found, wanted) == found) return;
  base::log_info("default role brought forward kind={} name={}", call->kind->kind,
                 call->request.name);
  call->request.verb = Verb::kUpdate;
  Update update;
  update.key = call->key();
  update.name = call->request.name;
  update.transform = [wanted](const json::Value& now) -> base::Result<json::Value> {
    return reconciled(now, wanted);
  };
  run_update(core, call, update);
}

void make_where_missing(Core& core, const Kind& kind, json::Value object) {
  auto call = std::make_shared<Call>();
  call->kind = &kind;
  call->caller = system_caller("apiserver");
  call->request.verb = Verb::kCreate;
  call->request.gvr = kind.gvr();
  call->request.ns = object["metadata"]["namespace"].str();
  call->request.name = object["metadata"]["name"].str();
  call->done = [](const ApiReply&) {};
  if (const auto found = core.store->latest(&kind, call->key())) {
    return bring_forward(core, call, found.object, object);
  }
  call->request.name.clear();
  call->request.body = std::move(object);
  do_create(core, call);
}

// A namespace or the Service that every cluster has comes back when it was deleted; roles do at the next start.
void remake_later(const std::shared_ptr<Core>& core, const Store::Change& gone) {
  if (gone.kind != core->namespaces && gone.kind != core->services) return;
  for (auto& [kind, object] : initial_objects(*core)) {
    const json::Value& mine = object["metadata"];
    const json::Value& deleted = gone.before["metadata"];
    if (kind != gone.kind || mine["name"] != deleted["name"]) continue;
    if (mine["namespace"] != deleted["namespace"]) continue;
    core->options.executor->post([weak = std::weak_ptr(core), missing = kind, made = object] {
      if (const auto now = weak.lock()) make_where_missing(*now, *missing, made);
    });
  }
}

void Api::Impl::observe() {
  events = std::make_shared<EventExpiry>(core);
  aggregation = std::make_shared<RoleAggregation>(core);
  definitions = std::make_shared<CrdController>(core);
  definitions->adopt(std::move(restored));
  core->store->observe([weak = std::weak_ptr(core), expiry = events, roles = aggregation,
                        crds = definitions](const Store::Change& change) {
    const auto now = weak.lock();
    if (!now) return;
    now->access->on_change(change);
    roles->on_change(change);
    if (change.kind == now->services && change.after.is_null()) now->ips.release(change.before);
    crds->on_change(change);
    now->hub->dispatch(change);
    expiry->on_change(change);
    if (change.after.is_null()) remake_later(now, change);
  });
}

// Those of the kinds that the table has.
void add_default_roles(const Core& core,
                       std::vector<std::pair<const Kind*, json::Value>>& objects) {
  for (DefaultRole& role : default_roles()) {
    const Kind* kind =
        core.options.kinds->find({"rbac.authorization.k8s.io", "v1", std::move(role.plural)});
    if (kind != nullptr) objects.emplace_back(kind, std::move(role.object));
  }
}

// Objects that every cluster has are made where they are missing, through the same steps as all others.
base::Status Api::Impl::make_initial_objects() {
  auto objects = initial_objects(*core);
  if (core->options.default_roles) add_default_roles(*core, objects);
  for (auto& [kind, object] : objects) {
    make_where_missing(*core, *kind, std::move(object));
  }
  core->store->flush_now();
  core->access->load();
  if (core->namespaces == nullptr || core->store->durable(core->namespaces, "default")) return {};
  return base::error(Code::kUnavailable,
                     "cannot write the first objects to the store in {}: see that the disk is "
                     "neither full nor read-only",
                     core->options.data_dir);
}

// What a stop cut short goes on.
void Api::Impl::resume() {
  if (core->services != nullptr) {
    if (const auto page = core->store->list(core->services, {})) {
      for (const json::Value& service : page->items) core->ips.hold(service);
    }
  }
  core->options.executor->post([expiry = events, roles = aggregation, crds = definitions] {
    expiry->arm();
    roles->arm();
    crds->arm();
  });
}

Api::Api(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Api::~Api() {
  close();
}

base::Result<std::unique_ptr<Api>> Api::open(Options options) {
  TS_CHECK(options.clock != nullptr && options.executor != nullptr && options.kinds != nullptr);
  auto impl = std::make_unique<Impl>();
  impl->core = std::make_shared<Core>(std::move(options));
  TS_TRY_STATUS(impl->restore());
  impl->observe();
  impl->resume();
  TS_TRY_STATUS(impl->make_initial_objects());
  return std::unique_ptr<Api>(new Api(std::move(impl)));
}

void Api::call(const Caller& caller, kube::Request request, std::function<void(ApiReply)> done) {
  if (impl_->closed) {
    base::Error error{Code::kUnavailable, "the server is shutting down", {}};
    return done({base::error(std::move(error)), base::http_status_of(Code::kUnavailable), {}});
  }
  auto call = std::make_shared<Call>();
  call->kind = impl_->core->options.kinds->find(request.gvr);
  call->caller = caller;
  call->request = std::move(request);
  call->done = std::move(done);
  Core& core = *impl_->core;
  if (call->kind == nullptr) return fail(core, call, no_such_resource());
  if (const auto ok = check_address(*call->kind, call->request); !ok) {
    return fail(core, call, ok.error());
  }
  if (call->kind->view) look_through(core, call);
  if (const auto options = check_write_options(call->request); !options) {
    return fail(core, call, options.error());
  }
  call->validation = read_validation(call->request);
  call->dry_run = !dry_run_word(call->request).empty();
  if (call->kind->custom != nullptr) warn_deprecated(*call);
  dispatch(core, call);
}

base::Result<std::unique_ptr<base::Subscription>> Api::watch(
    const Caller& /*caller*/, kube::Request request, std::function<void(kube::WatchEvent)> on_event,
    std::function<void(base::Status)> on_close) {
  if (impl_->closed) return base::error(Code::kUnavailable, "the server is shutting down");
  const Core& core = *impl_->core;
  TS_TRY(WatchHub::Wanted wanted, read_watch(core, request));
  TS_TRY_STATUS(check_start(core, wanted));
  wanted.on_event = std::move(on_event);
  wanted.on_close = std::move(on_close);
  return core.hub->subscribe(std::move(wanted));
}

const Kinds& Api::kinds() const {
  return *impl_->core->options.kinds;
}

Access& Api::access() const {
  return *impl_->core->access;
}

const base::Clock& Api::clock() const {
  return *impl_->core->options.clock;
}

uint64_t Api::revision() const {
  return impl_->core->store->revision();
}

base::Status Api::healthy() const {
  return impl_->core->store->healthy();
}

std::vector<std::pair<const Kind*, size_t>> Api::object_counts() const {
  std::vector<std::pair<const Kind*, size_t>> out;
  for (const Kind* kind : kinds().all()) {
    if (!kind->virtual_create && !kind->view)
      out.emplace_back(kind, impl_->core->store->count(kind));
  }
  return out;
}

void Api::close() {
  impl_->closed = true;
  impl_->core->hub->close();
  impl_->core->store->close();
}

}  // namespace tessera::apiserver
