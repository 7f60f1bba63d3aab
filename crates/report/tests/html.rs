//! The page as a whole: one file, well formed, safe whatever a study contains.

mod example;

use report::{SearchAxis, SearchEnd};
use sha2::{Digest, Sha256};

#[test]
fn a_report_answers_in_the_order_in_which_people_ask() {
    let html = example::report(|report| report.html());
    let mut at = 0;
    for words in [
        "Does a function on the server beat",
        "The function is faster than the plain script: 1.30× [",
        "What decides",
        "4 hold",
        ">1</span> Claims",
        "1.144",
        ">2</span> Comparisons",
        "57,296",
        ">3</span> Time",
        "data-trial=\"0\"",
        "throughput was not steady",
        ">5</span> Proof",
    ] {
        // A void trial's reason stands in the section on trust, after everything else.
        if words.starts_with("throughput was") {
            assert!(html.contains(words));
            continue;
        }
        let found = html[at..].find(words);
        at += found.unwrap_or_else(|| panic!("{words} is missing after byte {at}"));
    }
    assert!(html.len() < 400_000, "{} bytes", html.len());
}

#[test]
fn each_difference_has_its_reasons_beside_it() {
    let html = example::report(|report| report.html());
    let why = html.find("<strong>Why</strong>").expect("a table of reasons");
    let why = &html[why..];
    let end = why.find("</table>").expect("its end");
    for words in [
        "19 % Lock:transactionid",
        "46 % running or runnable",
        "UPDATE pgbench_accounts 100 %",
        "100 %",
    ] {
        assert!(why[..end].contains(words), "{words} is missing in {}", &why[..end]);
    }
}

#[test]
fn evidence_stands_before_what_is_to_know_of_it() {
    let html = example::report(|report| report.html());
    let place = |words: &str| html.find(words).unwrap_or_else(|| panic!("{words} is missing"));
    assert!(place("<table class=\"claims\">") < place("What to know of them"));
    assert!(html.contains("in all 18 trials") && !html.contains("18 of 18<"));
    assert!(html.contains("<details><summary>Every published figure"), "folded");
    assert!(!html.contains("as pgbench counts</strong>"), "the same throughput drawn twice");
}

#[test]
fn a_run_that_was_stopped_at_once_has_a_page_too() {
    let html = example::nothing(|report| report.html());
    for words in ["4 undecided", "incomplete", "No trial has a course", "interrupted"] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn one_round_is_neither_an_estimate_nor_an_interval() {
    let html = example::one_round(|report| report.html());
    assert!(html.contains("<li>One round was measured; a verdict needs six.</li>"));
    let rows = html.split("<td class=\"figure\"><svg class=\"plot dots").skip(1);
    let rows: Vec<&str> = rows.map(|rest| &rest[..rest.find("</svg>").unwrap()]).collect();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.contains("class=\"round\""), "{row}");
        assert!(!row.contains("class=\"point\"") && !row.contains("class=\"range\""), "{row}");
    }
    // A label stands below the line that it names.
    let axes = html.split("<svg class=\"plot axis").skip(1);
    for axis in axes.map(|rest| &rest[..rest.find("</svg>").unwrap()]) {
        assert!(axis.contains("text-anchor=\"middle\""), "{axis}");
        assert!(!axis.contains("\"start\"") && !axis.contains("\"end\""), "{axis}");
    }
}

#[test]
fn the_noise_of_each_figure_has_its_name() {
    let html = example::report(|report| report.html());
    let table = &html[html.find("<strong>What this machine cannot resolve").expect("a table")..];
    let table = &table[..table.find("</table>").unwrap()];
    assert!(table.contains("<th scope=\"row\">Transactions a second</th>"), "{table}");
}

#[test]
fn what_became_of_acknowledged_writes_is_shown_with_its_bound_and_examples() {
    let html = example::sweep::report(|report| report.html());
    let ledger = &html[html.find("every write that a client intended").expect("a ledger")..];
    let mut at = 0;
    for words in [
        // Of the plain variant, then of the governed one.
        "3,703,701",
        "61.5 ms",
        "in 2 of 3",
        "3,703,701",
        "in 3 of 3, too few to bound a rate",
        "What does not fit the ledger",
        "lost: client 3 seq 17 at 901.2 s",
    ] {
        let found = ledger[at..].find(words);
        at += found.unwrap_or_else(|| panic!("{words} is missing: {}", &ledger[..3_000]));
    }
}

