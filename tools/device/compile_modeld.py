#!/usr/bin/env python3
"""ONNX models to one tinygrad artifact, with StarPilot's command line."""
import argparse
import shutil
import signal
import sys

sys.dont_write_bytecode = True  # a digest of this folder tells compilers apart

import pinned
from pinned import Refused, Unfit

POLICIES = ("on_policy", "off_policy", "policy")


def parse_arguments():
  def size(text):
    width, height = text.lower().split("x")
    return int(width), int(height)

  p = argparse.ArgumentParser(prog="compile_modeld.py", description=__doc__)
  p.add_argument("--model-type", required=True, choices=("vision_policy", "vision_multi_policy", "supercombo"))
  p.add_argument("--model-size", required=True, type=size, metavar="WxH")
  p.add_argument("--camera-resolutions", required=True, type=size, nargs="+", metavar="WxH")
  p.add_argument("--output", required=True, metavar="FILE")
  p.add_argument("--frame-skip", type=int, metavar="N", help="1 or 4, by the length of the history")
  p.add_argument("--image-history-pipeline", choices=("policy", "warp"), default="policy")
  p.add_argument("--behavior-version", metavar="vN")
  p.add_argument("--out-of-band", action="store_true", help="weights beside the pickle's opcodes")
  for name in ("supercombo", "vision", *POLICIES):
    p.add_argument(f"--{name.replace('_', '-')}-onnx", metavar="FILE")
  p.add_argument("--keep-expected", metavar="FILE", help="write what the artifact gave for known inputs")
  p.add_argument("--check", metavar="FILE", help="compile nothing: compare --output with such a file")
  args = p.parse_args()

  given = {name for name in ("supercombo", "vision", *POLICIES) if getattr(args, f"{name}_onnx")}
  allowed = {
    "supercombo": ({"supercombo"},),
    "vision_policy": ({"vision", "policy"}, {"vision", "on_policy"}),
    "vision_multi_policy": ({"vision", "on_policy", "off_policy"}, {"vision", "policy", "off_policy"}),
  }[args.model_type]
  if not args.check and given not in allowed:
    p.error(f"{args.model_type} needs one of: {'; '.join(', '.join(sorted(s)) for s in allowed)}")
  if args.frame_skip is not None and args.frame_skip < 1:
    p.error("--frame-skip: wanted 1 or more")
  args.sources = {"model" if name == "supercombo" else name: getattr(args, f"{name}_onnx") for name in sorted(given)}
  return args


def main():
  args = None
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
  try:
    pinned.enter()
    args = parse_arguments()
    if shutil.which("clang") is None:
      raise Unfit("clang: not found on PATH, make deps installs it")
    try:
      import driving    # tinygrad reads the environment when it is imported
    except ImportError as e:
      raise Unfit(f"{sys.executable}: {e}, make deps installs what is missing") from None
    (driving.check if args.check else driving.compile_model)(args)
  except Refused as e:
    print(f"compile_modeld: {e}", file=sys.stderr)
    return 1
  except OSError as e:
    print(f"compile_modeld: {e.filename or args and args.output}: {e.strerror}", file=sys.stderr)
    return 2
  except (Unfit, MemoryError) as e:
    print(f"compile_modeld: {e or 'out of memory'}", file=sys.stderr)
    return 2
  return 0


if __name__ == "__main__":
  sys.exit(main())
