#!/usr/bin/env python3
"""Runs an artifact as a car would, on synthetic frames; writes what it found."""
import argparse
import json
import signal
import sys

sys.dont_write_bytecode = True  # a digest of this folder tells compilers apart

import pinned
from pinned import Refused, Unfit


def parse_arguments():
  p = argparse.ArgumentParser(prog="validate_modeld.py", description=__doc__)
  p.add_argument("artifact", metavar="ARTIFACT")
  p.add_argument("--id", required=True)
  p.add_argument("--behavior-version", metavar="vN", default="")
  p.add_argument("--result", required=True, metavar="FILE")
  p.add_argument("--params", metavar="DIR", help="the car's parameters, which must name this model")
  p.add_argument("--unpinned", action="store_true", help="keep the environment of the caller")
  return p.parse_args()


def main():
  args = None
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
  try:
    args = parse_arguments()
    if not args.unpinned:
      pinned.enter()
    try:
      import validating   # tinygrad reads the environment when it is imported
    except ImportError as e:
      raise Unfit(f"{sys.executable}: {e}, make deps installs what is missing") from None
    result = validating.validate(args)
    with validating.tg.output(args.result) as f:
      f.write(json.dumps(result, indent=2, ensure_ascii=False).encode() + b"\n")
    if result["status"] != "passed":
      raise Refused(f"{args.id}: {result['error']}")
  except Refused as e:
    print(f"validate_modeld: {e}", file=sys.stderr)
    return 1
  except OSError as e:
    print(f"validate_modeld: {e.filename or args.artifact}: {e.strerror}", file=sys.stderr)
    return 2
  except (Unfit, MemoryError) as e:
    print(f"validate_modeld: {e or 'out of memory'}", file=sys.stderr)
    return 2
  return 0


if __name__ == "__main__":
  sys.exit(main())
