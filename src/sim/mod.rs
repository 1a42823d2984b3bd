//! The other side: simulated drives behind simulated bridges.
//!
//! Written from the standards by its own code. It imports only the leaves (`units`, `text`, `time`, `sys`, `wire`), never
//! `scsi`, `bridge`, `ata` or `nvme`: an encoder shared with the product would turn a mistake made twice into a passing test.
//!
//! A [`Target`] is what a host sees of one device: it runs a CDB to its end on a virtual clock. Inside, a bridge takes the
//! CDB apart and works a drive through its registers; the drive holds a sparse medium, a power state and a thermal model.
#![deny(clippy::indexing_slicing)]

mod bridge;
mod buf;
mod drive;
mod facts;
mod heat;
mod live;
mod media;
pub(crate) mod own_file;
mod profiles;
mod rng;
pub mod serve;
mod spec;
mod speed;
pub mod usb;

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use self::bridge::{Answer, Bridge, Fate, Inner, Mishap, Want};
use self::buf::{byte, put8};
use self::profiles::{EmptyDataIn, Profile, SenseCap, Unknown, UsbProfile};
pub use self::speed::Load;
use crate::sys::NodeFacts;
use crate::time::{Clock, VirtualClock};

/// Entries that the command log keeps at most; then the older half goes.
const LOG_LIMIT: usize = 1 << 17;

/// How long the host's error recovery takes after a time-out.
const RECOVERY: Duration = Duration::from_secs(1);

/// What a simulated target did with one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It answered; the virtual clock has moved by `elapsed`.
    Answered {
        /// SCSI status byte.
        status: u8,
        /// Sense data, empty when there is none.
        sense: Vec<u8>,
        /// Data-in bytes, cut to what the host asked for.
        data: Vec<u8>,
        /// Time it took on the virtual clock.
        elapsed: Duration,
    },
    /// Nothing came back within the time-out; the virtual clock has moved by `elapsed`.
    TimedOut {
        /// Time until the host gave up, including the reset that follows.
        elapsed: Duration,
    },
    /// The bridge dropped off the bus.
    Gone,
}

/// One command that reached the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// Its bytes.
    #[serde(serialize_with = "as_hex")]
    pub cdb: Vec<u8>,
    /// When it came, on the virtual clock.
    #[serde(rename = "at_us", serialize_with = "as_micros")]
    pub at: Duration,
    /// SCSI status, absent where no answer came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
    /// How it came over USB, absent in process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Via>,
}

/// What carried a command over USB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// Bulk-Only Transport.
    Bot,
    /// USB Attached SCSI.
    Uas,
}

fn as_hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&crate::text::hex(bytes))
}

fn as_micros<S: Serializer>(at: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(at.as_micros()).unwrap_or(u64::MAX))
}

/// One simulated drive behind one simulated bridge.
#[derive(Debug)]
pub struct Target {
    profile: Profile,
    bridge: Bridge,
    clock: Arc<VirtualClock>,
    log: Vec<LogEntry>,
    log_dropped: u64,
    log_sink: live::LogSink,
    /// Stands for data that nobody looks at.
    blank: Vec<u8>,
    long_sense: bool,
}

/// A `sim:` name that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SpecError {
    /// What is wrong and what exists instead.
    pub why: String,
}

/// One line of `drivethru sim list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileSummary {
    /// The name after `sim:`.
    pub name: String,
    /// What it is, in one sentence.
    pub title: String,
    /// Inner drive.
    pub drive: String,
    /// Bridge.
    pub bridge: String,
}

/// A profile in full, for `drivethru sim show`.
#[derive(Debug, Clone, Serialize)]
pub struct ProfileDocument {
    #[serde(flatten)]
    profile: Profile,
}

/// All built-in profiles, in the order of their names.
pub fn profiles() -> Vec<ProfileSummary> {
    profiles::names()
        .filter_map(|name| profiles::load(name).ok())
        .map(|p| ProfileSummary {
            drive: p.drive.map_or_else(|| "native flash".to_owned(), |d| d.model),
            name: p.name,
            title: p.title,
            bridge: p.bridge.chip,
        })
        .collect()
}

