# Inside the workspace: the settings, then one run of mk/run.sh.
# Command line beats config.mk; config.mk's `?=` lets the environment win.
MAKEFLAGS += -rR --no-print-directory
-include config.mk
include $(MK)/settings.mk

.PHONY: run
run:
	+@exec sh "$$MK/run.sh"
