//! Whole behaviours of the drive room, judged by what really arrived at the simulated target.
//!
//! Each test builds a [`Dock`]: one simulated bridge and drive that outlives the handles on it, like a dock on a desk
//! that one process after another opens. What the tests assert is the target's own log of CDBs, read here by a few
//! lines of their own and not by the product's naming code.

mod belief;
mod cost;
mod forms;
mod guard;
mod harm;
mod health;
mod replay;
mod sleep;
mod trim;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use drivethru::bridge::memory::{BridgeKey, Memory, Remembered};
use drivethru::drive::temperature::TempReport;
use drivethru::drive::{Care, Drive, DriveError, OpenOptions};
use drivethru::sys::NodeFacts;
use drivethru::time::SharedClock;
use drivethru::transport::sim::SimTransport;
use drivethru::transport::{
    Command, Completion, Data, Limits, Recovery, Tag, Transport, TransportError, execute,
};

/// Profiles with a drive that speaks ATA.
const ATA_PROFILES: [&str; 5] = [
    "asm1051-usb2",
    "hdd",
    "hdd-4kn",
    "mushkin-ventura-ultra-120gb",
    "ssd",
];

/// A bridge and drive that stay while handles come and go.
#[derive(Clone)]
struct Dock {
    sim: Arc<Mutex<SimTransport>>,
    sent: Arc<Mutex<Vec<Command>>>,
    facts: NodeFacts,
}

/// A handle on a [`Dock`]; it notes each command with its data before the target gets it.
struct Plug {
    dock: Dock,
    name: String,
}

impl Dock {
    fn new(spec: &str) -> Self {
        let sim = SimTransport::open(&format!("sim:{spec}")).expect("a profile");
        let facts = sim.facts();
        Self {
            sim: Arc::new(Mutex::new(sim)),
            sent: Arc::default(),
            facts,
        }
    }

    /// The same, but the kernel has cached no VPD page: it cannot tell flash from platters.
    fn of_unknown_media(spec: &str) -> Self {
        let mut dock = Self::new(spec);
        dock.facts.scsi.vpd_pages.clear();
        dock
    }

    fn sim(&self) -> MutexGuard<'_, SimTransport> {
        self.sim.lock().expect("no test panicked in here")
    }

    fn plug(&self) -> Box<dyn Transport> {
        let name = self.sim().device().to_owned();
        Box::new(Plug {
            dock: self.clone(),
            name,
        })
    }

    fn open(&self, options: &OpenOptions, care: Care) -> Result<Drive, DriveError> {
        Drive::from_transport(self.plug(), self.facts.clone(), options, care)
    }

    /// What one run of `temp` does: opens afresh, reads once, closes.
    fn poll_with(&self, options: &OpenOptions) -> Result<TempReport, DriveError> {
        self.open(options, Care::NoWake)?.temp_report()
    }

    fn poll(&self) -> Result<TempReport, DriveError> {
        self.poll_with(&OpenOptions::default())
    }

    /// Commands that arrived, in words.
    fn arrived(&self) -> Vec<String> {
        self.sim().target().log().iter().map(|e| word(&e.cdb)).collect()
    }

    /// The same, without the CDB form: `identify` for both of `identify/12` and `identify/16`.
    fn arrived_kinds(&self) -> Vec<String> {
        let kind = |w: String| w.split('/').next().unwrap_or_default().to_owned();
        self.arrived().into_iter().map(kind).collect()
    }

    fn arrived_count(&self) -> u64 {
        let sim = self.sim();
        sim.target().log().len() as u64 + sim.target().log_dropped()
    }

    fn wakes(&self) -> u64 {
        self.sim().target().wakes()
    }

    fn power_state(&self) -> &'static str {
        self.sim().target().power_state()
    }

    fn let_pass(&self, how_long: Duration) {
        self.sim().target().clock().advance(how_long);
    }

    fn key(&self) -> BridgeKey {
        let usb = self.facts.usb.as_ref().expect("a USB bridge");
        let revision = self.facts.scsi.revision.as_deref().unwrap_or_default();
        BridgeKey::new(usb.vid, usb.pid, usb.bcd_device, revision)
    }

    fn remembered(&self, memory: &Memory) -> Remembered {
        memory.recall(&self.key())
    }
}

impl Transport for Plug {
    fn device(&self) -> &str {
        &self.name
    }
    fn clock(&self) -> SharedClock {
        self.dock.sim().clock()
    }
    fn limits(&self) -> Limits {
        self.dock.sim().limits()
    }
    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        self.dock
            .sent
            .lock()
            .expect("no test panicked in here")
            .push(command.clone());
        self.dock.sim().submit(command)
    }
    fn reap(&mut self, wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError> {
        self.dock.sim().reap(wait)
    }
    fn cancel(&mut self, tag: Tag) -> Result<(), TransportError> {
        self.dock.sim().cancel(tag)
    }
    fn recover(&mut self, how: Recovery) -> Result<(), TransportError> {
        self.dock.sim().recover(how)
    }
}

/// A transport that changes answers on their way back, as a bridge with a habit does.
struct Habit<F> {
    inner: Box<dyn Transport>,
    change: F,
    done: std::collections::VecDeque<(Tag, Completion)>,
}

