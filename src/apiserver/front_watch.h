// Watches over HTTP: each event a line of JSON, as it comes, until the peer, the timeout or the Api
// ends it.
//
// Shape:   WatchStreams::start subscribes and begins the response. Events are serialised once and
//          the bytes shared between watchers that want the same form.
// Errors:  start() answers what the Api refuses (a bad selector). A resourceVersion that is too old
//          is, as in Kubernetes, a stream with one ERROR event; so is history overrun later.
// Threads: any.
#pragma once

#include <memory>
#include <string>

#include "apiserver/api.h"
#include "apiserver/front_accept.h"
#include "apiserver/routes.h"
#include "apiserver/table.h"
#include "http/server.h"

namespace tessera::apiserver {

// How a watcher wants its objects.
struct WatchForm {
  const Kind* kind = nullptr;
  Accepted accepted;
  RowObject row_object = RowObject::kMetadata;
};

class WatchStreams {
 public:
  explicit WatchStreams(Api& api);
  ~WatchStreams();  // ends all

  base::Status start(const Caller& caller, kube::Request request, const WatchForm& form,
                     std::shared_ptr<http::Responder> responder, http::Headers headers);

 private:
  struct Shared;
  Api& api_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace tessera::apiserver
