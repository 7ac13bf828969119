#include "scheduler/queueing/choose_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/queueing/trial.h"

namespace tessera::scheduler::queueing {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kUnitsPerMilli = kUnitsPerGpu / 1000;

bool is_gpu(std::string_view dim) {
  return dim == "gpu" || dim.starts_with("gpu/");
}

// In what a Room counts: thousandths of devices, bytes.
int64_t in_room_units(const Dims& dims, Dim dim, int64_t amount) {
  if (is_gpu(dims.name(dim)))
    return amount / kUnitsPerMilli + (amount % kUnitsPerMilli != 0 ? 1 : 0);
  return dim == kMemory ? core::sat_mul(amount, kMib) : amount;
}

// With the name of the resource, or without.
std::string text_of(const Dims& dims, Dim dim, int64_t amount, bool named = true) {
  const std::string_view name = dims.name(dim);
  if (is_gpu(name)) amount = core::sat_mul(amount, kUnitsPerMilli);
  if (dim == kMemory) amount /= kMib;
  std::string out = amount_text(dims, dim, amount);
  if (!named) return out;
  if (dim == kGpu) return out + " GPUs";
  if (is_gpu(name)) return fmt::format("{} {} GPUs", out, name.substr(4));
  if (dim == kCpu) return out + " cores";
  return fmt::format("{} of {}", out, name);
}

// Rounded up. `part` and `of` are thousandths of devices.
int64_t part_of(int64_t total, int64_t part, int64_t of) {
  return total / of * part + (total % of * part + of - 1) / of;
}

int healthy(const core::NodeSpec& spec) {
  return spec.gpus - __builtin_popcount(spec.gpus_unhealthy & ((1u << spec.gpus) - 1));
}

}  // namespace

void ChooseNodes::run() {
  std::vector<Reservation*> order;
  for (Reservation& reservation : engine_.reservations_) order.push_back(&reservation);
  auto rank = [](const Reservation& r) {
    const bool held = !r.held.empty() || !r.spec.nodes.empty();
    return std::tuple(!held, r.spec.start, std::string_view(r.spec.name));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Reservation* a, const Reservation* b) { return rank(*a) < rank(*b); });
  for (Reservation* reservation : order) {
    choose(*reservation);
    if (!reservation->held.empty()) done_.push_back(reservation);
  }
}

bool ChooseNodes::settled_by_time(Reservation& r) const {
  auto say = [&](ReservationPhase phase, const char* reason, std::string message) {
    r.phase = phase;
    r.reason = reason;
    r.message = std::move(message);
    r.held.clear();
    r.spec.nodes.clear();
    return true;
  };
  if (!r.spec.problem.empty())
    return say(ReservationPhase::kRefused, "InvalidDefinition", r.spec.problem);
  if (now_ >= r.spec.end())
    return say(ReservationPhase::kEnded, "Over", "its time is over: nothing is held any more");
  r.queue = engine_.queues().find(r.spec.queue);
  if (r.queue.valid()) return false;
  r.phase = ReservationPhase::kPending;
  r.reason = "QueueNotFound";
  r.message =
      fmt::format("queue \"{}\" does not exist: nobody could use what is held", r.spec.queue);
  r.held.clear();
  return true;
}

// What those who are not of its queue still use when it begins.
std::map<core::NodeId, ChooseNodes::Busy> ChooseNodes::busy_for(const Reservation& r) const {
  std::map<core::NodeId, Busy> busy;
  const QueueTree& tree = engine_.queues();
  for (const Member& member : engine_.members_) {
    if (!member.present || !member.pod.valid()) continue;
    const Gang& gang = engine_.gang(member.gang);
    bool own = false;
    tree.each_up(gang.leaf, [&](QueueId up) { own |= up == r.queue; });
    if (own) continue;
    const auto runtime = runtime_of(engine_, gang);
    if (runtime && now_ < r.spec.start && std::max(now_, member.started + *runtime) <= r.spec.start)
      continue;
    Busy& here = busy[member.placement.node];
    here.devices |= member.placement.devices;
    here.room.add(
        room_of(member.spec.request->shape, engine_.cluster().load(member.placement.node)), 1);
  }
  return busy;
}

