#!/usr/bin/env bash
# A real kubectl reads logs of simulated pods, is refused exec, attach and port-forward, and reads metrics and health.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster

cat >"$scratch/pods.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata:
  name: done
  annotations: {tessera.dev/run-for: 3s, tessera.dev/exit-code: "3"}
spec:
  restartPolicy: Never
  containers: [{name: main, image: busybox}]
---
apiVersion: v1
kind: Pod
metadata:
  name: two
  labels: {app: two}
spec:
  initContainers: [{name: first, image: busybox}]
  containers: [{name: main, image: busybox}, {name: side, image: busybox}]
---
apiVersion: v1
kind: Pod
metadata:
  name: crash
  annotations: {tessera.dev/run-for: 1s, tessera.dev/exit-code: "1"}
spec:
  containers: [{name: main, image: busybox}]
---
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec:
  containers: [{name: main, image: busybox, resources: {limits: {nvidia.com/gpu: 1000}}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: slow
  annotations: {tessera.dev/init-run-for: 10m}
spec:
  initContainers: [{name: first, image: busybox}]
  containers: [{name: main, image: busybox}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  template:
    metadata:
      annotations: {tessera.dev/run-for: 2s}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
Y
works 'create' 'job.batch/work created' k create -f "$scratch/pods.yaml"
works 'two runs' 'condition met' k wait --for=condition=Ready --timeout=25s pod/two
works 'following ends with the container' 'ended after [0-9]+s with exit code 3' k logs -f done
works 'a log' 'simulated container main of pod default/done started on node' k logs done
gives 'the same again' "$(k logs done)" k logs done
works 'the last line' '^ended after' k logs done --tail=1
lacks 'only the last line' 'started on node' k logs done --tail=1
gives 'no line' '' k logs done --tail=0
works 'time stamps' '^20[0-9-]+T[0-9:]+\.000000000Z simulated' k logs done --timestamps
works 'since' 'ended after' k logs done --since=1h
gives 'since a time to come' '' k logs done --since-time=2100-01-01T00:00:00Z
gives 'limit of bytes' 'simulated' k logs done --limit-bytes=9
works 'a prefix' '\[pod/done/main\] ended' k logs done --prefix
fails 'an unknown container' 'container none is not valid for pod done' k logs done -c none
fails 'no run before' 'previous terminated container "main" in pod "done" not found' k logs done --previous
works 'the run before' 'exit code 1' k logs crash --previous
works 'the first of two containers' 'container main of pod' k logs two
works 'another container' 'container side of pod' k logs two -c side
works 'an init container' 'container first of pod' k logs two -c first
works 'all containers' 'container side of pod' k logs two --all-containers
works 'by label' 'container main of pod' k logs -l app=two --all-containers
fails 'a container that waits' 'container "main" in pod "slow" is waiting to start: PodInitializing' k logs slow
gives 'a pod that waits' '' k logs huge
fails 'no such pod' 'pods "none" not found' k logs none
works 'the job is done' 'condition met' k wait --for=condition=Complete --timeout=25s job/work
works 'of a job' 'ended after [0-9]+s with exit code 0' k logs job/work
fails 'exec' 'simulated pods have no place to run a command' k exec two -- ls
fails 'attach' 'simulated pods have no process to attach to' k attach two
fails 'port-forward' 'simulated pods have no ports to forward' k port-forward two 0:80

works 'metrics' '^apiserver_request_total\{code="200".*resource="pods".*verb="LIST"' k get --raw /metrics
works 'metrics of objects' '^apiserver_storage_objects\{resource="pods"\} [1-9]' k get --raw /metrics
works 'metrics of the process' '^process_resident_memory_bytes [1-9]' k get --raw /metrics
fails 'metrics are not for everyone' 'cannot get path' k get --raw /metrics --as=jane
works 'health in parts' '^\[\+\]store ok$' k get --raw '/readyz?verbose'
works 'without a part' '^\[\+\]store excluded: ok$' k get --raw '/readyz?verbose&exclude=store'
gives 'one part' ok k get --raw /livez/store
fails 'a node reads no secret of others' 'no relationship found between node .a. and this object' \
  k get secret s --as=system:node:a --as-group=system:nodes
