# Read by mk/run.sh: the manifest of what was built, and the release made of
# it. "$@": the manifests and maps, as every tool takes them.
# shellcheck shell=sh

# Does $1, the setting $2, name a version?
version() {
	case $1 in
	v[0-9]|v[0-9][0-9]|v[0-9][0-9][0-9]|v[0-9][0-9][0-9][0-9]) ;;
	*) echo "model-rebuild: $2 is \"$1\": wanted v and 1 to 4 digits" >&2
	   exit 2 ;;
	esac
}

# manifests/model_names_v22.json, and multipart.json anew
manifest() {
	mkdir -p manifests ready-for-resources
	names=manifests/model_names_$MANIFEST_VERSION.json
	manifest-gen -r results ${WITH_UNBUILT:+-a} ${WITH_DIGESTS:+-d} "$@" \
	    -o "$names" &&
	    manifest-gen -r results -aqM "$@" \
	    -o ready-for-resources/multipart.json &&
	    echo "$names: models: $(ids "$names" | wc -l | tr -d ' ')"
}

# the ids of a manifest that manifest-gen wrote
ids() { sed -n 's/^      "id": "\([^"]*\)",*$/\1/p' "$1"; }

# nothing in the manifest may be stale: what failed above may have been
current() {
	# shellcheck disable=SC2046 # ids are words
	graph "$@" $(ids "$names" | sed 's|^|ready/|') \
	    >.state/release.mk || return
	stale=$(sed -n 's/^FETCH :=//p; s/^COMPILE :=//p; s/^READY :=//p' \
	    .state/release.mk | tr -s ' ' '\n' | sort -u | tr '\n' ' ')
	[ -z "${stale# }" ] || {
		echo "release: stale, make why/ID tells why: ${stale# }"
		return 1
	}
}

# release/v23; the models are made already
release() {
	folder=release/$RELEASE_VERSION
	released=model_names_$RELEASE_VERSION.json
	table=$ROOT/catalog/reconcile_$RELEASE_VERSION.json
	[ -e "$table" ] || table=
	manifest "$@" || return
	current "$@" || return
	mkdir -p source-maps
	release-build -r results -i .state/identity.json -l "$HOST_LIMIT" \
	    -s "$SUFFIX" -v "$RELEASE_VERSION" ${table:+-t "$table"} \
	    -k "source-maps/model_id_namespace_$RELEASE_VERSION.json" \
	    "$names" || return
	(cd "$folder" && sha-verify -q SHA256SUMS) || return
	cp "$folder/$released" ".state/$released" &&
	    mv ".state/$released" "manifests/$released" || return
	echo "$folder: every file holds"
	for clone in $RESOURCES; do
		release-publish -c -C "$clone" "$folder" || return
	done
}
