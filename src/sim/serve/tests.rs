//! A scripted device, and servers on real sockets.
#![allow(clippy::indexing_slicing)]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::device::Device;
use super::server::{Config, Server, Stopper, Summary};
use super::{Address, ask};
use crate::sim::Target;
use crate::sim::usb::{Endpoint, Finished, Identity, Interface, Speed, Transfer, TransferStatus};

/// A device that echoes: a bulk OUT is swallowed, a bulk IN filled with its stream's number, a control IN with its SETUP
/// packet. Stream or length tell of exceptions: endpoint 81h with 13 bytes waits for ever, 14 bytes stall, stream 99 waits for
/// the next transfer of another one.
pub struct Fake {
    target: Target,
    plugged: bool,
    pub configuration: u8,
    pub alt: u8,
    pending: Vec<u64>,
    finished: VecDeque<Finished>,
    held_back: Vec<Finished>,
    /// What was called, in words.
    pub calls: Vec<String>,
    due: Option<Duration>,
    pub seen: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    pub fn new() -> Self {
        Self {
            target: Target::open("hdd-4kn").unwrap(),
            plugged: true,
            configuration: 0,
            alt: 0,
            pending: Vec::new(),
            finished: VecDeque::new(),
            held_back: Vec::new(),
            calls: Vec::new(),
            due: None,
            seen: Arc::default(),
        }
    }

    fn call(&mut self, what: String) {
        self.seen.lock().unwrap().push(what.clone());
        self.calls.push(what);
    }

    fn end_all(&mut self, status: TransferStatus) {
        for id in std::mem::take(&mut self.pending) {
            self.finished.push_back(Finished {
                id,
                status,
                data: Vec::new(),
                moved_bytes: 0,
            });
        }
    }
}

impl Device for Fake {
    fn target(&mut self) -> &mut Target {
        &mut self.target
    }
    fn identity(&self) -> Identity {
        Identity {
            speed: Speed::Super,
            class: (0, 0, 0),
            vid: 0x174c,
            pid: 0x55aa,
            bcd_device: 0x0100,
            configuration: 1,
        }
    }
    fn interfaces(&self) -> Vec<Interface> {
        vec![Interface {
            number: 0,
            class: (8, 6, if self.alt == 1 { 0x62 } else { 0x50 }),
        }]
    }
    fn endpoints(&self) -> Vec<Endpoint> {
        [0x81u8, 0x02]
            .map(|address| Endpoint {
                address,
                kind: 2,
                interval: 0,
                interface: 0,
                max_packet_bytes: 1024,
                max_streams: if self.alt == 1 { 32 } else { 0 },
            })
            .to_vec()
    }
    fn plugged(&self) -> bool {
        self.plugged
    }
    fn unplug(&mut self, _now: Duration) {
        self.call("unplug".to_owned());
        self.plugged = false;
        self.end_all(TransferStatus::Error);
    }
    fn plug(&mut self, _now: Duration) {
        self.call("plug".to_owned());
        self.plugged = true;
        (self.configuration, self.alt) = (0, 0);
    }
    fn bus_reset(&mut self, _now: Duration) {
        self.call("bus reset".to_owned());
        (self.configuration, self.alt) = (0, 0);
        self.end_all(TransferStatus::Cancelled);
    }
    fn set_configuration(&mut self, value: u8, _now: Duration) -> bool {
        if value <= 1 {
            self.configuration = value;
        }
        value <= 1
    }
    fn configuration(&self) -> u8 {
        self.configuration
    }
    fn set_interface(&mut self, interface: u8, setting: u8, _now: Duration) -> bool {
        let good = interface == 0 && setting <= 1;
        if good {
            self.alt = setting;
        }
        good
    }
    fn setting(&self, interface: u8) -> Option<u8> {
        (interface == 0).then_some(self.alt)
    }
    fn submit(&mut self, transfer: Transfer, now: Duration) {
        let Transfer {
            id,
            endpoint,
            stream,
            setup,
            out,
            in_len,
        } = transfer;
        self.call(format!(
            "submit {endpoint:02x} stream {stream} out {} in {in_len}",
            out.len()
        ));
        if in_len == 13 {
            self.pending.push(id);
            return;
        }
        if in_len == 15 {
            self.due = Some(now + Duration::from_millis(30));
            self.pending.push(id);
            return;
        }
        let stalls = in_len == 14;
        let mut data = match setup {
            Some(setup) if endpoint == 0x80 => setup.to_vec(),
            _ => vec![stream as u8; in_len],
        };
        data.truncate(in_len);
        let data = if stalls { Vec::new() } else { data };
        let finished = Finished {
            id,
            status: if stalls {
                TransferStatus::Stall
            } else {
                TransferStatus::Done
            },
            moved_bytes: data.len().max(out.len()),
            data,
        };
        if stream == 99 {
            self.held_back.push(finished);
        } else {
            self.finished.extend(self.held_back.drain(..));
            self.finished.push_back(finished);
        }
    }
    fn cancel(&mut self, id: u64, _now: Duration) -> bool {
        let known = self.pending.contains(&id);
        if known {
            self.pending.retain(|p| *p != id);
            self.finished.push_back(Finished {
                id,
                status: TransferStatus::Cancelled,
                data: Vec::new(),
                moved_bytes: 0,
            });
        }
        known
    }
    fn finished(&mut self, now: Duration) -> Option<Finished> {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.end_all(TransferStatus::Done);
        }
        self.finished.pop_front()
    }
    fn next_due(&self) -> Option<Duration> {
        self.due
    }
}

