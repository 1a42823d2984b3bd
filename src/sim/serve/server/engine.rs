//! The owner of the device: everything that happens to it happens here, one thing after the other.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::link::Link;
use super::{Event, Face, Notice, Summary, threads, write_deadline};
use crate::sim::serve::device::Device;
use crate::sim::serve::{Frame, ProtocolError, control, usbip, usbredir};

/// Connections at one time, of each way in.
const MAX_CONNECTIONS: usize = 32;

/// For what a connection is told before its host has the device. Any socket takes that at once: nothing was sent before.
const SHORT_PATIENCE: Duration = Duration::from_millis(100);

/// Why a second host is refused.
const TAKEN: &str = "another host has the device";

/// The shortest wait for a device whose time has come, but that has nothing to say.
const SHORTEST_WAIT: Duration = Duration::from_micros(200);

/// What is spoken on a connection.
#[derive(Debug)]
enum Talk {
    Redir(Box<usbredir::Session>),
    /// `None` before the import.
    Ip(Option<Box<usbip::Session>>),
    Control,
}

#[derive(Debug)]
struct Conn {
    link: Link,
    talk: Talk,
    peer: String,
    thread: JoinHandle<()>,
}

impl Conn {
    fn face(&self) -> Face {
        match self.talk {
            Talk::Redir(_) => Face::Usbredir,
            Talk::Ip(_) => Face::Usbip,
            Talk::Control => Face::Control,
        }
    }

    fn send(&self, frame: &Frame, deadline: Instant) -> Result<(), String> {
        self.link
            .send(frame, deadline)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::TimedOut => "it does not read".to_owned(),
                _ => error.to_string(),
            })
    }
}

/// State of the server.
pub struct Engine {
    device: Box<dyn Device>,
    sender: SyncSender<Event>,
    notice: Notice,
    once: bool,
    /// Asks the caller of a host to call again.
    again: Option<SyncSender<()>>,
    /// The caller's last call is over.
    caller_waits: bool,
    start: Instant,
    conns: BTreeMap<u64, Conn>,
    next_conn: u64,
    /// The connection whose host has the device.
    holder: Option<u64>,
    hosts: u64,
    stop: bool,
}

