# ready/ID: the upload set, whole or in parts that a git host accepts.
$(filter $r,$(COMPILE:%=ready/%)): ready/%: | compiled/%.pkl
SET = -o ready-for-resources compiled/$*.pkl
$r: ready/%:
	@$(STEP) $* ready -- pkl-split -l $(SPLIT_LIMIT) -z $(PART_SIZE) -r results -i $* $(SET)
