//! What the tool prints and how it exits: transcripts on simulated devices, and what no transcript can show.
#![cfg(feature = "cli")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use clap::CommandFactory;
use drivethru::cli::args::Cli;
use serde_json::Value;

#[test]
fn transcripts() {
    let cases = trycmd::TestCases::new();
    cases.env("COLUMNS", "100").case("tests/cli/*.trycmd");
    if Path::new("README.md").exists() {
        cases.case("README.md");
    }
}

fn drivethru() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drivethru"));
    command.env_remove("DRIVETHRU_STATE_FILE").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    drivethru().args(args).output().expect("the tool starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// Standard output of a run that ends well and has nothing to say on stderr.
fn stdout_of(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    assert_eq!(text(&output.stderr), "", "{args:?}");
    text(&output.stdout).to_owned()
}

fn code(args: &[&str]) -> Option<i32> {
    run(args).status.code()
}

/// Each command and subcommand as the words that lead to it.
fn command_paths(command: &clap::Command, path: &[String], out: &mut Vec<Vec<String>>) {
    for sub in command.get_subcommands().filter(|s| s.get_name() != "help") {
        let mut path = path.to_vec();
        path.push(sub.get_name().to_owned());
        command_paths(sub, &path, out);
        out.push(path);
    }
}

fn all_commands() -> Vec<Vec<String>> {
    let mut out = Vec::new();
    command_paths(&Cli::command(), &[], &mut out);
    assert!(out.len() >= 12, "{out:?}");
    out
}

#[test]
fn help_is_there_for_every_command() {
    for path in all_commands() {
        for flag in ["--help", "-h"] {
            let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
            args.push(flag);
            let help = stdout_of(&args);
            assert!(
                help.contains(&format!("Usage: drivethru {}", path.join(" "))),
                "{help}"
            );
        }
        let mut args = vec!["help"];
        args.extend(path.iter().map(String::as_str));
        assert!(stdout_of(&args).contains("Usage:"), "{path:?}");
    }
}

#[test]
fn every_command_and_option_has_a_description() {
    fn walk(command: &clap::Command) {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for argument in command.get_arguments() {
            let named = argument.get_help().is_some();
            assert!(named, "{} {}", command.get_name(), argument.get_id());
        }
        for sub in command.get_subcommands() {
            walk(sub);
        }
    }
    let mut cli = Cli::command();
    cli.build();
    walk(&cli);
}

#[test]
fn the_manual_has_every_command() {
    let page = stdout_of(&["setup", "man"]);
    assert!(page.contains(".TH drivethru 1"), "{page}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let pages = dir.path().join("man1");
    stdout_of(&["setup", "man", "--dir", pages.to_str().expect("UTF-8")]);
    for path in all_commands() {
        let name = format!("drivethru-{}", path.join("-"));
        let file = pages.join(format!("{name}.1"));
        let page = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
        if let [name] = &path[..] {
            let top = std::fs::read_to_string(pages.join("drivethru.1")).expect("the top page");
            assert!(top.contains(&format!("drivethru\\-{name}(1)")), "{name}: {top}");
        }
    }
}

#[test]
fn completions_have_every_command() {
    for (shell, first) in [
        ("bash", "_drivethru() {"),
        ("zsh", "#compdef drivethru"),
        ("fish", "# Print an optspec for argparse"),
    ] {
        let script = stdout_of(&["setup", "completions", shell]);
        assert!(script.starts_with(first), "{shell}: {:?}", script.lines().next());
        for path in all_commands() {
            let word = path.last().expect("a name");
            assert!(script.contains(word.as_str()), "{shell}: {word}");
        }
        for option in ["json", "dialect", "record", "every", "wake"] {
            assert!(script.contains(option), "{shell}: --{option}");
        }
    }
    // A shell that is there must take its script.
    if let Ok(mut bash) = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn() {
        let script = stdout_of(&["setup", "completions", "bash"]);
        let mut stdin = bash.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut stdin, script.as_bytes()).expect("bash reads");
        drop(stdin);
        assert!(bash.wait().expect("bash ends").success());
    }
}

/// Serial numbers of `sim:ssd`: of the drive and of the bridge, and the drive's world wide name.
const SECRETS: [&str; 3] = ["SIMSSD0000480001", "123456789ABC", "5000000000048001"];

#[test]
fn masked_output_holds_no_serial_number() {
    let verbs: [&[&str]; 9] = [
        &["info", "sim:ssd"],
        &["info", "sim:ssd", "--json"],
        &["smart", "sim:ssd"],
        &["smart", "sim:ssd", "--json"],
        &["smart", "sim:ssd", "--all", "--json"],
        &["temp", "sim:ssd"],
        &["temp", "sim:ssd", "--json"],
        &["temp", "sim:ssd", "--format", "csv"],
        &["temp", "sim:ssd", "--format", "prometheus"],
    ];
    let mut shown = 0;
    for verb in verbs {
        shown += usize::from(SECRETS.iter().any(|s| stdout_of(verb).contains(s)));
        let masked = stdout_of(&[verb, &["--mask"]].concat());
        for secret in SECRETS {
            // As text, and as the words and bytes of a dump.
            let hex: String = secret.bytes().map(|b| format!("{b:02x}")).collect();
            let found = masked.contains(secret) || masked.replace(' ', "").contains(&hex);
            assert!(!found, "{verb:?} shows {secret}: {masked}");
        }
    }
    assert!(shown >= 7, "without --mask the numbers are there: {shown}");
    let masked: Value =
        serde_json::from_str(&stdout_of(&["temp", "sim:ssd", "--json", "--mask"])).expect("JSON");
    assert_eq!(masked["device"]["serial"], "SI**************");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    for verb in [
        "sim list",
        "smart sim:ssd --json --all",
        "temp sim:ssd --every 1s --count 100000",
        "setup man",
        "--help",
    ] {
        let script = format!(
            "exec 3>&1; {{ {} {verb}; echo \"code $?\" >&3; }} | head -c 0",
            env!("CARGO_BIN_EXE_drivethru")
        );
        let output = Command::new("sh").args(["-c", &script]).output().expect("sh");
        assert_eq!(text(&output.stdout), "code 0\n", "{verb}");
        assert_eq!(text(&output.stderr), "", "{verb}");
    }
}

#[test]
fn an_interrupt_ends_a_series_with_130() {
    let mut child = drivethru()
        .args(["temp", "/dev/sd-none", "--every", "1s"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    // The first complaint comes after the signal handlers are in place.
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut stderr, &mut line).expect("a complaint");
    assert!(line.contains("no such device"), "{line}");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

#[test]
fn the_same_command_prints_the_same_bytes() {
    let verbs: [&[&str]; 8] = [
        &["info", "sim:ssd", "--json"],
        &["smart", "sim:hdd", "--all", "--json"],
        &["temp", "sim:hdd", "--every", "10s", "--count", "20", "--json"],
        &["temp", "sim:hdd,power=standby", "--json"],
        &["temp", "sim:ssd,fault=timeout", "--json"],
        &["temp", "sim:stick", "--format", "csv"],
        &[
            "temp",
            "sim:hdd,power=sleep",
            "--every",
            "1m",
            "--count",
            "3",
            "--format",
            "csv",
        ],
        &[
            "temp",
            "sim:ssd",
            "sim:hdd",
            "sim:stick",
            "--format",
            "prometheus",
        ],
    ];
    for verb in verbs {
        let first = run(verb);
        assert!(!first.stdout.is_empty());
        for _ in 0..4 {
            // Not within the same millisecond of real time.
            std::thread::sleep(std::time::Duration::from_millis(2));
            let again = run(verb);
            assert_eq!(text(&again.stdout), text(&first.stdout), "{verb:?}");
            assert_eq!(again.status.code(), first.status.code(), "{verb:?}");
        }
    }
}

#[test]
fn a_simulated_sleeper_is_polled_without_waiting_in_real_time() {
    let start = std::time::Instant::now();
    let polls = [
        "temp",
        "sim:hdd,power=standby",
        "--every",
        "1h",
        "--count",
        "3",
        "--json",
    ];
    let output = run(&polls);
    assert_eq!(output.status.code(), Some(7));
    let times: Vec<String> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["time"].to_string())
        .collect();
    assert_eq!(
        times,
        [
            "\"2024-01-01T00:00:00.000Z\"",
            "\"2024-01-01T01:00:00.000Z\"",
            "\"2024-01-01T02:00:00.000Z\""
        ]
    );
    assert!(start.elapsed() < std::time::Duration::from_secs(30));
}

/// `temp` and `smart` poll; `info` is asked of one drive that the user named.
#[test]
fn who_wakes_a_sleeper() {
    for power in ["standby", "sleep"] {
        let sleeper = format!("sim:hdd,power={power}");
        for (args, expected) in [
            (vec!["temp", &sleeper], 7),
            (vec!["temp", &sleeper, "--wake"], 0),
            (vec!["smart", &sleeper], 7),
            (vec!["smart", &sleeper, "--wake"], 0),
            (vec!["smart", &sleeper, "--test", "short"], 0),
            (vec!["info", &sleeper], 0),
        ] {
            let output = run(&args);
            assert_eq!(output.status.code(), Some(expected), "{args:?}: {output:?}");
            let read = text(&output.stdout).contains("SIM HDD 2TB 5400");
            assert_eq!(read, expected == 0, "{args:?}: {output:?}");
        }
    }
}

/// It may be hung, and each further command might reset it again.
#[test]
fn a_series_sends_nothing_more_after_a_timeout() {
    let series = ["temp", "sim:ssd,fault=timeout", "--every", "1s", "--count", "3"];
    for format in ["text", "json", "csv", "prometheus"] {
        let output = run(&[&series[..], &["-v", "--format", format]].concat());
        assert_eq!(output.status.code(), Some(4), "{format}");
        let said = text(&output.stderr);
        assert_eq!(said.matches(": > ").count(), 1, "{format}: {said}");
        assert_eq!(said.matches(": ! ").count(), 1, "{format}: {said}");
        assert_eq!(
            said.matches("it is not read again in this run").count(),
            1,
            "{format}: {said}"
        );
    }
    let documents = text(&run(&[&series[..], &["--json"]].concat()).stdout)
        .lines()
        .count();
    assert_eq!(documents, 1, "what is not read has no document");
    // A single reading is not a series, and promises nothing.
    let single = run(&["temp", "sim:ssd,fault=timeout"]);
    assert!(!text(&single.stderr).contains("in this run"), "{single:?}");
}

/// Every line of stdout is one JSON document with a schema; nothing else is on stdout.
#[test]
fn machine_output_stands_alone() {
    for (args, codes) in [
        (vec!["info", "sim:stick", "--json"], 0),
        (vec!["sim", "list", "--json"], 0),
        (vec!["smart", "sim:ssd,health=failing", "--json"], 1),
        (
            vec![
                "temp",
                "sim:ssd",
                "sim:nosuch",
                "sim:stick",
                "/dev/sd-none",
                "--json",
            ],
            3,
        ),
        (vec!["temp", "sim:ssd", "-v", "--json"], 0),
        (vec!["smart", "sim:ssd", "-vv", "--json"], 0),
        (
            vec!["raw", "sim:ssd", "00", "00", "00", "00", "00", "00", "--json"],
            0,
        ),
    ] {
        let output = run(&args);
        assert_eq!(output.status.code(), Some(codes), "{args:?}");
        let stdout = text(&output.stdout);
        assert!(!stdout.is_empty(), "{args:?}");
        for line in stdout.lines() {
            let document: Value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{args:?}: {e}: {line}"));
            assert!(
                document["schema"]
                    .as_str()
                    .is_some_and(|s| s.starts_with("drivethru-")),
                "{line}"
            );
            assert_eq!(document["schema_version"], 1, "{line}");
        }
    }
}

#[test]
fn a_dump_is_read_from_standard_input() {
    let dump = std::fs::File::open("vectors/ata/identify/sata-ssd.hex").expect("a vector");
    let output = drivethru()
        .args(["decode", "identify", "-", "--json"])
        .stdin(dump)
        .output()
        .expect("the tool starts");
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["model"], "SYNTHETIC SSD 500");
    assert_eq!(code(&["decode", "identify", "-"]), Some(2), "an empty input");
}

#[test]
fn trace_and_recording_show_what_was_sent() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("t.xchg");
    let file = file.to_str().expect("UTF-8");
    let output = run(&["temp", "sim:ssd", "-v", "--record", file]);
    let trace = text(&output.stderr);
    assert_eq!(trace.matches(": > ").count(), 2, "{trace}");
    assert!(trace.contains("a1 08 0e 00 01 00 00 00 00 ec 00 00"), "{trace}");
    let recording = std::fs::read_to_string(file).expect("a recording");
    assert_eq!(recording.matches("> cdb ").count(), 2);
    assert_eq!(
        code(&["temp", "sim:ssd", "--record", file]),
        Some(2),
        "never overwritten"
    );
    assert_eq!(
        std::fs::read_to_string(file).expect("a recording"),
        recording,
        "never overwritten"
    );
    let replay = format!("replay:{file}");
    let played = stdout_of(&["temp", &replay]);
    assert!(
        played.contains("32 °C") && played.contains("[simulated]"),
        "{played}"
    );
    assert_eq!(
        code(&["smart", &replay]),
        Some(4),
        "another verb than the recorded one"
    );
}

