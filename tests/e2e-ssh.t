#!/bin/sh
# The pipeline with a device over SSH: the same rules, another machine.
# shellcheck source=tests/lib.sh disable=SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pipeline.sh
. "$here/pipeline.sh"
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
sshd_start
device_make
pipeline_up
cat >>"$W/config.mk" <<EOF
DEVICES ?= 127.0.0.1:$port
ALLOWED_DEVICES ?= 127.0.0.1
DEVICE_ROOT ?= $D
SSH_CONFIG ?= $S/config
RETRY_SECONDS ?= 0
EOF
run mk -j4 all
exits 0 'make all over SSH'
says 'allowed: 127.0.0.1; denied: 192.168.3.110' 'the policy is printed first'
compiled=$(find "$W/compiled" -name '*.pkl' | wc -l)
is "$(compiles)" "$compiled" 'one compile for each model'
is "$(grep -c twice "$D/calls")" 0 'one at a time'
is "$(find "$D/compiledmodels/jobs" -mindepth 1 -maxdepth 1 -type d)" '' 'nothing stays on the device'
run mk -j4 all
exits 0 'again'
prints 'nothing to do' '... nothing is done'
is "$(compiles)" "$compiled" '... nothing is compiled'

# another tinygrad on the device
echo "rev = 2" >"$D/tinygrad_repo/tinygrad/__init__.py"
run mk plan
run mk -j4 all
exits 0 'another tinygrad on the device'
is "$(compiles)" $((compiled * 2)) '... every model is compiled again'

run mk device-status
exits 0 'device-status'
prints 'offroad, *[0-9.]*[KMGT]* free' '... says what the device is doing'
finished
