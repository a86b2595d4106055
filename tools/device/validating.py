"""What a car asks of a driving model: that it runs on the frames of either
camera, twice alike, and says with finite numbers where to go."""
import hashlib
import math
import os
import struct

import numpy as np

import tg
from driving import Model, attempt
from pinned import Refused

CAMERAS = ((1928, 1208), (1344, 760))
SIZE = (512, 256)       # of what the models see
FRAMES = 8              # of each camera, so that every queue has moved
REQUIRED = ("plan", "lane_lines", "lane_lines_prob", "road_edges", "lead", "lead_prob", "pose")
POLICIES = {"supercombo": (0,), "vision_policy": (1,), "vision_multi_policy": (2, 3)}
CONTROL = ("action", "desired_curvature", "plan")


# ---- what is seen ----

def scene(camera, step):
  """An NV12 frame: sky, road, two lane lines, one of them dashed and moving."""
  width, height = camera
  stride, rows, size = tg.nv12(camera)
  frame = np.full(size, 128, np.uint8)          # no colour
  luma = frame[:stride * rows].reshape(rows, stride)[:height, :width]
  horizon = height // 2
  luma[:horizon] = np.linspace(210, 150, horizon)[:, None]
  near = np.arange(1, height - horizon + 1)[:, None]
  luma[horizon:] = 70 + 30 * near // near.max()
  across = np.arange(width)[None] - width / 2
  for side in (-1, 1):
    line = np.abs(across - side * near * 0.9) < 1 + near / 40
    line &= (side < 0) | ((8000 / near + 3 * step) % 24 < 12)
    luma[horizon:][line] = 235
  return frame


# ---- what the artifact says it is ----

def parts_of(artifact):
  """Names of the components, in the order of the outputs."""
  if artifact.get("format_version") != 1:
    raise Refused(f"format_version is {artifact.get('format_version')!r}, wanted 1")
  kind, order = artifact.get("model_type"), artifact.get("policy_order") or []
  if kind not in POLICIES:
    raise Refused(f"model_type is {kind!r}, wanted one of {', '.join(POLICIES)}")
  if len(order) not in POLICIES[kind]:
    raise Refused(f"policy_order is {', '.join(order) or 'empty'}: that is no {kind}")
  names = ["model"] if kind == "supercombo" else ["vision", *order]
  for name in names:
    metadata = artifact.get("metadata", {}).get(name)
    if not isinstance(metadata, dict):
      raise Refused(f"metadata of {name} are missing")
    for key in ("output_slices", "input_shapes", "output_shapes"):
      if not metadata.get(key):
        raise Refused(f"metadata of {name} have no {key}")
  return names


def check_parameters(args):
  """What the car would load by its parameters is what is validated here."""
  for name, wanted in (("Model", args.id), ("DrivingModel", args.id),
                       ("ModelVersion", args.behavior_version), ("DrivingModelVersion", args.behavior_version)):
    try:
      with open(os.path.join(args.params, name), encoding="utf-8", errors="replace") as f:
        value = f.read()
    except FileNotFoundError:
      value = None
    if value != wanted:
      raise Refused(f"the parameter {name} is {value!r}, wanted {wanted!r}")


def is_out_of_band(path):
  with open(path, "rb") as f:
    head = f.read(10)
  size = os.path.getsize(path) - 8
  return head[8:] == b"\x80\x05" and 0 < struct.unpack("<q", head[:8])[0] <= size


# ---- one drive ----

def drive(artifact, model, camera):
  """The outputs of the last of FRAMES steps, from empty queues."""
  queues, host = model.queues()
  host["tfm"][:] = host["big_tfm"][:] = np.diag([camera[0] / SIZE[0], camera[1] / SIZE[1], 1])
  packed, at = {}, 0
  for name, shape in model.packed.items():
    packed[name] = host["packed_npy_inputs"][at:at + math.prod(shape)]
    at += math.prod(shape)
  if "traffic_convention" in packed:
    packed["traffic_convention"][0] = 1     # one of two, right-hand traffic
  every = []
  for step in range(FRAMES):
    frames = {name: tg.on_device(scene(camera, step)) for name in ("frame", "big_frame")}
    seen = artifact[camera](**{name: queues[name] for name in model.warp_keys}, **frames)
    new = {"img": seen[0], "big_img": seen[1]} if model.in_warp else {"warped": seen}
    outputs = artifact["run_policy"](**{name: queues[name] for name in model.policy_keys}, **new)
    every.append([t.numpy().copy() for t in outputs])
    if "prev_feat" in packed:
      packed["prev_feat"][:] = every[-1][0][0, model.hidden]
  return every


