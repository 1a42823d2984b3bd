//! A stand-in for `drivethru sim serve`: a USB stick of 64 KiB without a serial, over usbredir or USB/IP.
//!
//! It knows just enough for a kernel to find a disk, so that the bench can be tested without the package that it is a part of.
//! usbredir is described in its usb-redirection-protocol.md; numbers are little-endian.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Capabilities: device version (bit 1), acknowledged disconnect (3), packet sizes (4), 64-bit ids (5), 32-bit lengths (6).
const CAPABILITIES: u32 = 0b111_1010;
const BLOCKS: u32 = 128;
const BLOCK_BYTES: usize = 512;
/// bulk IN 1, bulk OUT 2
const BULK_IN: u8 = 0x81;
const BULK_OUT: u8 = 0x02;
const STALL: u8 = 4;

const DEVICE: [u8; 18] = [18, 1, 0, 2, 0, 0, 0, 64, 0x34, 0x12, 0x78, 0x56, 0, 1, 0, 0, 0, 1];
const CONFIGURATION: [u8; 32] = [
    9, 2, 32, 0, 1, 1, 0, 0x80, 50, // one interface, bus-powered
    9, 4, 0, 0, 2, 8, 6, 0x50, 0, // mass storage, SCSI, bulk-only
    7, 5, BULK_IN, 2, 0, 2, 0, //
    7, 5, BULK_OUT, 2, 0, 2, 0,
];

/// `sim serve SPEC (--usbredir unix:PATH --connect | --usbip ADDR) --control unix:PATH --log FILE [--unplugged]`; a spec `broken` ends at once.
pub fn serve(arguments: &[String]) -> io::Result<()> {
    let value = |name: &str| {
        let at = arguments.iter().position(|word| word == name);
        let value = at.and_then(|at| arguments.get(at + 1)).map(String::as_str);
        value.ok_or_else(|| io::Error::other(format!("{name} is missing in {arguments:?}")))
    };
    if arguments.get(2).is_some_and(|spec| spec == "broken") {
        return Err(io::Error::other("no profile broken"));
    }
    fs::write(value("--log")?, "")?;
    let socket = |name: &str| Ok::<_, io::Error>(value(name)?.trim_start_matches("unix:").to_owned());
    let has = |name: &str| arguments.iter().any(|word| word == name);
    let log = Arc::new(Mutex::new(Vec::new()));
    let listener = UnixListener::bind(socket("--control")?)?;
    let answer = |cable: &Cable| {
        let (log, cable) = (Arc::clone(&log), cable.clone());
        thread::spawn(move || {
            for control in listener.incoming().flatten() {
                let _ = answer_commands(control, &log, &cable);
            }
        });
    };
    if has("--usbip") {
        let hosts = TcpListener::bind(value("--usbip")?)?;
        let plug = Arc::new(Plug::default());
        plug.is_in.store(!has("--unplugged"), Ordering::SeqCst);
        answer(&Cable::UsbIp(Arc::clone(&plug)));
        return serve_usbip(&hosts, &plug, &log);
    }
    assert!(has("--connect"), "{arguments:?}");
    let stream = UnixStream::connect(socket("--usbredir")?)?;
    let to_host = Arc::new(Mutex::new(stream.try_clone()?));
    hello(&to_host)?;
    let cable = Cable::UsbRedir(Arc::clone(&to_host));
    if !has("--unplugged") {
        cable.plug()?;
    }
    answer(&cable);
    carry(stream, &to_host, &log)
}

type Shared = Arc<Mutex<UnixStream>>;

fn answer_commands(control: UnixStream, log: &Mutex<Vec<String>>, cable: &Cable) -> io::Result<()> {
    let mut answers = control.try_clone()?;
    for line in BufReader::new(control).lines() {
        let answer = match line?.as_str() {
            "unplug" => cable.unplug().map(|()| "{\"plugged\":false}".to_owned())?,
            "plug" => cable.plug().map(|()| "{\"plugged\":true}".to_owned())?,
            "log" => format!("{{\"log\":[{}]}}", log.lock().expect("nobody panics").join(",")),
            "log clear" => {
                log.lock().expect("nobody panics").clear();
                "{}".to_owned()
            }
            other => format!("{{\"error\":\"no command {other}\"}}"),
        };
        writeln!(answers, "{answer}")?;
    }
    Ok(())
}

fn packet(out: &Shared, kind: u32, id: u64, payload: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::from(kind.to_le_bytes());
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(id.to_le_bytes());
    bytes.extend(payload);
    out.lock().expect("nobody panics").write_all(&bytes)
}

/// The only packet with an id of 32 bits.
fn hello(out: &Shared) -> io::Result<()> {
    let mut bytes = Vec::new();
    for number in [0, 68, 0] {
        bytes.extend(u32::to_le_bytes(number));
    }
    bytes.extend([0; 64]);
    bytes.extend(CAPABILITIES.to_le_bytes());
    out.lock().expect("nobody panics").write_all(&bytes)
}

