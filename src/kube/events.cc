#include "kube/events.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"

namespace tessera::kube {
namespace {

using base::Code;
using base::Duration;
using base::Time;

constexpr Duration kSameWithin = base::seconds(600);
constexpr size_t kTextsMax = 10;        // different texts of one reason before they are folded
constexpr double kBurst = 25;           // events of one object at once
constexpr double kRefillSeconds = 300;  // for one more
constexpr size_t kRemembered = 4096;
constexpr size_t kMessageBytesMax = 1024;

// Everything that makes two events the same, joined by a byte that stands in none of it.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) out.append(part).push_back('\0');
  return out;
}

std::string object_key(const Object& about) {
  return joined({about.api_version(), about.kind(), about.ns(), about.name(), about.uid()});
}

// Cut without splitting a character.
std::string cut(std::string text) {
  if (text.size() <= kMessageBytesMax) return text;
  size_t end = kMessageBytesMax - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// Forgets what is old, or everything where nothing is.
template <class Map>
void make_room(Map& map, Time now) {
  if (map.size() < kRemembered) return;
  std::erase_if(map, [&](const auto& entry) { return now - entry.second.last > kSameWithin; });
  if (map.size() >= kRemembered) map.clear();
}

struct Bucket {
  double tokens = kBurst;
  Time last;
};

struct Texts {
  std::set<std::string, std::less<>> seen;
  Time last;
};

// One Event object in the API.
struct Written {
  json::Value object;
  int64_t count = 0;
  bool exists = false;
  bool busy = false;   // a write is under way
  bool dirty = false;  // and what it wrote is out of date
};

}  // namespace

struct EventRecorder::State : std::enable_shared_from_this<State> {
  State(Client& c, const base::Clock& t, base::Random r, std::string what, std::string where)
      : client(c), clock(t), random(r), component(std::move(what)), host(std::move(where)) {}

  struct Slot {
    std::shared_ptr<Written> event;
    Time last;
  };

  Client& client;
  const base::Clock& clock;
  base::Random random;
  std::string component;
  std::string host;
  std::map<std::string, Bucket> buckets;
  std::map<std::string, Texts> texts;
  std::map<std::string, Slot> events;
  size_t dropped = 0;

  bool take_token(const std::string& about, Time now) {
    make_room(buckets, now);
    const auto [at, fresh] = buckets.try_emplace(about);
    Bucket& bucket = at->second;
    if (!fresh) {
      bucket.tokens =
          std::min(kBurst, bucket.tokens + (now - bucket.last).seconds() / kRefillSeconds);
    }
    bucket.last = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  // True once so many texts came under one key that they are to share one Event.
  bool fold(const std::string& key, const std::string& message, Time now) {
    make_room(texts, now);
    Texts& mine = texts[key];
    if (now - mine.last > kSameWithin) mine.seen.clear();
    mine.last = now;
    if (mine.seen.size() <= kTextsMax) mine.seen.insert(message);
    return mine.seen.size() > kTextsMax;
  }

  void record(const Object& about, std::string_view type, std::string_view reason,
              std::string_view text) {
    const Time now = clock.now();
    const std::string about_key = object_key(about);
    if (!take_token(about_key, now)) {
      ++dropped;
      return;
    }
    std::string message = cut(std::string(text));
    const std::string like = joined({about_key, type, reason});
    const bool folded = fold(like, message, now);
    if (folded) message = cut("(combined from similar events): " + message);
    make_room(events, now);
    Slot& slot = events[folded ? like : joined({like, message})];
    if (!slot.event || now - slot.last > kSameWithin) {
      slot.event = std::make_shared<Written>();
      slot.event->object = new_event(about, type, reason, now);
    }
    slot.last = now;
    Written& event = *slot.event;
    ++event.count;
    event.object.set("message", message);
    event.object.set("count", event.count);
    event.object.set("lastTimestamp", base::to_rfc3339(now));
    write(slot.event);
  }

  json::Value new_event(const Object& about, std::string_view type, std::string_view reason,
                        Time now) {
    using json::Value;
    const std::string ns = about.ns().empty() ? "default" : std::string(about.ns());
    Value involved = Value::object();
    const auto set = [](Value& value, std::string_view key, std::string_view text) {
      if (!text.empty()) value.set(key, text);
    };
    set(involved, "apiVersion", about.api_version());
    set(involved, "kind", about.kind());
    set(involved, "name", about.name());
    set(involved, "namespace", about.ns());
    set(involved, "uid", about.uid());
    set(involved, "resourceVersion", about.resource_version());
    Value source = Value::object({{"component", component}});
    set(source, "host", host);
    return Value::object(
        {{"apiVersion", "v1"},
         {"kind", "Event"},
         {"metadata", Value::object({{"name", new_name(about.name())}, {"namespace", ns}})},
         {"involvedObject", std::move(involved)},
         {"type", type},
         {"reason", reason},
         {"source", std::move(source)},
         {"reportingComponent", component},
         {"reportingInstance", host},
         {"firstTimestamp", base::to_rfc3339(now)}});
  }

  std::string new_name(std::string_view about) {
    constexpr size_t kNameMax = 253 - 17;
    return fmt::format("{}.{:016x}", about.substr(0, kNameMax), random.next());
  }

  void write(const std::shared_ptr<Written>& event) {
    if (std::exchange(event->busy, true)) {
      event->dirty = true;
      return;
    }
    event->dirty = false;
    const json::Value& object = event->object;
    const std::string ns = object.get("metadata", "namespace").str();
    auto done = [weak = weak_from_this(), event](Reply reply) {
      if (const auto self = weak.lock()) self->written(event, reply);
    };
    if (!event->exists) {
      client.create(core_v1("events"), ns, object, std::move(done));
      return;
    }
    json::Value patch = json::Value::object({{"count", object["count"]},
                                             {"message", object["message"]},
                                             {"lastTimestamp", object["lastTimestamp"]}});
    client.merge_patch(core_v1("events"), ns, object.get("metadata", "name").str(),
                       std::move(patch), std::move(done));
  }

  void written(const std::shared_ptr<Written>& event, const Reply& reply) {
    event->busy = false;
    const bool gone = !reply && event->exists && reply.error().code == Code::kNotFound;
    if (gone) {
      // Events expire; this one starts again under another name.
      const std::string about = event->object.get("involvedObject", "name").str();
      event->object.ref("metadata", "name") = new_name(about);
      event->exists = false;
      event->dirty = true;
    } else if (!reply) {
      base::log_debug("event not written reason={} error=\"{}\"",
                      event->object["reason"].as_string(), reply.error().message);
    } else {
      event->exists = true;
    }
    if (event->dirty) write(event);
  }
};

EventRecorder::EventRecorder(Client& client, const base::Clock& clock, base::Random random,
                             std::string component, std::string host)
    : state_(
          std::make_shared<State>(client, clock, random, std::move(component), std::move(host))) {}

EventRecorder::~EventRecorder() = default;

void EventRecorder::normal(const Object& about, std::string_view reason, std::string_view message) {
  state_->record(about, "Normal", reason, message);
}

void EventRecorder::warning(const Object& about, std::string_view reason,
                            std::string_view message) {
  state_->record(about, "Warning", reason, message);
}

size_t EventRecorder::dropped() const {
  return state_->dropped;
}

}  // namespace tessera::kube
