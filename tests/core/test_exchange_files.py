"""Exchange files: the four formats, what is refused and in which words, and reading as a stream."""

from __future__ import annotations

import base64
import csv
import datetime
import gzip
import io
import json
import os
import pickle
import sqlite3
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from refusal_core import limits
from refusal_core.errors import InputError, WorkError
from refusal_core.exchange_files import columns_of, map_argument, read_exchanges
from refusal_core.exchange_formats import bytes_in, csv_rows, json_rows, parquet_rows
from refusal_core.exchanges import BadRow, Exchange

SHARED = Path(__file__).resolve().parents[3] / "shared/data"


class Pipe(io.RawIOBase):
    """A stream that cannot seek and gives its chunks one by one; `taken` counts those given."""

    def __init__(self, chunks: Iterator[bytes] | list[bytes]) -> None:
        self._chunks, self._left, self.taken = iter(chunks), b"", 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        if not self._left:
            self._left = next(self._chunks, b"")
            self.taken += bool(self._left)
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def read(content: bytes | str, **options) -> list[Exchange | BadRow]:
    content = content.encode() if isinstance(content, str) else content
    return list(read_exchanges(io.BytesIO(content), name="f", **options))


def refused(content: bytes | str, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(content, **options)
    text = str(caught.value)
    assert text.startswith("f: "), "the sentence names the file"
    assert "\n" not in text
    return text


def pairs(found: list) -> list[tuple[str, str]]:
    return [(exchange.prompt, exchange.response) for exchange in found]


def as_jsonl(rows: list[dict], **options) -> bytes:
    return "".join(json.dumps(row, **options) + "\n" for row in rows).encode("utf-8", "surrogatepass")


def as_csv(rows: list[dict], delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, rows[0].keys(), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_parquet(table: pa.Table | list[dict], **options) -> bytes:
    out = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.Table.from_pylist(table), out, **options)
    return out.getvalue()


ROW = {"prompt": "p", "response": "r"}
LINE = '{"prompt": "p", "response": "r"}\n'
CHAT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]

# Round trips

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
ODD = st.sampled_from(
    ["", " ", "\r", "\n", "\r\n", "\u2028", "\x85", "\x00", '"', '""', ",", ";", "\t", "\ufeff", "𝕏", "'"]
)
CELL = TEXT | ODD | st.lists(ODD, max_size=5).map("".join)
ROWS = st.lists(st.fixed_dictionaries({"prompt": CELL, "response": CELL, "note": CELL}), min_size=1, max_size=5)


def same(found: list, rows: list[dict]) -> bool:
    return [{"prompt": e.prompt, "response": e.response, **e.extra} for e in found] == rows


@given(ROWS, st.booleans())
@settings(deadline=None)
def test_jsonl_gives_back_any_text(rows, ascii_only):
    assert same(read(as_jsonl(rows, ensure_ascii=ascii_only)), rows)


@given(ROWS, st.sampled_from((None, 2)))
@settings(deadline=None)
def test_json_list_gives_back_any_text(rows, indent):
    assert same(read(json.dumps(rows, indent=indent, ensure_ascii=False)), rows)


@given(ROWS, st.sampled_from(",;\t"))
@settings(deadline=None)
def test_csv_gives_back_any_text(rows, delimiter):
    assert same(read(as_csv(rows, delimiter)), rows)


@given(ROWS)
@settings(deadline=None, max_examples=50)
def test_parquet_gives_back_any_text(rows):
    assert same(read(as_parquet(rows)), rows)


@given(ROWS)
@settings(deadline=None, max_examples=50)
def test_utf16_gives_back_any_text(rows):
    assert same(read(as_csv(rows).decode().encode("utf-16")), rows)
    assert same(read(as_jsonl(rows, ensure_ascii=False).decode().encode("utf-16")), rows)


