#include "scheduler/core/pod_terms.h"

#include <algorithm>

#include "base/check.h"

namespace tessera::scheduler::core {
namespace {

// Terms that nobody owns are a cache: beyond this many the one asked for longest ago goes.
constexpr size_t kTermsUnownedMax = 256;

void add_to(TermCounts& entry, const Labels& node_labels, int32_t selected, int32_t forbidding) {
  StringId domain = value_of(node_labels, entry.term.topology_key);
  if (!domain.valid()) return;
  DomainCount& at = entry.domains[domain];
  at.selected += selected;
  at.forbidding += forbidding;
  entry.selected_total += selected;
  TS_CHECK(at.selected >= 0 && at.forbidding >= 0, "a domain counts fewer than no pods");
  if (at.selected == 0 && at.forbidding == 0) entry.domains.erase(domain);
}

}  // namespace

PodTerms::PodTerms(const PodTerms& other) : owned_(other.owned_), asked_(other.asked_) {
  for (const auto& entry : other.terms_) {
    terms_.push_back(std::make_shared<TermCounts>(*entry));
    by_hash_.emplace(hash_of(entry->term), terms_.back());
  }
}

PodTerms& PodTerms::operator=(const PodTerms& other) {
  PodTerms copy(other);
  std::swap(terms_, copy.terms_);
  std::swap(by_hash_, copy.by_hash_);
  owned_ = other.owned_;
  asked_ = other.asked_;
  return *this;
}

std::shared_ptr<TermCounts> PodTerms::find(const PodTerm& term) {
  auto [first, last] = by_hash_.equal_range(hash_of(term));
  for (auto at = first; at != last; ++at) {
    if (at->second->term == term) return at->second;
  }
  return nullptr;
}

std::shared_ptr<TermCounts> PodTerms::entry_for(const PodTerm& term, const Interner& names,
                                                const EachPod& each) {
  if (auto known = find(term)) return known;
  if (terms_.size() >= kTermsUnownedMax) forget_oldest();
  auto entry = std::make_shared<TermCounts>();
  entry->term = term;
  terms_.push_back(entry);
  by_hash_.emplace(hash_of(term), entry);
  each([&](const PodRequest& pod, const Labels& node_labels) {
    if (selects(term, pod.pod_namespace, pod.labels, names)) add_to(*entry, node_labels, 1, 0);
  });
  return entry;
}

void PodTerms::forget_oldest() {
  auto oldest = terms_.end();
  for (auto at = terms_.begin(); at != terms_.end(); ++at) {
    if ((*at)->owners > 0) continue;
    if (oldest == terms_.end() || (*at)->last_asked < (*oldest)->last_asked) oldest = at;
  }
  if (oldest == terms_.end()) return;
  auto [first, last] = by_hash_.equal_range(hash_of((*oldest)->term));
  for (auto at = first; at != last; ++at) {
    if (at->second != *oldest) continue;
    by_hash_.erase(at);
    break;
  }
  terms_.erase(oldest);
}

std::shared_ptr<const TermCounts> PodTerms::counts(const PodTerm& term, const Interner& names,
                                                   const EachPod& each) {
  auto entry = entry_for(term, names, each);
  entry->last_asked = ++asked_;
  return entry;
}

void PodTerms::count(const PodRequest& pod, const Labels& node_labels, const Interner& names,
                     int32_t by) {
  for (auto& entry : terms_) {
    if (selects(entry->term, pod.pod_namespace, pod.labels, names)) {
      add_to(*entry, node_labels, by, 0);
    }
  }
}

void PodTerms::forbid(const PodRequest& pod, const Labels& node_labels, int32_t by) {
  for (const PodTerm& term : pod.anti_affinity) {
    auto entry = find(term);
    TS_CHECK(entry != nullptr, "anti-affinity of a placed pod is not counted");
    add_to(*entry, node_labels, 0, by);
  }
}

void PodTerms::pod_added(const PodRequest& pod, const Labels& node_labels, const Interner& names,
                         const EachPod& each_before) {
  for (const PodTerm& term : pod.anti_affinity) {
    auto entry = entry_for(term, names, each_before);
    // Owned from here on, so that a later term of the same pod does not push it out.
    ++entry->owners;
    ++owned_;
  }
  count(pod, node_labels, names, 1);
  forbid(pod, node_labels, 1);
}

void PodTerms::pod_removed(const PodRequest& pod, const Labels& node_labels,
                           const Interner& names) {
  forbid(pod, node_labels, -1);
  for (const PodTerm& term : pod.anti_affinity) {
    --find(term)->owners;
    --owned_;
  }
  count(pod, node_labels, names, -1);
}

}  // namespace tessera::scheduler::core
