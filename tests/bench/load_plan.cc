#include "load_plan.h"

#include <fmt/core.h>

namespace tessera::load {
namespace {

constexpr std::string_view kContainer = R"({
 "name":"NAME","image":"registry.example/ml/trainer:2.4.1","imagePullPolicy":"IfNotPresent",
 "command":["/usr/bin/python3","-m","trainer.main"],
 "args":["--config=/etc/trainer/config.yaml","--checkpoint=/var/lib/trainer","--log-level=info"],
 "env":[{"name":"NODE_NAME","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},
        {"name":"OMP_NUM_THREADS","value":"8"},{"name":"NCCL_DEBUG","value":"WARN"},
        {"name":"RUN_ID","value":"run-RUN-of-this-pod-alone"}],
 "ports":[{"name":"metrics","containerPort":PORT,"protocol":"TCP"}],
 "resources":{"requests":{"cpu":"500m","memory":"2Gi"},"limits":{"cpu":"4","memory":"16Gi"}},
 "readinessProbe":{"httpGet":{"path":"/ready","port":"metrics"},"periodSeconds":10},
 "volumeMounts":[{"name":"config","mountPath":"/etc/trainer","readOnly":true},
                 {"name":"work","mountPath":"/var/lib/trainer"}],
 "securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true}})";

std::string container(std::string_view name, int port) {
  std::string text(kContainer);
  text.replace(text.find("NAME"), 4, name);
  text.replace(text.find("PORT"), 4, std::to_string(port));
  return text;
}

// Pods of one template that differ in their names, labels, annotations and a variable of each container.
std::string pod_text(const std::string& name, size_t application, uint64_t number) {
  static const std::string kContainers =
      container("trainer", 9400) + "," + container("sidecar", 9401);
  std::string containers = kContainers;
  for (size_t at = containers.find("RUN-"); at != std::string::npos;
       at = containers.find("RUN-", at)) {
    containers.replace(at, 3, std::to_string(number));
  }
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}",
"labels":{{"app":"app-{}","app.kubernetes.io/part-of":"load","batch":"b{}"}},
"annotations":{{"example.com/owner":"team-{}","example.com/run":"run-{:08}"}}}},
"spec":{{"schedulerName":"none","restartPolicy":"Never","priority":0,"terminationGracePeriodSeconds":30,
"nodeSelector":{{"kubernetes.io/os":"linux","example.com/pool":"train"}},
"tolerations":[{{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}}],
"containers":[{}],
"volumes":[{{"name":"config","configMap":{{"name":"trainer-config"}}}},{{"name":"work","emptyDir":{{}}}}]}}}})",
      name, application, number % 7, number % 11, number, containers);
}

}  // namespace

std::string namespace_name(int number) {
  return fmt::format("load-{}", number);
}

Ask Plan::create() {
  const uint64_t number = created_++;
  const std::string name = fmt::format("trainer-{}-{:x}", number, random_() & 0xfffff);
  const std::string pods = fmt::format("/api/v1/namespaces/{}/pods",
                                       namespace_name(static_cast<int>(below(kNamespaces))));
  return {Op::kCreate,
          "POST",
          pods + "?fieldManager=load",
          "application/json",
          pod_text(name, below(kApplications), number),
          pods + "/" + name};
}

Ask Plan::list() {
  return {Op::kList, "GET",
          fmt::format("/api/v1/namespaces/{}/pods?labelSelector=app%3Dapp-{}&limit=20",
                      namespace_name(static_cast<int>(below(kNamespaces))), below(kApplications))};
}

Ask Plan::patch() {
  const std::string& pod = pods_[below(pods_.size())];
  const uint64_t number = ++patched_;
  switch (below(3)) {
    case 0:
      return {Op::kMergePatch, "PATCH", pod + "?fieldManager=load-merge",
              "application/merge-patch+json",
              fmt::format(R"({{"metadata":{{"annotations":{{"example.com/progress":"{}"}}}}}})",
                          number)};
    case 1:
      return {
          Op::kStrategicPatch, "PATCH", pod + "?fieldManager=load-strategic",
          "application/strategic-merge-patch+json",
          fmt::format(R"({{"metadata":{{"labels":{{"step":"s{}"}}}},"spec":{{"containers":[)"
                      R"({{"name":"trainer","image":"registry.example/ml/trainer:2.4.{}"}}]}}}})",
                      number, number % 50)};
    default:
      return {
          Op::kApplyPatch, "PATCH", pod + "?fieldManager=load-apply&force=true",
          "application/apply-patch+yaml",
          fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}",)"
                      R"("labels":{{"tier":"t{}"}},"annotations":{{"example.com/note":"n{}"}}}}}})",
                      pod.substr(pod.rfind('/') + 1), number % 5, number)};
  }
}

Ask Plan::next() {
  const size_t chance = pods_.empty() ? 70 : below(100);
  if (chance < 50) return {Op::kGet, "GET", pods_[below(pods_.size())]};
  if (chance < 60) return list();
  return chance < 80 ? create() : patch();
}

void Plan::acknowledge(const Ask& ask) {
  if (!ask.created.empty()) pods_.push_back(ask.created);
}

}  // namespace tessera::load
