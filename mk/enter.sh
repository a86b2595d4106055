#!/bin/sh
# Enters the workspace that WORKSPACE names and runs GOALS there.
# Environment: ROOT, WORKSPACE, GOALS, DRY, MAKE, MAKEFLAGS.
set -euf

die() { echo "model-rebuild: $*" >&2; exit 2; }

case " $GOALS " in
*" init "*)
	[ "$GOALS" = init ] || die "init: wanted alone, got: $GOALS"
	if [ ! -d "$WORKSPACE" ]; then
		mkdir -- "$WORKSPACE" 2>/dev/null ||
		    die "$WORKSPACE: cannot be made: is its disk mounted?"
	fi ;;
esac
cd -- "$WORKSPACE" 2>/dev/null ||
    die "$WORKSPACE: no such folder: is its disk mounted? else: make init"
[ "$GOALS" = init ] || [ -e .model-rebuild ] || [ "$(pwd -P)" = \
    "$(cd -- "$ROOT" && pwd -P)" ] ||
    die "$WORKSPACE: not a workspace: make init WORKSPACE='$WORKSPACE'"

PATH=$ROOT/build/bin:$PATH
MK=$ROOT/mk
export PATH MK
exec "${MAKE:-make}" -f "$MK/run.mk" run
