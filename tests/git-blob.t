#!/bin/sh
# git-blob: the sources of a commit, out of real repositories.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common git-blob
HOME=$T GIT_CONFIG_NOSYSTEM=1 XDG_CONFIG_HOME=$T
GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.invalid
GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.invalid
export HOME GIT_CONFIG_NOSYSTEM XDG_CONFIG_HOME GIT_AUTHOR_NAME \
    GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
models=selfdrive/modeld/models

# lines REPO COMMIT PATH...: what git itself says, in our form
lines() {
	repo=$1 commit=$2
	shift 2
	for p; do
		git -C "$repo" ls-tree -l "$commit" -- "$p" |
		    awk '{ print $5, $1, $3, $4 }'
	done
}
# tree: lines "mode name text" on standard input -> the tree's id
tree() {
	while read -r mode name text; do
		if [ "$mode" = 160000 ]; then printf '%s commit %s\t%s\n' "$mode" "$text" "$name"
		elif [ "$mode" = 040000 ]; then printf '%s tree %s\t%s\n' "$mode" "$text" "$name"
		else
			printf '%s blob %s\t%s\n' "$mode" \
			    "$(printf %b "$text" | git -C up hash-object -w --stdin)" "$name"
		fi
	done | git -C up mktree
}
# commit PREFIX: that tree under PREFIX (a path, or .) -> a commit, which a
# branch of its name keeps
commit() {
	t=$(tree) p=$1
	while [ "$p" != . ]; do
		t=$(printf '040000 %s %s\n' "${p##*/}" "$t" | tree)
		case $p in */*) p=${p%/*} ;; *) p=. ;; esac
	done
	c=$(git -C up commit-tree -m x "$t")
	git -C up update-ref "refs/heads/b$c" "$c"
	echo "$c"
}
# serve MODE: a server for $T, its URL in $url
serve() {
	python3 "$here/git-http.py" "$T" "$T/port.$1" "$1" 2>/dev/null &
	server=$!
	later $server
	i=0
	until [ -s "port.$1" ] || [ $i -ge 200 ]; do sleep 0.05; i=$((i + 1)); done
	url=http://127.0.0.1:$(cat "port.$1")
}
# quiet TEXT: the last run said nothing on standard error
quiet() { is "$(cat "$err")" '' "$1"; }
# old COMMAND...: with git's old protocol, where a server may refuse ids
old() {
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.version \
	    GIT_CONFIG_VALUE_0=0 run "$@"
}

# a clone as people have one
git init -q up
mkdir -p up/$models up/openpilot
cd up || exit 2
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 5\n' 7 >$models/driving_vision.onnx
echo policy >$models/driving_policy.onnx
echo off >$models/driving_off_policy.onnx
echo big >$models/big_driving_policy.onnx
ln -s driving_vision.onnx $models/big_driving_vision.onnx
ln -s ../selfdrive openpilot/selfdrive
printf '#!/bin/sh\n' >run.sh
chmod +x run.sh
: >empty
printf '[lfs]\n\turl = https://one.example/a.git/info/lfs\n\turl = https://two.example/b.git/info/lfs\n' >.lfsconfig
git add -A
git commit -qm base
base=$(git rev-parse HEAD)
cd .. || exit 2

# ---- called wrongly ----
run git-blob "$base" empty; exits 2 'no -C'
run git-blob -C up; exits 2 'no ref'
run git-blob -C up "$base"; exits 2 'no path'
run git-blob -C up main empty; exits 2 'a branch is no ref'
run git-blob -C up "$(echo "$base" | cut -c1-39)" empty; exits 2 '39 digits'
run git-blob -C up -s triple "$base"; exits 2 'another format'
run git-blob -C up -g "$base" empty; exits 2 '-g without -s'
run git-blob -C up -p -l "$base"; exits 2 'two forms'
run git-blob -C up -p "$base" empty run.sh; exits 2 '-p with two paths'
run git-blob -C up -t 0 "$base" empty; exits 2 '-t 0'
for p in '' / /empty a//b ../up . a/.. 'a b' 'a
b'; do
	run git-blob -C up "$base" "$p"; exits 2 "no path in a tree: '$(echo "$p" | tr '\n' '?')'"
done
for u in --upload-pack=x 'ext::sh -c touch% canary' http://example.invalid/a \
    git://example.invalid/a ftp://127.0.0.1/a 'file:///a
b' http://127.0.0.1.example.invalid/a http://127.0.0.1:1@example.invalid/; do
	run git-blob -C new -u "$u" "$base" empty
	exits 2 "a URL that is refused: $(echo "$u" | tr '\n' '?')"
done
absent canary 'no helper was run'
absent new 'and no store made'
run git-blob -C none "$base" empty
exits 2 'no repository'; says '^git-blob: none: no such repository' 'it is named'
mkdir plain
run git-blob -C plain "$base" empty
exits 2 'a folder that is no repository'; says '^git-blob: plain: not a git repository' 'it is named'
run git-blob -C plain -u up "$base" empty; exits 2 'nor is it made one'
run git-blob -C up/selfdrive "$base" empty; exits 2 'a folder inside a clone'
run git-blob -C away/store -u up "$base" empty; exits 2 'no folder is made above a store'
absent away 'an unplugged disk stays so'
one=1111111111111111111111111111111111111111
run git-blob -C up $one empty
exits 1 'a missing commit'; says "up: commit $one is not there" 'it is named'
run git-blob -C up "$(git -C up rev-parse "$base^{tree}")" empty
exits 1 'a tree is no commit'; says 'is a tree, wanted a commit' 'it says so'

# ---- paths ----
run git-blob -C up "$base" run.sh $models/driving_vision.onnx empty
exits 0 'three paths'; quiet 'good input gets no noise'
is "$(cat "$out")" "$(lines up "$base" run.sh $models/driving_vision.onnx empty)" \
    'path, mode, oid, size as git ls-tree has them, in the order given'
run git-blob -C up "$base" none empty $models openpilot/selfdrive/modeld/models/driving_vision.onnx
exits 1 'some are not there'
is "$(cat "$out")" "$(lines up "$base" empty)" 'the others still come'
says "^git-blob: $base:none: no such file" 'a path that is absent'
says "$models: is a folder, wanted a file" 'a folder'
says 'openpilot/selfdrive/modeld.*no such file' 'a link on the way is not followed'
run git-blob -C up "$base" $models/big_driving_vision.onnx
exits 0 'a link to a file beside it'
is "$(cat "$out")" "$(lines up "$base" $models/driving_vision.onnx)" 'is that file, under its path'
run git-blob -C up -p "$base" $models/big_driving_vision.onnx
same "$out" up/$models/driving_vision.onnx '-p: its bytes'
run git-blob -C up -p "$base" empty; exits 0 '-p: an empty blob'
is "$(wc -c <"$out" | tr -d ' ')" 0 'has no bytes'
run git-blob -C up -p "$base" none; exits 1 '-p: not there'
links=$(commit . <<EOT
120000 up ../x
120000 abs /etc/passwd
120000 gone nothing
120000 chain ok
120000 ok file
120000 blank file 100644 $one 9
120000 line file\n
120000 nul fi\0le
120000 none .
100755 file text
160000 sub $one
EOT
)
run git-blob -C up "$links" up abs gone chain blank line nul none sub ok
exits 1 'bad links and a submodule'
is "$(cat "$out")" "$(lines up "$links" file)" 'only the good link is printed'
is "$(grep -c ': is a symbolic link to' "$err")" 7 'seven links are refused'
says ':chain: is a symbolic link to "ok", which is a symbolic link' 'a link is followed once'
says ':nul: has a NUL' 'a target with a NUL'
says ':sub: is a submodule' 'a submodule'
git-blob -C up "$base" empty >/dev/full 2>"$err"; status=$?
exits 2 'a lost line is status 2'
git-blob -C up -p "$base" run.sh >/dev/full 2>"$err"; status=$?
exits 2 'a lost blob is status 2'
git-blob -C up "$base" empty >&- 2>"$err"; status=$?
exits 2 'closed standard output'
git-blob -C up -p "$base" run.sh >&- 2>"$err"; status=$?
exits 2 'the same for a blob'
mkdir bin
ln -s "$BIN/git-blob" bin/git-blob
for p in valgrind valgrind.bin; do
	if p=$(command -v $p); then ln -s "$p" bin/; fi
done
run env PATH="$T/bin" git-blob -C nogit -u up "$base" empty
exits 2 'no git to fetch with'; says 'cannot start git' 'it says so'
rm -rf nogit

# ---- sources of a model ----
want() { lines up "$2" "$3" | sed "s|^|$1 |"; }
run git-blob -C up -s split "$base"
exits 0 '-s split'; quiet 'no noise'
is "$(cat "$out")" "$(want driving_vision "$base" $models/driving_vision.onnx
    want driving_policy "$base" $models/driving_policy.onnx
    want driving_off_policy "$base" $models/driving_off_policy.onnx)" 'three components'
run git-blob -C up -s supercombo "$base"
exits 1 'no supercombo there'; says 'no driving_supercombo.onnx in .*; a split model is there' 'it says what is'
is "$(cat "$out")" '' 'and prints nothing'
run git-blob -C up -s split -g "$base"
exits 0 '-g: a link to the small model is what the commit says'
says 'big_driving_vision.onnx is a symbolic link to the small model' 'but it is not followed in silence'
is "$(cut -d' ' -f1,2 "$out")" "driving_vision $models/driving_vision.onnx
driving_policy $models/big_driving_policy.onnx" 'components have no prefix'
small=$(printf '100644 driving_vision.onnx v\n100644 driving_policy.onnx p\n' | commit $models)
run git-blob -C up -s split -g "$small"
exits 1 '-g: no big_ file'
says 'no big_driving_vision.onnx in .*; the small model is there' 'is never replaced by the small one'
big=$(printf '100644 big_driving_vision.onnx v\n100644 big_driving_on_policy.onnx p\n' |
    commit frogpilot/tinygrad_modeld/models)
run git-blob -C up -s split -g "$big"; exits 0 'the third folder, an on-policy'
is "$(cut -d' ' -f1,2 "$out")" "driving_vision frogpilot/tinygrad_modeld/models/big_driving_vision.onnx
driving_on_policy frogpilot/tinygrad_modeld/models/big_driving_on_policy.onnx" 'its components'
run git-blob -C up -s split "$big"; exits 1 'only big_ files'
says 'uses_external_gpu' 'it says what may be meant'
run git-blob -C up -s split "$(printf '100644 driving_vision.onnx v\n' | commit $models)"
exits 1 'no policy'; says 'no driving_policy.onnx or driving_on_policy.onnx' 'both names are said'
run git-blob -C up -s split "$(printf '100644 driving_policy.onnx v\n' | commit $models)"
exits 1 'no vision'
a=$(printf '100644 driving_supercombo.onnx first\n' | tree)
b=$(printf '100644 driving_supercombo.onnx second\n' | tree)
for d in modeld selfdrive openpilot/selfdrive; do
	case $d in
	openpilot/*) a=$(printf '040000 selfdrive %s\n' "$a" | tree) ;;
	*) a=$(printf '040000 %s %s\n' "$([ $d = modeld ] && echo models || echo modeld)" "$a" | tree)
	   b=$(printf '040000 %s %s\n' "$([ $d = modeld ] && echo models || echo modeld)" "$b" | tree) ;;
	esac
done
both=$(printf '040000 openpilot %s\n040000 selfdrive %s\n' "$a" "$b" | commit .)
run git-blob -C up -s supercombo "$both"; exits 0 'a model in two folders'
is "$(cut -d' ' -f2 "$out")" openpilot/selfdrive/modeld/models/driving_supercombo.onnx 'the first has it'
run git-blob -C up -s supercombo "$(printf '120000 driving_supercombo.onnx ../../x\n' | commit $models)"
exits 1 'a component that is a bad link'

# ---- chunks: X is driving_supercombo.onnx ----
# chunks N TEXT: of the names and texts on standard input; wanted status
chunks() {
	c=$(while IFS=, read -r name text; do
		printf '100644 driving_supercombo.onnx%s %s\n' "$name" "$text"
	done | commit $models)
	run git-blob -C up -s supercombo "$c"
	exits "$1" "chunks: $2"
}
chunks 0 'NN from 00' <<EOT
.chunk00,aa
.chunk01,b
.chunk02,c
EOT
is "$(awk '{ print $1, $2, $5 }' "$out" | tr '\n' ' ')" \
    "$(for i in 0:2 1:1 2:1; do printf 'driving_supercombo %s/driving_supercombo.onnx.chunk0%s %s ' $models "${i%:*}" "${i#*:}"; done)" \
    'one line each, in order, the same component'
chunks 0 'NNofMM with a manifest' <<EOT
.chunk01of02,a
.chunk02of02,b
.chunkmanifest,2\\n
EOT
i=1
while [ $i -le 120 ]; do
	printf '.chunk%02dof120,a\n' $i
	i=$((i + 1))
done >many
echo '.chunkmanifest,120' >>many
chunks 0 '120 of them' <many
is "$(sed -n '100s/.*chunk\([0-9]*\)of.*/\1/p' "$out")" 100 'in the order of their numbers'
chunks 1 'a hole' <<EOT
.chunk00,a
.chunk02,b
EOT
says 'driving_supercombo.onnx: chunk 01 is not there' 'the hole is named'
chunks 1 'a hole in a count' <<EOT
.chunk01of03,a
.chunk03of03,b
.chunkmanifest,3
EOT
says '02 is wrong' 'the hole is named'
chunks 1 'the last is missing' <<EOT
.chunk01of03,a
.chunk02of03,b
.chunkmanifest,3
EOT
chunks 1 'the manifest says another count' <<EOT
.chunk01of02,a
.chunk02of02,b
.chunkmanifest,3
EOT
says 'chunkmanifest says "3", wanted 2' 'both are named'
chunks 1 'a manifest that is no number' <<EOT
.chunk01of01,a
.chunkmanifest,version
EOT
chunks 1 'no manifest' <<EOT
.chunk01of01,a
EOT
chunks 1 'only a manifest' <<EOT
.chunkmanifest,1
EOT
chunks 1 'two counts' <<EOT
.chunk01of02,a
.chunk02of03,b
.chunkmanifest,2
EOT
chunks 1 'a number twice' <<EOT
.chunk01of02,a
.chunk001of02,b
.chunkmanifest,2
EOT
chunks 1 'three digits without a count' <<EOT
.chunk000,a
EOT
chunks 1 'begins with 02' <<EOT
.chunk02,a
EOT
chunks 1 'another name' <<EOT
.chunk00,a
.chunk01.bak,a
EOT
chunks 1 'whole and in chunks' <<EOT
,whole
.chunk00,a
EOT

# ---- the endpoint and the store ----
# endpoint URL WANTED TEXT: what follows from an origin
endpoint() {
	git -C up config remote.origin.url "$1"
	run git-blob -C up -l "$small"
	is "$(sed -n 's/^endpoint //p' "$out")" "$2" "$3"
}
run git-blob -C up -l "$base"
exits 0 '-l'
is "$(cat "$out")" "endpoint https://two.example/b.git/info/lfs .lfsconfig
store $T/up/.git/lfs" 'from .lfsconfig, where the last value wins'
git -C up config lfs.url https://local.example/x
run git-blob -C up -l "$base"
is "$(sed -n 1p "$out")" 'endpoint https://local.example/x lfs.url' 'a local lfs.url wins over it'
git -C up config --unset lfs.url
run git-blob -C up -l "$small"
is "$(cat "$out")" "store $T/up/.git/lfs" 'no remote, no endpoint'
r='https://h.example/o/r.git/info/lfs remote'
endpoint https://h.example/o/r "$r" 'https'
endpoint https://h.example/o/r.git/ "$r" 'https, .git and a slash'
endpoint https://me:secret@h.example/o/r "$r" 'a password stays out of it'
endpoint https://h.example:8443/o/r 'https://h.example:8443/o/r.git/info/lfs remote' 'a port stays'
endpoint git@h.example:o/r.git "$r" 'scp form'
endpoint h.example:/o/r.git "$r" 'scp form, absolute'
endpoint ssh://git@h.example:22/o/r "$r" 'ssh'
endpoint git://h.example/o/r "$r" 'git'
endpoint 'ssh://git@[::1]:22/o/r' 'https://[::1]/o/r.git/info/lfs remote' 'an IPv6 address'
endpoint 'git@[::1]:o/r' 'https://[::1]/o/r.git/info/lfs remote' 'the same in scp form'
endpoint http://127.0.0.1:81/r 'http://127.0.0.1:81/r.git/info/lfs remote' 'http'
endpoint ftp://h.example/o/r '' 'an unknown kind of URL gives none'
endpoint 'https://h.example/a b' '' 'a blank is refused'
exits 2 'as a setting of this machine'
git -C up config url.https://h.example/.insteadOf gh:
endpoint gh:o/r "$r" 'insteadOf is applied'
run git-blob -C up -u https://other.example/x -l "$small"
is "$(sed -n 1p "$out")" "endpoint $r" '-u does not replace an origin'
git -C up config --unset remote.origin.url
run git-blob -C up -u https://h.example/o/r -l "$small"
is "$(sed -n 1p "$out")" "endpoint $r" '-u is the remote where there is no origin'
# hostile: what is in the commit may not add words or lines to ours
# lfsconfig STATUS TEXT: of the file on standard input
lfsconfig() {
	cat >up/.lfsconfig
	git -C up add .lfsconfig
	git -C up commit -qm hostile
	run git-blob -C up -l "$(git -C up rev-parse HEAD)"
	exits "$1" "$2"
}
lfsconfig 1 'a URL with a line break' <<'EOT'
[lfs]
	url = "https://a.example/\nendpoint https://b.example lfs.url"
EOT
is "$(cat "$out")" "store $T/up/.git/lfs" 'gives no endpoint'
says ':.lfsconfig: the URL has a blank' 'and is named'
lfsconfig 1 'a URL with a blank' <<'EOT'
[lfs]
	url = "https://a.example/ lfs.url"
EOT
lfsconfig 1 'a URL with an escape' <<EOT
[lfs]
	url = "https://a.example/$(printf '\033')[2J"
EOT
lfsconfig 1 'a file that git cannot parse' <<'EOT'
[lfs
EOT
says 'git cannot read it' 'it says so'
printf '[lfs]\n\turl = https://included.example/x\n' >included
lfsconfig 0 'an include' <<EOT
[include]
	path = $T/included
EOT
is "$(cat "$out")" "store $T/up/.git/lfs" 'is not followed'
lfsconfig 0 'a file URL' <<EOT
[lfs]
	url = file://$T/up
EOT
prints "^endpoint file://$T/up .lfsconfig$" 'is no store: lfs-fetch refuses it'
lfsconfig 0 'a name without a value' <<EOT
[lfs]
	url
EOT
lfsconfig 0 'only remote.origin.lfsurl' <<EOT
[remote "origin"]
	lfsurl = https://r.example/x
EOT
prints '^endpoint https://r.example/x .lfsconfig$' 'is taken, as git-lfs does'
yes '# a long file' | head -n 6000 >long
lfsconfig 1 'a file of 84 kB' <long
git -C up reset -q --hard "$base"
# stores
git -C up config lfs.storage other
run git-blob -C up -l "$base"
prints "^store $T/up/.git/other$" 'lfs.storage, relative'
is "$(git -C up lfs env 2>/dev/null | sed -n 's/^LfsStorageDir=//p')" "$T/up/.git/other" \
    'as git-lfs has it'
git -C up config lfs.storage "$T/elsewhere"
run git-blob -C up -l "$base"
prints "^store $T/elsewhere$" 'lfs.storage, absolute'
git -C up config --unset lfs.storage
git -C up worktree add -q ../tree "$base"
run git-blob -C tree -l "$base"
prints "^store $T/up/.git/lfs$" 'a worktree uses the common folder'
mkdir -p up/.git/lfs 'with blank'
git clone -q --shared up 'with blank/second'
git clone -q --shared 'with blank/second' third
mkdir -p 'with blank/second/.git/lfs'
git -C third remote remove origin
run git-blob -C third -l "$base"
is "$(grep ^store "$out")" "store $T/third/.git/lfs
store $T/with blank/second/.git/lfs
store $T/up/.git/lfs" 'own first, then what stands beside alternates and theirs'
git -C third config remote.origin.url "file://$T/with%20blank/second"
rm third/.git/objects/info/alternates
run git-blob -C third -l "$base"
exits 1 'a clone whose objects went away with its alternate'
git -C third fetch -q
run git-blob -C third -l "$base"
is "$(grep ^store "$out")" "store $T/third/.git/lfs
store $T/with blank/second/.git/lfs" 'the store of a file:// remote'

# ---- what the environment says of other repositories ----
run env GIT_DIR="$T/plain" GIT_OBJECT_DIRECTORY="$T/plain" GIT_WORK_TREE=/ \
    GIT_INDEX_FILE=x GIT_COMMON_DIR="$T/plain" git-blob -C up -l "$base"
exits 0 'GIT_DIR and the like do not count'
prints '^endpoint https://two.example' 'nor for the git child'

# ---- a store of our own ----
git -C up config uploadpack.allowFilter true
run git-blob -C store -u up -s split "$base"
exits 0 'a store is made and the commit fetched'; quiet 'without noise'
is "$(cat "$out")" "$(git-blob -C up -s split "$base")" 'the same lines as from the clone'
is "$(git -C store rev-list --count --all)" 1 'one commit: depth 1'
is "$(git -C store cat-file --batch-all-objects --batch-check --unordered 2>/dev/null |
    grep -c blob)" 4 'the wanted blobs, and .lfsconfig, only'
is "$(git -C store config --get-regexp 'remote.*promisor')" "remote.file://$T/up.promisor true" \
    'git knows that it is partial'
ok 'and finds it sound' git -C store fsck
mv up up.gone
run git-blob -C store -u up -l "$base"
exits 0 'what is there needs no server'
is "$(cat "$out")" "endpoint https://two.example/b.git/info/lfs .lfsconfig
store $T/store/lfs" 'the endpoint'
run git-blob -C store -u up "$base" run.sh
exits 1 'a file that was not fetched, the server gone'
mv up.gone up
run git-blob -C store -u up -p "$base" run.sh
exits 0 'it comes with the server'; same "$out" up/run.sh 'with its bytes'
run git-blob -C store "$base" empty
exits 0 'without -u the store asks who promised it'
run git-blob -C store -u up $one empty
exits 1 'a commit that the server has not'
says "source lost: commit $one is not on the server" 'is lost'
run git-blob -C store "$small" empty
exits 1 'without -u no commit is fetched'
c=$(printf '100644 driving_supercombo.onnx.chunk01of01 a\n100644 driving_supercombo.onnx.chunkmanifest 1\n' | commit $models)
run git-blob -C store -u up -s supercombo "$c"
exits 0 'chunks and manifest from a partial store'
run git-blob -C store -u up "$links" ok
exits 0 'a link from a partial store'
git -C up config uploadpack.allowFilter false
run git-blob -C store2 -u "file://$T/up" "$base" run.sh
exits 0 'a server without filters'; quiet 'is no noise'
is "$(git -C store2 rev-list --count --all)" 1 'still depth 1'
git -C up update-ref refs/heads/tip "$base"
notip=$(git -C up commit-tree -m x "$(git -C up rev-parse "$base^{tree}")")
old git-blob -C store3 -u up "$notip" run.sh
exits 1 'the old protocol, where only tips are given'
says 'the server gives no commit by its id' 'it says what to do'
old git-blob -C store3 -u up "$base" run.sh
exits 0 'a tip comes'
git -C up config uploadpack.allowFilter true
old git-blob -C store4 -u up "$base" run.sh
exits 0 'filtered, but no blob by its id: the commit comes whole'
git -C up config uploadpack.allowAnySHA1InWant true
old git-blob -C store5 -u up "$notip" run.sh
exits 0 'with allowAnySHA1InWant all come'
is "$(cat "$out")" "$(lines up "$base" run.sh)" 'the right one'

# a user's own clone stays whole: no depth, no filter, no promisor
git clone -q --no-local --single-branch -b tip up own
git -C up commit -q --allow-empty -m later
later=$(git -C up rev-parse HEAD)
run git-blob -C own -u up "$later" run.sh
exits 0 "a commit into a user's clone"
absent own/.git/shallow 'which is not made shallow'
is "$(git -C own config --get-regexp promisor)" '' 'nor partial'
is "$(git -C own rev-parse "refs/model-rebuild/$later")" "$later" 'a ref keeps the commit'
git clone -q --no-local --filter=blob:none --no-checkout up blobless 2>/dev/null
run git-blob -C blobless "$base" run.sh $models/driving_vision.onnx
exits 0 "a user's blobless clone asks its own origin"
git clone -q --no-local --filter=tree:0 --no-checkout --bare up treeless 2>/dev/null
run git-blob -C treeless -s split "$base"
exits 0 'trees may be missing too'
is "$(cat "$out")" "$(git-blob -C up -s split "$base")" 'the same lines'

# several at once
for c in "$base" "$small" "$big" "$both" "$base"; do
	git-blob -C par -u up -l "$c" >"par.$c" 2>par.err &
	par="${par-} $!"
done
bad=0
for p in $par; do wait "$p" || bad=1; done
is $bad 0 'five at once make one store'
is "$(git -C par for-each-ref | wc -l | tr -d ' ')" 4 'with four commits'
ok 'which is sound' git -C par fsck
# left by a killed git
touch par/shallow.lock par/config.lock par/objects/pack/tmp_pack_x
mkdir -p .new.tmp/refs
printf '[core' >.new.tmp/config
touch .new.tmp/config.lock
run git-blob -C par -u up "$links" ok
exits 0 'lock files of a killed git are no obstacle'
absent par/objects/pack/tmp_pack_x 'half a pack is removed'
run git-blob -C new -u up "$base" run.sh
exits 0 'nor is half a store'
absent .new.tmp 'it is taken up'

# ---- http ----
serve ok; good=$url
run git-blob -C web -u "$url/up/.git" -s split "$base"
exits 0 'git http-backend'; quiet 'without noise'
is "$(cat "$out")" "$(git-blob -C up -s split "$base")" 'the same lines'
is "$(git -C web rev-list --count --all)" 1 'depth 1 over http'
run git-blob -C web -u "$url/up/.git" $one run.sh
exits 1 'lost over http'
run git-blob -C web2 -u "$url/none" "$base" run.sh
exits 1 'no repository there'
serve dumb
git -C up update-server-info
run git-blob -C dumb -u "$url/up/.git" "$base" run.sh
exits 0 'a dumb server: a tip comes, without depth and filter'
serve 503
run git-blob -C web -u "$url/x" "$small" run.sh; exits 111 '503'
serve 401
run git-blob -C web -u "http://me:secret@${url#http://}/x" "$small" run.sh
exits 1 '401 without a password: no prompt'
if grep -q secret "$err"; then fail 'a password is not printed'; else pass 'a password is not printed'; fi
kill $server; wait $server 2>/dev/null
run git-blob -C web -u "$url/x" "$small" run.sh; exits 111 'nobody listens'
says "commit $small was not fetched: .*(refused|connect)" 'it says why'
serve stall
git-blob -C silent -t 20 -u "$url/x" "$small" run.sh 2>silent.err &
silent=$!
run git-blob -C web -t 1 -u "$url/x" "$small" run.sh
exits 111 'a server that never answers'; says 'stopped after 1 s' 'is left after -t'
# fetching URL: the git processes that ask it
# shellcheck disable=SC2009 # pgrep is not everywhere
fetching() { ps -ef | grep -F -- "$1" | grep -c '[g]it.*fetch\|[g]it-remote\|[g]it remote'; }
for sig in TERM INT KILL; do
	unignored git-blob -C web -u "$url/$sig" "$small" run.sh 2>/dev/null &
	p=$!
	i=0
	until [ "$(fetching "$url/$sig")" -gt 0 ] || [ $i -ge 100 ]; do sleep 0.05; i=$((i + 1)); done
	kill -$sig $p
	wait $p 2>/dev/null
	status=$?
	case $sig in TERM) exits 143 'SIGTERM' ;; INT) exits 130 'SIGINT' ;; *) exits 137 'SIGKILL' ;; esac
	i=0
	while [ "$(fetching "$url/$sig")" -gt 0 ] && [ $i -lt 80 ]; do sleep 0.05; i=$((i + 1)); done
	is "$(fetching "$url/$sig")" 0 "after SIG$sig no git is left"