def parse(artifact, names, outputs):
  """Named values, by the slices of the metadata, which lie inside."""
  values = []
  for component, output in zip(names, outputs, strict=True):
    if output.ndim != 2:
      raise Refused(f"{component}: outputs is {list(output.shape)}, wanted [1, N]")
    for name, s in artifact["metadata"][component]["output_slices"].items():
      inside = tg.slice_inside(name, (s.start, s.stop, s.step), output.shape[1], component)
      values.append((name, output[:, inside]))
  return values


def examine(artifact, result):
  """Fills RESULT; refuses at the first thing that makes it useless to go on."""
  names = parts_of(artifact)
  result["model_type"] = artifact["model_type"]
  result["policy_order"] = list(artifact.get("policy_order") or [])
  recorded = artifact.get("behavior_version", "")
  if recorded and result["version"] and recorded != result["version"]:
    raise Refused(f"the artifact's version is {recorded}, wanted {result['version']}")
  result["version"] = result["version"] or recorded
  result["parsed_inputs"] = {name: {k: list(v) for k, v in artifact["metadata"][name]["input_shapes"].items()}
                             for name in names}
  artifact.setdefault("image_history_pipeline", "policy")     # older ones know no other
  model = Model(artifact, SIZE)
  for camera in CAMERAS:
    label = "{}x{}".format(*camera)
    if camera not in artifact:
      raise Refused(f"has no warp for the camera {label}")
    every = attempt(label, lambda camera=camera: drive(artifact, model, camera))
    values = parse(artifact, names, every[-1])
    result["cameras"].append(label)
    result["output_sizes"] = {name: output.shape[1] for name, output in zip(names, every[-1])}
    result["output_shapes"] = {name: list(value.shape) for name, value in values}
    result["missing"] = [name for name in REQUIRED if name not in result["output_shapes"]]
    bad = {name for step in every for name, value in parse(artifact, names, step) if not np.isfinite(value).all()}
    result["non_finite"] = sorted(bad | set(result["non_finite"]))
    result["has_control_output"] = any(name in result["output_shapes"] for name in CONTROL)
    if not bad:
      again = attempt(label, lambda camera=camera: drive(artifact, model, camera))
      if not all(tg.equal(a, b) for a, b in zip(every, again)):
        raise Refused(f"{label}: a second drive over the same frames gives other values")
  if result["missing"]:
    raise Refused(f"outputs are missing: {', '.join(result['missing'])}")
  if result["non_finite"]:
    raise Refused(f"outputs are not finite: {', '.join(result['non_finite'])}")


def validate(args):
  """The record of a validation; a model that fails is an answer, no error."""
  result = {
    "id": args.id, "status": "failed", "version": args.behavior_version, "model_type": None, "policy_order": [],
    "cameras": [], "parsed_inputs": {}, "output_sizes": {}, "output_shapes": {}, "missing": list(REQUIRED),
    "non_finite": [], "has_control_output": False,
  }
  with open(args.artifact, "rb") as f:
    result["sha256"] = hashlib.file_digest(f, "sha256").hexdigest()
  try:
    if args.params:
      check_parameters(args)
    artifact = attempt("the artifact", lambda: tg.read_artifact(args.artifact, is_out_of_band(args.artifact)))
    if not isinstance(artifact, dict):
      raise Refused("the artifact is no dict")
    examine(artifact, result)
    result["status"] = "passed"
  except Refused as e:
    result["error"] = str(e)
  return result
