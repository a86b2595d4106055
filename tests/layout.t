#!/bin/sh
# The rules of the tree. A rule prints what breaks it: nothing here, and the
# culprit in a copy of the tree where it was broken on purpose.
# shellcheck source=tests/lib.sh disable=SC2317 # rules are called by name
. "$(dirname "$0")/lib.sh"

# rule TEXT FUNCTION: the function prints nothing in this tree
rule() {
	breaks=$2
	# shellcheck disable=SC2154 # root is of lib.sh
	is "$(cd "$root" && $breaks 2>&1 | head -n 40)" '' "$1"
}
# sees CULPRIT COMMAND: after the command it prints the culprit
sees() {
	rm -rf "$T/tree" && mkdir "$T/tree" && cp -R "$root/Makefile" \
	    "$root/README.md" "$root/NEWS.md" "$root/tools" "$root/mk" \
	    "$root/catalog" "$root/man" "$root/tests" "$root/.ci" "$T/tree"
	(cd "$T/tree" && eval "$2")
	case $(cd "$T/tree" && $breaks 2>&1) in
	*"$1"*) pass "... sees $1" ;;
	*) fail "... sees $1" "after: $2" ;;
	esac
}

# the names in TOOLS of the Makefile
tools() {
	awk '/^TOOLS :=/ { on = 1; sub(/^TOOLS :=/, "") }
	on { more = sub(/\\$/, ""); print; if (!more) exit }' Makefile |
	    tr -s '\t ' '[\n*]'
}
# what the tools are made of
c_files() { find tools -name '*.[ch]' | LC_ALL=C sort; }

whole() {
	for t in $(tools); do
		[ -e "man/$t.1" ] || echo "$t: has no man/$t.1"
		[ -e "tests/$t.t" ] || echo "$t: has no tests/$t.t"
		[ -e "tools/$t.c" ] || [ -d "tools/$t" ] ||
		    echo "$t: has no source"
	done
}
rule 'every tool has source, man page and test' whole
sees 'step: has no man' 'rm man/step.1'
sees 'step: has no tests' 'rm tests/step.t'
sees 'x: has no source' 'sed "s/^TOOLS :=/& x/" Makefile >M; mv M Makefile'

orphans() {
	for f in tools/*.c tools/*/*.c man/*.1; do
		t=${f#*/} t=${t%%/*} t=${t%.[c1]}
		case " $(tools | tr '\n' ' ') lib device " in
		*" $t "*) ;;
		*) echo "$f: is of no tool that the Makefile builds" ;;
		esac
	done
}
rule 'every source and every page is of a tool' orphans
sees tools/x.c 'echo >tools/x.c'
sees tools/x/y.c 'mkdir tools/x; echo >tools/x/y.c'
sees man/x.1 'echo >man/x.1'

# the owner of a library: a tool, or the one file of libmr
libraries() {
	# shellcheck disable=SC2046 # names without blanks
	awk 'BEGIN {
		own["git2.h"] = "tools/git-blob"
		own["curl"] = "tools/(lfs-fetch|pkl-join)"
		own["jv.h"] = "tools/lib/json"
		own["openssl"] = "tools/lib/sha256"
		own["libssh"] = "tools/remote-compile"
		n = split("assert ctype dirent err errno fcntl fnmatch glob " \
		    "inttypes limits locale math netdb poll pthread pwd " \
		    "regex sched signal spawn stdarg stdbool stddef stdint " \
		    "stdio stdlib string strings termios time unistd", libc)
		for (i = 1; i <= n; i++)
			plain[libc[i] ".h"] = 1
	}
	/^[ \t]*#[ \t]*include[ \t]*</ {
		gsub(/.*<|>.*/, "")
		split($0, dir, "/")
		if (/^(sys|arpa|net|netinet|linux)\// || $0 in plain)
			next
		if (!(dir[1] in own))
			print FILENAME ": <" $0 ">: no tool owns this library"
		else if (FILENAME !~ "^" own[dir[1]] "[./]")
			print FILENAME ": <" $0 "> is of " own[dir[1]]
	}' $(c_files)
}
rule 'a third-party library has one owner' libraries
sees tools/step/main.c 'echo "#include <git2.h>" >>tools/step/main.c'
sees tools/lib/key.c 'echo "#include <openssl/evp.h>" >>tools/lib/key.c'
sees '<zlib.h>: no tool' 'echo "#include <zlib.h>" >>tools/git-blob/main.c'

