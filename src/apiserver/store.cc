#include "apiserver/store.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

json::Value revision_text(uint64_t revision) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, revision).ptr;
  return json::Value(std::string_view(text, static_cast<size_t>(end - text)));
}

// What a write keeps on disk. The text is made before the revision is known, outside the lock.
std::string row_text(const json::Value& object, bool logged) {
  if (!logged || object.is_null()) return {};
  if (!object["metadata"].contains("resourceVersion")) return object.dump();
  json::Value copy = object;
  copy.ref("metadata").erase("resourceVersion");
  return copy.dump();
}

constexpr size_t kTextMax = size_t{16} << 20;

bool has_prefix(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace

size_t text_size(const json::Value& value, size_t limit) {
  size_t size = 8;
  if (value.is_string()) return value.as_string().size() + 2;
  for (const json::Value& item : value.items()) {
    if (size > limit) return size;
    size += text_size(item, limit - size) + 1;
  }
  for (const json::Member& member : value.members()) {
    if (size > limit) return size;
    size += member.name().size() + 4;
    if (size <= limit) size += text_size(member.value, limit - size);
  }
  return size;
}

std::string store_key(const Kind& kind, std::string_view ns, std::string_view name) {
  if (!kind.namespaced) return std::string(name);
  std::string key;
  key.reserve(ns.size() + name.size() + 1);
  return key.append(ns).append("/").append(name);
}

std::string store_key(const Kind& kind, const json::Value& object) {
  const json::Value& meta = object["metadata"];
  return store_key(kind, meta["namespace"].as_string(), meta["name"].as_string());
}

std::string resource_name(const Kind& kind) {
  return kind.group.empty() ? kind.plural : kind.plural + "." + kind.group;
}

Store::Store(base::Executor& executor, std::unique_ptr<RowLog> log, History history)
    : executor_(executor),
      log_(std::move(log)),
      logged_(log_ != nullptr),
      history_limits_(history) {}

base::Status Store::restore(const Kinds& kinds, std::vector<StoredRow> rows, uint64_t revision) {
  std::unordered_map<std::string, const Kind*> by_resource;
  for (const Kind* kind : kinds.tables()) {
    if (!kind->view) by_resource[resource_name(*kind)] = kind;
  }
  const std::lock_guard lock(mutex_);
  for (StoredRow& row : rows) {
    next_row_ = std::max(next_row_, row.id + 1);
    const auto known = by_resource.find(row.resource);
    if (known == by_resource.end()) continue;  // stays on disk for a program that knows it
    auto object = json::parse(row.text);
    if (!object) {
      return base::error(base::Code::kInternal, "object {} {}/{} in the store does not read: {}",
                         row.resource, row.ns, row.name, object.error().message);
    }
    interner_.intern(*object);
    object->ref("metadata", "resourceVersion") = revision_text(row.revision);
    const std::string key = store_key(*known->second, row.ns, row.name);
    Entry entry{std::move(*object), row.revision, row.id};
    if (!table(known->second).objects.emplace(key, std::move(entry)).second) {
      return base::error(base::Code::kInternal, "object {} {} stands twice in the store",
                         row.resource, key);
    }
    row.text = std::string();
  }
  latest_ = durable_ = oldest_ = observed_ = revision;
  return {};
}

void Store::observe(std::function<void(const Change&)> observer) {
  observer_ = std::move(observer);
}

Store::Table& Store::table(const Kind* kind) {
  return tables_[table_of(kind)];
}

const Store::Table* Store::find_table(const Kind* kind) const {
  const auto it = tables_.find(table_of(kind));
  return it == tables_.end() ? nullptr : &it->second;
}

Store::Found Store::latest(const Kind* kind, std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const Table* rows = find_table(kind);
  if (rows == nullptr) return {};
  const auto it = rows->objects.find(key);
  return it == rows->objects.end() ? Found{} : Found{it->second.object, it->second.revision};
}

Store::Found Store::durable(const Kind* kind, std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const Table* rows = find_table(kind);
  if (rows == nullptr) return {};
  const auto it = rows->objects.find(key);
  if (it != rows->objects.end() && it->second.revision <= durable_) {
    return {it->second.object, it->second.revision};
  }
  json::Value value = it == rows->objects.end() ? json::Value() : it->second.object;
  for (size_t i = history_.size(); i-- > 0 && history_[i].revision > durable_;) {
    const Change& change = history_[i];
    if (change.kind != table_of(kind)) continue;
    if (store_key(*kind, change.object()) == key) {
      value = change.before;
    }
  }
  if (value.is_null()) return {};
  const std::string_view text = value["metadata"]["resourceVersion"].as_string();
  uint64_t revision = 0;
  std::from_chars(text.data(), text.data() + text.size(), revision);
  return {std::move(value), revision};
}

std::vector<Store::Found> Store::newest(const Kind* kind, std::string_view prefix) const {
  std::vector<Found> out;
  const std::lock_guard lock(mutex_);
  const Table* rows = find_table(kind);
  if (rows == nullptr) return out;
  for (auto it = rows->objects.lower_bound(prefix); it != rows->objects.end(); ++it) {
    if (!has_prefix(it->first, prefix)) break;
    out.push_back({it->second.object, it->second.revision});
  }
  return out;
}

uint64_t Store::revision_of(const Write& write) const {
  const Table* rows = find_table(write.kind);
  if (rows == nullptr) return 0;
  const auto it = rows->objects.find(write.key);
  return it == rows->objects.end() ? 0 : it->second.revision;
}

Store::Outcome Store::commit(std::span<Write> writes) {
  std::vector<std::string> texts;
  texts.reserve(writes.size());
  for (const Write& write : writes) texts.push_back(row_text(write.object, logged_));
  {
    const std::lock_guard lock(intern_mutex_);
    for (Write& write : writes) interner_.intern(write.object);
  }
  const std::lock_guard lock(mutex_);
  if (closed_) return Outcome::kClosed;
  for (const Write& write : writes) {
    if (revision_of(write) != write.expected) return Outcome::kConflict;
  }
  for (size_t i = 0; i < writes.size(); ++i) accept(writes[i], std::move(texts[i]));
  return Outcome::kAccepted;
}

// The write holds: numbers it and puts it in its place.
void Store::accept(Write& write, std::string text) {
  Table& rows = table(write.kind);
  auto it = rows.objects.find(write.key);
  if (it == rows.objects.end()) {
    TS_CHECK(!write.object.is_null(), "delete of nothing: {}", write.key);
    it = rows.objects.emplace(write.key, Entry{}).first;
    it->second.row = next_row_++;
  }
  Entry& entry = it->second;
  const uint64_t revision = ++latest_;
  rows.changed = revision;
  if (!write.object.is_null()) {
    write.object.ref("metadata", "resourceVersion") = revision_text(revision);
  }
  Pending pending;
  pending.revision = revision;
  const size_t bytes = text.empty() ? text_size(write.object, kTextMax) : text.size();
  pending.change = {revision, table_of(write.kind), entry.object, write.object, entry.row, bytes};
  pending.done = std::move(write.done);
  if (logged_) {
    const json::Value& meta = (write.object.is_null() ? entry.object : write.object)["metadata"];
    pending.row = {entry.row,
                   resource_name(*write.kind),
                   meta["namespace"].str(),
                   meta["name"].str(),
                   revision,
                   std::move(text)};
  }
  history_bytes_ += bytes;
  history_.push_back(pending.change);
  if (write.object.is_null()) {
    rows.objects.erase(it);
  } else {
    entry.object = std::move(write.object);
    entry.revision = revision;
  }
  enqueue(std::move(pending));
}

void Store::when_durable(std::function<void(base::Status)> done) {
  Pending pending;
  pending.done = [done = std::move(done)](base::Result<json::Value> result) {
    done(result ? base::Status() : base::Status(base::error(result.error())));
  };
  const std::lock_guard lock(mutex_);
  enqueue(std::move(pending));
}

void Store::enqueue(Pending pending) {
  pending_.push_back(std::move(pending));
  post_flush();
}

void Store::post_flush() {
  if (std::exchange(flush_posted_, true)) return;
  executor_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->flush();
  });
}

