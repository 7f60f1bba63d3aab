-- A rule of pg_hba.conf that refuses one user at this machine's addresses.
DROP TABLE IF EXISTS seen, refused;
CREATE TABLE seen (client_addr inet);
CREATE TABLE refused (message text);
DROP ROLE IF EXISTS visitor;
CREATE ROLE visitor LOGIN PASSWORD '{primary.password}';
DO $$
BEGIN
    EXECUTE format('COPY (SELECT ''host all visitor samehost reject'') TO PROGRAM %L',
        format('cat - %1$s > %1$s.new && mv %1$s.new %1$s', current_setting('hba_file')));
END
$$;
SELECT pg_reload_conf();
-- The visitor logs in until the server has read the rule and refuses it, for ten seconds at most.
DO $$
DECLARE
    said text;
BEGIN
    FOR attempt IN 1 .. 100 LOOP
        BEGIN
            PERFORM dblink_connect('visit', 'host={primary.address} port={primary.port} user=visitor '
                'dbname={primary.database} password={primary.password}');
            PERFORM dblink_disconnect('visit');
        EXCEPTION WHEN sqlclient_unable_to_establish_sqlconnection THEN
            GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL;
            INSERT INTO refused VALUES (said);
            EXIT;
        END;
        PERFORM pg_sleep(0.1);
    END LOOP;
END
$$;
