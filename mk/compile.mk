# compiled/ID.pkl: one tinygrad pickle, by the compiler of the device.
$(filter $c,$(FETCH:%=compiled/%.pkl)): compiled/%.pkl: | onnx/%
$c: compiled/%.pkl:
	@$(STEP) $* compile -- remote-compile -D '$(DEVICES)' -r results $(compile.$*)
