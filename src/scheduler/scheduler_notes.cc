// What was found odd while groups and queues were read, as events: once each, and again when it reads otherwise.

#include <fmt/ranges.h>

#include "scheduler/group_reading.h"
#include "scheduler/scheduler_state.h"

namespace tessera::scheduler {

using kube::Object;

namespace {

constexpr size_t kNotesMax = 5;  // of one object

// The group's own object, or its first pod where it has none.
Object about(const Model& model, const GroupEntry& group) {
  const ObjectName& name = group.reading.object;
  const Object found = model.object(group_of(name.api_version), name.kind, name.ns, name.name);
  return found ? found : model.pod_at(group.pods.begin()->second).object;
}

}  // namespace

void Scheduler::State::note_groups(const std::set<std::string>& touched) {
  for (const std::string& key : touched) {
    const auto found = model.groups().find(key);
    const GroupEntry* group = found == model.groups().end() ? nullptr : &found->second;
    if (group == nullptr || (group->reading.notes.empty() && group->differs.empty())) {
      noted.erase(key);
      continue;
    }
    std::vector<std::string> notes = group->reading.notes;
    if (!group->differs.empty()) notes.push_back(group->differs);
    std::string all = fmt::format("{}", fmt::join(notes, "; "));
    std::string& before = noted[key];
    if (before == all) continue;
    before = std::move(all);
    if (!options.events) continue;
    const Object object = about(model, *group);
    for (size_t i = 0; i < std::min(notes.size(), kNotesMax); ++i)
      recorder.warning(object, "GroupNote", notes[i]);
  }
}

void Scheduler::State::note_queues() {
  if (std::exchange(queues_noted, model.queues_read()) == model.queues_read()) return;
  const queueing::QueueTree& tree = model.engine().queues();
  const auto before = std::exchange(noted_queues, {});
  for (const auto& [key, queue] : model.queues()) {
    const queueing::QueueId id = tree.find(queue.reading.spec.name);
    const std::string problem = id.valid() ? tree.at(id).problem : queue.reading.problem;
    const std::vector<std::string>& notes = queue.reading.notes;
    if (problem.empty() && notes.empty()) continue;
    const std::string& all = noted_queues[key] =
        fmt::format("{}; {}", problem, fmt::join(notes, "; "));
    const auto said = before.find(key);
    if (!options.events || (said != before.end() && said->second == all)) continue;
    if (!problem.empty()) recorder.warning(queue.object, "QueueClosed", problem);
    for (size_t i = 0; i < std::min(notes.size(), kNotesMax); ++i)
      recorder.warning(queue.object, "QueueNote", notes[i]);
  }
}

}  // namespace tessera::scheduler
