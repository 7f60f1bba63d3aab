//! The pages in a real browser: every chart draws, nothing is reported to the console.
//!
//! Needs `chromium` (a Debian package); fails where there is none.

mod example;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use report::{FigureSeries, ListedAnswer, ListedRecord, ListedState, SeriesPoint};

/// Browsers that take the same options, by the names they are installed under.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

#[test]
fn every_chart_of_a_report_draws() {
    // Throughput, latency, wait events, CPU of the processes and of the machine; percentiles.
    check(&example::report(|report| report.html()), "6/6");
}

#[test]
fn curves_and_a_long_trial_draw() {
    // Two curves; throughput and latency of two workloads, errors, wait events; percentiles.
    check(&example::sweep::report(|report| report.html()), "9/9");
}

#[test]
fn a_page_without_charts_is_quiet() {
    check(&example::nothing(|report| report.html()), "0/0");
}

#[test]
fn every_chart_of_a_single_load_draws() {
    // Throughput, latency; percentiles.
    check(&example::bench().html(), "4/4");
}

#[test]
fn every_figure_of_a_history_draws_with_a_line_for_each_machine() {
    let point = |day: u32, machine: &str, value: f64| SeriesPoint {
        time: format!("2026-11-{day:02}T04:00:00Z"),
        commit: format!("c{day}"),
        machine: machine.to_owned(),
        value,
        bounds: Some([value - 0.02, value + 0.02]),
        mark: None,
    };
    let series = |name: &str, more_is_better| FigureSeries {
        study: "compare".to_owned(),
        subject: String::new(),
        benchmark: "B ÷ A".to_owned(),
        name: name.to_owned(),
        unit: String::new(),
        more_is_better,
        points: (1..9)
            .map(|day| point(day, if day % 3 == 0 { "two" } else { "one" }, 1.0))
            .collect(),
    };
    check(&report::history(&[series("throughput", true), series("p99", false)]), "2/2");
}

#[test]
fn all_panels_of_a_trial_have_one_cursor_and_one_zoom() {
    let probe = r#"
        const over = document.querySelector("\x23timeline .u-over");
        const box = over.getBoundingClientRect();
        const at = (type, share, on = over) => on.dispatchEvent(new MouseEvent(type, {
          clientX: box.left + box.width * share, clientY: box.top + 20, bubbles: true, view: window,
          button: 0, buttons: type === "mouseup" ? 0 : 1, movementX: 9 }));
        const wait = () => new Promise((done) => setTimeout(done, 100));
        const panels = () => [...document.querySelectorAll("\x23timeline figure")];
        const times = () => new Set(panels().map((p) => p.querySelector(".at").textContent.trim()));
        const reset = document.querySelector("\x23timeline .reset");
        const said = [];
        const say = (what) => said.push(what);
        (async () => {
          at("mouseenter", 0.5); at("mousemove", 0.5); await wait();
          say(`cursor ${[...times()].join()}`);
          say(`values ${panels().every((p) => p.querySelector("output").textContent !== "")}`);
          at("mousedown", 0.4); at("mousemove", 0.6); await wait();
          at("mouseup", 0.6, document); await wait();
          say(`zoomed ${!reset.disabled}`);
          reset.click(); await wait();
          say(`whole ${reset.disabled}`);
          const box2 = document.querySelector("\x23timeline .canvas");
          box2.dispatchEvent(new KeyboardEvent("keydown", { key: "Home" })); await wait();
          say(`key ${[...times()].join()}`);
          box2.dispatchEvent(new KeyboardEvent("keydown", { key: "+" })); await wait();
          say(`zoomed ${!reset.disabled}`);
          document.querySelectorAll("button[data-trial]")[4].click(); await wait();
          say(`trial ${document.querySelector("select[name=round]").value}`);
          const legend = document.querySelector("\x23timeline .legend button");
          legend.click(); await wait();
          say(`hidden ${legend.getAttribute("aria-pressed") === "false"}`);
          document.documentElement.dataset.probe = said.join("; ");
        })();
    "#;
    let html = example::report(|report| report.html());
    let html = html.replace("</body>", &format!("<script>{probe}</script></body>"));
    let folder = tempfile::tempdir().unwrap();
    let (dom, console) = open(&write(&html, folder.path()), folder.path());
    let expected = "cursor at 12.5 s; values true; zoomed true; whole true; key at 0.5 s; \
                    zoomed true; trial 5; hidden true";
    assert!(dom.contains(&format!("data-probe=\"{expected}\"")), "{}", status(&dom));
    assert_eq!(console, Vec::<String>::new());
}

