//! The threads around the one that owns the device: they wait, read and decode, and hand over what they have.

use std::io::{BufRead, BufReader, Read};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::link::{Link, Listener};
use super::{Event, Face, Notice, write_deadline};
use crate::sim::serve::control::{self, MAX_LINE_BYTES};
use crate::sim::serve::{Address, Decode, Frame};

/// Small packets are read many at a time; longer data goes straight to where it belongs.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// How long a connection may take until it has asked for the device, where that has to come by itself.
pub const FIRST_REQUEST: Duration = if cfg!(test) {
    Duration::from_secs(2)
} else {
    Duration::from_secs(10)
};

/// How long a control connection may take to its next command.
const CONTROL_IDLE: Duration = if cfg!(test) {
    Duration::from_secs(2)
} else {
    Duration::from_secs(300)
};

/// Pause between two calls to a host that does not answer.
const CALL_AGAIN: Duration = Duration::from_millis(250);

/// The longest pause between two calls to a host that answers and soon is gone again; a connection longer than that is none
/// of them.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Reads a connection up to a point of time, in however many pieces it comes.
struct Until<'a> {
    link: &'a Link,
    deadline: Option<Instant>,
}

impl<'a> Until<'a> {
    /// No limit yet.
    fn new(link: &'a Link) -> Self {
        Self { link, deadline: None }
    }

    /// All that comes has to come within this time from now.
    fn within(&mut self, limit: Duration) {
        self.deadline = Some(Instant::now() + limit);
    }

    /// A silent peer is a patient one from now on.
    fn for_ever(&mut self) -> std::io::Result<()> {
        match self.deadline.take() {
            Some(_) => self.link.set_read_timeout(None),
            None => Ok(()),
        }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(std::io::ErrorKind::WouldBlock.into());
            }
            self.link.set_read_timeout(Some(left))?;
        }
        (&mut &*self.link).read(buffer)
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
pub fn call(
    address: &Address,
    events: &SyncSender<Event>,
    again: &Receiver<()>,
    stop: &AtomicBool,
    notice: &Notice,
) {
    let mut pause = CALL_AGAIN;
    loop {
        let mut complained = false;
        let link = loop {
            let called = Link::call(address);
            if stop.load(Ordering::Acquire) {
                return;
            }
            match called {
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
        let answered = Instant::now();
        if events.send(Event::Connected { face, link }).is_err() || again.recv().is_err() {
            return;
        }
        if !matches!(again.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
            return;
        }
        pause = if answered.elapsed() > LONGEST_PAUSE + pause {
            CALL_AGAIN
        } else {
            LONGEST_PAUSE.min(pause * 2)
        };
    }
}

/// Reads a connection to its end. What a host begins with has to come within `limit`; later a silent peer is a patient one.
pub fn read<D: Decode>(
    link: &Link,
    conn: u64,
    mut decoder: D,
    limit: Option<Duration>,
    wrap: fn(u64, D::Packet) -> Event,
    events: &SyncSender<Event>,
) {
    let mut why = None;
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, Until::new(link));
    if let Some(limit) = limit {
        reader.get_mut().within(limit);
    }
    loop {
        let count = match reader.read(decoder.space()) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                why = Some(format!("no {} came", D::FIRST));
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
                if D::is_first(&packet)
                    && let Err(error) = reader.get_mut().for_ever()
                {
                    why = Some(error.to_string());
                    break;
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
    let mut reader = BufReader::new(Until::new(link));
    loop {
        reader.get_mut().within(CONTROL_IDLE);
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
        let frame = Frame {
            head: text.into_bytes(),
            data: Vec::new(),
        };
        if link.send(&frame, write_deadline()).is_err() || !whole {
            link.shutdown(Shutdown::Both);
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
