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

    The time of a record with a row is its `source.hlc`. The table `martlet.row` has the others; what it says of programs is of watched
    tables only. A program's transaction that has changed the row has its entry locked until it ends. So the decision is made
    with all changes that were committed before this one, and nobody makes one in between.
    """

    def __init__(self, cursor, name):
        self.name = name
        cursor.execute("""
            SELECT n.nspname, c.relname, coalesce(pg_partition_root(c.oid), c.oid)::regclass::text, EXISTS (
                SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgfoid = 'martlet.note_change()'::regprocedure)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)""", [name])
        found = cursor.fetchone()
        if found is None:
            raise Unusable(f"PostgreSQL has no table {name}: create it")
        *parts, self._relation, self.is_watched = found
        self._table = sql.Identifier(*parts)
        # A value that is too long for its column has to fail. It is cut if it is cast to the type with its length, varchar(3).
        cursor.execute("""
            SELECT a.attname, format_type(a.atttypid, -1), format_type(a.atttypid, a.atttypmod), coalesce(a.attnum = ANY (i.indkey), false)
            FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
            WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
            ORDER BY a.attnum""", [name])
        columns = cursor.fetchall()
        self._types = {column: kind for column, kind, _, _ in columns}
        #: The columns of the primary key, in the order that `martlet.watch` has, and their types with their lengths.
        self._key = {column: declared for column, _, declared, is_key in columns if is_key}
        self._note_delete = self._make_note_of_delete().as_string(cursor)
        # By itself, so that it finds a row of the transaction for which that statement had to wait.
        self._delete = sql.SQL("DELETE FROM {} WHERE ({}) = ({})").format(
            self._table, _listed("{}", self._key), _marks(self._types[column] for column in self._key)).as_string(cursor)
        #: By the columns of a record.
        self._upserts = {}

    def apply(self, cursor, record):
        """Applies a record, unless it is older than the row."""
        if record.problem:
            raise Unusable(record.problem)
        self._check_key(record.key)
        key = self._texts(self._key, record.key)
        if record.row is None:
            cursor.execute(self._note_delete, [self._relation, *key, record.hlc, record.deleted_at])
            if cursor.rowcount:
                cursor.execute(self._delete, key)
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
        cursor.execute(self._upserts[columns], [self._relation, *key, record.hlc, *self._texts(columns, record.row)])

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
                key_values=_marks(self._key.values()), table=self._table, columns=_listed("{}", columns),
                values=_marks(self._types[column] for column in columns), key=_listed("{}", self._key), update=update)

    def _make_note_of_delete(self):
        return sql.SQL("""
            INSERT INTO martlet.row AS r (relation, key, hlc) VALUES (%s, jsonb_build_array({key_values}), %s)
            ON CONFLICT ON CONSTRAINT row_pkey DO UPDATE
            SET hlc = greatest(r.hlc, excluded.hlc), changed = NULL, inserted = NULL
            WHERE coalesce(r.inserted <= %s, true)""").format(key_values=_marks(self._key.values()))


def _marks(types):
    """Parameters for values of these types, which are passed as text."""
    return sql.SQL(", ").join(sql.SQL("%s::text::{}").format(sql.SQL(kind)) for kind in types)


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
