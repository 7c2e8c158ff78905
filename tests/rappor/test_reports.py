"""Reports files: the reader against single lines, the writer against the reader."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.rappor import reports as reports_module
from deniable.rappor.report_lines import LineForm, checked_fields, header_names
from deniable.rappor.reports import Reports, parse_reports, read_reports, write_reports

clients = st.text(
    st.characters(codec="utf-8", exclude_characters=",\n\x00"), min_size=1, max_size=8
)


def slow_parse(text: bytes, form: LineForm) -> tuple[list[bytes], list[int], list[list[int]]]:
    """Every line through checked_fields and int(..., 2)."""
    ids, cohorts, values = [], [], []
    for number, line in enumerate(text.split(b"\n")[: text.count(b"\n") + 1], 1):
        if number == 1 and header_names(line) is not None:
            continue
        if number == text.count(b"\n") + 1 and not line:
            break
        client, cohort, *bits = checked_fields(line, number, form)
        ids.append(client)
        cohorts.append(int(cohort))
        values.append([int(field, 2) for field in bits])
    return ids, cohorts, values


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, LineForm]:
    widths = draw(st.lists(st.sampled_from([1, 5, 8, 13, 16, 64, 70]), min_size=1, max_size=3))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    names = [f"v{column}" for column in range(len(widths))]
    headed = draw(st.booleans())
    lines = [",".join(["client", "cohort", *names])] if headed else []
    for _ in range(draw(st.integers(1, 30))):
        bits = [format(draw(st.integers(0, 2**width - 1)), f"0{width}b") for width in widths]
        lines.append(",".join([draw(clients), str(draw(st.integers(0, 63))), *bits]))
    text = end.join(lines) + (end if draw(st.booleans()) else "")
    labels = names if headed else [str(3 + c) for c in range(len(widths))]
    return text.encode(), LineForm(tuple(widths), tuple(labels), 64)


def parse(text: bytes, **settings: Any) -> Reports:
    return parse_reports(np.frombuffer(text, np.uint8), **settings)


@pytest.mark.slow
@given(file=files())
@settings(max_examples=150, deadline=None)
def test_the_reader_gives_what_single_lines_give(file: tuple[bytes, LineForm]) -> None:
    text, form = file
    parsed = parse(text, cohorts=64)
    ids, cohorts, values = slow_parse(text, form)
    assert tuple(width for _, width in parsed.columns.values()) == form.widths
    assert tuple(parsed.columns) == form.names
    assert parsed.cohort.tolist() == cohorts
    for column, (bits, _) in enumerate(parsed.columns.values()):
        got = [int.from_bytes(row.tobytes(), "little") for row in bits]
        assert got == [value[column] for value in values]
    assert parsed.clients.tolist() == ids


def test_valid_files_are_not_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports_module, "BLOCK_BYTES", 1 << 10)  # so that there are many blocks
    monkeypatch.delattr(reports_module, "_split_line_by_line")
    lines = [f"client{i},{i % 7:03},{i % 512:09b},1".encode() for i in range(500)]
    for text in (b"\n".join(lines), b"\r\n".join(lines) + b"\r\n"):
        parsed = parse(text)
        assert parsed.cohort.tolist() == [i % 7 for i in range(500)]
        assert parsed.clients[-1] == b"client499"
        values = [int.from_bytes(row.tobytes(), "little") for row in parsed.columns["3"][0]]
        assert values == [i % 512 for i in range(500)]


@pytest.mark.slow
@given(
    file=files(),
    where=st.integers(0, 10_000),
    drop=st.integers(0, 3),
    put=st.sampled_from(
        ["", ",", "\n", "\r", "\r\n", "0", "1", "2", "é", "-", " ", "01", "65536,"]
    ),
)
@settings(max_examples=400, deadline=None)
def test_damaged_files_give_the_slow_readers_verdict(
    file: tuple[bytes, LineForm], where: int, drop: int, put: str
) -> None:
    """Both accept, or both refuse with the same message (so the first bad line, in file order)."""
    text, form = file
    where %= len(text) + 1
    broken = text[:where] + put.encode() + text[where + drop :]
    if header_names(broken.split(b"\n")[0]) != header_names(text.split(b"\n")[0]):
        return  # a damaged header has its own message
    try:
        expected = slow_parse(broken, form)[1]
    except InputError as error:
        with pytest.raises(InputError) as caught:
            parse(broken, widths=form.widths, cohorts=64)
        assert str(caught.value) == str(error)
    else:
        parsed = parse(broken, widths=form.widths, cohorts=64)
        assert parsed.cohort.tolist() == expected


@pytest.mark.parametrize(
    "line, message",
    [
        (b"9,3,0101,01", "line 3, column 'irr': expected 4 bits, got 2 characters"),
        (b"9,3,01x1,0101", "line 3, column 'prr': expected 0 or 1, got 'x' at character 3"),
        (b"9,64,0101,0101", "line 3: expected a cohort in 0..63, got '64'"),
        (b"9,,0101,0101", "line 3: expected a cohort in 0..63, got ''"),
        (b"9,-1,0101,0101", "line 3: expected a cohort in 0..63, got '-1'"),
        (b",3,0101,0101", "line 3: expected a client id, got an empty field"),
        (b"9,3,0101", "line 3: expected 4 fields (client,cohort,prr,irr), got 3"),
        (b"9,3,0101,0101,1", "line 3: expected 4 fields (client,cohort,prr,irr), got 5"),
        (b"", "line 3: expected a report, got an empty line"),
    ],
)
def test_messages_name_line_column_expected_and_got(line: bytes, message: str) -> None:
    text = b"client,cohort,prr,irr\r\n1,0,0000,1111\r\n" + line + b"\r\n2,0,0000,1111\r\n"
    with pytest.raises(InputError) as caught:
        parse(text, cohorts=64)
    assert str(caught.value) == message


@pytest.mark.parametrize("place", [0, 4, 5, 12])
def test_no_other_character_passes_for_a_bit(place: int) -> None:
    """13 characters: five in the partial byte, then eight read as one word."""
    for character in range(256):
        field = bytearray(b"0110100101101")
        field[place] = character
        if character in b"01":
            bits, _ = parse(b"1,0," + field, widths=[13]).columns["3"]
            assert int.from_bytes(bits.tobytes(), "little") == int(field, 2)
        else:
            with pytest.raises(InputError, match="line 1"):
                parse(b"1,0," + field, widths=[13])


def test_only_kept_columns_come_back_but_all_are_checked() -> None:
    parsed = parse(b"1,0,0001,01\n2,1,0010,11\n", columns=["4"])
    assert list(parsed.columns) == ["4"]
    bits, width = parsed.columns["4"]
    assert bits.tolist() == [[1], [3]] and width == 2
    with pytest.raises(InputError, match="line 2, column '3'"):
        parse(b"1,0,0001,01\n2,1,00x0,11\n", columns=["4"])


@pytest.mark.parametrize(
    "line", [b"1, 5,01", b"1,0x5,01", b"1,+5,01", b"1,5 ,01", b'1,"5",01', b'1,5,"01"', b"1,5,0\r1"]
)
def test_what_arrow_would_accept_is_refused(line: bytes) -> None:
    with pytest.raises(InputError, match="line 2"):
        parse(b"1,5,01\n" + line + b"\n", widths=[2])


def test_two_lines_parted_by_a_carriage_return_are_refused() -> None:
    with pytest.raises(InputError, match="line 1: expected 3 fields"):
        parse(b"1,5,01\r2,5,01\n", widths=[2])


def test_strange_clients_come_back() -> None:
    for client in (b"a\rb", b"\xef\xbb\xbfx", b'"', b"\xff", b" "):
        assert parse(client + b",5,01\n").clients.tolist() == [client]


def test_a_header_that_does_not_fit_is_refused() -> None:
    text = b"client,cohort,prr,irr\n1,0,0000\n"
    with pytest.raises(InputError, match="the header has 2 bit columns"):
        parse(text)


def test_a_file_without_reports() -> None:
    head = b"client,cohort,irr\r\n"
    parsed = parse(head, widths=[8])
    assert parsed.columns["irr"][0].shape == (0, 1)
    for text in (head, b""):
        with pytest.raises(InputError, match="the file has no reports"):
            parse(text)


@pytest.mark.slow
@given(
    rows=st.integers(0, 60),
    widths=st.lists(st.sampled_from([1, 7, 8, 9, 32, 64, 129]), min_size=1, max_size=3),
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=80, deadline=None)
def test_written_files_are_the_lines_python_writes_and_read_back(
    rows: int, widths: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ids = (rng.integers(-(2**63), 2**63 - 1, rows) >> rng.integers(0, 64, rows)).astype(np.bytes_)
    cohort = (rng.integers(0, 65536, rows) >> rng.integers(0, 16, rows)).astype(np.uint16)
    bits = [rng.integers(0, 2, (rows, k), dtype=np.uint8) for k in widths]
    packed = [np.packbits(column, axis=1, bitorder="little") for column in bits]
    names = [f"v{column}" for column in range(len(widths))]
    columns = dict(zip(names, zip(packed, widths, strict=True), strict=True))
    lines = [",".join(["client", "cohort", *names])]
    for row in range(rows):
        strings = ["".join(str(bit) for bit in column[row, ::-1]) for column in bits]
        lines.append(",".join([ids[row].decode(), str(cohort[row]), *strings]))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "reports.csv"
        write_reports(path, Reports(ids, cohort, columns))
        assert path.read_bytes() == b"".join(line.encode() + b"\r\n" for line in lines)
        if not rows:
            return
        parsed = read_reports(path)
        assert parsed.clients.tolist() == ids.tolist()
        assert (parsed.cohort == cohort).all()
        for name, (column, width) in columns.items():
            assert np.array_equal(parsed.columns[name][0], column)
            assert parsed.columns[name][1] == width


def test_clients_that_would_break_a_line_are_refused(tmp_path: Path) -> None:
    columns = {"irr": (np.zeros((1, 1), np.uint8), 8)}
    for client in (b"a,b", b"a\nb", b""):
        with pytest.raises(InputError, match="must not contain commas"):
            one = Reports(np.array([client]), np.zeros(1, np.uint16), columns)
            write_reports(tmp_path / "r.csv", one)
    numbers: Any = np.array([1.5])
    with pytest.raises(InputError, match="must be bytes, got float64"):
        write_reports(tmp_path / "r.csv", Reports(numbers, np.zeros(1, np.uint16), columns))
