#!/usr/bin/env bash
# Two schedulers as processes of their own: one leads, and when it is killed while gangs come in, the other binds the rest. One
# that ends in order gives the Lease up. A configuration is taken over while it runs, a bad one is not.
. "$(dirname "$0")/kubectl_lib.sh"
[ -z "${TESSERA_E2E_KUBECONFIG:-}" ] || skip "needs a cluster of its own, without a scheduler"
schedulers=()
finish_all() {
  local rc=$?
  set +e
  for pid in "${schedulers[@]}"; do kill -9 "$pid" 2>/dev/null; done
  (exit "$rc")
  finish
}
trap finish_all EXIT
start_cluster --no-scheduler

works 'its account, its rights and its Lease' 'lease.coordination.k8s.io/tessera-scheduler created' k apply -f "$repo/config/rbac/scheduler.yaml"
token=$(k create token tessera-scheduler -n tessera-system --duration=20m)
k config view --raw --minify -o json >"$scratch/admin.json"
python3 - "$scratch/admin.json" "$token" "$scratch/account" <<'P'
import json, sys
config = json.load(open(sys.argv[1]))
config["users"][0]["user"] = {"token": sys.argv[2]}
json.dump(config, open(sys.argv[3], "w"))
P

# scheduler NAME [FLAG...]: starts one, as that account; its process is $started.
scheduler() {
  local name=$1
  shift
  "$TESSERA" scheduler --verbose --kubeconfig "$scratch/account" --lease-namespace tessera-system "$@" >"$scratch/$name.log" 2>&1 &
  started=$!
  schedulers+=("$started")
}
# soon NAME REGEX COMMAND...: works, within half a minute.
soon() {
  local regex=$2 tries=0
  until run_to_file 0 "${@:3}" && grep -qE -- "$regex" "$scratch/got"; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || break
    sleep 0.5
  done
  works "$@"
}
holder() { k -n tessera-system get lease tessera-scheduler -o 'jsonpath=[{.spec.holderIdentity}]'; }
bound() { k get pods -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c . || true; }

scheduler one
one=$started
soon 'the first one leads' '^\[.+\]$' holder
first=$(holder)
works 'kubectl shows who' "^tessera-scheduler +${first:1:8}" k -n tessera-system get lease
scheduler two
soon 'the second one stands by' 'standing by leader=' cat "$scratch/two.log"

gangs() {
  local g m
  for g in $(seq "$1" "$2"); do
    printf -- '---\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g%s}\nspec: {schedulingPolicy: {gang: {minCount: 3}}}\n' "$g"
    for m in 0 1 2; do
      printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: g%s-%s}\nspec: {schedulerName: tessera, schedulingGroup: {podGroupName: g%s}, containers: [{name: c, image: example.com/a:1, resources: {limits: {nvidia.com/gpu: 1}}}]}\n' "$g" "$m" "$g"
    done
  done
}
gangs 1 4 | k apply -f - >/dev/null &
applying=$!
until [ "$(bound)" -ge 3 ]; do sleep 0.1; done
kill -9 "$one"
wait "$applying"
gangs 5 8 | k apply -f - >/dev/null
soon 'what the killed one has left is bound by the other' '^24$' bound
works 'which leads now' 'leading lease=tessera-system/tessera-scheduler' cat "$scratch/two.log"
lacks 'and the Lease says so' "^\\$first\$" holder
uses() {
  k get pods -o 'jsonpath={range .items[*]}{.spec.nodeName}/{.metadata.annotations.tessera\.dev/gpus}{"\n"}{end}' | sort | uniq -d
}
gives 'no GPU is given twice' '' uses
two=$started
kill "$two"
wait "$two" || true
gives 'one that ends in order gives the Lease up' '[]' holder

cat >"$scratch/config.yaml" <<'YAML'
apiVersion: tessera.dev/v1alpha1
kind: SchedulerConfig
schedulerNames: [tessera, volcano]
YAML
k create configmap -n tessera-system tessera-scheduler --from-file=config.yaml="$scratch/config.yaml" >/dev/null
scheduler three --config-map tessera-system/tessera-scheduler
soon 'one with a configuration leads at once' 'leading lease' cat "$scratch/three.log"
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: v}\nspec: {schedulerName: volcano, containers: [{name: c, image: example.com/a:1}]}\n' | k apply -f - >/dev/null
works 'and serves the names in it' 'condition met' k wait pod/v --for=condition=PodScheduled --timeout=20s
k patch configmap -n tessera-system tessera-scheduler --type=merge -p '{"data":{"config.yaml":"apiVersion: tessera.dev/v1alpha1\nkind: SchedulerConfig\npolicy: best\n"}}' >/dev/null
soon 'a bad one is told at the object' 'ConfigRefused.*policy' k get events -n tessera-system
k patch configmap -n tessera-system tessera-scheduler --type=merge -p '{"data":{"config.yaml":"apiVersion: tessera.dev/v1alpha1\nkind: SchedulerConfig\nschedulerNames: [tessera, volcano]\npolicy: bestfit\n"}}' >/dev/null
soon 'a good one is taken over' 'configuration taken over' cat "$scratch/three.log"
# Whoever has to make room goes by eviction.
k create priorityclass high --value=100 >/dev/null
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: high-%s}\nspec: {schedulerName: tessera, priorityClassName: high, containers: [{name: c, image: example.com/a:1, resources: {limits: {nvidia.com/gpu: 8}}}]}\n---\n' 1 2 3 | k apply -f - >/dev/null
works 'pods of high priority get their places' 'condition met' k wait pod/high-1 pod/high-2 pod/high-3 --for=condition=PodScheduled --timeout=60s
works 'and others have made room' 'Preempted' k get events
lacks 'it lacks no right that it asks for' 'forbidden' cat "$scratch/one.log" "$scratch/two.log" "$scratch/three.log"
fails 'and has no other' '^no' k auth can-i get secrets --as=system:serviceaccount:tessera-system:tessera-scheduler -n default
fails 'a bad file ends it' 'line 3: policy' "$TESSERA" scheduler --kubeconfig "$KUBECONFIG" --config <(printf 'apiVersion: tessera.dev/v1alpha1\nkind: SchedulerConfig\npolicy: best\n')
fails 'two sources are one too many' 'give one of them' "$TESSERA" scheduler --config a --config-map b/c
fails 'a ConfigMap has a namespace' 'NAMESPACE/NAME' "$TESSERA" scheduler --config-map b
fails 'flags beside a configuration are refused' 'belong into it' "$TESSERA" scheduler --config a --policy bestfit
