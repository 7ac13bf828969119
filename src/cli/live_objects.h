// The objects of a cluster that the scheduler reads, listed when they are first asked for.
//
// Shape:   a kind is listed once a namespace, page by page, in the best version that the server has; a kind that is not
//          served has no objects. Objects carry their kind and apiVersion, which lists leave out.
// Errors:  list() as kube::Client. What may not be read counts as absent for find(), and is named in problems().
// Threads: as Session.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"
#include "kube/object.h"
#include "scheduler/groups.h"
#include "scheduler/snapshot.h"
#include "scheduler/watched_kinds.h"

namespace tessera::cli {

class LiveObjects {
 public:
  explicit LiveObjects(Session& session) : session_(session) {}

  // kNotFound: the server does not have it.
  base::Result<std::vector<kube::Object>> list(const kube::Gvr& gvr, std::string_view kind,
                                               const std::string& ns, std::string fields = {});
  // In the best version served; nothing where none is.
  base::Result<std::vector<kube::Object>> list(const scheduler::WatchedKind& kind,
                                               const std::string& ns);
  kube::Object find(std::string_view group, std::string_view kind, const std::string& ns,
                    std::string_view name);
  // For read_group: which group a pod belongs to. Good for as long as this is.
  scheduler::GroupSources sources();
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  using ByName = std::map<std::string, kube::Object, std::less<>>;

  Session& session_;
  std::map<std::string, ByName> listed_;  // by group, kind and namespace
  std::vector<std::string> problems_;
};

// All that the scheduler reads. Only nodes and pods must be readable; what else is not stands in left_out.
base::Result<scheduler::Snapshot> take_snapshot(Session& session, base::Time now);

}  // namespace tessera::cli
