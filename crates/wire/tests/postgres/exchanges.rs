//! Every kind of exchange.

use std::time::Duration;

use crate::server::{Client, HBA, Server, Stream, admin};
use crate::trace::dump;
use wire::backend::{BackendMessage, TransactionStatus};
use wire::{MessageFrame, SqlState, frame, frontend};

#[test]
fn exchanges_read_as_libpq_traces_them() {
    let server = Server::start(HBA, &[]);
    let mut client = admin(&server);
    let mut check = |write: &dyn Fn(&mut Vec<u8>), expected: &str| {
        let mut output = Vec::new();
        write(&mut output);
        let answer = client.exchange(&output);
        let expected = expected.replace("\n        ", "\n").trim_start().to_owned();
        assert_eq!(dump(&answer), expected);
    };
    check(
        &|out| {
            frontend::query(out, b"CREATE TEMP TABLE t (a int, b text); SELECT 1 AS x; ").unwrap()
        },
        "
        B\t17\tCommandComplete\t \"CREATE TABLE\"
        B\t26\tRowDescription\t 1 \"x\" NNNN 0 NNNN 4 -1 0
        B\t11\tDataRow\t 1 1 '1'
        B\t13\tCommandComplete\t \"SELECT 1\"
        B\t5\tReadyForQuery\t I
",
    );
    check(
        &|out| {
            frontend::parse(out, b"P_0", b"INSERT INTO t VALUES ($1, $2) RETURNING b", &[])
                .unwrap();
            frontend::describe(out, frontend::DescribeTarget::Statement, b"P_0").unwrap();
            frontend::bind(out, b"", b"P_0", [Some(&b"1"[..]), None]).unwrap();
            frontend::describe(out, frontend::DescribeTarget::Portal, b"").unwrap();
            frontend::execute(out, b"", 0).unwrap();
            frontend::sync(out);
        },
        "
        B\t4\tParseComplete
        B\t14\tParameterDescription\t 2 NNNN NNNN
        B\t26\tRowDescription\t 1 \"b\" NNNN 2 NNNN -1 -1 0
        B\t4\tBindComplete
        B\t26\tRowDescription\t 1 \"b\" NNNN 2 NNNN -1 -1 0
        B\t10\tDataRow\t 1 -1
        B\t15\tCommandComplete\t \"INSERT 0 1\"
        B\t5\tReadyForQuery\t I
",
    );
    check(
        &|out| {
            frontend::parse(out, b"", b"SELECT generate_series(1, 3)", &[]).unwrap();
            frontend::bind(out, b"p", b"", []).unwrap();
            frontend::execute(out, b"p", 2).unwrap();
            out.extend_from_slice(b"C\0\0\0\x07Pp\0");
            // Without it, the query that follows is inside a transaction from version 18 on.
            frontend::sync(out);
        },
        "
        B\t4\tParseComplete
        B\t4\tBindComplete
        B\t11\tDataRow\t 1 1 '1'
        B\t11\tDataRow\t 1 1 '2'
        B\t4\tPortalSuspended
        B\t4\tCloseComplete
        B\t5\tReadyForQuery\t I
",
    );
    check(
        &|out| frontend::query(out, b"").unwrap(),
        "
        B\t4\tEmptyQueryResponse
        B\t5\tReadyForQuery\t I
",
    );
    check(
        &|out| {
            frontend::query(out, b"COPY t FROM STDIN").unwrap();
            out.extend_from_slice(b"d\0\0\0\x087\tx\nc\0\0\0\x04");
        },
        "
        B\t11\tCopyInResponse\t \\x00 2 0 0
        B\t11\tCommandComplete\t \"COPY 1\"
        B\t5\tReadyForQuery\t I
",
    );
    check(
        &|out| frontend::query(out, b"COPY t TO STDOUT").unwrap(),
        "
        B\t11\tCopyOutResponse\t \\x00 2 0 0
        B\t9\tCopyData\t '1\\x09\\N\\x0a'
        B\t8\tCopyData\t '7\\x09x\\x0a'
        B\t4\tCopyDone
        B\t11\tCommandComplete\t \"COPY 2\"
        B\t5\tReadyForQuery\t I
",
    );
}

#[test]
fn errors_statuses_and_cancels() {
    let server = Server::start(HBA, &[]);
    let mut client = admin(&server);
    let check = |client: &mut Client, sql: &str, sql_state: SqlState, status| {
        let answer = client.query(sql);
        assert_eq!(errors(&answer), [sql_state], "{sql}");
        assert_eq!(last_status(&answer), status, "{sql}");
    };
    use TransactionStatus::{Failed, Idle, InTransaction};
    check(&mut client, "SELECT 1/0", SqlState::from_bytes(b"22012"), Idle);
    assert_eq!(last_status(&client.query("BEGIN")), InTransaction);
    check(&mut client, "nonsense", SqlState::from_bytes(b"42601"), Failed);
    check(&mut client, "SELECT 1", SqlState::IN_FAILED_SQL_TRANSACTION, Failed);
    assert_eq!(last_status(&client.query("ROLLBACK")), Idle);

    let answer = client.query("DO $$ BEGIN RAISE WARNING 'careful' USING HINT = 'look'; END $$");
    let BackendMessage::NoticeResponse(notice) = BackendMessage::parse(frames(&answer)[0]).unwrap()
    else {
        panic!("a notice comes first");
    };
    assert_eq!(notice.to_owned().to_string().lines().count(), 3, "context, message and hint");
    assert_eq!((&*notice.severity(), &*notice.message()), ("WARNING", "careful"));

    // A row far larger than one read.
    let answer = client.query("SELECT repeat('x', 3000000)");
    let BackendMessage::DataRow(row) = BackendMessage::parse(frames(&answer)[1]).unwrap() else {
        panic!()
    };
    assert_eq!(row.columns().next().unwrap().unwrap().len(), 3_000_000);

    let key = client.facts.backend_key.clone().unwrap();
    let canceller = std::thread::spawn({
        let mut stream = Stream::tcp(&server);
        move || {
            std::thread::sleep(Duration::from_millis(300));
            let mut out = Vec::new();
            frontend::cancel_request(&mut out, key.pid, key.key.as_bytes());
            std::io::Write::write_all(&mut stream, &out).unwrap();
            // The server hangs up once it has done so.
            assert_eq!(std::io::Read::read(&mut stream, &mut [0; 8]).unwrap_or(0), 0);
        }
    });
    check(&mut client, "SELECT pg_sleep(30)", SqlState::QUERY_CANCELED, Idle);
    canceller.join().unwrap();
}

fn frames(bytes: &[u8]) -> Vec<MessageFrame<'_>> {
    let mut rest = bytes;
    let mut frames = Vec::new();
    while let Some(frame) = frame::next(rest).unwrap() {
        rest = &rest[frame.total_bytes()..];
        frames.push(frame);
    }
    frames
}

fn errors(bytes: &[u8]) -> Vec<SqlState> {
    let states = frames(bytes).into_iter().filter_map(|frame| match BackendMessage::parse(frame) {
        Ok(BackendMessage::ErrorResponse(error)) => Some(error.sql_state()),
        _ => None,
    });
    states.collect()
}

fn last_status(bytes: &[u8]) -> TransactionStatus {
    let frames = frames(bytes);
    TransactionStatus::from_indicator(frames.last().unwrap().body[0]).unwrap()
}
