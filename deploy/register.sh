#!/bin/sh
# Applies the webhook configurations with the CA of the certificate that the server has: applied
# without, every pod would be refused until podgate has put it in. From then on every new pod goes
# through podgate. To undo it at once: deploy/break-glass.sh.
#
#   deploy/register.sh [REGISTRATION]     deploy/registration by default
set -eu

registration=${1:-$(dirname "$0")/registration}

ca=$(kubectl --namespace security-system get secret webhook-tls --output 'jsonpath={.data.ca\.crt}')
if [ -z "$ca" ]; then
    echo "the Secret security-system/webhook-tls has no ca.crt: kube-apiserver could not verify the server" >&2
    exit 1
fi
# A webhook without its CA would refuse every pod: all of them have it, or nothing is applied.
configurations=$(
    kubectl kustomize "$registration" | awk -v ca="$ca" '
        { print }
        /clientConfig:/ { webhooks++ }
        /^(- |  )clientConfig:$/ { print "    caBundle: " ca; authorities++ }
        END { exit !webhooks || webhooks != authorities }'
) || {
    echo "cannot put the CA into every webhook of $registration: nothing was applied" >&2
    exit 1
}
echo "$configurations" | kubectl apply -f -
