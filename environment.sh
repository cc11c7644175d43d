#!/bin/sh
# environment.sh [VENV EXTRAS [OPTION]...]: whether $PYTHON is new enough; then a virtual environment with this clone and
# its extras, while it says how far it is. Options are pip's. The newest pip takes a third of the time of the one that
# Python 3.11 brings, and what is never imported is not compiled.
set -eu
goal=${GOAL:-run}

# Each of these prints one line over the last one where a person looks on, and lines of their own elsewhere.
stage() { if [ -t 1 ]; then printf '\r\033[K  %s' "$1"; else echo "  $1"; fi; }
step() { if [ -t 1 ]; then printf '\r\033[K  %s' "$1"; fi; }

version=$($PYTHON --version 2>&1) || version="no program that can be started"
case $version in
"Python 3."1[1-9]* | "Python 3."[2-9][0-9]*) ;;
*)
  fix="install Python 3.11 or later, then  make $goal PYTHON=/path/to/python3.11"
  for minor in 14 11 12 13; do
    if "python3.$minor" --version >/dev/null 2>&1; then fix="make $goal PYTHON=python3.$minor"; fi
  done
  echo "make needs Python 3.11 or later, and $PYTHON is: $version" >&2
  echo "Fix: $fix" >&2
  exit 1
  ;;
esac

[ $# -gt 0 ] || exit 0
venv=$1 extras=$2
shift 2

echo "Setting up $venv (once) with $version ..."
started=$(date +%s)
$PYTHON -m venv "$venv"
log=$venv/pip.log
: >"$log"

# pip's own lines go to the log; where it fails, the log is shown.
pip_install() {
  {
    PYTHONUNBUFFERED=1 "$venv/bin/python" -m pip install --disable-pip-version-check --no-compile "$@" 2>>"$log" && code=0 || code=$?
    echo "ended $code"
  } | {
    collected=0
    while read -r word rest; do
      echo "$word $rest" >>"$log"
      case $word in
      Collecting) collected=$((collected + 1)) && step "collecting package $collected, ${rest%%[ <>=!~;]*}" ;;
      Installing) stage "installing $(($(echo "$rest" | tr -cd , | wc -c) + 1)) packages" ;;
      ended) exit "$rest" ;;
      esac
    done
  }
}

stage "getting the newest pip"
if pip_install --upgrade pip "setuptools>=77" && stage "collecting packages" &&
  pip_install -c constraints.txt -e ".[$extras]" "$@"; then
  stage "done after $(($(date +%s) - started)) s; what pip did: $log"
  if [ -t 1 ]; then echo; fi
else
  echo >&2
  cat "$log" >&2
  echo "pip could not install what is needed; its last lines say why. What it did: $log" >&2
  echo "Fix: see to that (a connection, say, or room on the disk), then  make $goal  again." >&2
  exit 1
fi
