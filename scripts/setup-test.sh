#!/usr/bin/env bash
# Installs what the tests need beside Rust: Python and JavaScript clients, pinned, curl, a browser, a clock that can be set, and
# Redis. Only what is missing, so that a second run takes no time. Packages of the system need root or sudo; the rest stays
# inside the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
clients=target/clients
mkdir -p "$clients"

# shellcheck source=scripts/packages.sh
source scripts/packages.sh
stamps=$clients

lint_tools() {
  # In CI a lint that is left out is a failure, so what can be installed is.
  if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then return; fi
  if command -v rustup >/dev/null; then
    say "installing rustfmt and clippy"
    rustup --quiet component add rustfmt clippy
  elif [[ $(command -v rustc) == /usr/bin/rustc ]]; then
    # The distribution's own toolchain has them as packages of the same version.
    system_install rustfmt rust-clippy
  fi
}

python_clients() {
  local requirements=tests/clients/python/requirements.txt venv=$clients/venv stamp
  python_with_venv
  stamp="$(stamp_of $requirements) $(python3 --version)"
  if is_stamped python "$stamp" && [[ -x $venv/bin/python ]]; then return; fi
  say "installing the Python clients into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement $requirements
  put_stamp python "$stamp"
}

node_clients() {
  local folder=tests/clients/node stamp
  node_with_npm
  stamp="$(stamp_of $folder/package.json $folder/package-lock.json) $(node --version)"
  if is_stamped node "$stamp" && [[ -d $folder/node_modules/openai ]]; then return; fi
  say "installing the JavaScript clients into $folder/node_modules"
  # The clients ask for a newer Node.js than some distributions have, but work with it; the warning is of no use.
  npm --prefix $folder ci --loglevel=error --no-audit --no-fund
  put_stamp node "$stamp"
}

# CHROMIUM can name another one. Any version will do: what is tested is what browsers have in common.
browser() {
  local binary=${CHROMIUM:-chromium}
  if ! command -v "$binary" >/dev/null; then
    if [[ -n ${CHROMIUM:-} ]]; then
      say "CHROMIUM names $CHROMIUM, which is not there"
      exit 1
    fi
    system_install chromium
  fi
}

redis_server() {
  local policy=/usr/sbin/policy-rc.d ours=
  if command -v redis-server >/dev/null && command -v redis-sentinel >/dev/null && command -v redis-cli >/dev/null; then
    return
  fi
  # The tests start servers of their own. The package would start one as a service, now and at each boot; for now
  # Debian asks this file, which a container mostly has already.
  if command -v apt-get >/dev/null && [[ ! -e $policy ]]; then
    ours=yes
    printf '#!/bin/sh\nexit 101\n' | as_root sh -c "cat >$policy && chmod 755 $policy"
    # Also when the installation fails.
    # shellcheck disable=SC2064 # the path of now
    trap "as_root rm -f $policy" EXIT
  fi
  system_install redis-server redis-sentinel redis-tools
  if command -v systemctl >/dev/null; then
    as_root systemctl --quiet disable redis-server redis-sentinel 2>/dev/null || true
  fi
  if [[ -n $ours ]]; then
    as_root rm -f "$policy"
    trap - EXIT
  fi
}

# A clock that tests can set for a process. Its place differs between systems, so the package is asked for and not the file.
settable_clock() {
  if [[ $(uname) != Linux ]] || compgen -G '/usr/lib*/*/faketime/libfaketimeMT.so.1' >/dev/null ||
    compgen -G '/usr/lib*/faketime/libfaketimeMT.so.1' >/dev/null; then
    return
  fi
  system_install libfaketime
}

# `setup-test.sh redis` is for the demonstration, which needs only that.
if [[ ${1:-} == redis ]]; then
  redis_server
  exit
fi
if [[ ${CI:-} == true ]]; then lint_tools; fi
redis_server
settable_clock
command -v curl >/dev/null || system_install curl
command -v openssl >/dev/null || system_install openssl
browser
python_clients
node_clients
