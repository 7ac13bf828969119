// What a scheduler is told by whoever runs it: the document SchedulerConfig (tessera.dev/v1alpha1).
//
// Shape:   one YAML document; every field may be left out, and is then as in a fresh SchedulerConfig. Read strictly. Fields that a
//          running scheduler takes over at once: policy, halfLife, patience, reservationsMax, brokenAfter, claimTimeout,
//          explainPeriod, volumeTimeout, bindsInFlightMax, evictions. Fields that need a restart, as they say which objects are
//          its own: schedulerNames, shard, leaderElection (can_change()).
// Units:   durations as text: 90s, 10m, 1h30m.
// Errors:  parse_config: kBadRequest (no YAML) or kInvalid, one for the first thing that is wrong, as
//          "ORIGIN: line 4: halfLife: must be more than 0; leave it out and the past counts nothing".
// Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "scheduler/core/policy.h"

namespace tessera::scheduler {

// Where schedulers that run outside of the cluster have their Lease: it is there in every cluster.
inline constexpr std::string_view kLeaseNamespace = "kube-system";
inline constexpr size_t kConfigBytesMax = size_t{1} << 20;

struct SchedulerConfig {
  // Only nodes and pods with this label and value are served.
  struct Shard {
    std::string key;
    std::string value;  // empty: those without the label
    bool operator==(const Shard&) const = default;
  };
  struct LeaderElection {
    bool enabled = true;
    std::string ns;  // empty: that of the pod it runs in; outside of one kLeaseNamespace
    std::string name = "tessera-scheduler";
    base::Duration lease_duration = base::seconds(15);
    base::Duration renew_deadline = base::seconds(10);
    base::Duration retry_period = base::seconds(2);
    bool operator==(const LeaderElection&) const = default;
  };

  std::vector<std::string> scheduler_names = {"tessera"};
  core::Policy policy = core::Policy::kFgd;
  std::optional<base::Duration> half_life;  // nothing: the past counts nothing
  std::optional<base::Duration> patience;   // nothing: no gang is tried before its turn
  int32_t reservations_max = 8;
  base::Duration broken_after = base::seconds(60);
  base::Duration claim_timeout = base::seconds(300);
  base::Duration explain_period = base::seconds(10);
  base::Duration volume_timeout = base::seconds(600);
  int32_t binds_in_flight_max = 512;
  bool evictions = true;  // off: nobody is made to leave
  std::optional<Shard> shard;
  LeaderElection leader_election;

  bool operator==(const SchedulerConfig&) const = default;
};

// `origin` names the text in errors: a path, or "configmap NAMESPACE/NAME".
base::Result<SchedulerConfig> parse_config(std::string_view yaml, std::string_view origin);

// Whether a scheduler that runs with `now` may go on with `next`; kInvalid names the fields that need a restart.
base::Status can_change(const SchedulerConfig& now, const SchedulerConfig& next);

// How long an answer about the Lease is waited for, and how long a guarded write may take: what the other three leave.
base::Duration request_timeout(const SchedulerConfig::LeaderElection& election);

}  // namespace tessera::scheduler