/// The options that may follow a profile's name, each with what it takes and does.
pub fn options() -> &'static [(&'static str, &'static str)] {
    spec::OPTIONS
}

/// One profile in full, with the options of `spec` applied.
///
/// # Errors
/// An unknown profile or option, with the known ones in the text.
pub fn show(spec: &str) -> Result<ProfileDocument, SpecError> {
    let (profile, _) = spec::parse(spec)?;
    Ok(ProfileDocument { profile })
}

impl Target {
    /// Opens what follows `sim:`: `PROFILE[,option=value...]`.
    ///
    /// # Errors
    /// An unknown profile or option, with the known ones in the text.
    pub fn open(spec: &str) -> Result<Self, SpecError> {
        let (profile, options) = spec::parse(spec)?;
        let bridge = Bridge::new(&profile, &options)?;
        Ok(Self {
            // A host that reads SPC-3 or later in INQUIRY asks for long sense from the start.
            long_sense: profile.bridge.version >= 5,
            profile,
            bridge,
            clock: Arc::new(VirtualClock::new()),
            log: Vec::new(),
            log_dropped: 0,
            log_sink: live::LogSink::default(),
            blank: Vec::new(),
        })
    }

    /// Runs one command to its end on the virtual clock.
    pub fn command(&mut self, cdb: &[u8], data_out: &[u8], in_len_bytes: usize, timeout: Duration) -> Reply {
        let at = self.clock.now();
        let (answer, elapsed) = self.bridge.execute(cdb, data_out, Some(in_len_bytes), at);
        let fate = match answer.mishap {
            Some(Mishap::Replug) => Fate::Gone,
            // The host's driver can only reset the device; nobody sees an answer.
            Some(Mishap::WrongTag | Mishap::PhaseError | Mishap::Babble | Mishap::Hang) => Fate::NoAnswer,
            // More to send than the host has room for is a phase error on BOT and a babble under UAS (USB BOT 1.0, "The
            // Thirteen Cases", 2 and 7).
            _ if answer.data.len() > in_len_bytes => Fate::NoAnswer,
            Some(Mishap::Stall | Mishap::RefusedByStall | Mishap::WrongResidue) | None => answer.fate,
        };
        let reply = match fate {
            Fate::Gone => Reply::Gone,
            Fate::Answered if elapsed <= timeout => {
                self.clock.advance(elapsed);
                Reply::Answered {
                    status: answer.status,
                    sense: self.cap_sense(cdb, answer.status, answer.sense),
                    data: answer.data,
                    elapsed,
                }
            }
            Fate::Answered | Fate::NoAnswer => {
                let elapsed = timeout.saturating_add(RECOVERY);
                self.clock.advance(elapsed);
                Reply::TimedOut { elapsed }
            }
        };
        let status = match &reply {
            Reply::Answered { status, .. } => Some(*status),
            Reply::TimedOut { .. } | Reply::Gone => None,
        };
        self.note(cdb, at, status, None);
        reply
    }

    /// Runs one command that came over USB at `now`, after those before it. The answer is due when the target's clock says so
    /// afterwards, or [`Answer::extra`] later.
    fn perform(
        &mut self,
        cdb: &[u8],
        data_out: &[u8],
        room: Option<usize>,
        now: Duration,
        via: Via,
    ) -> Answer {
        self.clock.advance(now.saturating_sub(self.clock.now()));
        let at = self.clock.now();
        let (mut answer, elapsed) = self.bridge.execute(cdb, data_out, room, at);
        // What makes an answer late does not keep the drive busy: a reset ends it.
        self.clock.advance(elapsed.saturating_sub(answer.extra));
        if self.profile.bridge.sense_cap == SenseCap::Eighteen {
            cut_sense(&mut answer.sense);
        }
        let status = (answer.fate == Fate::Answered
            && !matches!(answer.mishap, Some(Mishap::Hang | Mishap::Replug)))
        .then_some(answer.status);
        self.note(cdb, at, status, Some(via));
        answer
    }

