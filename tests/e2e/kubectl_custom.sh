#!/usr/bin/env bash
# Custom kinds with a real kubectl: a definition is applied, waited for, explained and used in all the ways that kubectl
# has for any kind, and goes with its objects.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster

cat >"$scratch/crd.yaml" <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainers.ml.example.com}
spec:
  group: ml.example.com
  scope: Namespaced
  names: {plural: trainers, singular: trainer, kind: Trainer, shortNames: [tr], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.workers, statusReplicasPath: .status.workers, labelSelectorPath: .status.selector}
    selectableFields: [{jsonPath: .spec.queue}]
    additionalPrinterColumns:
    - {name: Queue, type: string, jsonPath: .spec.queue}
    - {name: Workers, type: integer, jsonPath: .spec.workers}
    - {name: Image, type: string, priority: 1, jsonPath: '.spec.containers[0].image'}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        description: A training run.
        type: object
        properties:
          spec:
            description: What is trained.
            type: object
            required: [queue]
            properties:
              queue: {type: string, description: Whose turn it takes., enum: [red, blue]}
              workers: {type: integer, minimum: 0, maximum: 8, default: 1}
              containers:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, image: {type: string}}
          status:
            type: object
            properties: {workers: {type: integer}, selector: {type: string}}
YAML
trainer() {  # NAME QUEUE IMAGE
  cat <<YAML
apiVersion: ml.example.com/v1
kind: Trainer
metadata: {name: $1, namespace: default}
spec: {queue: $2, containers: [{name: main, image: "$3"}]}
YAML
}

works 'apply a definition' 'created$' k apply -f "$scratch/crd.yaml"
works 'wait until it is established' 'condition met$' \
  k wait --for=condition=Established --timeout=20s crd/trainers.ml.example.com
works 'get definitions' '^trainers.ml.example.com ' k get crd
works 'api-resources' '^trainers +tr +ml.example.com/v1 +true +Trainer$' k api-resources --api-group=ml.example.com
works 'explain' 'What is trained' k explain trainers.spec
works 'explain an enum' '^ +blue$' k explain trainers.spec.queue
works 'explain all' 'image' k explain tr --recursive

trainer a red x:1 >"$scratch/a.yaml"
trainer b blue x:2 >"$scratch/b.yaml"
works 'apply' 'trainer.ml.example.com/a created' k apply -f "$scratch/a.yaml"
works 'apply by the server' 'serverside-applied' k apply --server-side -f "$scratch/b.yaml"
works 'get with columns' '^a +red +1 +[0-9]' k get tr
works 'get wide' '^b +blue +1 +x:2 ' k get trainers -o wide
works 'get by a field' '^trainer.ml.example.com/b$' k get tr --field-selector spec.queue=blue -o name
fails 'a field that is not selectable' 'field label not supported' k get tr --field-selector spec.workers=1
works 'get all' 'trainer.ml.example.com/a' k get all
works 'describe' 'Queue: +red' k describe tr a
trainer c pink x >"$scratch/c.yaml"
fails 'a value that is not allowed' 'Unsupported value: "pink": supported values: "red", "blue"' k apply -f "$scratch/c.yaml"
sed 's/queue: red/queue: red, colour: 1/' "$scratch/a.yaml" >"$scratch/typo.yaml"
fails 'a typo' 'unknown field "spec.colour"' k apply -f "$scratch/typo.yaml"
works 'scale' 'scaled$' k scale tr/a --replicas=3
works 'scaled' '^3$' k get tr a -o jsonpath='{.spec.workers}'
fails 'scale too far' 'should be less than or equal to 8' k scale tr/a --replicas=9
works 'patch' 'patched$' k patch tr a --type=merge -p '{"spec":{"workers":2}}'
works 'patch the status' 'patched$' k patch tr a --type=merge --subresource=status -p '{"status":{"workers":2}}'
works 'edit' 'edited$' env EDITOR="sed -i s/x:1/x:9/" "$kubectl_program" edit tr a
works 'edited' '^x:9$' k get tr a -o jsonpath='{.spec.containers[0].image}'
works 'label' 'labeled$' k label tr a team=one
trainer b red x:3 >"$scratch/b2.yaml"
fails 'a conflict of managers' 'conflicts? with "kubectl"' k apply --server-side --field-manager=other -f "$scratch/b2.yaml"
works 'conflicts forced' 'serverside-applied' \
  k apply --server-side --field-manager=other --force-conflicts -f "$scratch/b2.yaml"
works 'diff of nothing' '^same$' bash -c "$kubectl_program diff -f $scratch/b2.yaml --server-side --field-manager=other && echo same"

k create namespace gone >/dev/null
sed 's/namespace: default/namespace: gone/' "$scratch/a.yaml" | k apply -f - >/dev/null
works 'a namespace goes with them' 'deleted' k delete namespace gone --timeout=30s
k create serviceaccount viewer >/dev/null
k create role tr --verb=get,list --resource=trainers.ml.example.com >/dev/null
k create rolebinding tr --role=tr --serviceaccount=default:viewer >/dev/null
works 'rights to read' '^yes$' k auth can-i list trainers.ml.example.com --as system:serviceaccount:default:viewer
fails 'no rights to write' '^no' k auth can-i create trainers.ml.example.com --as system:serviceaccount:default:viewer
uid=$(k get tr a -o jsonpath='{.metadata.uid}')
printf '{apiVersion: v1, kind: Secret, metadata: {name: owned, ownerReferences: [{apiVersion: ml.example.com/v1, kind: Trainer, name: a, uid: %s}]}}\n' "$uid" |
  k create -f - >/dev/null
works 'delete one' 'deleted' k delete tr a
k wait --for=delete secret/owned --timeout=30s >/dev/null 2>&1 || true
fails 'what it owned goes' 'not found' k get secret owned
works 'delete the definition' 'deleted' k delete crd trainers.ml.example.com --timeout=30s
fails 'the kind is gone' "could not find the requested resource|doesn't have a resource type" k get trainers
