-- What read_postgres.py and write_postgres.py need. Run it once, as a superuser, in the database that has the tables:
--     psql -d shop -f setup.sql
CREATE ROLE martlet LOGIN REPLICATION;

-- The writer: no triggers and no foreign keys act on what it applies, and the reader can tell it apart.
GRANT SET ON PARAMETER session_replication_role TO martlet;
GRANT EXECUTE ON FUNCTION
    pg_replication_origin_create(text),
    pg_replication_origin_oid(text),
    pg_replication_origin_session_setup(text),
    pg_replication_origin_xact_setup(pg_lsn, timestamptz)
    TO martlet;

CREATE SCHEMA martlet AUTHORIZATION martlet;
SET ROLE martlet;
-- How far the writer has read each partition.
CREATE TABLE martlet.place (
    topic text,
    partition integer,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
);
-- The timestamp of the newest record of each row, also of deleted ones.
CREATE TABLE martlet.applied (
    table_name text,
    key text,
    hlc bigint NOT NULL,
    PRIMARY KEY (table_name, key)
);
RESET ROLE;