/// The strings that a hostile device may send: terminal escapes, quotes, separators, formulas.
const HOSTILE_MODEL: &str = "=1+1|\"';,\\{}<b>$(x)`y`";
const HOSTILE_SERIAL: &str = "S\x1b[31m\x07\n\r\t\x7f,\"\\";
const HOSTILE_USB: &str = "\u{1b}]0;pwned\u{7}\u{9b}31m\u{202e}\r\n\"x\\y";

/// A recording of `verb` on `sim:ssd` whose drive and bridge have hostile names, in a file with a hostile name.
fn hostile_recording(dir: &Path, verb: &[&str], model: &str) -> String {
    let good = dir.join("good.xchg");
    let _ = std::fs::remove_file(&good);
    let mut args = verb.to_vec();
    args.extend(["sim:ssd", "--record", good.to_str().expect("UTF-8")]);
    assert_eq!(code(&args), Some(0));
    let recording = std::fs::read_to_string(&good).expect("a recording");
    let mut lines: Vec<String> = recording.lines().map(str::to_owned).collect();

    let facts = lines
        .iter_mut()
        .find(|l| l.starts_with("@ facts "))
        .expect("facts");
    let mut document: Value = serde_json::from_str(&facts["@ facts ".len()..]).expect("JSON");
    document["usb"]["product"] = HOSTILE_USB.into();
    document["usb"]["manufacturer"] = HOSTILE_USB.into();
    document["driver"] = "uas\u{1b}[2J".into();
    *facts = format!("@ facts {document}");

    // The first data-in is IDENTIFY: words 10-19 hold the serial number and 27-46 the model, with the bytes of each word
    // swapped; byte 511 makes the sum zero.
    let rows: Vec<usize> = (0..lines.len())
        .filter(|i| lines[*i].starts_with("< in "))
        .take(16)
        .collect();
    let hex: Vec<&str> = rows
        .iter()
        .flat_map(|i| lines[*i]["< in ".len()..].split(' '))
        .collect();
    let mut sector: Vec<u8> = hex
        .iter()
        .map(|h| u8::from_str_radix(h, 16).expect("hex"))
        .collect();
    assert_eq!(sector.len(), 512);
    for (field, string) in [(20..40, HOSTILE_SERIAL), (54..94, model)] {
        let mut string = string.as_bytes().to_vec();
        assert!(string.len() <= field.len());
        string.resize(field.len(), b' ');
        for (to, from) in sector[field].chunks_exact_mut(2).zip(string.chunks_exact(2)) {
            to.copy_from_slice(&[from[1], from[0]]);
        }
    }
    sector[511] = 0;
    sector[511] = 0u8.wrapping_sub(sector.iter().fold(0, |sum: u8, b| sum.wrapping_add(*b)));
    for (row, bytes) in rows.iter().zip(sector.chunks(32)) {
        let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        lines[*row] = format!("< in {}", hex.join(" "));
    }
    let name = dir.join("a\u{1b}[31m\"q\\b,\u{202e}\n.xchg");
    std::fs::write(&name, lines.join("\n") + "\n").expect("written");
    format!("replay:{}", name.display())
}