    /// The answer to a command for a logical unit that does not exist (SPC-4, "Incorrect logical unit selection").
    fn no_such_unit(&mut self, cdb: &[u8], now: Duration, via: Via) -> Answer {
        self.clock.advance(now.saturating_sub(self.clock.now()));
        let at = self.clock.now();
        let answer = self.bridge.no_such_unit(cdb);
        self.note(cdb, at, Some(answer.status), Some(via));
        answer
    }

    /// A command that came over USB and was not run, because the host's idea of its data phase cannot be met.
    fn refuse(&mut self, cdb: &[u8], now: Duration, via: Via) {
        self.clock.advance(now.saturating_sub(self.clock.now()));
        let at = self.clock.now();
        self.note(cdb, at, None, Some(via));
    }

    /// The host has reset the device while a command was running.
    fn give_up(&mut self, now: Duration) {
        self.clock.advance(now.saturating_sub(self.clock.now()));
        self.bridge.catch_up(self.clock.now());
        self.bridge.give_up();
    }

    /// The plug was pulled and put back at `now`: bridge and drive start anew.
    fn replug(&mut self, now: Duration) {
        self.clock.advance(now.saturating_sub(self.clock.now()));
        self.power_cycle();
    }

    /// What enumeration tells.
    fn usb(&self) -> &UsbProfile {
        &self.profile.usb
    }

    /// Whether it has left the bus for good.
    fn gone(&self) -> bool {
        self.bridge.gone()
    }