struct Running {
    thread: JoinHandle<Summary>,
    stopper: Stopper,
    addresses: Vec<(&'static str, Address)>,
    notices: Arc<Mutex<Vec<String>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn start(config: Config) -> Self {
        let notices: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&notices);
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let shown = Arc::clone(&seen);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let fake = Fake {
                seen: shown,
                ..Fake::new()
            };
            let notice = Arc::new(move |line: &str| heard.lock().unwrap().push(line.to_owned()));
            let server = Server::bind_device(Box::new(fake), &config, notice).unwrap();
            tell.send((server.addresses(), server.stopper())).unwrap();
            server.run().unwrap()
        });
        let (addresses, stopper) = told.recv().unwrap();
        Self {
            thread,
            stopper,
            addresses,
            notices,
            seen,
        }
    }

    fn address(&self, face: &str) -> Address {
        self.addresses.iter().find(|(f, _)| *f == face).unwrap().1.clone()
    }

    fn call(&self, face: &str) -> TcpStream {
        let Address::Tcp { host, port } = self.address(face) else {
            panic!("not TCP")
        };
        let stream = TcpStream::connect((host.as_str(), port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn tell(&self, command: &str) -> Value {
        serde_json::from_str(&ask(&self.address("control"), command).unwrap()).unwrap()
    }

    /// Waits until the device or a notice has said so.
    fn await_word(&self, word: &str) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let heard = self.notices.lock().unwrap().iter().any(|n| n.contains(word));
            if heard || self.seen.lock().unwrap().iter().any(|n| n.contains(word)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("never heard {word:?}: {:?}", self.notices.lock().unwrap());
    }

    fn end(self) -> Summary {
        self.stopper.stop();
        self.ended()
    }

    /// Waits for the end, but not for ever.
    fn ended(self) -> Summary {
        let start = Instant::now();
        while !self.thread.is_finished() {
            assert!(start.elapsed() < Duration::from_secs(4), "it does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
        self.thread.join().unwrap()
    }

    fn count(&self, word: &str) -> usize {
        let notices = self.notices.lock().unwrap();
        notices.iter().filter(|n| n.contains(word)).count()
    }
}

fn local() -> Option<Address> {
    Some("0".parse().unwrap())
}

/// A host's hello with every capability that QEMU has.
pub fn host_hello() -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([b'h'; 64]);
    bytes.extend([0xff, 0, 0, 0]);
    bytes
}

/// A usbredir packet with a 64-bit id.
pub fn packet(kind: u32, id: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(id.to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// A bulk request.
pub fn bulk(id: u64, endpoint: u8, len: u32, stream: u32, data: &[u8]) -> Vec<u8> {
    let mut payload = vec![endpoint, 0];
    payload.extend((len as u16).to_le_bytes());
    payload.extend(stream.to_le_bytes());
    payload.extend(((len >> 16) as u16).to_le_bytes());
    payload.extend(data);
    packet(101, id, &payload)
}

fn read_hello(from: &mut impl Read) {
    let mut hello = [0; 80];
    from.read_exact(&mut hello).unwrap();
    assert_eq!(hello[..12], [0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0]);
}

fn read_packet(from: &mut impl Read) -> (u32, u64, Vec<u8>) {
    let mut header = [0; 16];
    from.read_exact(&mut header).unwrap();
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
    let mut payload = vec![0; word(4) as usize];
    from.read_exact(&mut payload).unwrap();
    (word(0), u64::from(word(8)), payload)
}

fn kinds(from: &mut impl Read, count: usize) -> Vec<u32> {
    (0..count).map(|_| read_packet(from).0).collect()
}

#[test]
fn a_usbredir_host_is_served_and_another_one_waits_its_turn() {
    let server = Running::start(Config {
        usbredir: local(),
        control: local(),
        ..Config::default()
    });
    let mut host = server.call("usbredir");
    read_hello(&mut host);
    host.write_all(&host_hello()).unwrap();
    assert_eq!(kinds(&mut host, 3), [5, 4, 1]);
    assert_eq!(server.tell("status")["host"], "usbredir");

    let mut second = server.call("usbredir");
    let mut nothing = Vec::new();
    // The end, or a reset because the hello was never read.
    let _ = second.read_to_end(&mut nothing);
    assert_eq!(nothing, b"");
    server.await_word("another host has the device");

    host.write_all(&bulk(7, 0x81, 512 << 10, 3, &[])).unwrap();
    let (kind, id, payload) = read_packet(&mut host);
    assert_eq!((kind, id, payload.len()), (101, 7, 10 + (512 << 10)));
    assert_eq!(payload[..10], [0x81, 0, 0, 0, 3, 0, 0, 0, 8, 0]);
    assert!(payload[10..].iter().all(|b| *b == 3));

    // Later than the request, without anything else happening.
    host.write_all(&bulk(8, 0x81, 15, 0, &[])).unwrap();
    assert_eq!(read_packet(&mut host).1, 8);

    host.write_all(&bulk(9, 0x81, 13, 0, &[])).unwrap();
    server.await_word("in 13");
    assert_eq!(server.tell("unplug")["plugged"], false);
    let (kind, id, payload) = read_packet(&mut host);
    assert_eq!((kind, id, payload[1]), (101, 9, 1));
    assert_eq!(read_packet(&mut host).0, 2);
    assert_eq!(server.tell("plug")["ok"], true);
    host.write_all(&packet(24, 0, &[])).unwrap();
    assert_eq!(kinds(&mut host, 3), [5, 4, 1]);

    host.write_all(&bulk(10, 0x81, 13, 0, &[])).unwrap();
    drop(host);
    server.await_word("bus reset");
    assert_eq!(server.tell("status")["host"], Value::Null);
    let mut third = server.call("usbredir");
    read_hello(&mut third);
    third.write_all(&host_hello()).unwrap();
    assert_eq!(kinds(&mut third, 3), [5, 4, 1]);
    assert_eq!(server.end().hosts, 2);
}

#[test]
fn what_is_no_usbredir_is_dropped() {
    let server = Running::start(Config {
        usbredir: local(),
        ..Config::default()
    });
    let mut host = server.call("usbredir");
    host.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut all = Vec::new();
    let _ = host.read_to_end(&mut all);
    server.await_word("hello");
    assert_eq!(server.end().hosts, 0);
}

#[test]
fn a_server_calls_its_host_and_ends_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    let server = Running::start(Config {
        usbredir: Some(Address::Unix(path.clone())),
        call: true,
        once: true,
        ..Config::default()
    });
    server.await_word("calling again");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (mut host, _) = listener.accept().unwrap();
    read_hello(&mut host);
    host.write_all(&host_hello()).unwrap();
    assert_eq!(kinds(&mut host, 3), [5, 4, 1]);
    drop(host);
    assert_eq!(server.thread.join().unwrap().hosts, 1);
}

#[test]
fn a_peer_that_does_not_read_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lazy.sock");
    let server = Running::start(Config {
        usbredir: Some(Address::Unix(path.clone())),
        ..Config::default()
    });
    let mut host = UnixStream::connect(&path).unwrap();
    host.write_all(&host_hello()).unwrap();
    host.write_all(&bulk(1, 0x81, 32 << 20, 0, &[])).unwrap();
    server.await_word("it does not read");
    drop(host);
    server.end();
    assert!(!path.exists(), "the socket is removed");
}

/// A USB/IP header of 48 bytes.
pub fn words(words: &[u32], setup: [u8; 8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
    bytes.resize(40, 0);
    bytes.extend(setup);
    bytes
}

fn import_request(bus_id: &str) -> Vec<u8> {
    let mut bytes = vec![0x01, 0x11, 0x80, 0x03, 0, 0, 0, 0];
    bytes.extend(bus_id.bytes());
    bytes.resize(40, 0);
    bytes
}

#[test]
fn a_usbip_host_lists_imports_and_loses_the_device() {
    let server = Running::start(Config {
        usbip: local(),
        control: local(),
        once: true,
        ..Config::default()
    });
    let mut lister = server.call("usbip");
    lister.write_all(&[0x01, 0x11, 0x80, 0x05, 0, 0, 0, 0]).unwrap();
    let mut list = vec![0; 8 + 4 + 312 + 4];
    lister.read_exact(&mut list).unwrap();
    assert_eq!(list[..12], [0x01, 0x11, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(list[list.len() - 4..], [8, 6, 0x50, 0]);
    drop(lister);

    let mut host = server.call("usbip");
    host.write_all(&import_request("1-1")).unwrap();
    let mut granted = vec![0; 8 + 312];
    host.read_exact(&mut granted).unwrap();
    assert_eq!(granted[..8], [0x01, 0x11, 0, 3, 0, 0, 0, 0]);

    let mut other = server.call("usbip");
    other.write_all(&import_request("1-1")).unwrap();
    let mut refused = Vec::new();
    other.read_to_end(&mut refused).unwrap();
    assert_eq!(refused, [0x01, 0x11, 0, 3, 0, 0, 0, 1]);

    host.write_all(&words(
        &[1, 5, 0x1_0002, 1, 0, 0, 8, 0, 0, 0],
        *b"\x80\x06\0\x01\0\0\x12\0",
    ))
    .unwrap();
    let mut reply = [0; 56];
    host.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..8], [0, 0, 0, 3, 0, 0, 0, 5]);
    assert_eq!(reply[20..28], [0, 0, 0, 0, 0, 0, 0, 8]);
    assert_eq!(reply[48..], *b"\x80\x06\0\x01\0\0\x12\0");

    host.write_all(&words(&[1, 6, 0x1_0002, 1, 1, 0, 13, 0, 0, 0], [0; 8]))
        .unwrap();
    host.write_all(&words(&[2, 7, 0x1_0002, 0, 1, 6], [0; 8]))
        .unwrap();
    let mut reply = [0; 48];
    host.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..8], [0, 0, 0, 4, 0, 0, 0, 7]);
    assert_eq!(reply[20..24], (-104i32).to_be_bytes());

    assert_eq!(server.tell("unplug")["ok"], true);
    let mut rest = Vec::new();
    let _ = host.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    assert_eq!(server.thread.join().unwrap().hosts, 1);
}

#[test]
fn control_changes_the_device_and_never_breaks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.sock");
    let server = Running::start(Config {
        usbredir: local(),
        control: Some(Address::Unix(path.clone())),
        ..Config::default()
    });
    let status = server.tell("status");
    assert_eq!(status["ok"], true);
    assert_eq!(status["power_state"], "active");
    assert_eq!(server.tell("set temp=51")["temp"], "51");
    assert_eq!(server.tell("status")["temperature_celsius"], 51);
    assert_eq!(server.tell("set temp=auto")["ok"], true);
    let hex = "5a".repeat(4096);
    assert_eq!(server.tell(&format!("write 9 {hex}"))["count"], 1);
    let seen = server.tell("read 0x9 1");
    assert!(seen["hex"].as_str().unwrap().starts_with("5a 5a"), "{seen}");
    assert_eq!(server.tell("log")["log"], serde_json::json!([]));
    assert_eq!(server.tell("log clear")["ok"], true);
    assert!(server.tell("help")["commands"].as_array().unwrap().len() >= 10);
    for bad in [
        "",
        "nosuch",
        "set",
        "set temp",
        "set temp=x",
        "set serial=1",
        "read",
        "read 1",
        "read 0 65",
        "read x 1",
        "write 0",
        "write 0 zz",
        "write 0 00",
        "plug now",
        "log nothing",
        "set fault=echo,temp=3",
    ] {
        let answer = server.tell(bad);
        assert_eq!(answer["ok"], false, "{bad}");
        assert!(!answer["error"].as_str().unwrap().is_empty(), "{bad}");
    }
    let mut raw = UnixStream::connect(&path).unwrap();
    raw.write_all(b"\xff\xfe\nstatus\n").unwrap();
    let mut text = [0; 64];
    raw.read_exact(&mut text).unwrap();
    assert!(std::str::from_utf8(&text).unwrap().contains("not UTF-8"));
    let mut flood = UnixStream::connect(&path).unwrap();
    let _ = flood.write_all(&vec![b'x'; 2 << 20]);
    assert_eq!(server.tell("quit")["ok"], true);
    server.thread.join().unwrap();
    assert!(!path.exists());
}

#[test]
fn addresses_in_use_or_of_the_wrong_kind_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sock");
    let bind = |config: &Config| {
        Server::bind_device(Box::new(Fake::new()), config, Arc::new(|_: &str| {})).map_err(|e| e.to_string())
    };
    let unix = |path: &std::path::Path| Config {
        usbredir: Some(Address::Unix(path.to_path_buf())),
        ..Config::default()
    };
    assert!(bind(&Config::default()).unwrap_err().contains("no way"));
    let tcp_only = Config {
        usbip: Some(Address::Unix(path.clone())),
        ..Config::default()
    };
    assert!(bind(&tcp_only).unwrap_err().contains("TCP only"));
    let first = bind(&unix(&path)).unwrap();
    assert!(bind(&unix(&path)).unwrap_err().contains("in use"));
    drop(first);
    // What a killed server leaves behind does not stand in the way.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(bind(&unix(&path)).unwrap());
    std::fs::write(&path, "precious").unwrap();
    assert!(bind(&unix(&path)).unwrap_err().contains("no socket"));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

fn at(path: &std::path::Path) -> Option<Address> {
    Some(Address::Unix(path.to_path_buf()))
}

/// Reads a little at a time, so that no single write of the other side takes long.
fn trickle(mut from: UnixStream, bytes: usize, pause: Duration) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut some = vec![0; bytes];
        while matches!(from.read(&mut some), Ok(1..)) {
            std::thread::sleep(pause);
        }
    })
}

