#!/usr/bin/env bash
# Are the chart, the Kustomize folders, the unit and the Dockerfile under deploy/ right? As far as that can be known without a
# cluster: they are rendered, held against the schemas of several versions of Kubernetes, and against rules of our own. What has to
# be refused or found wrong is tried as well.
#
#   STREAMWELD=target/debug/streamweld scripts/check-deploy.sh    whose settings they have to be
#   scripts/check-deploy.sh --write                               writes deploy/examples/*.yaml anew
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup-deploy.sh

tools=$PWD/target/deploy-tools
tests=deploy/tests
chart=deploy/helm/streamweld
streamweld=${STREAMWELD:-target/debug/streamweld}
export HELM_CACHE_HOME=$tools/helm/cache HELM_CONFIG_HOME=$tools/helm/config HELM_DATA_HOME=$tools/helm/data
export PYTHONDONTWRITEBYTECODE=1
[[ -x $streamweld ]] || { echo "check-deploy: $streamweld is not there; build it, or name one: STREAMWELD=…" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { echo "check-deploy: $*"; }
fail() { echo "check-deploy: $*" >&2; exit 1; }
helm() { "$tools/helm$1/helm" "${@:2}"; }
kustomize() { "$tools/helm4/kubectl" kustomize "$@"; }
python() { "$tools/venv/bin/python" "$@"; }

# The example of a chart that depends on ours, with ours in place.
parent=$work/parent
cp -r deploy/examples/parent-chart "$parent"
mkdir "$parent/charts"
cp -r $chart "$parent/charts/"

# render VERSION FOLDER
render() {
  local values name
  mkdir -p "$2"
  for values in "$chart"/ci/*.yaml; do
    name=$(basename "$values" .yaml)
    helm "$1" lint --quiet --strict $chart --values "$values"
    helm "$1" template r $chart --namespace inference --values "$values" >"$2/helm-$name.yaml"
  done
  # With what parents hand down to all their charts, and with files, which are more for the pod to have.
  helm "$1" lint --quiet --strict "$parent"
  helm "$1" template inference "$parent" --namespace inference --set global.any=value \
    --set streamweld.files.requestKeys.existingSecret=streamweld >"$2/helm-parent.yaml"
}

step "Helm 3, Helm 4 and Kustomize"
render 3 "$work/helm3"
render 4 "$work/well"
diff --ignore-blank-lines --recursive "$work/helm3" "$work/well" || fail "Helm 3 and Helm 4 render differently"
for folder in deploy/kustomize/base deploy/kustomize/overlays/*; do
  kustomize "$folder" >"$work/well/kustomize-$(basename "$folder").yaml"
done
# Before 1.30 there was no sleep action.
mkdir "$work/older"
helm 4 template r $chart --kube-version 1.29 --values $chart/ci/sidecar-vllm.yaml >"$work/older/helm-1.29.yaml"
if grep -q 'sleep: {' "$work/older/helm-1.29.yaml"; then fail "the chart uses the sleep action in Kubernetes 1.29"; fi

cp deploy/examples/httproute.yaml "$work/well/"

if helm 4 template r $chart --kube-version 1.28 --values $chart/ci/sidecar-vllm.yaml >"$work/said" 2>&1; then
  fail "the chart renders for a Kubernetes without native sidecars"
fi
if helm 4 template inference "$parent" --set streamweld.mode=fleet --set 'streamweld.backends[0].url=http://inference' >"$work/said" 2>&1 ||
  ! grep -q 'need mode: sidecar' "$work/said"; then
  fail "the sidecar of a chart in another mode is not refused for that"
fi

step "what is optional"
helm 4 template inference "$parent" --set streamweld.enabled=false >"$work/older/without.yaml"
if grep -q streamweld "$work/older/without.yaml"; then fail "streamweld.enabled=false leaves something of it"; fi
# A rule file that is put into the chart is in the PrometheusRule.
cp -r $chart "$work/with-rules"
echo 'groups: [{name: slot, rules: [{record: up:sum, expr: sum(up)}]}]' >"$work/with-rules/files/rules/slot.yaml"
helm 4 template r "$work/with-rules" --values $chart/ci/fleet-one.yaml --set prometheusRule.enabled=true >"$work/older/with-rules.yaml"
grep -q 'record: up:sum' "$work/older/with-rules.yaml" || fail "files/rules is not in the PrometheusRule"

step "schemas of Kubernetes 1.29, 1.33 and 1.37"
# What it has no schema for it passes over, and says so; crds.mjs looks at these.
"$tools/venv/bin/kubernetes-validate" --strict --quiet -k 1.29 -k 1.33 -k 1.37 "$work"/well/*.yaml "$work"/older/*.yaml >"$work/said" 2>&1 ||
  { cat "$work/said" >&2; fail "not as the schemas have it"; }
if grep -v 'kind \(PodMonitor\|ServiceMonitor\|PrometheusRule\|HTTPRoute\) ' "$work/said" >&2; then fail "what are these?"; fi
node $tests/crds.mjs "$work"/well/*.yaml

step "rules of our own"
python $tests/gate.py "$work"/well/*.yaml "$work/older/helm-1.29.yaml"
python $tests/faults.py "$work/well"
python $tests/refused.py "$tools/helm3/helm" "$tools/helm4/helm"

step "settings of $streamweld"
python $tests/settings.py names "$streamweld" "$work"/well/*.yaml README.md deploy/README.md deploy/Dockerfile deploy/systemd/* \
  $chart/values.yaml $chart/ci/*.yaml
python $tests/settings.py taken "$streamweld" "$work"/well/*.yaml deploy/systemd/streamweld.env
mkdir "$work/wrong"
sed 's/value: 512MiB/value: 5 frogs/' "$work/well/kustomize-base.yaml" >"$work/wrong/value.yaml"
if python $tests/settings.py taken "$streamweld" "$work/wrong/value.yaml" >"$work/said" 2>&1; then fail "the binary takes 5 frogs"; fi
sed 's/STREAMWELD_LISTEN/STREAMWELD_LISTENS/' "$work/well/kustomize-base.yaml" >"$work/wrong/name.yaml"
if python $tests/settings.py names "$streamweld" "$work/wrong/name.yaml" >"$work/said" 2>&1; then fail "STREAMWELD_LISTENS is a setting"; fi

step "alerts and dashboard"
promtool() { PATH=$PATH:$tools env promtool "$@"; }
rules=$chart/files/rules/streamweld.yaml
promtool check rules $rules >"$work/said" || { cat "$work/said" >&2; fail "the rules are not well"; }
promtool test rules $tests/rules.test.yaml >"$work/said" 2>&1 || { cat "$work/said" >&2; fail "an alert does not do what it is for"; }
python $tests/queries.py docs/metrics.md $rules $tests/rules.test.yaml $chart/files/dashboards/streamweld.json
mkdir -p "$work/wrong/helm/streamweld/files/rules" "$work/wrong/tests"
cp $tests/rules.test.yaml "$work/wrong/tests/"
for fault in 's/> 0.01 and/> 0.5 and/' 's/"down|quarantined"/"down"} == 2 or {state="up"/' 's/for: 30m/for: 3h/'; do
  sed "$fault" $rules >"$work/wrong/helm/streamweld/files/rules/streamweld.yaml"
  if promtool test rules "$work/wrong/tests/rules.test.yaml" >/dev/null 2>&1; then fail "the tests of alerts do not notice $fault"; fi
done
for fault in 's/streamweld_ready/streamweld_reddy/' 's/sum(rate(/sum(rate/'; do
  sed "$fault" $chart/files/dashboards/streamweld.json >"$work/wrong/streamweld.json"
  if python $tests/queries.py docs/metrics.md "$work/wrong/streamweld.json" >/dev/null 2>&1; then fail "a dashboard passes with $fault"; fi
done

step "the unit"
mkdir -p "$work/units/streamweld.service.d"
sed "s#^ExecStart=/usr/local/bin/streamweld #ExecStart=$(realpath "$streamweld") #" deploy/systemd/streamweld.service >"$work/units/streamweld.service"
cp deploy/systemd/credentials.conf "$work/units/streamweld.service.d/"
unit_is_well() { # UNIT: what it says of unknown keys does not show in its exit code.
  local said
  said=$(systemd-analyze verify --man=no "$1" 2>&1) && [[ -z $said ]] || { echo "$said" >&2; return 1; }
  systemd-analyze security --offline=true --threshold=15 --no-pager "$1" >"$work/exposure" || { tail -n 1 "$work/exposure" >&2; return 1; }
}
unit_is_well "$work/units/streamweld.service" || fail "the unit is not well"
grace=$(sed -n 's/^STREAMWELD_SHUTDOWN_GRACE=\([0-9]*\)s$/\1/p' deploy/systemd/streamweld.env)
stop=$(sed -n 's/^TimeoutStopSec=\([0-9]*\)$/\1/p' deploy/systemd/streamweld.service)
((stop > grace + 4)) || fail "TimeoutStopSec ($stop) is not above the shutdown grace ($grace) and 4"
for fault in 's/^KillMode=/KilMode=/' 's/^KillMode=.*/KillMode=some/' '/^ProtectSystem=/d; /^CapabilityBoundingSet=/d'; do
  sed "$fault" "$work/units/streamweld.service" >"$work/wrong/streamweld.service"
  if unit_is_well "$work/wrong/streamweld.service" 2>/dev/null; then fail "a unit with a fault is well: $fault"; fi
done

step "the Dockerfile"
"$tools/venv/bin/hadolint" deploy/Dockerfile
if sed 's/^USER .*/USER root/' deploy/Dockerfile | "$tools/venv/bin/hadolint" - >/dev/null; then
  fail "a Dockerfile that ends as root passes"
fi

step "documents and examples"
python $tests/documents.py "$tools/helm4/helm" deploy/README.md "$parent"
mkdir "$work/examples"
for overlay in deploy/kustomize/overlays/*; do
  name=$(basename "$overlay")
  echo "# Written by scripts/check-deploy.sh --write from $overlay, which says why it is so." >"$work/examples/$name.yaml"
  cat "$work/well/kustomize-$name.yaml" >>"$work/examples/$name.yaml"
done
if [[ ${1:-} == --write ]]; then
  cp "$work"/examples/*.yaml deploy/examples/
else
  for example in "$work"/examples/*.yaml; do
    diff "deploy/examples/$(basename "$example")" "$example" ||
      fail "deploy/examples is out of date; run scripts/check-deploy.sh --write and look at what changes"
  done
fi
step "all of it is well"
