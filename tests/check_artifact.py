#!/usr/bin/env python3
"""Checks one artifact against the ONNX files that it was compiled from.

    check_artifact.py ARTIFACT ONNX...

Loads the artifact with tinygrad (so run it in a fresh process, one artifact
each), runs the captured policy from 20 seeds and both warps on random inputs,
and compares: the metadata with this program's own reading of the ONNX files;
the outputs with its own evaluation of them in numpy, in double precision, and
with its own queues of images, features and desires; the warps with its own
sampling of the frames. The relative error of a value is its difference by the
wanted one, or by the root mean square of that output where this is larger.
It shares no code with tools/device. One line for each check; status 0 or 1.
"""
import base64
import io
import math
import os
import pickle
import struct
import sys

os.environ.setdefault("DEV", "CPU")
os.environ["CACHELEVEL"] = "0"

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

CAMERAS = ((1928, 1208), (1344, 760))
SEEDS = 20
STEPS = 2       # from each: random histories, then one that was pushed on
LARGEST = {False: 1e-3, True: 2e-2}     # relative error, by half precision
failures = 0


def check(truth, text):
  global failures
  print(f"{'ok' if truth else 'not ok'} - {text}", flush=True)
  failures += not truth


# ---- ONNX: protobuf, onnx.proto3 of onnx 1.18 ----

def fields(data):
  """(number, value) of a message; a varint is an int, else bytes."""
  at = 0

  def varint():
    nonlocal at
    value = shift = 0
    while True:
      byte = data[at]
      at += 1
      value |= (byte & 127) << shift
      shift += 7
      if byte < 128:
        return value

  while at < len(data):
    tag = varint()
    if tag & 7 == 0:
      yield tag >> 3, varint()
    elif tag & 7 == 2:
      size = varint()
      assert size <= len(data) - at, "truncated"
      yield tag >> 3, data[at:at + size]
      at += size
    else:
      size = {1: 8, 5: 4}[tag & 7]
      yield tag >> 3, data[at:at + size]
      at += size


def every(data, number):
  return [value for n, value in fields(data) if n == number]


def one(data, number, default=None):
  return next(iter(every(data, number)), default)


def text(data):
  return bytes(data).decode()


class OnlySlices(pickle.Unpickler):
  def find_class(self, module, name):
    assert (module, name) == ("builtins", "slice"), f"{module}.{name} in output_slices"
    return slice


class Onnx:
  def __init__(self, path):
    with open(path, "rb") as f:
      model = memoryview(f.read())
    graph = one(model, 7)
    properties = {text(one(p, 1)): text(one(p, 2)) for p in every(model, 14)}
    self.weights = {text(one(t, 8)): self.tensor(t) for t in every(graph, 5)}
    self.half = any(one(t, 2) == 10 for t in every(graph, 5))
    self.nodes = every(graph, 1)
    self.metadata = {
      "model_checkpoint": properties.get("model_checkpoint"),
      "output_slices": OnlySlices(io.BytesIO(base64.b64decode(properties["output_slices"]))).load(),
      "input_shapes": self.shapes(graph, 11),
      "output_shapes": self.shapes(graph, 12),
    }

  @staticmethod
  def shapes(graph, number):
    return {text(one(v, 1)): tuple(one(d, 1, 0) for d in every(one(one(one(v, 2), 1), 2), 1))
            for v in every(graph, number)}

  @staticmethod
  def tensor(t):
    kind = {1: "<f4", 7: "<i8", 10: "<f2"}[one(t, 2)]
    values = np.frombuffer(one(t, 9), kind).reshape(every(t, 1))
    return values if kind == "<i8" else values.astype(np.float64)

  def run(self, inputs):
    """The value of `outputs`: just the operators that the test models use."""
    values = dict(self.weights) | inputs
    for node in self.nodes:
      attributes = {}
      for a in every(node, 5):
        number = one(a, 20)
        attributes[text(one(a, 1))] = every(a, 8) if number == 7 else one(a, 3)
      result = operator(text(one(node, 4)), [values[text(n)] for n in every(node, 1)], attributes)
      values[text(one(node, 2))] = result
    return values["outputs"]


