#!/usr/bin/env bash
# A real kubectl works on nodes, pods and workloads: describe, taint, cordon, wait, scale, rollout, watch, events.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster
works 'create namespace' 'created' k create namespace work
works 'set the namespace of the context' 'modified' k config set-context --current --namespace=work

# --- nodes
works 'nodes become ready' 'condition met' k wait --for=condition=Ready nodes --all --timeout=30s
works 'nodes table' '^NAME +STATUS +ROLES +AGE +VERSION$' k get nodes
works 'nodes -o wide' 'INTERNAL-IP.*OS-IMAGE.*CONTAINER-RUNTIME' k get nodes -o wide
node=$(k get nodes -o jsonpath='{.items[0].metadata.name}')
works 'describe node' 'Allocatable:' k describe node "$node"
works 'describe node shows GPUs' 'nvidia.com/gpu' k describe node "$node"
works 'cordon' "node/$node cordoned" k cordon "$node"
works 'cordoned node in the table' 'Ready,SchedulingDisabled' k get node "$node"
works 'cordon twice' "already cordoned" k cordon "$node"
works 'uncordon' "node/$node uncordoned" k uncordon "$node"
works 'taint' 'tainted' k taint node "$node" gpu=busy:NoSchedule
gives 'taint is there' busy k get node "$node" -o jsonpath='{.spec.taints[?(@.key=="gpu")].value}'
works 'describe shows the taint' 'gpu=busy:NoSchedule' k describe node "$node"
works 'untaint' 'untainted' k taint node "$node" gpu:NoSchedule-
works 'label a node' 'labeled' k label node "$node" zone=a

# --- a pod
cat >"$scratch/pod.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata:
  name: train
  labels: {app: train}
  annotations: {tessera.dev/run-for: 1h}
spec:
  containers:
  - name: main
    image: example.com/train:1
    resources:
      requests: {cpu: 500m, memory: 1Gi}
      limits: {nvidia.com/gpu: 1}
Y
works 'create pod' 'pod/train created' k apply -f "$scratch/pod.yaml"
works 'pod becomes ready' 'condition met' k wait --for=condition=Ready pod/train --timeout=60s
works 'wait for jsonpath' 'condition met' k wait --for=jsonpath='{.status.phase}'=Running pod/train --timeout=30s
works 'pods table' '^NAME +READY +STATUS +RESTARTS +AGE$' k get pods
works 'pods row' '^train +1/1 +Running +0 ' k get pods
works 'pods -o wide' '^NAME.* IP +NODE +NOMINATED NODE +READINESS GATES$' k get pods -o wide
works 'describe pod' 'QoS Class: +Burstable' k describe pod train
works 'describe pod shows events' 'Scheduled' k describe pod train
works 'events' 'Scheduled.*pod/train|pod/train.*Scheduled' k get events
works 'events command' 'Pod/train' k events --for pod/train
works 'pods of one node' '^pod/train$' k get pods -o name \
  --field-selector "spec.nodeName=$(k get pod train -o jsonpath='{.spec.nodeName}')"
fails 'a pod spec does not change' 'Forbidden: pod updates may not change fields' \
  k patch pod train -p '{"spec":{"containers":[{"name":"main","command":["x"]}]}}'
works 'a pod image does' 'patched' k patch pod train -p '{"spec":{"containers":[{"name":"main","image":"example.com/train:2"}]}}'
gives 'strategic merge joined by name' 'main=1' k get pod train \
  -o jsonpath='{.spec.containers[0].name}={.spec.containers[0].resources.limits.nvidia\.com/gpu}'

# --- watch
"$kubectl_program" get configmaps -w --output-watch-events --no-headers >"$scratch/watched" 2>&1 &
watcher=$!
works 'create what is watched' 'created' k create configmap seen --from-literal=a=1
seen() { grep -m1 -E -- "$1" < <(timeout 20 tail -n +1 -f --pid="$watcher" "$scratch/watched"); }
works 'watch shows ADDED' 'seen' seen '^ADDED +seen +1 '
works 'change what is watched' 'patched' k patch cm seen --type=merge -p '{"data":{"b":"2"}}'
works 'watch shows MODIFIED' 'seen' seen '^MODIFIED +seen +2 '
works 'delete what is watched' 'deleted' k delete cm seen
works 'watch shows DELETED' 'seen' seen '^DELETED +seen '
kill "$watcher" 2>/dev/null || true

# --- deployments
works 'create deployment' 'deployment.apps/web created' k create deployment web --image=example.com/web:1 --replicas=2
works 'rollout status' 'successfully rolled out' k rollout status deployment/web --timeout=60s
works 'deployments table' '^web +2/2 +2 +2 ' k get deployments
works 'deployments -o wide' 'CONTAINERS +IMAGES +SELECTOR' k get deployments -o wide
works 'replica sets' '^web-[a-z0-9]+ +2 +2 +2 ' k get replicasets
works 'describe deployment' 'Replicas: +2 desired \| 2 updated' k describe deployment web
works 'scale' 'deployment.apps/web scaled' k scale deployment web --replicas=3
works 'scaled' 'condition met' k wait --for=jsonpath='{.status.readyReplicas}'=3 deployment/web --timeout=60s
works 'set image' 'image updated' k set image deployment/web web=example.com/web:2
works 'rollout of the new image' 'successfully rolled out' k rollout status deployment/web --timeout=60s
works 'rollout restart' 'restarted' k rollout restart deployment/web
works 'get all' 'deployment.apps/web' k get all
cat >"$scratch/web.yaml" <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 1
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - {name: a, image: "example.com/a:1", env: [{name: ONE, value: "1"}, {name: TWO, value: "2"}]}
      - {name: b, image: "example.com/b:1"}
Y
works 'apply deployment' 'deployment.apps/api created' k apply -f "$scratch/web.yaml"
sed -i 's/{name: ONE, value: "1"}, //; s/replicas: 1/replicas: 2/' "$scratch/web.yaml"
works 'apply merges lists by key' 'deployment.apps/api configured' k apply -f "$scratch/web.yaml"
gives 'the element left out is gone' 'TWO a,b 2' k get deployment api \
  -o jsonpath='{.spec.template.spec.containers[0].env[*].name} {.spec.template.spec.containers[0].name},{.spec.template.spec.containers[1].name} {.spec.replicas}'
works 'apply again changes nothing' 'unchanged' k apply -f "$scratch/web.yaml"
fails 'selector does not change' 'field is immutable' k patch deployment api --type=merge \
  -p '{"spec":{"selector":{"matchLabels":{"app":"other"}},"template":{"metadata":{"labels":{"app":"other"}}}}}'

# --- jobs
works 'create job' 'job.batch/once created' k create job once --image=example.com/once:1 -- true
works 'jobs table' '^NAME +STATUS +COMPLETIONS +DURATION +AGE$' k get jobs
works 'describe job' 'Completions: +1' k describe job once
works 'delete job' 'job.batch "once" deleted' k delete job once

# --- deletion
works 'delete pod waits' 'pod "train" deleted' k delete pod train --grace-period=1 --timeout=60s
fails 'deleted pod is gone' 'NotFound' k get pod train
works 'delete deployment' 'deployment.apps "web" deleted' k delete deployment web --timeout=60s
works 'wait for delete' 'condition met|^$|no matching resources' k wait --for=delete pods -l app=web --timeout=60s
works 'delete namespace' 'namespace "work" deleted' k delete namespace work --timeout=60s
fails 'namespace is gone' 'NotFound' k get namespace work
