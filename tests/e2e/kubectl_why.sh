#!/usr/bin/env bash
# Why a job waits, what would happen if, and the file that both can be asked from: tessera why, plan and snapshot, held against
# what the scheduler then does.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster

tessera() { "$TESSERA" "$@"; }
placed() { k get pod "$1" -o 'jsonpath={.spec.nodeName} {.metadata.annotations.tessera\.dev/gpus}'; }

# gpu_pod NAME GPUS [FIELDS]: a pod of so many H200, with what nobody is to read.
gpu_pod() {
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, annotations: {tessera.dev/gpu-model: H200, note: planted-secret}}\nspec: {%s containers: [{name: c, image: example.com/a:1, args: [--token=planted-secret], env: [{name: TOKEN, value: planted-secret}], resources: {limits: {nvidia.com/gpu: %s}}}]}\n' \
    "$1" "${3:-}" "$2"
}
k create secret generic key --from-literal=token=planted-secret >/dev/null
k create configmap setting --from-literal=token=planted-secret >/dev/null

# Why.
gpu_pod never 9 | k apply -f - >/dev/null
works 'a pod that cannot start is told so' 'condition met' k wait pod/never --for=condition=PodScheduled=false --timeout=20s
works 'and the verdict stands on it' 'condition met' \
  k wait pod/never '--for=jsonpath={.metadata.annotations.tessera\.dev/verdict}' --timeout=20s
works 'why it waits' '^default/never waits in queue "default" \(' tessera why never
works 'and what would mend it' 'To mend it: +ask for less than 9 GPUs a member, or add a node' tessera why pod/never
works 'for tools too' '"shortOf": "1 nvidia.com/gpu"' tessera why never -o json
fails 'what is not there has a mend' 'has no pod, job, PodGroup or owner "nobody": look with' tessera why nobody
fails 'what names nothing too' 'give a name, or kind/name' tessera why /

cat >"$scratch/job.yaml" <<'YAML'
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {annotations: {tessera.dev/gpu-model: H200}}
    spec:
      restartPolicy: Never
      containers: [{name: c, image: example.com/a:1, env: [{name: A, value: planted-secret}], resources: {limits: {nvidia.com/gpu: 8}}}]
YAML
k apply -f "$scratch/job.yaml" >/dev/null
works 'a job runs' 'condition met' k wait pod -l job-name=train --for=condition=Ready --timeout=30s
works 'where it runs' 'h200-[01]: train-.* with GPU 0,1,2,3,4,5,6,7' tessera why job/train

# Snapshot.
works 'a snapshot is taken' 'snap.json: [0-9]+ objects' tessera snapshot -o "$scratch/snap.json"
gives 'for its owner alone' 600 stat -c %a "$scratch/snap.json"
lacks 'nothing secret is in it' 'planted-secret' cat "$scratch/snap.json"
lacks 'nor is a Secret or a ConfigMap' '"kind":"(Secret|ConfigMap)"' cat "$scratch/snap.json"
works 'pods and nodes are' '"kind":"Pod".*"name":"never"' cat "$scratch/snap.json"

# Plan.
k create priorityclass urgent --value=1000 >/dev/null
tessera snapshot -o "$scratch/snap.json" >/dev/null
gpu_pod urgent 4 'priorityClassName: urgent,' >"$scratch/urgent.yaml"
before=$(k get pods -A --no-headers | wc -l)
works 'a job that evicts is told where it starts' 'default/urgent on h200-[01], GPU [0-9,]+$' tessera plan -f "$scratch/urgent.yaml"
works 'and whom it evicts' 'default/train-.* \(Preempted: default/urgent of priority 1000 takes the place of default/train-.*its next pod would wait' \
  tessera plan -f "$scratch/urgent.yaml"
works 'from a file, without a cluster' 'default/urgent on h200-[01], GPU [0-9,]+$' \
  env KUBECONFIG=/nonexistent "$TESSERA" plan --snapshot "$scratch/snap.json" -f "$scratch/urgent.yaml"
works 'for tools' '"starts": true' tessera plan -f "$scratch/urgent.yaml" -o json
works 'what cannot start is told why' 'waits in queue "default"' tessera plan --snapshot "$scratch/snap.json" -f <(gpu_pod big 12)
works 'another node helps others' '(nothing would be different|would start that otherwise would not)' tessera plan --add-nodes 1:h200-0
works 'a node that goes' 'train-.* from h200-0 \(Asked: --drain h200-0\)' tessera plan --drain h200-0
works 'a job that goes' '2 pods would have to leave' tessera plan --evict train
fails 'a queue that is not there' 'there is no queue "x": there are default' tessera plan --set-quota x=gpu:1
fails 'a file that is none' 'urgent.yaml: ' tessera plan --snapshot "$scratch/urgent.yaml" --drain h200-0
fails 'nothing to plan' 'give a manifest with -f' tessera plan
gives 'nothing was written' "$before" sh -c "'$kubectl_program' get pods -A --no-headers | wc -l"

# As planned, so done.
planned=$(tessera plan -f "$scratch/urgent.yaml" | sed -n 's/^  default\/urgent on \(.*\), GPU \(.*\)$/\1 \2/p')
victim=$(tessera plan -f "$scratch/urgent.yaml" | sed -n 's/^  default\/\(train-[a-z0-9]*\) from .*/\1/p')
k apply -f "$scratch/urgent.yaml" >/dev/null
works 'what was planned comes true' 'condition met' k wait pod/urgent --for=condition=Ready --timeout=60s
gives 'on the node and the GPUs that were planned' "$planned" placed urgent
fails 'at the cost that was planned' 'NotFound' k get pod "$victim"
works 'and why is told of the job' 'Evicted: .* train-.* \(Preempted\): default/urgent of priority 1000 takes the place' tessera why job/train