    /// What a command wants of the data phase.
    fn want(&self, cdb: &[u8]) -> Want {
        self.bridge.want(cdb)
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn empty_data_in(&self) -> EmptyDataIn {
        self.profile.bridge.empty_data_in
    }

    fn stalls_unknown(&self) -> bool {
        self.profile.bridge.unknown == Unknown::Stall
    }

    /// The only door to the log: what comes here is in the log and in its sink.
    fn note(&mut self, cdb: &[u8], at: Duration, status: Option<u8>, transport: Option<Via>) {
        let entry = LogEntry {
            cdb: cdb.to_vec(),
            at,
            status,
            transport,
        };
        if self.log.len() >= LOG_LIMIT {
            self.log.drain(..LOG_LIMIT / 2);
            self.log_dropped += (LOG_LIMIT / 2) as u64;
        }
        self.log_sink.write(&entry);
        self.log.push(entry);
    }

    /// Runs a command that writes `out_len_bytes` which nobody needs to hold: each sector reads afterwards as bytes made up
    /// from seed, address and pass, so that a long run costs no memory with `payload=virtual`.
    pub fn write_made_up(&mut self, cdb: &[u8], out_len_bytes: usize, timeout: Duration) -> Reply {
        self.bridge.hold_nothing(true);
        let reply = self.command(cdb, &vec![0; out_len_bytes], 0, timeout);
        self.bridge.hold_nothing(false);
        reply
    }

    /// Tells what only the host knows of the reads and writes that follow.
    pub fn announce(&mut self, load: Load) {
        self.bridge.speed_mut().load = load;
    }

    /// Runs a READ or WRITE whose bytes nobody looks at: `out_len_bytes` are written as by [`Target::write_made_up`], and a
    /// read brings none. That makes a run of hundreds of gigabytes a matter of seconds.
    pub fn command_unseen(&mut self, cdb: &[u8], out_len_bytes: usize, timeout: Duration) -> Reply {
        let mut blank = std::mem::take(&mut self.blank);
        if blank.len() < out_len_bytes {
            blank.resize(out_len_bytes, 0);
        }
        self.bridge.look_away(true);
        let reply = self.command(cdb, blank.get(..out_len_bytes).unwrap_or_default(), 0, timeout);
        self.bridge.look_away(false);
        self.blank = blank;
        reply
    }

    /// From now on what [`Target::command_unseen`] writes has a content that follows from this name and the place.
    pub fn name_writes(&mut self, name: Option<u64>) {
        self.bridge.medium_mut().name_writes(name);
    }

    /// How many bytes of `blocks` from `first` on are not what was written there under a name; `None` where the medium keeps
    /// nothing. It costs no time, and is what comparing every byte that is read would come to.
    pub fn unlike_bytes(&self, first: u64, blocks: u64, name: u64) -> Option<u64> {
        self.bridge.unlike_bytes(first, blocks, name)
    }

    /// What a meter in the cable has counted since power-on, in J; `None` where the profile has no model of the power.
    pub fn energy_joules(&self) -> Option<f64> {
        self.bridge.speed().energy_j()
    }

    /// Brings what is behind the bridge to the present of the clock, which others may have moved.
    pub fn catch_up(&mut self) {
        self.bridge.catch_up(self.clock.now());
    }

    /// Cuts the power of bridge and drive and gives it back; the virtual clock moves by what it takes until both are up.
    pub fn power_cycle(&mut self) {
        let took = self.bridge.power_cycle(self.clock.now());
        self.long_sense = self.profile.bridge.version >= 5;
        self.clock.advance(took);
    }

    /// What the host's driver lets through of the sense data.
    fn cap_sense(&mut self, cdb: &[u8], status: u8, mut sense: Vec<u8>) -> Vec<u8> {
        match self.profile.bridge.sense_cap {
            SenseCap::Full => {}
            SenseCap::Eighteen => cut_sense(&mut sense),
            SenseCap::Learn if self.long_sense => {}
            SenseCap::Learn => {
                let pass_through = matches!(byte(cdb, 0), 0x85 | 0xa1);
                let longer = byte(&sense, 7) > 10;
                if (pass_through && status == 0 && byte(cdb, 2) & 0x20 == 0) || longer {
                    self.long_sense = true;
                }
                cut_sense(&mut sense);
            }
        }
        sense
    }

    /// The clock that all of this target's time passes on.
    pub fn clock(&self) -> Arc<VirtualClock> {
        Arc::clone(&self.clock)
    }

    /// What a kernel would have cached about it when it was plugged in.
    pub fn facts(&self) -> NodeFacts {
        facts::node_facts(&self.profile, &self.bridge)
    }

    /// Every command that reached the target, oldest first; a very long run drops the oldest.
    pub fn log(&self) -> &[LogEntry] {
        &self.log
    }

    /// How many of the oldest entries the log has dropped.
    pub fn log_dropped(&self) -> u64 {
        self.log_dropped
    }

    /// Forgets the log.
    pub fn clear_log(&mut self) {
        self.log.clear();
        self.log_dropped = 0;
    }

    /// How often a command had to wake the drive from standby or sleep.
    pub fn wakes(&self) -> u64 {
        match self.bridge.inner() {
            Inner::Ata(drive) => drive.wakes(),
            Inner::Flash(_) => 0,
        }
    }

    /// The drive's power state: `active`, `idle`, `standby` or `sleep`.
    pub fn power_state(&self) -> &'static str {
        match self.bridge.inner() {
            Inner::Ata(drive) => drive.mode().word(),
            Inner::Flash(_) => "active",
        }
    }

    /// Sectors of the drive that were ever discarded, as (first, count) in order.
    pub fn discarded(&self) -> Vec<(u64, u64)> {
        let discarded = self.bridge.medium().discarded();
        discarded
            .iter()
            .map(|(first, end)| (first, end - first))
            .collect()
    }

    /// From now on [`Target::discarded`] counts anew.
    pub fn forget_discarded(&mut self) {
        self.bridge.medium_mut().forget_discarded();
    }

    /// Sectors of the drive that are trimmed and not written since.
    pub fn trimmed_blocks(&self) -> u64 {
        self.bridge.trimmed_sectors()
    }
}

/// 18 bytes and no more, with the length byte made to fit, as Linux usb-storage does.
fn cut_sense(sense: &mut Vec<u8>) {
    if sense.len() > 18 {
        sense.truncate(18);
        put8(sense, 7, 10);
    }
}

#[cfg(test)]
mod tests;