std::map<core::NodeId, Room> ChooseNodes::reserved_beside(const Reservation& r) const {
  std::map<core::NodeId, Room> out;
  for (const Reservation* other : done_) {
    if (!other->touches(std::max(now_, r.spec.start), r.spec.end())) continue;
    for (const auto& [node, room] : other->held) out[node].add(room, 1);
  }
  return out;
}

int64_t ChooseNodes::amount_in(const Room& room, Dim dim) const {
  const std::string_view name = engine_.dims().name(dim);
  if (is_gpu(name)) return room.gpu_milli;
  if (dim == kCpu) return room.cpu_milli;
  if (dim == kMemory) return room.memory_bytes;
  for (const auto& [id, amount] : room.extended) {
    if (engine_.cluster().names().text(id) == name) return amount;
  }
  return 0;
}

int64_t ChooseNodes::total_of(const core::NodeSpec& spec, Dim dim) const {
  const std::string_view name = engine_.dims().name(dim);
  const core::Interner& names = engine_.cluster().names();
  if (name == "gpu") return int64_t{spec.gpus} * core::kMilliPerGpu;
  if (name.starts_with("gpu/"))
    return names.text(spec.model) == name.substr(4) ? int64_t{spec.gpus} * core::kMilliPerGpu : 0;
  if (dim == kCpu) return spec.cpu_milli;
  if (dim == kMemory) return spec.memory_bytes;
  for (const core::ResourceAmount& extended : spec.extended) {
    if (names.text(extended.id) == name) return extended.amount;
  }
  return 0;
}

std::vector<ChooseNodes::Space> ChooseNodes::spaces(const Reservation& r, Dim dim) const {
  std::vector<Space> out;
  const core::Cluster& cluster = engine_.cluster();
  const bool gpus = is_gpu(engine_.dims().name(dim));
  auto in = [&](const std::map<core::NodeId, Room>& rooms, core::NodeId node) {
    const auto found = rooms.find(node);
    return found == rooms.end() ? 0 : amount_in(found->second, dim);
  };
  for (size_t n = 0; n < cluster.node_slots(); ++n) {
    const core::NodeId node(static_cast<int32_t>(n));
    if (!cluster.present(node)) continue;
    const core::NodeSpec& spec = cluster.spec(node);
    Space space;
    space.all = total_of(spec, dim);
    if (space.all == 0) continue;
    space.node = node;
    space.name = cluster.names().text(spec.name);
    space.open = cluster.load(node).open;
    const int64_t usable = gpus ? int64_t{healthy(spec)} * core::kMilliPerGpu : space.all;
    // What it has been given for another of its resources is not to be given twice.
    const int64_t mine = in(r.held, node);
    space.left = std::max<int64_t>(usable - in(beside_, node) - mine, 0);
    int64_t used = 0;
    if (const auto busy = busy_.find(node); busy != busy_.end())
      used = gpus ? int64_t{__builtin_popcount(busy->second.devices & ~spec.gpus_unhealthy)} *
                        core::kMilliPerGpu
                  : amount_in(busy->second.room, dim);
    space.idle = std::clamp<int64_t>(usable - used - in(beside_, node) - mine, 0, space.left);
    space.before = in(before_, node);
    space.known = before_.contains(node) || std::find(r.spec.nodes.begin(), r.spec.nodes.end(),
                                                      space.name) != r.spec.nodes.end();
    if (space.open) out.push_back(space);
  }
  std::sort(out.begin(), out.end(), [](const Space& a, const Space& b) { return a.name < b.name; });
  return out;
}

