# Every setting of the pipeline with its default; config.mk explains them.
OPENPILOT ?= openpilot.git
REMOTE_URL ?= https://github.com/commaai/openpilot.git
SOURCE_MAPS ?=
BASE_MANIFEST ?= $(ROOT)/catalog/model_names_v21.json
EXTRA_MANIFEST ?= $(ROOT)/catalog/model_names_extra.json
DEVICES ?= local
ALLOWED_DEVICES ?= 192.168.3.109
DENY_DEVICES ?= 192.168.3.110
DEVICE_ROOT ?= /data/openpilot
SSH_CONFIG ?=
RETRIES ?= 3
RETRY_SECONDS ?= 2
WAIT_SECONDS ?= 9000
COMPILE_SECONDS ?= 7200
SILENT_SECONDS ?= 60
KEEP_DEVICE_FILES ?=
SPLIT_LIMIT ?= 100000000
PART_SIZE ?= 99614720
LFS_ENDPOINTS ?= https://huggingface.co/commaai/openpilot-lfs.git/info/lfs \
	https://gitlab.com/commaai/openpilot-lfs.git/info/lfs
LFS_HOSTS ?= gitlab.com huggingface.co github.com
GPU ?=
TRUST ?=
NOTIFY ?=
export OPENPILOT REMOTE_URL SOURCE_MAPS BASE_MANIFEST EXTRA_MANIFEST DEVICES \
	ALLOWED_DEVICES DENY_DEVICES DEVICE_ROOT SSH_CONFIG RETRIES \
	RETRY_SECONDS WAIT_SECONDS COMPILE_SECONDS SILENT_SECONDS \
	KEEP_DEVICE_FILES \
	SPLIT_LIMIT PART_SIZE LFS_ENDPOINTS LFS_HOSTS GPU TRUST NOTIFY