fn connect(out: &Shared) -> io::Result<()> {
    describe(out)?;
    let mut payload = vec![2, 0, 0, 0]; // high speed, class by interface
    payload.extend(DEVICE.get(8..14).expect("ids and version"));
    packet(out, 1, 0, &payload)
}

/// Endpoints (0 to 15 OUT, 16 to 31 IN) and interfaces.
fn describe(out: &Shared) -> io::Result<()> {
    let (mut kinds, mut sizes) = ([255_u8; 32], [0_u16; 32]);
    for (index, kind, size) in [(0, 0, 64), (16, 0, 64), (2, 2, 512), (17, 2, 512)] {
        kinds[index] = kind;
        sizes[index] = size;
    }
    let mut payload = Vec::from(kinds);
    payload.extend([0; 64]); // intervals, interfaces
    payload.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
    packet(out, 5, 0, &payload)?;
    let mut payload = vec![0; 132];
    payload[0] = 1; // one interface, number 0
    payload[36] = 8;
    payload[68] = 6;
    payload[100] = 0x50;
    packet(out, 4, 0, &payload)
}

/// Reads packets until the emulator is gone.
fn carry(mut from: UnixStream, out: &Shared, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut stick = Stick::default();
    let mut is_hello = true;
    loop {
        let mut head = vec![0; if is_hello { 12 } else { 16 }];
        if from.read_exact(&mut head).is_err() {
            return Ok(());
        }
        is_hello = false;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let (kind, len) = (word(0), word(4));
        let high = if head.len() == 16 { word(12) } else { 0 };
        let id = u64::from(word(8)) | u64::from(high) << 32;
        let mut payload = vec![0; len as usize];
        from.read_exact(&mut payload)?;
        match kind {
            3 => stick = Stick::default(),
            6 => {
                describe(out)?;
                packet(out, 8, id, &[0, payload[0]])?;
            }
            7 => packet(out, 8, id, &[0, 1])?,
            9 => packet(out, 11, id, &[0, payload[0], payload[1]])?,
            10 => packet(out, 11, id, &[0, payload[0], 0])?,
            21 => {} // what it would take back has been answered
            100 => {
                let size = payload[8..10].to_vec();
                let setup = [
                    payload[2], payload[1], payload[4], payload[5], payload[6], payload[7], size[0], size[1],
                ];
                let answer = answer_control(setup);
                payload.truncate(10);
                payload[3] = if answer.is_some() { 0 } else { STALL };
                let data = answer.unwrap_or_default();
                payload[8..10].copy_from_slice(&(data.len() as u16).to_le_bytes());
                payload.extend(data);
                packet(out, 100, id, &payload)?;
            }
            101 => {
                let wanted =
                    usize::from(payload[2]) | usize::from(payload[3]) << 8 | usize::from(payload[8]) << 16;
                let data = payload.split_off(10);
                let mut answer = Vec::new();
                if payload[0] == BULK_OUT {
                    note(log, stick.take(&data));
                } else {
                    answer = stick.give(wanted);
                    let len = answer.len() as u32;
                    payload[2..4].copy_from_slice(&(len as u16).to_le_bytes());
                    payload[8..10].copy_from_slice(&((len >> 16) as u16).to_le_bytes());
                }
                payload.extend(answer);
                packet(out, 101, id, &payload)?;
            }
            _ => {}
        }
    }
}

/// Standard and class requests; `None` stalls.
fn answer_control(setup: [u8; 8]) -> Option<Vec<u8>> {
    let mut answer: Vec<u8> = match (setup[0], setup[1], setup[3]) {
        (0x80, 6, 1) => DEVICE.into(),
        (0x80, 6, 2) => CONFIGURATION.into(),
        (0x80, 0, _) => vec![0, 0],
        (0xa1, 0xfe, _) => vec![0], // one unit
        (0x00..=0x02 | 0x21, ..) => Vec::new(),
        _ => return None,
    };
    answer.truncate(usize::from(setup[6]) | usize::from(setup[7]) << 8);
    Some(answer)
}

fn note(log: &Mutex<Vec<String>>, operation: Option<u8>) {
    if let Some(operation) = operation {
        let entry = format!("{{\"operation\":{operation}}}");
        log.lock().expect("nobody panics").push(entry);
    }
}

/// The same stick over USB/IP (kernel documentation, "USB/IP protocol"), where numbers are big-endian. Every connection is
/// served until the plug is pulled.
fn serve_usbip(listener: &TcpListener, plug: &Plug, log: &Mutex<Vec<String>>) -> io::Result<()> {
    for stream in listener.incoming() {
        let stream = stream?;
        let mut request = [0; 40];
        (&stream).read_exact(&mut request)?;
        let is_in = plug.is_in.load(Ordering::SeqCst);
        let mut reply = vec![1, 0x11, 0, 3, 0, 0, 0, u8::from(!is_in)];
        if is_in {
            *plug.peer.lock().expect("nobody panics") = Some(stream.try_clone()?);
            let mut record = vec![0; 312];
            record[0] = b'/';
            record[256..259].copy_from_slice(b"1-1");
            record[291] = 1; // bus 1,
            record[295] = 2; // device 2,
            record[299] = 3; // high speed
            record[300..306].copy_from_slice(&[0x12, 0x34, 0x56, 0x78, 1, 0]);
            record[309..312].copy_from_slice(&[1, 1, 1]);
            reply.extend(record);
        }
        (&stream).write_all(&reply)?;
        if is_in {
            // Its end is an error here, and none of ours.
            let _ = carry_urbs(&stream, log);
        }
    }
    Ok(())
}

