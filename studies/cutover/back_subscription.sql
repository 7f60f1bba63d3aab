-- Nothing is copied, and what came from here does not come back. The option origin is of version 16.
BEGIN READ WRITE;
DO $do$
BEGIN
    EXECUTE format('CREATE SUBSCRIPTION back CONNECTION %L PUBLICATION back
        WITH (create_slot = false, slot_name = back, copy_data = false%s)',
        'host={new.address} port={new.port} user={new.user} dbname={new.database}',
        CASE WHEN current_setting('server_version_num')::int >= 160000 THEN ', origin = none' END);
END $do$;
COMMIT
