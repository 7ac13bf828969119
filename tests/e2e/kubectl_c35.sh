#!/usr/bin/env bash
# Case C35 with a real kubectl: resource names with dots, field selectors, "describe node" about GPUs. And how C21 and
# C37 show there: a quota refused in words, a list in chunks.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster

cat >"$scratch/node.yaml" <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB}}
status: {capacity: {nvidia.com/gpu: "8", pods: "110"}, allocatable: {nvidia.com/gpu: "8", pods: "110"}}
YAML
pod() {  # NAME GPUS PHASE NODE
  cat >"$scratch/pod.yaml" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: default}
spec:
  nodeName: $4
  schedulerName: nobody
  containers: [{name: main, image: registry.example/train:1, resources: {limits: {nvidia.com/gpu: $2}}}]
YAML
  k create -f "$scratch/pod.yaml" >/dev/null
  k patch pod "$1" --subresource=status --type=merge -p "{\"status\":{\"phase\":\"$3\"}}" >/dev/null
}
k create -f "$scratch/node.yaml" >/dev/null
pod r1 4 Running n1
pod r2 2 Running n1
pod done 1 Succeeded n1
pod bad 1 Failed n1
pod wait 1 Pending ''

works 'jsonpath with a dot' '^8$' k get node n1 -o jsonpath='{.status.allocatable.nvidia\.com/gpu}'
works 'jsonpath in brackets' '^8$' k get node n1 -o jsonpath="{.status.allocatable['nvidia\\.com/gpu']}"
works 'custom columns' '^n1 +8$' k get nodes --no-headers \
  -o custom-columns='N:.metadata.name,G:.status.allocatable.nvidia\.com/gpu'
works 'label with a slash' '^node/n1$' k get nodes -l nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB -o name
works 'labels shown' 'nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB$' k get node n1 --show-labels
works 'pods of a node' '^pod/bad pod/done pod/r1 pod/r2$' \
  bash -c "$kubectl_program get pods -A --field-selector spec.nodeName=n1 -o name | paste -sd' '"
works 'pods of a node that run' '^pod/r1 pod/r2$' bash -c "$kubectl_program get pods -A -o name \
  --field-selector 'spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed' | paste -sd' '"
works 'pods by phase' '^pod/wait$' k get pods --field-selector status.phase=Pending -o name
fails 'a field that is not supported' 'field label not supported' k get pods --field-selector spec.foo=1
works 'describe node: allocated' 'nvidia.com/gpu +6 +6' k describe node n1
works 'describe node: pods' 'Non-terminated Pods: +\(2 in total\)' k describe node n1
works 'wide: bound' '^r1 .* n1 ' k get pods -o wide
works 'wide: not bound' '^wait .* <none> +<none> +<none>$' k get pods -o wide

k create namespace w >/dev/null
for i in $(seq 1 25); do printf -- '---\n{apiVersion: v1, kind: Secret, metadata: {name: c%02d, namespace: w}}\n' "$i"; done |
  k create -f - >/dev/null
works 'C37: a list in chunks' '^25$' bash -c "$kubectl_program get secrets -n w --chunk-size=7 --no-headers | wc -l"

k create quota gpus -n w --hard=requests.nvidia.com/gpu=1 >/dev/null
fails 'C21: a quota is named' 'exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=1' \
  k run over -n w --image=x --overrides='{"spec":{"containers":[{"name":"over","image":"x","resources":{"limits":{"nvidia.com/gpu":2}}}]}}'