#[test]
fn workloads_have_lanes_of_their_own_where_something_was_done_to_the_servers() {
    let panels = |html: &str| {
        let titles = html.split("\"title\":\"").skip(1);
        let titles = titles.map(|rest| rest[..rest.find('"').unwrap()].to_owned());
        titles.collect::<Vec<_>>().join("; ")
    };
    let disturbed = panels(&example::sweep::report(|report| report.html()));
    let lanes = "Throughput, on; Latency, on; Throughput, local; Latency, local; Errors";
    assert!(disturbed.contains(lanes), "{disturbed}");
    let quiet = panels(&example::report(|report| report.html()));
    assert!(quiet.contains("Throughput; Latency; "), "{quiet}");
}

#[test]
fn a_page_refers_to_nothing_outside_itself() {
    for html in [example::report(|report| report.html()), example::bench().html()] {
        assert!(html.contains("default-src 'none'"));
        for reference in [" src=", "@import", "url(", "href=\"http", "fetch(", "XMLHttpRequest"] {
            assert!(!html.contains(reference), "{reference}");
        }
    }
}

#[test]
fn elements_are_closed_where_they_should_be() {
    for html in [example::report(|report| report.html()), example::bench().html()] {
        let body = &html[html.find("<body>").unwrap()..html.find("<script").unwrap()];
        assert_eq!(unbalanced(body), None);
    }
}

#[test]
fn what_a_study_says_is_text() {
    let html = example::bench().html();
    assert!(html.contains("pgrig bench -f read-write.sql -c 8 -T 25 &#60;bank&#62;"), "escaped");
    let mut bench = example::bench();
    bench.what = "</script><script>alert(1)</script>".to_owned();
    bench.workloads[0].name = "</script><script>alert(2)</script>".to_owned();
    bench.marks[0].text = "<img src=x onerror=alert(3)>".to_owned();
    let html = bench.html();
    // The page has two script elements of its own: the figures and the code.
    assert_eq!(html.matches("<script").count(), 2);
    assert_eq!(html.matches("</script").count(), 2);
    assert!(!html.contains("<img"));
}

