#!/usr/bin/env bash
# A real kubectl reads and writes objects: tables, formats, apply, edit, patches, labels, errors.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster

# --- what the server says of itself
works 'version' 'Server Version: v1\.36\.3' k version
works 'cluster-info' 'control plane.* is running at' k cluster-info
works 'api-versions' '^apps/v1$' k api-versions
works 'api-resources: short names' '^pods +po +v1 +true +Pod' k api-resources
works 'api-resources: cluster scope' '^nodes +no +v1 +false +Node' k api-resources
works 'api-resources by verb' '^deployments' k api-resources --verbs=list --namespaced -o name
works 'explain' 'FIELD: spec <PodSpec>' k explain pod.spec
works 'explain lists fields' 'containers.*<\[\]Container>.*-required-' k explain pod.spec
works 'explain recursive' 'nodeName' k explain pod --recursive
gives 'raw livez' ok k get --raw /livez
works 'raw readyz verbose' 'readyz check passed' k get --raw '/readyz?verbose'
lacks '-v=8 shows no server error' 'Response Status: 5|error on the server|unable to decode' k get nodes -v=8

# --- namespaces and config maps
works 'create namespace' 'namespace/work created' k create namespace work
fails 'create twice' 'Error from server \(AlreadyExists\): namespaces "work" already exists' k create namespace work
works 'set the namespace of the context' 'modified' k config set-context --current --namespace=work
works 'create configmap' 'configmap/one created' k create configmap one --from-literal=a=1 --from-literal=b=2
gives 'jsonpath' 1 k get configmap one -o jsonpath='{.data.a}'
works 'table' '^NAME +DATA +AGE$' k get configmap one
works 'table row' '^one +2 +' k get cm one
works 'yaml' '^kind: ConfigMap$' k get configmap one -o yaml
works 'json' '"kind": "ConfigMap"' k get configmap one -o json
gives 'name' configmap/one k get configmap one -o name
works 'custom columns' '^one +1$' k get configmap one -o custom-columns=N:.metadata.name,A:.data.a --no-headers
works 'create secret' 'secret/key created' k create secret generic key --from-literal=pass=word
gives 'secret is base64' d29yZA== k get secret key -o jsonpath='{.data.pass}'
works 'describe configmap' 'a:' k describe configmap one
works 'describe secret hides values' 'pass: +4 bytes' k describe secret key
works 'all namespaces' '^work +one ' k get configmaps -A
fails 'not found' 'Error from server \(NotFound\): configmaps "none" not found' k get configmap none
fails 'unknown resource' "the server doesn't have a resource type \"widgets\"" k get widgets
works 'nothing there' 'No resources found in work namespace' k get deployments

# --- create and apply from files
cat >"$scratch/map.yaml" <<'Y'
apiVersion: v1
kind: ConfigMap
metadata:
  name: two
  labels: {app: demo}
data:
  colour: red
  size: "7"
Y
works 'create -f' 'configmap/two created' k create -f "$scratch/map.yaml"
fails 'create -f twice' 'AlreadyExists' k create -f "$scratch/map.yaml"
works 'delete -f' 'configmap "two" deleted' k delete -f "$scratch/map.yaml"
works 'apply dry run' 'configmap/two created \(server dry run\)' k apply --dry-run=server -f "$scratch/map.yaml"
fails 'a dry run leaves nothing' 'NotFound' k get configmap two
works 'apply creates' 'configmap/two created' k apply -f "$scratch/map.yaml"
works 'apply again changes nothing' 'configmap/two unchanged' k apply -f "$scratch/map.yaml"
sed -i 's/red/blue/; /size/d' "$scratch/map.yaml"
works 'diff' '-  colour: red' bash -c "'$kubectl_program' diff -f '$scratch/map.yaml' || [ \$? -eq 1 ]"
works 'apply configures' 'configmap/two configured' k apply -f "$scratch/map.yaml"
gives 'apply removes what the file dropped' '{"colour":"blue"}' k get cm two -o jsonpath='{.data}'
works 'replace' 'configmap/two replaced' k replace -f "$scratch/map.yaml"
works 'edit' 'configmap/two edited' env EDITOR="sed -i s/blue/green/" KUBE_EDITOR= "$kubectl_program" edit configmap two
gives 'edit took' green k get cm two -o jsonpath='{.data.colour}'

