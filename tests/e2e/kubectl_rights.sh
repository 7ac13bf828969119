#!/usr/bin/env bash
# A real kubectl asks who it is and what it may, acts as others, makes tokens and lives within the rights of one.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster
works 'create namespace' 'created' k create namespace work
works 'whoami' 'kubernetes-admin' k auth whoami
works 'the admin may all' '^yes$' k auth can-i '*' '*'
works 'roles of a new cluster' '^system:basic-user ' k get clusterroles
works 'aggregated roles are written out' '"list"' \
  k get clusterrole admin -o 'jsonpath={.rules[?(@.resources[0]=="pods/attach")].verbs}'

# --- acting as others
fails 'others may nothing' 'User "jane" cannot list resource "pods" in API group "" in the namespace "work"' \
  k get pods -n work --as jane
works 'bind a role' 'created' k create rolebinding jane --clusterrole=view --user=jane -n work
works 'and it holds' 'No resources found' k get pods -n work --as jane
fails 'in its namespace only' 'forbidden' k get pods -n default --as jane
works 'can-i yes' '^yes' k auth can-i list pods -n work --as jane
fails 'can-i no' '^no' k auth can-i delete pods -n work --as jane
works 'can-i --list' 'pods.*get list watch' k auth can-i --list -n work --as jane
works 'whoami as another' 'bob' k auth whoami --as bob --as-group dev --as-uid 7
works 'groups of whoami' 'dev' k auth whoami --as bob --as-group dev
works 'a role that writes bindings' 'created' \
  k create clusterrole maker --verb=create,get --resource=clusterrolebindings.rbac.authorization.k8s.io
works 'and bind it' 'created' k create clusterrolebinding maker --clusterrole=maker --group=maker
fails 'nobody grants more than they hold' 'attempting to grant RBAC permissions not currently held' \
  k create clusterrolebinding x --clusterrole=cluster-admin --user=jane --as jane --as-group=maker
works 'reconcile' 'reconciled|unchanged' k auth reconcile -f <(k get clusterrole view -o yaml)

# --- tokens of service accounts
works 'service account' 'created' k create serviceaccount bot -n work
works 'its role' 'created' k create rolebinding bot --clusterrole=edit --serviceaccount=work:bot -n work
token=$(k create token bot -n work --duration=20m)
fails 'a token needs ten minutes' 'may not specify a duration less than 10 minutes' \
  k create token bot -n work --duration=1m
k config view --raw --minify -o json >"$scratch/admin.json"
cat >"$scratch/bot.py" <<'P'
import json, sys
config = json.load(open(sys.argv[1]))
config["users"][0]["user"] = {"token": sys.argv[2]}
json.dump(config, open(sys.argv[3], "w"))
P
python3 "$scratch/bot.py" "$scratch/admin.json" "$token" "$scratch/bot.json"
bot() { KUBECONFIG=$scratch/bot.json k "$@"; }
works 'whoami by token' 'system:serviceaccount:work:bot' bot auth whoami
works 'it works in its namespace' 'created' bot create configmap c -n work --from-literal=a=1
works 'and reads there' '^c ' bot get configmaps -n work
fails 'but not elsewhere' 'forbidden: User "system:serviceaccount:work:bot" cannot list resource "configmaps"' \
  bot get configmaps -n default
fails 'nor on the cluster' 'cannot list resource "nodes" in API group "" at the cluster scope' bot get nodes
works 'discovery is open to it' '^pods ' bot api-resources
works 'delete the account' 'deleted' k delete serviceaccount bot -n work
fails 'and its token ends' 'Unauthorized|must be logged in' bot get configmaps -n work
if [ -z "${TESSERA_E2E_KUBECONFIG:-}" ]; then
  works 'the audit log tells who did what' '"impersonatedUser":.*"username":"jane"' cat "$scratch/data/audit.log"
  lacks 'and no token' "$token" cat "$scratch/data/audit.log"
  gives 'only its owner reads it' 600 stat -c %a "$scratch/data/audit.log"
  gives 'nor the token key' 600 stat -c %a "$scratch/data/pki/sa.key"
fi
