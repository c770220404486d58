# shellcheck shell=bash
# How scripts install what they need; sourced by them. A script says where its stamps are: `stamps=FOLDER`.

say() { echo "$(basename "$0" .sh): $*" >&2; }

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "cannot install system packages without root or sudo; wanted: $*"
    exit 1
  fi
}

updated=
# Images of containers come without the lists of packages. A lock that somebody else holds is waited for.
package_lists() {
  if ! command -v apt-get >/dev/null; then
    say "please install: $*"
    exit 1
  fi
  if [[ -z $updated ]]; then
    as_root apt-get -o DPkg::Lock::Timeout=300 -qq update
    updated=yes
  fi
}

system_install() {
  say "installing $*"
  package_lists "$@"
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 -qq -y --no-install-recommends install "$@" >/dev/null
}

# A stamp says for which files and which interpreter something was installed; written last, so that a run that was
# interrupted is done again.
stamp_of() { cat "$@" | sha256sum | cut -d' ' -f1; }
# shellcheck disable=SC2154 # the folder is that of the script
is_stamped() { [[ -f $stamps/$1.stamp && $(<"$stamps/$1.stamp") == "$2" ]]; }
# shellcheck disable=SC2154 # as above
put_stamp() { echo "$2" >"$stamps/$1.stamp"; }

python_with_venv() {
  if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
    system_install python3 python3-venv
  fi
}

node_is_new_enough() {
  command -v node >/dev/null && node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))'
}

node_with_npm() {
  if ! node_is_new_enough || ! command -v npm >/dev/null; then
    system_install nodejs npm
    if ! node_is_new_enough; then
      say "Node.js 20 or newer is needed; the system has $(node --version)"
      exit 1
    fi
  fi
}
