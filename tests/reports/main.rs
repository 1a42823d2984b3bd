//! Everything that renders a run: well-formed, escaped, the same bytes twice, and nothing lost on the way.

mod browser;
mod runs;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use drivethru::bench::import::{self, ImportError};
use drivethru::bench::run::Run;
use drivethru::bench::series::{Op, Sample, Series};
use drivethru::bench::verdict::Cause;
use drivethru::report::Style;
use drivethru::report::bench::chart::Plot;
use drivethru::report::bench::compare::Comparison;
use drivethru::report::bench::{self, ReadError, csv, fio, html, markdown, text, verdict_text, words};
use quick_xml::events::Event;

const PLAIN: Style = Style { color: false };

/// Every textual form of a run, by name.
fn forms(run: &Run) -> Vec<(&'static str, String)> {
    let series = Series {
        samples: run.samples.clone(),
        context: run.context.clone(),
    };
    let comparison = Comparison::new(run, run);
    vec![
        ("html", html::run(run)),
        ("svg", bench::svg(run)),
        ("markdown", markdown::run(run, Some("chart.svg"))),
        ("text", text::run(run, PLAIN)),
        ("csv", csv::write(&run.samples)),
        ("fio", fio::bw_log(&run.samples, run.engine.block_bytes)),
        ("json", bench::json(run)),
        ("verdict", verdict_text(&run.verdict)),
        (
            "series text",
            text::series(&run.device.name, &series, &run.verdict, PLAIN),
        ),
        (
            "series svg",
            Plot::of_series(&run.device.name, &series, &run.verdict).svg(),
        ),
        ("compare html", html::compare(&comparison)),
        ("compare svg", Plot::of_two(run, run).svg()),
        ("compare markdown", markdown::compare(&comparison)),
        ("compare text", comparison.text()),
    ]
}

/// Reads XML to its end: everything opened is closed, attributes are quoted, entities known. Returns the texts.
fn well_formed(what: &str, document: &str) -> String {
    let mut reader = quick_xml::Reader::from_str(document);
    reader.config_mut().check_end_names = true;
    reader.config_mut().allow_unmatched_ends = false;
    let mut depth = 0_i32;
    let mut texts = String::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                depth += 1;
                for attribute in start.attributes() {
                    attribute.unwrap_or_else(|e| panic!("{what}: {e}"));
                }
            }
            Ok(Event::Empty(start)) => {
                for attribute in start.attributes() {
                    attribute.unwrap_or_else(|e| panic!("{what}: {e}"));
                }
            }
            Ok(Event::End(_)) => depth -= 1,
            Ok(Event::Text(t)) => texts.push_str(t.as_ref()),
            Ok(Event::GeneralRef(r)) => texts.push_str(match r.as_ref() {
                "amp" => "&",
                "lt" => "<",
                "gt" => ">",
                "quot" => "\"",
                "#39" => "'",
                other => panic!("{what}: &{other};"),
            }),
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(e) => panic!("{what}: {e} at {}", reader.buffer_position()),
        }
    }
    assert_eq!(depth, 0, "{what}: everything is closed");
    texts
}

/// A page without its scripts and style sheets, which are no XML.
fn markup(page: &str) -> String {
    let mut out = page.replacen("<!DOCTYPE html>", "", 1);
    for element in ["script", "style"] {
        let (open, close) = (format!("<{element}"), format!("</{element}>"));
        while let Some(start) = out.find(&open) {
            let end = out[start..].find(&close).expect("a closed element") + start + close.len();
            out.replace_range(start..end, "");
        }
    }
    out
}

#[test]
fn pages_and_pictures_are_well_formed() {
    let mut runs: Vec<(String, Run)> = runs::all().into_iter().map(|(n, r)| (n.to_owned(), r)).collect();
    runs.extend(runs::traces());
    for (name, run) in runs {
        for (form, document) in forms(&run) {
            let what = format!("{name}, {form}");
            if form.ends_with("html") {
                well_formed(&what, &markup(&document));
            } else if form.ends_with("svg") {
                well_formed(&what, &document);
                assert!(!document.contains("NaN") && !document.contains("inf\""), "{what}");
            }
        }
    }
}