#[test]
fn a_server_ends_without_its_sockets() {
    let dir = tempfile::tempdir().unwrap();
    let (redir, control) = (dir.path().join("redir"), dir.path().join("control"));
    let start = || {
        Running::start(Config {
            usbredir: at(&redir),
            usbip: local(),
            control: at(&control),
            ..Config::default()
        })
    };
    let server = start();
    std::fs::remove_file(&redir).unwrap();
    std::fs::remove_file(&control).unwrap();
    // What another server has made there since then is not removed.
    let other = start();
    server.end();
    assert!(redir.exists() && control.exists());
    assert_eq!(other.tell("quit")["ok"], true);
    other.ended();
    assert!(!redir.exists() && !control.exists());
}

#[test]
fn a_socket_is_its_owners_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control");
    let server = Running::start(Config {
        usbip: local(),
        control: at(&path),
        ..Config::default()
    });
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(server.tell("status")["ok"], true);
    server.end();
}

#[test]
fn what_is_sent_at_one_time_has_one_time_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("redir");
    let server = Running::start(Config {
        usbredir: at(&path),
        ..Config::default()
    });
    let mut host = UnixStream::connect(&path).unwrap();
    host.write_all(&host_hello()).unwrap();
    // Each of them is read in less than the limit.
    for id in 0..16 {
        host.write_all(&bulk(id, 0x81, 200 << 10, 99, &[])).unwrap();
    }
    host.write_all(&bulk(16, 0x81, 1, 0, &[])).unwrap();
    let reader = trickle(host, 36 << 10, Duration::from_millis(50));
    server.await_word("it does not read");
    reader.join().unwrap();
    server.end();
}

