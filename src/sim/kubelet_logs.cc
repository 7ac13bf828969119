#include "sim/kubelet_logs.h"

#include <iterator>
#include <utility>

namespace tessera::sim {

struct LogReadings::Reading {
  apiserver::LogQuery query;
  std::shared_ptr<apiserver::LogReader> reader;
  ContainerLog log;
  LogCursor cursor;
  std::optional<base::Time> timer{};
};

namespace {

// The same run as it is now: still running, over, or (nothing) gone without a trace.
std::optional<ContainerLife> same_run(const LogReadings::Seen& seen, apiserver::LogQuery query,
                                      base::Time started) {
  for (const bool previous : {false, true}) {
    query.previous = previous;
    auto life = life_of(seen.pod, seen.status, query);
    if (life && life->started == started) return std::move(*life);
  }
  return std::nullopt;
}

}  // namespace

void LogReadings::read(apiserver::LogQuery query, std::shared_ptr<apiserver::LogReader> reader) {
  const std::string key = query.ns + "/" + query.pod;
  const auto seen = look_(key, query.uid);
  if (!seen) {
    return reader->fail({base::Code::kBadRequest,
                         fmt::format("container \"{}\" in pod \"{}\" is waiting to start: "
                                     "ContainerCreating",
                                     query.container, query.pod),
                         {}});
  }
  auto life = life_of(seen->pod, seen->status, query);
  if (!life) return reader->fail(life.error());
  ContainerLog log(std::move(*life));
  const LogCursor cursor(log, query, clock_.now());
  const auto reading = std::make_shared<Reading>(
      Reading{std::move(query), std::move(reader), std::move(log), cursor});
  if (advance(*reading)) {
    readings_.emplace(key, reading);
    wait(key, reading, reading->log);
  }
}

// Writes what has come; false once there is no more to come or nobody who reads.
bool LogReadings::advance(Reading& reading) {
  const base::Time now = clock_.now();
  if (!reading.reader->write(reading.cursor.take(reading.log, now))) return false;
  const bool over = reading.log.life().ended && *reading.log.life().ended <= now;
  if (reading.query.follow && !over && !reading.cursor.full()) return true;
  reading.reader->end();
  return false;
}

void LogReadings::wait(const std::string& key, const ReadingPtr& reading, const ContainerLog& log) {
  const auto next = log.next(clock_.now());
  if (!next || reading->timer == next) return;
  reading->timer = next;
  executor_.post_after(*next - clock_.now(),
                       [self = weak_from_this(), weak = std::weak_ptr(reading), key, at = *next] {
                         const auto live = self.lock();
                         const auto still = weak.lock();
                         if (!live || !still || still->timer != at) return;
                         still->timer.reset();
                         live->feed(key);
                       });
}

void LogReadings::feed(const std::string& key) {
  const auto [begin, end] = readings_.equal_range(key);
  if (begin == end) return;
  for (auto it = begin; it != end;) {
    const ReadingPtr reading = it->second;
    const auto seen = look_(key, reading->query.uid);
    const auto life =
        seen ? same_run(*seen, reading->query, reading->log.life().started) : std::nullopt;
    if (life) reading->log = ContainerLog(*life);
    bool more = advance(*reading);
    if (more && !life) {
      reading->reader->end();
      more = false;
    }
    if (more) wait(key, reading, reading->log);
    it = more ? std::next(it) : readings_.erase(it);
  }
}

}  // namespace tessera::sim
