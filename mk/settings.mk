# Every setting of the pipeline with its default; config.mk explains them.
OPENPILOT ?= openpilot.git
REMOTE_URL ?= https://github.com/commaai/openpilot.git
SOURCE_MAPS ?=
BASE_MANIFEST ?= $(ROOT)/catalog/model_names_v21.json
EXTRA_MANIFEST ?= $(ROOT)/catalog/model_names_extra.json
DEVICES ?= local
SPLIT_LIMIT ?= 100000000
PART_SIZE ?= 99614720
LFS_ENDPOINTS ?= https://huggingface.co/commaai/openpilot-lfs.git/info/lfs \
	https://gitlab.com/commaai/openpilot-lfs.git/info/lfs
LFS_HOSTS ?= gitlab.com huggingface.co github.com
GPU ?=
TRUST ?=
NOTIFY ?=
export OPENPILOT REMOTE_URL SOURCE_MAPS BASE_MANIFEST EXTRA_MANIFEST DEVICES \
	SPLIT_LIMIT PART_SIZE LFS_ENDPOINTS LFS_HOSTS GPU TRUST NOTIFY