VALID = [
    as_jsonl([ROW, {"messages": CHAT}]),
    json.dumps([ROW, {"messages": CHAT}]).encode(),
    as_csv([ROW | {"id": "x"}, ROW | {"id": 'a "quoted"\nid'}]),
    as_parquet([ROW | {"id": 1, "messages": CHAT}]),
    as_csv([ROW]).decode().encode("utf-16"),
]


@st.composite
def damaged(draw) -> bytes:
    content = bytearray(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(0, 3))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return bytes(content[: draw(st.none() | st.integers(0, len(content)))])


@given(st.binary(max_size=60) | damaged(), st.booleans(), st.booleans())
@example(b"PAR1", False, False)
@example(b"\xff\xfe\x00\x00", False, True)
@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_are_rows_or_one_sentence(content, seekable, need_label):
    source = io.BytesIO(content) if seekable else Pipe([content[:7], content[7:]] if len(content) > 7 else [content])
    try:
        for found in read_exchanges(source, need_label=need_label):
            assert isinstance(found, Exchange | BadRow)
    except (InputError, WorkError) as error:
        sentence = str(error)
        assert "\n" not in sentence


# What is read


@pytest.mark.parametrize(
    "content",
    [
        LINE,
        "\ufeff" + LINE,
        LINE.replace("\n", "\r\n"),
        "\n \n" + LINE.rstrip(),
        " " * 9_000 + "\n" + LINE,
        LINE.encode("utf-16"),
        f"[{LINE}]",
        "\ufeff \n[\n" + LINE + "]\n",
        json.dumps(ROW, indent=2),
        "prompt,response\np,r\n",
        "\ufeffprompt,response\r\np,r\r\n",
        "\n\nresponse;prompt\nr;p",
        "prompt\tresponse\np\tr\n\n",
        " prompt , response\np,r\n",
        '"prompt","response"\n"p","r"\n',
        "prompt,response\np,r\n".encode("utf-16"),
        as_parquet([ROW]),
        as_parquet(
            pa.table({"prompt": pa.array(["p"]).dictionary_encode(), "response": pa.array(["r"], "large_string")})
        ),
        as_parquet(pa.table({"prompt": pa.array([b"p"]), "response": pa.array([b"r"])})),
    ],
)
def test_one_pair_in_many_forms(content):
    assert pairs(read(content)) == [("p", "r")]
    pipe = Pipe([content] if isinstance(content, bytes) else [content.encode()])
    assert pairs(list(read_exchanges(pipe))) == [("p", "r")]


@pytest.mark.parametrize(
    "content",
    [
        as_jsonl([{"messages": CHAT}]),
        as_jsonl([{"conversation": CHAT}]),
        as_jsonl([{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}]),
        json.dumps([{"messages": CHAT}]),
        json.dumps(CHAT),
        json.dumps({"messages": CHAT}, indent=1),
        as_csv([{"messages": json.dumps(CHAT)}]),
        as_csv([{"id": 1, "messages": json.dumps(CHAT, indent=1)}]),
        as_parquet([{"messages": CHAT}]),
        as_parquet([{"messages": json.dumps(CHAT)}]),
    ],
)
def test_chat_in_many_forms(content):
    assert pairs(read(content)) == [("q", "a")]


def test_ids_labels_lines_and_extra():
    found = read('{"id": "a", "label": "x", "model": "m", "prompt": "p", "response": "r"}\n\n' + LINE)
    assert found == [Exchange("p", "r", "a", "x", 1, {"model": "m"}), Exchange("p", "r", 3, None, 3)]
    found = read('id,prompt,response,label\n7,"a\nb",r,\n,p,r,x\n')
    assert found == [Exchange("a\nb", "r", "7", None, 2), Exchange("p", "r", 4, "x", 4)]
    found = read(as_parquet([ROW | {"id": 7, "n": 1.5}, ROW | {"id": None, "n": None}]))
    assert found == [Exchange("p", "r", 7, None, 1, {"n": 1.5}), Exchange("p", "r", 2, None, 2, {"n": None})]


