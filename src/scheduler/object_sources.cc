#include "scheduler/object_sources.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "kube/informer.h"
#include "scheduler/watched_kinds.h"

namespace tessera::scheduler {
namespace {

using base::Code;

constexpr base::Duration kRetryFirst = base::seconds(1);
constexpr std::string_view kDefinitions = "customresourcedefinitions.apiextensions.k8s.io";
constexpr std::string_view kAllow = "let the scheduler get, list and watch them (RBAC ClusterRole)";
// Definitions are large, and little is kept of each.
constexpr int kDefinitionsPage = 20;

// One version of one kind. `id` is the kind's and grows with each, so that a late word is known as such.
struct Reading {
  uint64_t id = 0;
  std::string version{};
  std::unique_ptr<kube::Informer> informer{};
  explicit operator bool() const { return informer != nullptr; }
};

struct Source {
  const WatchedKind* what;
  base::Random random;
  uint64_t ids = 0;
  Reading now{};         // whose objects are told
  Reading next{};        // takes over once it is listed
  bool decided = false;  // whether it is served is known
  bool probing = false;
  bool doubted = false;  // the API said that what is read now is not there: to be listed anew
  int failures = 0;      // of tries in a row
  bool forbidden = false;
  bool forbidden_told = false;
  std::string unknown_told{};
  base::Error error{Code::kTimeout, "no answer", {}};  // the last

  bool settled() const { return decided && !next; }
};

}  // namespace

struct ObjectSources::State : std::enable_shared_from_this<State> {
  State(kube::Client& c, base::Executor& e, base::Random r, Options o, Handlers h)
      : client(c), executor(e), random(r), options(o), handlers(std::move(h)) {}

  kube::Client& client;
  base::Executor& executor;
  base::Random random;
  Options options;
  Handlers handlers;

  std::vector<Source> sources;  // as the table
  std::unique_ptr<kube::Informer> definitions;
  base::Error definitions_error{Code::kTimeout, "no answer", {}};
  bool definitions_refused = false;  // until they are listed after all, their kinds are probed
  bool started = false;
  bool synced = false;
  bool stopped = false;

  // Runs `what` later or as a callback, unless all this has ended by then.
  template <class... Args>
  auto guarded(void (State::*what)(Args...)) {
    return [weak = weak_from_this(), what](auto&&... args) {
      if (const auto self = weak.lock(); self && !self->stopped)
        ((*self).*what)(std::forward<decltype(args)>(args)...);
    };
  }

  void start() {
    sources.reserve(watched_kinds().size());
    for (const WatchedKind& kind : watched_kinds()) sources.push_back(Source{&kind, random.fork()});
    start_definitions();
    for (Source& source : sources) {
      if (source.what->served == Served::kAlways)
        want(source, source.what->versions[0]);
      else if (source.what->served == Served::kPerhaps)
        start_probing(source);
    }
    executor.post_after(options.sync_timeout, guarded(&State::give_up_waiting));
  }

  // --- what is told

  void report(const kube::Object& before, const kube::Object& after) {
    if (!stopped && handlers.on_change) handlers.on_change(before, after);
  }

  // `id`: whose word it is.
  void on_change(Source& source, uint64_t id, const kube::Object& before,
                 const kube::Object& after) {
    if (source.now && source.now.id == id) return report(before, after);
    if (!source.next || source.next.id != id) return;
    // The first list of what takes over: all its objects are new to its informer, but not to the listener.
    const kube::Object known = source.now ? source.now.informer->find(after.key()) : kube::Object();
    if (known && known.uid() != after.uid()) {
      report(known, {});
      return report({}, after);
    }
    const bool same = known && known.resource_version() == after.resource_version() &&
                      known.api_version() == after.api_version();
    if (!same) report(known, after);
  }

  void on_listed(Source& source, uint64_t id) {
    if (!source.next || source.next.id != id) return;
    const Reading old = std::exchange(source.now, std::exchange(source.next, {}));
    if (old) {
      for (const auto& [key, object] : old.informer->objects()) {
        if (!source.now.informer->find(key)) report(object, {});
      }
    }
    source.doubted = false;
    if (synced) base::log_info("reads {} version={}", source.what->name(), source.now.version);
    check_synced();
  }

  void on_error(Source& source, uint64_t id, const base::Error& error) {
    source.error = error;
    if (error.code == Code::kNotFound && source.now && source.now.id == id) source.doubted = true;
  }