impl<F> Habit<F>
where
    F: FnMut(&Command, Result<Completion, TransportError>) -> Result<Completion, TransportError> + Send,
{
    fn new(inner: Box<dyn Transport>, change: F) -> Self {
        Self {
            inner,
            change,
            done: Default::default(),
        }
    }
}

impl<F> Transport for Habit<F>
where
    F: FnMut(&Command, Result<Completion, TransportError>) -> Result<Completion, TransportError> + Send,
{
    fn device(&self) -> &str {
        self.inner.device()
    }
    fn clock(&self) -> SharedClock {
        self.inner.clock()
    }
    fn limits(&self) -> Limits {
        self.inner.limits()
    }
    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        // The device finishes it at once; the tag is that of the place in the queue.
        let answer = execute(&mut *self.inner, command.clone());
        let completion = (self.change)(&command, answer)?;
        let tag = Tag(self.done.len() as u64);
        self.done.push_back((tag, completion));
        Ok(tag)
    }
    fn reap(&mut self, _wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError> {
        Ok(self.done.pop_front())
    }
    fn cancel(&mut self, _tag: Tag) -> Result<(), TransportError> {
        Ok(())
    }
    fn recover(&mut self, _how: Recovery) -> Result<(), TransportError> {
        Ok(())
    }
}

/// The fields of an ATA PASS-THROUGH CDB, after SAT's tables for the two forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ata {
    bytes: usize,
    protocol: u8,
    ck_cond: bool,
    in_direction: bool,
    command: u8,
    feature: u16,
    count: u16,
    lba: [u8; 6],
}

impl Ata {
    fn of(cdb: &[u8]) -> Option<Self> {
        let (extend, feature, count, lba, command) = match (cdb.first()?, cdb.len()) {
            (0xa1, 12) => (
                false,
                [0, cdb[3]],
                [0, cdb[4]],
                [cdb[5], cdb[6], cdb[7], 0, 0, 0],
                cdb[9],
            ),
            (0x85, 16) => (
                cdb[1] & 1 == 1,
                [cdb[3], cdb[4]],
                [cdb[5], cdb[6]],
                [cdb[8], cdb[10], cdb[12], cdb[7], cdb[9], cdb[11]],
                cdb[14],
            ),
            _ => return None,
        };
        let wide = |[high, low]: [u8; 2]| u16::from(if extend { high } else { 0 }) << 8 | u16::from(low);
        Some(Self {
            bytes: cdb.len(),
            protocol: cdb[1] >> 1 & 0x0f,
            ck_cond: cdb[2] & 0x20 != 0,
            in_direction: cdb[2] & 0x08 != 0,
            command,
            feature: wide(feature),
            count: wide(count),
            lba,
        })
    }
}

/// `identify/12`, `smart read data/16`, `inquiry`: what a CDB asks for.
fn word(cdb: &[u8]) -> String {
    let Some(ata) = Ata::of(cdb) else {
        return match cdb.first() {
            Some(0x00) => "test unit ready".to_owned(),
            Some(0x03) => "request sense".to_owned(),
            Some(0x12) => "inquiry".to_owned(),
            Some(0x25) => "read capacity 10".to_owned(),
            Some(0x4d) => "log sense".to_owned(),
            Some(0x9e) => "read capacity 16".to_owned(),
            _ => format!("cdb {cdb:02x?}"),
        };
    };
    let what = match (ata.protocol, ata.command, ata.feature, ata.lba[0]) {
        (15, ..) => "return response information".to_owned(),
        (_, 0xec, ..) => "identify".to_owned(),
        (_, 0xe5, ..) => "check power mode".to_owned(),
        (_, 0xb0, 0xd0, _) => "smart read data".to_owned(),
        (_, 0xb0, 0xd1, _) => "smart read thresholds".to_owned(),
        (_, 0xb0, 0xda, _) => "smart return status".to_owned(),
        (_, 0xb0, 0xd5, 0xe0) => "sct status".to_owned(),
        (_, 0xb0, 0xd5, 0xe1) => "sct data".to_owned(),
        (_, 0xb0, 0xd6, 0xe0) => "sct request".to_owned(),
        (_, 0xb0, 0xd5, log) => format!("smart log {log:02x}h"),
        (_, 0x2f, _, log) => format!("log {log:02x}h page {:02x}h", ata.lba[1]),
        _ => format!("ata {:02x}h {:04x}h", ata.command, ata.feature),
    };
    format!("{what}/{}", ata.bytes)
}

/// Options with a memory in a directory of their own.
fn with_memory() -> (tempfile::TempDir, Memory, OpenOptions) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let memory = Memory::at(dir.path().join("bridges.json"));
    let options = OpenOptions {
        memory: Some(memory.clone()),
        ..OpenOptions::default()
    };
    (dir, memory, options)
}

fn waking() -> OpenOptions {
    OpenOptions {
        wake: true,
        ..OpenOptions::default()
    }
}

/// What a drive refuses to do, where a test needs the reason.
fn refusal<T>(result: Result<T, DriveError>) -> DriveError {
    match result {
        Ok(_) => panic!("it was done, but should have been refused"),
        Err(error) => error,
    }
}

fn data_out(commands: &[Command]) -> Vec<(Vec<u8>, Vec<u8>)> {
    commands
        .iter()
        .filter_map(|c| match &c.data {
            Data::Out(bytes) => Some((c.cdb.as_bytes().to_vec(), bytes.clone())),
            _ => None,
        })
        .collect()
}
