"""The environment of a compile: what the file `environment` says, no more."""
import importlib.metadata
import os
import pathlib
import platform
import sys

HERE = pathlib.Path(__file__).resolve().parent


class Refused(Exception):
  """The answer is no: one line for the person who reads the log."""


class Unfit(Exception):
  """This machine cannot compile: one line that says what is missing."""


def tinygrad_version():
  try:
    return importlib.metadata.version("tinygrad")
  except importlib.metadata.PackageNotFoundError:
    raise Unfit(f"{sys.executable}: has no tinygrad, make deps installs it") from None


def wanted():
  """The variables that a compile on this machine has."""
  machine = platform.machine().lower()
  machine = {"aarch64": "arm64", "amd64": "x86_64"}.get(machine, machine)
  version = tinygrad_version()
  env = {}
  for line in (HERE / "environment").read_text().splitlines():
    words = line.split()
    if not words or words[0].startswith("#"):
      continue
    if words[0] == "keep":
      env.update((name, os.environ[name]) for name in words[1:] if name in os.environ)
      continue
    arch, release, name, value = words
    if arch in ("all", machine) and (release == "-" or version.startswith(release)):
      env[name] = value
  if "DEV" not in env:
    raise Unfit(f"{machine}: no compile target is pinned for this machine")
  return env


def enter():
  """Starts this program anew unless its environment is the wanted one."""
  if sys.version_info < (3, 11):
    raise Unfit(f"{sys.executable}: is Python {platform.python_version()}, wanted 3.11 or newer")
  env = wanted()
  # what begins with _ is set by shells, by macOS, and by us
  odd = {name for name in env.keys() | os.environ.keys()
         if not name.startswith("_") and env.get(name) != os.environ.get(name)}
  if odd and "_PINNED" in os.environ:
    raise Unfit(f"environment: {', '.join(sorted(odd))} cannot be pinned")
  if odd:
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], env | {"_PINNED": "1"})
