#include "scheduler/queueing/reservation.h"

#include <algorithm>

namespace tessera::scheduler::queueing {
namespace {

void cancel(int64_t& a, int64_t& b) {
  const int64_t both = std::min(a, b);
  a -= both;
  b -= both;
}

}  // namespace

void Room::add(const Room& other, int sign) {
  auto sum = [sign](int64_t& to, int64_t amount) {
    to = sign > 0 ? core::sat_add(to, amount) : std::max<int64_t>(to - amount, 0);
  };
  sum(gpu_milli, other.gpu_milli);
  sum(cpu_milli, other.cpu_milli);
  sum(memory_bytes, other.memory_bytes);
  for (const auto& [id, amount] : other.extended) sum(extended[id], amount);
}

void Room::cancel(Room& other) {
  queueing::cancel(gpu_milli, other.gpu_milli);
  queueing::cancel(cpu_milli, other.cpu_milli);
  queueing::cancel(memory_bytes, other.memory_bytes);
  for (auto& [id, amount] : extended) {
    const auto found = other.extended.find(id);
    if (found != other.extended.end()) queueing::cancel(amount, found->second);
  }
}

bool Room::empty() const {
  return gpu_milli == 0 && cpu_milli == 0 && memory_bytes == 0 &&
         std::all_of(extended.begin(), extended.end(),
                     [](const auto& item) { return item.second == 0; });
}

bool Room::holds(const Room& other) const {
  if (other.gpu_milli > gpu_milli || other.cpu_milli > cpu_milli ||
      other.memory_bytes > memory_bytes)
    return false;
  return std::all_of(other.extended.begin(), other.extended.end(), [&](const auto& item) {
    const auto found = extended.find(item.first);
    return item.second == 0 || (found != extended.end() && found->second >= item.second);
  });
}

Room room_of(const core::Shape& shape, const core::NodeLoad& load) {
  Room room;
  if (shape.gpu.count > 0)
    room.gpu_milli = core::sat_mul(shape.gpu.count, core::milli_on(load, shape.gpu));
  room.cpu_milli = shape.cpu_milli;
  room.memory_bytes = shape.memory_bytes;
  for (const core::ResourceAmount& amount : shape.extended)
    room.extended[amount.id] = amount.amount;
  return room;
}

std::string_view name_of(ReservationPhase phase) {
  switch (phase) {
    case ReservationPhase::kPending:
      return "Pending";
    case ReservationPhase::kPlanned:
      return "Planned";
    case ReservationPhase::kActive:
      return "Active";
    case ReservationPhase::kEnded:
      return "Ended";
    case ReservationPhase::kRefused:
      return "Refused";
  }
  return "Pending";
}

}  // namespace tessera::scheduler::queueing
