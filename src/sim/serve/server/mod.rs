//! Sockets, threads and time: the only part that does anything.

mod engine;
pub(super) mod link;
mod threads;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use self::engine::Engine;
use self::link::{Link, Listener, Waker};
use super::device::Device;
use super::{Address, usbip, usbredir};
use crate::sim::usb::UsbDevice;

/// How long a peer may take to read all that is sent at one time before it is dropped.
const WRITE_TIMEOUT: Duration = if cfg!(test) {
    Duration::from_millis(500)
} else {
    Duration::from_secs(5)
};

/// When a peer has to have read what is sent now.
fn write_deadline() -> Instant {
    Instant::now() + WRITE_TIMEOUT
}

/// Events that wait for the owner of the device; a reader that is ahead waits.
const QUEUE: usize = 16;

/// Hears of what happens, a line each.
type Notice = Arc<dyn Fn(&str) + Send + Sync>;

/// The ways in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    Usbredir,
    Usbip,
    Control,
}

impl Face {
    fn word(self) -> &'static str {
        match self {
            Self::Usbredir => "usbredir",
            Self::Usbip => "usbip",
            Self::Control => "control",
        }
    }
}

/// What the owner of the device hears.
#[derive(Debug)]
enum Event {
    Connected { face: Face, link: Link },
    Redir { conn: u64, packet: usbredir::Packet },
    Ip { conn: u64, request: usbip::Request },
    Control { line: String, reply: SyncSender<String> },
    Gone { conn: u64, why: Option<String> },
    Stop,
}

/// Where and how to serve.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Where USB/IP listens; TCP only.
    pub usbip: Option<Address>,
    /// Where usbredir listens, or whom it calls.
    pub usbredir: Option<Address>,
    /// usbredir calls its address instead of listening there.
    pub call: bool,
    /// Where live control listens.
    pub control: Option<Address>,
    /// End when the first host has gone.
    pub once: bool,
}

/// A server that cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Neither USB/IP nor usbredir.
    #[error("no way for a host to reach the device: neither USB/IP nor usbredir")]
    NoFace,
    /// USB/IP is a protocol over TCP.
    #[error("usbip listens on TCP only, not at {address}")]
    NotTcp {
        /// What was asked for.
        address: Address,
    },
    /// The address cannot be listened at.
    #[error("{face}: {address}: {source}")]
    Bind {
        /// Which way in.
        face: &'static str,
        /// What was asked for.
        address: Address,
        /// Why not.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("no thread: {0}")]
    Thread(#[source] io::Error),
}

/// What a server did in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Hosts that had the device.
    pub hosts: u64,
    /// Commands that reached the simulator since its log was last cleared.
    pub commands: u64,
    /// How long it ran.
    pub elapsed: Duration,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u64| if n == 1 { "" } else { "s" };
        write!(
            f,
            "served {} host{}, {} command{}, in {:.1} s",
            self.hosts,
            plural(self.hosts),
            self.commands,
            plural(self.commands),
            self.elapsed.as_secs_f64()
        )
    }
}

/// Ends a server from another thread.
#[derive(Debug, Clone)]
pub struct Stopper(SyncSender<Event>);

impl Stopper {
    /// Ends it; one that has ended does not mind.
    pub fn stop(&self) {
        let _ = self.0.send(Event::Stop);
    }
}

/// A device and the ways to reach it.
pub struct Server {
    device: Box<dyn Device>,
    listeners: Vec<(Face, Listener)>,
    call: Option<Address>,
    once: bool,
    sender: SyncSender<Event>,
    events: Receiver<Event>,
    notice: Notice,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("listeners", &self.listeners)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Listens at every address of the configuration. Nothing is answered before [`Server::run`]. `notice` hears a line for
    /// each way in, each host and each trouble, from several threads.
    ///
    /// # Errors
    /// An address that cannot be listened at, or none.
    pub fn bind(
        device: UsbDevice,
        config: &Config,
        notice: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        Self::bind_device(Box::new(device), config, Arc::new(notice))
    }

    pub(super) fn bind_device(
        device: Box<dyn Device>,
        config: &Config,
        notice: Notice,
    ) -> Result<Self, ServeError> {
        if config.usbip.is_none() && config.usbredir.is_none() {
            return Err(ServeError::NoFace);
        }
        if let Some(address @ Address::Unix(_)) = &config.usbip {
            return Err(ServeError::NotTcp {
                address: address.clone(),
            });
        }
        let mut listeners = Vec::new();
        for (face, address) in [
            (Face::Usbredir, config.usbredir.as_ref().filter(|_| !config.call)),
            (Face::Usbip, config.usbip.as_ref()),
            (Face::Control, config.control.as_ref()),
        ] {
            let Some(address) = address else { continue };
            let listener = Listener::bind(address).map_err(|source| ServeError::Bind {
                face: face.word(),
                address: address.clone(),
                source,
            })?;
            listeners.push((face, listener));
        }
        let (sender, events) = sync_channel(QUEUE);
        Ok(Self {
            device,
            listeners,
            call: config.usbredir.clone().filter(|_| config.call),
            once: config.once,
            sender,
            events,
            notice,
        })
    }

    /// Where it listens, with the ports that the system chose: the name of the way in and the address.
    pub fn addresses(&self) -> Vec<(&'static str, Address)> {
        self.listeners
            .iter()
            .filter_map(|(face, listener)| Some((face.word(), listener.address().ok()?)))
            .collect()
    }

    /// A handle that ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.sender.clone())
    }

    /// Serves until it is stopped, or with `once` until the first host has gone. Sockets in the file system are removed.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn run(self) -> Result<Summary, ServeError> {
        let notice = Arc::clone(&self.notice);
        for (face, listener) in &self.listeners {
            let Ok(address) = listener.address() else { continue };
            notice(&format!("{}: listening on {address}", face.word()));
            if !listener.is_local() {
                notice(&format!(
                    "{}: warning: every machine that reaches {address} can use the device; nothing asks who it is",
                    face.word()
                ));
            }
        }
        let stop: threads::Flag = Arc::new(AtomicBool::new(false));
        let wakers: Vec<Waker> = self
            .listeners
            .iter()
            .map(|(_, listener)| listener.waker())
            .collect::<io::Result<_>>()
            .map_err(ServeError::Thread)?;
        let mut waiting = Vec::new();
        for (face, listener) in self.listeners {
            let (sender, flag) = (self.sender.clone(), Arc::clone(&stop));
            let body = move || threads::listen(&listener, face, &sender, &flag);
            waiting.push(threads::spawn(face.word(), body).map_err(ServeError::Thread)?);
        }
        let mut again = None;
        if let Some(address) = self.call {
            notice(&format!("usbredir: calling {address}"));
            let (asker, asked) = sync_channel(1);
            again = Some(asker);
            let (sender, flag, notice) = (self.sender.clone(), Arc::clone(&stop), Arc::clone(&notice));
            let body = move || threads::call(&address, &sender, &asked, &flag, &notice);
            // Nobody waits for its end: a call to a host that neither answers nor refuses takes as long as it takes.
            drop(threads::spawn("usbredir", body).map_err(ServeError::Thread)?);
        }
        let engine = Engine::new(self.device, self.sender, notice, self.once, again);
        let summary = engine.run(self.events);
        stop.store(true, Ordering::Release);
        wakers.iter().for_each(Waker::wake);
        for thread in waiting {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        Ok(summary)
    }
}
