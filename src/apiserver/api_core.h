// What the verbs of the API share: the parts, and one request on its way.
//
// Shape:   api.cc finds the kind and the verb; api_read, api_write, api_delete, api_pods and api_scale do one family of
//          verbs each, as free functions over a Core.
// Errors:  answered through fail(), which waits until what the request saw is durable.
// Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/admission_account.h"
#include "apiserver/admission_service.h"
#include "apiserver/api.h"
#include "apiserver/kind.h"
#include "apiserver/store.h"
#include "apiserver/watch_hub.h"

namespace tessera::apiserver {

class Access;

struct Core : std::enable_shared_from_this<Core> {
  explicit Core(Api::Options from);

  Api::Options options;
  std::shared_ptr<Kinds> kinds;  // options.kinds, with those made at run time
  std::shared_ptr<Store> store;
  std::shared_ptr<WatchHub> hub;
  std::shared_ptr<Access> access;
  ClusterIps ips;
  TokenVolumes token_volumes{*this};
  // Kinds that rules speak of; null where the table lacks them.
  const Kind* namespaces = nullptr;
  const Kind* pods = nullptr;
  const Kind* bindings = nullptr;
  const Kind* services = nullptr;
  const Kind* events = nullptr;
  const Kind* priority_classes = nullptr;
  const Kind* resource_quotas = nullptr;
  const Kind* limit_ranges = nullptr;
  const Kind* claims = nullptr;
  const Kind* volumes = nullptr;
  const Kind* storage_classes = nullptr;
  const Kind* nodes = nullptr;
  const Kind* service_accounts = nullptr;
  const Kind* budgets = nullptr;  // PodDisruptionBudgets

  base::Time now() const { return options.clock->now(); }
  std::string uuid();
  std::string suffix(int length);
  uint64_t draw(uint64_t bound);
  // A store that is opened again must not see the ids of its last run once more, whatever the seed.
  void stir(uint64_t salt);

 private:
  std::mutex random_mutex_;
  base::Random random_;
};

// Query parameter fieldValidation.
enum class FieldValidation { kIgnore, kWarn, kStrict };

struct Call {
  const Kind* kind = nullptr;
  // The other face of the kind that the request speaks of (kind.h, KindView); null: the kind itself.
  const Kind* view = nullptr;
  Caller caller;
  kube::Request request;
  std::function<void(ApiReply)> done;
  std::vector<std::string> warnings;
  bool dry_run = false;
  FieldValidation validation = FieldValidation::kWarn;
  // An update that takes the last finalizer away deletes the object; this is what the update made of it.
  json::Value leaves{};

  const Kind& face() const { return view != nullptr ? *view : *kind; }
  std::string key() const { return store_key(*kind, request.ns, request.name); }
};
using CallPtr = std::shared_ptr<Call>;

// Answer once everything accepted so far is durable.
void fail(Core& core, const CallPtr& call, base::Error error);
void succeed(Core& core, const CallPtr& call, json::Value result, int http_status = 200);
// For Store::Write::done. `view` makes what the caller sees of the written object; empty: all of it.
std::function<void(base::Result<json::Value>)> reply_of(
    CallPtr call, int http_status, std::function<json::Value(json::Value)> view = {});

// Out of the current object the new one; null: delete it. Runs again when another writer was faster.
using Transform = std::function<base::Result<json::Value>(const json::Value& current)>;

// Reads, transforms and writes until nobody came in between. Nothing is written where nothing changed, nor in a dry run.
struct Update {
  std::string key;
  std::string name;  // for errors
  Transform transform;
  int http_status = 200;
  std::function<json::Value(json::Value)> view;
};
void run_update(Core& core, const CallPtr& call, const Update& update);
// kTooLarge for an object that etcd would not take.
base::Status check_size(const json::Value& object);

// api_read.cc
void do_get(Core& core, const CallPtr& call);
void do_list(Core& core, const CallPtr& call);
// api_write.cc
void do_create(Core& core, const CallPtr& call);
void do_update(Core& core, const CallPtr& call);
// api_put.cc: updates that make the object
bool put_creates(const Core& core, const Call& call);
void create_by_put(Core& core, const CallPtr& call);
void do_patch(Core& core, const CallPtr& call);
// api_delete.cc
void do_delete(Core& core, const CallPtr& call);
void do_delete_collection(Core& core, const CallPtr& call);
// How an object goes, as the DeleteOptions of the request's body and query say.
base::Result<Transform> deletion_of(Core& core, const Kind& kind, const kube::Request& request);
// api_pods.cc
void do_binding(Core& core, const CallPtr& call);
// A binding through its own collection: that of the pod it names.
void do_bindings(Core& core, const CallPtr& call);
// 400 where the body is something else.
base::Status check_body(const json::Value& body, std::string_view version, std::string_view kind);
// {"kind":"Status","status":"Success","code":201}.
json::Value created_status();
// api_eviction.cc
void do_eviction(Core& core, const CallPtr& call);
// api_scale.cc
void do_scale(Core& core, const CallPtr& call);

// The patched value, or why the patch does not apply.
base::Result<json::Value> apply_patch(const Kind& kind, const kube::Request& request,
                                      const json::Value& target);
// {"kind":"Status","status":"Success",...}.
json::Value success_status(const Kind& kind, const json::Value& object);

}  // namespace tessera::apiserver
