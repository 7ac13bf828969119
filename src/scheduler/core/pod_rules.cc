#include "scheduler/core/pod_rules.h"

#include <algorithm>
#include <limits>

namespace tessera::scheduler::core {

PodRules::PodRules(const Cluster& cluster, const PodRequest& request) : cluster_(cluster) {
  const Interner& names = cluster.names();
  cluster.pod_terms().each_owned([&](const Counts& counts) {
    if (selects(counts->term, request.pod_namespace, request.labels, names)) {
      forbidden_by_others_.push_back(counts);
    }
  });
  for (const PodTerm& term : request.anti_affinity) {
    anti_affinity_.push_back(cluster.term_counts(term));
  }
  int64_t selected = 0;
  bool selects_itself = true;
  for (const PodTerm& term : request.affinity) {
    affinity_.push_back(cluster.term_counts(term));
    selected += affinity_.back()->selected_total;
    selects_itself &= selects(term, request.pod_namespace, request.labels, names);
  }
  first_of_its_kind_ = selected == 0 && selects_itself;
  for (const SpreadRule& rule : request.spread) {
    auto& kind = rule.required ? required_spread_ : wanted_spread_;
    kind.push_back(make_spread(rule, request));
  }
  none_ = forbidden_by_others_.empty() && anti_affinity_.empty() && affinity_.empty() &&
          request.spread.empty();
}

PodRules::Spread PodRules::make_spread(const SpreadRule& rule, const PodRequest& request) const {
  Spread spread;
  spread.counts = cluster_.term_counts(rule.term);
  spread.max_skew = rule.max_skew;
  spread.self = selects(rule.term, request.pod_namespace, request.labels, cluster_.names());
  spread.least = std::numeric_limits<int32_t>::max();
  for (size_t n = 0; n < cluster_.node_slots(); ++n) {
    NodeId node(static_cast<int32_t>(n));
    if (!cluster_.present(node)) continue;
    StringId domain = value_of(cluster_.spec(node).labels, rule.term.topology_key);
    if (!domain.valid()) continue;
    if (check_rules(cluster_, node, request.shape).reason == Reason::kNodeAffinity) continue;
    int32_t pods = spread.counts->in(domain).selected;
    spread.least = std::min(spread.least, pods);
    spread.most = std::max(spread.most, pods);
  }
  if (spread.least == std::numeric_limits<int32_t>::max()) spread.least = 0;
  return spread;
}

bool PodRules::skewed(const Spread& spread, StringId domain) const {
  int64_t pods = int64_t{spread.counts->in(domain).selected} + spread.self;
  return pods - spread.least > spread.max_skew;
}

Reason PodRules::check(NodeId node) const {
  const Labels& labels = cluster_.spec(node).labels;
  for (const Spread& spread : required_spread_) {
    StringId domain = value_of(labels, spread.counts->term.topology_key);
    if (!domain.valid()) return Reason::kSpreadLabel;
    if (skewed(spread, domain)) return Reason::kSpread;
  }
  for (const Counts& counts : affinity_) {
    StringId domain = value_of(labels, counts->term.topology_key);
    if (!domain.valid()) return Reason::kAffinity;
    if (!first_of_its_kind_ && counts->in(domain).selected == 0) return Reason::kAffinity;
  }
  for (const Counts& counts : anti_affinity_) {
    StringId domain = value_of(labels, counts->term.topology_key);
    if (domain.valid() && counts->in(domain).selected > 0) return Reason::kAntiAffinity;
  }
  for (const Counts& counts : forbidden_by_others_) {
    StringId domain = value_of(labels, counts->term.topology_key);
    if (domain.valid() && counts->in(domain).forbidding > 0) return Reason::kExistingAntiAffinity;
  }
  return Reason::kNone;
}

int32_t PodRules::points(NodeId node) const {
  if (wanted_spread_.empty()) return 0;
  int64_t points = 0;
  for (const Spread& spread : wanted_spread_) {
    StringId domain = value_of(cluster_.spec(node).labels, spread.counts->term.topology_key);
    if (!domain.valid()) continue;
    int64_t pods = spread.counts->in(domain).selected;
    points += spread.most > 0
                  ? 200 * (spread.most - std::min<int64_t>(pods, spread.most)) / spread.most
                  : 200;
  }
  return static_cast<int32_t>(points / static_cast<int64_t>(wanted_spread_.size()));
}

}  // namespace tessera::scheduler::core
