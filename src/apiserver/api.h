// The embedded Kubernetes API, free of transport: verbs on objects, and watches.
//
// Shape:   Api::call does one verb: decode strictly, default, admit, validate, store. The HTTP front (front.h) and
//          LocalClient (local_client.h) are both thin layers over it.
// Errors:  Result errors carry Kubernetes' codes, wording and causes; front.h turns them into Status objects.
// Threads: any; state is guarded inside and no lock is held across a callback. Replies of writes and all watch events
//          run on Options::executor after the write is durable; replies of reads may run inline.
// Source:  Kubernetes API concepts; k8s.io/apiserver registry (order of the steps only).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/kind.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "base/result.h"
#include "kube/client.h"

namespace tessera::apiserver {

class Access;

struct Caller {
  std::string user{};
  std::vector<std::string> groups{};
  std::string user_agent{};
  std::string uid{};
  std::map<std::string, std::vector<std::string>> extra{};
};

// What in-process components call as: a member of system:masters. They share the process with the store, so a rule could
// not keep them from anything; rights are for those who come over HTTP.
Caller system_caller(std::string_view component);

struct ApiReply {
  base::Result<json::Value> result;  // the object, a List, or a Status on success without an object
  int http_status = 200;             // 201 for created; from the error's code otherwise
  std::vector<std::string> warnings;
};

class Api {
 public:
  struct Options {
    std::string data_dir;  // SQLite store in it; empty: memory only
    const base::Clock* clock = nullptr;
    base::Executor* executor = nullptr;  // commits, replies, watch events, timers
    base::Random random{1};
    const Kinds* kinds = &Kinds::builtin();
    size_t history_events_max = 20'000;  // how far back a watch may resume, in events; older is 410
    size_t history_bytes_max = size_t{256} << 20;  // the same, in bytes of JSON text
    base::Duration bookmark_period = base::seconds(60);
    base::Duration event_ttl = base::seconds(3600);
    // Signs service account tokens; empty: a key for the life of the process.
    std::string token_key_pem{};
    // New nodes carry the not-ready taint, which the node controller takes off; false where no controllers run.
    bool taint_new_nodes = true;
    // Makes the roles that every cluster starts with, where they are missing.
    bool default_roles = true;
  };

  static base::Result<std::unique_ptr<Api>> open(Options options);
  ~Api();

  void call(const Caller& caller, kube::Request request, std::function<void(ApiReply)> done);

  // Errors at once: a bad selector, or a resourceVersion too old (kExpired). After that events come until the
  // subscription is dropped or on_close runs (history overrun: kExpired).
  base::Result<std::unique_ptr<base::Subscription>> watch(
      const Caller& caller, kube::Request request, std::function<void(kube::WatchEvent)> on_event,
      std::function<void(base::Status)> on_close);

  const Kinds& kinds() const;
  const base::Clock& clock() const;
  // Rights and tokens (auth.h).
  Access& access() const;
  // The revision of the newest durable write: metadata.resourceVersion of lists.
  uint64_t revision() const;
  // Whether changes can be kept; kUnavailable once it is closed.
  base::Status healthy() const;
  // How many objects of each kind there are, durable or not.
  std::vector<std::pair<const Kind*, size_t>> object_counts() const;
  // Writes what is pending and closes the store; later calls answer kUnavailable.
  void close();

 private:
  struct Impl;
  explicit Api(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::apiserver
