-- What read_postgres.py and write_postgres.py need. Run it once, as a superuser, in the database that has the tables:
--     psql -d shop -f setup.sql
BEGIN;

-- A server's databases share their roles: another one may have it already.
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'martlet') THEN
        CREATE ROLE martlet LOGIN REPLICATION;
    END IF;
END $$;

-- The writer: no triggers and no foreign keys act on what it applies, and the reader can tell it apart.
GRANT SET ON PARAMETER session_replication_role TO martlet;
GRANT EXECUTE ON FUNCTION
    pg_replication_origin_create(text),
    pg_replication_origin_oid(text),
    pg_replication_origin_session_setup(text),
    pg_replication_origin_xact_setup(pg_lsn, timestamptz)
    TO martlet;

CREATE SCHEMA martlet AUTHORIZATION martlet;
GRANT USAGE ON SCHEMA martlet TO PUBLIC;
SET ROLE martlet;

-- How far the writer has read each partition.
CREATE TABLE martlet.place (
    topic text,
    partition integer,
    next_offset bigint NOT NULL,
    -- The key that the last record deleted. The record without a value that follows it says nothing new.
    deleted bytea,
    PRIMARY KEY (topic, partition)
);

-- What is known of a row, which may be deleted.
CREATE TABLE martlet.row (
    -- The table. Of a partition, the table that it is a part of.
    relation regclass,
    -- The values of its primary key, in an array.
    key jsonb,
    -- The timestamp of the newest record that was applied: its source.hlc.
    hlc bigint NOT NULL DEFAULT 0,
    -- When a program last changed the row here, and when one inserted it, in milliseconds since 1970. NULL: none has, since the
    -- writer deleted the row.
    changed bigint,
    inserted bigint,
    PRIMARY KEY (relation, key)
);

-- Makes PostgreSQL note what programs change in a table, for tables that both sides change. `columns`: those that the nodes
-- have too. By default, all. Call it again with other columns to replace them.
CREATE FUNCTION martlet.watch(relation regclass, columns text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    key text[] := (
        SELECT array_agg(a.attname ORDER BY a.attnum) FROM pg_index i
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = relation AND i.indisprimary);
    unknown text := (
        SELECT string_agg(name, ', ') FROM unnest(columns) AS name WHERE NOT EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = relation AND attname = name AND attnum > 0 AND NOT attisdropped));
BEGIN
    IF key IS NULL THEN
        RAISE EXCEPTION '% has no primary key: give it one', relation;
    END IF;
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION '% has no column %', relation, unknown;
    END IF;
    -- The writer's session has session_replication_role = replica, in which this trigger does not fire.
    EXECUTE format(
        'CREATE OR REPLACE TRIGGER martlet AFTER INSERT OR UPDATE OR DELETE ON %s '
        'FOR EACH ROW EXECUTE FUNCTION martlet.note_change(%L, %L)',
        relation, key, coalesce(columns::text, ''));
END $$;

-- A program needs no right to write in this schema. A key has to look as it does to the writer, whatever the settings of the
-- program's session: these are those of write_postgres.py.
CREATE FUNCTION martlet.note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET datestyle = ISO SET intervalstyle = iso_8601 SET timezone = UTC SET bytea_output = hex SET extra_float_digits = 1
AS $$
DECLARE
    this regclass := coalesce(pg_partition_root(TG_RELID), TG_RELID);
    key_columns text[] := TG_ARGV[0];
    columns text[] := nullif(TG_ARGV[1], '');
    before jsonb := to_jsonb(OLD);
    after jsonb := to_jsonb(NEW);
    key_before jsonb := (SELECT jsonb_agg(before -> name ORDER BY place) FROM unnest(key_columns) WITH ORDINALITY AS k(name, place));
    key_after jsonb := (SELECT jsonb_agg(after -> name ORDER BY place) FROM unnest(key_columns) WITH ORDINALITY AS k(name, place));
    now bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    -- An update that changes the key is a delete and an insert.
    keeps_key boolean := TG_OP = 'UPDATE' AND key_before = key_after;
    keeps_values boolean := CASE WHEN columns IS NULL THEN before = after
        ELSE NOT EXISTS (SELECT FROM unnest(columns) AS name WHERE before -> name IS DISTINCT FROM after -> name) END;
BEGIN
    IF keeps_key AND keeps_values THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' AND NOT keeps_key THEN
        INSERT INTO martlet.row (relation, key, changed) VALUES (this, key_before, now)
        ON CONFLICT ON CONSTRAINT row_pkey DO UPDATE SET changed = excluded.changed, inserted = NULL;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO martlet.row AS r (relation, key, changed, inserted)
        VALUES (this, key_after, now, CASE WHEN NOT keeps_key THEN now END)
        ON CONFLICT ON CONSTRAINT row_pkey DO UPDATE
        SET changed = excluded.changed, inserted = coalesce(excluded.inserted, r.inserted);
    END IF;
    RETURN NULL;
END $$;

RESET ROLE;
COMMIT;