done
wait $silent; status=$?
exits 111 'and sooner when nothing is heard'
is "$(grep -c 'nothing was heard for 5 s' silent.err)" 1 'it says so'
# the lock is the kernel's: a holder is waited for, a killed one is not
lock-run web.lock sleep 30 &
p=$!
later $p
i=0
until [ -s web.lock ] || [ $i -ge 100 ]; do sleep 0.05; i=$((i + 1)); done
run git-blob -C web -t 1 -u "$good/up/.git" "$small" $models/driving_policy.onnx
exits 111 'another fetch holds the store'; says 'web.lock: another fetch' 'it is named'
kill -KILL $p
sleep 0.1
run git-blob -C web -u "$good/up/.git" "$small" $models/driving_policy.onnx
exits 0 'it ends with its holder'

# ---- large and broken ----
head -c 100663296 /dev/urandom >up/large
git -C up -c core.compression=0 -c core.bigFileThreshold=1m add large
git -C up commit -qm large
large=$(git -C up rev-parse HEAD)
rss=$(python3 -c 'import resource, subprocess, sys
with open("large.out", "wb") as f:
    p = subprocess.run(sys.argv[1:], stdout=f)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(p.returncode)' git-blob -C up -p "$large" large)
is $? 0 '-p: 96 MiB'
same large.out up/large 'its bytes'
rm large.out
if [ "$rss" -lt 81920 ]; then pass 'memory stays flat'
else fail 'memory stays flat' "$rss KiB"; fi
git-blob -C up -p "$large" large >/dev/full 2>"$err"; status=$?
exits 2 'a full disk'
git-blob -C up -p "$large" large | head -c 5 >/dev/null
pass 'a reader that goes away ends it'
pack=$(find up/.git/objects/pack -name '*.pack' -size +50000k)
chmod u+w "$pack"
printf 'XX' | dd of="$pack" bs=1 seek=30000000 conv=notrunc 2>/dev/null
run git-blob -C up -p "$large" large
exits 1 'a byte of a large blob has changed'
says "^git-blob: $large:large: corrupt repository" 'it says so'
rm -rf up/large "$pack"
cp -R store broken
find broken/objects/pack -name '*.pack' -exec chmod u+w {} + -exec truncate -s 100 {} +
run git-blob -C broken "$base" run.sh
exits 1 'a truncated pack'; says 'corrupt' 'is a corrupt repository'
c=$(git -C up rev-parse "$small^{tree}")
f=up/.git/objects/$(echo "$c" | cut -c1-2)/$(echo "$c" | cut -c3-)
mv "$f" tree.o
run git-blob -C up "$small" $models/driving_policy.onnx
exits 1 'a tree is missing'; says "object $c is missing: corrupt" 'it is no absent path'
: >"$f"
run git-blob -C up "$small" $models/driving_policy.onnx
exits 1 'an empty object'; says corrupt 'it says so'
printf '[core' >broken/config
run git-blob -C broken "$base" run.sh
exits 1 'a broken config'; says 'broken: corrupt' 'it says so'
git init -q --bare newer
git -C newer config core.repositoryFormatVersion 1
git -C newer config extensions.unheardOf 1
run git-blob -C newer "$base" run.sh
exits 2 'an extension that nobody knows'
# only root can make a repository that is another's; else / is not ours
if [ "$(id -u)" -eq 0 ]; then
	cp -R store foreign
	chown -R 12345 foreign
	run git-blob -C foreign "$base" run.sh
	exits 2 "another user's repository"
	says "git config --global --add safe.directory '$T/foreign'" 'the command is given'
	git config --global --add safe.directory "$T/foreign"
	run git-blob -C foreign "$base" run.sh
	exits 0 'which helps'
fi
finished
