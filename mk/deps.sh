#!/bin/sh
# Installs what is missing: system packages, then the Python environment.
# `run`: only what building and compiling need; else also what tests need.
# As root or with YES=1 it does not ask. VENV: where the environment goes.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
req=$here/tools/device/requirements.txt
VENV=${VENV:-$here/build/venv}

# what `make demo` needs, then what the tests and lenses need besides
debian="gcc clang libgit2-dev libcurl4-openssl-dev libssl-dev libjq-dev
libssh-dev libc6-dev git ca-certificates python3 python3-venv"
tests="cppcheck clang-tidy libclang-rt-14-dev mandoc shellcheck valgrind perl
git-lfs openssl time procps util-linux openssh-client openssh-server rsync
iproute2"
[ "${1-all}" = run ] || debian="$debian $tests"
brew="make libgit2 curl openssl@3 jq libssh git git-lfs python@3.12 llvm
cppcheck mandoc shellcheck"

# may the packages be installed? NAMES... are shown
allowed() {
	[ "$(id -u)" -ne 0 ] && [ "${YES-}" != 1 ] || return 0
	echo "To be installed with sudo apt-get: $*"
	printf 'Install them? [y/N] '
	read -r answer || answer=
	case $answer in [yY]*) return 0 ;; esac
	echo "make deps: not installed; make deps YES=1 does not ask" >&2
	return 1
}

debian_packages() {
	missing=
	# shellcheck disable=SC2086 # a list of words
	for p in $debian; do
		case $(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) in
		*"install ok installed") ;;
		*) missing="$missing $p" ;;
		esac
	done
	[ -n "$missing" ] || return 0
	# shellcheck disable=SC2086
	allowed $missing || exit 2
	sudo=
	[ "$(id -u)" -eq 0 ] || sudo=sudo
	$sudo apt-get update -qq
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq \
	    --no-install-recommends $missing >/dev/null
}

system_packages() {
	if command -v dpkg-query >/dev/null 2>&1; then
		debian_packages
	elif [ "$(uname -s)" = Darwin ]; then
		for p in git2 curl jq; do
			pkg-config --exists "lib$p" 2>/dev/null && continue
			echo "make deps: on macOS: brew install $(echo "$brew" | tr '\n' ' ')" >&2
			echo "then use gmake (GNU make 4) in place of make" >&2
			break
		done
	else
		for h in git2.h curl/curl.h openssl/evp.h jv.h; do
			printf '#include <%s>\n' "$h" |
			    "${CC:-cc}" -E - >/dev/null 2>&1 && continue
			echo "make deps: $h is missing: install the headers" \
			    "of libgit2, libcurl, OpenSSL, jq and libssh" \
			    "with this system's packages" >&2
			exit 2
		done
	fi
}

# the newest python3 that is 3.11 or more
python() {
	for p in python3 /usr/bin/python3 python3.14 python3.13 python3.12 \
	    python3.11; do
		"$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		    2>/dev/null && "$p" -c 'import venv, ensurepip' \
		    2>/dev/null && { echo "$p"; return; }
	done
	echo "make deps: Python 3.11 or newer with venv is needed" >&2
	exit 2
}

environment() {
	if [ -x "$VENV/bin/python3" ] && cmp -s "$req" "$VENV/requirements.txt"
	then
		return
	fi
	echo "make deps: a Python environment with $(tr '\n' ' ' <"$req")" >&2
	py=$(python)
	rm -rf "$VENV"
	"$py" -m venv "$VENV"
	"$VENV/bin/python3" -m pip install --quiet \
	    --disable-pip-version-check -r "$req"
	# last: a broken install is made again
	cp "$req" "$VENV/requirements.txt"
}

# the LFS server that tests run
test_environment() {
	need=$here/tests/requirements.txt
	! cmp -s "$need" "$VENV/test-requirements.txt" || return 0
	echo "make deps: a Git LFS server for tests" >&2
	"$VENV/bin/python3" -m pip install --quiet \
	    --disable-pip-version-check -r "$need"
	cp "$need" "$VENV/test-requirements.txt"
}

system_packages
environment
[ "${1-all}" = run ] || test_environment
