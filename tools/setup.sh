#!/bin/sh
# Create .venv from requirements.lock. Needs Python 3.11, 3.12 or 3.13 and a package registry, nothing else.
#
# pip finds the registry and the certificates by its own settings (PIP_INDEX_URL, PIP_CERT, pip.conf);
# uv gets the same ones. Set PYTHON to choose the interpreter.
set -eu
export PIP_DISABLE_PIP_VERSION_CHECK=1
cd "$(dirname "$0")/.."

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }

supported() {
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

find_python() {
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if supported "$candidate"; then echo "$candidate"; return; fi
  done
  {
    echo "error: no Python 3.11, 3.12 or 3.13 (${PYTHON:-python3} is: $("${PYTHON:-python3}" --version 2>&1 || true))"
    echo "hint: install one, for example 'apt-get install python3.11 python3.11-venv' or 'brew install python@3.12',"
    echo "      or name it: make setup PYTHON=/path/to/python3.12"
  } >&2
  return 2
}

make_venv() {
  say "Python: $("$1" --version 2>&1) in .venv"
  if ! "$1" -m venv .venv; then
    echo "error: $1 can't make a virtual environment" >&2
    echo "hint: on Debian and Ubuntu its module is a package of its own: apt-get install python3-venv" >&2
    return 2
  fi
}

# The installer comes from the lock like everything else: its entry, with its hashes.
install_uv() {
  sed -n '/^uv==/,/[^\\]$/p' requirements.lock > .venv/uv.txt
  if .venv/bin/python -m pip install --quiet --require-hashes -r .venv/uv.txt; then return; fi
  echo "error: pip can't reach a package registry" >&2
  echo "hint: check the network, or set PIP_INDEX_URL and PIP_CERT to your mirror and its certificate" >&2
  return 2
}

same_registry() {
  index="${PIP_INDEX_URL:-$(.venv/bin/python -m pip config get global.index-url 2>/dev/null || true)}"
  if [ -n "$index" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"; fi
  certificates="${SSL_CERT_FILE:-${PIP_CERT:-}}"
  if [ -n "$certificates" ]; then export SSL_CERT_FILE="$certificates"; fi
  export UV_SYSTEM_CERTS=1 UV_PYTHON_DOWNLOADS=never UV_NO_CONFIG=1 VIRTUAL_ENV="$PWD/.venv"
  export UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-180}"
}

if ! [ -x .venv/bin/python ] || ! supported .venv/bin/python; then
  python="$(find_python)"
  make_venv "$python"
fi
install_uv
same_registry
say "Packages: $(grep -c '^[a-z0-9].*==' requirements.lock) from requirements.lock"
.venv/bin/uv pip install --quiet --no-deps --compile-bytecode --require-hashes -r requirements.lock
.venv/bin/uv pip install --quiet --no-deps --no-build-isolation --editable .
