# results/ID_validation.json: what artifacts do on synthetic frames. TRIALS are
# the models, those in FORCED although they passed.
MAKEFLAGS += -rR --no-print-directory
include $(MK)/device.mk

STEP = step -n $(words $(TRIALS)) -c .state/done
v := $(TRIALS:%=validate/%)
.PHONY: all $v
all: $v
$v: validate/%:
	@$(STEP) $* validate -- remote-compile -T $(if $(filter $*,$(FORCED)),-F) \
	    $(DEVICE) -r results $*
