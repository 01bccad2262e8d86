#!/bin/sh
# Builds kube-apiserver, kube-controller-manager, etcd and kubectl into a folder, and prints the
# folder. Skips what is there; KUBEBUILDER_ASSETS, where it names a folder with the programs, is
# taken as it is.
set -eu

version=v1.37.2
here=$(cd "$(dirname "$0")" && pwd)
folder=${KUBEBUILDER_ASSETS:-$here/../../.cache/controlplane/$version}

is_complete() {
    for program in etcd kube-apiserver kube-controller-manager kubectl; do
        [ -x "$1/$program" ] || return 1
    done
}

if is_complete "$folder"; then
    (cd "$folder" && pwd)
    exit
fi
if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    echo "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, which lacks etcd, kube-apiserver," \
        "kube-controller-manager or kubectl: complete it, or unset the variable to build them" >&2
    exit 2
fi
command -v go >/dev/null || { echo "go is not installed: it builds the control plane" >&2 && exit 2; }

echo "building Kubernetes $version (about five minutes, once)" >&2
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
stamp=
for variable in gitVersion=$version gitMajor=1 gitMinor=37 gitTreeState=clean; do
    stamp="$stamp -X k8s.io/component-base/version.$variable"
done
cd "$here"
GOBIN=$folder CGO_ENABLED=0 GOFLAGS=-mod=readonly go install -trimpath -ldflags "-s -w$stamp" tool >&2
# etcd's main package is called server.
mv "$folder/server" "$folder/etcd"
echo "$folder"
