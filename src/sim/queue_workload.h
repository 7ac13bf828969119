// Gangs, queues and budgets drawn from a seed, and what their users do to them while they run.
//
// Shape:   found() is what stands at the start: namespaces, queues (a tree of one to three levels with quotas, limits, weights,
//          priorities, and sometimes nonsense), a DaemonSet. draw() is one job with all that belongs to it: gangs in four
//          dialects, elastic members, Jobs with a minimum, single pods and Deployments in queues, budgets. change() edits,
//          deletes or makes anew something that was drawn: the minimum of a group, a queue, a budget, a scale, a namespace.
// Threads: one owner.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "sim/workload.h"

namespace tessera::sim {

class QueueWorkload {
 public:
  explicit QueueWorkload(base::Random random) : random_(random) {}
  std::vector<Drawn> found();
  std::vector<Drawn> draw();
  // A write of a user; refusals are part of life.
  kube::Request change();

 private:
  struct Name {
    kube::Gvr gvr{};
    std::string ns{};
    std::string name{};
    int size = 0;  // members drawn
  };

  json::Value queue_spec(size_t at);
  json::Value pod_template(bool ends);
  json::Value named(std::string_view api_version, std::string_view kind, const std::string& name);
  Drawn budget(const std::string& app, int size);
  void draw_group(std::vector<Drawn>& out);
  void draw_job(std::vector<Drawn>& out);
  void draw_deployment(std::vector<Drawn>& out);
  void draw_pod(std::vector<Drawn>& out);
  kube::Request change_group();
  kube::Request change_queue();
  kube::Request change_scale();
  std::string any_queue();
  int64_t upto(int64_t most) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(most) + 1));
  }

  base::Random random_;
  std::string ns_;  // of what is being drawn
  std::vector<std::string> queues_;
  std::vector<Name> groups_;
  std::vector<Name> jobs_;
  std::vector<Name> deployments_;
  std::vector<Name> budgets_;
  int count_ = 0;
};

}  // namespace tessera::sim
