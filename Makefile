# The front door: builds the tools, hands pipeline targets to mk/.
ifneq ($(filter 0.% 1.% 2.% 3.0% 3.1% 3.2% 3.3% 3.4% 3.5% 3.6% 3.7% 3.80 3.80.%,$(MAKE_VERSION)),)
$(error make $(MAKE_VERSION) is too old: GNU make 3.81 or newer is needed (make deps names the package))
endif
MAKEFLAGS += -rR --no-print-directory
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := tools

VERSION := 0.1.0
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
LIBEXEC ?= $(PREFIX)/libexec/model-rebuild
OUT ?= build
INSTALL ?= install
ifneq ($(filter default undefined,$(origin CC)),)
CC := cc
endif
ifneq ($(filter default undefined,$(origin AR)),)
AR := ar
endif

# ---- flags: CFLAGS and LDFLAGS are the user's, ours stand beside them ----
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes \
	-Wstrict-prototypes -Wpointer-arith -Wwrite-strings -Wvla -Wformat=2 \
	-Wundef -Wconversion
uname := $(shell uname -s)
FEATURES := -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE
ifeq ($(uname),Darwin)
FEATURES := -D_DARWIN_C_SOURCE
brew := $(shell brew --prefix 2>/dev/null || echo /opt/homebrew)
INCLUDES := -I$(brew)/include -I$(brew)/opt/openssl/include -I$(brew)/opt/curl/include
LIBPATHS := -L$(brew)/lib -L$(brew)/opt/openssl/lib -L$(brew)/opt/curl/lib
else
HARDEN := -D_FORTIFY_SOURCE=2 -fstack-clash-protection
HARDENLD := -Wl,-z,relro,-z,now -pie
endif
ifneq ($(SAN),)
HARDEN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
HARDENLD := -fsanitize=address,undefined
endif
ALL_CFLAGS = -std=c11 $(FEATURES) $(WARN) -fstack-protector-strong -fPIE \
	$(HARDEN) -Itools/lib $(INCLUDES) -DMR_VERSION='"$(VERSION)"' \
	-DMR_LIBEXEC='"$(LIBEXEC)"' $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(HARDENLD) $(LIBPATHS) $(LDFLAGS)

# ---- what is built; each tool links only what it needs ----
TOOLS := git-blob graph-gen lfs-fetch lock-run manifest-gen models ns-rename \
	onnx-meta onnx-stage pkl-join pkl-scan pkl-split ref-pin release-build \
	remote-compile sha-verify source-fetch step workspace-init
LIBS_git-blob := -lgit2
LIBS_graph-gen := -ljq -lcrypto -lpthread
LIBS_lfs-fetch := -lcurl -ljq -lcrypto -lpthread
LIBS_manifest-gen := -ljq
LIBS_models := -ljq -lcrypto -lpthread
LIBS_ns-rename := -ljq -lcrypto
LIBS_onnx-meta :=
LIBS_onnx-stage := -lcrypto -lpthread
LIBS_pkl-join := -lcurl -lcrypto -lpthread
LIBS_pkl-scan :=
LIBS_pkl-split := -ljq -lcrypto -lpthread
LIBS_ref-pin := -ljq -lcrypto
LIBS_release-build := -ljq -lcrypto -lpthread
LIBS_remote-compile := -lssh -ljq -lcrypto
LIBS_sha-verify := -lcrypto -lpthread
LIBS_source-fetch := -ljq -lcrypto
LIBS_step := -ljq -lcrypto
LIBS_workspace-init := -ljq -lcrypto

BIN := $(TOOLS:%=$(OUT)/bin/%)
LIB := $(OUT)/obj/libmr.a
LIBOBJ := $(patsubst tools/lib/%.c,$(OUT)/obj/lib/%.o,$(sort $(wildcard tools/lib/*.c)))
# a tool is tools/NAME.c or every tools/NAME/*.c
src = $(sort $(wildcard tools/$1.c tools/$1/*.c))
obj = $(patsubst tools/%.c,$(OUT)/obj/%.o,$(call src,$1))
FIXTURES := $(patsubst tests/fixtures/%.c,$(OUT)/test/%,$(sort $(wildcard tests/fixtures/*.c)))
OBJDIRS := $(sort $(dir $(LIBOBJ) $(foreach t,$(TOOLS),$(call obj,$t)))) $(OUT)/bin/ $(OUT)/test/
HDRS := $(sort $(wildcard tools/lib/*.h tools/*/*.h))

# short lines while building; V=1 shows the commands
Q := $(if $(filter 1,$(V)),,@)
say = @$(if $(filter 1,$(V)),:,printf '  %-3s %s\n' $1 $2)

.PHONY: tools fixtures
tools: $(BIN)
fixtures: $(FIXTURES)

$(OBJDIRS):
	@mkdir -p $@
$(OUT)/obj/%.o: tools/%.c Makefile | $(OBJDIRS)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(LIB): $(LIBOBJ)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rc $@ $(LIBOBJ)
define link
$(OUT)/bin/$1: $(call obj,$1) $(LIB) | $(OUT)/bin/
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -o $$@ $(call obj,$1) $(LIB) $$(ALL_LDFLAGS) $(LIBS_$1)
endef
$(foreach t,$(TOOLS),$(eval $(call link,$t)))
$(OUT)/test/%: tests/fixtures/%.c $(LIB) Makefile | $(OUT)/test/
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(LIB) $(ALL_LDFLAGS) -ljq -lcrypto -lm -lpthread
-include $(wildcard $(OUT)/obj/*.d $(OUT)/obj/*/*.d $(OUT)/test/*.d)

include mk/develop.mk
include mk/front.mk
