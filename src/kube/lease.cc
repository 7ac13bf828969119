#include "kube/lease.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tessera::kube {
namespace {

constexpr int64_t kTransitionsMax = std::numeric_limits<int32_t>::max();
// A holder who asked for more is not waited for longer: a slip in the Lease must not keep everybody out for years.
constexpr base::Duration kWaitMax = base::seconds(3600);

int64_t count_of(const json::Value& value) {
  return std::clamp<int64_t>(value.as_int(), 0, kTransitionsMax);
}

}  // namespace

LeaseRecord read_lease(const Object& lease) {
  const json::Value& spec = lease["spec"];
  return {.holder = spec["holderIdentity"].str(),
          .duration_seconds = count_of(spec["leaseDurationSeconds"]),
          .transitions = count_of(spec["leaseTransitions"]),
          .acquired = spec["acquireTime"].str(),
          .renewed = spec["renewTime"].str()};
}

json::Value lease_spec(const LeaseRecord& record) {
  return json::Value::object({{"holderIdentity", record.holder},
                              {"leaseDurationSeconds", record.duration_seconds},
                              {"acquireTime", record.acquired},
                              {"renewTime", record.renewed},
                              {"leaseTransitions", record.transitions}});
}

bool LeaseView::observe(const Object& lease, base::Duration now) {
  if (lease.resource_version().empty() || lease.uid().empty()) return false;
  const bool same_object = object_.uid() == lease.uid();
  if (same_object && object_.resource_version() == lease.resource_version()) return true;
  const LeaseRecord before = std::exchange(record_, read_lease(lease));
  // Where somebody made it anew, whoever led under the old one need not have gone.
  vacancy_counts_ = same_object ? vacancy_counts_ || !before.holder.empty() : !object_ && !missed_;
  object_ = lease;
  since_ = now;
  // Past its end the field begins again.
  const bool wrapped = epoch_last_ == kTransitionsMax && record_.transitions == 0;
  epoch_last_ = wrapped ? 0 : std::max(epoch_last_, record_.transitions);
  return true;
}

void LeaseView::missing() {
  object_ = Object();
  record_ = {};
  missed_ = true;
}

bool LeaseView::vacant() const {
  return object_ && record_.holder.empty() && vacancy_counts_;
}

base::Duration LeaseView::left(base::Duration now, base::Duration wait_min) const {
  const base::Duration asked_for = base::seconds(record_.duration_seconds);
  return std::max(wait_min, std::min(asked_for, kWaitMax)) - (now - since_);
}

int64_t LeaseView::next_epoch() const {
  return epoch_last_ < kTransitionsMax ? epoch_last_ + 1 : 0;
}

}  // namespace tessera::kube
