//! `sim serve` as a process: what it says, how it is asked, and how it ends.
#![cfg(feature = "cli")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn drivethru() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drivethru"));
    command.env_remove("DRIVETHRU_STATE_FILE").stdin(Stdio::null());
    command
}

/// A server that is ended when the test is.
struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let mut child = drivethru()
            .args(["sim", "serve"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, stderr }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Waits for its end; returns how it ended, and what it said last.
    fn end(mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).expect("UTF-8");
        let mut out = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_string(&mut out).expect("UTF-8");
        }
        assert_eq!(out, "", "stdout stays empty");
        (status, rest)
    }
}

fn control(address: &str, words: &[&str]) -> Output {
    drivethru()
        .args(["sim", "control", address])
        .args(words)
        .output()
        .expect("the tool starts")
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn unix(dir: &Path, name: &str) -> String {
    format!("unix:{}", dir.join(name).display())
}

#[test]
fn a_server_says_where_it_listens_and_obeys() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let address = unix(dir.path(), "control");
    let mut server = Server::start(&[
        "sim:hdd,temp=33",
        "--usbredir",
        "0",
        "--usbip",
        "0",
        "--control",
        &address,
    ]);
    let (first, second, third) = (server.line(), server.line(), server.line());
    let port = |line: &str, face: &str| {
        let port = line.strip_prefix(&format!("{face}: listening on 127.0.0.1:"));
        port.and_then(|p| p.parse::<u16>().ok())
            .unwrap_or_else(|| panic!("{line}"))
    };
    assert_ne!(port(&first, "usbredir"), port(&second, "usbip"));
    assert_eq!(third, format!("control: listening on {address}"));

    let status = control(&address, &["status"]);
    assert_eq!(status.status.code(), Some(0), "{status:?}");
    let status = document(&status);
    assert_eq!(status["temperature_celsius"], 33);
    assert_eq!(status["plugged"], true);
    assert_eq!(control(&address, &["set", "temp=44"]).status.code(), Some(0));
    assert_eq!(
        document(&control(&address, &["status"]))["temperature_celsius"],
        44
    );
    let refused = control(&address, &["set", "colour=red"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        document(&refused)["error"]
            .as_str()
            .expect("words")
            .contains("colour")
    );
    assert_eq!(control(&address, &["quit"]).status.code(), Some(0));
    let (status, last) = server.end();
    assert_eq!(status.code(), Some(0));
    assert!(
        last.starts_with("sim:hdd,temp=33: served 0 hosts, 0 commands, in "),
        "{last}"
    );
    assert!(!dir.path().join("control").exists());
    assert_eq!(control(&address, &["status"]).status.code(), Some(4));
}

#[test]
fn a_signal_ends_it_cleanly() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start(&["ssd", "--usbredir", &unix(dir.path(), "redir")]);
        assert!(server.line().starts_with("usbredir: listening on unix:"));
        let killed = Command::new("kill")
            .args([signal, &server.child.id().to_string()])
            .status();
        assert!(killed.expect("kill").success());
        let (status, last) = server.end();
        assert_eq!(status.code(), Some(0), "{signal}");
        assert!(last.contains("served 0 hosts"), "{last}");
        assert!(!dir.path().join("redir").exists(), "{signal}");
    }
}

#[test]
fn a_log_is_its_owners_and_a_store_has_one_server() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (log, store, link) = (path("log"), path("store"), path("link"));
    let spec = format!("stick,store={store}");
    let mut server = Server::start(&[&spec, "--usbip", "0", "--log", &log]);
    assert!(server.line().starts_with("usbip: listening on "));
    for file in [&log, &store] {
        let mode = std::fs::metadata(file).expect(file).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let mut second = Server::start(&[&spec, "--usbip", "0"]);
    let line = second.line();
    assert!(line.contains("another simulated drive has it"), "{line}");
    assert_eq!(second.end().0.code(), Some(2));
    symlink(path("nowhere"), &link).expect("a link");
    let third = Server::start(&["ssd", "--usbip", "0", "--log", &link]);
    assert_eq!(third.end().0.code(), Some(2));
    assert!(!dir.path().join("nowhere").exists());
}

/// With each number of descriptors from few to enough: one of them is just not enough for the second handle of a connection.
#[test]
fn a_server_without_descriptors_calls_again() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let host = UnixListener::bind(dir.path().join("host")).expect("a socket");
    host.set_nonblocking(true).expect("a socket");
    let await_call = || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1500) {
            if let Ok((stream, _)) = host.accept() {
                let patience = Some(Duration::from_secs(10));
                stream.set_nonblocking(false).expect("a stream");
                stream.set_read_timeout(patience).expect("a stream");
                return Some(stream);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    };
    let mut refused = 0;
    for limit in 4..40 {
        let script = format!("ulimit -n {limit} && exec \"$0\" \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_drivethru")])
            .args(["sim", "serve", "ssd", "--connect", "--usbredir"])
            .arg(unix(dir.path(), "host"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        std::thread::sleep(Duration::from_millis(100));
        let runs = child.try_wait().expect("a child").is_none();
        let greeted = runs
            && await_call().is_some_and(|mut stream| {
                let greeted = matches!(stream.read(&mut [0; 80]), Ok(1..));
                if !greeted {
                    refused += 1;
                    assert!(await_call().is_some(), "no second call with {limit} descriptors");
                }
                greeted
            });
        let _ = child.kill();
        let _ = child.wait();
        // Calls of the one that has ended.
        while host.accept().is_ok() {}
        if greeted {
            assert!(refused > 0, "each call succeeded or failed as a whole");
            return;
        }
    }
    panic!("40 descriptors are not enough");
}

#[test]
fn an_open_address_is_warned_of() {
    let mut server = Server::start(&["ssd", "--usbip", "0.0.0.0:0"]);
    assert!(server.line().starts_with("usbip: listening on 0.0.0.0:"));
    assert!(server.line().contains("warning: every machine"));
}
