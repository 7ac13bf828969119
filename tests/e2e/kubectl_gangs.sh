#!/usr/bin/env bash
# Groups of pods and queues with a real kubectl, in the words of Kubernetes 1.37, Volcano, scheduler-plugins and KAI: their
# manifests apply to a new cluster as they are, and show what their users know.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster

cat >"$scratch/native.yaml" <<'YAML'
apiVersion: scheduling.k8s.io/v1beta1
kind: Workload
metadata: {name: train}
spec:
  controllerRef: {apiGroup: batch, kind: Job, name: train}
  podGroupTemplates:
  - name: workers
    schedulingPolicy: {gang: {minCount: 4}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train-workers}
spec:
  workloadRef: {workloadName: train, templateName: workers}
  schedulingPolicy: {gang: {minCount: 4}}
YAML
works 'the groups of Kubernetes are found by discovery' '^podgroups +scheduling.k8s.io/v1beta1 +true +PodGroup' \
  "$kubectl_program" api-resources --api-group=scheduling.k8s.io
works 'a workload and its group are applied' 'podgroup.scheduling.k8s.io/train-workers created' k apply -f "$scratch/native.yaml"
works 'and again, by the server' 'podgroup.scheduling.k8s.io/train-workers serverside-applied' \
  k apply --server-side --force-conflicts -f "$scratch/native.yaml"
works 'a group shows policy, workload and state' '^train-workers +Gang +train +Pending ' k get podgroups.scheduling.k8s.io
works 'its fields are explained' 'minCount' k explain podgroups.spec.schedulingPolicy.gang --api-version=scheduling.k8s.io/v1beta1
works 'its count may change' 'patched' k patch podgroups.scheduling.k8s.io train-workers --type=merge \
  -p '{"spec":{"schedulingPolicy":{"gang":{"minCount":6}}}}'
fails 'its policy may not' 'spec.schedulingPolicy.basic: Invalid value: null: field is immutable' \
  k patch podgroups.scheduling.k8s.io train-workers --type=merge -p '{"spec":{"schedulingPolicy":{"gang":null,"basic":{}}}}'
works 'its state is a part of its own' 'patched' k patch podgroups.scheduling.k8s.io train-workers --subresource=status --type=merge \
  -p '{"status":{"conditions":[{"type":"PodGroupInitiallyScheduled","status":"True","reason":"Scheduled","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
works 'and shows' '^train-workers +Gang +train +Scheduled ' k get podgroups.scheduling.k8s.io
k create rolebinding ann --clusterrole=edit --user=ann >/dev/null
works 'who may edit may make groups' '^yes' k auth can-i create podgroups.scheduling.k8s.io --as=ann
fails 'but not write their state' '^no' k auth can-i patch podgroups.scheduling.k8s.io --subresource=status --as=ann

# member SPEC NAME METADATA: a pod of a GPU, in the words of one dialect.
member() {
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, %s}\nspec: {%s containers: [{name: c, image: example.com/a:1, resources: {limits: {nvidia.com/gpu: 1}}}]}\n' \
    "$2" "$3" "$1" | k apply -f - >/dev/null
}
# starts_together SPEC PREFIX METADATA: the first of two waits, with the second both run.
starts_together() {
  member "$1" "$2-0" "$3"
  works "$2: one of two waits" 'condition met' k wait "pod/$2-0" --for=condition=PodScheduled=false --timeout=20s
  member "$1" "$2-1" "$3"
  works "$2: both start" 'condition met' k wait "pod/$2-0" "pod/$2-1" --for=condition=Ready --timeout=20s
}

cat >"$scratch/pair.yaml" <<'YAML'
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: pair}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: pair}
spec: {minMember: 2}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: pair}
spec: {minMember: 2}
---
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: pair}
spec: {minMember: 2}
YAML
works 'groups of four kinds' 'podgroup.scheduling.run.ai/pair created' k apply -f "$scratch/pair.yaml"
starts_together 'schedulingGroup: {podGroupName: pair},' native 'labels: {a: b}'
starts_together '' volcano 'annotations: {scheduling.k8s.io/group-name: pair}'
starts_together '' plugins 'labels: {scheduling.x-k8s.io/pod-group: pair}'
starts_together '' kai 'annotations: {pod-group-name: pair}'
works 'a group with pods stays when it is deleted' 'deleted' k delete podgroups.scheduling.k8s.io pair --wait=false
works 'until they have gone' '^pair ' k get podgroups.scheduling.k8s.io pair
k delete pod native-0 native-1 --grace-period=1 >/dev/null
works 'then it goes' '' k wait podgroups.scheduling.k8s.io/pair --for=delete --timeout=20s

cat >"$scratch/others.yaml" <<'YAML'
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 2, reclaimable: true, capability: {cpu: "64", nvidia.com/gpu: 16}, extendClusters: [{name: other, weight: 1}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: volcano}
spec: {minMember: 3, queue: research, minResources: {cpu: "3"}, networkTopology: {mode: soft}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: plugins}
spec: {minMember: 4, scheduleTimeoutSeconds: 10}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: department}
spec: {displayName: Department, resources: {gpu: {quota: 8, limit: -1, overQuotaWeight: 1}}}
---
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: kai}
spec: {minMember: 5, queue: department, topologyConstraint: {topology: t}}
---
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {name: ours}
spec: {quota: {gpu: 4}}
YAML
works 'manifests of others apply to a new cluster' 'podgroup.scheduling.run.ai/kai created' k apply -f "$scratch/others.yaml"
works 'a group of Volcano' '^volcano .* 3 ' k get podgroups.scheduling.volcano.sh
works 'and its queue when asked for more' '^volcano .* 3 .*research' k get podgroups.scheduling.volcano.sh -o wide
works 'fields that are not known here are kept' 'soft' k get podgroups.scheduling.volcano.sh volcano -o 'jsonpath={.spec.networkTopology.mode}'
works 'a queue of Volcano by its short name' '^research +.* 2 ' k get q
works 'a group of scheduler-plugins by its short name' '^plugins .* 4 ' k get pgs
works 'a queue of KAI' '^department .*Department' k get queues.scheduling.run.ai
works 'a group of KAI' '^kai ' k get podgroups.scheduling.run.ai
works 'a queue of ours' '^ours .* 1 +100 +4 ' k get tq
lacks 'nobody made a queue' 'default' k get tq
gives 'all definitions are served' "$(printf 'True%.0s\n' 1 2 3 4 5 6 7)" \
  k get crd -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Established")].status}{"\n"}{end}'

# A definition of somebody else is not touched by a new start, one of ours is put right.
k annotate crd podgroups.scheduling.volcano.sh mine=yes >/dev/null
k patch crd podgroups.scheduling.volcano.sh --type=json \
  -p '[{"op":"replace","path":"/spec/names/shortNames","value":["vpg"]}]' >/dev/null
k patch crd queues.tessera.dev --type=json -p '[{"op":"replace","path":"/spec/names/shortNames","value":["mine"]}]' >/dev/null
version=$(k get crd podgroups.scheduling.volcano.sh -o 'jsonpath={.metadata.resourceVersion}')
if [ -z "${TESSERA_E2E_KUBECONFIG:-}" ]; then
  kill "$server_pid"
  wait "$server_pid" 2>/dev/null || true
  exec 9<&-
  rm "$scratch/out"
  start_cluster
  gives 'after a restart, the definition of others is as it was' "$version" \
    k get crd podgroups.scheduling.volcano.sh -o 'jsonpath={.metadata.resourceVersion}'
  works 'and ours is as it should be' '^ours ' k get tq
  works 'what was made is there' '^volcano ' k get vpg
fi
