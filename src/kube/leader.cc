#include "kube/leader.h"

#include <algorithm>

#include "base/log.h"
#include "kube/lease.h"

namespace tessera::kube {

using base::Code;
using base::Duration;
using base::Time;

namespace {

struct Moment {
  Duration monotonic;
  Time wall;
};

}  // namespace

base::Status validate(const LeaderElection::Options& o) {
  if (o.ns.empty() || o.name.empty() || o.identity.empty()) {
    return base::error(Code::kInvalid,
                       "leader election needs the lease's namespace and name and an identity");
  }
  constexpr int64_t kSecond = base::seconds(1).ns;
  if (o.lease_duration.ns < kSecond || o.lease_duration.ns % kSecond != 0 ||
      o.lease_duration > base::seconds(3600)) {
    return base::error(Code::kInvalid, "lease duration {} must be whole seconds, 1s to 1h",
                       base::to_string(o.lease_duration));
  }
  if (o.retry_period.ns <= 0 || o.request_timeout.ns <= 0 || o.renew_deadline.ns <= 0) {
    return base::error(Code::kInvalid,
                       "retry period {}, request timeout {} and renew deadline {} must be above 0",
                       base::to_string(o.retry_period), base::to_string(o.request_timeout),
                       base::to_string(o.renew_deadline));
  }
  // The sums cannot overflow: each term is below the lease duration.
  if (o.renew_deadline >= o.lease_duration ||
      o.request_timeout >= o.lease_duration - o.renew_deadline) {
    return base::error(
        Code::kInvalid,
        "renew deadline {} and request timeout {} must together be below the lease duration {}",
        base::to_string(o.renew_deadline), base::to_string(o.request_timeout),
        base::to_string(o.lease_duration));
  }
  if (o.retry_period >= o.renew_deadline ||
      o.request_timeout >= o.renew_deadline - o.retry_period) {
    return base::error(
        Code::kInvalid,
        "retry period {} and request timeout {} must together be below the renew deadline {}",
        base::to_string(o.retry_period), base::to_string(o.request_timeout),
        base::to_string(o.renew_deadline));
  }
  return {};
}

struct LeaderElection::State : std::enable_shared_from_this<State> {
  enum class Phase { kStopped, kStanding, kLeading, kReleasing };
  enum class Write { kNone, kTake, kRenew, kRelease };

  State(Client& c, base::Executor& e, const base::Clock& t, base::Random r, Options o, Handlers h)
      : client(c),
        executor(e),
        clock(t),
        random(r),
        options(std::move(o)),
        handlers(std::move(h)),
        session(random.uuid()) {}

  Client& client;
  base::Executor& executor;
  const base::Clock& clock;
  base::Random random;
  Options options;
  Handlers handlers;
  std::string session;

  Phase phase = Phase::kStopped;
  LeaseView view;
  std::string reported;  // to on_new_leader

  Moment renewed{};  // when the renewal that counts was sent
  int64_t epoch = 0;
  std::string term_began;
  std::string trouble;  // the last error

  uint64_t call_number = 0;  // answers to older calls are late
  bool in_flight = false;
  uint64_t step_number = 0;
  bool again = false;  // one retry at once for each step
  Write write = Write::kNone;
  Moment asked{};
  int64_t asked_epoch = 0;
  std::string asked_began;
  Duration give_up_at;
  std::function<void()> stopped;
  bool unsure = false;  // the answer to a take was lost

  // Clock and phase.

  Moment now() const { return {clock.monotonic(), clock.now()}; }
  // Both clocks: the monotonic one may stand still while the machine sleeps, the other may be set.
  bool within_deadline() const {
    return clock.monotonic() - renewed.monotonic < options.renew_deadline &&
           clock.now() - renewed.wall < options.renew_deadline;
  }
  bool leading() const { return phase == Phase::kLeading && within_deadline(); }
  bool mine() const {
    return view.object() && view.record().holder == options.identity &&
           view.object().annotation(kLeaderSession) == session;
  }

  void later(Duration delay, std::function<void(State&)> what) {
    executor.post_after(delay, [weak = weak_from_this(), what = std::move(what)] {
      if (const auto self = weak.lock()) what(*self);
    });
  }

  // The next step, in at most `limit` or one retry period shortened by up to a quarter.
  void step_later(Duration limit) {
    const int64_t period = options.retry_period.ns;
    const auto jitter = static_cast<int64_t>(random.unit() * static_cast<double>(period) / 4);
    const Duration delay = std::clamp(limit, Duration{}, base::nanos(period - jitter));
    later(delay, [number = ++step_number](State& s) {
      if (number == s.step_number) s.step();
    });
  }
  void step_later() { step_later(options.retry_period); }

