// Counts of placed pods by selector and topology domain, kept as pods come and go: what pod
// affinity, anti-affinity and topology spread ask for. A term is counted from the first time that
// somebody asks for it.
//
// Shape:   Term (selector + topology key) -> domain (value of that node label) -> {pods selected,
//          pods that forbid}. "Forbid" counts pods that carry the term as their own anti-affinity.
// Units:   pods.
// Threads: the scheduler's strand.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "scheduler/core/request.h"

namespace tessera::scheduler::core {

struct DomainCount {
  int32_t selected = 0;
  int32_t forbidding = 0;
};

struct TermCounts {
  PodTerm term;
  std::unordered_map<StringId, DomainCount> domains;
  int64_t selected_total = 0;  // pods on nodes that have the topology key
  int32_t owners = 0;
  uint64_t last_asked = 0;

  DomainCount in(StringId domain) const {
    auto found = domains.find(domain);
    return found == domains.end() ? DomainCount() : found->second;
  }
};

class PodTerms {
 public:
  PodTerms() = default;
  // A copy counts for itself.
  PodTerms(const PodTerms& other);
  PodTerms& operator=(const PodTerms& other);

  // Calls back with each placed pod and the labels of its node.
  using EachPod =
      std::function<void(const std::function<void(const PodRequest&, const Labels& node_labels)>&)>;

  // The counts of a term, kept in step while it is remembered; the first call counts all pods once.
  std::shared_ptr<const TermCounts> counts(const PodTerm& term, const Interner& names,
                                           const EachPod& each);

  void pod_added(const PodRequest& pod, const Labels& node_labels, const Interner& names,
                 const EachPod& each_before);
  void pod_removed(const PodRequest& pod, const Labels& node_labels, const Interner& names);

  // Terms that some placed pod carries as its anti-affinity.
  template <class Visit>
  void each_owned(Visit visit) const {
    if (owned_ == 0) return;
    for (const auto& entry : terms_) {
      if (entry->owners > 0) visit(std::shared_ptr<const TermCounts>(entry));
    }
  }
  bool any_owned() const { return owned_ > 0; }
  size_t size() const { return terms_.size(); }

 private:
  std::shared_ptr<TermCounts> entry_for(const PodTerm& term, const Interner& names,
                                        const EachPod& each);
  void count(const PodRequest& pod, const Labels& node_labels, const Interner& names, int32_t by);
  void forbid(const PodRequest& pod, const Labels& node_labels, int32_t by);
  std::shared_ptr<TermCounts> find(const PodTerm& term);
  void forget_oldest();

  std::vector<std::shared_ptr<TermCounts>> terms_;
  std::unordered_multimap<uint64_t, std::shared_ptr<TermCounts>> by_hash_;
  int64_t owned_ = 0;
  uint64_t asked_ = 0;
};

}  // namespace tessera::scheduler::core
