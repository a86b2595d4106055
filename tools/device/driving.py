"""Driving models: their shapes, the functions captured from them, and the
artifact that these become."""
import math
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from tinygrad import Device, Tensor
from tinygrad.nn.onnx import OnnxRunner

import pinned
import tg
from pinned import Refused, Unfit

ORDER = ("on_policy", "off_policy", "policy")   # of policies in the artifact
LONG_HISTORY = 99                               # steps: no frames are skipped


def frame_skip(history):
  """Models that remember 99 steps or more see every frame, others each 4th."""
  return 1 if history >= LONG_HISTORY else 4


class Model:
  """A driving model's shapes, and the functions that are captured from it."""

  def __init__(self, artifact, size):
    self.size = size
    self.type = artifact["model_type"]
    self.skip = artifact["frame_skip"]
    self.in_warp = artifact["image_history_pipeline"] == "warp"
    self.order = artifact.get("policy_order", [])
    metadata = artifact["metadata"]
    eyes = metadata["model" if self.type == "supercombo" else "vision"]
    policies = metadata["model" if self.type == "supercombo" else self.order[0]]["input_shapes"]
    for name in self.order[1:]:
      if metadata[name]["input_shapes"] != policies:
        raise Refused(f"{name}: its input shapes differ from those of {self.order[0]}")
    self.road, self.wide = self.images(eyes["input_shapes"])
    self.image = eyes["input_shapes"][self.road]
    if "hidden_state" not in eyes["output_slices"]:
      raise Refused("output_slices has no hidden_state, so the model could remember nothing")
    self.hidden = eyes["output_slices"]["hidden_state"]
    self.features = policies.get("features_buffer")
    if self.features is None or len(self.features) != 3:
      raise Refused(f"no input features_buffer [1, steps, width] among {', '.join(policies)}")
    self.desire_name = next((name for name in policies if name.startswith("desire")), None)
    if self.desire_name is None:
      raise Refused(f"no input begins with desire among {', '.join(policies)}")
    self.desire = policies[self.desire_name]
    if len(self.desire) != 3:
      raise Refused(f"{self.desire_name}: shape is {list(self.desire)}, wanted [1, steps, pulses]")
    # what the host writes before each step, one float32 vector in this order
    self.packed = {"desire": (self.desire[2],)}
    self.packed |= {name: shape for name, shape in policies.items()
                    if name not in ("features_buffer", self.desire_name) and "img" not in name}
    if self.type == "supercombo":
      self.packed["prev_feat"] = (self.features[0], math.prod(self.features[2:]))

  @staticmethod
  def images(shapes):
    names = sorted(name for name in shapes if "img" in name)
    road = [name for name in names if "big" not in name]
    wide = [name for name in names if "big" in name]
    if len(road) != 1 or len(wide) != 1 or shapes[road[0]] != shapes[wide[0]]:
      raise Refused(f"wanted one img input and one big img input of equal shape, got {', '.join(shapes)}")
    if len(shapes[road[0]]) != 4 or shapes[road[0]][1] % 6 != 0:
      raise Refused(f"{road[0]}: shape is {list(shapes[road[0]])}, wanted [1, 6 n, h, w]")
    return road[0], wide[0]

  @property
  def warp_keys(self):
    return ("img_q", "big_img_q", "tfm", "big_tfm") if self.in_warp else ("tfm", "big_tfm")

  @property
  def policy_keys(self):
    return (() if self.in_warp else ("img_q", "big_img_q")) + ("feat_q", "desire_q", "packed_npy_inputs")

  # ---- what is captured ----

  def warp(self, camera):
    def both(frame, big_frame, tfm, big_tfm):
      tfm, big_tfm = tfm.to(Device.DEFAULT), big_tfm.to(Device.DEFAULT)
      Tensor.realize(tfm, big_tfm)
      views = [tg.six_planes(f, t, camera, self.size).unsqueeze(0) for f, t in ((frame, tfm), (big_frame, big_tfm))]
      return Tensor.cat(*views)

    def warp(tfm, big_tfm, frame, big_frame):
      return both(frame, big_frame, tfm, big_tfm)

    def warp_and_queue(img_q, big_img_q, tfm, big_tfm, frame, big_frame):
      views = both(frame, big_frame, tfm, big_tfm)
      return self.remember(img_q, views[0:1]), self.remember(big_img_q, views[1:2])
    return warp_and_queue if self.in_warp else warp

  @staticmethod
  def push(queue, newest):
    queue.assign(queue[1:].cat(newest, dim=0).contiguous())
    return queue

  def remember(self, queue, newest):
    return self.push(queue, newest)[::self.skip].contiguous().flatten(0, 1).unsqueeze(0)

  def policy(self, runners):
    def outputs(name, inputs):
      return runners[name](inputs)["outputs"].cast("float32")

    def step(img, big_img, feat_q, desire_q, vector):
      parts = vector.split([math.prod(shape) for shape in self.packed.values()])
      inputs = {name: part.reshape(shape) for (name, shape), part in zip(self.packed.items(), parts)}
      pulses = self.push(desire_q, inputs.pop("desire").reshape(1, 1, -1))
      # a pulse must not fall between two steps: the largest of each group
      pulses = pulses.reshape(-1, self.skip, *pulses.shape[1:]).max(1)
      inputs[self.desire_name] = pulses.flatten(0, 1).unsqueeze(0)
      eyes = {self.road: img, self.wide: big_img}
      if self.type == "supercombo":
        newest = inputs.pop("prev_feat").reshape(1, 1, -1)
        inputs["features_buffer"] = self.remember(feat_q, newest).reshape(self.features)
        return (outputs("model", eyes | inputs),)
      seen = outputs("vision", eyes)
      newest = seen[:, self.hidden].reshape(1, 1, -1)
      inputs["features_buffer"] = self.remember(feat_q, newest).reshape(self.features)
      return (seen, *(outputs(name, inputs) for name in self.order))

    def run_policy(warped, img_q, big_img_q, feat_q, desire_q, packed_npy_inputs):
      vector, warped = packed_npy_inputs.to(Device.DEFAULT), warped.to(Device.DEFAULT)
      Tensor.realize(vector, warped)
      img, big_img = self.remember(img_q, warped[0:1]), self.remember(big_img_q, warped[1:2])
      return step(img, big_img, feat_q, desire_q, vector)

    def run_policy_on_images(img, big_img, feat_q, desire_q, packed_npy_inputs):
      return step(img, big_img, feat_q, desire_q, packed_npy_inputs.to(Device.DEFAULT).realize())
    return run_policy_on_images if self.in_warp else run_policy

  # ---- inputs for trials, made from the metadata alone ----

  def queues(self):
    """All inputs that last from step to step, and the host arrays among them."""
    frames = self.skip * (self.image[1] // 6 - 1) + 1
    steps = self.skip * self.features[1] if self.type == "supercombo" else self.skip * (self.features[1] - 1) + 1
    host = {"tfm": np.zeros((3, 3), np.float32), "big_tfm": np.zeros((3, 3), np.float32)}
    host["packed_npy_inputs"] = np.zeros(sum(math.prod(s) for s in self.packed.values()), np.float32)
    queues = {name: tg.on_device(np.zeros((frames, 6, *self.image[2:]), np.uint8)) for name in ("img_q", "big_img_q")}
    queues["feat_q"] = tg.on_device(np.zeros((steps, self.features[0], math.prod(self.features[2:])), np.float32))
    queues["desire_q"] = tg.on_device(np.zeros((self.skip * self.desire[1], self.desire[0], self.desire[2]), np.float32))
    queues |= {name: Tensor(array, device="NPY").realize() for name, array in host.items()}
    return queues, host

  def trial(self, what):
    """See run_trial; WHAT is run_policy or a camera."""
    def make(rng):
      queues, host = self.queues()
      if what == "run_policy":
        kwargs = {name: queues[name] for name in self.policy_keys}
        if self.in_warp:
          kwargs |= {name: tg.random_bytes(rng, *self.image) for name in ("img", "big_img")}
        else:
          kwargs["warped"] = tg.random_bytes(rng, 2, 6, *self.image[2:])
      else:
        kwargs = {name: queues[name] for name in self.warp_keys}
        kwargs |= {name: tg.random_bytes(rng, tg.nv12(what)[2]) for name in ("frame", "big_frame")}

      def refill(generator):
        for name, array in host.items():
          if name in kwargs and array.shape == (3, 3):
            array[:] = tg.random_view(generator, what, self.size)
          elif name in kwargs:
            array[:] = generator.standard_normal(array.shape, dtype="float32")
      return kwargs, refill
    return make


def label(what):
  return what if isinstance(what, str) else f"warp {what[0]}x{what[1]}"


def canonical(value):
  """VALUE with one object for equal strings: a pickle shows which are shared."""
  if isinstance(value, str):
    return sys.intern(value)
  if isinstance(value, dict):
    return {canonical(k): canonical(v) for k, v in value.items()}
  return type(value)(map(canonical, value)) if isinstance(value, (list, tuple)) else value


def describe(args):
  """The artifact without its captured functions; refuses what cannot work."""
  metadata = {name: tg.read_metadata(path) for name, path in args.sources.items()}
  order = [name for name in ORDER if name in metadata]
  first = metadata[order[0] if order else "model"]["input_shapes"]
  history = first.get("features_buffer", (1, 0))[1]
  artifact = {
    "format_version": 1,
    "model_type": args.model_type,
    "metadata": {name: metadata[name] for name in ("model", "vision", *order) if name in metadata},
    "image_history_pipeline": args.image_history_pipeline,
  }
  if args.behavior_version:
    artifact["behavior_version"] = args.behavior_version
  if order:
    artifact["policy_order"] = order
  artifact["frame_skip"] = args.frame_skip or frame_skip(history)
  model = Model(artifact, args.model_size)
  artifact["policy_input_keys"] = model.policy_keys
  artifact["warp_input_keys"] = model.warp_keys
  return canonical(artifact)


def attempt(what, action):
  """ACTION's value; a failure becomes one line that begins with WHAT."""
  try:
    return action()
  except (OSError, MemoryError):
    raise
  except Refused as e:
    raise Refused(f"{what}: {e}") from e
  except Exception as e:    # whatever an unknown model makes tinygrad stumble over
    raise Refused(f"{what}: {type(e).__name__}: {e}".splitlines()[0]) from e


def load(path, folder):
  """A runner for the model at PATH; FOLDER is for a copy, where one is needed."""
  if not os.access(path, os.W_OK):  # tinygrad opens every file for writing
    path = shutil.copy(path, tempfile.mkdtemp(dir=folder))
    os.chmod(path, 0o600)
  return OnnxRunner(path)


def compile_model(args):
  artifact = describe(args)
  model = Model(artifact, args.model_size)
  tg.say(f"compile {args.model_type}: {', '.join(args.sources)}; frame skip {model.skip}, "
         f"tinygrad {pinned.tinygrad_version()}, {os.environ['DEV']}")
  expected = {}
  with tempfile.TemporaryDirectory(prefix="compile-modeld-") as folder:
    runners = {name: attempt(path, lambda path=path: load(path, folder)) for name, path in args.sources.items()}
    for what in ("run_policy", *args.camera_resolutions):
      function = model.policy(runners) if what == "run_policy" else model.warp(what)
      artifact[what], values = attempt(label(what), lambda: tg.capture(label(what), function, model.trial(what)))
      expected |= values
      if what == "run_policy":
        check_widths(artifact, model, expected)
    with tg.output(args.output) as f:
      known = os.path.join(folder, "expected.npz")
      np.savez(known, **expected)
      tg.write_artifact(artifact, f, args.out_of_band)
      f.flush()
      recheck(args, f.name, known)
      if args.keep_expected:
        shutil.copyfile(known, args.keep_expected)
  tg.say(f"saved {args.output}: {os.path.getsize(args.output)} bytes")


def check_widths(artifact, model, expected):
  """The slices were checked against the declared width: it must be the true one."""
  for i, name in enumerate(("model",) if model.type == "supercombo" else ("vision", *model.order)):
    declared = artifact["metadata"][name]["output_shapes"]["outputs"]
    true = expected[f"run_policy/{tg.SEEDS[0]}/{i}"].shape
    if tuple(true) != tuple(declared):
      raise Refused(f"{name}: outputs is {list(true)}, its metadata say {list(declared)}")


def recheck(args, path, known):
  """Loads PATH in a fresh process: here the live weights would be found again."""
  command = [sys.executable, os.path.join(pinned.HERE, "compile_modeld.py"), "--check", known, "--output", path,
             "--model-type", args.model_type, "--model-size", "{}x{}".format(*args.model_size),
             "--camera-resolutions", *("{}x{}".format(*camera) for camera in args.camera_resolutions)]
  done = subprocess.run(command + (["--out-of-band"] if args.out_of_band else []), check=False)
  if done.returncode != 0:
    raise (Refused if done.returncode == 1 else Unfit)("the saved artifact failed its check, nothing was installed")


def check(args):
  """Runs a saved artifact on the inputs of its trials."""
  artifact = attempt(args.output, lambda: tg.read_artifact(args.output, args.out_of_band))
  if artifact.get("format_version") != 1 or artifact.get("model_type") != args.model_type:
    raise Refused(f"{args.output}: not an artifact of a {args.model_type}")
  model = Model(artifact, args.model_size)
  with np.load(args.check, allow_pickle=False) as expected:
    expected = {name: expected[name] for name in expected.files}
  for what in ("run_policy", *args.camera_resolutions):
    if what not in artifact:
      raise Refused(f"{args.output}: has no {label(what)}")
    attempt(label(what), lambda: tg.agrees(label(what), artifact[what], model.trial(what), expected))
  tg.say(f"check in a fresh process: {1 + len(args.camera_resolutions)} functions agree")
