#!/bin/sh
# Applies the webhook configurations with the CA of the certificate that the server has. From then
# on every new pod goes through podgate. To undo it at once: deploy/break-glass.sh.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

ca=$(kubectl --namespace security-system get secret webhook-tls --output 'jsonpath={.data.ca\.crt}')
if [ -z "$ca" ]; then
    echo "the Secret security-system/webhook-tls has no ca.crt: kube-apiserver could not verify the server" >&2
    exit 1
fi
# A webhook without its CA would refuse every pod: all of them have it, or nothing is applied.
configurations=$(
    kubectl kustomize "$here/registration" | awk -v ca="$ca" '
        { print }
        /clientConfig:/ { webhooks++ }
        /^(- |  )clientConfig:$/ { print "    caBundle: " ca; authorities++ }
        END { exit !webhooks || webhooks != authorities }'
) || {
    echo "cannot put the CA into every webhook of $here/registration: nothing was applied" >&2
    exit 1
}
echo "$configurations" | kubectl apply -f -
