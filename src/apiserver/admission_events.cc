#include "apiserver/admission_events.h"

#include <algorithm>
#include <utility>

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr base::Duration kPeriodMax = base::seconds(60);

// When something was last said of the event.
base::Time last_seen(const Value& event) {
  base::Time latest{0};
  for (const Value* text : {&event["metadata"]["creationTimestamp"], &event["lastTimestamp"],
                            &event["eventTime"], &event.get("series", "lastObservedTime")}) {
    if (text->as_string().empty()) continue;
    if (const auto time = base::parse_rfc3339(text->as_string())) latest = std::max(latest, *time);
  }
  return latest;
}

// Past its time, or said in a future that only a clock which went back can have seen.
bool is_over(const Value& event, base::Time now, base::Duration ttl) {
  const base::Time seen = last_seen(event);
  return seen <= now - ttl || seen > now + ttl;
}

}  // namespace

void EventExpiry::on_change(const Store::Change& change) {
  const auto core = core_.lock();
  if (core && change.kind == core->events && !change.after.is_null()) arm();
}

void EventExpiry::arm() {
  const auto core = core_.lock();
  if (!core || core->events == nullptr || std::exchange(armed_, true)) return;
  const base::Duration period = std::clamp(core->options.event_ttl, base::millis(100), kPeriodMax);
  core->options.executor->post_after(period, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->sweep();
  });
}

void EventExpiry::sweep() {
  armed_ = false;
  const auto core = core_.lock();
  if (!core) return;
  const base::Time now = core->now();
  const base::Duration ttl = core->options.event_ttl;
  const auto page = core->store->list(core->events, {});
  if (!page || page->items.empty()) return;
  for (const Value& event : page->items) {
    if (!is_over(event, now, ttl)) continue;
    auto call = std::make_shared<Call>();
    call->kind = core->events;
    call->done = [](const ApiReply&) {};
    const std::string key = store_key(*core->events, event);
    run_update(*core, call,
               {key,
                key,
                [now, ttl](const Value& current) -> base::Result<Value> {
                  return is_over(current, now, ttl) ? Value() : current;
                },
                200,
                {}});
  }
  arm();
}

}  // namespace tessera::apiserver
