#!/usr/bin/env bash
# A real kubectl works on volumes: sets with claims, claims that wait for their pod, local volumes, growth, release, reasons.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster
works 'create namespace' 'created' k create namespace store
works 'set the namespace of the context' 'modified' k config set-context --current --namespace=store

# make NAME: applies the objects on standard input.
make() {
  cat >"$scratch/object.yaml"
  works "create $1" 'created' k apply -f "$scratch/object.yaml"
}
# claim NAME SIZE CLASS
claim() {
  make "claim $1" <<Y
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: $3
  resources: {requests: {storage: $2}}
Y
}
# pod NAME CLAIM
pod() {
  make "pod $1" <<Y
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: example.com/x:1, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: $2}}]
Y
}
running() { works "pod $1 runs" '' k wait --for=jsonpath='{.status.phase}'=Running "pod/$1" --timeout=60s; }
bound() { works "claim $1 is bound" '' k wait --for=jsonpath='{.status.phase}'=Bound "pvc/$1" --timeout=60s; }
why() { k wait --for=jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}'=Unschedulable "pod/$1" --timeout=30s && k get pod "$1" -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}'; }

# --- the default class
works 'default class' '^simulated \(default\) +tessera.dev/simulated +Delete +WaitForFirstConsumer +true ' k get storageclass

# --- a missing claim, then one that waits for its pod
pod early late
works 'a missing claim is the reason' '0/4 nodes are available: persistentvolumeclaim "late" not found\.' why early
claim late 1Gi simulated
running early
bound late
works 'the node was chosen first' '.' k get pvc late -o jsonpath='{.metadata.annotations.volume\.kubernetes\.io/selected-node}'
works 'its volume' 'late +simulated ' k get pv
works 'its events' 'ProvisioningSucceeded' k describe pvc late
claim alone 1Gi simulated
works 'a claim without a pod waits' 'WaitForFirstConsumer' k describe pvc alone
gives 'and is pending' Pending k get pvc alone -o jsonpath='{.status.phase}'

# --- growth
works 'grow a claim' 'patched' k patch pvc late -p '{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}'
works 'the claim has grown' '' k wait --for=jsonpath='{.status.capacity.storage}'=3Gi pvc/late --timeout=60s
volume=$(k get pvc late -o jsonpath='{.spec.volumeName}')
gives 'and so has its volume' 3Gi k get pv "$volume" -o jsonpath='{.spec.capacity.storage}'

# --- release
works 'a claim in use stays' 'deleted' k delete pvc late --wait=false
works 'marked as going' '^late +Terminating ' k get pvc late
works 'its pod goes' 'deleted' k delete pod early
lacks 'then the claim' error k wait --for=delete pvc/late --timeout=60s
lacks 'and its volume' error k wait --for=delete "pv/$volume" --timeout=60s

# --- immediate binding, retained
make 'class kept' <<'Y'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: kept}
provisioner: tessera.dev/simulated
reclaimPolicy: Retain
volumeBindingMode: Immediate
Y
claim kept 2Gi kept
bound kept
fails 'its class does not grow' 'only dynamically provisioned pvc can be resized|does not support resize|must support resize' \
  k patch pvc kept -p '{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}'
volume=$(k get pvc kept -o jsonpath='{.spec.volumeName}')
works 'a kept claim goes' 'deleted' k delete pvc kept
works 'its volume is released' '' k wait --for=jsonpath='{.status.phase}'=Released "pv/$volume" --timeout=60s

# --- a class that nobody serves
make 'class nobody' <<'Y'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nobody}
provisioner: example.com/nobody
Y
claim stuck 1Gi nobody
pod stuck stuck
works 'an unbound claim is the reason' 'pod has unbound immediate PersistentVolumeClaims' why stuck

# --- volumes of one node
make 'class local' <<'Y'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: tessera.dev/simulated
volumeBindingMode: WaitForFirstConsumer
parameters: {local: "true"}
Y
claim near 1Gi local
pod near near
running near
node=$(k get pod near -o jsonpath='{.spec.nodeName}')
works 'only its node reaches the volume' "$node" k get pv "$(k get pvc near -o jsonpath='{.spec.volumeName}')" -o jsonpath='{.spec.nodeAffinity}'
works 'cordon the node' 'cordoned' k cordon "$node"
works 'the pod goes' 'deleted' k delete pod near
pod again near
works 'a pod of that claim has nowhere else to go' "3 node\(s\) didn't match PersistentVolume's node affinity" why again
works 'uncordon the node' 'uncordoned' k uncordon "$node"
running again
gives 'it is where its volume is' "$node" k get pod again -o jsonpath='{.spec.nodeName}'

# --- a set with a claim for each pod
make 'stateful set' <<'Y'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: example.com/db:1, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
Y
works 'its pods run' 'partitioned roll out complete|roll out complete|3 new pods|3 pods at revision' k rollout status statefulset/db --timeout=90s
gives 'its claims are bound' 'data-db-0 Bound data-db-1 Bound data-db-2 Bound' \
  bash -c "'$kubectl_program' get pvc -l app=db -o jsonpath='{range .items[*]}{.metadata.name} {.status.phase}{\"\\n\"}{end}' | sort | xargs"
volume=$(k get pvc data-db-1 -o jsonpath='{.spec.volumeName}')
works 'a pod of it goes' 'deleted' k delete pod db-1
works 'and comes back' '' k rollout status statefulset/db --timeout=60s
gives 'with the same volume' "$volume" k get pvc data-db-1 -o jsonpath='{.spec.volumeName}'

# --- a volume that lives with its pod
make 'pod with an ephemeral volume' <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: brief}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: example.com/x:1, volumeMounts: [{name: tmp, mountPath: /tmp}]}]
  volumes:
    - name: tmp
      ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
Y
running brief
bound brief-tmp
works 'it goes' 'deleted' k delete pod brief
lacks 'with its claim' error k wait --for=delete pvc/brief-tmp --timeout=60s
