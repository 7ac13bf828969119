// All objects of the embedded API in memory, one revision counter over them, and what changed of late.
//
// Shape:   one table a kind, ordered by "namespace/name". A write is checked and numbered under the lock (commit), collected
//          with others, made durable as one batch on the executor (group commit), and only then acknowledged and shown to
//          the observer, in order of revision. Reads see the durable state, or the past as far as the change log reaches;
//          writers build on the newest state (latest), durable or not.
// Errors:  a batch that the log cannot write is taken back whole: every writer of it gets the error, nothing of it was seen.
// Threads: any; no lock is held while a callback runs. Acknowledgements and the observer run on the executor.
// Source:  etcd's API guarantees (one revision, durable before visible).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/kind.h"
#include "base/executor.h"
#include "base/result.h"
#include "json/interner.h"
#include "json/value.h"

namespace tessera::apiserver {

// One object as it lies on disk. The text leaves metadata.resourceVersion to `revision`.
struct StoredRow {
  int64_t id = 0;
  std::string resource;  // "pods", "deployments.apps"
  std::string ns;
  std::string name;
  uint64_t revision = 0;
  std::string text;  // empty: delete the row
};

// What keeps rows over a restart.
class RowLog {
 public:
  virtual ~RowLog() = default;
  // All of the batch or nothing; durable on return.
  virtual base::Status write(const std::vector<StoredRow>& rows, uint64_t revision) = 0;
};

class Store : public std::enable_shared_from_this<Store> {
 public:
  struct Found {
    json::Value object;
    uint64_t revision = 0;  // 0: there is no such object
    explicit operator bool() const { return revision != 0; }
  };

  struct Change {
    uint64_t revision = 0;
    const Kind* kind = nullptr;
    json::Value before;  // null: created
    json::Value after;   // null: deleted
    int64_t row = 0;
    size_t bytes = 0;  // of text, about

    const json::Value& object() const { return after.is_null() ? before : after; }
  };

  struct Write {
    const Kind* kind = nullptr;
    std::string key;
    uint64_t expected = 0;  // the revision that the object must have; 0: it must not exist
    json::Value object;     // null: delete
    // The object with its new resourceVersion (of a delete: its last state), or why it was not written.
    std::function<void(base::Result<json::Value>)> done;
  };

  enum class Outcome { kAccepted, kConflict, kClosed };

  // How far back the changes are kept: whichever limit is reached first.
  struct History {
    size_t events_max = 20'000;
    size_t bytes_max = size_t{256} << 20;  // of JSON text, about
  };

  struct Page {
    std::vector<json::Value> items;
    uint64_t revision = 0;
    std::string last_key;   // of the last item
    int64_t remaining = 0;  // items after it
  };

  struct Range {
    std::string prefix;                              // "ns/", or empty for all
    std::string after;                               // start behind this key
    size_t limit = 0;                                // 0: all
    uint64_t revision = 0;                           // 0: the newest durable
    std::function<bool(const json::Value&)> filter;  // pure; runs under the lock
    bool count_rest = false;
  };

  // `log` may be null: memory only.
  Store(base::Executor& executor, std::unique_ptr<RowLog> log, History history);

  // Before the first call of anything else: what the log had, and the observer of durable changes.
  base::Status restore(const Kinds& kinds, std::vector<StoredRow> rows, uint64_t revision);
  void observe(std::function<void(const Change&)> observer);

  Found latest(const Kind* kind, std::string_view key) const;
  Found durable(const Kind* kind, std::string_view key) const;
  // Calls `done` later only when it answers kAccepted; otherwise `write` is as it was.
  Outcome commit(Write& write) { return commit(std::span(&write, 1)); }
  // All or none, on objects that differ; they are numbered in the order given and become durable together.
  Outcome commit(std::span<Write> writes);
  // The newest objects whose keys begin with the prefix, durable or not, at one moment.
  std::vector<Found> newest(const Kind* kind, std::string_view prefix) const;
  // Runs `done` on the executor once all that was accepted before is durable (or was taken back).
  void when_durable(std::function<void(base::Status)> done);

  // kExpired when the revision is no longer kept.
  base::Result<Page> list(const Kind* kind, const Range& range) const;
  // The durable changes of a kind after `revision`, up to `until`.
  base::Result<std::vector<Change>> changes(const Kind* kind, uint64_t revision,
                                            uint64_t until) const;
  // The newest durable revision, and the oldest one that can still be asked for.
  uint64_t revision() const;
  uint64_t oldest() const;
  // What became of the last batch; kUnavailable once it is closed.
  base::Status healthy() const;
  size_t count(const Kind* kind) const;
  // Up to where the observer has seen the changes. On the executor only.
  uint64_t observed() const { return observed_; }

  // Writes what is pending at once; acknowledgements still come on the executor.
  void flush_now();
  void close();

 private:
  struct Entry {
    json::Value object;
    uint64_t revision = 0;
    int64_t row = 0;
  };
  struct Table {
    std::map<std::string, Entry, std::less<>> objects;
    uint64_t changed = 0;  // the newest revision of its objects
  };
  struct Pending {
    uint64_t revision = 0;  // 0: only waits
    StoredRow row;
    Change change;
    std::function<void(base::Result<json::Value>)> done;
  };
  struct Flushed {
    std::vector<Pending> batch;
    base::Status status;
  };
  using Overlay = std::map<std::string, const json::Value*, std::less<>>;

  Table& table(const Kind* kind);
  const Table* find_table(const Kind* kind) const;
  uint64_t revision_of(const Write& write) const;
  void accept(Write& write, std::string text);
  void enqueue(Pending pending);
  void post_flush();
  void write_pending();
  void take_back(std::vector<Pending>& batch);
  void put_back(const Change& change);
  void deliver(Flushed& flushed);
  void flush();
  void trim();
  base::Status check_revision(uint64_t revision) const;
  Overlay overlay(const Kind* kind, uint64_t revision) const;
  static void collect(const Table& rows, const Overlay& then, const Range& range, Page& page);

  base::Executor& executor_;
  std::unique_ptr<RowLog> log_;
  const bool logged_;
  const History history_limits_;
  std::function<void(const Change&)> observer_;

  std::mutex intern_mutex_;  // taken before no other
  json::Interner interner_;  // what objects have in common is kept once
  std::mutex write_mutex_;   // one batch at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::unordered_map<const Kind*, Table> tables_;
  std::deque<Change> history_;  // by revision; its tail may not be durable yet
  size_t history_bytes_ = 0;
  std::vector<Pending> pending_;
  std::deque<Flushed> undelivered_;  // by revision
  uint64_t latest_ = 0;
  uint64_t durable_ = 0;
  uint64_t oldest_ = 0;
  int64_t next_row_ = 1;
  bool flush_posted_ = false;
  bool closed_ = false;
  base::Status last_write_;
  uint64_t observed_ = 0;  // on the executor
};

// The key of an object, as in Store: "namespace/name", or the name where there is no namespace.
std::string store_key(const Kind& kind, std::string_view ns, std::string_view name);
std::string store_key(const Kind& kind, const json::Value& object);
// About the length of the value as JSON text; stops once it is past `limit`.
size_t text_size(const json::Value& value, size_t limit);
// "pods", "deployments.apps": the words of Kubernetes for a resource with its group.
std::string resource_name(const Kind& kind);

}  // namespace tessera::apiserver