impl Engine {
    pub fn new(
        device: Box<dyn Device>,
        sender: SyncSender<Event>,
        notice: Notice,
        once: bool,
        again: Option<SyncSender<()>>,
    ) -> Self {
        Self {
            device,
            sender,
            notice,
            once,
            again,
            caller_waits: false,
            start: Instant::now(),
            conns: BTreeMap::new(),
            next_conn: 0,
            holder: None,
            hosts: 0,
            stop: false,
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Serves until something ends it.
    pub fn run(mut self, events: Receiver<Event>) -> Summary {
        let mut idle_due = None;
        while !self.stop {
            let due = self.device.next_due();
            let event = match due {
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => {
                    let mut wait = at.saturating_sub(self.now());
                    if wait.is_zero() && idle_due == due {
                        wait = SHORTEST_WAIT;
                    }
                    events.recv_timeout(wait)
                }
            };
            idle_due = None;
            match event {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => idle_due = due,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.pump();
        }
        self.end(events)
    }

    fn end(mut self, events: Receiver<Event>) -> Summary {
        let conns = std::mem::take(&mut self.conns);
        for conn in conns.values() {
            // An answer that is on its way to a control connection still gets there.
            conn.link.shutdown(match conn.talk {
                Talk::Control => Shutdown::Read,
                _ => Shutdown::Both,
            });
        }
        drop(events);
        drop(self.again.take());
        for conn in conns.into_values() {
            let _ = conn.thread.join();
        }
        let target = self.device.target();
        let commands = target.log().len() as u64 + target.log_dropped();
        Summary {
            hosts: self.hosts,
            commands,
            elapsed: self.start.elapsed(),
        }
    }

    fn take(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Connected { face, link } => self.connected(face, link),
            Event::Redir { conn, packet } => {
                let Some(Conn {
                    talk: Talk::Redir(session),
                    ..
                }) = self.conns.get_mut(&conn)
                else {
                    return;
                };
                let before = session.greeted();
                let result = session.receive(self.device.as_mut(), packet, now);
                let greets = !before && session.greeted();
                if greets && self.holder.is_some() {
                    return self.refuse_conn(conn, TAKEN);
                }
                if greets {
                    self.arrived(conn);
                }
                self.ended_by(conn, result);
            }
            Event::Ip { conn, request } => self.request(conn, request, now),
            Event::Control { line, reply } => {
                let host = self.holder.and_then(|id| self.conns.get(&id));
                let host = host.map(|conn| conn.face().word());
                let answer = control::execute(self.device.as_mut(), &line, host, now);
                self.stop |= answer.quit;
                // Who hung up does not want to know.
                let _ = reply.send(answer.line);
            }
            Event::Gone { conn, why } => self.drop_conn(conn, why.as_deref()),
            Event::Stop => self.stop = true,
        }
    }

    fn ended_by(&mut self, conn: u64, result: Result<(), ProtocolError>) {
        if let Err(error) = result {
            self.drop_conn(conn, Some(&error.to_string()));
        }
    }

    fn connected(&mut self, face: Face, link: Link) {
        let peer = link.peer();
        let present = self.conns.values().filter(|conn| conn.face() == face).count();
        if present >= MAX_CONNECTIONS {
            return self.refuse(face, &link, "there are too many connections");
        }
        if face == Face::Usbredir && self.holder.is_some() {
            return self.refuse(face, &link, TAKEN);
        }
        // An emulator that was called says hello when its guest has a use for the device; it waits with nobody behind it.
        let called = face == Face::Usbredir && self.again.is_some();
        let limit = (!called).then_some(threads::FIRST_REQUEST);
        let conn = self.next_conn;
        self.next_conn += 1;
        let events = self.sender.clone();
        let thread = link.try_clone().and_then(|reading| {
            threads::spawn(face.word(), move || match face {
                Face::Usbredir => {
                    let wrap = |conn, packet| Event::Redir { conn, packet };
                    threads::read(&reading, conn, usbredir::Decoder::new(), limit, wrap, &events);
                }
                Face::Usbip => {
                    let wrap = |conn, request| Event::Ip { conn, request };
                    threads::read(&reading, conn, usbip::Decoder::new(), limit, wrap, &events);
                }
                Face::Control => threads::control(&reading, conn, &events),
            })
        });
        let thread = match thread {
            Ok(thread) => thread,
            Err(error) => return self.refuse(face, &link, &error.to_string()),
        };
        let mut hello = None;
        let talk = match face {
            Face::Usbredir => {
                let mut session = Box::new(usbredir::Session::new());
                hello = session.next_frame();
                Talk::Redir(session)
            }
            Face::Usbip => Talk::Ip(None),
            Face::Control => Talk::Control,
        };
        let entry = Conn {
            link,
            talk,
            peer,
            thread,
        };
        let sent = hello.map_or(Ok(()), |hello| {
            entry.send(&hello, Instant::now() + SHORT_PATIENCE)
        });
        self.conns.insert(conn, entry);
        if let Err(why) = sent {
            self.drop_conn(conn, Some(&why));
        }
    }

    /// Hangs up on who has just connected.
    fn refuse(&mut self, face: Face, link: &Link, why: &str) {
        (self.notice)(&format!("{}: {} was refused: {why}", face.word(), link.peer()));
        link.shutdown(Shutdown::Both);
        self.call_is_over(face);
    }

    /// Hangs up on a host that asks for the device and does not get it.
    fn refuse_conn(&mut self, id: u64, why: &str) {
        if let Some(conn) = self.conns.get(&id) {
            (self.notice)(&format!(
                "{}: {} was refused: {why}",
                conn.face().word(),
                conn.peer
            ));
        }
        self.drop_conn(id, None);
    }

    /// A host has the device now.
    fn arrived(&mut self, conn: u64) {
        self.holder = Some(conn);
        self.hosts += 1;
        if let Some(conn) = self.conns.get(&conn) {
            (self.notice)(&format!("{}: {} is connected", conn.face().word(), conn.peer));
        }
    }

    fn request(&mut self, id: u64, request: usbip::Request, now: Duration) {
        let busy = self.holder.is_some();
        let deadline = Instant::now() + SHORT_PATIENCE;
        let device = self.device.as_mut();
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let Talk::Ip(session) = &mut conn.talk else { return };
        match (session, request) {
            (Some(session), request) => {
                let result = session.receive(device, request, now);
                self.ended_by(id, result);
            }
            (None, usbip::Request::List) => {
                // One list to a connection, as usbipd does it: who asks again and again without reading waits for nobody.
                let sent = conn.send(&usbip::answer_list(device), deadline);
                self.drop_conn(id, sent.err().as_deref());
            }
            (session @ None, usbip::Request::Import { bus_id }) => {
                match usbip::answer_import(device, &bus_id, busy) {
                    usbip::Granted::Yes(frame) => {
                        *session = Some(Box::new(usbip::Session::new()));
                        let sent = conn.send(&frame, deadline);
                        self.arrived(id);
                        if let Err(why) = sent {
                            self.drop_conn(id, Some(&why));
                        }
                    }
                    usbip::Granted::No(frame, why) => {
                        // The connection ends whether or not the peer hears why.
                        let _ = conn.send(&frame, deadline);
                        self.refuse_conn(id, why);
                    }
                }
            }
            // The decoder lets no transfer come before an import.
            (None, _) => self.drop_conn(id, Some("a transfer without an import")),
        }
    }

    /// Ends a connection. The device is unplugged from its host, but keeps its power.
    fn drop_conn(&mut self, id: u64, why: Option<&str>) {
        let Some(conn) = self.conns.remove(&id) else {
            return;
        };
        conn.link.shutdown(Shutdown::Both);
        let face = conn.face();
        let held = self.holder == Some(id);
        match why {
            Some(why) => (self.notice)(&format!("{}: {}: {why}", face.word(), conn.peer)),
            None if held => (self.notice)(&format!("{}: {} is gone", face.word(), conn.peer)),
            None => {}
        }
        if held {
            self.holder = None;
            let now = self.now();
            self.device.bus_reset(now);
            self.discard(now);
            self.stop |= self.once;
        }
        self.call_is_over(face);
    }

    /// A connection has ended. A host is called again once nobody has the device: before, it could only be refused.
    fn call_is_over(&mut self, face: Face) {
        let Some(again) = &self.again else { return };
        self.caller_waits |= face == Face::Usbredir;
        if self.caller_waits && self.holder.is_none() {
            self.caller_waits = false;
            // It waits for one word after each connection.
            let _ = again.try_send(());
        }
    }

    /// Transfers whose host is gone.
    fn discard(&mut self, now: Duration) {
        while self.device.finished(now).is_some() {}
    }

    /// Carries what the device has to say to its host.
    fn pump(&mut self) {
        let now = self.now();
        let device = self.device.as_mut();
        let Some(id) = self.holder else {
            return self.discard(now);
        };
        let Some(conn) = self.conns.get_mut(&id) else {
            self.holder = None;
            return self.discard(now);
        };
        let mut frames = Vec::new();
        let leave = match &mut conn.talk {
            Talk::Redir(session) => {
                session.pump(device, now);
                frames.extend(std::iter::from_fn(|| session.next_frame()));
                None
            }
            Talk::Ip(Some(session)) => {
                session.pump(device, now);
                frames.extend(std::iter::from_fn(|| session.next_frame()));
                // A port learns of an empty plug by the end of the connection.
                (!device.plugged()).then_some("the device is unplugged")
            }
            Talk::Ip(None) | Talk::Control => None,
        };
        // One time for all of them: control connections wait as long.
        let deadline = write_deadline();
        let failed = frames.iter().find_map(|frame| conn.send(frame, deadline).err());
        if let Some(why) = failed {
            self.drop_conn(id, Some(&why));
        } else if let Some(why) = leave {
            self.drop_conn(id, Some(why));
        }
    }
}
