#include "kube/informer.h"

#include <algorithm>

#include "base/log.h"

namespace tessera::kube {
namespace {

using base::Code;

constexpr base::Duration kDelayFirst = base::millis(200);
constexpr base::Duration kDelayMax = base::seconds(30);
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
// Servers end watches after this time or a little more, so that load spreads again after one of them restarted.
constexpr int kWatchSeconds = 300;

}  // namespace

struct Informer::State : std::enable_shared_from_this<State> {
  State(Client& c, base::Executor& e, base::Random r, Options o, Handlers h)
      : client(c), executor(e), random(r), options(std::move(o)), handlers(std::move(h)) {}

  Client& client;
  base::Executor& executor;
  base::Random random;
  Options options;
  Handlers handlers;

  std::map<std::string, Object, std::less<>> objects;
  std::map<std::string, Object, std::less<>> listed;  // pages of the list under way
  std::string version;                                // watch from here
  std::unique_ptr<base::Subscription> watching;
  uint64_t watch_number = 0;  // callbacks of an older watch are late
  uint64_t turn = 0;          // timers and pages of before the last refresh() are late
  std::vector<std::function<void()>> refreshed;
  int list_failures = 0;
  int watch_failures = 0;  // since the last event
  bool started = false;
  bool synced = false;
  bool stopped = false;

  Request request() const {
    Request out;
    out.verb = Verb::kList;
    out.gvr = options.gvr;
    out.ns = options.ns;
    if (!options.label_selector.empty()) {
      out.query.emplace_back("labelSelector", options.label_selector);
    }
    if (!options.field_selector.empty()) {
      out.query.emplace_back("fieldSelector", options.field_selector);
    }
    return out;
  }

  // 200 ms, 400 ms, ... 30 s, each shortened by up to a half.
  base::Duration backoff(int failures) {
    int64_t delay = kDelayFirst.ns;
    for (int i = 1; i < failures && delay < kDelayMax.ns; ++i) delay *= 2;
    delay = std::min(delay, kDelayMax.ns);
    return base::nanos(delay / 2 +
                       static_cast<int64_t>(random.unit() * static_cast<double>(delay / 2)));
  }

  void later(base::Duration delay, void (State::*what)()) {
    executor.post_after(delay, [weak = weak_from_this(), what, number = turn] {
      const auto self = weak.lock();
      if (self && !self->stopped && self->turn == number) ((*self).*what)();
    });
  }

  void list() {
    listed.clear();
    list_page({});
  }

  void list_page(const std::string& continue_at) {
    Request page = request();
    page.query.emplace_back("limit", std::to_string(options.page_size));
    if (!continue_at.empty()) page.query.emplace_back("continue", continue_at);
    client.call(std::move(page), [weak = weak_from_this(), number = turn](Reply reply) {
      const auto self = weak.lock();
      if (self && !self->stopped && self->turn == number) self->on_page(std::move(reply));
    });
  }

  void on_page(Reply reply) {
    if (!reply) {
      ++list_failures;
      // One or two are the network's ordinary life.
      base::log_at(list_failures == 3 ? base::LogLevel::kWarn : base::LogLevel::kDebug,
                   "cannot list resource={} failures={} error=\"{}\"", options.gvr.resource,
                   list_failures, reply.error().message);
      later(backoff(list_failures), &State::list);
      tell(reply.error());
      return;
    }
    add_items(*reply);
    const std::string next = reply->get("metadata", "continue").str();
    if (!next.empty()) {
      list_page(next);
      return;
    }
    list_failures = 0;
    version = reply->get("metadata", "resourceVersion").str();
    take_list();
    if (!stopped) watch();
    for (const auto& done : std::exchange(refreshed, {})) done();
  }

  void refresh(std::function<void()> done) {
    started = true;
    refreshed.push_back(std::move(done));
    ++turn;
    ++watch_number;
    drop(std::move(watching));
    list();
  }

  // Items of a list leave out what the list says once.
  void add_items(const json::Value& list) {
    std::string_view kind = list["kind"].as_string();
    if (kind.ends_with("List")) kind.remove_suffix(4);
    for (const json::Value& item : list["items"].items()) {
      json::Value made = item;
      if (!made.contains("kind")) made.set("kind", kind);
      if (!made.contains("apiVersion")) made.set("apiVersion", list["apiVersion"]);
      Object object = kept(Object(std::move(made)));
      if (!object) continue;
      std::string key = object.key();
      listed.insert_or_assign(std::move(key), std::move(object));
    }
  }

  // Makes the list just read the truth and reports what differs: first what has gone, then the rest.
  void take_list() {
    const auto now = std::exchange(listed, {});
    std::vector<std::string> gone;
    for (const auto& [key, object] : objects) {
      if (!now.contains(key)) gone.push_back(key);
    }
    for (const std::string& key : gone) remove(key);
    for (const auto& [key, object] : now) {
      const Object before = stored(key);
      if (before && before.uid() == object.uid() &&
          before.resource_version() == object.resource_version()) {
        continue;
      }
      put(key, object);
    }
    if (stopped || synced) return;
    synced = true;
    if (handlers.on_synced) handlers.on_synced();
  }

