#include "kube/pod.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "kube/job.h"
#include "kube/node.h"

namespace tessera::kube {
namespace {

Object object_of(const char* text) {
  const auto root = json::parse(text);
  EXPECT_TRUE(root) << root.error().message;
  return Object(*root);
}

constexpr const char* kPod = R"({
  "metadata":{"namespace":"ns","name":"p","uid":"u","labels":{"a":"b"},
    "creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-01T00:00:30Z",
    "deletionGracePeriodSeconds":30,
    "ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"ju","controller":true}]},
  "spec":{"schedulerName":"tessera","priority":7,"preemptionPolicy":"Never","restartPolicy":"OnFailure",
    "initContainers":[{"name":"s","restartPolicy":"Always"}],
    "containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":2}},
                   "ports":[{"hostPort":8080}]}],
    "nodeSelector":{"zone":"a"},
    "tolerations":[{"key":"gpu","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}],
    "topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"rack","whenUnsatisfiable":"ScheduleAnyway",
       "labelSelector":{"matchLabels":{"a":"b"}}}],
    "schedulingGates":[{"name":"g"}],
    "affinity":{
      "nodeAffinity":{
        "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"mem","operator":"Gt","values":["40"]}]},
          {"matchFields":[{"key":"metadata.name","operator":"In","values":["n9"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution":[
          {"weight":10,"preference":{"matchExpressions":[{"key":"x","operator":"Exists"}]}}]},
      "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
          {"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"a":"b"}}}]}}},
  "status":{"phase":"Running","nominatedNodeName":"n1","containerStatuses":[
    {"name":"c","ready":true,"restartCount":1,"state":{"terminated":{"exitCode":3,"reason":"Error"}}}]}})";

TEST(Pod, Is_decoded_whole) {
  const auto pod = decode_pod(object_of(kPod));
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->meta.key(), "ns/p");
  EXPECT_EQ(pod->meta.controller()->kind, "Job");
  EXPECT_TRUE(pod->deleting());
  EXPECT_EQ((*pod->meta.deleted - pod->meta.created).seconds(), 30);
  EXPECT_EQ(pod->meta.deletion_grace_seconds, 30);
  EXPECT_EQ(pod->scheduler_name, "tessera");
  EXPECT_EQ(pod->priority, 7);
  EXPECT_FALSE(pod->preempts);
  EXPECT_EQ(pod->restart_policy, RestartPolicy::kOnFailure);
  EXPECT_TRUE(pod->init_containers[0].sidecar);
  EXPECT_EQ(amount_of(pod->containers[0].requests, "nvidia.com/gpu").value(), 2);
  EXPECT_EQ(pod->host_ports, std::vector<int32_t>{8080});
  EXPECT_EQ(pod->tolerations[0].seconds, 5);
  EXPECT_FALSE(pod->spread[0].required);
  EXPECT_EQ(pod->spread[0].selector.to_string(), "a=b");
  EXPECT_EQ(pod->scheduling_gates, std::vector<std::string>{"g"});
  EXPECT_EQ(pod->affinity.preferred_node_terms[0].weight, 10);
  EXPECT_EQ(pod->affinity.required_anti_pods[0].topology_key, "kubernetes.io/hostname");
  EXPECT_EQ(pod->termination_grace_seconds, 30);
  EXPECT_EQ(pod->phase, PodPhase::kRunning);
  EXPECT_EQ(pod->nominated_node, "n1");
  EXPECT_EQ(pod->container_states[0].exit_code, 3);
}

TEST(Pod, Errors_name_the_field) {
  EXPECT_EQ(
      decode_pod(
          object_of(R"({"spec":{"containers":[{},{"resources":{"requests":{"cpu":"1x"}}}]}})"))
          .error()
          .message,
      "spec.containers[1].resources.requests.cpu: \"1x\": quantities must match the regular "
      "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  EXPECT_EQ(decode_pod(object_of(R"({"metadata":{"deletionTimestamp":"soon"}})")).error().code,
            base::Code::kInvalid);
  EXPECT_FALSE(decode_pod(object_of(R"({"spec":{"tolerations":[{"operator":"Maybe"}]}})")));
  EXPECT_FALSE(decode_pod(object_of(R"({"spec":{"topologySpreadConstraints":[{"maxSkew":0}]}})")));
  EXPECT_TRUE(decode_pod(object_of("{}")));
}

TEST(NodeAffinity, Terms_are_alternatives_of_labels_and_fields) {
  const Affinity affinity = decode_pod(object_of(kPod))->affinity;
  const StringMap selector = {{"zone", "a"}};
  EXPECT_TRUE(matches_node(selector, affinity, {{"zone", "a"}, {"mem", "80"}}, "n1"));
  EXPECT_FALSE(matches_node(selector, affinity, {{"zone", "a"}, {"mem", "40"}}, "n1"));
  EXPECT_FALSE(matches_node(selector, affinity, {{"zone", "a"}, {"mem", "much"}}, "n1"));
  EXPECT_TRUE(matches_node(selector, affinity, {{"zone", "a"}}, "n9"));
  EXPECT_FALSE(matches_node(selector, affinity, {{"zone", "b"}, {"mem", "80"}}, "n9"));
  EXPECT_TRUE(matches_node({}, {}, {}, "n1"));
}

TEST(NodeAffinity, An_empty_term_selects_nothing) {
  EXPECT_FALSE(matches(NodeSelectorTerm(), {{"a", "b"}}, "n1"));
  Affinity none;
  none.has_required_node_terms = true;
  EXPECT_FALSE(matches_node({}, none, {}, "n1"));
}

TEST(Taints, Are_tolerated_by_key_value_and_effect) {
  const Taint taint{"gpu", "a100", TaintEffect::kNoSchedule};
  using Op = Toleration::Op;
  EXPECT_TRUE(tolerates({"gpu", Op::kEqual, "a100", TaintEffect::kNoSchedule, {}}, taint));
  EXPECT_TRUE(tolerates({"gpu", Op::kExists, "", TaintEffect::kAny, {}}, taint));
  EXPECT_TRUE(tolerates({"", Op::kExists, "", TaintEffect::kAny, {}}, taint));
  EXPECT_FALSE(tolerates({"gpu", Op::kEqual, "h100", TaintEffect::kAny, {}}, taint));
  EXPECT_FALSE(tolerates({"gpu", Op::kExists, "", TaintEffect::kNoExecute, {}}, taint));
  EXPECT_FALSE(tolerates({"cpu", Op::kExists, "", TaintEffect::kAny, {}}, taint));
  EXPECT_EQ(taint.to_string(), "gpu=a100:NoSchedule");

  const std::vector<Taint> taints = {{"soft", "", TaintEffect::kPreferNoSchedule}, taint};
  EXPECT_EQ(find_untolerated(taints, {}), &taints[1]);
  const std::vector<Toleration> all = {{"", Op::kExists, "", TaintEffect::kAny, {}}};
  EXPECT_EQ(find_untolerated(taints, all), nullptr);
}

TEST(Node, Is_decoded_whole) {
  const auto node = decode_node(object_of(R"({"metadata":{"name":"n"},
    "spec":{"unschedulable":true,"taints":[{"key":"k","effect":"NoExecute"}]},
    "status":{"capacity":{"cpu":"8"},"allocatable":{"cpu":7.5,"memory":"1Gi"},
      "conditions":[{"type":"Ready","status":"True"}]}})"));
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_TRUE(node->unschedulable);
  EXPECT_TRUE(node->ready());
  EXPECT_EQ(amount_of(node->allocatable, "cpu").milli_value(), 7500);
  EXPECT_FALSE(decode_node(object_of(R"({"spec":{"taints":[{"key":"k"}]}})")));
}

TEST(Job, Is_decoded_with_its_defaults) {
  const auto job = decode_job(object_of(R"({"spec":{"completions":3},
    "status":{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}})"));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->completions, 3);
  EXPECT_EQ(job->parallelism, 1);
  EXPECT_EQ(job->backoff_limit, 6);
  EXPECT_TRUE(job->finished());
}

TEST(Deployment, Percentages_round_surge_up_and_unavailable_down) {
  const auto made = decode_deployment(object_of(R"({"spec":{"replicas":3}})"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->surge_max, 1);
  EXPECT_EQ(made->unavailable_max, 0);
  const auto bad = decode_deployment(
      object_of(R"({"spec":{"strategy":{"rollingUpdate":{"maxSurge":"many"}}}})"));
  EXPECT_EQ(bad.error().message,
            "spec.strategy.rollingUpdate.maxSurge: \"many\" is neither a number nor a percentage; "
            "write 1 or \"25%\"");
}

}  // namespace
}  // namespace tessera::kube
