#!/bin/sh
# Writes DIR/TOOL for each tool: the tool under valgrind, status 99 on error.
set -eu
dir=$1 bin=$(cd build/bin && pwd)
shift
mkdir -p "$dir"
for t; do
	cat >"$dir/$t" <<-EOF
	#!/bin/sh
	exec valgrind -q --error-exitcode=99 --leak-check=no --vgdb=no \\
	    --read-inline-info=no '$bin/$t' "\$@"
	EOF
	chmod 755 "$dir/$t"
done
