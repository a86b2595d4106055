# onnx/ID: the sources out of the commit, through Git LFS, checked.
SOURCES = -C '$(OPENPILOT)' -u '$(REMOTE_URL)' $(LFS_ENDPOINTS:%=-e '%') \
	$(LFS_HOSTS:%=-H %) -r results
$f: onnx/%:
	@$(STEP) $* fetch -- source-fetch $(SOURCES) $(fetch.$*)
