# Pipeline targets: a run enters the workspace (mk/enter.sh), and there
# mk/run.mk reads the settings and mk/rebuild.mk the facts of graph.mk.
-include config.mk
WORKSPACE ?= $(CURDIR)
ROOT := $(CURDIR)
export WORKSPACE ROOT

PIPE := $(filter init all extract force status plan verify device-status \
	manifest release validate validate/% \
	onnx/% compiled/% ready/% force/% why/% pin/% cancel/%,$(MAKECMDGOALS))
ifneq ($(PIPE),)
export GOALS := $(PIPE)
DRY := $(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
export DRY
.PHONY: $(PIPE)
# the first goal does the work of all of them; make -j cannot interleave two
$(firstword $(PIPE)): tools
	+@exec sh mk/enter.sh
$(wordlist 2,$(words $(PIPE)),$(PIPE)): $(firstword $(PIPE)) ; @:
endif