#[test]
fn a_model_that_cannot_be_printed_is_no_drive() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let device = hostile_recording(dir.path(), &["info"], "SIM\x1b[31mSSD\x07");
    // Not believed in the first form; a recording has no second one.
    let output = run(&["info", &device, "--dialect", "sat"]);
    assert_inert(text(&output.stdout), "info");
    assert!(
        text(&output.stdout).contains("the model is not printable"),
        "{output:?}"
    );
    assert!(!text(&output.stdout).contains("31mSSD"), "{output:?}");
}

/// No byte that a terminal could take for a command.
fn assert_inert(output: &str, what: &str) {
    for c in output.chars() {
        let harmless = c == '\n' || !c.is_control();
        let reorders =
            matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(harmless && !reorders, "{what}: {c:?} in {output:?}");
    }
}

#[test]
fn hostile_strings_are_escaped_in_every_output() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for verb in [vec!["info"], vec!["smart"], vec!["temp"]] {
        let device = hostile_recording(dir.path(), &verb, HOSTILE_MODEL);
        let mut args = verb.clone();
        args.push(&device);
        let output = stdout_of(&args);
        assert_inert(&output, verb[0]);
        assert!(output.contains(HOSTILE_MODEL), "{output}");
        args.push("--json");
        let json = stdout_of(&args);
        assert!(json.ends_with('\n') && json.lines().count() == 1, "{json}");
        assert!(
            !json.trim_end().contains(|c: char| c.is_ascii_control()),
            "{json:?}"
        );
        let document: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(document["device"]["name"], device, "JSON gives the name as it is");
        let model = document["device"]["model"].as_str().expect("a model");
        assert_eq!(model, HOSTILE_MODEL);
        let serial = document["device"]["serial"].as_str().expect("a serial number");
        assert_eq!(
            serial,
            "S\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd},\"\\"
        );
        if verb == ["info"] {
            assert_eq!(document["host"]["usb"]["product"], HOSTILE_USB);
        }
    }
}

