#!/usr/bin/env bash
# Does a stranger with a minimal Debian get as far as the README says? Makes one in a temporary folder, with cargo,
# rustc, gcc, make and ca-certificates and nothing else, gives it the committed tree, and runs make there. Debian's
# Rust has neither rustfmt nor clippy, so their checks are left out.
#
#   scripts/fresh.sh                 make demo, then make test
#   scripts/fresh.sh demo            only that
#   FRESH_SUITE=sid scripts/fresh.sh another release than the current stable one
#   FRESH_KEEP=yes scripts/fresh.sh  leave the folder for a look
#
# What the machine says about proxies, certificates and package indexes is handed on: environment variables, and the
# configuration of apt, pip, npm and cargo as far as there is any.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
suite=${FRESH_SUITE:-trixie}

say() { echo "fresh: $*" >&2; }

if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null || { say "needs root, or sudo"; exit 1; }
  exec sudo --preserve-env scripts/fresh.sh "$@"
fi

# The mirror that this machine uses itself, if it is a Debian.
mirror() {
  if [[ -n ${FRESH_MIRROR:-} ]]; then
    echo "$FRESH_MIRROR"
  else
    # shellcheck disable=SC2016 # apt's own placeholders
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' 2>/dev/null | sed -n 's/^Debian Debian //p' | sort -u | head -n 1
  fi
}

# Variables that say how to reach package indexes, as NAME=VALUE.
handed_on() {
  env | grep -E '^((https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY|(SSL|REQUESTS|CURL|NODE_EXTRA)_[A-Z_]*(CERT|CA)[A-Z_]*|PIP_[A-Z_]+|(NPM_CONFIG|npm_config)_[A-Za-z_]+|CARGO_(HTTP|NET|REGISTR|SOURCE|BUILD_JOBS)[A-Z_]*)=' || true
}

# copy FILE TO: if there is one.
copy() {
  if [[ -f $1 ]]; then install -D -m 644 "$1" "$root$2"; fi
}

make_root() {
  local mirror
  mirror=$(mirror)
  [[ -n $mirror ]] || { say "no Debian mirror is known here; set FRESH_MIRROR"; exit 1; }
  if ! command -v debootstrap >/dev/null; then
    say "installing debootstrap"
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install debootstrap >/dev/null
  fi
  say "a minimal Debian $suite in $root"
  if ! debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror" >"$work/debootstrap.log" 2>&1; then
    tail -n 20 "$work/debootstrap.log" >&2
    exit 1
  fi
}

configure_root() {
  local file
  copy /etc/resolv.conf /etc/resolv.conf
  copy /etc/hosts /etc/hosts
  copy /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
  copy /etc/pip.conf /etc/pip.conf
  copy "$HOME/.config/pip/pip.conf" /root/.config/pip/pip.conf
  copy "$HOME/.pip/pip.conf" /root/.pip/pip.conf
  copy "$HOME/.npmrc" /root/.npmrc
  copy "${CARGO_HOME:-$HOME/.cargo}/config.toml" /root/.cargo/config.toml
  # Only how apt fetches, not what other packages have it do.
  apt-config dump Acquire >"$root/etc/apt/apt.conf.d/99-as-outside" 2>/dev/null || true
  mkdir -p "$root/src"
  git archive HEAD | tar -x -C "$root/src"
  # A variable may name a file or a folder; it is put where the variable says.
  handed_on | while IFS='=' read -r _ file; do
    if [[ $file == /* && -e $file && ! -e $root$file ]]; then
      mkdir -p "$root$(dirname "$file")"
      cp -rL "$file" "$root$file"
    fi
  done
}

# Runs in the new Debian, with an environment of its own.
there() {
  local environment
  mapfile -t environment < <(handed_on)
  chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    TERM="${TERM:-dumb}" "${environment[@]}" "$@"
}

# Runs inside namespaces of its own: mounts and processes are gone with it, whatever happens.
inside() {
  root=$1
  shift
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || true
  mount --rbind /dev "$root/dev"
  say "installing cargo, gcc, make and rustc"
  there apt-get -qq update
  there env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install cargo gcc libc6-dev make rustc >/dev/null
  there sh -c 'rustc --version; cargo --version; gcc --version | head -n 1; make --version | head -n 1'
  for target in "$@"; do
    say "make $target"
    there make -C /src "$target"
    say "make $target: passed after $SECONDS s"
  done
}

if [[ ${1:-} == --inside ]]; then
  shift
  inside "$@"
  exit
fi

git rev-parse --verify --quiet HEAD >/dev/null || { say "nothing is committed yet"; exit 1; }
[[ -z $(git status --porcelain) ]] || say "what is not committed is left out"
targets=("$@")
[[ ${#targets[@]} != 0 ]] || targets=(demo test)

work=$(mktemp -d)
root=$work/root
clean() {
  if [[ -n ${FRESH_KEEP:-} ]]; then
    say "left in $root"
  else
    # Nothing of the machine is mounted in it here; one file system all the same.
    rm -rf --one-file-system "$work"
  fi
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

make_root
configure_root
unshare --mount --pid --fork --kill-child scripts/fresh.sh --inside "$root" "${targets[@]}"
say "passed: ${targets[*]}"
