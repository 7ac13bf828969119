#include "apiserver/api_core.h"

#include <utility>

#include "apiserver/admission_quota.h"
#include "apiserver/api_errors.h"
#include "apiserver/crd_kind.h"

namespace tessera::apiserver {
namespace {

// An object that etcd would refuse is refused here.
constexpr size_t kObjectBytesMax = size_t{3} << 19;
constexpr int kAttemptsMax = 1000;

}  // namespace

Core::Core(Api::Options from)
    : options(std::move(from)),
      kinds(std::make_shared<Kinds>(*options.kinds)),
      random_(options.random) {
  options.kinds = kinds.get();
  const auto find = [&](const char* group, const char* plural) {
    return options.kinds->find({group, "v1", plural});
  };
  namespaces = find("", "namespaces");
  pods = find("", "pods");
  bindings = find("", "bindings");
  services = find("", "services");
  events = find("", "events");
  priority_classes = find("scheduling.k8s.io", "priorityclasses");
  resource_quotas = find("", "resourcequotas");
  limit_ranges = find("", "limitranges");
  claims = find("", "persistentvolumeclaims");
  volumes = find("", "persistentvolumes");
  storage_classes = find("storage.k8s.io", "storageclasses");
  nodes = find("", "nodes");
  service_accounts = find("", "serviceaccounts");
  budgets = find("policy", "poddisruptionbudgets");
}

std::string Core::uuid() {
  const std::lock_guard lock(random_mutex_);
  return random_.uuid();
}

std::string Core::suffix(int length) {
  const std::lock_guard lock(random_mutex_);
  return random_.suffix(length);
}

void Core::stir(uint64_t salt) {
  const std::lock_guard lock(random_mutex_);
  random_ = base::Random(random_.next() ^ salt);
}

uint64_t Core::draw(uint64_t bound) {
  const std::lock_guard lock(random_mutex_);
  return random_.below(bound);
}

void fail(Core& core, const CallPtr& call, base::Error error) {
  core.store->when_durable([call, error = std::move(error)](const base::Status& status) {
    const base::Error& why = status ? error : status.error();
    call->done({base::error(why), base::http_status_of(why.code), std::move(call->warnings)});
  });
}

void succeed(Core& core, const CallPtr& call, json::Value result, int http_status) {
  core.store->when_durable([reply = reply_of(call, http_status),
                            result = std::move(result)](const base::Status& status) {
    if (status) {
      reply(result);
    } else {
      reply(base::error(status.error()));
    }
  });
}

std::function<void(base::Result<json::Value>)> reply_of(
    CallPtr call, int http_status, std::function<json::Value(json::Value)> view) {
  return [call = std::move(call), http_status,
          view = std::move(view)](base::Result<json::Value> result) {
    const int code = result ? http_status : base::http_status_of(result.error().code);
    if (result && call->kind != nullptr) *result = as_served(*call->kind, std::move(*result));
    if (result && view) *result = view(std::move(*result));
    call->done({std::move(result), code, std::move(call->warnings)});
  };
}

base::Status check_size(const json::Value& object) {
  if (text_size(object, kObjectBytesMax) <= kObjectBytesMax) return {};
  return base::error(base::Code::kTooLarge, "etcdserver: request is too large");
}

void run_update(Core& core, const CallPtr& call, const Update& update) {
  const Kind& kind = *call->kind;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    Store::Found current = core.store->latest(&kind, update.key);
    if (!current) return fail(core, call, not_found(call->face(), update.name));
    call->warnings.clear();
    current.object = as_served(kind, std::move(current.object));
    auto next = update.transform(current.object);
    if (!next) return fail(core, call, std::move(next).error());
    if (const auto size = check_size(*next); !size) return fail(core, call, size.error());
    if (call->dry_run || *next == current.object) {
      const auto charged = charge_quotas(core, *call, current.object, *next);
      if (!charged) return fail(core, call, charged.error());
      json::Value seen = next->is_null() ? current.object : std::move(*next);
      if (update.view) seen = update.view(std::move(seen));
      return succeed(core, call, std::move(seen), update.http_status);
    }
    Store::Write write{&kind, update.key, current.revision, as_stored(kind, std::move(*next)),
                       reply_of(call, update.http_status, update.view)};
    const auto outcome = commit_within_quotas(core, *call, current.object, write);
    if (!outcome) return fail(core, call, outcome.error());
    if (*outcome == Store::Outcome::kAccepted) return;
    if (*outcome == Store::Outcome::kClosed) {
      return write.done(base::error(base::Code::kUnavailable, "the server is shutting down"));
    }
  }
  fail(core, call, modified(call->face(), update.name));
}

}  // namespace tessera::apiserver