def test_every_turn():
    found = read(as_jsonl([{"messages": [*CHAT, *CHAT]}, {"id": "x", "messages": CHAT}]), every_turn=True)
    assert [exchange.id for exchange in found] == ["1#1", "1#2", "x#1"]


def test_concatenated_objects_and_concatenated_files():
    assert len(read(json.dumps(ROW, indent=2) + "\n" + json.dumps(ROW, indent=2))) == 2
    assert pairs(read("\ufeff" + LINE + "\ufeff" + LINE)) == [("p", "r")] * 2


def test_lone_surrogate_escape_is_passed_on():
    assert pairs(read(r'{"prompt": "\ud800", "response": "\udfff."}')) == [("\ud800", "\udfff.")]


def test_line_separators_of_unicode_do_not_end_a_line():
    text = "a\u2028b\u2029c\x85d\x0be\x0cf"
    assert pairs(read(as_jsonl([ROW | {"prompt": text}], ensure_ascii=False))) == [(text, "r")]
    assert pairs(read(f"prompt,response\n{text},r\n")) == [(text, "r")]


def test_parquet_leaves_out_nested_extra_and_writes_dates_as_text():
    row = ROW | {"vector": [1.0, 2.0], "raw": b"\xff", "day": datetime.date(2024, 1, 2), "__index_level_0__": 3}
    (exchange,) = read(as_parquet([row]))
    assert exchange.extra.keys() == {"day", "raw"}
    assert exchange.extra["day"] == "2024-01-02"
    json.dumps(exchange.extra)


def test_mapping():
    found = read('{"q": "p", "a": "r", "true": "x"}\n', columns={"prompt": "q", "response": "a", "label": "true"})
    assert found == [Exchange("p", "r", 1, "x", 1)]
    assert pairs(read("q=1;answer\np;r\n", columns={"prompt": "q=1", "response": "answer"})) == [("p", "r")]
    assert pairs(read(as_jsonl([{"chat": CHAT} | ROW]), columns={"messages": "chat"})) == [("q", "a")]


def test_long_cell():
    csv.field_size_limit(131_072)  # Python's own limit, which another test may have left raised
    assert pairs(read("prompt,response\n" + "x" * 200_000 + ",r\n")) == [("x" * 200_000, "r")]


def test_delimiter_is_the_one_that_makes_the_columns():
    assert pairs(read("a,b,c;prompt;response\n1;p;r\n")) == [("p", "r")]