#[test]
fn one_frame_has_one_time_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("redir");
    let server = Running::start(Config {
        usbredir: at(&path),
        ..Config::default()
    });
    let mut host = UnixStream::connect(&path).unwrap();
    host.write_all(&host_hello()).unwrap();
    host.write_all(&bulk(1, 0x81, 8 << 20, 0, &[])).unwrap();
    // The kernel waits anew for each piece of a write.
    let start = Instant::now();
    let reader = trickle(host, 36 << 10, Duration::from_millis(50));
    server.await_word("it does not read");
    assert!(start.elapsed() < Duration::from_secs(3));
    reader.join().unwrap();
    server.end();
}

#[test]
fn a_long_answer_does_not_hold_up_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control");
    let server = Running::start(Config {
        usbip: local(),
        control: at(&path),
        ..Config::default()
    });
    let mut slow = UnixStream::connect(&path).unwrap();
    // About 800 kB.
    slow.write_all(b"read 0 64\n").unwrap();
    let mut first = [0];
    slow.read_exact(&mut first).unwrap();
    let reader = trickle(slow, 4 << 10, Duration::from_millis(50));
    server.end();
    reader.join().unwrap();
}

#[test]
fn a_usbip_connection_gets_one_list() {
    let server = Running::start(Config {
        usbip: local(),
        control: local(),
        ..Config::default()
    });
    let request = [0x01, 0x11, 0x80, 0x05, 0, 0, 0, 0];
    let mut lister = server.call("usbip");
    let start = Instant::now();
    lister.write_all(&request).unwrap();
    let mut all = Vec::new();
    lister.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 8 + 4 + 312 + 4);
    assert!(start.elapsed() < Duration::from_secs(1), "it ends by itself");
    // Somebody who asks on and on without reading is cut off.
    let mut flood = server.call("usbip");
    let many = request.repeat(1 << 10);
    assert!((0..1 << 10).any(|_| flood.write_all(&many).is_err()));
    assert_eq!(server.tell("status")["ok"], true);
    server.end();
}

