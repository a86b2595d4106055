#!/bin/sh
# The main job on this machine: an upstream with three models, a workspace,
# and the same rules that rebuild a whole catalog.
set -eu

"${MAKE:-make}" -j2 tools fixtures
demo=$PWD/build/demo
ws=$demo/workspace
if [ ! -e "$demo/names.json" ]; then
	rm -rf "$demo"
	PATH=$PWD/build/test:$PATH sh tests/fixtures/upstream.sh "$demo"
fi
"${MAKE:-make}" init WORKSPACE="$ws"
cat >"$ws/config.mk" <<EOF
# The demo: three small models out of a repository on this disk.
REMOTE_URL = file://$demo/upstream.git
SOURCE_MAPS = ../map.json
BASE_MANIFEST = ../names.json
EXTRA_MANIFEST =
EOF
"${MAKE:-make}" -j2 all WORKSPACE="$ws"
echo
"${MAKE:-make}" status WORKSPACE="$ws"
cat <<EOF

The workspace is build/demo/workspace:
  compiled/*.pkl          the artifacts, one tinygrad pickle a model
  ready-for-resources/    what would be uploaded
  results/  logs/         a record and a log of every step
Try there: make plan, make why/demo-split, make force/demo-split, make verify.
Your own catalog: make init, edit config.mk, make -j4 all; man man/model-rebuild.7
EOF