  Object kept(Object object) const {
    return options.keep ? options.keep(std::move(object)) : object;
  }
  void tell(const base::Error& error) const {
    if (!stopped && handlers.on_error) handlers.on_error(error);
  }

  Object stored(std::string_view key) const {
    const auto found = objects.find(key);
    return found == objects.end() ? Object() : found->second;
  }

  void put(const std::string& key, const Object& object) {
    // Another object of the same name: the old one's end was missed.
    if (const Object before = stored(key); before && before.uid() != object.uid()) remove(key);
    Object& slot = objects[key];
    const Object before = std::exchange(slot, object);
    report(before, object);
  }
  void remove(std::string_view key) {
    const auto found = objects.find(key);
    if (found == objects.end()) return;
    const Object before = found->second;
    objects.erase(found);
    report(before, {});
  }
  void report(const Object& before, const Object& after) {
    if (!stopped && handlers.on_change) handlers.on_change(before, after);
  }

  void watch() {
    Request from_here = request();
    from_here.query.emplace_back("resourceVersion", version);
    from_here.query.emplace_back("allowWatchBookmarks", "true");
    from_here.query.emplace_back(
        "timeoutSeconds",
        std::to_string(kWatchSeconds + static_cast<int>(random.below(kWatchSeconds))));
    const uint64_t number = ++watch_number;
    const auto mine = [weak = weak_from_this(), number] {
      auto self = weak.lock();
      return self && !self->stopped && self->watch_number == number ? self : nullptr;
    };
    auto made = client.watch(
        std::move(from_here),
        [mine](WatchEvent event) {
          if (const auto self = mine()) self->on_event(event);
        },
        [mine](base::Status status) {
          if (const auto self = mine()) self->on_close(std::move(status));
        });
    // The client may have closed it already.
    if (watch_number == number && !stopped) {
      watching = std::move(made);
    } else {
      drop(std::move(made));
    }
  }

  // Lets go of a watch from inside one of its own callbacks.
  void drop(std::unique_ptr<base::Subscription> old) {
    if (old) executor.post([kept = std::shared_ptr<base::Subscription>(std::move(old))] {});
  }

  void on_event(const WatchEvent& event) {
    if (event.type == WatchEvent::Type::kError) {
      const json::Value& status = event.object.json();
      const bool expired = status["code"].as_int() == 410 ||
                           status["reason"].as_string() == "Expired" ||
                           status["reason"].as_string() == "Gone";
      on_close(base::error(expired ? Code::kExpired : Code::kUnavailable, "{}",
                           status["message"].as_string()));
      return;
    }
    watch_failures = 0;
    if (const auto seen = event.object.resource_version(); !seen.empty()) version = seen;
    if (event.type == WatchEvent::Type::kBookmark) return;
    const std::string key = event.object.key();
    const Object now = event.type == WatchEvent::Type::kDeleted ? Object() : kept(event.object);
    if (now) {
      put(key, now);
    } else {
      remove(key);
    }
  }

  void on_close(base::Status status) {
    ++watch_number;
    drop(std::move(watching));
    const bool expired = !status && status.error().code == Code::kExpired;
    // The first time at once; servers that only ever close must not be hammered.
    const base::Duration delay = watch_failures == 0 ? base::Duration{} : backoff(watch_failures);
    ++watch_failures;
    if (!status && !expired) {
      base::log_debug("watch closed resource={} error=\"{}\"", options.gvr.resource,
                      status.error().message);
    }
    later(delay, expired ? &State::list : &State::watch);
    if (!status && !expired) tell(status.error());
  }
};

Object without_bookkeeping(Object object) {
  const json::Value& metadata = object.metadata();
  const bool applied = metadata["annotations"].contains(kLastApplied);
  if (!applied && !metadata.contains("managedFields")) return object;
  json::Value root = object.json();
  json::Value& changed = root.ref("metadata");
  changed.erase("managedFields");
  if (applied) changed.ref("annotations").erase(kLastApplied);
  return Object(std::move(root));
}

Informer::Informer(Client& client, base::Executor& executor, base::Random random, Options options,
                   Handlers handlers)
    : state_(std::make_shared<State>(client, executor, random, std::move(options),
                                     std::move(handlers))) {}

Informer::~Informer() {
  state_->stopped = true;
  state_->watching.reset();
}

void Informer::start() {
  if (state_->started) return;
  state_->started = true;
  state_->later(base::Duration{}, &State::list);
}

void Informer::refresh(std::function<void()> done) {
  state_->refresh(std::move(done));
}

bool Informer::synced() const {
  return state_->synced;
}

const std::map<std::string, Object, std::less<>>& Informer::objects() const {
  return state_->objects;
}

Object Informer::find(std::string_view key) const {
  return state_->stored(key);
}

}  // namespace tessera::kube