#[test]
fn hostile_strings_stay_strings_in_every_form() {
    let run = runs::hostile();
    for (form, document) in forms(&run) {
        let control = document
            .chars()
            .find(|c| (c.is_control() && *c != '\n') || "\u{202e}\u{200f}\u{2028}\u{fffe}".contains(*c));
        let lenient = matches!(form, "csv" | "fio");
        assert!(
            lenient || document.contains("u{1b}") || document.contains("u001b"),
            "{form}"
        );
        assert_eq!(
            control.filter(|c| *c != '\u{fffe}' || !form.contains("text")),
            None,
            "{form}"
        );
        if !form.contains("text") && form != "verdict" {
            assert!(!document.contains("<script>alert"), "{form}");
            assert!(!document.contains("</script>\\"), "{form}");
        }
        if form.ends_with("html") {
            assert_eq!(
                document.matches("<script").count(),
                document.matches("</script>").count(),
                "{form}"
            );
        }
    }
    let png = bench::png(&run).expect("a picture");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    for (name, run) in runs::all() {
        let again = bench::read(&bench::json(&run)).expect("our own document");
        assert_eq!(again, run, "{name}");
        assert_eq!(forms(&again), forms(&run), "{name}");
        if matches!(name, "rich" | "odd values") {
            let picture = |run| bench::png(run).expect("a picture");
            assert_eq!(picture(&again), picture(&run), "{name}");
        }
    }
}

#[test]
fn every_event_is_told() {
    for (name, run) in [("rich", runs::rich()), ("crowded", runs::crowded())] {
        for (form, document) in forms(&run) {
            let told = match form {
                "html" => well_formed(form, &markup(&document)),
                "svg" | "series svg" => well_formed(form, &document),
                "text" | "series text" => document,
                "markdown" => document.replace('\\', ""),
                _ => continue,
            };
            for event in &run.verdict.events {
                let line = words::event_line(event);
                assert!(told.contains(&line), "{name}, {form}: {line}");
            }
        }
    }
}

#[test]
fn a_series_comes_back_from_csv_as_it_was() {
    let mut run = runs::rich();
    run.samples[3].mb_s = 0.1 + 0.2;
    run.samples[4].power_w = Some(2.913_333_333_333_3);
    run.samples[5].iops = Some(1e-7);
    run.samples[6].lat_p99_us = Some(123.0);
    run.samples[6].other_bytes = Some(4096);
    // The last number that the reader's arithmetic holds to the byte.
    run.samples[7].cumulative_bytes = 1 << 53;
    let text = csv::write(&run.samples);
    assert!(
        text.starts_with(
            "t_s,mb_s,cumulative_bytes,temp_c,op,smart_ms,power_w,iops,lat_p99_us,other_bytes\n"
        )
    );
    let imported = import::read(text.as_bytes()).expect("our own CSV");
    assert_eq!(imported.series.samples, run.samples);
    assert_eq!(imported.notes, [""; 0]);
    assert!(matches!(
        import::read(csv::write(&[]).as_bytes()),
        Err(ImportError::Empty)
    ));
    let calm = csv::write(&runs::calm().samples);
    assert!(calm.starts_with("t_s,mb_s,cumulative_bytes,temp_c,op\n1,210,"));
}

/// Bytes of a log: each rate by the time since the line before, at most the usual second.
fn logged_bytes(log: &str) -> f64 {
    let mut last_ms = 0.0;
    let mut bytes = 0.0;
    for line in log.lines() {
        let fields: Vec<f64> = line.split(", ").map(|f| f.parse().expect("a number")).collect();
        assert_eq!(fields.len(), 5, "{line}");
        bytes += fields[1] * 1024.0 * (fields[0] - last_ms).min(1000.0) / 1000.0;
        last_ms = fields[0];
    }
    bytes
}

