#!/bin/sh
# Brings a checkout to where its commands can run: the packages of the lock file, and dist/modekeep.
# Everything after this runs on the Node of those packages, whatever Node the machine has.
set -eu
cd "$(dirname "$0")/.."

node_is_there() {
  [ -x node_modules/.bin/node ] && node_modules/.bin/node --version >/dev/null 2>&1
}

if ! [ node_modules/.package-lock.json -nt package-lock.json ] || ! [ -x node_modules/.bin/node ]; then
  echo 'Installing packages …' >&2
  # No package's script: none is needed, and it would run on the packaged Node, which may not start yet.
  NODE_OPTIONS='--require=./scripts/for-packaged-node.cjs' npm ci --ignore-scripts --no-fund --no-audit --loglevel=error >&2
  # npm 9 removes it along with the package for the other processor.
  for node in node_modules/node-linux-*/bin/node; do
    [ -e node_modules/.bin/node ] || ln -sf "../${node#node_modules/}" node_modules/.bin/node
  done
  touch node_modules/.package-lock.json
fi

# What npm's Node needs of Debian. The tests may install it, as they do what they need themselves (scripts/test/packages.ts).
libraries='libatomic1 libstdc++6'
if [ "${1:-}" = --test ] && ! node_is_there && [ "$(id -u)" = 0 ] && [ "${MODEKEEP_TEST_INSTALL:-}" != no ] &&
  command -v apt-get >/dev/null; then
  echo "Installing packages that Node needs (MODEKEEP_TEST_INSTALL=no forbids it): $libraries" >&2
  answer=
  if [ -t 0 ] && [ -t 2 ]; then
    printf 'Install them? [Y/n] ' >&2
    read -r answer
  fi
  # shellcheck disable=SC2086
  case $answer in [nN]*) ;; *) sh scripts/test/install-packages.sh $libraries ;; esac
fi

if ! node_is_there; then
  echo "The packaged Node does not start here. On Debian: apt-get install $libraries" >&2
  node_modules/.bin/node --version >&2 || true
  exit 1
fi

if [ "${1:-}" = --no-build ]; then exit 0; fi
if [ ! -x dist/modekeep ] || [ -n "$(find src driver scripts/build scripts/build.ts scripts/fetch package.json package-lock.json -newer dist/modekeep -type f | head -n 1)" ]; then
  node_modules/.bin/node scripts/build.ts >&2
fi