  // --- what is read

  void want(Source& source, std::string_view version) {
    source.decided = true;
    if (version.empty()) {
      withdraw(source);
    } else if (source.now && source.now.version == version && !source.doubted) {
      source.next = {};
    } else if (!source.next || source.next.version != version) {
      read(source, version);
    }
  }

  void read(Source& source, std::string_view version) {
    const auto index = static_cast<size_t>(&source - sources.data());
    const uint64_t id = ++source.ids;
    kube::Informer::Options reading;
    reading.gvr = source.what->gvr(version);
    reading.keep = keep_object;
    kube::Informer::Handlers told;
    // The informer's end ends these too, and it does not outlive this.
    told.on_change = [this, index, id](const kube::Object& before, const kube::Object& after) {
      on_change(sources[index], id, before, after);
    };
    told.on_synced = [this, index, id] { on_listed(sources[index], id); };
    told.on_error = [this, index, id](const base::Error& error) {
      on_error(sources[index], id, error);
    };
    source.next = {id, std::string(version),
                   std::make_unique<kube::Informer>(client, executor, source.random.fork(),
                                                    std::move(reading), std::move(told))};
    source.next.informer->start();
  }

  void withdraw(Source& source) {
    source.next = {};
    source.doubted = false;
    const Reading old = std::exchange(source.now, {});
    if (!old) return;
    if (synced) base::log_info("{} is not served any more", source.what->name());
    for (const auto& [key, object] : old.informer->objects()) report(object, {});
  }

  // --- kinds with a definition

  void start_definitions() {
    kube::Informer::Options reading;
    reading.gvr = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
    reading.keep = keep_definition;
    reading.page_size = kDefinitionsPage;
    kube::Informer::Handlers told;
    told.on_change = [this](const kube::Object& before, const kube::Object& after) {
      if (!definitions->synced()) return;
      for (Source& source : sources) {
        if (source.what->served != Served::kByDefinition) continue;
        if (source.what->name() == (after ? after : before).name()) follow(source, after);
      }
      check_synced();
    };
    told.on_synced = guarded(&State::on_definitions);
    told.on_error = [this](const base::Error& error) { on_definitions_error(error); };
    definitions = std::make_unique<kube::Informer>(client, executor, random.fork(),
                                                   std::move(reading), std::move(told));
    definitions->start();
  }

  void on_definitions() {
    if (std::exchange(definitions_refused, false)) base::log_info("reads {}", kDefinitions);
    for (Source& source : sources) {
      if (source.what->served == Served::kByDefinition)
        follow(source, definitions->find(source.what->name()));
    }
    check_synced();
  }

  void on_definitions_error(const base::Error& error) {
    definitions_error = error;
    const bool refused = error.code == Code::kForbidden || error.code == Code::kNotFound;
    if (!refused || definitions->synced() || definitions_refused) return;
    definitions_refused = true;
    base::log_warn("cannot read {}: {}: each kind is asked for by itself; {}", kDefinitions,
                   error.message, mend_of(error));
    for (Source& source : sources) {
      if (source.what->served == Served::kByDefinition) start_probing(source);
    }
  }

  void follow(Source& source, const kube::Object& definition) {
    const std::string_view version = version_of(*source.what, definition);
    std::string served = version.empty() ? served_versions(definition) : std::string();
    if (!served.empty() && served != source.unknown_told)
      base::log_warn("{} is served as {} alone, which is not known here, so it is not read",
                     source.what->name(), served);
    source.unknown_told = std::move(served);
    want(source, version);
  }

  // --- kinds that nobody announces

  bool probed(const Source& source) const {
    return source.what->served == Served::kPerhaps ||
           (source.what->served == Served::kByDefinition && definitions_refused);
  }

  void start_probing(Source& source) {
    if (std::exchange(source.probing, true)) return;
    probe(static_cast<size_t>(&source - sources.data()));
  }

  void probe(size_t index) { probe_version(index, 0); }