# Rows that are none, and the rest still read


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{", "the line is not valid JSON (cut short, column 2)"),
        ('{"prompt": "a', "cut short"),
        ("nonsense", "not valid JSON (expecting value, column 1)"),
        ('{"prompt": "a" "b"}', "expecting ',' delimiter, column 16"),
        (LINE.strip() + " x", "more text after the end"),
        ('"text"', "the row is text, not an object"),
        ("[1]", "the row is a list, not an object"),
        ("null", "the row is null, not an object"),
        ("NaN", "the row is NaN (a missing value), not an object"),
        ('{"prompt": 3, "response": "r"}', "prompt is a number, not text"),
        ('{"prompt": "p", "response": null}', "response is null, not text"),
        ('{"prompt": "p", "response": NaN}', "response is NaN (a missing value), not text"),
        ('{"prompt": "p", "response": ["r"]}', "response is a list, not text"),
        ('{"prompt": "p", "response": true}', "response is true, not text"),
        ('{"prompt": {}, "response": "r"}', "prompt is an object, not text"),
        ('{"prompt": "p", "answer": 1}', "there is no response; the keys found are prompt, answer"),
        ("{}", "there is no prompt and no response; the keys found are none"),
        ('{"messages": [{"role": "critic", "content": ""}]}', 'message 1: the role "critic" is not known'),
        ('{"messages": []}', "no assistant turn"),
        ('{"messages": "no"}', "messages is text, and not valid JSON"),
        ('{"prompt": "a", "prompt": "b", "response": "r"}', 'the key "prompt" comes twice'),
        ('{"messages": [{"role": "user", "role": "assistant", "content": "x"}]}', 'the key "role" comes twice'),
        ('{"prompt": "p", "response": "r", "x": ' + "[" * 150 + "]" * 150 + "}", "nested more than 100 levels"),
        ('{"prompt": ' + "[" * 100_000, "nested more than 100 levels"),
        (b'{"prompt": "caf\xe9", "response": "r"}', "the line is not UTF-8 at byte 16"),
        (
            json.dumps(ROW | {"prompt": "x" * 2_000_001}),
            "the prompt has 2,000,001 characters; at most 2,000,000 are read",
        ),
    ],
    ids=range(26),
)
def test_bad_line_between_good_ones(line, part):
    line = line if isinstance(line, bytes) else line.encode()
    first, bad, last = read(LINE.encode() + line + b"\n" + LINE.encode())
    assert (first.line, bad.line, last.line) == (1, 2, 3)
    assert isinstance(bad, BadRow)
    assert part in bad.error
    assert bad.id == 2


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('{"prompt": "p", "response": "r", "x": NaN, "x": 1}', 1),
        ('{"prompt": "p", "response": "r", "x": ' + "9" * 5_000 + "}", float("inf")),
        ('{"prompt": "p", "response": "r", "x": [{}]}', [{}]),
    ],
)
def test_oddities_elsewhere_in_a_row_do_not_matter(line, value):
    assert [exchange.extra["x"] for exchange in read(line)] == [value]


def test_bad_row_keeps_its_id():
    assert read(LINE + '{"id": "k", "prompt": 1, "response": "r"}')[1].id == "k"
    assert read(LINE + '{"id": "k", "prompt": 1, "prompt": "p", "response": "r"}')[1].id == "k"


@pytest.mark.parametrize(
    ("record", "part"),
    [
        ("a,b,c", "the row has 3 cells, the header 2"),
        ("a", "the row has 1 cells, the header 2"),
        ('"a"b,c', "has to be doubled"),
        ("a\rb,c", "a carriage return stands alone"),
        (b"caf\xe9,r", "line 3 is not UTF-8 at byte 4; it is perhaps Windows-1252"),
    ],
)
def test_bad_record_between_good_ones(record, part):
    record = record if isinstance(record, bytes) else record.encode()
    first, bad, last = read(b"prompt,response\np,r\n" + record + b"\np,r\n")
    assert isinstance(bad, BadRow)
    assert part in bad.error
    assert (first.line, bad.line, last.line) == (2, 3, 4)


def test_open_quotation_mark_says_how_much_it_took():
    assert read('prompt,response\np,r\n"a,b\nc,d\n')[1:] == [
        BadRow(3, 3, "a quotation mark is never closed; all up to the end, line 4, is read as one cell.")
    ]


def test_parquet_rows_that_are_none():
    table = pa.table({"prompt": ["p", None, "p"], "response": pa.array([b"r", b"r", b"\xff"])})
    found = read(as_parquet(table))
    assert [getattr(row, "error", None) for row in found] == [
        None, "prompt is null, not text.", "response is bytes that are not UTF-8 text."
    ]  # fmt: skip
    offsets = pa.py_buffer(b"\0\0\0\0\2\0\0\0\3\0\0\0")
    bad_text = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ok\xff")])
    found = read(as_parquet(pa.table({"prompt": bad_text, "response": ["r", "r"]})))
    assert [getattr(row, "error", None) for row in found] == [None, "prompt is not UTF-8."]


def test_json_list_rows_are_checked_one_by_one():
    found = read(json.dumps([ROW, 3, {"prompt": 1, "response": ""}, {"messages": CHAT}]))
    assert [row.line for row in found] == [1, 2, 3, 4]
    assert [isinstance(row, BadRow) for row in found] == [False, True, True, False]


