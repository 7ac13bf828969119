// kube::Client over an Api in the same process: no bytes in between, objects are shared.
#pragma once

#include <memory>

#include "apiserver/api.h"
#include "kube/client.h"

namespace tessera::apiserver {

class LocalClient : public kube::Client {
 public:
  // Callbacks run on `executor`.
  LocalClient(Api& api, base::Executor& executor, Caller caller);
  void call(kube::Request request, std::function<void(kube::Reply)> done) override;
  std::unique_ptr<base::Subscription> watch(kube::Request request,
                                            std::function<void(kube::WatchEvent)> on_event,
                                            std::function<void(base::Status)> on_close) override;

 private:
  Api& api_;
  base::Executor& executor_;
  Caller caller_;
};

}  // namespace tessera::apiserver
