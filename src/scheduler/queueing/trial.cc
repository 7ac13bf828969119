#include "scheduler/queueing/trial.h"

#include <algorithm>

#include "scheduler/core/pod_rules.h"

namespace tessera::scheduler::queueing {

std::optional<base::Duration> runtime_of(const Engine& engine, const Gang& gang) {
  if (gang.spec.runtime) return gang.spec.runtime;
  if (!gang.leaf.valid()) return std::nullopt;
  return engine.queues().at(gang.leaf).spec.runtime_default;
}

std::optional<base::Duration> estimate_of(const Engine& engine, const Gang& gang,
                                          base::Duration elapsed) {
  if (!engine.options().estimates || !gang.spec.estimate || runtime_of(engine, gang))
    return std::nullopt;
  constexpr int64_t kLeast = 1'000'000'000;
  constexpr int kDoublings = 3;
  int64_t length = std::max(gang.spec.estimate->ns, kLeast);
  // Who has outrun it so often is no longer guessed about: a start planned by it would be put off again and again.
  for (int doubled = 0; length <= elapsed.ns; ++doubled) {
    if (doubled == kDoublings || length > INT64_MAX / 4) return std::nullopt;
    length *= 2;
  }
  return base::Duration{length};
}

Trial::Trial(Engine& engine, std::vector<std::unique_ptr<Future>>& futures, GangId gang,
             base::Time now)
    : engine_(engine), gang_(gang), leaf_(engine.gang(gang).leaf), txn_(engine.cluster()) {
  const auto runtime = runtime_of(engine, engine.gang(gang));
  for (const std::unique_ptr<Future>& future : futures) {
    if (future->gang == gang || (runtime && now + *runtime <= future->at)) continue;
    futures_.push_back(future.get());
    future_txns_.push_back(std::make_unique<core::Txn>(future->cluster));
  }
  lift();
}

// What is held for its own queue is open to it.
void Trial::lift() {
  engine_.kept_.lift(txn_, leaf_);
  for (size_t f = 0; f < futures_.size(); ++f) futures_[f]->kept.lift(*future_txns_[f], leaf_);
}

bool Trial::within_limits(const Amounts& amounts) {
  bool within = true;
  const QueueTree& tree = engine_.queues();
  tree.each_up(engine_.gang(gang_).leaf, [&](QueueId q) {
    if (!within || tree.at(q).spec.limit.empty()) return;
    for (const auto& [dim, amount] : amounts) {
      int64_t limit = tree.at(q).spec.limit.at(dim, kUnlimited);
      int64_t used = core::sat_add(this->used(q, dim), charged_.at(dim));
      if (limit == kUnlimited || core::sat_add(used, amount) <= limit) continue;
      within = false;
      wait_ = Wait();
      wait_.reason = WaitReason::kLimit;
      wait_.queue = q;
      wait_.dim = dim;
      wait_.need = amount;
      wait_.have = std::max<int64_t>(limit - used, 0);
      return;
    }
  });
  return within;
}

// The request, kept to models of which its queues may still have so much; nothing where there is no such model.
std::shared_ptr<const core::PodRequest> Trial::within_models(const MemberSpec& spec) {
  const int64_t units = spec.amounts.at(kGpu);
  const QueueTree& tree = engine_.queues();
  bool limited = false;
  if (units > 0) {
    tree.each_up(engine_.gang(gang_).leaf, [&](QueueId q) {
      for (const auto& [dim, limit] : tree.at(q).spec.limit)
        limited |= engine_.dims().name(dim).starts_with("gpu/");
    });
  }
  if (!limited) return spec.request;
  std::vector<core::ModelId> models;
  const std::vector<core::ModelId>& asked = spec.request->shape.models;
  for (size_t m = 0; m < engine_.cluster().names().models(); ++m) {
    core::ModelId model(static_cast<int32_t>(m));
    if (!asked.empty() && !std::binary_search(asked.begin(), asked.end(), model)) continue;
    Amounts amounts{{engine_.model_dim(model), units}};
    if (within_limits(amounts)) models.push_back(model);
  }
  if (models.empty()) return nullptr;
  wait_ = Wait();
  if (models.size() == engine_.cluster().names().models()) return spec.request;
  auto kept = std::make_shared<core::PodRequest>(*spec.request);
  kept->shape.models = std::move(models);
  return kept;
}

bool Trial::fits_reservations(core::NodeId node, const core::Shape& shape) const {
  return std::all_of(futures_.begin(), futures_.end(), [&](const Future* future) {
    return future->gang.valid() || core::fits(future->cluster, node, shape);
  });
}

bool Trial::fits_gangs(core::NodeId node, const core::Shape& shape) const {
  return std::all_of(futures_.begin(), futures_.end(), [&](const Future* future) {
    return !future->gang.valid() || core::fits(future->cluster, node, shape);
  });
}

// What is held for its queue now is not kept from it by what others plan for afterwards.
bool Trial::within_held(core::NodeId node, const core::Shape& shape) const {
  const core::NodeLoad& load = engine_.cluster().load(node);
  Room left = engine_.kept_.left(node, leaf_);
  for (const auto& [member, pod] : placed_) {
    if (engine_.cluster().pod(pod).placement.node == node)
      left.add(room_of(engine_.member(member).spec.request->shape, load), -1);
  }
  return left.holds(room_of(shape, load));
}

std::optional<core::Placement> Trial::find(const core::PodRequest& request) {
  if (engine_.kept_.opens_any(leaf_)) {  // there first, so that others have the rest
    auto there = engine_.scheduler_.place_where(engine_.cluster(), request, [&](core::NodeId node) {
      return engine_.kept_.open_on(node, leaf_) && fits_reservations(node, request.shape) &&
             (within_held(node, request.shape) || fits_gangs(node, request.shape));
    });
    if (there) return there;
  }
  auto placement = engine_.scheduler_.place(engine_.cluster(), request);
  if (!placement || futures_.empty() || fits_futures(placement->node, request.shape))
    return placement;
  return engine_.scheduler_.place_where(engine_.cluster(), request, [&](core::NodeId node) {
    return fits_futures(node, request.shape);
  });
}

bool Trial::place(MemberId id) {
  const MemberSpec& spec = engine_.member(id).spec;
  auto request = within_models(spec);
  if (!request) return false;
  auto placement = find(*request);
  if (!placement) {
    wait_ = misfit(id, *request);
    return false;
  }
  placed_.emplace_back(id, txn_.place(spec.request, *placement));
  for (size_t f = 0; f < futures_.size(); ++f) {
    core::Placement there = *placement;
    there.devices = 0;  // which of them is open until then
    future_txns_[f]->place(spec.request, there);
  }
  charged_.add(engine_.charged_at(spec, placement->node), 1);
  return true;
}

// Whether a planned start or a reservation is in the way, or there is no room at all.
Wait Trial::misfit(MemberId id, const core::PodRequest& request) {
  Wait wait;
  wait.reason = WaitReason::kCapacity;
  wait.member = id;
  wait.have = static_cast<int64_t>(placed_.size());
  auto now = futures_.empty() ? std::nullopt : engine_.scheduler_.place(engine_.cluster(), request);
  for (const Future* future : futures_) {
    if (!now || core::fits(future->cluster, now->node, request.shape)) continue;
    wait.reason = WaitReason::kReserved;
    wait.gang = future->gang;
    if (!wait.gang.valid()) wait.reservation = future->kept.closed_by(now->node, leaf_);
    return wait;
  }
  if (engine_.kept_.empty()) return wait;
  const size_t mark = txn_.mark();
  engine_.kept_.lift_others(txn_, leaf_);
  now = engine_.scheduler_.place(engine_.cluster(), request);
  txn_.rollback_to(mark);
  if (!now) return wait;
  wait.reason = WaitReason::kReserved;
  wait.reservation = engine_.kept_.closed_by(now->node, leaf_);
  return wait;
}

int64_t Trial::used(QueueId queue, Dim dim) const {
  int64_t used = engine_.use(queue).used.at(dim);
  auto freed = freed_.find(queue.value);
  return freed == freed_.end() ? used : used - freed->second.at(dim);
}

void Trial::freed(const Gang& gang, const Amounts& amounts, int sign) {
  if (!gang.leaf.valid()) return;
  engine_.queues().each_up(gang.leaf, [&](QueueId q) { freed_[q.value].add(amounts, sign); });
}

void Trial::restart() {
  txn_.rollback();
  for (auto& txn : future_txns_) txn->rollback();
  placed_.clear();
  charged_ = Totals();
  freed_.clear();
  lift();
}

void Trial::keep() {
  txn_.commit();
  for (size_t f = 0; f < futures_.size(); ++f) {
    Future& future = *futures_[f];
    future_txns_[f]->commit();
    if (!future.kept.opens_any(leaf_)) continue;
    for (const auto& [member, pod] : placed_) {
      const core::NodeId node = engine_.cluster().pod(pod).placement.node;
      future.kept.use(
          leaf_, node,
          room_of(engine_.member(member).spec.request->shape, engine_.cluster().load(node)), 1);
    }
    future.kept.settle(future.cluster, leaf_);
  }
}

}  // namespace tessera::scheduler::queueing