def test_json_list_gives_the_rows_before_a_fault():
    found = read_exchanges(io.BytesIO(f"[{LINE}, {LINE} {LINE}]".encode()), name="f")
    assert [next(found).line, next(found).line] == [1, 2]
    with pytest.raises(InputError, match=r"f: the file is not valid JSON \(expecting ',' between the rows, line 3"):
        next(found)


def test_need_label():
    assert read(as_jsonl([ROW | {"label": "x"}, ROW]), need_label=True)[1] == BadRow(2, 2, "there is no label.")
    assert read("prompt,response,label\np,r,\n", need_label=True) == [BadRow(2, 2, "label is empty.")]
    assert "there is no column label" in refused("prompt,response,class\np,r,x\n", need_label=True)
    assert "--map label=class" in refused("prompt,response,class\np,r,x\n", need_label=True)


# Files that are refused as a whole


def zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return out.getvalue()


def sqlite_file(folder: Path) -> bytes:
    path = folder / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("create table t (a)")
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b" \n\r\n", "the file is empty"),
        (b"[]", "there are no rows"),
        (b"prompt,response\n", "there are no rows"),
        (
            as_parquet(pa.table({"prompt": pa.array([], "string"), "response": pa.array([], "string")})),
            "there are no rows",
        ),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n", "is a Git LFS pointer"),
        (gzip.compress(LINE.encode()), "is gzip-compressed"),
        (zipped("a.txt"), "is a zip archive"),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "is an Excel workbook"),
        (zipped("arr_0.npy"), "is a NumPy archive"),
        (zipped("m/data.pkl"), "is a PyTorch file, which is never opened"),
        (pickle.dumps([ROW]), "is a pickle, which is never opened"),
        (b"\n<!DOCTYPE html>\n<html></html>", "is an HTML page"),
        (b"<?xml version='1.0'?>", "is XML"),
        (b"%PDF-1.7\n", "is a PDF document"),
        ("prompt".encode("utf-32"), "is UTF-32 text"),
        ("prompt,response\n".encode("utf-16-le"), "UTF-16 without a byte order mark"),
        (LINE.encode("utf-16")[:-1], "not whole UTF-16 text"),
        (VALID[3][:-5], "is a Parquet file that was cut short"),
        (b"PAR1", "is a Parquet file that was cut short"),
        (b"PAR1" + b"\x00" * 60 + b"PAR1", "is Parquet that cannot be read"),
        (b"PARE" + VALID[3][4:-4] + b"PARE", "is an encrypted Parquet file"),
        (as_parquet(pa.table([pa.array(["a"])] * 2, names=["prompt", "prompt"])), 'has two columns named "prompt"'),
        (b"prompt,response,prompt\n", 'has two columns named "prompt"'),
        (b"prompt\x00,response\n", "is not text"),
        (b"prompt,caf\xe9\n", "is not UTF-8 at byte 11 of its first line; it is perhaps Windows-1252"),
        (b'"prompt"x,response\n', "is no CSV header"),
        (b"prompt,response\rp,r\r", "carriage return stands alone"),
        (b"hello", "there is no column prompt and no response; the columns found are hello"),
        (b"[1", "the file is not valid JSON (cut short, column 3)"),
        (b"[" + LINE.encode(), "cut short"),
        (b"[" + LINE.encode() + b"] x", "more text after the end of the list"),
        (b"[" + LINE.encode() + b",]", "expecting value"),
        (b"[" * 100_000, "nested more than 100 levels"),
        (b'[{"prompt": "\xe9"}]', "is not UTF-8 at byte 14"),
        (b'{\n"prompt": 1', "cut short"),
    ],
    ids=range(37),
)
def test_refused_files(content, part):
    assert part in refused(content)
    with pytest.raises(InputError) as caught:
        list(read_exchanges(Pipe([content]), name="f"))
    assert part in str(caught.value), "the same through a pipe"


