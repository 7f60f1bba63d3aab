//! `pgrig view`: all records below a folder, in a real browser.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::Desk;
use crate::interruption::signal;

/// A page that is open.
struct View {
    child: Child,
    url: String,
}

impl View {
    fn open(desk: &Desk, folder: &str) -> View {
        let mut child = desk.command(&["view", folder]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.next().expect("an address").unwrap();
        View { child, url }
    }

    fn address(&self) -> &str {
        self.url.trim_start_matches("http://").split('/').next().unwrap()
    }

    /// Status line and body of what a path below the token gets.
    fn get(&self, path: &str) -> (String, String) {
        let below = format!("{}{path}", self.url);
        let path = below.trim_start_matches("http://").trim_start_matches(self.address());
        self.get_at(path, self.address())
    }

    fn get_at(&self, path: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// The list, once every answer was read.
    fn list(&self) -> String {
        let mut list = String::new();
        testing::until("every answer is read", || {
            list = self.get("").1;
            list.contains("id=\"records\"") && !list.contains(">…<")
        });
        list
    }

    fn end(mut self) {
        signal(&self.child, Signal::INT);
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
    }
}

/// A test that fails leaves no server.
impl Drop for View {
    fn drop(&mut self) {
        // One that has ended is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A browser's view of an address, after its scripts have run: the page, and what they left on the console.
fn browse(desk: &Desk, url: &str, width: u32) -> (String, Vec<String>) {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args([
            "--no-first-run",
            "--disable-background-networking",
            "--enable-logging=stderr",
            "--v=0",
        ])
        .args(["--virtual-time-budget=4000", &format!("--window-size={width},1200")])
        .arg(format!("--user-data-dir={}", desk.path("browser").display()))
        .args(["--dump-dom", url])
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts (make test installs it)");
    let said = String::from_utf8_lossy(&output.stderr);
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    (String::from_utf8_lossy(&output.stdout).into_owned(), console.collect())
}

/// Copies a record, as one that began on another day.
fn copy_as(desk: &Desk, record: &Path, name: &str, day: u32) {
    let copied = Command::new("cp").arg("-r").arg(record).arg(desk.path(name)).status().unwrap();
    assert!(copied.success());
    let path = desk.path(name).join("record.json");
    let mut header: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    header["started_at"] = format!("2026-11-{day:02}T04:00:00Z").into();
    fs::write(path, header.to_string()).unwrap();
}

/// Two runs of a study, a comparison, one that was killed, one that cannot be read.
fn desk_with_records() -> Desk {
    let desk = Desk::new();
    desk.write_study("mine", "");
    desk.pgrig(&["run", "mine", "--out", "first"]).ended(0);
    crate::compare::write_work(&desk);
    let compare = ["--precision", "30%", "--max-time", "20s", "--out", "runs/compared"];
    desk.pgrig(&[&crate::compare::ITSELF[..], &compare].concat()).ended(0);
    fs::create_dir_all(desk.path("runs/of/mine")).unwrap();
    copy_as(&desk, &desk.path("first"), "runs/of/mine/one", 1);
    copy_as(&desk, &desk.path("first"), "runs/of/mine/two", 2);
    copy_as(&desk, &desk.path("first"), "runs/killed", 3);
    let killed = desk.path("runs/killed/record.json");
    let text = fs::read_to_string(&killed).unwrap();
    let mut header: Value = serde_json::from_str(&text).unwrap();
    header["state"] = serde_json::json!({ "is": "running" });
    fs::write(&killed, header.to_string()).unwrap();
    desk.write(
        "runs/odd/record.json",
        "{\"format\": 99, \"pgrig\": \"<script>alert(1)</script>\"}",
    );
    desk
}

#[test]
fn records_are_listed_opened_laid_side_by_side_and_drawn_over_time() {
    let desk = desk_with_records();
    let view = View::open(&desk, "runs");
    let list = view.list();
    for part in [
        "compared",
        "of/mine/one",
        "of/mine/two",
        "killed",
        "odd",
        "unreadable",
        "over time, 3 results",
    ] {
        assert!(list.contains(part), "no {part}: {list}");
    }
    assert!(!list.contains("<script>alert"), "texts of records are no markup");
    let number = |folder: &str| {
        let row = list
            .split("<tr ")
            .find(|row| row.contains(&format!("folder\">{folder}<")))
            .expect(folder);
        row.split('"').nth(1).unwrap().to_owned()
    };
    for width in [1280, 390] {
        let check = |path: &str, expected: &[&str]| {
            let (dom, console) = browse(&desk, &format!("{}{path}", view.url), width);
            for part in expected {
                assert!(dom.contains(part), "{path} at {width} has no {part}: {dom}");
            }
            assert_eq!(console, Vec::<String>::new(), "{path}");
        };
        check("", &["data-state=\"shown\"", "5 of 5", "aria-disabled=\"true\""]);
        check(&format!("record/{}/", number("of/mine/one")), &["id=\"claims\"", "data-charts="]);
        let beside = format!("beside/{}/{}/", number("of/mine/one"), number("of/mine/two"));
        check(
            &beside,
            &["Two records side by side", "Figures", "class=\"sort\"", "../../../record/"],
        );
        let history = format!("history/{}/", number("of/mine/two"));
        let (dom, _) = browse(&desk, &format!("{}{history}", view.url), width);
        let charts = dom.split("data-charts=\"").nth(1).unwrap().split('"').next().unwrap();
        let (drawn, planned) = charts.split_once('/').unwrap();
        assert!(drawn == planned && planned != "0", "{charts}");
    }
    refuses_strangers(&view);
    is_used(&desk, &view);
    view.end();
}

/// Who does not know the token sees nothing, and a number stands for a record alone.
fn refuses_strangers(view: &View) {
    let not_found = "HTTP/1.1 404 Not Found";
    assert_eq!(view.get_at("/", view.address()).0, not_found);
    let path = view.url.trim_start_matches("http://").trim_start_matches(view.address());
    assert!(view.get_at(path, "evil.example").0.starts_with("HTTP/1.1 421"));
    for path in [
        "record/99/",
        "record/../../../etc/passwd",
        "record/%2e%2e/",
        "beside/0/99/",
        "history/99/",
        "nothing",
    ] {
        assert_eq!(view.get(path).0, not_found, "{path}");
    }
}

/// A reader filters, sorts and chooses two; a new record comes by itself.
fn is_used(desk: &Desk, view: &View) {
    let probe = r#"<script>
        const wait = () => new Promise((done) => setTimeout(done, 300));
        const of = (id) => document.getElementById(id);
        const shown = () => [...document.querySelectorAll("\x23records tbody tr")].filter((row) => !row.hidden);
        const type = (id, value) => { of(id).value = value; of(id).dispatchEvent(new Event("input")); };
        const folders = () => shown().map((row) => row.querySelector(".folder").textContent).join();
        (async () => {
          const said = [];
          await wait();
          type("text", "MINE two"); said.push(folders());
          type("text", ""); type("state", "killed"); said.push(folders());
          type("state", "");
          const head = document.querySelectorAll("\x23records .sort")[0];
          head.click(); said.push(folders().split(",").filter((one) => one.startsWith("of")).join());
          head.click(); said.push(folders().split(",").filter((one) => one.startsWith("of")).join());
          for (const row of shown().filter((row) => row.textContent.includes("of/mine"))) row.querySelector("input").click();
          said.push(of("beside").textContent, String(of("beside").getAttribute("href") !== null));
          said.push(document.documentElement.scrollWidth <= document.documentElement.clientWidth ? "fits" : "too wide");
          document.documentElement.dataset.probe = said.join("; ");
        })();
        </script></body>"#;
    let page = view.get("").1.replace("</body>", probe);
    // The page stands alone here: what it asks of its server is not there.
    let file = desk.path("probe.html");
    fs::write(&file, page).unwrap();
    let expected = "of/mine/two; killed; of/mine/one,of/mine/two; of/mine/two,of/mine/one; \
                    Lay the two side by side; true; fits";
    for width in [1280, 390] {
        let (dom, _) = browse(desk, &format!("file://{}", file.display()), width);
        let tag = &dom[dom.find("<html").unwrap()..];
        let tag = &tag[..tag.find('>').unwrap()];
        assert!(tag.contains(&format!("data-probe=\"{expected}\"")), "{width}: {tag}");
    }
    let version = view.get("version").1;
    copy_as(desk, &desk.path("first"), "runs/new", 9);
    testing::until("the new record is there", || view.get("").1.contains(">new<"));
    assert_ne!(view.get("version").1, version);
}

/// A thousand records are listed before a reader has waited. The time is that of this machine: it is printed.
#[test]
fn a_thousand_records_are_listed_at_once() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    desk.pgrig(&["run", "mine", "--out", "first"]).ended(0);
    let script = "for n in $(seq 0 9); do mkdir -p runs/$n; for m in $(seq 0 99); do cp -rl first runs/$n/$m; done; done";
    let made = Command::new("sh").args(["-c", script]).current_dir(desk.path("")).status().unwrap();
    assert!(made.success());
    let began = Instant::now();
    let view = View::open(&desk, "runs");
    let list = view.get("").1;
    println!("1,000 records: {:.2} s", began.elapsed().as_secs_f64());
    assert_eq!(list.matches("<tr data-number").count(), 1000);
    assert!(began.elapsed() < Duration::from_secs(60));
    view.end();
}
