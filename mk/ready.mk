# ready/ID: the upload set, whole or in parts that a git host accepts.
$(filter $r,$(COMPILE:%=ready/%)): ready/%: | compiled/%.pkl
SIZES = -l $(SPLIT_LIMIT) -z $(PART_SIZE)
SET = -o ready-for-resources compiled/$*.pkl
$r: ready/%:
	@$(STEP) $* ready -- pkl-split $(SIZES) -r results -i $* $(SET)
