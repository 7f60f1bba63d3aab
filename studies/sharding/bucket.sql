-- One bucket: the published four tables and six functions. {bucket} is its schema; a single server
-- is one bucket in schema public. Keys are called key in functions, so that calls can be routed.

CREATE TABLE {bucket}.userinfo (userid int PRIMARY KEY, info text);
CREATE TABLE {bucket}.session (userid int PRIMARY KEY, last_login timestamp);
CREATE TABLE {bucket}.tbl_small (userid int PRIMARY KEY, info text);

-- The published table has no key; logical replication and our accounts need one. A random one,
-- because a sequence does not move along with its rows. The last three columns are the ledger's,
-- where clients keep one.
CREATE TABLE {bucket}.login_log (
    logid uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    userid int,
    db_user name,
    client_addr inet,
    client_port int,
    server_addr inet,
    server_port int,
    login_time timestamp,
    client int,
    seq bigint,
    chain bigint
);

CREATE FUNCTION {bucket}.query_pk(key int) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT info FROM {bucket}.userinfo WHERE userid = key);
END
$$;

CREATE FUNCTION {bucket}.insert_log(key int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {bucket}.login_log
        (userid, db_user, client_addr, client_port, server_addr, server_port, login_time)
        VALUES (key, current_user, inet_client_addr(), inet_client_port(), inet_server_addr(),
                inet_server_port(), now());
END
$$;

-- The functions that do more read first, then log, then update, as published.
CREATE FUNCTION {bucket}.query_insert(key int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found text;
BEGIN
    SELECT info INTO found FROM {bucket}.userinfo WHERE userid = key;
    INSERT INTO {bucket}.login_log
        (userid, db_user, client_addr, client_port, server_addr, server_port, login_time)
        VALUES (key, current_user, inet_client_addr(), inet_client_port(), inet_server_addr(),
                inet_server_port(), now());
    RETURN found;
END
$$;

CREATE FUNCTION {bucket}.update_pk(key int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE {bucket}.session SET last_login = now() WHERE userid = key;
END
$$;

CREATE FUNCTION {bucket}.query_update_insert(key int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found text;
BEGIN
    SELECT info INTO found FROM {bucket}.userinfo WHERE userid = key;
    INSERT INTO {bucket}.login_log
        (userid, db_user, client_addr, client_port, server_addr, server_port, login_time)
        VALUES (key, current_user, inet_client_addr(), inet_client_port(), inet_server_addr(),
                inet_server_port(), now());
    UPDATE {bucket}.session SET last_login = now() WHERE userid = key;
    RETURN found;
END
$$;

-- The same, with a line of the ledger.
CREATE FUNCTION {bucket}.query_update_insert_noted(key int, client int, seq bigint, chain bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found text;
BEGIN
    SELECT info INTO found FROM {bucket}.userinfo WHERE userid = key;
    INSERT INTO {bucket}.login_log
        (userid, db_user, client_addr, client_port, server_addr, server_port, login_time,
         client, seq, chain)
        VALUES (key, current_user, inet_client_addr(), inet_client_port(), inet_server_addr(),
                inet_server_port(), now(), client, seq, chain);
    UPDATE {bucket}.session SET last_login = now() WHERE userid = key;
    RETURN found;
END
$$;

CREATE FUNCTION {bucket}.query_smalltbl(key int) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT info FROM {bucket}.tbl_small WHERE userid = key);
END
$$;

-- The rows of this bucket; over all buckets, those of the cluster.
CREATE FUNCTION {bucket}.count_users() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT count(*) FROM {bucket}.userinfo);
END
$$;
