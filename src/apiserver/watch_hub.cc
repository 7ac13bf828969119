#include "apiserver/watch_hub.h"

#include <algorithm>
#include <utility>

#include "apiserver/crd_kind.h"

namespace tessera::apiserver {

using Type = kube::WatchEvent::Type;

namespace {

// A watch that ends tells so long before where it stands.
constexpr base::Duration kLastBookmark = base::seconds(2);

}  // namespace

struct WatchHub::Watcher {
  Wanted wanted;
  std::string field;  // the indexed field and its value
  std::string value;
  std::atomic<bool> open{true};
  bool enlisted = false;  // under the hub's mutex
  uint64_t number = 0;    // by age: the order in which bookmarks go out

  void emit(Type type, json::Value object) {
    if (!open.load(std::memory_order_acquire)) return;
    if (wanted.view != nullptr && type != Type::kBookmark) {
      object = wanted.view->view->from_stored(object);
    }
    if (wanted.kind->custom != nullptr && type != Type::kBookmark) {
      object = as_served(*wanted.kind, std::move(object));
    }
    wanted.on_event({type, kube::Object(std::move(object))});
  }
};

class WatchHub::Handle : public base::Subscription {
 public:
  Handle(std::weak_ptr<WatchHub> hub, WatcherPtr watcher)
      : hub_(std::move(hub)), watcher_(std::move(watcher)) {}
  ~Handle() override {
    watcher_->open.store(false, std::memory_order_release);
    if (const auto hub = hub_.lock()) hub->remove(watcher_);
  }

 private:
  std::weak_ptr<WatchHub> hub_;
  WatcherPtr watcher_;
};

WatchHub::WatchHub(base::Executor& executor, std::shared_ptr<Store> store,
                   base::Duration bookmark_period)
    : executor_(executor), store_(std::move(store)), bookmark_period_(bookmark_period) {}

std::unique_ptr<base::Subscription> WatchHub::subscribe(Wanted wanted) {
  auto watcher = std::make_shared<Watcher>();
  watcher->wanted = std::move(wanted);
  for (const std::string& field : watcher->wanted.kind->selectable_fields) {
    if (watcher->wanted.view != nullptr) break;  // it speaks of fields by other names
    if (const auto value = watcher->wanted.selection.exact(field)) {
      watcher->field = field;
      watcher->value = std::string(*value);
      break;
    }
  }
  std::weak_ptr<WatchHub> weak = weak_from_this();
  executor_.post([weak, watcher] {
    if (const auto hub = weak.lock()) hub->start(watcher);
  });
  if (watcher->wanted.bookmarks && watcher->wanted.timeout > kLastBookmark) {
    executor_.post_after(watcher->wanted.timeout - kLastBookmark,
                         [weak, late = std::weak_ptr(watcher)] {
                           const auto hub = weak.lock();
                           const auto target = late.lock();
                           if (hub && target) hub->send_last_bookmark(*target);
                         });
  }
  if (watcher->wanted.timeout.ns > 0) {
    executor_.post_after(watcher->wanted.timeout, [weak, late = std::weak_ptr(watcher)] {
      const auto hub = weak.lock();
      const auto target = late.lock();
      if (hub && target) hub->end(target, {});
    });
  }
  return std::make_unique<Handle>(std::move(weak), std::move(watcher));
}

void WatchHub::start(const WatcherPtr& watcher) {
  if (!watcher->open) return;
  const uint64_t now = store_->observed();
  if (!send_start(*watcher, now)) {
    const Wanted& wanted = watcher->wanted;
    const uint64_t floor = store_->oldest();
    end(watcher,
        wanted.since < floor
            ? base::error(base::Code::kExpired, "too old resource version: {} ({})", wanted.since,
                          floor)
            : base::error(base::Code::kTimeout, "Too large resource version: {}, current: {}",
                          wanted.since, now));
    return;
  }
  enlist(watcher);
}

// The objects, or the changes since; false when the store cannot tell them.
bool WatchHub::send_start(Watcher& watcher, uint64_t now) {
  const Wanted& wanted = watcher.wanted;
  if (wanted.since > now) return !wanted.at_least;
  if (wanted.only_new) return true;
  if (wanted.since != 0 && !wanted.at_least) {
    const auto changes = store_->changes(wanted.kind, wanted.since, now);
    if (!changes) return false;
    for (const Store::Change& change : *changes) send_change(watcher, change);
  } else {
    Store::Range range;
    range.prefix = wanted.selection.prefix();
    range.revision = now;
    range.filter = [&](const json::Value& object) { return wanted.selection.matches(object); };
    auto page = store_->list(wanted.kind, range);
    if (!page) return false;
    for (json::Value& object : page->items) watcher.emit(Type::kAdded, std::move(object));
  }
  if (wanted.initial_bookmark) send_bookmark(watcher, now, true);
  return true;
}

void WatchHub::enlist(const WatcherPtr& watcher) {
  {
    const std::lock_guard lock(mutex_);
    if (!watcher->open) return;
    if (!closed_) {
      Lane& lane = lanes_[table_of(watcher->wanted.kind)];
      (watcher->field.empty() ? lane.all : lane.by_field[watcher->field][watcher->value])
          .push_back(watcher);
      watcher->enlisted = true;
      watcher->number = ++numbered_;
      ++live_;
      if (watcher->wanted.bookmarks) ++with_bookmarks_;
    }
  }
  if (!watcher->enlisted) {
    end(watcher, base::error(base::Code::kUnavailable, "the server is shutting down"));
  } else if (watcher->wanted.bookmarks) {
    start_bookmarks();
  }
}

void WatchHub::remove(const WatcherPtr& watcher) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(watcher->enlisted, false)) return;
  --live_;
  if (watcher->wanted.bookmarks) --with_bookmarks_;
  Lane& lane = lanes_[table_of(watcher->wanted.kind)];
  if (watcher->field.empty()) {
    std::erase(lane.all, watcher);
    return;
  }
  auto& values = lane.by_field[watcher->field];
  const auto it = values.find(watcher->value);
  if (it == values.end()) return;
  std::erase(it->second, watcher);
  if (it->second.empty()) values.erase(it);
}