/// Everybody can read the pages: on a phone of 400 points and on a desk, light, dark and printed. axe-core finds
/// what a screen reader or a weak eye could not use; `scripts/setup test` fetches it.
#[test]
fn the_pages_have_no_serious_finding_of_axe() {
    let axe = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/axe/axe.min.js");
    let Ok(axe) = std::fs::read_to_string(axe) else {
        return testing::skip::because("there is no axe-core");
    };
    let report = example::report(|report| report.html());
    let sweep = example::sweep::report(|report| report.html());
    let bench = example::bench().html();
    let shelf = report::shelf("runs", &shelved(), "Not all is shown.");
    // Each page runs axe in a frame of its own, and tells the page around it.
    let probe = r#"
        const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
        const is_dark = matchMedia("(prefers-color-scheme: dark)").matches;
        axe.run(document, { resultTypes: ["violations"] }).then((result) => {
          const serious = result.violations.filter((one) => ["serious", "critical"].includes(one.impact));
          const said = serious.map((one) => `${one.id} at ${one.nodes[0].target.join(" ")}`);
          // On paper the browser makes a page as small as its widest table.
          if (wide && !name.endsWith("printed")) said.push("wider than the window");
          parent.postMessage(`${is_dark ? "dark" : "light"} ${name}: ${said.join(", ") || "nothing"}`, "*");
        });
    "#;
    let folder = tempfile::tempdir().unwrap();
    let axe = axe.replace("</script", "<\\/script");
    let scripts = format!("<script>{axe}</script><script>{probe}</script></body>");
    let printed = |html: &str| html.replace("@media print", "@media all");
    let pages = [
        ("light", "report narrow", 400, report.clone()),
        ("light", "sweep wide", 1280, sweep.clone()),
        ("light", "bench printed", 1000, printed(&bench)),
        ("light", "shelf narrow", 390, shelf.clone()),
        ("dark", "shelf wide", 1280, shelf),
        ("dark", "report wide", 1280, report),
        ("dark", "sweep narrow", 400, sweep),
        ("dark", "bench narrow", 400, bench),
    ];
    for (scheme, number) in [("light", 1), ("dark", 0)] {
        let (mut frames, mut expected) = (String::new(), Vec::new());
        for (_, called, width, html) in pages.iter().filter(|page| page.0 == scheme) {
            let html = html.replace("</body>", &scripts);
            std::fs::write(folder.path().join(format!("{called}.html")), html).unwrap();
            frames.push_str(&format!(
                "<iframe name=\"{called}\" src=\"{called}.html\" width={width} height=4000></iframe>"
            ));
            expected.push(format!("{scheme} {called}: nothing"));
        }
        expected.sort();
        let page = write(&format!("{LISTEN}{frames}"), folder.path());
        let scheme_option = format!("--blink-settings=preferredColorScheme={number}");
        let options = ["--virtual-time-budget=60000", &scheme_option];
        let (dom, _) = open_with(&page, folder.path(), &options);
        let said = status(&dom);
        assert!(said.contains(&format!("data-probe=\"{}\"", expected.join("; "))), "{said}");
    }
}

/// A record in each state.
fn shelved() -> Vec<ListedRecord> {
    let states = [
        ListedState::Running { ended: 3, planned: 12 },
        ListedState::Done,
        ListedState::Interrupted,
        ListedState::Killed,
        ListedState::Broken,
        ListedState::Unreadable,
    ];
    let record = |(state, number): (ListedState, usize)| ListedRecord {
        number,
        started_at: format!("2026-11-0{number}T04:00:00Z"),
        name: "compare --file=orders.sql --client=16".to_owned(),
        profile: "quick".to_owned(),
        folder: format!("of/november/2026-11-0{number}-compare-1"),
        state,
        // The last one is still being read.
        read: (number < 6).then(|| ListedAnswer {
            sentence: "B with index.sql is faster than A: 624× [604, 644].".to_owned(),
            claims: [3, 1, 2],
        }),
        alike: number,
    };
    states.into_iter().zip(1..).map(record).collect()
}

/// A page around others, which writes down what they tell.
const LISTEN: &str = "<script>const said = []; addEventListener('message', (event) => {
    said.push(event.data); document.documentElement.dataset.probe = said.sort().join('; '); });
    </script>";

fn check(html: &str, charts: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (dom, console) = open(&write(html, folder.path()), folder.path());
    assert!(dom.contains(&format!("data-charts=\"{charts}\"")), "{}", status(&dom));
    assert!(!dom.contains("data-errors="), "{}", status(&dom));
    assert_eq!(console, Vec::<String>::new());
}

fn write(html: &str, folder: &Path) -> PathBuf {
    let page = folder.join("report.html");
    std::fs::write(&page, html).unwrap();
    page
}

/// The page after its scripts have run, and what they left on the console.
fn open(page: &Path, folder: &Path) -> (String, Vec<String>) {
    open_with(page, folder, &["--virtual-time-budget=5000"])
}

fn open_with(page: &Path, folder: &Path, options: &[&str]) -> (String, Vec<String>) {
    let output = Command::new(browser())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--disable-dev-shm-usage"])
        .args(options)
        .args(["--window-size=1280,4000", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let messages = String::from_utf8_lossy(&output.stderr);
    let console = messages.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    (String::from_utf8_lossy(&output.stdout).into_owned(), console.collect())
}

fn browser() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = BROWSERS.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    found
        .into_iter()
        .find(|candidate| candidate.is_file())
        .expect("no browser: install the package chromium (make setup does)")
}

/// The first tag of the document, which carries what the page says of itself.
fn status(dom: &str) -> &str {
    let start = dom.find("<html").unwrap_or(0);
    let end = dom[start..].find('>').map_or(dom.len(), |end| start + end);
    &dom[start..end]
}
