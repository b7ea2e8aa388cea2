"""Replay of experience by uncertainty: replay memories, priorities, and the program `uper`."""

from uper import _core as _core
from uper._batch import Batch
from uper._doctor import doctor
from uper._frame_replay import FrameReplay
from uper._index import IndexSample, PriorityIndex
from uper._options import ReplayCounters, UpdateCounts
from uper._replay import Replay
from uper._rules import PRIORITY_RULES
from uper._uncertainty import Uncertainty, decompose, priorities
from uper.errors import (CorruptError, DiskError, Error, InternalError, MissingDataError, NumericError,
                         OutOfMemoryError, ResourceError, UsageError)

__version__: str = _core.version

__all__ = ["Batch", "CorruptError", "DiskError", "Error", "FrameReplay", "IndexSample", "InternalError",
           "MissingDataError", "NumericError", "OutOfMemoryError", "PRIORITY_RULES", "PriorityIndex", "Replay", "ReplayCounters",
           "ResourceError", "Uncertainty", "UpdateCounts", "UsageError", "__version__", "decompose", "doctor", "priorities"]