def test_blank_lines_before_foreign_content_in_small_chunks():
    with pytest.raises(InputError, match="is an HTML page"):
        next(read_exchanges(Pipe([b"\n" * 20, b"<!DOCTYPE", b" html>\n"])))


def test_sqlite(tmp_path):
    assert "is an SQLite database" in refused(sqlite_file(tmp_path))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("Question;Answer;x y\n1;2;3\n", 'found are Question, Answer, "x y"; say which column it is: '
         "--map prompt=Question --map response=Answer."),
        ('{"prompt": "p", "completion": "r"}', "there is no key response; the keys found are prompt, completion; "
         "say which key it is: --map response=completion."),
        ('{"my text": "p", "prompt": "r"}', "--map response=NAME."),
        ('[{"user prompt": "p", "Response": "r"}]', "--map prompt=NAME --map response=Response."),
        (as_parquet([{"instruction": "p", "output": "r"}]), "--map prompt=instruction --map response=output."),
    ],
)  # fmt: skip
def test_missing_columns_name_the_fix(content, part):
    assert part in refused(content)


def test_mapped_column_that_is_not_there():
    assert "there is no column q" in refused("prompt,response\np,r\n", columns={"prompt": "q"})
    assert "there is no column key" in refused("prompt,response\np,r\n", columns={"id": "key"})
    assert "there is no key chat" in refused(LINE, columns={"messages": "chat"})


def test_first_object_decides_after_bad_lines():
    found = read_exchanges(io.BytesIO(b'{"a": \n{"b": 1}\n'), name="f")
    assert isinstance(next(found), BadRow)
    with pytest.raises(InputError, match="the keys found are b"):
        next(found)


CUT = '{"a": '
ODD_ROWS = ['{"session": 3}', "{}", '{"role": "system", "content": "x"}', CUT, "[1]", '{"prompt": "p", "answer": 1}']


@pytest.mark.parametrize("odd", [*([line] for line in ODD_ROWS if line != "[1]"), ODD_ROWS * 3])
@pytest.mark.parametrize("listed", [False, True])
def test_odd_rows_at_the_start_do_not_refuse_the_file(odd, listed):
    lines = [line for line in odd if line != CUT or not listed]
    content = f"[{','.join([*lines, LINE])}]" if listed else "\n".join([*lines, LINE])
    *bad, good = read(content)
    assert [row.line for row in bad] == list(range(1, len(lines) + 1)) and pairs([good]) == [("p", "r")]
    assert all(isinstance(row, BadRow) for row in bad)


def test_the_keys_are_looked_for_in_the_first_rows_only():
    odd = [*['{"session": 3}'] * 18, '{"question": "p", "answer": "r"}']
    assert len(read("\n".join([*odd, LINE]))) == 20
    text = refused("\n".join([odd[0], *odd, LINE]))
    assert "the keys found are question, answer" in text and "--map prompt=question" in text


def test_an_odd_first_row_waits_for_the_first_good_one_only():
    pipe = Pipe(("{}\n" if number < 3 else LINE).encode() for number in range(100))
    found = read_exchanges(pipe)
    assert isinstance(next(found), BadRow)
    assert pipe.taken <= 5
    assert len(list(found)) == 99


@pytest.mark.parametrize("rounds", [1, 9, 10, 11, 40])
def test_a_list_of_messages_of_any_length_is_one_chat(rounds):
    chat = CHAT * rounds
    for content in (as_jsonl(chat), json.dumps(chat), f"{CUT}\n".encode() + as_jsonl(chat)):
        *bad, exchange = read(content)
        assert exchange.response == CHAT[-1]["content"] and len(bad) == (content[:3] == b'{"a')
        assert exchange.prompt.count("Assistant: ") == rounds - 1