// Makes all that is pending durable, or takes it back.
void Store::write_pending() {
  const std::lock_guard one_batch(write_mutex_);
  Flushed out;
  {
    const std::lock_guard lock(mutex_);
    if (pending_.empty()) return;
    out.batch.swap(pending_);
  }
  std::vector<StoredRow> rows;
  uint64_t revision = 0;
  for (Pending& pending : out.batch) {
    if (pending.revision == 0) continue;
    revision = pending.revision;
    if (logged_) rows.push_back(std::move(pending.row));
  }
  if (!rows.empty()) out.status = log_->write(rows, revision);
  const std::lock_guard lock(mutex_);
  if (!rows.empty()) last_write_ = out.status;
  if (!out.status) {
    base::log_error("store write failed changes={} error={}", rows.size(),
                    out.status.error().message);
    take_back(out.batch);
  } else if (revision != 0) {
    durable_ = revision;
  }
  undelivered_.push_back(std::move(out));
}

// The batch failed. What was accepted after it was built on it and goes too.
void Store::take_back(std::vector<Pending>& batch) {
  while (!history_.empty() && history_.back().revision > durable_) {
    put_back(history_.back());
    history_bytes_ -= history_.back().bytes;
    history_.pop_back();
  }
  std::ranges::move(pending_, std::back_inserter(batch));
  pending_.clear();
}

void Store::put_back(const Change& change) {
  Table& rows = table(change.kind);
  const std::string key = store_key(*change.kind, change.object());
  if (change.before.is_null()) {
    rows.objects.erase(key);
    return;
  }
  Entry& entry = rows.objects[key];
  entry.object = change.before;
  const std::string_view text = change.before["metadata"]["resourceVersion"].as_string();
  std::from_chars(text.data(), text.data() + text.size(), entry.revision);
  if (entry.row == 0) entry.row = change.row;
}

