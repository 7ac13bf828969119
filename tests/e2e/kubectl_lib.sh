# Sourced by kubectl_*.sh: starts `tessera up` on a temporary folder, drives it with a real kubectl, and counts.
#
#   TESSERA                 the program (build/dev/tessera)
#   TESSERA_E2E_KUBECONFIG  tests a server that runs already, instead of starting one
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TESSERA=${TESSERA:-$repo/build/dev/tessera}
scratch=$(mktemp -d)
server_pid=
passed=0 failed=0

finish() {
  local rc=$?
  if [ -n "$server_pid" ]; then
    kill "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
  fi
  rm -rf "$scratch"
  if [ "$rc" -eq 0 ] || [ "$failed" -gt 0 ]; then
    printf '%s passed, %s failed\n' "$passed" "$failed"
  else
    printf '%s passed, %s failed, ended early with status %s\n' "$passed" "$failed" "$rc"
  fi
  [ "$failed" -eq 0 ] || exit 1
}
trap finish EXIT

skip() {
  printf '%s\n' "$*"
  trap - EXIT
  rm -rf "$scratch"
  exit 77
}

kubectl_program=$("$repo/scripts/kubectl" 2>"$scratch/kubectl.log") ||
  skip "no kubectl could be built: $(tail -n 1 "$scratch/kubectl.log")"
export HOME=$scratch KUBECONFIG=${TESSERA_E2E_KUBECONFIG:-$scratch/kubeconfig}

k() { "$kubectl_program" --request-timeout=30s "$@"; }

# start_cluster [FLAG...]: returns when the server says that it is ready.
start_cluster() {
  [ -z "${TESSERA_E2E_KUBECONFIG:-}" ] || return 0
  [ -x "$TESSERA" ] || skip "no tessera at $TESSERA: build it first"
  mkfifo "$scratch/out"
  "$TESSERA" up --nodes 4 --data "$scratch/data" --port 0 --kubeconfig "$KUBECONFIG" "$@" \
    >"$scratch/out" 2>"$scratch/server.log" &
  server_pid=$!
  exec 9<"$scratch/out"
  local line
  while read -r -t 60 line <&9; do
    case $line in
      ready\ *) cat <&9 >/dev/null & return 0 ;;  # drained, so that the server never blocks on it
    esac
  done
  cat "$scratch/server.log"
  printf 'the server did not become ready\n'
  failed=$((failed + 1))
  exit 1
}

report() {
  if [ "$1" = ok ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED %s\n  wanted: %s\n  got:\n%s\n' "$2" "$3" "$(sed 's/^/    /' "$scratch/got" | head -n 30)"
  fi
}

# run_to_file STATUS COMMAND...: true when the command ends well (STATUS 0) or badly (1); its output is in $scratch/got.
run_to_file() {
  local wanted=$1 rc=0
  shift
  "$@" >"$scratch/got" 2>&1 </dev/null || rc=1
  [ -s "$scratch/got" ] || printf '\n' >"$scratch/got" # nothing at all is an empty line to the patterns
  [ "$rc" -eq "$wanted" ]
}

# works NAME REGEX COMMAND...: the command succeeds and its output has the extended REGEX.
works() {
  local name=$1 regex=$2
  shift 2
  if run_to_file 0 "$@" && grep -qE -- "$regex" "$scratch/got"; then report ok; else report no "$name" "$regex"; fi
}

# fails NAME REGEX COMMAND...: the command fails and says so with the extended REGEX.
fails() {
  local name=$1 regex=$2
  shift 2
  if run_to_file 1 "$@" && grep -qE -- "$regex" "$scratch/got"; then report ok; else report no "$name" "failure: $regex"; fi
}

# gives NAME TEXT COMMAND...: the command succeeds and prints exactly TEXT.
gives() {
  local name=$1 text=$2
  shift 2
  if run_to_file 0 "$@" && [ "$(cat "$scratch/got")" = "$text" ]; then report ok; else report no "$name" "$text"; fi
}

# lacks NAME REGEX COMMAND...: the command succeeds and its output has no line with REGEX.
lacks() {
  local name=$1 regex=$2
  shift 2
  if run_to_file 0 "$@" && ! grep -qE -- "$regex" "$scratch/got"; then report ok; else report no "$name" "no $regex"; fi
}
