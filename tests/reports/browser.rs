//! Pages in a real browser, where one is installed: no error on the console, and the readout works.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use drivethru::bench::run::Run;
use drivethru::report::bench::compare::Comparison;
use drivethru::report::bench::html;

use crate::runs;
use crate::runs::skipped;

fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    named.into_iter().find(|p| p.is_file()).or_else(|| {
        std::env::split_paths(&path)
            .flat_map(|dir| ["chromium", "chromium-browser", "google-chrome"].map(|name| dir.join(name)))
            .find(|p| p.is_file())
    })
}

/// What the page is after its scripts ran, and what was said on stderr.
fn open(browser: &std::path::Path, page: &str) -> (String, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("page.html");
    std::fs::write(&file, page).expect("a file");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=5000",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            dir.path().join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Moves the pointer over the middle of the chart, as soon as the page is there.
const MOVE: &str = "<script>\nvar c=document.querySelector('svg.chart'),b=c.getBoundingClientRect();\
c.dispatchEvent(new PointerEvent('pointermove',{clientX:b.left+b.width/2,clientY:b.top+50}));\
c.dispatchEvent(new KeyboardEvent('keydown',{key:'ArrowRight'}));\
document.title='moved';\n</script>\n</body>";

#[test]
fn pages_work_in_a_browser() {
    let Some(browser) = browser() else {
        skipped("no Chromium is installed ($CHROMIUM names one)");
        return;
    };
    let (rich, calm, hostile) = (runs::rich(), runs::calm(), runs::hostile());
    let empty: Run = runs::edges().remove(0).1;
    let pages = [
        ("rich", html::run(&rich), "s ago)"),
        ("hostile", html::run(&hostile), "so far"),
        ("empty", html::run(&empty), ""),
        ("compare", html::compare(&Comparison::new(&rich, &calm)), "B: "),
    ];
    for (name, page, read) in pages {
        let (dom, log) = open(&browser, &page.replacen("</body>", MOVE, 1));
        let said: Vec<&str> = log.lines().filter(|l| l.contains("CONSOLE")).collect();
        assert!(said.is_empty(), "{name}: {said:?}");
        assert!(
            dom.contains("<title>moved</title>"),
            "{name}: the scripts ran\n{log}"
        );
        let readout = dom
            .split("<output id=\"readout\">")
            .nth(1)
            .and_then(|t| t.split("</output>").next())
            .expect("the readout");
        assert!(readout.contains(read), "{name}: {readout}");
        assert!(!readout.contains("Point at"), "{name}: {readout}");
    }
}
