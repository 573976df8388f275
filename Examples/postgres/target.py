"""Applies records of rows to a table of PostgreSQL."""

import base64
import datetime
import json

from psycopg2 import sql

from records import Number, Unusable

_DAY_ZERO = datetime.date(1970, 1, 1)
_TIME_ZERO = datetime.datetime(1970, 1, 1)


class Target:
    """A table, and the rule that decides whether a record is applied: it is not if it is older than the row.

    - A record with a row is older if the last one that was applied has a later time, or if a program has changed the row here later.
    - A delete is older only if a program has inserted the row here later: on the nodes, a delete wins over later updates.

    The time of a record with a row is its `source.hlc`. The table `martlet.row` has the others; what it says of programs is of watched tables only.
    """

    def __init__(self, cursor, name):
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
        self._delete = self._make_delete().as_string(cursor)
        #: By the columns of a record.
        self._upserts = {}

    def apply(self, cursor, record):
        """Applies a record, unless it is older than the row."""
        if record.problem:
            raise Unusable(record.problem)
        self._check_key(record.key)
        key = [self.name, *self._texts(self._key, record.key), record.hlc]
        if record.row is None:
            cursor.execute(self._delete, [*key, record.deleted_at, *self._texts(self._key, record.key)])
            return
        unknown = record.row.keys() - self._types.keys()
        if unknown:
            raise Unusable(f"{self.name} has no column {', '.join(sorted(unknown))}: add it")
        for column in record.columns_of_bytes:
            if self._types[column] != "bytea":
                raise Unusable(f"{self.name}.{column} can't have bytes that are not text")
        columns = tuple(record.row)
        if columns not in self._upserts:
            self._upserts[columns] = self._make_upsert(columns).as_string(cursor)
        cursor.execute(self._upserts[columns], [*key, *self._texts(columns, record.row)])

    def _check_key(self, key):
        if set(key) != set(self._key):
            raise Unusable(f"the key of the record is {', '.join(key)}, and the primary key of {self.name} is "
                           f"{', '.join(self._key) or 'missing'}: they have to have the same columns")

    def _texts(self, columns, row):
        texts = []
        for column in columns:
            try:
                texts.append(_text(row[column], self._types[column]))
            except (ValueError, OverflowError) as problem:
                raise Unusable(f"{self.name}.{column} can't have this value: {problem}") from problem
        return texts

    def _marks(self, columns):
        """Parameters for values of columns, which are passed as text."""
        return sql.SQL(", ").join(sql.SQL("%s::text::{}").format(sql.SQL(self._types[column])) for column in columns)

    def _make_upsert(self, columns):
        others = [column for column in columns if column not in self._key]
        update = sql.SQL("NOTHING")
        if others:
            # As text, since not all types can be compared.
            update = sql.SQL("UPDATE SET {} WHERE ROW({})::text IS DISTINCT FROM ROW({})::text").format(
                _listed("{0} = excluded.{0}", others), _listed("old.{}", others), _listed("excluded.{}", others))
        return sql.SQL("""
            WITH newer AS (
                INSERT INTO martlet.row AS r (relation, key, hlc) VALUES (%s, jsonb_build_array({key_values}), %s)
                ON CONFLICT ON CONSTRAINT row_pkey DO UPDATE SET hlc = excluded.hlc
                WHERE r.hlc <= excluded.hlc AND coalesce(r.changed <= excluded.hlc >> 16, true)
                RETURNING 1)
            INSERT INTO {table} AS old ({columns}) OVERRIDING SYSTEM VALUE SELECT {values} FROM newer
            ON CONFLICT ({key}) DO {update}""").format(
                key_values=self._marks(self._key), table=self._table, columns=_listed("{}", columns), values=self._marks(columns),
                key=_listed("{}", self._key), update=update)

    def _make_delete(self):
        return sql.SQL("""
            WITH newer AS (
                INSERT INTO martlet.row AS r (relation, key, hlc) VALUES (%s, jsonb_build_array({key_values}), %s)
                ON CONFLICT ON CONSTRAINT row_pkey DO UPDATE
                SET hlc = greatest(r.hlc, excluded.hlc), changed = NULL, inserted = NULL
                WHERE coalesce(r.inserted <= %s, true)
                RETURNING 1)
            DELETE FROM {table} USING newer WHERE ({key}) = ({key_values})""").format(
                key_values=self._marks(self._key), table=self._table, key=_listed("{}", self._key))


def _listed(form, columns):
    return sql.SQL(", ").join(sql.SQL(form).format(sql.Identifier(column)) for column in columns)


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