  void probe_version(size_t index, size_t at) {
    Source& source = sources[index];
    if (!probed(source)) {
      source.probing = false;
      return;
    }
    const auto versions = source.what->known_versions();
    if (at == versions.size()) return end_probe(index, "", options.probe_period);
    if (source.now && source.now.version == versions[at] && !source.doubted)
      return end_probe(index, versions[at], options.probe_period);
    kube::Request request;
    request.verb = kube::Verb::kList;
    request.gvr = source.what->gvr(versions[at]);
    request.query.emplace_back("limit", "1");
    client.call(std::move(request), [next = guarded(&State::on_probe), index,
                                     at](kube::Reply reply) { next(index, at, reply); });
  }

  void on_probe(size_t index, size_t at, const kube::Reply& reply) {
    Source& source = sources[index];
    if (!probed(source)) {
      source.probing = false;
      return;
    }
    if (reply) return end_probe(index, source.what->known_versions()[at], options.probe_period);
    if (reply.error().code == Code::kNotFound) return probe_version(index, at + 1);
    if (reply.error().code == Code::kForbidden) return on_forbidden(index, reply.error());
    source.error = reply.error();
    base::Duration delay = kRetryFirst;
    for (int i = 0; i < source.failures && delay < options.probe_period; ++i) delay.ns *= 2;
    ++source.failures;
    again(index, std::min(delay, options.probe_period));
  }

  // Neither there nor not there: what is read already is kept.
  void on_forbidden(size_t index, const base::Error& error) {
    Source& source = sources[index];
    source.decided = true;
    source.error = error;
    source.forbidden = true;
    again(index, options.probe_period);
    tell_forbidden();
    check_synced();
  }

  // In one line, once each of them has been tried: which of them there are cannot be told.
  void tell_forbidden() {
    if (!std::ranges::all_of(sources, &Source::decided)) return;
    std::string names;
    for (Source& source : sources) {
      if (!source.forbidden || std::exchange(source.forbidden_told, true)) continue;
      names += names.empty() ? "" : ", ";
      names += source.what->name();
    }
    if (names.empty()) return;
    base::log_warn("may not read {}: they count as absent until they can be read; {}", names,
                   kAllow);
  }

  void end_probe(size_t index, std::string_view version, base::Duration delay) {
    Source& source = sources[index];
    source.failures = 0;
    source.forbidden = false;
    want(source, version);
    again(index, delay);
    tell_forbidden();
    check_synced();
  }

  void again(size_t index, base::Duration delay) {
    executor.post_after(delay, [next = guarded(&State::probe), index] { next(index); });
  }

  // --- all that was there at the start

  static std::string_view mend_of(const base::Error& error) {
    return error.code == Code::kForbidden ? kAllow : "see that the API serves them";
  }
  static void warn(const Source& source) {
    base::log_warn("cannot read {}: {}: they count as absent until they can be read; {}",
                   source.what->name(), source.error.message, mend_of(source.error));
  }

  void check_synced() {
    if (synced || stopped) return;
    if (!std::ranges::all_of(sources, &Source::settled)) return;
    finish();
  }

  void finish() {
    synced = true;
    // Not from inside whatever was told last.
    executor.post(guarded(&State::tell_synced));
  }
  void tell_synced() {
    if (handlers.on_synced) handlers.on_synced();
  }

  void give_up_waiting() {
    if (synced) return;
    const bool all = !definitions->synced() && !definitions_refused;
    if (all)
      base::log_warn("cannot read {}: {}: groups and queues wait until they can be read; {}",
                     kDefinitions, definitions_error.message, mend_of(definitions_error));
    for (Source& source : sources) {
      if (source.forbidden && !std::exchange(source.forbidden_told, true)) warn(source);
      if (source.settled() || (all && source.what->served == Served::kByDefinition)) continue;
      warn(source);
    }
    finish();
  }
};

ObjectSources::ObjectSources(kube::Client& client, base::Executor& executor, base::Random random,
                             Options options, Handlers handlers)
    : state_(std::make_shared<State>(client, executor, random, options, std::move(handlers))) {}

ObjectSources::~ObjectSources() {
  state_->stopped = true;
  state_->definitions.reset();
  state_->sources.clear();
}

void ObjectSources::start() {
  if (std::exchange(state_->started, true)) return;
  state_->start();
}

bool ObjectSources::synced() const {
  return state_->synced;
}

std::string ObjectSources::version(std::string_view group, std::string_view kind) const {
  for (const Source& source : state_->sources) {
    if (source.what->group == group && source.what->kind == kind) return source.now.version;
  }
  return {};
}

}  // namespace tessera::scheduler
