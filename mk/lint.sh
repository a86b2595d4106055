#!/bin/sh
# Every static lens; each must be silent. MAKE, CC from make.
set -eu

c=$(git ls-files 'tools/*.c' 'tests/*.c')
sh=$(git ls-files '*.sh' '*.t')
rc=0

say() { echo "lint: $*"; }

for cc in gcc clang; do
	say "$cc, warnings are errors"
	"${MAKE:-make}" -s -j2 OUT="build/$cc" CC="$cc" \
	    CFLAGS='-O2 -g -Werror' tools fixtures || rc=1
done
say cppcheck
# shellcheck disable=SC2086 # lists of words
cppcheck -q -j2 --std=c11 --error-exitcode=1 --inline-suppr \
    --enable=warning,performance,portability \
    --suppress=missingIncludeSystem -Itools/lib '-DMR_VERSION="0"' \
    '-DMR_LIBEXEC="/"' $c || rc=1
say clang-tidy
# with a settings file that it cannot read it says so, and ends with 0
said=build/gcc/clang-tidy.err
# shellcheck disable=SC2016,SC2086
printf '%s\n' $c | xargs -P2 -n1 sh -c 'exec clang-tidy -quiet "$1" -- \
    -std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -Itools/lib \
    "-DMR_VERSION=\"0\"" "-DMR_LIBEXEC=\"/\""' tidy 2>"$said" || rc=1
if grep -v '^[0-9]* warnings* generated\.$' "$said"; then rc=1; fi
say shellcheck
# shellcheck disable=SC2086
shellcheck -x -s sh $sh || rc=1
shellcheck .ci/run || rc=1
say 'mandoc -T lint'
mandoc -T lint -W warning man/*.[157] || rc=1
[ "$rc" -eq 0 ] && say clean
exit "$rc"
