#!/bin/sh
# onnx-stage on a 500 MB model against copying and hashing by other programs;
# onnx-meta on one of 1.2 GB. BYTES and RUNS change size and repetitions.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
PATH=${BIN:-$root/build/bin}:$PATH
export PATH
BYTES=${BYTES:-500000000} RUNS=${RUNS:-7}
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
cd "$T"

# race COMMAND...: the first against the others, in turn so that a busy moment
# hits all of them; the least seconds of RUNS runs each. The output is removed
# before each run.
race() {
	python3 - "$RUNS" "$@" <<'PY'
import os, subprocess, sys, time
runs, commands = int(sys.argv[1]), sys.argv[2:]
least = [1e9] * len(commands)
for _ in range(runs):
  for i, command in enumerate(commands):
    if os.path.exists("out"):
      os.unlink("out")
    start = time.perf_counter()
    subprocess.run(["/bin/sh", "-c", command], stdout=subprocess.DEVNULL, check=True)
    least[i] = min(least[i], time.perf_counter() - start)
for command, t in zip(commands, least):
  print(f"{t:8.4f} s {t / least[0]:6.2f}x  {command}")
PY
}
# memory COMMAND: its peak, where GNU time is installed
memory() {
	[ -x /usr/bin/time ] || return 0
	/usr/bin/time -o .memory -f 'at most %M kB' sh -c "$1" >/dev/null
	cat .memory
}

python3 "$root/tests/onnx-cases.py" big model.onnx "$BYTES"
cat model.onnx >/dev/null
printf '%s\n' "$(wc -c <model.onnx) bytes, least of $RUNS, without sync:"
export MR_SYNC=0
race 'exec onnx-stage -o out <model.onnx' \
	'cat model.onnx >out; sha256sum out' \
	'cat model.onnx >out; openssl dgst -sha256 out' \
	'tee out <model.onnx | openssl dgst -sha256' \
	'cp model.onnx out; openssl dgst -sha256 out' \
	'cat model.onnx >out'
memory 'exec onnx-stage -o out <model.onnx'
echo 'with sync:'
export MR_SYNC=1
race 'exec onnx-stage -o out <model.onnx' \
	'cat model.onnx >out; sync out; sha256sum out' \
	'cat model.onnx >out; sync out; openssl dgst -sha256 out'

rm -f out model.onnx
python3 "$root/tests/onnx-cases.py" big model.onnx $((BYTES * 12 / 5))
printf '%s\n' "$(wc -c <model.onnx) bytes:"
race 'exec onnx-meta model.onnx' 'exec onnx-meta -p model.onnx'
memory 'exec onnx-meta model.onnx'
