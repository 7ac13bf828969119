// ControllerRevisions: the templates that a StatefulSet or a DaemonSet had, to go back to.
//
// Shape:   a revision's data is a strategic merge patch that brings the template back; its number grows with each rollout,
//          also one back to an older template.
// Threads: pure, but for the last three, which are for the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/history/controller_history.go (behaviour).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

// On a pod: the revision that it is of (the revision's name for a StatefulSet, its hash for a DaemonSet).
inline constexpr std::string_view kRevisionHash = "controller-revision-hash";

// A 32-bit FNV-1 hash of the texts, in letters and digits that make no words.
std::string word_hash(std::string_view text, std::string_view more = {});

json::Value revision_data(const json::Value& pod_template);
// The template that a revision keeps.
json::Value revision_template(const kube::Object& revision);
int64_t revision_number(const kube::Object& revision);
// By number, then by age, then by name.
void sort_revisions(std::vector<kube::Object>& revisions);

// A revision of the owner's template, with the owner's annotations. `label`, with `hash` as its value, is added to the
// template's labels.
json::Value new_revision(const kube::Object& owner, const Kind& owner_kind, std::string_view label,
                         const std::string& hash, int64_t number);

// Of the oldest revisions beyond `limit` those that are not live.
std::vector<kube::Object> past_revisions(std::vector<kube::Object> revisions,
                                         const std::function<bool(const kube::Object&)>& live,
                                         int64_t limit);

// Takes over what no one owns and the owner selects, and lets go of what it does not select any more.
void claim_revisions(Cluster& cluster, OwnerIndex& index, const Cache& owners,
                     const kube::Object& owner, const kube::LabelSelector& selector, Done done);
// Gives the revision a new number.
void renumber_revision(Cluster& cluster, const kube::Object& revision, int64_t number, Done done);
void remove_revisions(Cluster& cluster, const std::vector<kube::Object>& revisions, Done done);

}  // namespace tessera::apiserver::controller