// Answers with what was found of `need`.
int64_t ChooseNodes::hold(Reservation& r, Dim dim, int64_t need) {
  std::vector<Space> all = spaces(r, dim);
  int64_t missing = need;
  auto take = [&](Space& space, int64_t amount) {
    space.taken += amount;
    space.idle = std::max<int64_t>(space.idle - amount, 0);
    space.left -= amount;
    missing -= amount;
  };
  if (!is_gpu(engine_.dims().name(dim))) {  // beside the GPUs, as many as there are of those
    int64_t gpus = 0;
    for (const auto& [node, room] : r.held) gpus += room.gpu_milli;
    for (Space& space : all) {
      const auto held = r.held.find(space.node);
      if (gpus == 0 || held == r.held.end()) continue;
      const int64_t part = part_of(need, held->second.gpu_milli, gpus);
      take(space, std::min({part, space.left, missing}));
    }
  }
  for (Space& space : all) take(space, std::min({space.before, space.idle, missing}));
  auto best = [&](auto fit, auto better) {
    Space* found = nullptr;
    for (Space& space : all) {
      if (!fit(space)) continue;
      if (found == nullptr || space.known > found->known ||
          (space.known == found->known && better(space, *found)))
        found = &space;
    }
    return found;
  };
  while (missing > 0) {
    Space* whole =
        best([&](const Space& s) { return s.taken == 0 && s.idle == s.all && s.all <= missing; },
             [](const Space& a, const Space& b) { return a.all > b.all; });
    if (whole == nullptr) break;
    take(*whole, whole->all);
  }
  while (missing > 0) {
    Space* part = best([&](const Space& s) { return s.idle >= missing; },
                       [](const Space& a, const Space& b) { return a.idle < b.idle; });
    if (part == nullptr)
      part = best([](const Space& s) { return s.idle > 0; },
                  [](const Space& a, const Space& b) { return a.idle > b.idle; });
    if (part == nullptr) break;
    take(*part, std::min(part->idle, missing));
  }
  int64_t& blocked = blocked_;
  if (missing > 0 && blocked == 0) blocked_dim_ = dim;
  while (missing > 0) {
    Space* busy = best([](const Space& s) { return s.left > 0; },
                       [](const Space& a, const Space& b) { return a.left > b.left; });
    if (busy == nullptr) break;
    const int64_t amount = std::min(busy->left, missing);
    if (dim == blocked_dim_) blocked += amount;
    take(*busy, amount);
  }
  put(r, dim, all);
  return need - missing;
}

void ChooseNodes::put(Reservation& r, Dim dim, const std::vector<Space>& spaces) const {
  const std::string_view name = engine_.dims().name(dim);
  for (const Space& space : spaces) {
    if (space.taken == 0) continue;
    Room& room = r.held[space.node];
    if (is_gpu(name)) {
      room.gpu_milli += space.taken;
    } else if (dim == kCpu) {
      room.cpu_milli += space.taken;
    } else if (dim == kMemory) {
      room.memory_bytes += space.taken;
    } else {
      room.extended[engine_.cluster_.names().resource(name)] += space.taken;
    }
  }
}

void ChooseNodes::add_shares_of_nodes(Reservation& r) const {
  for (auto& [node, room] : r.held) {
    const core::NodeSpec& spec = engine_.cluster().spec(node);
    if (spec.gpus == 0 || room.gpu_milli == 0) continue;
    const int64_t of = int64_t{spec.gpus} * core::kMilliPerGpu;
    if (!r.spec.amounts.has(kCpu)) room.cpu_milli = part_of(spec.cpu_milli, room.gpu_milli, of);
    if (!r.spec.amounts.has(kMemory))
      room.memory_bytes = part_of(spec.memory_bytes, room.gpu_milli, of);
  }
}

