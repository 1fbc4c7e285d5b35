"""Boxes made of the kernel's own walls: `JailBoxes` runs programs, `detect` finds the walls."""

from assay.sandbox.jail.box import JailBox, JailBoxes
from assay.sandbox.jail.config import LEVELS, JailConfig, Level
from assay.sandbox.jail.detect import Isolation, detect
from assay.sandbox.jail.launch import LaunchError

__all__ = [
    "LEVELS",
    "Isolation",
    "JailBox",
    "JailBoxes",
    "JailConfig",
    "LaunchError",
    "Level",
    "detect",
]