headers() {
	find tools/lib ! -name '*.c' ! -name mr.h -type f
	# shellcheck disable=SC2046
	awk '/^[ \t]*#[ \t]*include[ \t]*"/ {
		gsub(/^[^"]*"|".*/, "")
		dir = FILENAME
		sub(/[^\/]*$/, "", dir)
		if ($0 == "mr.h")
			next
		if (/\/|\.c$/ || dir == "tools/" || dir == "tools/lib/" ||
		    (getline line <(dir $0)) < 0)
			print FILENAME ": includes \"" $0 "\""
	}' $(c_files)
}
rule 'mr.h is the one shared header; no tool takes from another' headers
sees 'sha-verify.c: includes' \
    'echo "#include \"step/step.h\"" >>tools/sha-verify.c'
sees 'child.c: includes' 'echo "#include \"split.h\"" >>tools/step/child.c'
sees tools/lib/x.h 'echo >tools/lib/x.h'

# What mr.h declares is defined once and used; a family of functions (mr_key_*)
# by two tools, or by a tool and another file of the library. Excused:
#	mr_slices	foreign bytes: a parser stands here to be fuzzed
#	the rest	what a value is made with is one set
excused='mr_slices mr_json_number mr_json_truth'
library() {
	# shellcheck disable=SC2046
	awk -v excused="$excused" '
	BEGIN { n = split(excused, e, /[ \t\n]+/); for (i in e) why[e[i]] = 1 }
	{
		line = $0
		sub(/^[ \t]*(\*|\/\*).*/, "", line)
		if (FILENAME == "tools/lib/mr.h" || line ~ /^mr_[a-z0-9_]+\(/) {
			if (match(line, /mr_[a-z0-9_]+\(/)) {
				name = substr(line, RSTART, RLENGTH - 1)
				if (FILENAME == "tools/lib/mr.h")
					declared[name] = 1
				else {
					times[name]++
					home[name] = FILENAME
				}
				next
			}
		}
		unit = FILENAME
		if (sub(/^tools\/lib\//, "lib/", unit) == 0) {
			sub(/^tools\//, "", unit)
			sub(/[\/.].*/, "", unit)
		}
		while (match(line, /mr_[a-z0-9_]+/)) {
			name = substr(line, RSTART, RLENGTH)
			if (!((name, unit) in seen)) {
				seen[name, unit] = 1
				units[name] = units[name] " " unit
			}
			line = substr(line, RSTART + RLENGTH)
		}
	}
	END {
		for (name in declared) {
			if (times[name] != 1)
				print "mr.h: " name ": defined " \
				    times[name] + 0 " times"
			sub(/tools\//, "", home[name])
			match(name, /^mr_[a-z0-9]+/)
			family = substr(name, 1, RLENGTH)
			families[family] = 1
			n = split(units[name], u, " ")
			for (i = users = 0; i <= n; i++)
				if (i > 0 && u[i] != home[name]) {
					users++
					if (!((family, u[i]) in tools))
						count[family]++
					tools[family, u[i]] = 1
				}
			if (users == 0 && !(name in why))
				print "mr.h: " name ": used by nobody"
			if (users > 0 && name in why && name != family)
				print name ": needs no excuse"
		}
		for (family in families)
			if (count[family] < 2 && !(family in why))
				print "mr.h: " family ": used by " \
				    count[family] + 0
		for (name in why)
			if (!(name in declared) && !(name in families) ||
			    count[name] > 1)
				print name ": needs no excuse"
	}' tools/lib/mr.h $(c_files | grep -v 'mr.h$') | sort
}
rule 'what mr.h declares is defined and shared' library
sees 'mr_x: defined 0 times' 'echo "int	mr_x(void);" >>tools/lib/mr.h'
sees 'mr_x: used by nobody' 'echo "int	mr_x(void);" >>tools/lib/mr.h
    printf "int\nmr_x(void)\n" >>tools/lib/io.c'
sees 'mr_x: used by 1' 'echo "int	mr_x(void);" >>tools/lib/mr.h
    printf "int\nmr_x(void)\n" >>tools/lib/io.c
    printf "	mr_x();\n" >>tools/step/main.c'

style() {
	# shellcheck disable=SC2046
	awk 'FNR == 1 && FILENAME ~ /c$/ && !/^\/\* .*[a-z]/ {
		print FILENAME ":1: wanted a line that says what it does"
	}
	/^[ \t]*typedef[ \t]+(struct|union|enum)/ {
		print FILENAME ":" FNR ": typedef"
	}
	/[ \t]$/ { print FILENAME ":" FNR ": blank at the end" }
	/^ +[a-z]/ && !/^    / { print FILENAME ":" FNR ": wanted tabs" }
	/(^|[^a-z_])(system|popen|strcpy|strcat|v?sprintf|gets|tmpnam)\(/ {
		print FILENAME ":" FNR ": refused: " $0
	}' $(c_files)
	for f in $(c_files) tests/fixtures/*.c tests/fuzz/*.c; do
		expand "$f" | awk -v f="$f" 'length > 80 {
			print f ":" FNR ": " length " columns" }'
	done
}
rule 'C files are in style' style
sees child.c:1 'echo "int x;" >tools/step/child.c'
sees ': typedef' 'echo "typedef struct x y;" >>tools/lock-run.c'
sees ': refused: 	strcpy(' 'echo "	strcpy(a, b);" >>tools/lock-run.c'
sees ': 84 columns' 'printf "\t%076d\n" 0 >>tools/lock-run.c'
sees ': blank at the end' 'echo "x; " >>tools/lock-run.c'

lengths() {
	wc -l tools/*.c tools/[!l]*/*.c tools/lfs-fetch/*.c | awk '
	$2 != "total" && $1 > 450 { print $2 ": " $1 " lines: a second tool?" }'
	wc -l mk/*.mk | awk '
	$2 != "total" && $1 > 100 { print $2 ": " $1 " lines, wanted 100" }'
}
rule 'tools and rules are short' lengths
sees tools/lock-run.c 'yes | head -n 451 >>tools/lock-run.c'
sees mk/fetch.mk 'yes "#" | head -n 101 >>mk/fetch.mk'

# in two halves each, so that this file does not name them
machine='(^|[^A-Za-z0-9_}])(/wo''rk/|/ho''me/[a-z]|/Us''ers/[a-z]|/ro''ot/|/tm''p/w/)'
words='\<(TO''DO|FIX''ME|XX''X|st''ub)\>'
made='(de''sign|st''yle|fau''lts|bri''ef)\.md|\<iss''ue #?[0-9]'
hosts='py''pi\.org|python''hosted\.org|proxy\.go''lang\.org'
traces() {
	grep -rnIE "$machine|$words|$made|$hosts" --exclude-dir=__pycache__ \
	    Makefile README.md NEWS.md tools mk catalog man tests .ci
}
rule 'no path of one machine, no loose end' traces
sees README.md 'echo "see /ho""me/me/x" >>README.md'
sees mk/run.sh 'echo "# TO""DO" >>mk/run.sh'

tap() {
	for f in tests/*.t; do
		[ "$(head -n 1 "$f")" = '#!/bin/sh' ] &&
		    grep -q '/lib\.sh"$' "$f" &&
		    [ "$(tail -n 1 "$f")" = finished ] ||
		    echo "$f: wanted #!/bin/sh, lib.sh, and finished at its end"
	done
}
rule 'tests are plain TAP' tap
sees tests/step.t 'echo exit 0 >>tests/step.t'
finished
