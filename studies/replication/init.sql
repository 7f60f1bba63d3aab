-- Users, and what is written when they come and go.
CREATE TABLE user_info (
    userid     int PRIMARY KEY,
    engname    text,
    cnname     text,
    occupation text,
    birthday   date,
    signname   text,
    email      text,
    qq         numeric,
    crt_time   timestamp without time zone,
    mod_time   timestamp without time zone
);
CREATE TABLE user_login_rec (userid int, login_time timestamp without time zone, ip inet);
CREATE TABLE user_logout_rec (userid int, logout_time timestamp without time zone, ip inet);

-- Every row has the same texts, as published; each is as long, in bytes, as the published one.
INSERT INTO user_info
    SELECT i, 'user_eleven', '用户', 'OPS', date '1980-01-01',
           '签名长度与原文相同, and it says plain ASCII..', 'user@mail.test', 123456789,
           timestamp '2000-01-01', NULL
    FROM generate_series(1, :rows) AS i;

-- Reads one user and notes that it came. A user that does not exist logs in nowhere.
CREATE FUNCTION login(i_userid int, OUT o_userid int, OUT o_engname text, OUT o_cnname text,
    OUT o_occupation text, OUT o_birthday date, OUT o_signname text, OUT o_email text,
    OUT o_qq numeric)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT userid, engname, cnname, occupation, birthday, signname, email, qq
        INTO o_userid, o_engname, o_cnname, o_occupation, o_birthday, o_signname, o_email, o_qq
        FROM user_info WHERE userid = i_userid;
    INSERT INTO user_login_rec (userid, login_time, ip)
        VALUES (i_userid, now(), inet_client_addr());
END
$$;

-- Notes that a user left: 0, or 1 if it cannot be noted.
CREATE FUNCTION logout(i_userid int, OUT o_result int)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO user_logout_rec (userid, logout_time, ip)
        VALUES (i_userid, now(), inet_client_addr());
    o_result := 0;
EXCEPTION WHEN OTHERS THEN
    o_result := 1;
END
$$;

-- What the fault scenarios write: every transaction a row, every client its own row.
CREATE TABLE written (client int, seq bigint, chain bigint, at timestamptz DEFAULT now(),
    PRIMARY KEY (client, seq));
CREATE TABLE last_written (client int PRIMARY KEY, seq bigint, chain bigint);

VACUUM ANALYZE;
