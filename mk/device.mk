# How remote-compile reaches the devices.
SSH = -a '$(ALLOWED_DEVICES)' -d '$(DENY_DEVICES)' -p '$(DEVICE_ROOT)' \
	-c '$(SSH_CONFIG)' -R $(RETRIES) -P $(RETRY_SECONDS) \
	-w $(WAIT_SECONDS) -l $(COMPILE_SECONDS) -t $(SILENT_SECONDS) \
	$(KEEP_DEVICE_FILES:%=-k)
DEVICE = $(if $(filter-out local,$(DEVICES)),$(SSH)) -D '$(DEVICES)'