#[test]
fn the_log_for_fio_holds_all_bytes() {
    let slow = runs::samples(&[(500, 0.0007, 30.0, 30.0, Op::Write)]);
    let mut all = vec![("slow".to_owned(), slow)];
    all.extend(
        runs::all()
            .into_iter()
            .filter(|(n, _)| *n == "calm" || *n == "missing rows")
            .map(|(n, r)| (n.to_owned(), r.samples)),
    );
    for (name, run) in runs::traces() {
        // An idle time hides the length of the sample behind it from this simple reader.
        if run.samples.iter().all(|s| s.op != Op::Idle) {
            all.push((name, run.samples));
        }
    }
    for (name, samples) in all {
        let moved: f64 = samples.iter().map(|s| s.mb_s * 1e6).sum();
        let logged = logged_bytes(&fio::bw_log(&samples, 131_072));
        assert!(
            (logged - moved).abs() <= 0.001 * moved,
            "{name}: {logged} of {moved}"
        );
    }
    let log = fio::bw_log(&runs::rich().samples, 131_072);
    assert!(log.starts_with("1000, 390625, 1, 131072, 0\n"), "{}", &log[..60]);
    assert!(log.lines().any(|l| l.split(", ").nth(2) == Some("0")));
}

#[test]
fn figures_can_be_computed_again_from_the_page() {
    let run = runs::rich();
    let page = html::run(&run);
    let start = page.find("<script type=\"application/json\"").expect("the data");
    let start = start + page[start..].find('>').expect("its head") + 1;
    let end = start + page[start..].find("</script>").expect("its end");
    let embedded = bench::read(&page[start..end]).expect("the document");
    assert_eq!(embedded, run);
    for phase in &embedded.phases {
        let inside: Vec<&Sample> = embedded
            .samples
            .iter()
            .filter(|s| s.t_s > phase.start_s && s.t_s <= phase.end_s)
            .collect();
        let before = embedded
            .samples
            .iter()
            .rev()
            .find(|s| s.t_s <= phase.start_s)
            .map_or(0, |s| s.cumulative_bytes);
        let bytes = inside.last().map_or(0, |s| s.cumulative_bytes) - before;
        let rate = bytes as f64 / 1e6 / (phase.end_s - phase.start_s);
        assert!(
            (rate - phase.mb_s.expect("a rate")).abs() < 1e-9,
            "{}",
            phase.name
        );
    }
}

#[test]
fn a_long_run_keeps_its_stall_and_stays_small() {
    let run = runs::long();
    let svg = bench::svg(&run);
    assert!(svg.len() < 300_000, "{} bytes", svg.len());
    // The lowest point of the panel is drawn: 0 MB/s at the foot of the upper panel.
    let path = svg
        .lines()
        .find(|l| l.contains("s-write\"/>") && l.len() > 1000)
        .expect("the curve");
    let lowest = path
        .split(['M', 'L'])
        .filter_map(|p| p.split([' ', '"']).nth(1)?.parse::<f64>().ok())
        .fold(0.0, f64::max);
    let top: f64 = svg
        .split("data-top=\"")
        .nth(1)
        .and_then(|t| t.split('"').next())
        .and_then(|t| t.parse().ok())
        .expect("the frame");
    assert!((lowest - (top + 270.0)).abs() < 0.2, "{lowest}, {top}");
    let text = text::run(&run, PLAIN);
    assert!(text.len() < 20_000);
    assert!(html::run(&run).len() < 12_000_000);
}

