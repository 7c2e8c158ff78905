"""Optional packages: the extra that installs each one, and an error that says so."""

from __future__ import annotations

from deniable.errors import MissingPackage

EXTRAS = {
    "analysis": (
        "llvmlite",
        "numba",
        "numpy",
        "pyarrow",
        "scipy",
        "sklearn",
        "threadpoolctl",
    ),
    "cli": ("click", "rich"),
    "cluster": ("dask", "distributed"),
    "collector": ("granian", "numpy", "pyarrow", "starlette", "uvloop"),
    "frames": ("pandas", "polars"),
    "plots": ("matplotlib",),
    "postgres": ("numpy", "psycopg", "pyarrow"),
}
"""Extras of this package, and the packages that each installs, by the names to import.

Of several extras, the first is named to users unless another one is asked for.
"""


class needs_packages:
    """Context in which imports may fail: the error names the extra that installs the package.

    Errors of packages that no extra installs are not changed.

    Parameters
    ----------
    what : str
        What needs the packages, as the subject of the message.
    extra : str, optional
        Extra to name if it installs the package; by default the first in `EXTRAS`.

    Examples
    --------
    >>> with needs_packages("a plot"):
    ...     raise ModuleNotFoundError(name="matplotlib.axes")
    Traceback (most recent call last):
    deniable.errors.MissingPackage: a plot needs matplotlib: pip install 'deniable[plots]'
    """

    def __init__(self, what: str, extra: str = "") -> None:
        self.what = what
        self.extra = extra

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, ModuleNotFoundError):
            missing = missing_package(error, self.what, self.extra)
            if missing is not None:
                raise missing from None


def missing_package(
    error: ModuleNotFoundError, what: str, extra: str = ""
) -> MissingPackage | None:
    """Return the error to show instead; None if no extra installs the package."""
    package = (error.name or "").partition(".")[0]
    extras = [name for name, packages in EXTRAS.items() if package in packages]
    if not extras:
        return None
    extra = extra if extra in extras else extras[0]
    text = f"{what} needs {package}: pip install 'deniable[{extra}]'"
    return MissingPackage(text, name=package)