#[test]
fn only_a_hello_takes_the_device() {
    let server = Running::start(Config {
        usbredir: local(),
        usbip: local(),
        control: local(),
        ..Config::default()
    });
    let mut silent = server.call("usbredir");
    let mut late = server.call("usbredir");
    read_hello(&mut silent);
    read_hello(&mut late);
    assert_eq!(server.tell("status")["host"], Value::Null);
    let mut host = server.call("usbip");
    host.write_all(&import_request("1-1")).unwrap();
    let mut granted = vec![0; 8 + 312];
    host.read_exact(&mut granted).unwrap();
    assert_eq!(granted[..8], [0x01, 0x11, 0, 3, 0, 0, 0, 0]);
    late.write_all(&host_hello()).unwrap();
    server.await_word("was refused: another host has the device");
    // A byte now and then is no hello either.
    let mut nothing = Vec::new();
    let start = Instant::now();
    for byte in host_hello() {
        let _ = silent.write_all(&[byte]);
        if server.count("no hello came") > 0 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(6), "it may wait for ever");
        std::thread::sleep(Duration::from_millis(150));
    }
    let _ = silent.read_to_end(&mut nothing);
    assert_eq!(server.tell("status")["host"], "usbip");
    assert_eq!(server.end().hosts, 1);
}

