# Read by mk/run.sh: artifacts run on synthetic frames of both cameras.
# shellcheck shell=sh

# ids of the models that are built
built() {
	find results -name '*_artifact.json' ! -name '.*' |
	    sed 's|^results/||; s|_artifact\.json$||' | sort |
	    while read -r id; do
		[ ! -e "compiled/$id.pkl" ] || echo "$id"
	    done
}

# those that GOALS name, although they passed; `validate`: all that are built
validate() {
	forced=
	for goal in $GOALS; do
		[ "$goal" = validate ] || forced="$forced ${goal#validate/}"
	done
	trials=$forced
	case " $GOALS " in *" validate "*) trials="$trials $(built)" ;; esac
	# shellcheck disable=SC2086 # ids are words
	trials=$(printf '%s\n' $trials | sort -u | tr '\n' ' ')
	# shellcheck disable=SC2086
	set -- $trials
	rc=0
	[ $# -eq 0 ] || "${MAKE:-make}" -kf "$MK/validate.mk" \
	    TRIALS="$trials" FORCED="$forced" || rc=$?
	step -s -r results -c .state/done -n $# -k 0 >.state/summary 2>&1 ||
	    rc=$?
	return "$rc"
}
