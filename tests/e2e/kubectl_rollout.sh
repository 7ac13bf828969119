#!/usr/bin/env bash
# A real kubectl rolls out, looks back and goes back: deployments, stateful sets, daemon sets; and drains a node.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster
works 'create namespace' 'created' k create namespace roll
works 'set the namespace of the context' 'modified' k config set-context --current --namespace=roll
works 'nodes become ready' 'condition met' k wait --for=condition=Ready nodes --all --timeout=30s
# A container runs until it is stopped only when told so.
template='metadata: {labels: {app: NAME}, annotations: {tessera.dev/run-for: 1h}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "example.com/c:1"}]'

# --- deployment
cat >"$scratch/web.yaml" <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {kubernetes.io/change-cause: the first}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    ${template//NAME/web}
Y
works 'apply a deployment' 'created' k apply -f "$scratch/web.yaml"
works 'it is rolled out' 'successfully rolled out' k rollout status deployment/web --timeout=60s
works 'a second image' 'image updated' k set image deployment/web c=example.com/c:2
works 'with a cause' 'annotated' k annotate deployment/web --overwrite kubernetes.io/change-cause='the second'
works 'the second is rolled out' 'successfully rolled out' k rollout status deployment/web --timeout=60s
works 'the history has both' '^1 +the first' k rollout history deployment/web
works 'and their causes' '^2 +the second' k rollout history deployment/web
works 'one revision in full' 'example.com/c:1' k rollout history deployment/web --revision=1
fails 'no such revision' 'unable to find the specified revision' k rollout history deployment/web --revision=9
works 'back to the first' 'rolled back' k rollout undo deployment/web --to-revision=1
works 'it is rolled back' 'successfully rolled out' k rollout status deployment/web --timeout=60s
gives 'it has the first image' 'example.com/c:1' k get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}'
works 'the first is the third now' '^3 +the ' k rollout history deployment/web
lacks 'and the first no more' '^1 ' k rollout history deployment/web
fails 'nor can it be gone back to' 'unable to find specified revision 1' k rollout undo deployment/web --to-revision=1
works 'undo' 'rolled back' k rollout undo deployment/web
works 'undone' 'successfully rolled out' k rollout status deployment/web --timeout=60s
gives 'it has the second image' 'example.com/c:2' k get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}'
works 'a dry undo' 'rolled back|dry run' k rollout undo deployment/web --dry-run=server
works 'pause' 'paused' k rollout pause deployment/web
fails 'pause twice' 'already paused' k rollout pause deployment/web
works 'a third image' 'image updated' k set image deployment/web c=example.com/c:3
fails 'a paused one is not undone' 'paused' k rollout undo deployment/web
sleep 1
gives 'no pod has it' '' k get pods -l app=web -o jsonpath='{.items[?(@.spec.containers[0].image=="example.com/c:3")].metadata.name}'
works 'resume' 'resumed' k rollout resume deployment/web
works 'resumed' 'successfully rolled out' k rollout status deployment/web --timeout=60s
works 'all pods have it' 'condition met' k wait --for=jsonpath='{.status.updatedReplicas}'=3 deployment/web --timeout=30s
gives 'one set has all pods' '0 0 3 ' bash -c "'$kubectl_program' get rs -l app=web -o jsonpath='{range .items[*]}{.spec.replicas}{\"\\n\"}{end}' | sort | tr '\\n' ' '"
works 'restart' 'restarted' k rollout restart deployment/web
works 'restarted' 'successfully rolled out' k rollout status deployment/web --timeout=60s
works 'the events of it' 'Scaled up replica set web-' k get events --field-selector involvedObject.kind=Deployment
works 'describe tells who scaled' 'deployment-controller' k describe deployment web