fn carry_urbs(mut stream: &TcpStream, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut stick = Stick::default();
    loop {
        let mut head = [0; 48];
        stream.read_exact(&mut head)?;
        let word = |index: usize| u32::from_be_bytes(head[index * 4..][..4].try_into().expect("four bytes"));
        let (command, sequence, is_in, endpoint, len) =
            (word(0), word(1), word(3) == 1, word(4), word(6) as usize);
        let mut out = vec![0; if command == 1 && !is_in { len } else { 0 }];
        stream.read_exact(&mut out)?;
        let answer = match (command, endpoint) {
            (2, _) => Some(Vec::new()), // what it would take back has been answered
            (_, 0) => answer_control(head[40..48].try_into().expect("eight bytes")),
            _ if is_in => Some(stick.give(len)),
            _ => {
                note(log, stick.take(&out));
                Some(Vec::new())
            }
        };
        let status = if answer.is_some() { 0 } else { -32_i32 };
        let answer = answer.unwrap_or_default();
        let moved = if is_in { answer.len() } else { out.len() };
        let mut reply = vec![0; 48];
        for (index, number) in [
            (0, command + 2),
            (1, sequence),
            (5, status as u32),
            (6, moved as u32),
        ] {
            reply[index * 4..][..4].copy_from_slice(&number.to_be_bytes());
        }
        if command == 2 {
            reply[24..28].fill(0);
        }
        reply.extend(answer);
        stream.write_all(&reply)?;
    }
}

/// The plug, for USB/IP.
#[derive(Default)]
struct Plug {
    is_in: AtomicBool,
    peer: Mutex<Option<TcpStream>>,
}

/// How it is plugged in and out.
#[derive(Clone)]
enum Cable {
    UsbRedir(Shared),
    UsbIp(Arc<Plug>),
}

impl Cable {
    fn plug(&self) -> io::Result<()> {
        match self {
            Self::UsbRedir(out) => connect(out),
            Self::UsbIp(plug) => {
                plug.is_in.store(true, Ordering::SeqCst);
                Ok(())
            }
        }
    }

    fn unplug(&self) -> io::Result<()> {
        match self {
            Self::UsbRedir(out) => packet(out, 2, 0, &[]),
            Self::UsbIp(plug) => {
                plug.is_in.store(false, Ordering::SeqCst);
                match plug.peer.lock().expect("nobody panics").take() {
                    Some(peer) => peer.shutdown(Shutdown::Both),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The bulk-only side of it: what it has to send is worked out when the command comes.
#[derive(Default)]
struct Stick {
    data: Option<Vec<u8>>,
    status: Vec<u8>,
}

impl Stick {
    /// A command block wrapper; its operation code. Data of other commands there are none: it is write-protected.
    fn take(&mut self, wrapper: &[u8]) -> Option<u8> {
        if wrapper.len() != 31 || !wrapper.starts_with(b"USBC") {
            return None;
        }
        let wanted = u32::from_le_bytes(wrapper.get(8..12)?.try_into().ok()?) as usize;
        let cdb = wrapper.get(15..31)?;
        let last = (BLOCKS - 1).to_be_bytes();
        let size = (BLOCK_BYTES as u32).to_be_bytes();
        let answer = match cdb[0] {
            0x00 | 0x1b | 0x1e | 0x35 => Some(Vec::new()),
            0x03 => Some(
                [
                    &[0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0],
                    [0; 4].as_slice(),
                ]
                .concat(),
            ),
            0x12 if cdb[1] == 0 => Some(
                [
                    &[0, 0x80, 4, 2, 31, 0, 0, 0],
                    b"Fake    Stick           1.0 ".as_slice(),
                ]
                .concat(),
            ),
            0x1a => Some(vec![3, 0, 0x80, 0]),
            0x25 => Some([last, size].concat()),
            0x28 => {
                let blocks = usize::from(cdb[7]) << 8 | usize::from(cdb[8]);
                Some(vec![0; blocks * BLOCK_BYTES])
            }
            _ => None,
        };
        let failed = answer.is_none();
        let mut data = answer.unwrap_or_default();
        data.truncate(wanted);
        let left = (wanted - data.len()) as u32;
        self.status = [
            b"USBS".as_slice(),
            wrapper.get(4..8)?,
            &left.to_le_bytes(),
            &[u8::from(failed)],
        ]
        .concat();
        self.data = (wanted > 0).then_some(data);
        Some(cdb[0])
    }

    /// Data first, if any were asked for, then status.
    fn give(&mut self, room: usize) -> Vec<u8> {
        let mut bytes = match self.data.take() {
            Some(data) => data,
            None => std::mem::take(&mut self.status),
        };
        bytes.truncate(room);
        bytes
    }
}
