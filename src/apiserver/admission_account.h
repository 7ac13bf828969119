// Which service account a new Pod runs as, and the token that its containers find.
//
// Shape:   a Pod without an account gets "default"; the account must be there, and where neither forbids it every container
//          mounts the volume kube-api-access-*: a token, the root certificate and the namespace.
// Errors:  kForbidden in Kubernetes' words where the account is missing.
// Threads: any.
// Source:  Kubernetes' admission plugin ServiceAccount.
#pragma once

#include <array>
#include <mutex>
#include <string>

#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

struct Core;
struct Call;

// The volumes that Pods are given, made once and shared by all: a Pod keeps no copy of its own. Only the volumes of one
// Pod must differ in name, so a few names serve all of them.
class TokenVolumes {
 public:
  struct Parts {
    json::Value volume;
    json::Value volumes;  // a list of it alone
    json::Value mount;
    json::Value mounts;
  };
  explicit TokenVolumes(Core& core) : core_(core) {}
  Parts pick();
  static Parts parts_of(const json::Value& name);

 private:
  static constexpr size_t kCount = 64;
  Core& core_;
  std::mutex mutex_;
  std::array<Parts, kCount> made_;
};

base::Status admit_account(Core& core, const Call& call, json::Value& pod);

}  // namespace tessera::apiserver
