#!/bin/sh
# Installs podgate on the cluster that kubectl points at: first the server, which makes its own
# certificate, and when it answers the webhook configurations, so that at no moment pods wait for a
# server that is not there. Run it again at any time.
#
#   deploy/install.sh [KUSTOMIZATION]     deploy by default
set -eu

here=$(cd "$(dirname "$0")" && pwd)
kustomization=${1:-$here}
registration=$kustomization/registration
[ -d "$registration" ] || registration=$here/registration

kubectl apply -k "$kustomization"
kubectl --namespace security-system rollout status deployment/webhook-server --timeout=180s
"$here/register.sh" "$registration"
