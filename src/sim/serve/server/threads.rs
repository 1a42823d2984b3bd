//! The threads around the one that owns the device: they wait, read and decode, and hand over what they have.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use super::link::{Link, Listener};
use super::{Event, Face, Notice};
use crate::sim::serve::control::{self, MAX_LINE_BYTES};
use crate::sim::serve::{Address, ProtocolError, usbip, usbredir};

/// Small packets are read many at a time; longer data goes straight to where it belongs.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// How long a connection may take to its first request, where it has to come by itself.
const FIRST_REQUEST: Duration = Duration::from_secs(10);

/// Pause between two calls to a host that does not answer.
const CALL_AGAIN: Duration = Duration::from_millis(250);

/// Both decoders.
pub trait Decode {
    type Packet;
    fn space(&mut self) -> &mut [u8];
    fn filled(&mut self, count: usize) -> Result<Option<Self::Packet>, ProtocolError>;
}

impl Decode for usbredir::Decoder {
    type Packet = usbredir::Packet;
    fn space(&mut self) -> &mut [u8] {
        Self::space(self)
    }
    fn filled(&mut self, count: usize) -> Result<Option<Self::Packet>, ProtocolError> {
        Self::filled(self, count)
    }
}

impl Decode for usbip::Decoder {
    type Packet = usbip::Request;
    fn space(&mut self) -> &mut [u8] {
        Self::space(self)
    }
    fn filled(&mut self, count: usize) -> Result<Option<Self::Packet>, ProtocolError> {
        Self::filled(self, count)
    }
}

/// Takes connections in until `stop`.
pub fn listen(listener: &Listener, face: Face, events: &SyncSender<Event>, stop: &AtomicBool) {
    loop {
        let accepted = listener.accept();
        if stop.load(Ordering::Acquire) {
            return;
        }
        match accepted {
            Ok(link) => {
                if events.send(Event::Connected { face, link }).is_err() {
                    return;
                }
            }
            // Out of descriptors, or a caller that hung up at once: neither gets better by hurry.
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Calls a host, again and again until it answers; then waits for `again` to call once more.
pub fn call(address: &Address, events: &SyncSender<Event>, again: &Receiver<()>, notice: &Notice) {
    loop {
        let mut complained = false;
        let link = loop {
            match Link::call(address) {
                Ok(link) => break link,
                Err(error) => {
                    if !complained {
                        notice(&format!(
                            "usbredir: {address}: {error}; calling again until it answers"
                        ));
                        complained = true;
                    }
                }
            }
            if !matches!(again.recv_timeout(CALL_AGAIN), Err(RecvTimeoutError::Timeout)) {
                return;
            }
        };
        let face = Face::Usbredir;
        if events.send(Event::Connected { face, link }).is_err() || again.recv().is_err() {
            return;
        }
        if !matches!(again.recv_timeout(CALL_AGAIN), Err(RecvTimeoutError::Timeout)) {
            return;
        }
    }
}

/// Reads a connection to its end. `first` is the packet after which a silent peer is a patient one; `None`: from the start.
pub fn read<D: Decode>(
    link: &Link,
    conn: u64,
    mut decoder: D,
    first: Option<fn(&D::Packet) -> bool>,
    wrap: fn(u64, D::Packet) -> Event,
    events: &SyncSender<Event>,
) {
    let write = Some(super::WRITE_TIMEOUT);
    let mut why = None;
    if first.is_some() {
        // Without a time-out it only stays longer.
        let _ = link.set_timeouts(Some(FIRST_REQUEST), write);
    }
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, link);
    loop {
        let count = match reader.read(decoder.space()) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                why = Some("no request came".to_owned());
                break;
            }
            Err(error) => {
                why = Some(error.to_string());
                break;
            }
        };
        match decoder.filled(count) {
            Ok(None) => {}
            Ok(Some(packet)) => {
                if first.is_some_and(|first| first(&packet)) {
                    let _ = link.set_timeouts(None, write);
                }
                if events.send(wrap(conn, packet)).is_err() {
                    return;
                }
            }
            Err(error) => {
                why = Some(error.to_string());
                break;
            }
        }
    }
    // Nobody is there to hear of it once the server has ended.
    let _ = events.send(Event::Gone { conn, why });
}

/// Serves a control connection: a line in, a line out.
pub fn control(link: &Link, conn: u64, events: &SyncSender<Event>) {
    let mut reader = BufReader::new(link);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => break,
        }
        let whole = line.ends_with(b"\n") || (line.len() as u64) < MAX_LINE_BYTES;
        let answer = match std::str::from_utf8(&line) {
            _ if !whole => Err("the line is too long".to_owned()),
            Err(_) => Err("the line is not UTF-8".to_owned()),
            Ok(text) => {
                let (reply, answer) = sync_channel(1);
                let line = text.to_owned();
                if events.send(Event::Control { line, reply }).is_err() {
                    break;
                }
                match answer.recv() {
                    Ok(answer) => Ok(answer),
                    Err(_) => break,
                }
            }
        };
        let mut text = answer.unwrap_or_else(|why| control::refusal(&why));
        text.push('\n');
        if (&mut &*link).write_all(text.as_bytes()).is_err() || !whole {
            break;
        }
    }
    let _ = events.send(Event::Gone { conn, why: None });
}

/// A thread with a name.
pub fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// A flag that threads share.
pub type Flag = Arc<AtomicBool>;
