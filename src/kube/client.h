// The seam to a Kubernetes API: what every component uses to read and write objects.
//
// Shape:   one asynchronous call for all verbs, and watches. Two implementations: HttpClient (a real cluster) and
//          apiserver::LocalClient (the embedded API, in process, no bytes in between).
// Errors:  the code and message of the server's Status object; kUnavailable or kTimeout where no answer came.
// Threads: call and watch from any thread; callbacks run on the executor that the client was made with, one at a time.
// Source:  Kubernetes API concepts (verbs, watch, resourceVersion, bookmarks).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "base/result.h"
#include "kube/object.h"

namespace tessera::kube {

enum class Verb { kGet, kList, kCreate, kUpdate, kPatch, kDelete, kDeleteCollection };
enum class PatchType { kJson, kMerge, kStrategic, kApply };

struct Request {
  Verb verb = Verb::kGet;
  Gvr gvr;
  std::string ns;           // empty: cluster-scoped, or all namespaces for lists
  std::string name;         // empty for list, create and delete collection
  std::string subresource;  // "status", "binding", "eviction", "scale" or empty
  json::Value body;         // the object, the patch, or DeleteOptions
  PatchType patch_type = PatchType::kMerge;
  // Query parameters by their Kubernetes names: labelSelector, fieldSelector, resourceVersion, limit, continue, dryRun,
  // fieldManager, force, fieldValidation, propagationPolicy, gracePeriodSeconds, ...
  std::vector<std::pair<std::string, std::string>> query;
  // What a strict reader of a patch found before it became `body`: duplicate field "a".
  std::vector<std::string> faults;

  std::string_view option(std::string_view key) const {
    for (const auto& [k, v] : query) {
      if (k == key) return v;
    }
    return {};
  }
};

// The object; for lists the List object; for deletes the object in its last state or a Status.
using Reply = base::Result<json::Value>;

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kError;
  Object object;  // for kError a Status
};

class Client {
 public:
  virtual ~Client() = default;
  virtual void call(Request request, std::function<void(Reply)> done) = 0;
  // Watches what a list with the same options would list, from query option resourceVersion on (set allowWatchBookmarks
  // to get bookmarks). on_close runs once, when the watch ends for any reason but destruction of the subscription; after
  // destruction no callback runs any more if the destruction happens on the client's executor.
  virtual std::unique_ptr<base::Subscription> watch(Request request,
                                                    std::function<void(WatchEvent)> on_event,
                                                    std::function<void(base::Status)> on_close) = 0;

  // Shorthands over call().
  void get(Gvr gvr, std::string ns, std::string name, std::function<void(Reply)> done);
  void list(Gvr gvr, std::string ns, std::function<void(Reply)> done);
  void create(Gvr gvr, std::string ns, json::Value object, std::function<void(Reply)> done);
  // Replaces; the object's resourceVersion, when set, must be the current one.
  void update(Gvr gvr, std::string ns, std::string name, json::Value object,
              std::function<void(Reply)> done, std::string subresource = {});
  void merge_patch(Gvr gvr, std::string ns, std::string name, json::Value patch,
                   std::function<void(Reply)> done, std::string subresource = {});
  void remove(Gvr gvr, std::string ns, std::string name, std::function<void(Reply)> done,
              json::Value delete_options = {});
};

}  // namespace tessera::kube