  void step() {
    ++step_number;
    if (in_flight) return;
    again = true;
    if (phase == Phase::kLeading && !leading()) lose(overdue());
    if (in_flight) return;  // the handler stopped it
    switch (phase) {
      case Phase::kStopped:
        return;
      case Phase::kStanding:
        return refresh();
      case Phase::kLeading:
        return put(Write::kRenew);
      case Phase::kReleasing:
        return unsure ? refresh() : release();
    }
  }

  // Calls.

  void send(Request request, std::function<void(State&, Reply)> done) {
    in_flight = true;
    auto answered = [weak = weak_from_this(), number = ++call_number,
                     done = std::move(done)](Reply reply) {
      const auto self = weak.lock();
      if (!self || self->call_number != number || !self->in_flight) return;
      self->in_flight = false;
      if (!reply) self->note(reply.error());
      done(*self, std::move(reply));
    };
    executor.post_after(options.request_timeout,
                        [answered] { answered(base::error(Code::kTimeout, "no answer in time")); });
    client.call(std::move(request), answered);
  }

  Request request(Verb verb) const {
    Request out;
    out.verb = verb;
    out.gvr = leases_v1();
    out.ns = options.ns;
    if (verb != Verb::kCreate) out.name = options.name;
    return out;
  }

  void note(const base::Error& error) {
    if (error.message == trouble) return;
    trouble = error.message;
    base::log_at(error.code == Code::kForbidden ? base::LogLevel::kWarn : base::LogLevel::kDebug,
                 "leader election in trouble lease={}/{} error=\"{}\"", options.ns, options.name,
                 trouble);
  }

  void refresh() {
    send(request(Verb::kGet), [](State& s, const Reply& reply) { s.refreshed(reply); });
  }

  void refreshed(const Reply& reply) {
    const auto self = shared_from_this();  // handlers may destroy the election
    if (reply ? !observe(Object(*reply)) : reply.error().code != Code::kNotFound) {
      next();
      return;
    }
    if (!reply) view.missing();
    unsure = false;
    if (in_flight) return;
    switch (phase) {
      case Phase::kStopped:
        return;
      case Phase::kStanding:
        return consider();
      case Phase::kLeading:
        return keep();
      case Phase::kReleasing:
        return release();
    }
  }

  // What goes on after an answer that says nothing.
  void next() {
    if (phase != Phase::kStopped) step_later();
  }

  bool observe(const Object& lease) {
    if (!view.observe(lease, clock.monotonic())) {
      note({Code::kInternal, "the answer is no Lease with uid and resourceVersion", {}});
      return false;
    }
    const std::string& holder = view.record().holder;
    if (holder.empty() || std::exchange(reported, holder) == holder) return true;
    if (holder == options.identity && !mine() && !lease.annotation(kLeaderSession).empty()) {
      base::log_warn("another process stood for election under this identity={} lease={}/{}",
                     holder, options.ns, options.name);
    }
    if (handlers.on_new_leader) handlers.on_new_leader(holder);
    return true;
  }

  // A standby.

  void consider() {
    const Duration left = view.left(clock.monotonic(), options.lease_duration);
    if (!view.object()) {
      make();
    } else if (mine() || view.vacant() || left.ns <= 0) {
      put(Write::kTake);
    } else {
      step_later(left);
    }
  }