#[test]
fn hostile_strings_stay_in_their_csv_cell() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let device = hostile_recording(dir.path(), &["temp"], HOSTILE_MODEL);
    let output = stdout_of(&["temp", &device, "--format", "csv"]);
    assert_inert(&output, "csv");
    let mut reader = csv::Reader::from_reader(output.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.expect("a row")).collect();
    let [row] = &rows[..] else { panic!("{output}") };
    assert_eq!(row.len(), header.len());
    let cell = |name: &str| {
        let index = header.iter().position(|h| h == name).expect("a column");
        row[index].to_owned()
    };
    assert!(
        cell("model").starts_with("'=1+1"),
        "no formula: {}",
        cell("model")
    );
    assert!(
        cell("device").contains("a\\u{1b}[31m\"q\\b,\\u{202e}\\u{a}.xchg"),
        "{}",
        cell("device")
    );
    assert_eq!(
        cell("serial"),
        "S\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd},\"\\"
    );
    assert_eq!(cell("temp_celsius"), "32");
}

/// The value of a label, unescaped as the text format says: `\\`, `\"` and `\n`.
fn label<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return &rest[at + 1..],
            '\\' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, c @ ('\\' | '"'))) => out.push(c),
                other => panic!("no such escape: {other:?} in {rest}"),
            },
            c => out.push(c),
        }
    }
    panic!("a label without an end: {rest}");
}

