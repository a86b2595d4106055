# compiled/ID.pkl: one tinygrad pickle, by the compiler of the device.
include $(MK)/device.mk
$(filter $c,$(FETCH:%=compiled/%.pkl)): compiled/%.pkl: | onnx/%
$c: compiled/%.pkl:
	@$(STEP) $* compile -- remote-compile $(DEVICE) -r results $(compile.$*)