  // In this name, but without the session: for its maker it is somebody else's until it has run out.
  void make() {
    Request create = request(Verb::kCreate);
    const std::string time = base::to_rfc3339_micro(clock.now());
    create.body = json::Value::object(
        {{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata", json::Value::object({{"name", options.name}, {"namespace", options.ns}})},
         {"spec", lease_spec({options.identity, options.lease_duration.ns / base::seconds(1).ns,
                              view.last_epoch(), time, time})}});
    send(std::move(create), [](State& s, const Reply& reply) {
      const auto self = s.shared_from_this();
      if (reply) s.observe(Object(*reply));
      s.next();
    });
  }

  // Writes.

  void put(Write what) {
    write = what;
    asked = now();
    const std::string time = base::to_rfc3339_micro(asked.wall);
    LeaseRecord wanted{options.identity, options.lease_duration.ns / base::seconds(1).ns,
                       view.record().transitions, time, time};
    if (what == Write::kTake) {
      wanted.transitions = view.next_epoch();
      asked_epoch = wanted.transitions;
      asked_began = time;
    } else if (what == Write::kRenew) {
      wanted.transitions = epoch;
      wanted.acquired = term_began;
    } else {
      wanted.holder.clear();
      wanted.duration_seconds = 1;
    }
    Request update = request(Verb::kUpdate);
    update.body = view.object().json();
    update.body.set("spec", lease_spec(wanted));
    update.body.ref("metadata", "annotations").set(kLeaderSession, session);
    send(std::move(update), [](State& s, const Reply& reply) { s.written(reply); });
  }

  void written(const Reply& reply) {
    const auto self = shared_from_this();
    const Write what = std::exchange(write, Write::kNone);
    if (!reply) {
      const Code code = reply.error().code;
      unsure = unsure || (what == Write::kTake && code != Code::kForbidden);
      const bool moved = code == Code::kConflict || code == Code::kNotFound;
      // Who stands loses nothing by waiting; the others have to know.
      if (moved && phase != Phase::kStanding && std::exchange(again, false)) {
        refresh();
      } else {
        next();
      }
      return;
    }
    // What came back is what counts, for instance where a webhook has changed it.
    const bool held = observe(Object(*reply)) && mine();
    if (what == Write::kTake && phase == Phase::kStanding && held) begin();
    if (what == Write::kRenew && phase == Phase::kLeading) {
      if (held) {
        renew_done();
      } else {
        lose("the answer to a renewal names another holder");
      }
    }
    if (phase == Phase::kReleasing) {
      release();
    } else {
      next();
    }
  }

  // The term.

  void begin() {
    renewed = asked;
    if (!within_deadline()) return;  // stopped for a while since; the Lease is ours to take again
    phase = Phase::kLeading;
    epoch = asked_epoch;
    term_began = asked_began;
    trouble.clear();
    watch_deadline();
    base::log_info("leading lease={}/{} identity={} epoch={}", options.ns, options.name,
                   options.identity, epoch);
    if (handlers.on_started) handlers.on_started(epoch);
  }

  void renew_done() {
    renewed = asked;
    trouble.clear();
    watch_deadline();
  }

  void watch_deadline() {
    later(options.renew_deadline - (clock.monotonic() - renewed.monotonic), [](State& s) {
      const auto self = s.shared_from_this();
      if (s.phase == Phase::kLeading && !s.within_deadline()) s.lose(s.overdue());
    });
  }

  std::string overdue() const {
    return fmt::format("the lease could not be renewed within {}{}{}",
                       base::to_string(options.renew_deadline), trouble.empty() ? "" : ": ",
                       trouble);
  }

  // A renewal met another version than the one expected.
  void keep() {
    if (mine()) {  // the answer to an earlier one was lost, or somebody touched the metadata
      put(Write::kRenew);
      return;
    }
    if (!view.object()) {
      lose("the lease was deleted");
    } else if (view.record().holder.empty()) {
      lose("somebody emptied the lease");
    } else if (view.record().holder == options.identity) {
      lose(fmt::format("another process uses the identity {}", options.identity));
    } else {
      lose(fmt::format("{} has taken the lease", view.record().holder));
    }
    next();
  }

  void lose(const std::string& reason) {
    phase = Phase::kStanding;
    base::log_warn("no longer leading lease={}/{} identity={} reason=\"{}\"", options.ns,
                   options.name, options.identity, reason);
    if (handlers.on_lost) handlers.on_lost(reason);
  }

  // The end.

  void stop(std::function<void()> done) {
    const bool may_hold = phase == Phase::kLeading || write == Write::kTake || unsure || mine();
    if (phase == Phase::kReleasing) {
      stopped = [first = std::move(stopped), second = std::move(done)] {
        if (first) first();
        if (second) second();
      };
      return;
    }
    const bool gives_up = phase != Phase::kStopped && options.release_on_stop && may_hold;
    stopped = std::move(done);
    if (!gives_up) {
      finish();
      return;
    }
    phase = Phase::kReleasing;
    give_up_at = clock.monotonic() + options.lease_duration;
    step();  // or after the call that is under way
  }

  void release() {
    if (in_flight) return;
    if (!mine() || clock.monotonic() >= give_up_at) {
      finish();
    } else if (again) {
      put(Write::kRelease);
    } else {
      next();
    }
  }

  void finish() {
    phase = Phase::kStopped;
    in_flight = false;
    write = Write::kNone;
    if (const auto done = std::exchange(stopped, nullptr)) done();
  }
};

LeaderElection::LeaderElection(Client& client, base::Executor& executor, const base::Clock& clock,
                               base::Random random, Options options, Handlers handlers)
    : state_(std::make_shared<State>(client, executor, clock, random, std::move(options),
                                     std::move(handlers))) {}

LeaderElection::~LeaderElection() {
  state_->phase = State::Phase::kStopped;
}

base::Status LeaderElection::start() {
  TS_TRY_STATUS(validate(state_->options));
  if (state_->phase != State::Phase::kStopped) {
    return base::error(Code::kBusy, "the election runs already, or is giving its lease up");
  }
  const auto state = state_;
  state->phase = State::Phase::kStanding;
  state->step();
  return {};
}

void LeaderElection::stop(std::function<void()> done) {
  const auto state = state_;
  state->stop(std::move(done));
}

bool LeaderElection::leading() const {
  return state_->leading();
}

std::optional<int64_t> LeaderElection::epoch() const {
  return state_->leading() ? std::optional(state_->epoch) : std::nullopt;
}

std::string LeaderElection::holder() const {
  return state_->view.record().holder;
}

}  // namespace tessera::kube
