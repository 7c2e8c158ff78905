"""Reports files: the fast reader against the slow one, the writer against the reader."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.rappor.text_lines import LineForm, check_line, header_names, split_line
from deniable.rappor.text_reader import parse_reports
from deniable.rappor.text_writer import client_ids, format_reports

clients = st.text(
    st.characters(codec="utf-8", exclude_characters=",\n\x00"), min_size=1, max_size=8
)


def slow_parse(text: bytes, form: LineForm) -> tuple[list[bytes], list[int], list[list[int]]]:
    """Every line through check_line and int(..., 2)."""
    ids, cohorts, values = [], [], []
    for number, line in enumerate(text.split(b"\n")[: text.count(b"\n") + 1], 1):
        if number == 1 and header_names(line) is not None:
            continue
        if number == text.count(b"\n") + 1 and not line:
            break
        check_line(line, number, form)
        client, cohort, *bits = split_line(line)
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


@given(file=files(), threads=st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_fast_reader_equals_slow_reader(file: tuple[bytes, LineForm], threads: int) -> None:
    text, form = file
    parsed = parse_reports(text, cohorts=64, threads=threads)
    ids, cohorts, values = slow_parse(text, form)
    assert parsed.widths == form.widths and parsed.names == form.names
    assert parsed.cohort.tolist() == cohorts
    for column, bits in enumerate(parsed.bits):
        got = [int.from_bytes(row.tobytes(), "little") for row in bits]
        assert got == [value[column] for value in values]
    starts, lengths = parsed.client_start.tolist(), parsed.client_length.tolist()
    assert [text[a : a + n] for a, n in zip(starts, lengths, strict=True)] == ids


@given(
    file=files(),
    where=st.integers(0, 10_000),
    drop=st.integers(0, 3),
    put=st.sampled_from(
        ["", ",", "\n", "\r", "\r\n", "0", "1", "2", "é", "-", " ", "01", "65536,"]
    ),
    threads=st.integers(1, 3),
)
@settings(max_examples=400, deadline=None)
def test_damaged_files_give_the_slow_readers_verdict(
    file: tuple[bytes, LineForm], where: int, drop: int, put: str, threads: int
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
            parse_reports(broken, widths=form.widths, cohorts=64, threads=threads)
        assert str(caught.value) == str(error)
    else:
        parsed = parse_reports(broken, widths=form.widths, cohorts=64, threads=threads)
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
        parse_reports(text, cohorts=64)
    assert str(caught.value) == message


@pytest.mark.parametrize("place", [0, 4, 5, 12])
def test_no_other_character_passes_for_a_bit(place: int) -> None:
    """13 characters: five in the partial byte, then eight read as one word."""
    for character in range(256):
        field = bytearray(b"0110100101101")
        field[place] = character
        if character in b"01":
            parsed = parse_reports(b"1,0," + field, widths=[13])
            assert int.from_bytes(parsed.bits[0].tobytes(), "little") == int(field, 2)
        else:
            with pytest.raises(InputError, match="line 1"):
                parse_reports(b"1,0," + field, widths=[13])


def test_only_kept_columns_come_back_but_all_are_checked() -> None:
    text = b"1,0,0001,01\n2,1,0010,11\n"
    parsed = parse_reports(text, keep=[1])
    assert [bits.tolist() for bits in parsed.bits] == [[[1], [3]]] and parsed.widths == (2,)
    with pytest.raises(InputError, match="line 2, column '3'"):
        parse_reports(b"1,0,0001,01\n2,1,00x0,11\n", keep=[1])
    with pytest.raises(InputError, match=r"columns to keep in 0..1, got \(2,\)"):
        parse_reports(text, keep=[2])


def test_a_header_that_does_not_fit_is_refused() -> None:
    text = b"client,cohort,prr,irr\n1,0,0000\n"
    with pytest.raises(InputError, match="line 1: expected 1 bit columns, got a header with 2"):
        parse_reports(text)


def test_a_file_without_reports() -> None:
    head = b"client,cohort,irr\r\n"
    parsed = parse_reports(head, widths=[8])
    assert parsed.names == ("irr",) and parsed.bits[0].shape == (0, 1)
    for text in (head, b""):
        with pytest.raises(InputError, match="at least one report"):
            parse_reports(text)


@given(
    rows=st.integers(0, 60),
    widths=st.lists(st.sampled_from([1, 7, 8, 9, 32, 64, 129]), min_size=1, max_size=3),
    newline=st.sampled_from([b"\n", b"\r\n"]),
    named=st.booleans(),
    threads=st.integers(1, 3),
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=80, deadline=None)
def test_written_files_are_the_lines_python_writes_and_read_back(
    rows: int, widths: list[int], newline: bytes, named: bool, threads: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ids = rng.integers(-(2**63), 2**63 - 1, rows) >> rng.integers(0, 64, rows)
    cohort = (rng.integers(0, 65536, rows) >> rng.integers(0, 16, rows)).astype(np.uint16)
    bits = [rng.integers(0, 2, (rows, k), dtype=np.uint8) for k in widths]
    packed = [np.packbits(column, axis=1, bitorder="little") for column in bits]
    names = [f"v{column}" for column in range(len(widths))] if named else None
    text = format_reports(
        ids, cohort, packed, widths, names=names, newline=newline, threads=threads
    ).tobytes()
    lines = [",".join(["client", "cohort", *names])] if names else []
    for row in range(rows):
        strings = ["".join(str(bit) for bit in column[row, ::-1]) for column in bits]
        lines.append(",".join([str(ids[row]), str(cohort[row]), *strings]))
    assert text == b"".join(line.encode() + newline for line in lines)
    parsed = parse_reports(text, widths=widths) if text else None
    if parsed is not None:
        assert all(np.array_equal(a, b) for a, b in zip(parsed.bits, packed, strict=True))
        again = client_ids(text, parsed.client_start, parsed.client_length)
        assert np.array_equal(
            format_reports(again, parsed.cohort, parsed.bits, widths, names=names, newline=newline),
            np.frombuffer(text, dtype=np.uint8),
        )


def test_clients_that_would_break_a_line_are_refused() -> None:
    bits, cohort = np.zeros((1, 1), dtype=np.uint8), np.zeros(1, dtype=np.uint16)
    for client in (b"a,b", b"a\nb", b""):
        with pytest.raises(InputError, match="without commas"):
            format_reports(np.array([client]), cohort, [bits], [8])
    with pytest.raises(InputError, match="integers or bytes, got float64"):
        format_reports(np.array([1.5]), cohort, [bits], [8])
