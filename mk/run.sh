#!/bin/sh
# One run: identity, graph, make, summary. The working directory is the
# workspace; settings come from mk/settings.mk by the environment.
set -euf
again=${1-no}; set --	# "locked": this shell holds the lock
release=		# "yes": the run is to end in one

# "$@": the manifests and maps, as every tool takes them
[ -z "$BASE_MANIFEST" ] || set -- "$@" -b "$BASE_MANIFEST"
[ -z "$EXTRA_MANIFEST" ] || set -- "$@" -b "$EXTRA_MANIFEST"
for map in $SOURCE_MAPS; do
	set -- "$@" -m "$map"
done
[ -n "$SOURCE_MAPS" ] || set -- "$@" \
    -m "$ROOT/catalog/model_source_map_v22.json" \
    -m "$ROOT/catalog/model_source_map_v23.json"

# remote-compile with what mk/compile.mk says of the devices
device() {
	remote-compile -a "$ALLOWED_DEVICES" -d "$DENY_DEVICES" \
	    -p "$DEVICE_ROOT" -c "$SSH_CONFIG" -R "$RETRIES" \
	    -P "$RETRY_SECONDS" -t "$SILENT_SECONDS" -D "$DEVICES" "$@"
}

# what the device says of its compiler; the last known one if it is away
identity() {
	rc=0
	device -I >.state/identity.tmp || rc=$?
	[ "$rc" -ne 0 ] || {
		mv .state/identity.tmp .state/identity.json
		return
	}
	[ -z "$release" ] || {
		echo "release: the compiler could not be read:" \
		    "the one that was last known is not enough" >&2
		exit "$rc"
	}
	# a machine that is unfit will not be fit for any model
	[ "$rc" -ne 2 ] || [ "$DEVICES" = local ] || exit 2
	[ -e .state/identity.json ] || return 0
	echo "model-rebuild: the device is away:" \
	    "going by the compiler that was last read" >&2
}

# ends a run, whose summary is written, with status $1
finish() {
	cat .state/summary
	[ -z "$NOTIFY" ] || sh -c "$NOTIFY" <.state/summary ||
	    echo "model-rebuild: NOTIFY failed: $NOTIFY" >&2
	exit "$1"
}

# takes the workspace's lock for the rest of this shell's life
locked() {
	[ "$again" = no ] || return 0
	mkdir -p .state
	exec lock-run .state/lock sh "$MK/run.sh" locked
}

graph() {
	graph-gen -r results -i .state/identity.json -l "$SPLIT_LIMIT" \
	    -z "$PART_SIZE" ${GPU:+-g} "$@"
}

# these read or write by themselves, so they stand alone or with their like
alone=
for goal in $GOALS; do
	case $goal in
	init|status|plan|verify) kind=$goal ;;
	device-status) kind=$goal ;;
	manifest|release) kind=$goal ;;
	validate|validate/*) kind=validate ;;
	why/*|pin/*|cancel/*) kind=${goal%%/*} ;;
	*) kind=run ;;
	esac
	[ "${alone:-$kind}" = "$kind" ] || {
		echo "model-rebuild: $goal: cannot be combined: $GOALS" >&2
		exit 2
	}
	alone=$kind
done
case $DRY$alone in
ninit|npin|ncancel|nmanifest|nrelease|nvalidate)
	echo "model-rebuild: a dry run does nothing for: $GOALS"
	exit ;;
esac

case $GOALS in
init)
	locked
	[ -z "$TRUST" ] || identity
	exec workspace-init -r results -i .state/identity.json ${TRUST:+-t} \
	    "$@" "$ROOT" ;;
status|plan)
	graph -t "$GOALS" "$@"; exit ;;
device-status)
	device -S; exit ;;
verify)
	list=$(mktemp "${TMPDIR:-/tmp}/mr-verify.XXXXXX")
	trap 'rm -f "$list"' EXIT
	rc=0
	graph -t verify "$@" >"$list" || rc=$?
	[ "$rc" -le 1 ] || exit "$rc"
	sha-verify -q "$list" || rc=$?
	[ "$rc" -ne 0 ] || echo "verified: every recorded file holds"
	exit "$rc" ;;
manifest)
	locked
	# shellcheck source=mk/release.sh
	. "$MK/release.sh"
	version "$MANIFEST_VERSION" MANIFEST_VERSION
	manifest "$@"; exit ;;
esac
case " $GOALS" in
*" cancel/"*)
	rc=0
	for goal in $GOALS; do
		device -C "${goal#cancel/}" || rc=$?
	done
	exit "$rc" ;;
*" why/"*)
	# shellcheck disable=SC2086 # goals are words
	graph -t why "$@" $GOALS; exit ;;
*" pin/"*)
	locked
	rc=0
	while [ "${1-}" = -b ]; do shift 2; done	# maps only
	for goal in $GOALS; do
		ref-pin -u "$REMOTE_URL" "$@" "${goal#pin/}" || rc=$?
	done
	exit "$rc" ;;
esac

if [ -n "$DRY" ]; then
	# a dry run writes nothing into the workspace
	GRAPH=$(mktemp "${TMPDIR:-/tmp}/mr-graph.XXXXXX")
	trap 'rm -f "$GRAPH"' EXIT
	export GRAPH
	# shellcheck disable=SC2086
	graph "$@" $GOALS >"$GRAPH"
	# shellcheck disable=SC2086
	"${MAKE:-make}" -kf "$MK/rebuild.mk" $GOALS
	exit
fi

locked
mkdir -p onnx compiled ready-for-resources logs results
# the lock lives as long as any process of a run: what lies here is dead
rm -rf .state/jobs .state/fetch .state/run
# what the compiles of one run tell each other
mkdir .state/run
export MR_RUN=.state/run
: >.state/done
[ "$GOALS" != release ] || {
	# a release is of all that can be built
	release=yes GOALS=all
	# shellcheck source=mk/release.sh
	. "$MK/release.sh"
	version "$MANIFEST_VERSION" MANIFEST_VERSION
	version "$RELEASE_VERSION" RELEASE_VERSION
}
case " $GOALS" in
*" all"*|*" compiled/"*|*" ready/"*|*" force"*) identity ;;
esac
[ "$alone" != validate ] || {
	# shellcheck source=mk/validate.sh
	. "$MK/validate.sh"
	identity
	rc=0
	validate || rc=$?
	finish "$rc"
}
GRAPH=.state/graph.mk
export GRAPH
# shellcheck disable=SC2086
graph "$@" $GOALS >.state/graph.tmp
mv .state/graph.tmp $GRAPH
total=$(sed -n 's/^TOTAL := //p' $GRAPH)
current=$(sed -n 's/^CURRENT := //p' $GRAPH)
rc=0
if [ "$total" -eq 0 ]; then
	echo "$current current, nothing to do" >.state/summary
else
	# shellcheck disable=SC2086
	"${MAKE:-make}" -kf "$MK/rebuild.mk" $GOALS || rc=$?
	step -s -r results -c .state/done -n "$total" -k "$current" \
	    >.state/summary 2>&1 || rc=$?
fi
if [ -n "$release" ]; then
	made=0
	release "$@" >>.state/summary 2>&1 || made=$?
	[ "$made" -eq 0 ] || {
		echo "release: not made, status $made" >>.state/summary
		[ "$rc" -ne 0 ] || rc=$made
	}
fi
finish "$rc"
