"""The published tables, as PostgreSQL's catalog describes them."""

import sys

import clients
from envelope import Table, type_of


class Catalog:
    def __init__(self, cursor, prefix, schemas):
        self._cursor = cursor
        self._prefix = prefix
        self._schemas = schemas
        self._cursor.execute("SELECT current_database()")
        self._database, = self._cursor.fetchone()

    def tables(self, publication):
        """The tables of a publication: (schema, table, columns, row filter)."""
        self._cursor.execute("""
            SELECT p.schemaname, p.tablename, array_agg(a.attname ORDER BY a.attnum), p.rowfilter, c.relreplident::text
            FROM pg_publication_tables p
            JOIN pg_namespace n ON n.nspname = p.schemaname
            JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = ANY (p.attnames) AND a.attgenerated = ''
            WHERE p.pubname = %s GROUP BY 1, 2, 4, 5 ORDER BY 1, 2""", [publication])
        found = self._cursor.fetchall()
        if not found:
            sys.exit(f"there is no publication {publication}, or it has no tables. Run: CREATE PUBLICATION {publication} FOR TABLE ...")
        for schema, table, _, _, identity in found:
            self._check(f"{schema}.{table}", self._key(schema, table), identity)
        return [row[:4] for row in found]

    @staticmethod
    def _check(name, key, identity):
        if not key:
            sys.exit(f"{name} has no primary key, so its records would have no key: give it one")
        if identity not in "df":
            sys.exit(f"{name} identifies rows by another index than its primary key. "
                     f"Run: ALTER TABLE {name} REPLICA IDENTITY FULL")
        if identity == "d":
            clients.note(f"{name}: without REPLICA IDENTITY FULL, an update does not say which columns it changed, and leaves "
                         f"out large values that it did not change. Run: ALTER TABLE {name} REPLICA IDENTITY FULL")

    def table(self, schema, name, columns):
        """The Table with these columns: pairs of name and type's OID. None if it was dropped meanwhile."""
        key = self._key(schema, name)
        if not key:
            return None
        self._cursor.execute(
            # The type behind a domain is what values look like.
            "SELECT t.oid, coalesce(b.typname, t.typname) FROM pg_type t LEFT JOIN pg_type b ON b.oid = t.typbasetype "
            "WHERE t.oid = ANY (%s::oid[])", [[oid for _, oid in columns]])
        types = dict(self._cursor.fetchall())
        pairs = [(column, type_of(types.get(oid), self._schemas)) for column, oid in columns]
        return Table(self._prefix, self._database, schema, name, pairs, key, self._schemas)

    def current_table(self, schema, name, columns):
        """The Table with the named columns as they are today."""
        self._cursor.execute("""
            SELECT a.attname, a.atttypid FROM pg_attribute a
            JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = %s AND c.relname = %s AND a.attname = ANY (%s) ORDER BY a.attnum""", [schema, name, columns])
        return self.table(schema, name, self._cursor.fetchall())

    def _key(self, schema, table):
        """The names of the primary key's columns."""
        self._cursor.execute("""
            SELECT a.attname FROM pg_index i
            JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
            WHERE i.indisprimary AND n.nspname = %s AND c.relname = %s ORDER BY array_position(i.indkey, a.attnum)""",
                             [schema, table])
        return [column for column, in self._cursor.fetchall()]
