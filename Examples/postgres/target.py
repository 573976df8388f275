"""Applies records of rows to a table of PostgreSQL."""

import base64
import datetime
import json

from psycopg2 import sql

_DAY_ZERO = datetime.date(1970, 1, 1)
_TIME_ZERO = datetime.datetime(1970, 1, 1)


class Unusable(Exception):
    """A record that the table can't take, and what to do about it."""


class Number(str):
    """A number with a fraction, as the record has it: PostgreSQL's types may have more digits than a float."""


def parse(text):
    return json.loads(text, parse_float=Number)


class Target:
    """A table, and the rule that decides whether a record is applied.

    A delete is always applied. Any other record is not if it is older than the last one of its row that was applied, or older than the
    last change of the row by anybody but the writer. Times are those of `source.hlc`, and of PostgreSQL's commits.
    """

    def __init__(self, cursor, name, origin, is_sole_writer):
        """`origin`: the number of the writer's replication origin."""
        self.name = name
        cursor.execute("""
            SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.oid = to_regclass(%s)""", [name])
        found = cursor.fetchone()
        if found is None:
            raise Unusable(f"PostgreSQL has no table {name}: create it")
        self._table = sql.Identifier(*found)
        cursor.execute("""
            SELECT a.attname, format_type(a.atttypid, a.atttypmod), coalesce(a.attnum = ANY (i.indkey), false)
            FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
            WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
            ORDER BY a.attnum""", [name])
        columns = cursor.fetchall()
        self._types = {column: kind for column, kind, _ in columns}
        self._key = [column for column, _, is_key in columns if is_key]
        self._origin = origin
        self._is_sole_writer = is_sole_writer
        self._upserts = {}

    def upsert(self, cursor, key, row, hlc, columns_of_bytes):
        """Inserts or updates a row.

        `columns_of_bytes`: the columns that have bytes, although their type is another.
        """
        self._check_key(key)
        unknown = row.keys() - self._types.keys()
        if unknown:
            raise Unusable(f"{self.name} has no column {', '.join(sorted(unknown))}: add it")
        for column in columns_of_bytes:
            if self._types[column] != "bytea":
                raise Unusable(f"{self.name}.{column} can't have bytes that are not text")
        columns = tuple(row)
        if columns not in self._upserts:
            self._upserts[columns] = self._make_upsert(columns).as_string(cursor)
        cursor.execute(self._upserts[columns],
                       [self.name, _key_text(key), hlc, *(self._text(column, row[column]) for column in columns)])

    def delete(self, cursor, key, hlc):
        """Deletes a row, if it is there."""
        self._check_key(key)
        condition = sql.SQL(" AND ").join(
            sql.SQL("{} = %s::text::{}").format(sql.Identifier(column), sql.SQL(self._types[column])) for column in key)
        cursor.execute("""
            INSERT INTO martlet.applied AS a (table_name, key, hlc) VALUES (%s, %s, %s)
            ON CONFLICT (table_name, key) DO UPDATE SET hlc = greatest(a.hlc, excluded.hlc)""",
                       [self.name, _key_text(key), hlc])
        cursor.execute(sql.SQL("DELETE FROM {} WHERE {}").format(self._table, condition),
                       [self._text(column, value) for column, value in key.items()])

    def _text(self, column, value):
        try:
            return _text(value, self._types[column])
        except (ValueError, OverflowError) as problem:
            raise Unusable(f"{self.name}.{column} can't have this value: {problem}") from problem

    def _check_key(self, key):
        if set(key) != set(self._key):
            raise Unusable(f"the key of the record is {', '.join(key)}, and the primary key of {self.name} is "
                           f"{', '.join(self._key) or 'missing'}: they have to have the same columns")

    def _make_upsert(self, columns):
        names = [sql.Identifier(column) for column in columns]
        others = [sql.Identifier(column) for column in columns if column not in self._key]

        def listed(form):
            return sql.SQL(", ").join(sql.SQL(form).format(name) for name in names)

        parts = {
            "table": self._table, "names": listed("{}"), "old": listed("old.{}"), "new": listed("excluded.{}"),
            "values": sql.SQL(", ").join(sql.SQL("%s::text::{}").format(sql.SQL(self._types[column])) for column in columns),
            "key": sql.SQL(", ").join(map(sql.Identifier, self._key)),
            "update": sql.SQL("NOTHING"), "newer": sql.SQL("")}
        if others:
            assigned = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in others)
            if not self._is_sole_writer:
                parts["newer"] = sql.SQL("""
                    AND NOT EXISTS (
                        SELECT FROM pg_xact_commit_timestamp_origin(old.xmin) c, fresh
                        WHERE c.roident <> {} AND floor(extract(epoch FROM c.timestamp) * 1000) > fresh.hlc >> 16)""").format(
                    sql.Literal(self._origin))
            parts["update"] = sql.SQL("""
                UPDATE SET {} WHERE ROW({old})::text IS DISTINCT FROM ROW({new})::text {newer}""").format(assigned, **parts)
        # As text, since not all types can be compared. A row that has the values already keeps its time.
        return sql.SQL("""
            WITH fresh AS (
                INSERT INTO martlet.applied AS a (table_name, key, hlc) VALUES (%s, %s, %s)
                ON CONFLICT (table_name, key) DO UPDATE SET hlc = excluded.hlc WHERE a.hlc <= excluded.hlc
                RETURNING hlc)
            INSERT INTO {table} AS old ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM fresh
            ON CONFLICT ({key}) DO {update}""").format(**parts)


def _key_text(key):
    return json.dumps(key, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _text(value, kind):
    """A value of a record as text that PostgreSQL reads as the type of its column."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower() if kind == "boolean" else str(int(value))
    if isinstance(value, Number):
        return f"{float(value)}" if abs(float(value)) == float("inf") else value
    if kind == "bytea":
        return f"\\x{base64.b64decode(value, validate=True).hex()}" if isinstance(value, str) else str(value)
    if isinstance(value, int) and kind == "date":
        return (_DAY_ZERO + datetime.timedelta(days=value)).isoformat()
    if isinstance(value, int) and kind.startswith("timestamp"):
        return (_TIME_ZERO + datetime.timedelta(milliseconds=value)).isoformat()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
