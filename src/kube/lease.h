// The record of a leader in a Lease (coordination.k8s.io/v1), and what a candidate has seen of one.
//
// Errors:  reading never fails: what is missing or makes no sense reads as empty or 0.
// Source:  client-go tools/leaderelection/resourcelock (fields).
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "kube/object.h"

namespace tessera::kube {

struct LeaseRecord {
  std::string holder;
  int64_t duration_seconds = 0;
  int64_t transitions = 0;  // 0 to 2^31 - 1
  std::string acquired;     // as written, RFC 3339 with microseconds
  std::string renewed;
};

inline Gvr leases_v1() {
  return {"coordination.k8s.io", "v1", "leases"};
}
LeaseRecord read_lease(const Object& lease);
json::Value lease_spec(const LeaseRecord& record);

// The newest version seen, since when, and whether it may be taken (the rules are in leader.h).
class LeaseView {
 public:
  // False, and nothing changes: it has no uid or no resourceVersion, so that no write could rest on it.
  bool observe(const Object& lease, base::Duration now);
  void missing();

  const Object& object() const { return object_; }  // empty: not seen yet, or missing
  const LeaseRecord& record() const { return record_; }
  bool vacant() const;  // its holder has emptied it
  // How long until it has run out, for one who waits at least `wait_min`; 0 or less: it has.
  base::Duration left(base::Duration now, base::Duration wait_min) const;
  // The number of the next term: above all that were seen.
  int64_t next_epoch() const;
  int64_t last_epoch() const { return epoch_last_; }

 private:
  Object object_;
  LeaseRecord record_;
  base::Duration since_;
  bool missed_ = false;
  bool vacancy_counts_ = true;
  int64_t epoch_last_ = 0;
};

}  // namespace tessera::kube
