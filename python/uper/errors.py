"""The exceptions of this package. All are `uper.Error`; each also is the built-in exception that fits."""

__all__ = ["Error", "UsageError", "MissingDataError", "ResourceError", "OutOfMemoryError", "DiskError", "CorruptError",
           "NumericError", "InternalError"]


class Error(Exception):
    """Any failure that uper reports. The message says what, where, and what to do."""


class UsageError(Error, ValueError):
    """A wrong argument: shape, type, name or range."""


class MissingDataError(Error, FileNotFoundError):
    """A file or folder that should be there is not."""


class ResourceError(Error):
    """Memory or disk did not suffice."""


class OutOfMemoryError(ResourceError, MemoryError):
    """The machine does not have this much memory."""


class DiskError(ResourceError, OSError):
    """A file could not be written or read."""


class CorruptError(Error):
    """Saved state that does not verify."""


class NumericError(Error, ArithmeticError):
    """A loss, gradient or estimate that is not finite."""


class InternalError(Error, RuntimeError):
    """A bug in uper. Please report it with the message."""


class Interrupted(Error, KeyboardInterrupt):
    """The user asked to stop."""