#[test]
fn the_curve_fits_a_terminal() {
    for (name, run) in runs::all() {
        if name == "hostile" {
            continue;
        }
        let text = text::run(&run, PLAIN);
        for line in text.lines().filter(|l| l.contains(['│', '├', '└'])) {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        if name == "rich" {
            println!("{text}");
        }
    }
}

#[test]
fn the_verdict_is_told_in_words() {
    assert_eq!(
        verdict_text(&runs::rich().verdict),
        "verdict: thermal throttling (confidence 0.93)\n\
         \x20 write 400 → 100 MB/s (−75.0 %), read 430 → 180 MB/s (−58.1 %)\n\
         \x20 onset 451 s, 12.0 GB written, 1.00 GB read, 70 °C (known at 460 s)\n\
         \x20 for:     hottest so far: 70 °C is the highest of the run\n\
         \x20 against: no recovery: never cooler than 68 °C under load\n\
         \x20 against: bytes: 12.0 GB since idle (speaks for slc_cache)\n\
         \x20 not:     slc_cache (both ops fall: reads fall too)\n"
    );
    let calm = text::run(&runs::calm(), PLAIN);
    assert!(
        calm.contains("verdict: no throttling in 300 s / 63.5 GB (confidence 0.93)"),
        "{calm}"
    );
}

#[test]
fn two_runs_stand_side_by_side() {
    let (a, b) = (runs::rich(), runs::calm());
    let comparison = Comparison::new(&a, &b);
    let text = comparison.text();
    assert!(text.contains("median write"), "{text}");
    assert!(text.contains("no throttling"), "{text}");
    let svg = Plot::of_two(&a, &b).svg();
    assert!(svg.contains("s-write\"/>") && svg.contains("s-other\"/>"));
    let json = comparison.json();
    assert_eq!(json["schema"], "drivethru-compare/1");
}

#[test]
fn other_documents_are_named() {
    let error = |text: &str| bench::read(text).expect_err("no run");
    assert!(matches!(error("{}"), ReadError::OtherSchema { .. }));
    assert_eq!(
        error(r#"{"schema": "drivethru-verdict/1"}"#).to_string(),
        "this is drivethru-verdict/1, not drivethru-bench/1"
    );
    assert_eq!(
        error("{\n  \"schema\": x}").to_string(),
        "line 2, column 13: expected value"
    );
    let mut document = serde_json::to_value(runs::calm()).expect("JSON");
    document["schema_version"] = 2.into();
    assert!(
        error(&document.to_string())
            .to_string()
            .contains("schema_version")
    );
    let broken = "{\"schema\": \"drivethru-bench/1\",\n\"schema_version\": 1,\n\"device\": 7}";
    assert!(
        error(broken).to_string().starts_with("line 3, column "),
        "{}",
        error(broken)
    );
    for text in ["", "[", "null", "7", "\"x\"", "{\"schema\": 1e999}"] {
        error(text);
    }
}

fn report(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_drivethru"))
        .arg("report")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the tool starts")
}

#[test]
fn the_verb_writes_every_format() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = runs::rich();
    let names = bench::write_all(dir.path(), &run).expect("all files");
    assert_eq!(
        names,
        [
            "run.json",
            "series.csv",
            "seq_bw.log",
            "report.md",
            "report.html",
            "chart.svg",
            "chart.png"
        ]
    );
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let file = at("run.json");
    for (format, twin) in [
        ("html", "report.html"),
        ("svg", "chart.svg"),
        ("png", "chart.png"),
        ("csv", "series.csv"),
        ("fio", "seq_bw.log"),
    ] {
        let output = report(&[&file, "--format", format]);
        assert!(output.status.success(), "{format}: {output:?}");
        assert_eq!(
            output.stdout,
            std::fs::read(at(twin)).expect("its twin"),
            "{format}"
        );
    }
    let picture = at("again.png");
    assert!(report(&[&file, "--out", &picture]).status.success());
    assert_eq!(
        std::fs::read(&picture).expect("a file"),
        std::fs::read(at("chart.png")).expect("a file")
    );
    let json = report(&[&file, "--json"]);
    assert_eq!(json.stdout, std::fs::read(&file).expect("the run"));
    for format in ["html", "svg", "png", "markdown", "text"] {
        let output = report(&[&file, "--compare", &file, "--format", format]);
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{format}: {output:?}"
        );
    }
    let masked = report(&[&file, "--mask", "--format", "html"]);
    assert!(!String::from_utf8_lossy(&masked.stdout).contains("S4M0NX0123"));
    assert!(String::from_utf8_lossy(&masked.stdout).contains("S4********"));
}

