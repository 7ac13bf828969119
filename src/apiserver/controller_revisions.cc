#include "apiserver/controller_revisions.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

std::string word_hash(std::string_view text, std::string_view more) {
  uint32_t hash = 2'166'136'261U;
  for (const std::string_view part : {text, more}) {
    for (const char c : part) hash = (hash * 16'777'619U) ^ static_cast<unsigned char>(c);
  }
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string out = std::to_string(hash);
  for (char& c : out) c = kAlphabet[static_cast<unsigned char>(c) % kAlphabet.size()];
  return out;
}

Value revision_data(const Value& pod_template) {
  Value kept = pod_template;
  kept.set("$patch", "replace");
  Value data;
  data.ref("spec").set("template", std::move(kept));
  return data;
}

Value revision_template(const Object& revision) {
  Value kept = revision.get("data", "spec", "template");
  kept.erase("$patch");
  return kept;
}

int64_t revision_number(const Object& revision) {
  return revision["revision"].as_int();
}

void sort_revisions(std::vector<Object>& revisions) {
  const auto rank = [](const Object& revision) {
    return std::tuple(revision_number(revision),
                      revision.metadata()["creationTimestamp"].as_string(), revision.name());
  };
  std::ranges::sort(revisions, [&](const Object& a, const Object& b) { return rank(a) < rank(b); });
}

Value new_revision(const Object& owner, const Kind& owner_kind, std::string_view label,
                   const std::string& hash, int64_t number) {
  // Room for the hash in a name of 253 characters.
  constexpr size_t kPrefixMax = 223;
  const Value& pod_template = owner.get("spec", "template");
  Value meta =
      Value::object({{"name", std::string(owner.name().substr(0, kPrefixMax)) + "-" + hash},
                     {"namespace", owner.ns()}});
  meta.set("labels", pod_template.get("metadata", "labels"));
  meta.ref("labels").set(label, hash);
  const Value& annotations = owner.metadata()["annotations"];
  if (!annotations.empty()) meta.set("annotations", annotations);
  meta.set("ownerReferences", Value::array({controller_reference(owner, owner_kind)}));
  return Value::object({{"apiVersion", "apps/v1"},
                        {"kind", "ControllerRevision"},
                        {"metadata", std::move(meta)},
                        {"data", revision_data(pod_template)},
                        {"revision", number}});
}

std::vector<Object> past_revisions(std::vector<Object> revisions,
                                   const std::function<bool(const Object&)>& live, int64_t limit) {
  if (limit < 0) return {};
  std::erase_if(revisions, live);
  sort_revisions(revisions);
  const auto keep = static_cast<size_t>(limit);
  revisions.resize(revisions.size() > keep ? revisions.size() - keep : 0);
  return revisions;
}

void claim_revisions(Cluster& cluster, OwnerIndex& index, const Cache& owners, const Object& owner,
                     const kube::LabelSelector& selector, Done done) {
  const auto selected = [&](const Object& revision) {
    return selector.matches(revision.metadata()["labels"]);
  };
  std::vector<Object> released = index.of_owner(owner.uid());
  std::erase_if(released, selected);
  std::vector<Object> adopted = index.orphans(owner.ns());
  std::erase_if(adopted,
                [&](const Object& revision) { return revision.deleting() || !selected(revision); });
  if (released.empty() && adopted.empty()) return done({});
  Cache& revisions = cluster.cache("apps", "ControllerRevision");
  std::vector<Action> actions;
  actions.push_back([&cluster, &revisions, owner, released = std::move(released)](Done each) {
    release(cluster, revisions, owner, released, unless_gone(std::move(each)));
  });
  actions.push_back(
      [&cluster, &revisions, &owners, owner, adopted = std::move(adopted)](Done each) {
        adopt(cluster, revisions, owners, owner, adopted, unless_gone(std::move(each)));
      });
  run_in_order(std::move(actions), std::move(done));
}

void renumber_revision(Cluster& cluster, const Object& revision, int64_t number, Done done) {
  if (revision_number(revision) == number) return done({});
  cluster.patch(cluster.cache("apps", "ControllerRevision"), revision,
                Value::object({{"revision", number}}), {}, as_status(std::move(done)));
}

void remove_revisions(Cluster& cluster, const std::vector<Object>& revisions, Done done) {
  std::vector<Action> actions;
  for (const Object& revision : revisions) {
    actions.push_back([&cluster, revision](Done each) {
      cluster.remove(cluster.cache("apps", "ControllerRevision"), revision, {}, std::move(each));
    });
  }
  run_in_order(std::move(actions), std::move(done));
}

}  // namespace tessera::apiserver::controller
