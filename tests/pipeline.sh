# Sourced after lib.sh: an upstream, a device root whose compiler is a quick
# deterministic stand-in, and a workspace in $W.
# shellcheck shell=sh source=tests/lib.sh disable=SC2154 # root is lib.sh's
up=$T/up device=$T/device
W=${W:-$T/ws}

# the compile script of a device root: one small pickle made of its sources
standin() {
	mkdir -p "$device/selfdrive/modeld" "$device/tinygrad_repo/tinygrad"
	echo "rev = 1" >"$device/tinygrad_repo/tinygrad/__init__.py"
	cat >"$device/selfdrive/modeld/compile_modeld.py" <<-'EOF'
	set -eu
	log=$(dirname "$0")/../../calls
	words= out= version= sum=
	while [ $# -gt 0 ]; do
		case $1 in
		--output) out=$2; shift ;;
		--behavior-version) version=$2; shift ;;
		--*-onnx) sum="$sum $(sha256sum <"$2" | cut -c1-64)"; shift ;;
		esac
		shift
	done
	echo "start $out" >>"$log"
	[ ! -e "$(dirname "$log")/fail" ] || {
		echo "the stand-in was told to fail" >&2
		exit 1
	}
	sleep "$(cat "$(dirname "$log")/pause" 2>/dev/null || echo 0)"
	text=$(printf '%-4096s' "$version$sum")
	printf '\200\004X\000\020\000\000%s.' "$text" >"$out"
	echo "end $out" >>"$log"
	EOF
	# what stands for Python: a validation passes unless a file says why not
	cat >"$device/python3" <<-'EOF'
	#!/bin/sh
	set -eu
	case $1 in
	*/validate_modeld.py) ;;
	*) exec /bin/sh "$@" ;;
	esac
	why=$(dirname "$0")/unsound id='' version='' result=''
	while [ "$1" != -- ]; do
		case $1 in
		--id) id=$2 ;;
		--behavior-version) version=$2 ;;
		--result) result=$2 ;;
		esac
		shift
	done
	echo "validate $id" >>"$(dirname "$0")/calls"
	status=passed
	[ ! -e "$why" ] || status=failed
	{ printf '{\n  "id": "%s",\n  "status": "%s",\n' "$id" "$status"
	printf '  "version": "%s",\n  "sha256": "%s"' "$version" \
	    "$(sha256sum <"$2" | cut -c1-64)"
	[ $status = passed ] || printf ',\n  "error": "%s"' "$(cat "$why")"
	printf '\n}\n'; } >"$result"
	[ $status = passed ] || { cat "$why" >&2; exit 1; }
	EOF
	chmod 755 "$device/python3"
	: >"$device/calls"
}

# how many compiles have started since the file was last emptied
compiles() { grep -c ^start "$device/calls" || :; }

# upstream, stand-in and an empty workspace; mk GOAL... then runs make there
pipeline_up() {
	sh "$root/tests/fixtures/upstream.sh" "$up"
	standin
	cp "$up/map.json" "$up/names.json" "$T/"
	MR_DEVICE_ROOT=$device MR_PYTHON=$device/python3
	export MR_DEVICE_ROOT MR_PYTHON
	mk init >/dev/null || exit 2
	cat >"$W/config.mk" <<-EOF
	REMOTE_URL ?= file://$up/upstream.git
	SOURCE_MAPS ?= ../map.json
	BASE_MANIFEST ?= $T/names.json
	EXTRA_MANIFEST ?=
	EOF
}
mk() { make -C "$root" --no-print-directory WORKSPACE="$W" "$@"; }

# the digests of all products of the workspace
digests() { (cd "$W" && sha256sum compiled/*.pkl ready-for-resources/* onnx/*/*.onnx); }
