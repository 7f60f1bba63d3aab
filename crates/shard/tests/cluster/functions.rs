//! Functions as they are written for a single server.

use shard::{Cluster, Error, Moves};

use crate::common::{Servers, connect, options};
use crate::crashes::never;

/// Tables and functions of a published measurement, which name no schema and have another key.
const PUBLISHED: &str = "
    create table userinfo(userid int,info text);
    create table session (userid int,last_login timestamp);
    create table login_log (userid int,db_user name,client_addr inet,
                       client_port int,server_addr inet,server_port int,login_time timestamp);
    create table tbl_small (userid int primary key,info text);
    alter table userinfo add constraint pk_userinfo primary key (userid);
    alter table session add constraint pk_session primary key (userid);
CREATE OR REPLACE FUNCTION query_pk(IN i_userid int, OUT userid int, OUT info text)
     RETURNS record
     LANGUAGE plpgsql
     STRICT
    AS $function$
      declare
      begin
        select t.userid,t.info into userid,info from userinfo t where t.userid=i_userid;
        return;
      end;
    $function$;
CREATE OR REPLACE FUNCTION insert_log(IN i_userid int)
     RETURNS void
     LANGUAGE plpgsql
     STRICT
    AS $function$
      declare
      begin
        set synchronous_commit=off;
        insert into login_log (userid,db_user,client_addr,client_port,server_addr,server_port,login_time)
   values (i_userid,current_user,inet_client_addr(),inet_client_port(),inet_server_addr(),inet_server_port(),now());
      end;
    $function$;
CREATE OR REPLACE FUNCTION query_insert(IN i_userid int, OUT userid int, OUT info text)
     RETURNS record
     LANGUAGE plpgsql
     STRICT
    AS $function$
      declare
      begin
        set synchronous_commit=off;
        select t.userid,t.info into userid,info from userinfo t where t.userid=i_userid;
        insert into login_log (userid,db_user,client_addr,client_port,server_addr,server_port,login_time)
   values (i_userid,current_user,inet_client_addr(),inet_client_port(),inet_server_addr(),inet_server_port(),now());
        return;
      end;
    $function$;
CREATE OR REPLACE FUNCTION update_pk(IN i_userid int)
     RETURNS void
     LANGUAGE plpgsql
     STRICT
    AS $function$
      declare
      begin
        set synchronous_commit=off;
        update session t set last_login=now() where t.userid=i_userid;
      end;
    $function$;
CREATE OR REPLACE FUNCTION query_update_insert(IN i_userid int, OUT userid int, OUT info text)
     RETURNS record
     LANGUAGE plpgsql
     STRICT
    AS $function$
      declare
      begin
        set synchronous_commit=off;
        select t.userid,t.info into userid,info from userinfo t where t.userid=i_userid;
        insert into login_log (userid,db_user,client_addr,client_port,server_addr,server_port,login_time)
   values (i_userid,current_user,inet_client_addr(),inet_client_port(),inet_server_addr(),inet_server_port(),now());
        update session t set last_login=now() where t.userid=i_userid;
        return;
      end;
    $function$;
CREATE OR REPLACE FUNCTION query_smalltbl(IN i_userid int, OUT userid int, OUT info text)
     RETURNS record
     LANGUAGE plpgsql
     STRICT
    AS $function$
      declare
      begin
        select t.userid,t.info into userid,info from tbl_small t where t.userid=i_userid;
        return;
      end;
    $function$;
";

/// The published log has no key, and would not be replicated.
const IDENTITY: &str = "alter table login_log replica identity full;";

/// Functions of other kinds, in the same manner.
const MORE: &str = "
CREATE FUNCTION put_user(i_userid int, info text DEFAULT 'none') RETURNS void LANGUAGE sql
    AS 'insert into userinfo values ($1, $2); insert into session values ($1)';
CREATE FUNCTION logs(i_userid int) RETURNS TABLE (at timestamp, by_user name) LANGUAGE sql STABLE
    AS 'select login_time, db_user from login_log where userid = $1';
CREATE FUNCTION users(OUT userid int, OUT info text) RETURNS SETOF record LANGUAGE sql STABLE
    AS 'select * from userinfo';
CREATE FUNCTION ids(low int) RETURNS SETOF int LANGUAGE sql STABLE
    AS 'select userid from userinfo where userid >= $1';";

