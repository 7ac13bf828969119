// The audit log: who asked for what, as whom, and how it ended.
//
// Format:  one audit.k8s.io/v1 Event a line, level Metadata: no bodies, no headers, no messages. Stages ResponseComplete,
//          and ResponseStarted for watches. When the file would pass its limit it becomes audit.log.1, what was there
//          audit.log.2 and so on; the oldest goes.
// Errors:  an event that cannot be written, or for which no room is left to wait, is counted, and the count is logged.
// Threads: any; lines are made and written on the executor, away from the requests.
// Source:  k8s.io/apiserver/pkg/apis/audit/v1.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/api.h"
#include "base/executor.h"
#include "http/server.h"

namespace tessera::apiserver {

// What is known of a request; filled as it goes on its way, by one thread at a time.
struct AuditRecord {
  std::string id;
  std::string uri;
  std::string verb;
  std::string source_ip;  // as the connection shows it: what headers claim is not believed
  Caller user;
  Caller impersonated;  // without a name: nobody
  kube::Gvr resource;   // empty: a path
  std::string ns;
  std::string name;
  std::string subresource;
  std::string decision;  // "allow", "forbid"; empty where nobody decided
  std::string reason;    // of the decision
  base::Time received;
};

class AuditLog {
 public:
  struct Options {
    std::string path;
    base::Executor* executor = nullptr;
    const base::Clock* clock = nullptr;
    size_t file_bytes_max = size_t{64} << 20;
    int files_max = 4;  // old ones kept beside the current
    size_t waiting_max = 10'000;
  };
  static base::Result<std::unique_ptr<AuditLog>> open(Options options);
  ~AuditLog();

  void write(std::shared_ptr<const AuditRecord> record, std::string_view stage, int status);
  // How many events were lost so far.
  uint64_t lost() const;

 private:
  struct State;
  explicit AuditLog(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// Passes everything on to `inner` and writes the events of the answer.
std::shared_ptr<http::Responder> audited(AuditLog& log, std::shared_ptr<const AuditRecord> record,
                                         std::shared_ptr<http::Responder> inner);

json::Value audit_event(const AuditRecord& record, std::string_view stage, int status,
                        base::Time when);

}  // namespace tessera::apiserver