def operator(kind, x, a):
  axis = a.get("axis", 0)
  axis -= (axis >> 63) << 64    # a negative varint
  if kind == "Cast":
    return x[0].astype({1: np.float32, 10: np.float16}[a["to"]]).astype(np.float64)
  if kind == "Concat":
    return np.concatenate(x, axis=axis)
  if kind == "Softmax":
    e = np.exp(x[0] - x[0].max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
  if kind == "Conv":
    pad, (s, _), k = a["pads"][0], a["strides"], a["kernel_shape"]
    padded = np.pad(x[0], ((0, 0), (0, 0), (pad, a["pads"][2]), (pad, a["pads"][3])))
    windows = sliding_window_view(padded, k, axis=(2, 3))[:, :, ::s, ::s]
    return np.einsum("bchwij,ocij->bohw", windows, x[1], optimize=True) + x[2].reshape(1, -1, 1, 1)
  return {
    "Add": lambda: x[0] + x[1],
    "Mul": lambda: x[0] * x[1],
    "MatMul": lambda: x[0] @ x[1],
    "Gemm": lambda: x[0] @ x[1].T + x[2],
    "Relu": lambda: np.maximum(x[0], 0),
    "Elu": lambda: np.where(x[0] > 0, x[0], np.expm1(np.minimum(x[0], 0))),
    "ReduceMean": lambda: x[0].mean(axis=tuple(a["axes"])),
    "Flatten": lambda: x[0].reshape(x[0].shape[0], -1),
    "Reshape": lambda: x[0].reshape(x[1]),
    "Transpose": lambda: x[0].transpose(a["perm"]),
  }[kind]()


# ---- the artifact ----

def load(path):
  """In band, or framed: int64 n, n bytes of opcodes, {int64 size, bytes}..."""
  with open(path, "rb") as f:
    data = f.read()
  if data[8:10] != b"\x80\x05" or not 0 < struct.unpack("<q", data[:8])[0] <= len(data) - 8:
    return pickle.loads(data)
  blocks, at = [], 0
  while at < len(data):
    size = struct.unpack("<q", data[at:at + 8])[0]
    assert 0 <= size <= len(data) - at - 8, "a block runs past the end"
    blocks.append(bytearray(data[at + 8:at + 8 + size]))
    at += 8 + size
  return pickle.loads(blocks[0], buffers=blocks[1:])


def component(path):
  """The metadata key of driving_NAME, ID_driving_NAME or ID_NAME."""
  stem = os.path.basename(path).removesuffix(".onnx")
  for name in ("supercombo", "off_policy", "on_policy", "policy", "vision"):
    if stem == name or stem.endswith("_" + name):
      return "model" if name == "supercombo" else name
  sys.exit(f"{path}: not the name of a component")


def tensor(array, device=None):
  from tinygrad import Device, Tensor
  t = Tensor(array, device=device or Device.DEFAULT)
  return t.realize() if device else t.contiguous().realize()


def frame_bytes(width, height):
  """camerad's NV12 buffers: planes padded to 128 columns and 32 or 16 rows."""
  stride = (width + 127) // 128 * 128
  rows = (height + 31) // 32 * 32
  planes = stride * (rows + (height // 2 + 15) // 16 * 16)
  a = planes + 4096 + max(16384, 8 * stride)
  b = (a + 4095) // 4096 * 4096 + (width + 511) // 512 * 512 * 512
  return stride, rows, (b + 4095) // 4096 * 4096


class History:
  """The last frames, features or desires, oldest first; new ones at the end."""

  def __init__(self, values):
    self.queue = values

  def push(self, value):
    self.queue = np.concatenate([self.queue[1:], value.reshape(1, *self.queue.shape[1:])])
    return self.queue


def check_policy(artifact, onnx):
  supercombo = artifact["model_type"] == "supercombo"
  order = artifact.get("policy_order", [])
  eyes = onnx["model" if supercombo else "vision"]
  mind = onnx["model" if supercombo else order[0]]
  shapes, skip = mind.metadata["input_shapes"], artifact["frame_skip"]
  road, wide = sorted((k for k in eyes.metadata["input_shapes"] if "img" in k), key=lambda k: "big" in k)
  images = eyes.metadata["input_shapes"][road]
  _, steps, width = shapes["features_buffer"]
  desire = next(k for k in shapes if k.startswith("desire"))
  rest = {k: s for k, s in shapes.items() if k != desire and k != "features_buffer" and "img" not in k}
  if supercombo:
    rest["prev_feat"] = (1, width)
  sizes = [shapes[desire][2], *(math.prod(s) for s in rest.values())]
  hidden = eyes.metadata["output_slices"]["hidden_state"]

  in_policy = artifact["image_history_pipeline"] == "policy"
  names = ["model"] if supercombo else ["vision", *order]
  lasting = ["feat_q", "desire_q", "packed_npy_inputs", *(["img_q", "big_img_q"] if in_policy else [])]
  check(set(artifact["policy_input_keys"]) == set(lasting), f"policy_input_keys are {', '.join(sorted(lasting))}")

  def begin(rng):
    """Random histories, and the tensors that the artifact keeps them in."""
    past = skip * (images[1] // 6 - 1) + 1, 6, *images[2:]
    frames = [History(rng.integers(0, 256, past, dtype=np.uint8)) for _ in (road, wide)]
    features = History(rng.standard_normal((skip * steps if supercombo else skip * (steps - 1) + 1, width), np.float32))
    pulses = History(rng.standard_normal((skip * shapes[desire][1], shapes[desire][2]), np.float32))
    vector = np.zeros(sum(sizes), np.float32)
    queues = {"feat_q": tensor(features.queue[:, None]), "desire_q": tensor(pulses.queue[:, None]),
              "packed_npy_inputs": tensor(vector, "NPY")}
    if in_policy:
      queues |= {"img_q": tensor(frames[0].queue), "big_img_q": tensor(frames[1].queue)}
    return frames, features, pulses, vector, queues

  def step(rng, frames, features, pulses, vector, queues):
    """What the artifact gives for new inputs, and what the ONNX files do."""
    warped = rng.integers(0, 256, (2, 6, *images[2:]), dtype=np.uint8)
    vector[:] = rng.standard_normal(vector.shape, np.float32)
    seen = {k: f.push(w)[::skip].reshape(images) for k, f, w in zip((road, wide), frames, warped)}
    new = {"warped": tensor(warped)} if in_policy else {"img": tensor(seen[road]), "big_img": tensor(seen[wide])}
    outputs = [t.numpy() for t in artifact["run_policy"](**queues, **new)]
    parts = np.split(vector, np.cumsum(sizes)[:-1])
    inputs = {k: p.reshape(s) for (k, s), p in zip(rest.items(), parts[1:])}
    grouped = pulses.push(parts[0]).reshape(-1, skip, sizes[0]).max(axis=1)
    inputs[desire] = grouped.reshape(shapes[desire])
    if supercombo:
      inputs["features_buffer"] = features.push(inputs.pop("prev_feat"))[::skip].reshape(shapes["features_buffer"])
      return outputs, [mind.run(seen | inputs)]
    vision = eyes.run(seen)
    inputs["features_buffer"] = features.push(vision[:, hidden])[::skip].reshape(shapes["features_buffer"])
    return outputs, [vision, *(onnx[name].run(inputs) for name in order)]

  worst, finite, shaped = 0.0, True, True
  for seed in range(SEEDS):
    rng = np.random.default_rng(seed)
    state = begin(rng)
    for _ in range(STEPS):
      for name, got, wanted in zip(names, *step(rng, *state), strict=True):
        shaped &= got.shape == onnx[name].metadata["output_shapes"]["outputs"] == wanted.shape
        finite &= bool(np.isfinite(got).all())
        scale = np.maximum(np.abs(wanted), np.sqrt(np.mean(wanted ** 2)))
        worst = max(worst, float((np.abs(got - wanted) / scale).max())) if shaped and finite else math.inf
  half = any(m.half for m in onnx.values())
  check(shaped, f"run_policy gives what {', '.join(names)} declare")
  check(finite, f"its outputs are finite from {SEEDS} seeds")
  check(worst <= LARGEST[half], f"they are those of the ONNX files in numpy: float{16 if half else 32}, {SEEDS} seeds, "
        f"maximum relative error {worst:.1e}, at most {LARGEST[half]:.0e}")


def check_warp(artifact, camera, rng):
  width, height = camera
  stride, rows, size = frame_bytes(width, height)
  frames = rng.integers(0, 256, (2, size), dtype=np.uint8)
  matrices = np.empty((2, 3, 3), np.float32)
  for m in matrices:
    m[:] = [[width / 512 * 1.02, 0.02, 3], [-0.01, height / 256 * 0.99, 2], [1e-6, -2e-6, 1]]
    m += rng.standard_normal((3, 3)) * [[0.01, 0.01, 5], [0.01, 0.01, 5], [1e-7, 1e-7, 0]]
  keys = {"frame": tensor(frames[0]), "big_frame": tensor(frames[1]),
          "tfm": tensor(matrices[0], "NPY"), "big_tfm": tensor(matrices[1], "NPY")}
  in_policy = artifact["image_history_pipeline"] == "policy"
  if not in_policy:
    shape = (artifact["frame_skip"] + 1, 6, 128, 256)
    keys |= {k: tensor(np.zeros(shape, np.uint8)) for k in ("img_q", "big_img_q")}
  name = f"warp {width}x{height}"
  check(set(artifact["warp_input_keys"]) | {"frame", "big_frame"} == set(keys), f"{name} takes {', '.join(sorted(keys))}")
  got = artifact[camera](**keys)
  got = got.numpy() if in_policy else np.concatenate([t.numpy()[:, -6:] for t in got])

  wanted = np.empty((2, 6, 128, 256), np.uint8)
  for image, frame, m in zip(wanted, frames, matrices.astype(np.float64)):
    luma = nearest(frame[:stride * rows].reshape(rows, stride)[:height, :width], m, 512, 256)
    image[:4] = luma[0::2, 0::2], luma[1::2, 0::2], luma[0::2, 1::2], luma[1::2, 1::2]
    chroma = frame[stride * rows:stride * (rows + height // 2)].reshape(height // 2, stride)[:, :width]
    # pixel (x, y) of a half-size plane is (2x, 2y) of the whole, and back
    s = m * [[1, 1, 0.5], [1, 1, 0.5], [2, 2, 1]]
    image[4], image[5] = nearest(chroma[:, 0::2], s, 256, 128), nearest(chroma[:, 1::2], s, 256, 128)
  equal = (got == wanted).mean() if got.shape == wanted.shape else 0
  # float32 may round a coordinate that lies between two pixels the other way
  check(equal > 0.999, f"{name} gives {list(got.shape)} {got.dtype}, {equal:.3%} of it as sampled in numpy")


def nearest(plane, m, width, height):
  x, y = np.meshgrid(np.arange(width), np.arange(height))
  u, v, w = (m[r, 0] * x + m[r, 1] * y + m[r, 2] for r in range(3))
  column = np.rint(u / w).clip(0, plane.shape[1] - 1).astype(int)
  line = np.rint(v / w).clip(0, plane.shape[0] - 1).astype(int)
  return plane[line, column]


def main(path, sources):
  artifact = load(path)
  check(artifact["format_version"] == 1, "format_version is 1")
  metadata = artifact["metadata"]
  onnx = {}
  for source in sources:
    name = component(source)
    if name == "on_policy" and name not in metadata:
      name = "policy"     # a lone on_policy takes the policy's place
    onnx[name] = Onnx(source)
  kind = {frozenset({"model"}): "supercombo", frozenset({"vision", "policy"}): "vision_policy"}
  check(artifact["model_type"] == kind.get(frozenset(onnx), "vision_multi_policy"),
        f"model_type is {artifact['model_type']}")
  check(set(metadata) == set(onnx), f"metadata are of {', '.join(metadata)}")
  for name, model in onnx.items():
    check(metadata.get(name) == model.metadata and list(metadata[name]) == list(model.metadata),
          f"metadata of {name} are what its ONNX file says")
    width = model.metadata["output_shapes"]["outputs"][-1]
    check(all((s.stop or 0) <= width for s in model.metadata["output_slices"].values()), f"slices of {name} lie inside")
  rng = np.random.default_rng(7)
  check_policy(artifact, onnx)
  for camera in CAMERAS:
    check(camera in artifact, f"has a warp for {camera[0]}x{camera[1]}")
    if camera in artifact:
      check_warp(artifact, camera, rng)
  return failures > 0


if __name__ == "__main__":
  if len(sys.argv) < 3:
    sys.exit("usage: check_artifact.py ARTIFACT ONNX...")
  sys.exit(main(sys.argv[1], sys.argv[2:]))