#[test]
fn what_is_no_run_ends_with_2() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("x.json");
    let file_name = file.to_string_lossy().into_owned();
    let cases: [(&[u8], &str); 5] = [
        (b"{\n \"schema\": }", "line 2, column 12"),
        (
            b"{\"schema\": \"drivethru-temp/1\"}",
            "this is drivethru-temp/1, not drivethru-bench/1",
        ),
        (b"\xff\xfe", "no UTF-8"),
        (b"", "line 1"),
        (b"{\"schema\": \"\x1b[31m\"}", "x.json"),
    ];
    for (bytes, said) in cases {
        std::fs::write(&file, bytes).expect("a file");
        let output = report(&[&file_name]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
        assert!(!stderr.contains('\u{1b}') && output.stdout.is_empty());
    }
    let missing = report(&[&dir.path().join("none.json").to_string_lossy()]);
    assert_eq!(missing.status.code(), Some(2));
    let both = dir.path().join("run.json");
    std::fs::write(&both, bench::json(&runs::calm())).expect("a file");
    let both = both.to_string_lossy().into_owned();
    let output = report(&[&both, "--compare", &both, "--format", "csv"]);
    assert_eq!(output.status.code(), Some(2));
}

/// With `$DRIVETHRU_REPORTS` set to a directory, every run is written there for somebody to look at.
#[test]
fn all_runs_are_written_for_looking_at() {
    let Some(dir) = std::env::var_os("DRIVETHRU_REPORTS") else {
        return;
    };
    let dir = Path::new(&dir);
    let mut all: Vec<(String, Run)> = runs::all()
        .into_iter()
        .map(|(n, r)| (n.replace(' ', "-"), r))
        .collect();
    all.push(("long".to_owned(), runs::long()));
    all.extend(runs::traces());
    for (name, run) in &all {
        bench::write_all(&dir.join(name), run).expect("all files");
    }
    let (a, b) = (runs::rich(), runs::calm());
    std::fs::write(dir.join("compare.html"), html::compare(&Comparison::new(&a, &b))).expect("a file");
    std::fs::write(
        dir.join("compare.png"),
        Plot::of_two(&a, &b).png().expect("a picture"),
    )
    .expect("a file");
    assert!(all.iter().any(|(_, r)| r.verdict.cause == Cause::Thermal));
}

/// A directory is written to again only by a run, and nothing is written through a link.
#[test]
fn results_of_others_are_left_alone() {
    use drivethru::report::bench::{may_write, write_all};
    let run = runs::rich();
    let top = tempfile::tempdir().expect("a directory");
    let dir = top.path().join("new");
    write_all(&dir, &run).expect("a new directory");
    write_all(&dir, &run).expect("the run that was there is replaced");
    assert_eq!(
        std::fs::read_dir(&dir).expect("it is there").count(),
        7,
        "nothing else is left"
    );
    let theirs = top.path().join("theirs");
    std::fs::create_dir(&theirs).expect("a directory");
    may_write(&theirs).expect("an empty directory will do");
    std::fs::write(theirs.join("report.md"), "mine").expect("a file");
    assert!(write_all(&theirs, &run).is_err());
    assert_eq!(
        std::fs::read(theirs.join("report.md")).expect("it is there"),
        b"mine"
    );
    let linked = top.path().join("linked");
    let victim = top.path().join("victim");
    std::fs::create_dir(&linked).expect("a directory");
    std::fs::write(&victim, "precious").expect("a file");
    std::os::unix::fs::symlink(&victim, linked.join("chart.svg")).expect("a link");
    assert!(write_all(&linked, &run).is_err());
    assert_eq!(std::fs::read(&victim).expect("it is there"), b"precious");
    assert_eq!(std::fs::read_dir(&linked).expect("it is there").count(), 1);
}