void Store::flush() {
  {
    const std::lock_guard lock(mutex_);
    flush_posted_ = false;
  }
  write_pending();
  while (true) {
    Flushed next;
    {
      const std::lock_guard lock(mutex_);
      if (undelivered_.empty()) break;
      next = std::move(undelivered_.front());
      undelivered_.pop_front();
    }
    deliver(next);
  }
  trim();
}

void Store::flush_now() {
  write_pending();
  const std::lock_guard lock(mutex_);
  if (!undelivered_.empty()) post_flush();
}

void Store::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  flush_now();
  const std::lock_guard one_batch(write_mutex_);
  log_.reset();
}

base::Status Store::healthy() const {
  const std::lock_guard lock(mutex_);
  if (closed_) return base::error(base::Code::kUnavailable, "the server is shutting down");
  return last_write_;
}

size_t Store::count(const Kind* kind) const {
  const std::lock_guard lock(mutex_);
  const Table* found = find_table(kind);
  return found == nullptr ? 0 : found->objects.size();
}

uint64_t Store::revision() const {
  const std::lock_guard lock(mutex_);
  return durable_;
}

uint64_t Store::oldest() const {
  const std::lock_guard lock(mutex_);
  return oldest_;
}

void Store::deliver(Flushed& flushed) {
  for (Pending& pending : flushed.batch) {
    if (!flushed.status) {
      if (pending.done) pending.done(base::error(flushed.status.error()));
      continue;
    }
    const Change& change = pending.change;
    if (pending.done) pending.done(change.object());
    if (pending.revision == 0) continue;
    if (observer_) observer_(change);
    observed_ = pending.revision;
  }
}

// Drops the oldest changes; their objects are freed outside the lock.
void Store::trim() {
  std::vector<Change> gone;
  const std::lock_guard lock(mutex_);
  const auto over = [this] {
    return history_.size() > history_limits_.events_max ||
           history_bytes_ > history_limits_.bytes_max;
  };
  while (!history_.empty() && over() && history_.front().revision <= observed_) {
    oldest_ = history_.front().revision;
    history_bytes_ -= history_.front().bytes;
    gone.push_back(std::move(history_.front()));
    history_.pop_front();
  }
}

// The keys that changed after `revision`, with what they held then.
Store::Overlay Store::overlay(const Kind* kind, uint64_t revision) const {
  Overlay out;
  const Table* rows = find_table(kind);
  if (rows == nullptr || rows->changed <= revision) return out;
  for (size_t i = history_.size(); i-- > 0 && history_[i].revision > revision;) {
    const Change& change = history_[i];
    if (change.kind == table_of(kind)) out[store_key(*kind, change.object())] = &change.before;
  }
  return out;
}

base::Status Store::check_revision(uint64_t revision) const {
  if (revision < oldest_) {
    return base::error(base::Code::kExpired, "too old resource version: {} ({})", revision,
                       oldest_);
  }
  if (revision > durable_) {
    return base::error(base::Code::kTimeout, "Too large resource version: {}, current: {}",
                       revision, durable_);
  }
  return {};
}

// Goes through the table and the overlay side by side; where both have a key, the overlay's is the older truth.
void Store::collect(const Table& rows, const Overlay& then, const Range& range, Page& page) {
  const std::string_view start = range.after.empty() ? range.prefix : range.after;
  auto now = rows.objects.lower_bound(start);
  auto old = then.lower_bound(start);
  const auto in_range = [&](const auto& it, const auto& end) {
    return it != end && has_prefix(it->first, range.prefix);
  };
  while (true) {
    const bool has_now = in_range(now, rows.objects.end());
    const bool has_old = in_range(old, then.end());
    if (!has_now && !has_old) return;
    const bool take_old = has_old && (!has_now || old->first <= now->first);
    const std::string& key = take_old ? old->first : now->first;
    const json::Value& object = take_old ? *old->second : now->second.object;
    const bool full = range.limit != 0 && page.items.size() >= range.limit;
    if (!object.is_null() && key != range.after && (!range.filter || range.filter(object))) {
      if (full) {
        ++page.remaining;
        if (!range.count_rest) return;
      } else {
        page.last_key = key;
        page.items.push_back(object);
      }
    }
    if (has_now && (!take_old || now->first == old->first)) ++now;
    if (take_old) ++old;
  }
}

base::Result<Store::Page> Store::list(const Kind* kind, const Range& range) const {
  const std::lock_guard lock(mutex_);
  Page page;
  page.revision = range.revision == 0 ? durable_ : range.revision;
  TS_TRY_STATUS(check_revision(page.revision));
  static const Table kEmpty;
  const Table* rows = find_table(kind);
  collect(rows != nullptr ? *rows : kEmpty, overlay(kind, page.revision), range, page);
  return page;
}

base::Result<std::vector<Store::Change>> Store::changes(const Kind* kind, uint64_t revision,
                                                        uint64_t until) const {
  const std::lock_guard lock(mutex_);
  TS_TRY_STATUS(check_revision(revision));
  auto it = std::ranges::upper_bound(history_, revision, {}, &Change::revision);
  std::vector<Change> out;
  for (; it != history_.end() && it->revision <= until; ++it) {
    if (it->kind == table_of(kind)) out.push_back(*it);
  }
  return out;
}

}  // namespace tessera::apiserver