#[test]
fn idle_control_connections_keep_nobody_out() {
    let server = Running::start(Config {
        usbredir: local(),
        control: local(),
        ..Config::default()
    });
    let mut idle: Vec<TcpStream> = (0..40).map(|_| server.call("control")).collect();
    server.await_word("too many connections");
    let mut host = server.call("usbredir");
    read_hello(&mut host);
    host.write_all(&host_hello()).unwrap();
    assert_eq!(kinds(&mut host, 3), [5, 4, 1]);
    for stream in &mut idle {
        let mut nothing = Vec::new();
        let _ = stream.read_to_end(&mut nothing);
        assert_eq!(nothing, b"");
    }
    assert_eq!(server.tell("status")["host"], "usbredir");
    server.end();
}

#[test]
fn a_host_that_was_called_may_take_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = Running::start(Config {
        usbredir: at(&path),
        call: true,
        ..Config::default()
    });
    let (mut host, _) = listener.accept().unwrap();
    read_hello(&mut host);
    std::thread::sleep(Duration::from_millis(2500));
    host.write_all(&host_hello()).unwrap();
    assert_eq!(kinds(&mut host, 3), [5, 4, 1]);
    server.end();
}

#[test]
fn a_host_is_called_again_once_the_device_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    let server = Running::start(Config {
        usbredir: at(&path),
        usbip: local(),
        call: true,
        ..Config::default()
    });
    let mut first = server.call("usbip");
    first.write_all(&import_request("1-1")).unwrap();
    first.read_exact(&mut [0; 8 + 312]).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    server.await_word("was refused");
    drop(listener.accept().unwrap());
    listener.set_nonblocking(true).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(listener.accept().is_err(), "it calls though it cannot serve");
    assert_eq!(server.count("was refused"), 1);
    drop(first);
    listener.set_nonblocking(false).unwrap();
    let (mut host, _) = listener.accept().unwrap();
    read_hello(&mut host);
    host.write_all(&host_hello()).unwrap();
    assert_eq!(kinds(&mut host, 3), [5, 4, 1]);
    server.end();
}

