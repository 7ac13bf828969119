#include "apiserver/controllers.h"

#include "apiserver/controller_cron_job.h"
#include "apiserver/controller_daemon_set.h"
#include "apiserver/controller_deployment.h"
#include "apiserver/controller_endpoints.h"
#include "apiserver/controller_ephemeral.h"
#include "apiserver/controller_garbage.h"
#include "apiserver/controller_job.h"
#include "apiserver/controller_namespace.h"
#include "apiserver/controller_node.h"
#include "apiserver/controller_pod_group.h"
#include "apiserver/controller_replica_set.h"
#include "apiserver/controller_stateful_set.h"
#include "apiserver/controller_volume.h"
#include "apiserver/controllers_cluster.h"
#include "apiserver/controllers_pdb.h"
#include "apiserver/controllers_pods.h"
#include "apiserver/controllers_quota.h"

namespace tessera::apiserver {

using namespace controller;

// The cluster goes last: callbacks still on their way look whether it is there before they touch a controller.
struct Controllers::State {
  State(kube::Client& client, base::Executor& executor, const base::Clock& clock,
        base::Random random, const Options& options)
      : cluster(std::make_shared<Cluster>(client, executor, clock, random, *options.kinds)),
        pods(cluster->cache("", "Pod")),
        sets(cluster->cache("apps", "ReplicaSet")),
        revisions(cluster->cache("apps", "ControllerRevision")),
        replica_sets(*cluster, pods),
        deployments(*cluster, sets, pods),
        stateful_sets(*cluster, pods, revisions),
        daemon_sets(*cluster, pods, revisions),
        jobs(*cluster, pods),
        cron_jobs(*cluster),
        garbage(*cluster, *options.kinds),
        namespaces(*cluster, *options.kinds, options.root_ca_pem),
        nodes(*cluster, pods, options.node_grace),
        quotas(*cluster, *options.kinds),
        budgets(*cluster),
        volumes(*cluster),
        ephemeral(*cluster),
        endpoints(*cluster),
        pod_groups(*cluster) {}

  // Everything is listed.
  void begin() {
    replica_sets.start();
    deployments.start();
    stateful_sets.start();
    daemon_sets.start();
    jobs.start();
    cron_jobs.start();
    garbage.start();
    namespaces.start();
    nodes.start();
    quotas.start();
    budgets.start();
    volumes.start();
    ephemeral.start();
    endpoints.start();
    pod_groups.start();
  }

  std::shared_ptr<Cluster> cluster;
  OwnerIndex pods;
  OwnerIndex sets;
  OwnerIndex revisions;
  ReplicaSetController replica_sets;
  DeploymentController deployments;
  StatefulSetController stateful_sets;
  DaemonSetController daemon_sets;
  JobController jobs;
  CronJobController cron_jobs;
  GarbageCollector garbage;
  NamespaceController namespaces;
  NodeController nodes;
  QuotaController quotas;
  BudgetController budgets;
  VolumeController volumes;
  EphemeralController ephemeral;
  EndpointsController endpoints;
  PodGroupController pod_groups;
};

Controllers::Controllers(kube::Client& client, base::Executor& executor, const base::Clock& clock,
                         base::Random random, Options options)
    : state_(std::make_unique<State>(client, executor, clock, random, options)) {}

Controllers::~Controllers() = default;

void Controllers::start() {
  std::weak_ptr<Cluster> weak = state_->cluster;
  state_->cluster->executor().post([weak, state = state_.get()] {
    // As long as the cluster stands, so does the rest of the state.
    const auto cluster = weak.lock();
    if (cluster) cluster->start([state] { state->begin(); });
  });
}

}  // namespace tessera::apiserver
