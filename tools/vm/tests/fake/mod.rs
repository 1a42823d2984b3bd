//! A stand-in for `drivethru sim serve`: a USB stick of 64 KiB without a serial, over usbredir.
//!
//! It knows just enough for a kernel to find a disk, so that the bench can be tested without the package that it is a part of.
//! The protocol is described in spice's usb-redirection-protocol.md; numbers are little-endian.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
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

/// `sim serve SPEC --usbredir unix:PATH --connect --control unix:PATH --log FILE [--unplugged]`; a spec `broken` ends at once.
pub fn serve(arguments: &[String]) -> io::Result<()> {
    let value = |name: &str| {
        let at = arguments.iter().position(|word| word == name);
        let value = at.and_then(|at| arguments.get(at + 1)).map(String::as_str);
        value.ok_or_else(|| io::Error::other(format!("{name} is missing in {arguments:?}")))
    };
    if arguments.get(2).is_some_and(|spec| spec == "broken") {
        return Err(io::Error::other("no profile broken"));
    }
    assert!(arguments.iter().any(|word| word == "--connect"), "{arguments:?}");
    fs::write(value("--log")?, "")?;
    let socket = |name: &str| Ok::<_, io::Error>(value(name)?.trim_start_matches("unix:").to_owned());
    let stream = UnixStream::connect(socket("--usbredir")?)?;
    let commands = Arc::new(Mutex::new(Vec::new()));
    let to_host = Arc::new(Mutex::new(stream.try_clone()?));

    hello(&to_host)?;
    if !arguments.iter().any(|word| word == "--unplugged") {
        connect(&to_host)?;
    }
    let listener = UnixListener::bind(socket("--control")?)?;
    let (log, out) = (Arc::clone(&commands), Arc::clone(&to_host));
    thread::spawn(move || {
        for control in listener.incoming().flatten() {
            let _ = answer_commands(control, &log, &out);
        }
    });
    carry(stream, &to_host, &commands)
}

type Shared = Arc<Mutex<UnixStream>>;

fn answer_commands(control: UnixStream, log: &Mutex<Vec<String>>, out: &Shared) -> io::Result<()> {
    let mut answers = control.try_clone()?;
    for line in BufReader::new(control).lines() {
        let answer = match line?.as_str() {
            "unplug" => packet(out, 2, 0, &[]).map(|()| "{\"plugged\":false}".to_owned())?,
            "plug" => connect(out).map(|()| "{\"plugged\":true}".to_owned())?,
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
                let (request, of, wanted) = (
                    payload[1],
                    payload[2],
                    usize::from(payload[8]) | usize::from(payload[9]) << 8,
                );
                let answer: Option<Vec<u8>> = match (of, request, payload[5]) {
                    (0x80, 6, 1) => Some(DEVICE.into()),
                    (0x80, 6, 2) => Some(CONFIGURATION.into()),
                    (0x80, 0, _) => Some(vec![0, 0]),
                    (0xa1, 0xfe, _) => Some(vec![0]), // one unit
                    (0x02 | 0x21, ..) => Some(Vec::new()),
                    _ => None,
                };
                payload.truncate(10);
                payload[3] = if answer.is_some() { 0 } else { STALL };
                let mut data = answer.unwrap_or_default();
                data.truncate(wanted);
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
                    if let Some(operation) = stick.take(&data) {
                        let entry = format!("{{\"operation\":{operation}}}");
                        log.lock().expect("nobody panics").push(entry);
                    }
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
