# Sourced by the shell scripts of this folder: where things are, and how they speak.
# Everything a script downloads or builds to keep stands outside the tree, under TESSERA_CACHE.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export TESSERA_CACHE=${TESSERA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tessera}
export CCACHE_DIR=${CCACHE_DIR:-$TESSERA_CACHE/ccache}
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1  # another clone of the tree hits the same cache
if [ -n "${CPATH:-}${CPLUS_INCLUDE_PATH:-}" ]; then
  printf 'note: CPATH or CPLUS_INCLUDE_PATH is set: the build may not use the system headers\n' >&2
fi

say() { printf '== %s\n' "$*" >&2; }
fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# run_logged LOG COMMAND...: keeps the output in LOG and shows its tail when the command fails.
run_logged() {
  local log=$1 rc=0
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  if [ "$rc" -ne 0 ]; then
    tail -n 40 "$log" >&2
    printf '%s: failed with %s: %s (whole output: %s)\n' "${0##*/}" "$rc" "$*" "$log" >&2
  fi
  return "$rc"
}