// Empty where only some nodes' absence is in the way.
std::string ChooseNodes::short_of(const Reservation& r, Dim dim, int64_t asked) const {
  const core::Cluster& cluster = engine_.cluster();
  const Dims& dims = engine_.dims();
  int64_t total = 0;
  int64_t taken = 0;
  for (size_t n = 0; n < cluster.node_slots(); ++n) {
    const core::NodeId node(static_cast<int32_t>(n));
    if (!cluster.present(node)) continue;
    const int64_t here = total_of(cluster.spec(node), dim);
    total = core::sat_add(total, here);
    const auto beside = beside_.find(node);
    if (here > 0 && beside != beside_.end()) taken += amount_in(beside->second, dim);
  }
  if (asked > total)
    return fmt::format("it asks for {} and the cluster has {}", text_of(dims, dim, asked),
                       text_of(dims, dim, total));
  if (asked <= total - taken) return {};
  std::string names;
  for (const Reservation* other : done_) {
    if (!other->touches(std::max(now_, r.spec.start), r.spec.end())) continue;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", other->spec.name);
  }
  return fmt::format("it asks for {} and {} leave {} of {} at that time", text_of(dims, dim, asked),
                     names, text_of(dims, dim, std::max<int64_t>(total - taken, 0), false),
                     text_of(dims, dim, total));
}

void ChooseNodes::choose(Reservation& r) {
  before_ = std::exchange(r.held, {});
  if (settled_by_time(r)) return;
  busy_ = busy_for(r);
  beside_ = reserved_beside(r);
  blocked_ = 0;
  const Dims& dims = engine_.dims();
  std::vector<std::pair<Dim, int64_t>> asks;
  int64_t of_models = 0;
  for (const auto& [dim, amount] : r.spec.amounts) {
    if (dims.name(dim).starts_with("gpu/")) {
      of_models = core::sat_add(of_models, amount);
      asks.emplace_back(dim, amount);
    }
  }
  for (const auto& [dim, amount] : r.spec.amounts) {
    // GPUs of certain models are part of all GPUs.
    if (dim == kGpu) asks.emplace_back(dim, std::max<int64_t>(amount - of_models, 0));
    if (!is_gpu(dims.name(dim))) asks.emplace_back(dim, amount);
  }
  std::string missing;
  std::string never;
  if (engine_.cluster().nodes() == 0) missing = "no nodes";
  for (const auto& [dim, amount] : asks) {
    const int64_t need = in_room_units(dims, dim, amount);
    const int64_t whole = dim == kGpu ? in_room_units(dims, dim, r.spec.amounts.at(kGpu)) : need;
    if (never.empty() && missing.empty()) never = short_of(r, dim, whole);
    if (!never.empty() || !missing.empty()) break;
    const int64_t found = hold(r, dim, need);
    if (found < need)
      missing = fmt::format("only {} of {} are on nodes that are up", text_of(dims, dim, found),
                            text_of(dims, dim, need));
  }
  if (!never.empty()) {
    r.held.clear();
    r.spec.nodes.clear();
    r.phase = ReservationPhase::kRefused;
    r.reason = "NeverFits";
    r.message = never;
    return;
  }
  add_shares_of_nodes(r);
  const bool begun = now_ >= r.spec.start;
  if (!missing.empty()) {
    r.phase = begun && !r.held.empty() ? ReservationPhase::kActive : ReservationPhase::kPending;
    r.reason = "NotEnoughNodes";
    r.message = missing;
    return;
  }
  r.phase = begun ? ReservationPhase::kActive : ReservationPhase::kPlanned;
  r.reason = begun ? "Held" : "PlaceFound";
  r.message = begun ? fmt::format("{} nodes are held for queue \"{}\"", r.held.size(), r.spec.queue)
                    : fmt::format("{} nodes are free for it in time", r.held.size());
  if (blocked_ == 0) return;
  r.reason = "Occupied";
  r.message =
      fmt::format("{} are used by jobs that {}: nobody is evicted for a reservation",
                  text_of(dims, blocked_dim_, blocked_),
                  begun ? "were there before" : "have no time limit, or one beyond its start");
}

}  // namespace tessera::scheduler::queueing
