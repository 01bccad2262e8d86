#!/bin/sh
# Installs podgate on the cluster that kubectl points at: certificate, server, and last the webhook
# configurations, so that at no moment pods wait for a server that is not there. Run it again at
# any time; a certificate that is there stays.
#
#   deploy/install.sh PODGATE [KUSTOMIZATION]     the binary makes the certificate; deploy by default
set -eu

podgate=$1
here=$(cd "$(dirname "$0")" && pwd)
kustomization=${2:-$here}
certs=$here/../certs

if ! kubectl --namespace security-system get secret webhook-tls >/dev/null 2>&1; then
    kubectl apply -f "$here/base/namespace.yaml"
    [ -f "$certs/tls.crt" ] || "$podgate" certs --dir "$certs"
    kubectl --namespace security-system create secret generic webhook-tls --type=kubernetes.io/tls \
        --from-file=tls.crt="$certs/tls.crt" --from-file=tls.key="$certs/tls.key" --from-file=ca.crt="$certs/ca.crt"
fi
kubectl apply -k "$kustomization"
kubectl --namespace security-system rollout status deployment/webhook-server --timeout=180s
"$here/register.sh"
