//! A real Patroni, beside which a guard refuses to run: the program of this machine's distribution, unpacked into the
//! lab, with one etcd.

use std::net::TcpListener;
use std::path::Path;

use os::command::ProcessCommand;

use crate::rig::{Guard, PATIENCE, Rig};

const PACKAGES: [&str; 14] = [
    "etcd-server",
    "patroni",
    "python3-etcd",
    "python3-click",
    "python3-dateutil",
    "python3-wcwidth",
    "python3-prettytable",
    "python3-psutil",
    "python3-urllib3",
    "python3-psycopg2",
    "python3-dnspython",
    "python3-cdiff",
    "python3-yaml",
    "python3-six",
];

#[test]
fn a_guard_refuses_to_run_beside_a_patroni_and_says_why() {
    let packages = PACKAGES.map(str::to_owned);
    if !Path::new("/usr/bin/python3").exists() {
        return testing::skip::because("there is no python3");
    }
    if let Err(error) = lab::machine::packages(&packages) {
        return testing::skip::because(format!("Patroni's packages are not here: {error}"));
    }
    let rig = Rig::new("", 0);
    let (root, _) = rig.lab.unpack(&packages).unwrap();
    let place = rig.lab.directory().join("patroni");
    std::fs::create_dir(&place).unwrap();
    let user = rig.lab.user();
    std::os::unix::fs::chown(&place, Some(user.uid), Some(user.gid)).unwrap();
    let [client, peer, rest, postgres] = free_ports();

    let program = |path: &str| {
        let libraries = root.join("usr/lib/python3/dist-packages");
        ProcessCommand::new(path)
            .directory(&place)
            .user(user)
            .env("PATH", "/usr/bin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", &place)
            .env("PYTHONPATH", libraries)
    };
    let at = |port: u16| format!("http://127.0.0.1:{port}");
    let etcd = program(&root.join("usr/bin/etcd").display().to_string())
        .args(["--name", "one", "--enable-v2", "--data-dir"])
        .arg(place.join("etcd"))
        .args(["--listen-peer-urls", &at(peer), "--initial-advertise-peer-urls", &at(peer)])
        .args(["--listen-client-urls", &at(client), "--advertise-client-urls", &at(client)])
        .args(["--initial-cluster", &format!("one={}", at(peer))]);
    let mut etcd = rig.lab.process("etcd", etcd).unwrap();
    etcd.start().unwrap();
    let bin = rig.lab.installation().program("postgres").parent().unwrap().to_owned();
    let configuration = format!(
        "{{scope: pgrig, name: one, etcd: {{hosts: '127.0.0.1:{client}'}},
          restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest}'}},
          bootstrap: {{
            dcs: {{ttl: 20, loop_wait: 1, retry_timeout: 3, synchronous_mode: true,
                  postgresql: {{parameters: {{shared_buffers: 16MB}}}}}},
            initdb: [{{encoding: UTF8}}],
            pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust']}},
          postgresql: {{
            listen: '127.0.0.1:{postgres}', connect_address: '127.0.0.1:{postgres}',
            data_dir: '{place}/data', bin_dir: '{bin}', pgpass: '{place}/pgpass',
            authentication: {{replication: {{username: postgres, password: secret}},
                             superuser: {{username: postgres, password: secret}}}},
            parameters: {{unix_socket_directories: '{place}'}}}}}}",
        place = place.display(),
        bin = bin.display(),
    );
    let patroni = program("/usr/bin/python3")
        .arg(root.join("usr/bin/patroni"))
        .env("PATRONI_CONFIGURATION", configuration);
    let mut patroni = rig.lab.process("patroni", patroni).unwrap();
    patroni.start().unwrap();

    let conninfo = format!("host=127.0.0.1 port={postgres} user=postgres dbname=postgres");
    // Each trace by which the guard knows a Patroni is one that this Patroni leaves.
    let traces = "SELECT NOT pg_is_in_recovery()
        AND (pg_stat_file('patroni.dynamic.json', true)).size IS NOT NULL
        AND pg_read_file(current_setting('config_file')) ILIKE '%overwritten by Patroni%'
        AND EXISTS (SELECT FROM pg_stat_activity WHERE application_name ILIKE 'patroni%')
        AND EXISTS (SELECT FROM pg_settings WHERE sourcefile LIKE '%/postgresql.base.conf')";
    let is_managed = || -> Result<bool, postgres::Error> {
        let mut client = postgres::Client::connect(&conninfo, postgres::NoTls)?;
        client.query_one(traces, &[]).map(|row| row.get(0))
    };
    let managed = lab::wait_until(PATIENCE, || Ok::<_, ()>(is_managed().ok().filter(|is| *is)));
    assert_eq!(managed, Ok(Some(true)), "{:?}:\n{}", is_managed(), patroni.log_tail());

    let setting = || {
        let mut client = postgres::Client::connect(&conninfo, postgres::NoTls).unwrap();
        let row = client.query_one("SHOW synchronous_standby_names", &[]).unwrap();
        row.get::<_, String>(0)
    };
    let before = setting();
    for more in [&[][..], &["--dry-run"]] {
        let (code, said) = Guard::start(rig.command_to(&conninfo, more)).wait();
        assert_eq!(code, Some(1), "{said}");
        let expected = "Patroni is in charge of this server: settings come from ";
        assert!(said.contains(expected) && said.contains("postgresql.base.conf"), "{said}");
        assert!(said.contains("leave synchronous replication to it"), "{said}");
    }
    assert_eq!(setting(), before);
}

/// Ports that nobody has at this moment.
fn free_ports() -> [u16; 4] {
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
