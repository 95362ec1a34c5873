"""The exceptions. Each is an `Error`, and the built-in one that fits it where there is one."""


class Error(Exception):
    """Why something was not done. Where it changes data, nothing has changed."""


class QuerySyntaxError(Error, SyntaxError):
    """The text is not SPARQL; `lineno` and `offset` say where.

    `report` has all faults of the text, each with its line, a mark and the likely cause.
    """

    report: str = ""


class DocumentError(Error, SyntaxError):
    """A document is not what its format says; `filename`, `lineno` and `offset` say where."""


class UnsupportedError(Error, NotImplementedError):
    """SPARQL, or a feature of pyoxigraph, that is not supported."""


class ParameterError(Error, ValueError):
    """A parameter that the text has no place for, or that cannot be one."""


class SettingError(Error, ValueError):
    """A setting that does not work."""


class FormatError(Error, ValueError):
    """A format that is unknown, or cannot be written."""


class InputError(Error, OSError):
    """An input that cannot be read."""


class InputNotFoundError(InputError, FileNotFoundError):
    """An input that is not there."""


class QueryTimeout(Error, TimeoutError):
    """The time limit was reached."""


class Cancelled(Error):
    """The work was ended from outside."""


class MemoryLimitError(Error, MemoryError):
    """More memory is needed than the limit or the budget allows."""


class BusyError(Error):
    """Too many others run; later it may work."""


class TooLargeError(Error, ValueError):
    """A text, term or answer goes beyond a limit, which the message names."""


class NotADatabaseError(Error, OSError):
    """There is no database in the directory."""


class ExistsError(Error, FileExistsError):
    """There is a database already."""


class LockedError(Error, OSError):
    """Another process has the database open."""


class ReadOnlyError(Error, OSError):
    """The database is open for reading only."""


class DiskFullError(Error, OSError):
    """A device has no space left."""


class DamagedError(Error, OSError):
    """What is on the device is not what was written: restore the database from a copy."""


class TransactionError(Error, RuntimeError):
    """A transaction that is not open, is open already, or of which a step failed before."""


class InMemoryError(Error, ValueError):
    """A database in memory has no files to copy."""


class ClosedError(Error, ValueError):
    """The database is closed, or was opened by the parent process."""