#[test]
fn functions_of_a_single_server_are_taken_as_they_are() {
    let servers = Servers::start(2);
    let create = |template: &str, key: &str| {
        Cluster::create(&servers.conninfo(), &[servers.node(0)], 8, template, key)
    };
    let template = format!("{PUBLISHED}{IDENTITY}{MORE}");
    let error = create(&template, "key").err().unwrap().to_string();
    assert!(error.contains("name the parameter with --key"), "{error}");
    let error = create(PUBLISHED, "i_userid").err().unwrap().to_string();
    assert!(error.contains("login_log has neither a primary key"), "{error}");
    let mut cluster = create(&template, "i_userid").unwrap();
    let mut proxy = connect(&servers.conninfo());
    proxy.batch_execute("SELECT put_user(k, 'user ' || k) FROM generate_series(1, 50) k").unwrap();
    proxy.batch_execute("SELECT put_user(51)").unwrap();
    let mut check = || {
        let row = proxy.query_one("SELECT * FROM query_pk(7)", &[]).unwrap();
        assert_eq!((row.get(0), row.get(1)), (Some(7_i32), Some("user 7")));
        let row = proxy.query_one("SELECT count(userid) FROM query_pk(NULL)", &[]).unwrap();
        assert_eq!(row.get::<_, i64>(0), 0, "STRICT");
        proxy.batch_execute("SELECT insert_log(7); SELECT update_pk(7)").unwrap();
        for function in ["query_insert", "query_update_insert"] {
            let sql = format!("SELECT info FROM {function}(7)");
            assert_eq!(proxy.query_one(&sql, &[]).unwrap().get::<_, &str>(0), "user 7");
        }
        let row = proxy.query_one("SELECT info FROM query_pk(51)", &[]).unwrap();
        assert_eq!(row.get::<_, &str>(0), "none", "the default");
        let logs = proxy.query("SELECT at, by_user FROM logs(7)", &[]).unwrap().len();
        assert_eq!(proxy.query("SELECT * FROM logs_everywhere(7)", &[]).unwrap().len(), logs);
        assert_eq!(proxy.query("SELECT userid, info FROM users()", &[]).unwrap().len(), 51);
        assert_eq!(proxy.query("SELECT * FROM ids(7)", &[]).unwrap().len(), 45);
        logs
    };
    assert_eq!(check(), 3);
    cluster.add(&servers.node(1)).unwrap();
    Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
    assert_eq!(check(), 6);
}

#[test]
fn functions_that_cannot_be_taken_are_refused_with_the_reason() {
    let servers = Servers::start(1);
    let check = |function: &str, expected: &str| {
        let template = format!("CREATE TABLE t (id int PRIMARY KEY); {function}");
        let nodes = [servers.node(0)];
        let error = Cluster::create(&servers.conninfo(), &nodes, 8, &template, "i_userid");
        let error = error.err().expect(expected);
        assert!(matches!(error, Error::Refused { .. }) && error.hint().is_some());
        assert!(error.to_string().contains(expected), "{error}");
    };
    let sql = "LANGUAGE sql AS 'SELECT 1'";
    check(&format!("CREATE FUNCTION f(i_userid text) RETURNS int {sql}"), "has a key of type text");
    check(
        &format!("CREATE FUNCTION f(i_userid int[]) RETURNS int {sql}"),
        "has a key of type integer[]: no call is divided among the nodes",
    );
    check(
        &format!("CREATE FUNCTION f(i_userid pg_catalog.pg_class) RETURNS int {sql}"),
        "has a key of type pg_class: the hash",
    );
    check(
        &format!(
            "CREATE TYPE pair AS (a int, b int);
             CREATE FUNCTION f(i_userid pair) RETURNS int {sql}"
        ),
        "has the type pair of the bucket's schema",
    );
    check(
        "CREATE FUNCTION f(i_userid int) RETURNS record LANGUAGE sql AS 'SELECT 1, 2'",
        "gives records without named columns",
    );
    check(&format!("CREATE PROCEDURE f(i_userid int) {sql}"), "is no function");
    check(
        &format!("CREATE FUNCTION f(i_userid int, VARIADIC x int[]) RETURNS int {sql}"),
        "has a variable number of parameters",
    );
    check(
        &format!("CREATE FUNCTION f(i_userid int, x anyelement) RETURNS int {sql}"),
        "has the type anyelement",
    );
    check(
        &format!("CREATE FUNCTION f(int) RETURNS int STABLE {sql}"),
        "a parameter without a name",
    );
    check(
        &format!("CREATE FUNCTION f(i_userid int, \"X\" int) RETURNS int {sql}"),
        "is not made of lower-case letters",
    );
    for body in ["RUN ON i_userid", "SPLIT others; RUN ON others"] {
        let proxy = format!(
            "CREATE EXTENSION IF NOT EXISTS plproxy;
             CREATE FUNCTION f(i_userid int, others int[]) RETURNS SETOF int
             LANGUAGE plproxy AS $$ CLUSTER 'c'; {body}; $$"
        );
        check(&proxy, "is a function of the proxy");
    }
}
