// One request on its way to an answer: what was asked, in which form the answer goes out, and the
// sending of it.
//
// Threads: an Exchange is used by one thread at a time: the connection's, then the one that brings
//          the reply.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiserver/api.h"
#include "apiserver/audit.h"
#include "apiserver/front_accept.h"
#include "apiserver/metrics.h"
#include "apiserver/status_body.h"
#include "apiserver/table.h"
#include "http/server.h"
#include "http/uri.h"

namespace tessera::apiserver {

struct Exchange {
  http::Request request;
  std::shared_ptr<http::Responder> responder;
  http::Target target;
  std::string audit_id;
  Accepted accepted;
  const Kind* kind = nullptr;  // of the resource asked for
  RowObject row_object = RowObject::kMetadata;
  bool into_container = false;  // log, exec, attach or portforward of a pod
  StatusSubject subject;
  std::vector<std::string> warnings;
  std::shared_ptr<AuditRecord> audit;  // null: nobody listens
  std::shared_ptr<RequestMetrics::Meter> meter;
  std::shared_ptr<void> seat;  // of flow control, given back with the answer
};

// The headers that every answer has: Audit-Id, Cache-Control, Warning.
http::Headers reply_headers(const Exchange& exchange);

void send_error(const Exchange& exchange, const base::Error& error);
// An object, a list or a Status from the core, in the form that the client asked for.
void send_object(const Exchange& exchange, int status, const json::Value& object, base::Time now);
// What answers where no API begins: plain text, as from Kubernetes.
void send_page_not_found(const Exchange& exchange);
void send_text(const Exchange& exchange, int status, std::string body, std::string content_type);

}  // namespace tessera::apiserver
