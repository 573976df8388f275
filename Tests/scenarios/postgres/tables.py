"""The tables of the suite, on both sides, and the form in which their rows are compared."""

import base64
import dataclasses
import datetime
import hashlib
import json
import string
import uuid

#: Column type of the suite -> the types that SQLite and PostgreSQL declare for it.
DECLARED = {
    "text": ("TEXT", "text"), "real": ("REAL", "double precision"), "integer": ("INTEGER", "bigint"),
    "boolean": ("BOOLEAN", "boolean"), "bytes": ("BLOB", "bytea"), "date": ("DATE", "date"),
    "time": ("DATETIME", "timestamp(3)"), "json": ("JSON", "json"), "uuid": ("UUID", "uuid"),
}
_DAY_ZERO = datetime.date(1970, 1, 1)
_TIME_ZERO = datetime.datetime(1970, 1, 1)


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    #: The columns of the primary key: name -> type.
    key: dict
    #: The other columns.
    others: dict

    @property
    def columns(self):
        return {**self.key, **self.others}

    def create(self, side):
        """The statement that creates the table. `side`: 0 for SQLite, 1 for PostgreSQL."""
        columns = [f"{name} {DECLARED[kind][side]}{' NOT NULL' if name in self.key else ''}"
                   for name, kind in self.columns.items()]
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, PRIMARY KEY ({', '.join(self.key)}))"

    def select(self):
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"


PRODUCT = Table("product", {"code": "text"}, {
    "title": "text", "price": "real", "stock": "integer", "active": "boolean", "picture": "bytes", "day": "date",
    "changed": "time", "data": "json", "tag": "uuid", "manual": "text"})
PLACE = Table("place", {"area": "integer", "number": "text"}, {"note": "text"})
#: A row in it proves that what was written before it has arrived.
BARRIER = Table("barrier", {"name": "text"}, {})
TABLES = (PRODUCT, PLACE)

SQLITE_SCHEMA = ";\n".join(table.create(0) for table in TABLES)
POSTGRES_SCHEMA = ";\n".join(table.create(1) for table in (*TABLES, BARRIER))


class Rows(dict):
    """The rows of a table in comparable form: key -> all values."""

    def digest(self):
        return hashlib.sha256(json.dumps(sorted(self.items()), ensure_ascii=False).encode()).hexdigest()[:16]

    def of(self, *writers):
        """The rows whose keys say that one of these writers made them."""
        return Rows({key: row for key, row in self.items() if str(key[-1]).rpartition("-")[0] in writers})

    def without(self, *writers):
        return Rows({key: row for key, row in self.items() if str(key[-1]).rpartition("-")[0] not in writers})

    def difference(self, other, names=("here", "there")):
        """The first differences from other rows, as text."""
        found = []
        for key in sorted(self.keys() | other.keys()):
            if self.get(key) != other.get(key):
                found.append(f"{key}: {names[0]} {_short(self.get(key))}, {names[1]} {_short(other.get(key))}")
        return f"{len(found)} rows differ: " + "; ".join(found[:3])


def _short(row):
    return "no row" if row is None else [value if len(str(value)) < 60 else f"{str(value)[:50]}..." for value in row]


def rows_of(table, found, convert):
    """The Rows for database rows, whose values `convert(type, value)` makes comparable."""
    rows = Rows()
    for row in found:
        values = tuple(None if value is None else convert(kind, value) for kind, value in zip(table.columns.values(), row))
        rows[values[:len(table.key)]] = values
    return rows


# Comparable values: text, numbers and booleans; bytes in hexadecimal; dates and times as SQLite writes them; JSON in one form.

def from_sqlite(kind, value):
    if kind == "bytes":
        return value.hex()
    if kind == "boolean":
        return {0: False, 1: True}[value]
    if kind == "time":
        return value if "." in value else f"{value}.000"
    return _json(value) if kind == "json" else value


def from_postgres(kind, value):
    if kind == "bytes":
        return bytes(value).hex()
    if kind == "date":
        return value.isoformat()
    if kind == "time":
        return value.isoformat(" ", "milliseconds")
    return _json(json.dumps(value)) if kind == "json" else value


def from_record(kind, value):
    """From a value of a record in Debezium's envelope. Martlet writes times as numbers, and the reader as text."""
    if kind == "bytes":
        return base64.b64decode(value).hex()
    if kind == "date" and isinstance(value, str):
        return value.removesuffix("Z")
    if kind == "time" and isinstance(value, str):
        return datetime.datetime.fromisoformat(value.removesuffix("Z")).isoformat(" ", "milliseconds")
    if kind == "date":
        return (_DAY_ZERO + datetime.timedelta(days=value)).isoformat()
    if kind == "time":
        return (_TIME_ZERO + datetime.timedelta(milliseconds=value)).isoformat(" ", "milliseconds")
    if kind == "real":
        return float(value)
    return _json(value) if kind == "json" else value


def _json(text):
    return json.dumps(json.loads(text), sort_keys=True)


def to_database(kind, value):
    """A comparable value as both databases take it."""
    return bytes.fromhex(value) if kind == "bytes" and value is not None else value


def random_value(kind, rng):
    """A comparable value of a type."""
    if rng.random() < 0.1:
        return None
    return _MAKERS[kind](rng)


_LETTERS = string.ascii_letters + " 'äß€𝄞\"\\%{}\n\t"


def _text(rng):
    return "".join(rng.choices(_LETTERS, k=rng.choice([0, 1, 8, 40])))


def _short_or_long_text(rng):
    """Now and then so long that PostgreSQL stores it apart, and does not log it with changes of other columns."""
    return rng.randbytes(6000).hex() if rng.random() < 0.2 else _text(rng)


_MAKERS = {
    "text": _short_or_long_text,
    "real": lambda rng: rng.choice([rng.uniform(-1e9, 1e9), rng.random() * 1e-9, float(rng.randint(-9, 9))]),
    "integer": lambda rng: rng.choice([rng.randint(-9, 9), rng.randint(-2**63, 2**63 - 1)]),
    "boolean": lambda rng: rng.random() < 0.5,
    "bytes": lambda rng: rng.randbytes(rng.choice([0, 1, 30])).hex(),
    "date": lambda rng: (_DAY_ZERO + datetime.timedelta(days=rng.randint(-50_000, 50_000))).isoformat(),
    "time": lambda rng: (_TIME_ZERO + datetime.timedelta(milliseconds=rng.randint(-10**12, 10**13))).isoformat(
        " ", "milliseconds"),
    "json": lambda rng: json.dumps({"n": rng.randint(0, 9), "text": _text(rng)}, sort_keys=True),
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128))),
}