#[test]
fn hostile_strings_stay_in_their_prometheus_label() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let device = hostile_recording(dir.path(), &["temp"], HOSTILE_MODEL);
    let output = stdout_of(&["temp", &device, "--format", "prometheus"]);
    assert_inert(&output, "prometheus");
    let mut samples = 0;
    for line in output.lines().filter(|l| !l.starts_with('#')) {
        let (name, mut rest) = line.split_once('{').expect("labels");
        assert!(name.starts_with("drivethru_"), "{line}");
        let mut labels = Vec::new();
        loop {
            let (key, value) = rest.split_once("=\"").expect("a label");
            let mut text = String::new();
            rest = label(value, &mut text);
            labels.push((key.trim_start_matches(',').to_owned(), text));
            if let Some(value) = rest.strip_prefix("} ") {
                value.parse::<f64>().unwrap_or_else(|e| panic!("{line}: {e}"));
                break;
            }
        }
        assert_eq!(labels[0].0, "device", "{line}");
        assert!(
            labels[0].1.ends_with("a\\u{1b}[31m\"q\\b,\\u{202e}\\u{a}.xchg"),
            "{:?}",
            labels[0]
        );
        if let Some((_, model)) = labels.iter().find(|(key, _)| key == "model") {
            assert_eq!(model, HOSTILE_MODEL);
        }
        samples += 1;
    }
    assert!(samples >= 8, "{output}");
}

