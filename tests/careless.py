#!/usr/bin/env python3
"""A compiler that checks nothing: what validation must find is made with it.

    careless.py OUTPUT-FOLDER TYPE [--drifting] --NAME-onnx FILE...

Runs tools/device/compile_modeld.py with its checks taken out, and writes
FOLDER/good.pkl and, beside it, the same artifact spoiled in several ways.
--drifting: the model remembers something that no queue holds.
"""
import copy
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "tools", "device"))
import pinned

pinned.enter()
import compile_modeld
import driving
import numpy
import tg


def without(d, *keys):
  for key in keys:
    del d[key]


SPOILS = {
  "good": lambda a: None,
  "no-camera": lambda a: without(a, (1344, 760)),
  "no-policy-metadata": lambda a: without(a["metadata"], a["policy_order"][0]),
  "no-metadata": lambda a: without(a, "metadata"),
  "no-slices": lambda a: without(a["metadata"]["vision"], "output_slices"),
  "slices-beyond": lambda a: a["metadata"]["vision"]["output_slices"].update(hidden_state=slice(1064, 2576)),
  "negative-beyond": lambda a: a["metadata"]["vision"]["output_slices"].update(pose=slice(-2000, None)),
  "other-shape": lambda a: a["metadata"][a["policy_order"][-1]]["input_shapes"].update(features_buffer=(1, 24, 512)),
  "no-plan": lambda a: [a["metadata"][name]["output_slices"].pop("plan", None) for name in a["policy_order"]],
  "no-pose": lambda a: without(a["metadata"]["vision"]["output_slices"], "pose"),
  "version": lambda a: a.update(behavior_version="v7"),
  "older": lambda a: without(a, "image_history_pipeline", "warp_input_keys"),
  "no-order": lambda a: without(a, "policy_order"),
  "format": lambda a: a.update(format_version=2),
}


def write_all(artifact, f, out_of_band, write=tg.write_artifact):
  for name in SPOILS if len(artifact.get("policy_order", [])) > 1 else ["good"]:
    spoiled = artifact | {"metadata": copy.deepcopy(artifact["metadata"])}
    SPOILS[name](spoiled)
    with open(os.path.join(folder, f"{name}.pkl"), "wb") as g:
      write(spoiled, g, out_of_band)


def drift(self, runners, policy=driving.Model.policy):
  run, memory = policy(self, runners), tg.on_device(numpy.zeros(1, numpy.float32))

  def run_policy(warped, img_q, big_img_q, feat_q, desire_q, packed_npy_inputs):
    outputs = run(warped, img_q, big_img_q, feat_q, desire_q, packed_npy_inputs)
    memory.assign(memory + outputs[0][:, 0]).realize()  # what needs no input would be pruned
    return tuple(output + memory for output in outputs)
  return run_policy


folder, kind = sys.argv[1:3]
if "--drifting" in sys.argv:
  sys.argv.remove("--drifting")
  driving.Model.policy = drift
os.makedirs(folder, exist_ok=True)
tg.equal = lambda a, b: True
numpy.isfinite = lambda values: numpy.ones(numpy.shape(values), bool)
driving.recheck = lambda *args: None
driving.check_widths = lambda *args: None
tg.write_artifact = write_all
sys.argv[1:3] = ["--model-type", kind, "--model-size", "512x256", "--camera-resolutions", "1928x1208", "1344x760",
                 "--output", os.path.join(folder, "empty")]
sys.exit(compile_modeld.main())
