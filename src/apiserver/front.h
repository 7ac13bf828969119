// HTTP in front of an Api: routes, discovery, OpenAPI, tables, watch streams, authentication,
// Status bodies.
//
// Shape:   Front::handle is an http::Handler. Answers /api, /apis, /openapi, /version, /healthz,
//          /livez, /readyz and the resource paths; content negotiation for application/json,
//          application/yaml and Table (application/json;as=Table;v=v1;g=meta.k8s.io).
// Errors:  every refusal is a Status object as Kubernetes words it.
// Threads: any. The Api must outlive the Front; handle() must not run any more when the Front goes
//          (stop the server first).
#pragma once

#include <memory>
#include <string>

#include "apiserver/api.h"
#include "http/server.h"

namespace tessera::apiserver {

class AuditLog;
class ContainerLogs;
class FlowControl;

struct FrontOptions {
  // Bearer tokens that authenticate beside those of service accounts, token -> caller; client certificates
  // authenticate by CN and O.
  std::vector<std::pair<std::string, Caller>> tokens;
  // Both may be null and must outlive the Front, the log also the Api.
  AuditLog* audit = nullptr;
  FlowControl* flow = nullptr;    // for all but system:masters, leases and what needs no resource
  ContainerLogs* logs = nullptr;  // null: pods have none. Must outlive the Front
  // Draws audit ids and the length of watches that ask for none.
  base::Random random{1};
};

class Front {
 public:
  Front(Api& api, FrontOptions options);
  ~Front();
  void handle(http::Request request, std::shared_ptr<http::Responder> responder);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// For http::ServerOptions: a body past its limit is refused with a Status, all else in plain text, as Kubernetes does.
http::Response refusal(int status, std::string_view why);

// The CA, server certificate and admin identity of a data folder, made at first start (mode 0600),
// renewed when near their end; and the kubeconfig text for the admin.
struct Pki {
  std::string ca_certificate_pem;
  std::string server_certificate_pem;
  std::string server_key_pem;
  std::string admin_certificate_pem;
  std::string admin_key_pem;
  std::string token_key_pem;  // sa.key: signs service account tokens
};
base::Result<Pki> load_or_make_pki(const std::string& dir, const base::Clock& clock);
std::string kubeconfig(const Pki& pki, const std::string& server_url);

}  // namespace tessera::apiserver
