"""What every tinygrad driver here needs: metadata, camera frames, capture,
artifacts, and the check of a saved artifact in a fresh process."""
import contextlib
import enum
import fcntl
import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import tempfile
import time

import numpy as np
from tinygrad import Context, Device, Tensor, TinyJit

from pinned import Refused, Unfit

SEEDS = (42, 43)
UINT8 = 2       # TensorProto.DataType


def say(text):
  print(text, flush=True)


# ---- what an ONNX file says about itself ----

def slice_inside(name, where, width, path):
  """The slice [start, stop, step] of onnx-meta, if it lies inside the output."""
  start, stop, step = where
  ends = [v for v in (start, stop) if v is not None]
  if step not in (None, 1) or any(v < -width or v > width for v in ends):
    raise Refused(f"{path}: output_slices: {name} is {start}:{stop}:{step}, the output has width {width}")
  first, last, _ = slice(start, stop, step).indices(width)
  if last < first:
    raise Refused(f"{path}: output_slices: {name} is {start}:{stop}, which ends before it begins")
  return slice(start, stop, step)


def read_metadata(path):
  """onnx-meta reads the file: nothing here parses protobuf or unpickles it."""
  if not os.path.isfile(path):
    raise Refused(f"{path}: no such file")
  tool = os.environ.get("MR_ONNX_META", "onnx-meta")
  try:
    done = subprocess.run([tool, "--", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
  except OSError as e:
    raise Unfit(f"{tool}: {e.strerror}") from None
  if done.returncode != 0:
    raise (Refused if done.returncode == 1 else Unfit)(f"{path}: refused by onnx-meta")
  meta = json.loads(done.stdout)
  shapes = {side: {name: tuple(dims) for name, dims in meta[side].items()} for side in ("input_shapes", "output_shapes")}
  name, shape = next(iter(shapes["output_shapes"].items()))
  if name != "outputs" or len(shape) != 2 or shape[0] != 1 or shape[1] < 1:
    raise Refused(f"{path}: the first output is {name} {list(shape)}, wanted outputs [1, N]")
  for name, dims in shapes["input_shapes"].items():
    if not dims or min(dims) < 1:
      raise Refused(f"{path}: input {name} has shape {list(dims)}, wanted known sizes")
  for image, kind in meta["input_types"].items():
    if "img" in image and kind != UINT8:
      raise Refused(f"{path}: input {image} has element type {kind}, wanted {UINT8} (uint8)")
  return {
    "model_checkpoint": meta["model_checkpoint"],
    "output_slices": {k: slice_inside(k, v, shape[1], path) for k, v in meta["output_slices"].items()},
    **shapes,
  }


# ---- camera frames ----

def round_up(value, to):
  return -(-value // to) * to


def nv12(camera):
  """Stride, rows of the Y plane, and bytes of a frame, as camerad lays it out."""
  width, height = camera
  stride, y_rows, uv_rows = round_up(width, 128), round_up(height, 32), round_up(height // 2, 16)
  planes = stride * (y_rows + uv_rows)
  padded = round_up(planes + 4096 + max(16 * 1024, 8 * stride), 4096)
  return stride, y_rows, round_up(padded + round_up(width, 512) * 512, 4096)


def resample(frame, matrix, out_size, in_size, offset, stride, step):
  """Nearest pixels of a plane, seen through the inverse homography MATRIX."""
  (out_w, out_h), (in_w, in_h) = out_size, in_size
  x = Tensor.arange(out_w).reshape(1, out_w).expand(out_h, out_w).flatten()
  y = Tensor.arange(out_h).reshape(out_h, 1).expand(out_h, out_w).flatten()
  u, v, w = (row[0] * x + row[1] * y + row[2] for row in matrix)
  column = (u / w).round().clip(0, in_w - 1).cast("int")
  line = (v / w).round().clip(0, in_h - 1).cast("int")
  return frame[line * stride + column * step + offset]


def six_planes(frame, tfm, camera, size):
  """An NV12 frame as openpilot's models see it: four Y phases, U, V."""
  (cam_w, cam_h), (w, h) = camera, size
  stride, y_rows, _ = nv12(camera)
  full = [[tfm[r, c] for c in range(3)] for r in range(3)]
  # the chroma planes have half the pixels: halve the offsets, double the slopes
  scale = ((1, 1, 0.5), (1, 1, 0.5), (2, 2, 1))
  half = [[tfm[r, c] * scale[r][c] for c in range(3)] for r in range(3)]
  with Context(SPLIT_REDUCEOP=0):
    luma = resample(frame, full, (w, h), camera, 0, stride, 1).realize().reshape(h, w)
    chroma = [resample(frame, half, (w // 2, h // 2), (cam_w // 2, cam_h // 2), stride * y_rows + first, stride, 2)
              .realize().reshape(1, h // 2, w // 2) for first in (0, 1)]
  phases = [luma[row::2, column::2].unsqueeze(0) for column in (0, 1) for row in (0, 1)]
  return Tensor.cat(*phases, *chroma, dim=0)


# ---- random inputs ----

def on_device(array):
  return Tensor(array, device=Device.DEFAULT).contiguous().realize()


def random_bytes(rng, *shape):
  return on_device(rng.integers(0, 256, shape, dtype=np.uint8))


def random_view(rng, camera, size):
  """A plausible inverse homography: near the plain scaling of SIZE to CAMERA."""
  m = np.diag([camera[0] / size[0], camera[1] / size[1], 1.0])
  m[:2] += rng.standard_normal((2, 3)) * [0.05, 0.05, 20]
  m[2, :2] = rng.standard_normal(2) * 1e-5
  return m.astype(np.float32)


# ---- artifacts on disk ----

class Pickler(pickle.Pickler):
  """Writes an enum member as Class(value), whatever the Python: 3.11.0 to
  3.11.3 would go through builtins.getattr, which a scanner must refuse."""

  def reducer_override(self, obj):
    return (type(obj), (obj.value,)) if isinstance(obj, enum.Enum) else NotImplemented


def write_artifact(obj, f, out_of_band):
  """In band: protocol 4. Out of band: int64 n, n bytes of protocol 5, then
  int64 size and the bytes of each buffer; little-endian."""
  if not out_of_band:
    Pickler(f, protocol=4).dump(obj)
    return
  with tempfile.TemporaryFile() as buffers:
    def aside(buffer):
      with buffer.raw() as raw:
        buffers.write(struct.pack("<q", raw.nbytes))
        buffers.write(raw)
      buffer.release()
    code = io.BytesIO()
    Pickler(code, protocol=5, buffer_callback=aside).dump(obj)
    f.write(struct.pack("<q", code.tell()))
    f.write(code.getbuffer())
    buffers.seek(0)
    shutil.copyfileobj(buffers, f)


def read_artifact(path, out_of_band):
  with open(path, "rb") as f:
    if not out_of_band:
      return pickle.load(f)
    left = os.fstat(f.fileno()).st_size

    def block():
      nonlocal left
      size = struct.unpack("<q", f.read(8))[0]
      left -= 8 + size
      if size < 0 or left < 0:
        raise EOFError("a block runs past the end of the file")
      return bytearray(f.read(size))

    def buffers():
      while left > 0:
        yield pickle.PickleBuffer(block())
    code = block()
    return pickle.loads(code, buffers=buffers())


@contextlib.contextmanager
def output(path):
  """A file beside PATH that takes its name when all went well, else is gone."""
  folder, name = os.path.split(os.path.abspath(path))
  temporary = os.path.join(folder, f".{name}.tmp")
  with open(temporary, "ab") as f:
    try:
      fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      raise Unfit(f"{path}: another compile is writing it") from None
    try:
      f.truncate(0)
      yield f
      f.flush()
      os.fsync(f.fileno())
      os.replace(temporary, path)
    except BaseException:
      os.unlink(temporary)
      raise
  fd = os.open(folder, os.O_RDONLY)
  try:
    os.fsync(fd)
  except OSError:
    pass    # some file systems cannot: no more can be done
  finally:
    os.close(fd)


# ---- capture, and proof that the capture is right ----
# A trial is a function of a random generator that returns the keyword
# arguments of a captured function and a function that refills its host arrays.

def run_trial(function, trial, seed, calls=1):
  """The outputs, then the queues, after the first of CALLS calls."""
  rng = np.random.default_rng(seed)
  kwargs, refill = trial(rng)
  first = None
  for _ in range(calls):
    refill(rng)
    outputs = function(**kwargs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    if first is None:
      queues = [kwargs[k] for k in sorted(kwargs) if k.endswith("_q")]
      first = [t.numpy().copy() for t in outputs], [t.numpy().copy() for t in queues]
      for i, values in enumerate(first[0]):
        if not np.isfinite(values).all():
          raise Refused(f"output {i} is not finite")
  return first


def equal(a, b):
  return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b))


def capture(name, function, trial):
  """The captured function, and what it must give for each of SEEDS."""
  began = time.perf_counter()
  jit = TinyJit(function, prune=True)
  # the first call runs eagerly, the second is captured, the third replayed,
  # each with inputs of its own: so a constant caught by mistake shows
  outputs, queues = run_trial(jit, trial, SEEDS[0], calls=3)
  others, other_queues = run_trial(jit, trial, SEEDS[1])
  again, again_queues = run_trial(jit, trial, SEEDS[0])
  if not equal(outputs, again) or not equal(queues, again_queues):
    raise Refused("the replay differs from the eager run")
  for i, (a, b) in enumerate(zip(outputs, others)):
    if np.array_equal(a, b):
      raise Refused(f"output {i} does not depend on the inputs")
  say(f"capture {name}: {time.perf_counter() - began:.1f} s")
  expected = {}
  for seed, values in zip(SEEDS, (outputs + queues, others + other_queues)):
    expected.update({f"{name}/{seed}/{i}": v for i, v in enumerate(values)})
  return jit, expected


def agrees(name, jit, trial, expected):
  """Refuses a loaded function that gives other values than EXPECTED."""
  for seed in SEEDS:
    outputs, queues = run_trial(jit, trial, seed)
    want = [expected[k] for i in range(len(expected)) if (k := f"{name}/{seed}/{i}") in expected]
    if not equal(outputs + queues, want):
      raise Refused("the saved artifact gives other values than the captured function")
