#!/bin/sh
# Builds every tests/fuzz/fuzz-NAME.c with libFuzzer and runs each for
# SECONDS_EACH seconds from its seed corpus; a finding ends it.
set -eu

mkdir -p build/fuzz
for f in tests/fuzz/fuzz-*.c; do
	name=$(basename "$f" .c)
	clang -std=c11 -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L \
	    -D_DEFAULT_SOURCE '-DMR_VERSION="0"' '-DMR_LIBEXEC="/"' \
	    -O1 -g -fsanitize=fuzzer,address,undefined -Itools/lib \
	    -o "build/fuzz/$name" "$f" tools/lib/*.c -ljq -lcrypto -lpthread
	mkdir -p "build/fuzz/corpus-$name"
	echo "fuzz: $name, ${SECONDS_EACH:-300} s"
	"build/fuzz/$name" -max_total_time="${SECONDS_EACH:-300}" \
	    -print_final_stats=1 -artifact_prefix="build/fuzz/$name-" \
	    "build/fuzz/corpus-$name" "tests/fuzz/corpus/${name#fuzz-}" \
	    2>"build/fuzz/$name.log" || {
		tail -40 "build/fuzz/$name.log"
		exit 1
	}
	grep -E 'stat::number_of_executed_units' "build/fuzz/$name.log"
done
