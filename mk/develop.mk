# What developers and packagers run: install, tests, lenses, benchmarks.
VENV ?= $(CURDIR)/build/venv
TESTS ?= $(sort $(wildcard tests/*.t))
# the whole on real parts is slow under a sanitizer and says no more there
UNIT := $(filter-out tests/e2e-%.t tests/layout.t,$(TESTS))
JOBS ?= 2
PROVE := prove -j$(JOBS)
TEST_ENV = BIN='$(abspath $(OUT))/bin' AUX='$(abspath $(OUT))/test' \
	VENV='$(VENV)'

.PHONY: help deps demo check check-unit check-asan check-valgrind lint fuzz \
	bench install uninstall clean distclean dist

help:
	@cat mk/help.txt

# deps installs what is missing and does nothing when all is there
deps:
	@VENV='$(VENV)' sh mk/deps.sh
demo:
	@VENV='$(VENV)' sh mk/deps.sh run
	@+exec sh mk/demo.sh

# ---- tests and lenses ----
check: deps
	@$(MAKE) tools fixtures
	@env $(TEST_ENV) $(PROVE) $(TESTS)
check-unit: tools fixtures
	@env $(TEST_ENV) $(PROVE) $(UNIT)
check-asan:
	@$(MAKE) OUT=build/asan SAN=1 CFLAGS='-O1 -g' tools fixtures
	@env ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:exitcode=99 \
	    UBSAN_OPTIONS=print_stacktrace=1 \
	    $(MAKE) OUT=build/asan SAN=1 CFLAGS='-O1 -g' check-unit
# every tool behind a wrapper, so that the same tests run under valgrind
check-valgrind: tools fixtures
	@sh mk/valgrind.sh build/valgrind $(TOOLS)
	@env $(TEST_ENV) BIN='$(CURDIR)/build/valgrind' $(PROVE) $(UNIT)
lint:
	@+sh mk/lint.sh
fuzz:
	@+CC=clang SECONDS_EACH=$(or $(SECONDS_EACH),300) sh mk/fuzz.sh
bench: deps
	@$(MAKE) tools fixtures
	@for b in tests/bench/*.sh; do env $(TEST_ENV) sh "$$b" || exit; done

# ---- packaging ----
MAN1 := $(wildcard man/*.1)
MAN5 := $(wildcard man/*.5)
MAN7 := $(wildcard man/*.7)
PAGES := $(MAN1:man/%=man1/%) $(MAN5:man/%=man5/%) $(MAN7:man/%=man7/%)
DRIVERS := $(filter-out %__pycache__,$(wildcard tools/device/*))
DIST = build/model-rebuild-$(VERSION).tar.gz
install: tools
	$(INSTALL) -d '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(LIBEXEC)/device' \
	    '$(DESTDIR)$(MANDIR)/man1' '$(DESTDIR)$(MANDIR)/man5' \
	    '$(DESTDIR)$(MANDIR)/man7'
	$(INSTALL) -m 755 $(BIN) '$(DESTDIR)$(BINDIR)'
	$(INSTALL) -m 644 $(DRIVERS) '$(DESTDIR)$(LIBEXEC)/device'
	$(INSTALL) -m 644 $(MAN1) '$(DESTDIR)$(MANDIR)/man1'
	$(INSTALL) -m 644 $(MAN5) '$(DESTDIR)$(MANDIR)/man5'
	$(INSTALL) -m 644 $(MAN7) '$(DESTDIR)$(MANDIR)/man7'
uninstall:
	cd '$(DESTDIR)$(BINDIR)' && rm -f $(TOOLS)
	cd '$(DESTDIR)$(MANDIR)' && rm -f $(PAGES)
	rm -rf '$(DESTDIR)$(LIBEXEC)'
# the Python environment stays: it takes minutes to make
clean:
	rm -rf build/bin build/obj build/test build/asan build/valgrind \
	    build/fuzz build/clang build/gcc
distclean: clean
	rm -rf build
dist:
	@mkdir -p build
	git archive --prefix=model-rebuild-$(VERSION)/ -o '$(DIST)' HEAD
	@echo $(DIST)
