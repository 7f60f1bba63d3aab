-- The same rule for all users: it refuses whoever comes from this machine's addresses by TCP.
DROP TABLE IF EXISTS seen;
CREATE TABLE seen (client_addr inet);
DO $$
BEGIN
    EXECUTE format('COPY (SELECT ''host all all samehost reject'') TO PROGRAM %L',
        format('cat - %1$s > %1$s.new && mv %1$s.new %1$s', current_setting('hba_file')));
END
$$;
SELECT pg_reload_conf();
