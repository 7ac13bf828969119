# Sourced: finds a Go that builds the programs of tests/tools, and builds them.
#
# Debian 12's own Go (1.19) is too old for them, but it can fetch a newer toolchain as a Go module, by the same proxy
# and with the same checksum database as every other module.

go_wanted=1.26.8

# Sets `go` to a Go of at least go_wanted's minor version, fetching one when the machine's is older.
find_go() {
  local have
  "$root/scripts/install" go
  go=$(command -v go || ls -d /usr/lib/go-*/bin/go 2>/dev/null | tail -n 1) || true
  [ -n "$go" ] || fail "no go found: run scripts/install go"
  have=$(cd / && GOTOOLCHAIN=local "$go" env GOVERSION)
  have=${have#go}
  if [ "$(printf '%s\n' "${go_wanted%.*}" "$have" | sort -V | head -n 1)" = "${go_wanted%.*}" ]; then
    export GOTOOLCHAIN=local
    return
  fi
  fetch_go
}

fetch_go() {
  local name dir path=$TESSERA_CACHE/go-bootstrap
  name=golang.org/toolchain@v0.0.1-go$go_wanted.$("$go" env GOOS)-$("$go" env GOARCH)
  dir=$path/pkg/mod/$name
  if [ ! -x "$dir/bin/go" ]; then
    say "fetching Go $go_wanted (this machine has $("$go" env GOVERSION))"
    mkdir -p "$path"
    (cd "$path" && run_logged "$TESSERA_CACHE/go.log" env GOTOOLCHAIN=local GOPATH="$path" GO111MODULE=on \
      GOFLAGS=-modcacherw "$go" mod download -json "$name") || fail "could not fetch Go $go_wanted"
    find "$dir/pkg/tool" -type f -exec chmod +x {} +  # module archives carry no modes
    chmod +x "$dir/bin/"*
  fi
  go=$dir/bin/go
  export GOTOOLCHAIN=local
  unset GOROOT
}

# build_tool FOLDER PACKAGE NAME [GO BUILD FLAG...]: prints the path of the program, built from tests/tools/FOLDER once for
# each content of its go.mod and go.sum.
build_tool() {
  local folder=$root/tests/tools/$1 package=$2 name=$3 key out
  shift 3
  key=$(cat "$folder/go.mod" "$folder/go.sum" <(printf '%s\n' "$go_wanted" "$(uname -m)" "$@") | sha256sum | cut -c1-16)
  out=$TESSERA_CACHE/tools/${folder##*/}-$key/$name
  build_go "$folder" "$out" "$package" "$@"
}

# build_own FOLDER NAME: prints the path of the program in FOLDER/NAME, a folder of the tree with a Go module, built once for
# each content of that folder.
build_own() {
  local folder=$root/$1 name=$2 key
  key=$(cd "$folder" && find . -type f | sort | xargs sha256sum | cat - <(printf '%s\n' "$go_wanted" "$(uname -m)") |
    sha256sum | cut -c1-16)
  build_go "$folder" "$TESSERA_CACHE/tools/clients-$key/$name" "./$name" -ldflags '-s -w'
}

# build_go FOLDER OUT PACKAGE [GO BUILD FLAG...]: builds OUT unless it is there, and prints it.
build_go() {
  local folder=$1 out=$2 package=$3 name=${2##*/}
  shift 3
  if [ ! -x "$out" ]; then
    find_go
    say "building $name (once; kept in ${out%/*})"
    mkdir -p "${out%/*}"
    (cd "$folder" && run_logged "$TESSERA_CACHE/tools/$name.log" env CGO_ENABLED=0 GOWORK=off \
      "$go" build -mod=readonly -trimpath -buildvcs=false "$@" -o "$out.$$" "$package") || fail "$name could not be built"
    mv "$out.$$" "$out"
  fi
  printf '%s\n' "$out"
}

# build_kubernetes NAME: prints the path of a program of Kubernetes, which tells its version as a release does.
build_kubernetes() {
  local version major minor set_var="-X k8s.io/component-base/version.git"
  version=$(awk '{sub(/^require /, "")} $1 == "k8s.io/kubernetes" {print $2; exit}' "$root/tests/tools/kubernetes/go.mod")
  IFS=. read -r major minor _ <<<"${version#v}"
  build_tool kubernetes "k8s.io/kubernetes/cmd/$1" "$1" \
    -ldflags "-s -w ${set_var}Version=$version ${set_var}Major=$major ${set_var}Minor=$minor"
}