# --- stateful set
cat >"$scratch/db.yaml" <<Y
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    ${template//NAME/db}
Y
works 'apply a stateful set' 'created' k apply -f "$scratch/db.yaml"
works 'it is rolled out' 'partitioned roll out complete: 3 new pods' k rollout status statefulset/db --timeout=90s
works 'its table' '^NAME +READY +AGE$' k get statefulsets
works 'its row' '^db +3/3 ' k get sts
works 'its wide table' 'CONTAINERS +IMAGES' k get sts -o wide
gives 'its pods' 'db-0 db-1 db-2' k get pods -l app=db -o jsonpath='{.items[*].metadata.name}'
works 'describe' 'Create Pod db-2 in StatefulSet db successful' k describe sts db
works 'a new image' 'image updated' k set image sts/db c=example.com/c:2
works 'rolled out' 'partitioned roll out complete' k rollout status sts/db --timeout=90s
gives 'every pod has it' 'example.com/c:2 example.com/c:2 example.com/c:2' \
  k get pods -l app=db -o jsonpath='{.items[*].spec.containers[0].image}'
works 'its history' '^2 ' k rollout history sts/db
works 'one revision' 'example.com/c:1' k rollout history sts/db --revision=1
works 'its revisions' '^db-[a-z0-9]+ +statefulset.apps/db +1 ' k get controllerrevisions
works 'undo' 'rolled back' k rollout undo sts/db
works 'undone' 'partitioned roll out complete' k rollout status sts/db --timeout=90s
gives 'every pod has the first again' 'example.com/c:1 example.com/c:1 example.com/c:1' \
  k get pods -l app=db -o jsonpath='{.items[*].spec.containers[0].image}'
works 'to a revision' 'rolled back' k rollout undo sts/db --to-revision=2
works 'there' 'partitioned roll out complete' k rollout status sts/db --timeout=90s
works 'scale down' 'scaled' k scale sts/db --replicas=1
works 'scaled' 'condition met' k wait --for=jsonpath='{.status.replicas}'=1 sts/db --timeout=60s
works 'the lowest stays' '^pod/db-0$' k get pods -l app=db -o name
works 'restart' 'restarted' k rollout restart sts/db
works 'restarted' 'partitioned roll out complete: 1 new pods' k rollout status sts/db --timeout=60s

# --- daemon set
cat >"$scratch/agent.yaml" <<Y
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    ${template//NAME/agent}
Y
works 'apply a daemon set' 'created' k apply -f "$scratch/agent.yaml"
works 'it is rolled out' 'successfully rolled out' k rollout status daemonset/agent --timeout=60s
works 'its table' '^NAME +DESIRED +CURRENT +READY +UP-TO-DATE +AVAILABLE +NODE SELECTOR +AGE$' k get daemonsets
works 'its row' '^agent +4 +4 +4 +4 +4 +<none> ' k get ds
works 'a pod on each node' '^4$' bash -c "'$kubectl_program' get pods -l app=agent -o jsonpath='{range .items[*]}{.spec.nodeName}{\"\\n\"}{end}' | sort -u | wc -l"
works 'describe' 'Number of Nodes Scheduled with Available Pods: 4' k describe ds agent
works 'a new image' 'image updated' k set image ds/agent c=example.com/c:2
works 'rolled out' 'successfully rolled out' k rollout status ds/agent --timeout=90s
works 'its history' '^2 ' k rollout history ds/agent
works 'one revision' 'example.com/c:1' k rollout history ds/agent --revision=1
works 'undo' 'rolled back' k rollout undo ds/agent
works 'undone' 'successfully rolled out' k rollout status ds/agent --timeout=90s
gives 'every pod has the first again' 'example.com/c:1 example.com/c:1 example.com/c:1 example.com/c:1' \
  k get pods -l app=agent -o jsonpath='{.items[*].spec.containers[0].image}'

# --- drain
node=$(k get nodes -o jsonpath='{.items[0].metadata.name}')
fails 'a drain minds the daemons' 'cannot delete DaemonSet-managed Pods' k drain "$node" --timeout=60s
works 'a drain that leaves them' "node/$node drained" k drain "$node" --ignore-daemonsets --timeout=90s
works 'only the daemon is left there' '^pod/agent-' k get pods -o name --field-selector "spec.nodeName=$node"
works 'one pod' '^1$' bash -c "'$kubectl_program' get pods -o name --field-selector spec.nodeName=$node | wc -l"
works 'a daemon comes back on a drained node' 'deleted' k delete pods -l app=agent --field-selector "spec.nodeName=$node" --timeout=60s
works 'it does' 'successfully rolled out' k rollout status ds/agent --timeout=60s
works 'uncordon' 'uncordoned' k uncordon "$node"
works 'the deployment is whole' 'condition met' k wait --for=jsonpath='{.status.readyReplicas}'=3 deployment/web --timeout=60s

# --- the end of it
works 'delete all' 'deleted' k delete deployment/web sts/db ds/agent --timeout=60s
works 'their pods go' 'condition met|^$|no matching resources' k wait --for=delete pods --all --timeout=60s
k wait --for=delete controllerrevisions --all --timeout=60s >/dev/null 2>&1 || true
gives 'and their revisions' '' k get controllerrevisions -o name
works 'delete namespace' 'namespace "roll" deleted' k delete namespace roll --timeout=60s