void WatchHub::end(const WatcherPtr& watcher, const base::Status& why) {
  if (!watcher->open.exchange(false)) return;
  remove(watcher);
  if (watcher->wanted.on_close) watcher->wanted.on_close(why);
}

std::vector<WatchHub::WatcherPtr> WatchHub::targets(const Store::Change& change) {
  const std::lock_guard lock(mutex_);
  const auto it = lanes_.find(change.kind);
  if (it == lanes_.end()) return {};
  std::vector<WatcherPtr> out = it->second.all;
  for (const auto& [field, values] : it->second.by_field) {
    if (values.empty()) continue;
    const std::string after = field_text(*change.kind, change.after, field);
    const std::string before = field_text(*change.kind, change.before, field);
    if (const auto now = values.find(after); now != values.end()) {
      out.insert(out.end(), now->second.begin(), now->second.end());
    }
    if (before == after) continue;
    if (const auto old = values.find(before); old != values.end()) {
      out.insert(out.end(), old->second.begin(), old->second.end());
    }
  }
  return out;
}

void WatchHub::dispatch(const Store::Change& change) {
  for (const WatcherPtr& watcher : targets(change)) send_change(*watcher, change);
}

void WatchHub::send_change(Watcher& watcher, const Store::Change& change) {
  if (!watcher.wanted.at_least && change.revision <= watcher.wanted.since) return;
  const Selection& selection = watcher.wanted.selection;
  const bool was = selection.matches(change.before);
  const bool is = selection.matches(change.after);
  if (is) {
    watcher.emit(was ? Type::kModified : Type::kAdded, change.after);
  } else if (was) {
    // Gone, or out of the selection: the last state selected, at the revision of the change.
    json::Value last = change.before;
    last.ref("metadata", "resourceVersion") = std::to_string(change.revision);
    watcher.emit(Type::kDeleted, std::move(last));
  }
}

void WatchHub::send_bookmark(Watcher& watcher, uint64_t revision, bool initial_end) {
  const Wanted& wanted = watcher.wanted;
  const Kind& kind = wanted.view != nullptr ? *wanted.view : *wanted.kind;
  json::Value object =
      json::Value::object({{"apiVersion", kind.api_version()}, {"kind", kind.kind}});
  object.ref("metadata", "resourceVersion") = std::to_string(revision);
  object.ref("metadata", "creationTimestamp") = nullptr;
  if (initial_end) object.ref("metadata", "annotations", "k8s.io/initial-events-end") = "true";
  watcher.emit(Type::kBookmark, std::move(object));
}

void WatchHub::send_last_bookmark(Watcher& watcher) {
  {
    const std::lock_guard lock(mutex_);
    if (!watcher.enlisted) return;
  }
  send_bookmark(watcher, std::max(store_->observed(), watcher.wanted.since), false);
}

// The timer runs while someone wants bookmarks.
void WatchHub::start_bookmarks() {
  {
    const std::lock_guard lock(mutex_);
    if (with_bookmarks_ == 0 || bookmarks_run_ || closed_) return;
    bookmarks_run_ = true;
  }
  executor_.post_after(bookmark_period_, [weak = weak_from_this()] {
    if (const auto hub = weak.lock()) hub->send_bookmarks();
  });
}

void WatchHub::send_bookmarks() {
  std::vector<WatcherPtr> due;
  {
    const std::lock_guard lock(mutex_);
    bookmarks_run_ = false;
    due = all_by_age();
  }
  std::erase_if(due, [](const WatcherPtr& watcher) { return !watcher->wanted.bookmarks; });
  for (const WatcherPtr& watcher : due) {
    send_bookmark(*watcher, std::max(store_->observed(), watcher->wanted.since), false);
  }
  start_bookmarks();
}

std::vector<WatchHub::WatcherPtr> WatchHub::all_by_age() const {
  std::vector<WatcherPtr> out;
  for (const auto& [kind, lane] : lanes_) {
    out.insert(out.end(), lane.all.begin(), lane.all.end());
    for (const auto& [field, values] : lane.by_field) {
      for (const auto& [value, watchers] : values) {
        out.insert(out.end(), watchers.begin(), watchers.end());
      }
    }
  }
  std::ranges::sort(out, {}, &Watcher::number);
  return out;
}

void WatchHub::end_all(const Kind* table) {
  std::vector<WatcherPtr> open;
  {
    const std::lock_guard lock(mutex_);
    open = all_by_age();
  }
  for (const WatcherPtr& watcher : open) {
    if (table_of(watcher->wanted.kind) == table) end(watcher, {});
  }
}

void WatchHub::close() {
  std::vector<WatcherPtr> open;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    open = all_by_age();
  }
  for (const WatcherPtr& watcher : open) {
    executor_.post([self = shared_from_this(), watcher] {
      self->end(watcher, base::error(base::Code::kUnavailable, "the server is shutting down"));
    });
  }
}

size_t WatchHub::size() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

}  // namespace tessera::apiserver