/// The headline of a search is its answer, and the page says of which window its figures are.
#[test]
fn a_search_says_what_it_found() {
    let mut bench = example::bench();
    let html = bench.html();
    assert!(
        html.contains("<h1>read-write.sql: 2,000 transactions a second keep p99 &#60; 5ms</h1>")
    );
    assert!(html.contains("those of the window with 2,000 transactions a second"));
    assert!(html.contains(">does not hold</td>"));
    assert!(html.contains("The answer is an estimate of the load at which half of the windows"));
    bench.search.as_mut().unwrap().axis = SearchAxis::Clients;
    assert!(bench.html().contains("those of the window with 2,000 clients"));
    for (end, says) in [
        (SearchEnd::Nowhere, "no load is known to keep p99 &#60; 5ms"),
        (SearchEnd::Everywhere, "every load that can be sent keeps p99 &#60; 5ms"),
        (
            SearchEnd::Interrupted,
            "search interrupted; the highest load at which a window kept p99 &#60; 5ms is 2,000 clients",
        ),
    ] {
        bench.search.as_mut().unwrap().end = end;
        let html = bench.html();
        assert!(html.contains(&format!("<h1>read-write.sql: {says}</h1>")), "{says}");
        assert!(!html.contains("The answer is an estimate"), "{says}");
    }
    let search = bench.search.as_mut().unwrap();
    (search.axis, search.end) = (SearchAxis::PoolSize, SearchEnd::Swept { best: Some(2_000.0) });
    let html = bench.html();
    assert!(html.contains("those of the window with a pool of 2000"));
    assert!(html.contains("smallest that is enough") && html.contains("p99, median"));
    // Sections are numbered without it, too.
    bench.search = None;
    assert!(bench.html().contains(r#"<span class="number">1</span> Time"#));
}

/// What is not drawn has no place in the legend; without a window there is no chart.
#[test]
fn an_interrupted_search_shows_what_it_has() {
    let legend = |windows: usize| {
        let mut bench = example::bench();
        let search = bench.search.as_mut().unwrap();
        search.end = SearchEnd::Interrupted;
        search.windows.truncate(windows);
        search.fitted.truncate(windows);
        let html = bench.html();
        assert!(html.contains("those of the window that was interrupted, with 2,000"), "{windows}");
        assert_eq!(html.contains("Every window, in order"), windows > 0);
        assert_eq!(html.contains("id=\"curve-0\""), windows > 0);
        let data = &html[html.find("\"curves\":").expect("curves")..];
        let labels = data[..data.find("</script>").unwrap()].split("\"label\":\"").skip(1);
        let labels = labels.map(|rest| rest[..rest.find('"').unwrap()].to_owned());
        labels.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(legend(6), "p99, fitted; p99, the goal holds; p99, it does not hold; limit 5 ms");
    assert_eq!(legend(4), "p99, fitted; p99, the goal holds; limit 5 ms");
    assert_eq!(legend(1), "p99, the goal holds");
    assert_eq!(legend(0), "");
}

#[test]
fn a_load_of_less_than_two_steps_has_no_course() {
    let mut bench = example::bench();
    bench.search = None;
    bench.intervals.truncate(1);
    let html = bench.html();
    assert!(html.contains("<p>The load was too short to draw its course.</p>"));
    assert!(!html.contains("<div id=\"timeline\">"));
}

/// A count belongs to its second, and to none beside it.
#[test]
fn errors_are_bars() {
    let html = example::sweep::report(|report| report.html());
    assert!(html.contains(r#""title":"Errors","unit":"errors/s","style":"bars""#));
}

/// pgbench's kinds of failures; one that did not occur has no tile.
#[test]
fn failures_of_a_load_are_shown_by_kind() {
    let tiles = |serialization, deadlock, other| {
        let mut bench = example::bench();
        let counts = &mut bench.workloads[0].counts;
        counts.serialization_failures = serialization;
        counts.deadlock_failures = deadlock;
        counts.other_failures = other;
        let html = bench.html();
        let tiles =
            html.split("<div><dt>").skip(1).map(|rest| &rest[..rest.find("</dd>").unwrap()]);
        let failures = tiles.filter(|tile| tile.contains("fail"));
        failures.map(|tile| tile.replace("</dt><dd>", " ")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(tiles(0, 0, 0), "failed 0");
    let all = "failed 1,234, serialization failures 1,200, deadlock failures 30, other failures 4";
    assert_eq!(tiles(1_200, 30, 4), all);
    assert_eq!(tiles(0, 0, 7), "failed 7, other failures 7");
}

#[test]
fn the_vendored_library_is_the_one_that_was_published() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("vendor/uplot");
    let sums = std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 3);
    for line in sums.lines() {
        let (expected, name) = line.split_once("  ").unwrap();
        let digest = Sha256::digest(std::fs::read(folder.join(name)).unwrap());
        let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, expected, "{name}");
    }
    let version = std::fs::read_to_string(folder.join("VERSION")).unwrap();
    let script = std::fs::read_to_string(folder.join("uPlot.iife.min.js")).unwrap();
    assert!(script.contains(&format!("(v{})", version.trim())));
}

/// The first tag that closes nothing, or is never closed.
fn unbalanced(html: &str) -> Option<String> {
    const VOID: [&str; 6] = ["meta", "link", "br", "hr", "img", "input"];
    let mut open: Vec<&str> = Vec::new();
    for tag in html.split('<').skip(1) {
        let (tag, _) = tag.split_once('>')?;
        if tag.ends_with('/') || tag.starts_with('!') {
            continue;
        }
        let name = tag.split_whitespace().next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) if open.pop() != Some(name) => return Some(format!("</{name}>")),
            Some(_) => {}
            None if VOID.contains(&name) => {}
            None => open.push(name),
        }
    }
    // The body itself is closed after the scripts.
    open.get(1).map(|name| format!("<{name}>"))
}
