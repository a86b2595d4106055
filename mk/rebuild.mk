# Order is make's, staleness graph.mk's: every edge is order-only and every
# stale name phony, so that no date is ever asked.
MAKEFLAGS += -rR --no-print-directory
include $(GRAPH)

f := $(FETCH:%=onnx/%)
c := $(COMPILE:%=compiled/%.pkl)
r := $(READY:%=ready/%)
forced := $(filter force/%,$(GOALS))
whole := $(filter all extract force,$(GOALS))
STEP = step -n $(TOTAL) -c .state/done

.PHONY: $(GOALS) $f $c $r
all force: | $r
extract: | $f

include $(MK)/fetch.mk
include $(MK)/compile.mk
include $(MK)/ready.mk

# named goals: forced ones end with the split; current ones have no recipe
$(forced): force/%: | ready/%
$(filter-out $f $c $r $(forced) $(whole),$(GOALS)): ; @:
