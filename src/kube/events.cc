#include "kube/events.h"

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

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
constexpr int kWritesMax = 4;  // under way at once
constexpr size_t kMessageBytesMax = 1024;

// Of everything that makes two events the same; what is remembered of thousands of objects is small that way. FNV-1a.
uint64_t hash_of(std::initializer_list<std::string_view> parts,
                 uint64_t hash = 0xcbf29ce484222325) {
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const std::string_view part : parts) {
    for (const char c : part) add(static_cast<unsigned char>(c));
    add(0);  // stands in no part
  }
  return hash;
}

uint64_t object_hash(const Object& about) {
  return hash_of({about.api_version(), about.kind(), about.ns(), about.name(), about.uid()});
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
  std::vector<uint64_t> seen;
  Time last;
};

// One Event object in the API, in what it takes to write it.
struct Written {
  std::string name;
  std::string api_version;  // of the object that it is about, as all up to its version
  std::string kind;
  std::string about;
  std::string ns;
  std::string uid;
  std::string version;
  std::string type;
  std::string reason;
  std::string message;
  Time first;
  Time last;
  int64_t count = 0;
  bool exists = false;
  bool queued = false;  // waits to be written
  bool busy = false;    // a write is under way
  bool dirty = false;   // and what it wrote is out of date
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
  std::map<uint64_t, Bucket> buckets;  // by object
  std::map<uint64_t, Texts> texts;     // by object, type and reason
  std::map<uint64_t, Slot> events;     // and text
  std::deque<std::shared_ptr<Written>> queue;
  int writes = 0;  // under way
  size_t dropped = 0;

  bool take_token(uint64_t about, Time now) {
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
  bool fold(uint64_t key, const std::string& message, Time now) {
    make_room(texts, now);
    Texts& mine = texts[key];
    if (now - mine.last > kSameWithin) mine.seen.clear();
    mine.last = now;
    const uint64_t text = hash_of({message});
    if (mine.seen.size() <= kTextsMax && std::ranges::find(mine.seen, text) == mine.seen.end()) {
      mine.seen.push_back(text);
    }
    return mine.seen.size() > kTextsMax;
  }

  void record(const Object& about, std::string_view type, std::string_view reason,
              std::string_view text) {
    const Time now = clock.now();
    const uint64_t about_hash = object_hash(about);
    if (!take_token(about_hash, now) || queue.size() >= kRemembered) {
      ++dropped;
      return;
    }
    std::string message = cut(std::string(text));
    const uint64_t like = hash_of({type, reason}, about_hash);
    const bool folded = fold(like, message, now);
    if (folded) message = cut("(combined from similar events): " + message);
    make_room(events, now);
    Slot& slot = events[folded ? like : hash_of({message}, like)];
    if (!slot.event || now - slot.last > kSameWithin) {
      slot.event = std::make_shared<Written>(new_event(about, type, reason, now));
    }
    slot.last = now;
    Written& event = *slot.event;
    ++event.count;
    event.message = std::move(message);
    event.last = now;
    write(slot.event);
  }

  Written new_event(const Object& about, std::string_view type, std::string_view reason, Time now) {
    Written out;
    out.name = new_name(about.name());
    out.api_version = about.api_version();
    out.kind = about.kind();
    out.about = about.name();
    out.ns = about.ns();
    out.uid = about.uid();
    out.version = about.resource_version();
    out.type = type;
    out.reason = reason;
    out.first = now;
    return out;
  }

  json::Value object_of(const Written& event) const {
    using json::Value;
    Value involved = Value::object();
    const auto set = [](Value& value, std::string_view key, std::string_view text) {
      if (!text.empty()) value.set(key, text);
    };
    set(involved, "apiVersion", event.api_version);
    set(involved, "kind", event.kind);
    set(involved, "name", event.about);
    set(involved, "namespace", event.ns);
    set(involved, "uid", event.uid);
    set(involved, "resourceVersion", event.version);
    Value source = Value::object({{"component", component}});
    set(source, "host", host);
    return Value::object(
        {{"apiVersion", "v1"},
         {"kind", "Event"},
         {"metadata", Value::object({{"name", event.name}, {"namespace", ns_of(event)}})},
         {"involvedObject", std::move(involved)},
         {"type", event.type},
         {"reason", event.reason},
         {"message", event.message},
         {"count", event.count},
         {"source", std::move(source)},
         {"reportingComponent", component},
         {"reportingInstance", host},
         {"firstTimestamp", base::to_rfc3339(event.first)},
         {"lastTimestamp", base::to_rfc3339(event.last)}});
  }

  static std::string ns_of(const Written& event) { return event.ns.empty() ? "default" : event.ns; }

  std::string new_name(std::string_view about) {
    constexpr size_t kNameMax = 253 - 17;
    return fmt::format("{}.{:016x}", about.substr(0, kNameMax), random.next());
  }

  void write(const std::shared_ptr<Written>& event) {
    if (event->busy) {
      event->dirty = true;
      return;
    }
    if (std::exchange(event->queued, true)) return;
    queue.push_back(event);
    write_some();
  }

  // Few at a time: whatever else the component asks of the API goes first.
  void write_some() {
    while (writes < kWritesMax && !queue.empty()) {
      const std::shared_ptr<Written> event = std::move(queue.front());
      queue.pop_front();
      event->queued = false;
      event->busy = true;
      ++writes;
      send(event);
    }
  }

  void send(const std::shared_ptr<Written>& event) {
    auto done = [weak = weak_from_this(), event](const Reply& reply) {
      if (const auto self = weak.lock()) self->written(event, reply);
    };
    if (!event->exists) {
      client.create(core_v1("events"), ns_of(*event), object_of(*event), std::move(done));
      return;
    }
    json::Value patch = json::Value::object({{"count", event->count},
                                             {"message", event->message},
                                             {"lastTimestamp", base::to_rfc3339(event->last)}});
    client.merge_patch(core_v1("events"), ns_of(*event), event->name, std::move(patch),
                       std::move(done));
  }

  void written(const std::shared_ptr<Written>& event, const Reply& reply) {
    --writes;
    event->busy = false;
    bool again = std::exchange(event->dirty, false);
    const bool gone = !reply && event->exists && reply.error().code == Code::kNotFound;
    if (gone) {
      // Events expire; this one starts again under another name.
      event->name = new_name(event->about);
      event->exists = false;
      again = true;
    } else if (!reply) {
      base::log_debug("event not written reason={} error=\"{}\"", event->reason,
                      reply.error().message);
    } else {
      event->exists = true;
    }
    if (again) write(event);
    write_some();
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
