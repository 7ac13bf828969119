// Persistent volumes and claims: binds them, tells their phases, releases and protects them.
//
// Shape:   plans of controller_volume_plan.h, carried out one write at a time, one object after the other, so that no two
//          claims are promised one volume. Volumes of a class are made by that class' provisioner, not here.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/volume/{persistentvolume,pvcprotection,pvprotection} (behaviour).
#pragma once

#include <map>
#include <set>
#include <string>

#include "apiserver/controller_volume_plan.h"
#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class VolumeController {
 public:
  explicit VolumeController(Cluster& cluster);
  void start();

 private:
  void on_claim(const kube::Object& before, const kube::Object& after);
  void on_volume(const kube::Object& before, const kube::Object& after);
  void on_pod(const kube::Object& before, const kube::Object& after);
  void enqueue_waiting();
  void look_around();
  void sync(const std::string& key, Done done);
  VolumeWorld world(const std::string& claim_key) const;
  void perform(const std::string& key, VolumeStep step, Done done);
  void tell(const VolumeEvent& event);

  Cluster& cluster_;
  Cache& volumes_;
  Cache& claims_;
  Cache& classes_;
  Cache& pods_;
  // Claims by "namespace/name", and the pods that name them.
  std::map<std::string, std::set<std::string>, std::less<>> users_;
  std::set<std::string> waiting_;    // claims without a volume
  std::set<std::string> looked_up_;  // volumes whose claim the API was asked for
  struct Told {
    std::string message;
    base::Time at;
  };
  std::map<std::string, Told> told_;  // by uid: what was said last
  kube::WorkQueue queue_;
};

}  // namespace tessera::apiserver::controller