def test_paths(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_text(LINE)
    assert pairs(list(read_exchanges(path))) == pairs(list(read_exchanges(str(path)))) == [("p", "r")]
    for source, part in (
        (tmp_path / "none.jsonl", "none.jsonl: there is no such file"),
        (tmp_path / "a.parquet" / "b", "b: there is no such file"),
        ("a\x00b", "there is no such file"),
        ("x" * 5_000, "there is no such file"),
        (tmp_path, f"{tmp_path.name}: it is a directory"),
    ):
        with pytest.raises(InputError) as caught:
            next(read_exchanges(source))
        assert part in str(caught.value)
        assert str(tmp_path) not in str(caught.value)


def test_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match=r"a.jsonl: it may not be read"):
        next(read_exchanges(tmp_path / "a.jsonl"))


def test_failing_disk_is_not_the_users_fault():
    class Failing(Pipe):
        def readinto(self, buffer: memoryview) -> int:
            raise OSError(5, "Input/output error")

    with pytest.raises(WorkError, match="f: reading failed: Input/output error"):
        next(read_exchanges(Failing([]), name="f"))


def test_parquet_with_encrypted_columns():
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def wrap_key(self, key: bytes, _: str) -> bytes:
            return base64.b64encode(key)

        def unwrap_key(self, key: bytes, _: str) -> bytes:
            return base64.b64decode(key)

    factory = encryption.CryptoFactory(lambda _: Keys())
    for plain_footer in (True, False):
        settings_ = encryption.EncryptionConfiguration(
            footer_key="k", column_keys={"k": ["response"]}, plaintext_footer=plain_footer
        )
        properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), settings_)
        assert "is an encrypted Parquet file" in refused(as_parquet([ROW], encryption_properties=properties))


# Limits, memory, laziness


def test_limits(monkeypatch):
    monkeypatch.setattr(json_rows, "LINE_BYTES", 100)
    monkeypatch.setattr(csv_rows, "LINE_BYTES", 100)
    monkeypatch.setattr(json_rows, "JSON_ARRAY_BYTES", 100)
    long = json.dumps(ROW | {"prompt": "x" * 300})
    first, bad, last = read(LINE + long + "\n" + LINE)
    assert (first.line, bad.line, last.line) == (1, 2, 3)
    assert bad.error == "the line is longer than 100 bytes."
    assert "the JSON text is 1" in refused(f"[{LINE}, {LINE}, {LINE}, {LINE}]")
    text = refused('prompt,response\np,r\n"' + "x\n" * 60)
    assert "a record that begins on line 3 and is longer than 100 bytes" in text
    assert "a record that begins on line 2" in refused("prompt,response\n" + "x" * 300)


def test_parquet_limits(monkeypatch):
    monkeypatch.setattr(parquet_rows, "PARQUET_ROW_GROUP_BYTES", 2_000)
    content = as_parquet(
        [ROW | {"prompt": f"{number:0100}"} for number in range(100)], use_dictionary=False, compression="NONE"
    )
    assert "row group 1 is too large" in refused(content)
    with pytest.raises(InputError, match="comes through a pipe"):
        next(read_exchanges(Pipe([content])))
    assert len(read(as_parquet([ROW] * 9, row_group_size=2))) == 9


@pytest.mark.parametrize("header", ["", "prompt,response\n"])
def test_first_item_comes_before_the_next_chunk_is_asked_for(header):
    line = "p,r\n" if header else LINE
    pipe = Pipe((header * (number == 0) + line).encode() for number in range(100))
    found = read_exchanges(pipe)
    assert next(found).prompt == "p"
    assert pipe.taken <= 2
    assert len(list(found)) == 99


def test_open_pipe_of_the_system_gives_its_first_row():
    out, into = os.pipe()
    with os.fdopen(out, "rb") as reader, os.fdopen(into, "wb", buffering=0) as writer:
        writer.write(LINE.encode())
        found = read_exchanges(reader)
        assert next(found).prompt == "p"  # hangs here when the reader waits for more
        writer.write(LINE.encode())
        assert next(found).line == 2
        writer.close()
        assert list(found) == []