# --- patches
works 'merge patch' 'patched' k patch cm two --type=merge -p '{"data":{"colour":null,"shape":"round"}}'
gives 'merge patch took' '{"shape":"round"}' k get cm two -o jsonpath='{.data}'
works 'json patch' 'patched' k patch cm two --type=json -p '[{"op":"add","path":"/data/x","value":"y"},{"op":"test","path":"/data/shape","value":"round"}]'
gives 'json patch took' y k get cm two -o jsonpath='{.data.x}'
fails 'json patch with a failed test' 'The request is invalid: the server rejected our request' k patch cm two --type=json -p '[{"op":"test","path":"/data/x","value":"z"}]'
works 'strategic patch' 'patched' k patch cm two -p '{"data":{"x":"z"}}'
works 'patch without effect' 'patched \(no change\)' k patch cm two -p '{"data":{"x":"z"}}'

# --- labels, annotations, selectors
works 'label' 'labeled' k label cm two tier=back
fails 'label that is there' "already has a value" k label cm two tier=front
works 'label --overwrite' 'labeled' k label cm two tier=front --overwrite
works 'label column' '^two +2 +[^ ]+ +front$' k get cm two -L tier --no-headers
gives 'select by label' configmap/two k get cm -l 'tier in (front,back),app=demo' -o name
works 'select nothing' 'No resources found' k get cm -l tier=other
works 'unlabel' 'unlabeled' k label cm two tier-
works 'annotate' 'annotated' k annotate cm two note='a b'
gives 'annotation' 'a b' k get cm two -o jsonpath='{.metadata.annotations.note}'
gives 'field selector' configmap/two k get cm --field-selector metadata.name=two -o name
fails 'bad label selector' 'unable to parse requirement|found .*expected|BadRequest' k get cm -l '=='
fails 'bad field selector' 'field label not supported|not a known field selector|not supported' k get cm --field-selector spec.x=1
works 'show labels' 'app=demo' k get cm two --show-labels

# --- mistakes
cat >"$scratch/bad.yaml" <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: bad}
dta: {a: b}
Y
fails 'unknown field' 'strict decoding error: unknown field "dta"' k create -f "$scratch/bad.yaml"
works 'unknown field, warn' 'Warning: unknown field "dta"' k create --validate=warn -f "$scratch/bad.yaml"
cat >"$scratch/twice.json" <<'Y'
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t"}, "data": {"a": "1", "a": "2"}}
Y
fails 'duplicate key' 'duplicate field "data.a"' k create --raw '/api/v1/namespaces/work/configmaps?fieldValidation=Strict' \
  -f "$scratch/twice.json"
cat >"$scratch/invalid.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: Bad_Name}
spec:
  restartPolicy: Sometimes
  containers:
  - {name: c, image: ""}
Y
fails 'invalid: name' 'metadata\.name: Invalid value: "Bad_Name"' k create -f "$scratch/invalid.yaml"
fails 'invalid: enumeration' 'spec\.restartPolicy: Unsupported value: "Sometimes"' k create -f "$scratch/invalid.yaml"
cat >"$scratch/type.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: {name: c}
Y
fails 'wrong type' 'BadRequest.*spec.containers|cannot unmarshal|spec\.containers' k create -f "$scratch/type.yaml"
fails 'conflict' 'Conflict|the object has been modified' bash -c "'$kubectl_program' get cm two -o json |
  sed 's/\"resourceVersion\": \"[0-9]*\"/\"resourceVersion\": \"1\"/' | '$kubectl_program' replace -f -"
fails 'a namespace that is not there' 'namespaces "nowhere" not found' k create configmap x -n nowhere
fails 'forbidden' 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "work"' \
  k get pods --as=jane
fails 'no credentials' 'Unauthorized|must be logged in' env -u KUBECONFIG "$kubectl_program" get pods \
  --server "$(k config view --minify -o jsonpath='{.clusters[0].cluster.server}')" --insecure-skip-tls-verify --token=wrong

# --- deletion
works 'delete by label' 'configmap "two" deleted' k delete cm -l app=demo
works 'delete all' 'configmap "one" deleted' k delete cm --all
gives 'delete twice is no error when told so' '' k delete cm one --ignore-not-found
fails 'delete what is not there' 'NotFound' k delete cm one