/// `cargo test --release --lib sim::serve -- --ignored --nocapture` prints the rate.
#[test]
#[ignore = "a measurement"]
fn half_a_megabyte_at_a_time_is_fast() {
    let server = Running::start(Config {
        usbredir: local(),
        ..Config::default()
    });
    let mut host = server.call("usbredir");
    host.set_nodelay(true).unwrap();
    read_hello(&mut host);
    host.write_all(&host_hello()).unwrap();
    kinds(&mut host, 3);
    let rounds = 2000u32;
    let mut answer = vec![0; 26 + (512 << 10)];
    let start = Instant::now();
    for id in 0..rounds {
        host.write_all(&bulk(id.into(), 0x81, 512 << 10, 0, &[])).unwrap();
        host.read_exact(&mut answer).unwrap();
    }
    let reading = start.elapsed();
    let request = bulk(1, 0x02, 512 << 10, 0, &vec![7; 512 << 10]);
    let start = Instant::now();
    for _ in 0..rounds {
        host.write_all(&request).unwrap();
        host.read_exact(&mut answer[..26]).unwrap();
    }
    let writing = start.elapsed();
    let start = Instant::now();
    for id in 0..rounds {
        host.write_all(&bulk(id.into(), 0x81, 1, 0, &[])).unwrap();
        host.read_exact(&mut answer[..27]).unwrap();
    }
    let small = start.elapsed();
    let rate = |took: Duration| f64::from(rounds) * 524_288.0 / 1e6 / took.as_secs_f64();
    println!(
        "IN {:.0} MB/s, OUT {:.0} MB/s, round trip {:.1} us",
        rate(reading),
        rate(writing),
        small.as_secs_f64() * 1e6 / f64::from(rounds)
    );
    assert!(rate(reading) > 300.0 && rate(writing) > 300.0);
    server.end();
}

/// Waits for a real host at a socket that the environment names, for trying things by hand.
#[test]
#[ignore = "by hand: DRIVETHRU_TEST_SOCKET names the socket"]
fn a_host_from_outside_is_served() {
    let Some(path) = std::env::var_os("DRIVETHRU_TEST_SOCKET") else {
        println!("SKIPPED: DRIVETHRU_TEST_SOCKET names no socket");
        return;
    };
    let server = Running::start(Config {
        usbredir: Some(Address::Unix(path.into())),
        ..Config::default()
    });
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
    }
    println!(
        "{:?}\n{:?}",
        server.notices.lock().unwrap(),
        server.seen.lock().unwrap()
    );
    server.end();
}