#[test]
fn hostile_names_are_escaped_in_complaints() {
    for name in [
        "sim:x\u{1b}[31m",
        "/dev/\u{1b}]0;x\u{7}",
        "replay:/nonexistent/\u{9b}31m",
        "\u{202e}",
    ] {
        let output = run(&["temp", name]);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{name:?}");
        assert_inert(text(&output.stderr), "stderr");
    }
}

/// With a state file named, simulated bridges are remembered like real ones.
#[test]
fn a_harmed_bridge_is_refused_until_it_is_forgotten() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let state = dir.path().join("deep/bridges.json");
    let run = |args: &[&str]| {
        let mut command = drivethru();
        let output = command.args(args).env("DRIVETHRU_STATE_FILE", &state).output();
        output.expect("the tool starts")
    };
    let harmed = run(&["temp", "sim:ssd,fault=timeout"]);
    assert_eq!(harmed.status.code(), Some(4), "{harmed:?}");
    for verb in [["temp", "sim:ssd"], ["smart", "sim:ssd"], ["info", "sim:ssd"]] {
        let refused = run(&verb);
        assert_eq!(refused.status.code(), Some(6), "{verb:?}");
        let complaint = text(&refused.stderr);
        assert!(
            complaint.contains("got no answer in time") && complaint.contains("--forget"),
            "{complaint}"
        );
        assert!(refused.stdout.is_empty(), "{verb:?}");
    }
    let named = run(&["temp", "sim:ssd", "--dialect", "sat12"]);
    assert_eq!(named.status.code(), Some(0), "{named:?}");
    assert_eq!(
        run(&["temp", "sim:ssd"]).status.code(),
        Some(6),
        "naming a dialect forgets nothing"
    );
    assert_eq!(run(&["temp", "sim:ssd", "--forget"]).status.code(), Some(0));
    assert_eq!(run(&["temp", "sim:ssd"]).status.code(), Some(0));
    let known = run(&["info", "sim:ssd"]);
    assert!(
        text(&known.stdout).contains("sat (remembered from an earlier run)"),
        "{known:?}"
    );
    let memory = std::fs::read_to_string(&state).expect("the memory");
    assert!(SECRETS.iter().all(|s| !memory.contains(s)), "{memory}");
}