@pytest.mark.parametrize("header", ["", "prompt,response\n"])
def test_memory_does_not_grow_with_the_file(header):
    line = ("p" * 5_000 + ",r\n") if header else json.dumps(ROW | {"prompt": "p" * 5_000}) + "\n"
    rows = 2_000
    pipe = Pipe(iter([header.encode()] * bool(header) + [line.encode()] * rows))
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_exchanges(pipe)) == rows
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * limits.MB, f"peak {peak:,} bytes for {rows * len(line):,} bytes"


def test_stream_stays_open_and_is_read_from_its_start_again():
    for content in VALID:
        stream = io.BytesIO(content)
        stream.seek(3)
        assert columns_of(stream)[0] in ("prompt", "messages")
        assert list(read_exchanges(stream)) == list(read_exchanges(stream)) != []
        assert not stream.closed


def test_path_is_closed_when_the_caller_stops_early(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(LINE * 3)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else None
    found = read_exchanges(path)
    next(found)
    found.close()
    if before is None:
        pytest.skip("no /proc/self/fd on this system")
    assert len(os.listdir("/proc/self/fd")) == before


def test_name_of_a_stream_is_its_last_part(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("")
    with path.open("rb") as stream, pytest.raises(InputError, match=r"^a.jsonl: "):
        next(read_exchanges(stream))
    with pytest.raises(InputError, match=r"^the input: "):
        next(read_exchanges(io.BytesIO()))
    with pytest.raises(InputError, match=r"^up load.jsonl: "):
        next(read_exchanges(io.BytesIO(), name="up\nload.jsonl"))


# Columns and maps


def test_columns_of():
    assert columns_of(io.BytesIO(b"question;answer;x, y\n1;2;3\n")) == ["question", "answer", "x, y"]
    assert columns_of(io.BytesIO(b'{"a": 1}\nbad\n{"b": 1, "a": 2}\n')) == ["a", "b"]
    assert columns_of(io.BytesIO(b'[{"x": 1}]')) == ["x"]
    assert columns_of(io.BytesIO(as_parquet([{"x": 1, "y": [1]}]))) == ["x", "y"]
    for empty in (b"", b"[]", b"[1]", gzip.compress(b"x")):
        with pytest.raises(InputError):
            columns_of(io.BytesIO(empty))


def test_map_argument():
    assert map_argument([]) == {}
    assert map_argument(["prompt=question", " response =a=b c"]) == {"prompt": "question", "response": "a=b c"}
    for values, part in (
        (["prompt"], 'has no =; write NAME=KEY'),
        (["promt=x"], '"promt" cannot be mapped; the names are prompt, response, id, label, messages'),
        (["prompt="], "prompt is mapped to nothing"),
        (["prompt=a", "prompt=b"], "prompt is mapped twice"),
        (["prompt=a", "response=a"], 'the column "a" is read twice'),
        (["prompt=response"], 'the column "response" is read twice'),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            map_argument(values)
        assert part in str(caught.value)


# Real files


@pytest.mark.parametrize(
    "name", ["train.jsonl", "validation.jsonl", "train_composites.jsonl", "train_more.jsonl", "validation_more.jsonl"]
)
def test_real_files(name):
    path = SHARED / "refusals" / name
    if not path.exists():
        pytest.skip(f"the shared data is not beside the repository: {name} is not there")
    found = list(read_exchanges(path, need_label=True))
    assert len(found) == path.read_bytes().count(b"\n") > 100
    assert all(isinstance(exchange, Exchange) and exchange.prompt and exchange.response for exchange in found)
    assert len({exchange.id for exchange in found}) == len(found)


def test_head_of_the_stream_is_not_lost():
    content = b"\n" * (2 * bytes_in._HEAD_BYTES) + LINE.encode()
    assert [exchange.line for exchange in read_exchanges(Pipe([content]))] == [2 * bytes_in._HEAD_BYTES + 1]
