r"""Check single lines of a reports file of google/rappor, and say what is wrong with them.

A line is `client,cohort,bits,...`: a client id without commas, a cohort from 0, then one string of
0s and 1s per column, most significant bit first. Lines end with \n or \r\n.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deniable.errors import InputError

LARGEST_COHORT = 65535
MAX_SHOWN_CHARACTERS = 40
"""Number of characters of a wrong field that a message repeats."""


@dataclass(frozen=True)
class LineForm:
    """Form of every line of a file: widths and names of its bit columns, number of cohorts."""

    widths: tuple[int, ...]
    names: tuple[str, ...]
    cohorts: int = LARGEST_COHORT + 1

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) < 1 or len(self.names) != len(self.widths):
            raise InputError(
                f"a reports file needs at least one bit column, and every bit column a name and at "
                f"least 1 bit; got widths {self.widths} and names {self.names}"
            )
        if not 1 <= self.cohorts <= LARGEST_COHORT + 1:
            raise InputError(
                f"the number of cohorts must be 1 to {LARGEST_COHORT + 1}, got {self.cohorts}"
            )


def split_line(line: bytes) -> list[bytes]:
    """Return the fields of a line, without the end of the line."""
    return line.removesuffix(b"\n").removesuffix(b"\r").split(b",")


def header_names(line: bytes) -> tuple[str, ...] | None:
    r"""Return the names of the bit columns if the line is a header, else None.

    A header starts with the name of the column of client ids, then `cohort`.

    >>> header_names(b"client,cohort,bloom,prr,irr\r\n")
    ('bloom', 'prr', 'irr')
    """
    fields = [field.strip().strip(b'"').decode("utf-8", "replace") for field in split_line(line)]
    return tuple(fields[2:]) if [name.lower() for name in fields[1:2]] == ["cohort"] else None


def numbered(columns: int) -> tuple[str, ...]:
    """Return "3", "4", … as the names of the bit columns of a file without a header."""
    return tuple(str(column) for column in range(3, 3 + columns))


def checked_fields(line: bytes, number: int, form: LineForm) -> list[bytes]:
    """Return the fields of a line: client, cohort, bits of each column.

    Raises InputError with the number of the line if it does not have the given form.
    """
    fields = split_line(line)
    if fields == [b""]:
        raise InputError(f"line {number}: expected a report, got an empty line")
    if len(fields) != 2 + len(form.widths):
        raise InputError(
            f"line {number}: expected {2 + len(form.widths)} fields "
            f"(client,cohort,{','.join(form.names)}), got {len(fields)}"
        )
    if not fields[0]:
        raise InputError(f"line {number}: expected a client id, got an empty field")
    cohort = fields[1]
    digits = cohort.isdigit() and len(cohort) <= len(str(LARGEST_COHORT))
    if not digits or int(cohort) >= form.cohorts:
        raise InputError(
            f"line {number}: expected a cohort in 0..{form.cohorts - 1}, got {_show(cohort)}"
        )
    for name, width, field in zip(form.names, form.widths, fields[2:], strict=True):
        _check_bits(field, width, f"line {number}, column {name!r}")
    return fields


def _check_bits(field: bytes, width: int, where: str) -> None:
    """Raise InputError unless the field is `width` zeros and ones."""
    if len(field) != width:
        raise InputError(f"{where}: expected {width} bits, got {len(field)} characters")
    for at, character in enumerate(field):
        if character not in b"01":
            raise InputError(
                f"{where}: expected 0 or 1, got {_show(bytes([character]))} at character {at + 1}"
            )


def _show(field: bytes) -> str:
    """Return a field for a message, shortened if it is long."""
    text = field.decode("utf-8", "replace")
    return repr(text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "...")


def form_of(
    line: bytes,
    names: Sequence[str] | None,
    widths: Sequence[int] | None,
    cohorts: int | None,
    bits: Mapping[str, int],
) -> LineForm:
    """Return the form of a file, from its first line of data.

    names, widths : of the bit columns, where they are known; cohorts : number of cohorts
    bits : widths of some bit columns, by name
    """
    fields = split_line(line)[2:]
    found = tuple(widths) if widths is not None else tuple(len(field) for field in fields)
    if not found:
        raise InputError(
            f"expected client,cohort and at least one column of bits, got {_show(line.strip())}"
        )
    if names is None:
        names = numbered(len(found))
    if len(names) != len(found):
        raise InputError(
            f"the header has {len(names)} bit columns ({', '.join(names)}), the first report has "
            f"{len(found)}"
        )
    if len(set(names)) != len(names):
        raise InputError(f"the header has two columns of one name: {', '.join(names)}")
    wanted = tuple(bits.get(name, width) for name, width in zip(names, found, strict=True))
    return LineForm(wanted, tuple(names), LARGEST_COHORT + 1 if cohorts is None else cohorts)
