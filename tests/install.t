#!/bin/sh
# make install and uninstall, with DESTDIR and PREFIX; make deps on systems
# that are not here, with stand-ins for what asks them; an old make.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# the tools that are tested are those that are installed
run make -C "$root" OUT="${BIN%/bin}" install DESTDIR="$T/dest" PREFIX=/opt/mr
exits 0 'install'
inst=$T/dest/opt/mr
is "$(cd "$inst/bin" && printf '%s\n' * | sort)" "$(cd "$root/man" && printf '%s\n' *.1 | sed 's/\.1$//' | sort)" \
    'every tool that has a page, and no other'
is "$(cd "$inst/libexec/model-rebuild/device" && printf '%s\n' * | sort)" "$(cd "$root/tools/device" && git ls-files . | sort)" \
    'the drivers are complete'
ok 'an installed tool runs' "$inst/bin/pkl-split" -h
ok 'its page is there' test -s "$inst/share/man/man1/pkl-split.1"
run make -C "$root" OUT="${BIN%/bin}" uninstall DESTDIR="$T/dest" PREFIX=/opt/mr
exits 0 'uninstall'
is "$(find "$T/dest" -type f | wc -l | tr -d ' ')" 0 'leaves no file'

run make -C "$root" MAKE_VERSION=3.80 help
exits 2 'an old make is refused'
is "$(wc -l <"$err" | tr -d ' ')" 1 'in one line'
says '3\.80 is too old: GNU make 3\.81' 'that says which is wanted'

# a machine of our own making: only these programs exist on it
machine() {
	rm -rf "$T/m"
	mkdir "$T/m"
	for p in sh cat cmp cp dirname env grep id mkdir printf rm tr; do
		ln -s "$(command -v "$p")" "$T/m/$p"
	done
}
# fake NAME TEXT: a program that is this shell script; the link that may stand
# there is removed first, or the machine's own program would be overwritten
fake() {
	rm -f "$T/m/$1"
	printf '#!/bin/sh\n%s\n' "$2" >"$T/m/$1" && chmod 755 "$T/m/$1"
}
deps() { run env PATH="$T/m" VENV="$T/venv" YES="${YES-}" sh "$root/mk/deps.sh" "$@"; }
# an environment that is complete
mkdir -p "$T/venv/bin"
ln -s /bin/true "$T/venv/bin/python3"
cp "$root/tools/device/requirements.txt" "$T/venv/"
cp "$root/tests/requirements.txt" "$T/venv/test-requirements.txt"

machine
fake dpkg-query 'echo "install ok installed"'
fake apt-get "echo apt \"\$@\" >>$T/apt"
deps
exits 0 'all is there'
absent "$T/apt" 'nothing is installed'
is "$(cat "$out" "$err")" '' 'and nothing said'

fake dpkg-query 'case $* in *libgit2-dev*) exit 1 ;; esac; echo "install ok installed"'
fake id 'echo 0'
deps run
exits 0 'root is not asked'
is "$(cat "$T/apt")" 'apt update -qq
apt install -y -qq --no-install-recommends libgit2-dev' 'only what is missing is installed'

rm "$T/apt"
fake id 'echo 1000'
fake sudo "echo sudo >>$T/apt; exec \"\$@\""
deps run </dev/null
exits 2 'another user is asked'
prints 'To be installed with sudo apt-get: libgit2-dev' 'for what is missing'
absent "$T/apt" 'no answer is no'
YES=1
deps run
exits 0 'YES=1 does not ask'
is "$(grep -c sudo "$T/apt")" 2 'and uses sudo'
YES=

machine
fake uname 'echo Darwin'
fake pkg-config 'exit 1'
deps
says 'brew install make .*libgit2' 'macOS is told what to install, GNU make too'
says 'gmake' 'and to use it'
machine
fake uname 'echo Plan9'
fake cc 'exit 1'
deps
exits 2 'another system lacks a header'
says 'git2.h is missing: install the headers' 'and is told which'
finished
