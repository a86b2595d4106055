#!/bin/sh
# Every static lens; each must be silent. MAKE, CC from make.
set -eu

c=$(git ls-files 'tools/*.c' 'tests/fixtures/*.c')
rc=0

say() { echo "lint: $*"; }

for cc in gcc clang; do
	say "$cc, warnings are errors"
	"${MAKE:-make}" -s -j2 OUT="build/$cc" CC="$cc" CFLAGS='-O2 -g -Werror' \
	    tools fixtures || rc=1
done
say cppcheck
# shellcheck disable=SC2086 # lists of words
cppcheck -q -j2 --std=c11 --error-exitcode=1 --inline-suppr \
    --enable=warning,performance,portability \
    --suppress=missingIncludeSystem -Itools/lib '-DMR_VERSION="0"' \
    '-DMR_LIBEXEC="/"' $c || rc=1
say clang-tidy
# shellcheck disable=SC2016,SC2086
printf '%s\n' $c | xargs -P2 -n1 sh -c 'exec clang-tidy -quiet "$1" -- -std=c11 \
    -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -Itools/lib \
    "-DMR_VERSION=\"0\"" "-DMR_LIBEXEC=\"/\"" 2>/dev/null' tidy || rc=1
say shellcheck
shellcheck -x -s sh mk/*.sh tests/*.sh tests/*.t tests/*/*.sh || rc=1
shellcheck .ci/run ||
    rc=1
say 'mandoc -T lint'
mandoc -T lint -W warning man/*.[157] || rc=1
[ "$rc" -eq 0 ] && say clean
exit "$rc"
