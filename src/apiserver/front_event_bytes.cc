#include "apiserver/front_event_bytes.h"

#include <utility>

namespace tessera::apiserver {
namespace {

using Type = kube::WatchEvent::Type;

std::string_view type_name(Type type) {
  switch (type) {
    case Type::kAdded:
      return "ADDED";
    case Type::kModified:
      return "MODIFIED";
    case Type::kDeleted:
      return "DELETED";
    case Type::kBookmark:
      return "BOOKMARK";
    case Type::kError:
      return "ERROR";
  }
  return "ERROR";
}

json::Value shaped(const kube::WatchEvent& event, const WatchForm& form, bool definitions,
                   base::Time now) {
  const json::Value& object = event.object.json();
  if (event.type == Type::kError) return object;
  switch (form.accepted.form) {
    case Form::kTable:
      return to_table(*form.kind, object,
                      {.object = form.row_object,
                       .version = form.accepted.version,
                       .column_definitions = definitions,
                       .now = now});
    case Form::kPartial:
    case Form::kPartialList:
      return to_partial_metadata(object, form.accepted.version);
    default:
      return object;
  }
}

}  // namespace

std::shared_ptr<const std::string> EventBytes::find(const Entry& wanted) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : ring_) {
    if (entry.bytes && entry.type == wanted.type && entry.definitions == wanted.definitions &&
        entry.form.kind == wanted.form.kind && entry.form.row_object == wanted.form.row_object &&
        entry.form.accepted == wanted.form.accepted && entry.object.same_node(wanted.object)) {
      ++shared_count_;
      return entry.bytes;
    }
  }
  return nullptr;
}

std::shared_ptr<const std::string> EventBytes::encode(const kube::WatchEvent& event,
                                                      const WatchForm& form, bool definitions,
                                                      base::Time now) {
  Entry entry{event.type, form, definitions && form.accepted.form == Form::kTable,
              event.object.json(), nullptr};
  if (auto bytes = find(entry)) return bytes;
  std::string line = "{\"type\":\"";
  line.append(type_name(event.type)).append("\",\"object\":");
  shaped(event, form, entry.definitions, now).dump_to(line);
  line += "}\n";
  entry.bytes = std::make_shared<const std::string>(std::move(line));
  auto bytes = entry.bytes;
  const std::lock_guard lock(mutex_);
  std::swap(ring_[next_++ % ring_.size()], entry);
  return bytes;
}

size_t EventBytes::shared_count() const {
  const std::lock_guard lock(mutex_);
  return shared_count_;
}

}  // namespace tessera::apiserver
