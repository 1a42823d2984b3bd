//! One drive behind one bridge: open and detect it, read its temperature and health, without harm and without waking it.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod detect;
mod error;
pub mod health;
pub mod info;
mod known;
pub mod media;
pub mod open;
pub mod power;
pub mod temperature;
pub mod trim;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

pub use detect::FoundBy;
pub use error::{DriveError, NoPassThrough, Rejected};
pub use open::{OpenOptions, RecordFile, Target};

use crate::ata::identify::{FeatureSets, Identify, SctFeatures};
use crate::ata::power::PowerMode;
use crate::bridge::memory::{BridgeKey, Harm};
use crate::bridge::taskfile::Taskfile;
use crate::bridge::{self, AtaDialect, BridgeError, Reply, Request};
use crate::permit::PermitSlot;
use crate::scsi::cdb;
use crate::scsi::inquiry::Inquiry;
use crate::sys::NodeFacts;
use crate::sys::lock::DeviceLock;
use crate::time::SharedClock;
use crate::transport::layer::count::CommandCount;
use crate::transport::{Command, Completion, Transport, TransportError, execute};
use power::{Media, PowerState};
use temperature::Preferred;

/// The way to the drive.
#[derive(Debug)]
pub enum Access {
    /// ATA commands travel through this dialect.
    Ata(Box<dyn AtaDialect>),
    /// Only what SCSI knows.
    ScsiOnly(NoPassThrough),
}

/// How much care a verb takes before it asks anything of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Polling verbs: a sleeping drive, or one that may be asleep, is left alone unless the options say otherwise.
    NoWake,
    /// The user asked for this one drive; reading it may wake it.
    MayWake,
}

/// An open drive.
pub struct Drive {
    name: String,
    transport: Box<dyn Transport>,
    facts: NodeFacts,
    options: OpenOptions,
    access: Access,
    identify: Option<Identify>,
    inquiry: Option<Inquiry>,
    found_by: FoundBy,
    tried: Vec<Rejected>,
    media: Media,
    power: PowerState,
    gate: bool,
    /// When the power state was read; for a moment no reading need ask again.
    power_read_at: Option<Duration>,
    /// Commands that harmed this bridge in earlier runs.
    avoid: BTreeMap<String, Harm>,
    /// What a command of this run did to it.
    harm: Option<Harm>,
    /// The way is still being looked for: a command that harms the bridge now speaks against the bridge.
    probing: bool,
    preferred: Option<Preferred>,
    /// Opening and detection count towards the first report.
    reported: bool,
    opened_at: Duration,
    count: CommandCount,
    /// Unit attentions that were asked past: resets, or another medium.
    attentions: u64,
    /// What may be written at the moment: the guard of this transport looks here.
    permits: PermitSlot,
    /// Held from opening on, but for the pauses of [`Drive::unlock`].
    lock: Option<DeviceLock>,
    /// A lock was taken when opening, so readings want it too.
    locks: bool,
}

/// So long after CHECK POWER MODE a disk is taken to be still awake: no disk falls asleep sooner after a command.
const POWER_STATE_HOLDS: Duration = Duration::from_secs(1);

/// Which device a document speaks of. Strings are the device's own, untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceRef {
    /// The name it was opened by.
    pub name: String,
    /// Logical unit, as far as the name tells.
    pub lun: u64,
    /// Drive bay of a multi-bay bridge.
    pub bay: u8,
    /// Model of the inner drive, or of what SCSI shows where there is no way through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Serial number of the inner drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Firmware revision of the inner drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// The dialect that carries commands to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<&'static str>,
    /// VID:PID of the bridge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usb_id: Option<String>,
    /// It is simulated: no hardware was touched.
    pub simulated: bool,
}

/// What a reading cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Commands that were sent to the device.
    pub commands: u64,
    /// Time from the first to the last of them, in microseconds of the device's clock.
    pub elapsed_us: u64,
}

impl Drive {
    /// Opens a drive by name and finds the way to it.
    ///
    /// # Errors
    /// No such device, no rights, left asleep, or a probe that the bridge did not take well. A bridge without
    /// pass-through is no error here: see [`Drive::access`].
    pub fn open(name: &str, options: &OpenOptions, care: Care) -> Result<Self, DriveError> {
        Self::open_target(name, Target::resolve(name, &options.sysfs)?, options, care)
    }

    /// The same for a name that was resolved before: what it leads to may have changed since.
    ///
    /// # Errors
    /// As [`Drive::open`].
    pub fn open_target(
        name: &str,
        target: Target,
        options: &OpenOptions,
        care: Care,
    ) -> Result<Self, DriveError> {
        if let Target::Node { facts, .. } = &target {
            // Before it is opened: that alone would wake it.
            refuse_suspended(name, facts, options, care)?;
        }
        Self::with(name, open::inner(target, options)?, options, care)
    }

    /// Finds the way to a drive over a transport of the caller's own. The same layers are put around it, the guard first
    /// of all; nothing is locked.
    ///
    /// # Errors
    /// As [`Drive::open`].
    pub fn from_transport(
        transport: Box<dyn Transport>,
        facts: NodeFacts,
        options: &OpenOptions,
        care: Care,
    ) -> Result<Self, DriveError> {
        let name = transport.device().to_owned();
        Self::with(
            &name,
            open::Inner {
                transport,
                facts,
                lock: None,
            },
            options,
            care,
        )
    }

    fn with(name: &str, inner: open::Inner, options: &OpenOptions, care: Care) -> Result<Self, DriveError> {
        let gate = care == Care::NoWake && !options.wake;
        refuse_suspended(name, &inner.facts, options, care)?;
        let mut opened = open::stack(inner, options)?;
        let opened_at = opened.transport.clock().now();
        let key = bridge_key(&opened.facts);
        let detected = detect::Detection {
            transport: &mut *opened.transport,
            facts: &opened.facts,
            options,
            key: key.as_ref(),
            gate,
        }
        .run()?;
        let now = opened.transport.clock().now();
        let mut drive = Self {
            name: name.to_owned(),
            transport: opened.transport,
            facts: opened.facts,
            options: options.clone(),
            access: detected.access,
            identify: detected.identify,
            inquiry: detected.inquiry,
            found_by: detected.found_by,
            tried: detected.tried,
            media: detected.media,
            power: detected.power,
            gate,
            power_read_at: (detected.power != PowerState::Unknown).then_some(now),
            avoid: detected.avoid,
            harm: None,
            probing: true,
            preferred: None,
            reported: false,
            opened_at,
            count: opened.count,
            permits: opened.permits,
            attentions: 0,
            locks: opened.lock.is_some(),
            lock: opened.lock,
        };
        if gate
            && drive.identify.is_some()
            && drive.media != Media::Flash
            && drive.power == PowerState::Unknown
        {
            // Now that the bridge is known to speak SAT, the registers can be asked for in other ways too.
            drive.power = drive.ask_power()?;
            drive.power_read_at = Some(drive.clock().now());
            match drive.power {
                PowerState::Unknown => {
                    return Err(drive.asleep(
                        "its power state cannot be read through this bridge, and its media may turn",
                    ));
                }
                PowerState::Standby => return Err(drive.asleep("the drive says that it is in standby")),
                _ => {}
            }
        }
        drive.probing = false;
        Ok(drive)
    }

    /// The name it was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The way to the drive.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// IDENTIFY DEVICE data, where there is a way through.
    pub fn identify(&self) -> Option<&Identify> {
        self.identify.as_ref()
    }

    /// Standard INQUIRY data of the bridge or SCSI device.
    pub fn inquiry(&self) -> Option<&Inquiry> {
        self.inquiry.as_ref()
    }

    /// What the operating system knew before.
    pub fn facts(&self) -> &NodeFacts {
        &self.facts
    }

    /// What the drive stores data on.
    pub fn media(&self) -> Media {
        self.media
    }

    /// Unit attentions that were asked past so far: each tells of a reset or of another medium.
    pub fn attentions(&self) -> u64 {
        self.attentions
    }

    /// Why this command is not sent to this bridge any more, if that is remembered.
    pub fn avoided(&self, command: &str) -> Option<String> {
        self.avoid
            .get(command)
            .map(|harm| format!("an earlier {} {} ({})", harm.command, harm.what, harm.when))
    }

    /// The device's clock.
    pub fn clock(&self) -> SharedClock {
        self.transport.clock()
    }

    /// Whether this is the simulator.
    pub fn is_simulated(&self) -> bool {
        self.facts.simulated
    }

    /// Commands sent since it was opened, detection included.
    pub fn commands_sent(&self) -> u64 {
        self.count.get()
    }

    /// Identity for a document.
    pub fn device_ref(&self) -> DeviceRef {
        let identify = self.identify.as_ref();
        let inquiry_name = || {
            let inquiry = self.inquiry.as_ref()?;
            let parts: Vec<&str> = [&inquiry.vendor, &inquiry.product]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect();
            (!parts.is_empty()).then(|| parts.join(" "))
        };
        DeviceRef {
            name: self.name.clone(),
            lun: self
                .facts
                .hctl
                .as_ref()
                .and_then(|h| h.rsplit(':').next()?.parse().ok())
                .unwrap_or_default(),
            bay: 0,
            model: identify.map_or_else(inquiry_name, Identify::model),
            serial: identify.and_then(Identify::serial),
            firmware: identify.and_then(Identify::firmware),
            dialect: match &self.access {
                Access::Ata(dialect) => Some(dialect.name()),
                Access::ScsiOnly(_) => None,
            },
            usb_id: self
                .facts
                .usb
                .as_ref()
                .map(|usb| format!("{:04x}:{:04x}", usb.vid, usb.pid)),
            simulated: self.facts.simulated,
        }
    }

    /// Sends one ATA command.
    ///
    /// # Errors
    /// There is no way through, or the command failed.
    pub fn ata(&mut self, name: &'static str, taskfile: Taskfile) -> Result<Reply, DriveError> {
        self.request(Request::new(name, taskfile, self.options.timeout))
    }

    /// Sends one ATA command without data and asks for its output registers.
    ///
    /// # Errors
    /// There is no way through, or the command failed. Registers that the bridge did not return are `None`.
    pub fn ata_registers(&mut self, name: &'static str, taskfile: Taskfile) -> Result<Reply, DriveError> {
        self.request(Request::new(name, taskfile, self.options.timeout).with_registers())
    }

    /// Sends a prepared request.
    ///
    /// # Errors
    /// There is no way through, or the command failed.
    pub fn request(&mut self, request: Request) -> Result<Reply, DriveError> {
        self.refuse_after_harm()?;
        self.relock()?;
        let name = request.name;
        if let Some(harm) = self.avoid.get(name) {
            return Err(DriveError::Avoided {
                device: self.name.clone(),
                harm: harm.clone(),
            });
        }
        let result = match &self.access {
            Access::Ata(dialect) => bridge::run(&mut *self.transport, &**dialect, request),
            Access::ScsiOnly(why) => return Err(self.no_pass_through(why.clone())),
        };
        result.map_err(|error| match error {
            BridgeError::Transport(error) => self.harmed(name, error),
            other => other.into(),
        })
    }

    /// Sends one SCSI command; an answer of any status is `Ok`.
    ///
    /// # Errors
    /// The transport failed or refused it.
    pub fn scsi(&mut self, command: Command) -> Result<Completion, DriveError> {
        self.refuse_after_harm()?;
        self.relock()?;
        let name = command.cdb.name();
        if let Some(harm) = self.avoid.get(&name) {
            return Err(DriveError::Avoided {
                device: self.name.clone(),
                harm: harm.clone(),
            });
        }
        execute(&mut *self.transport, command).map_err(|error| self.harmed(&name, error))
    }

    /// After a time-out or transport error nothing more is sent through this handle, and the command is left out by later
    /// runs. A device that went away may have been unplugged, which says nothing against the command.
    fn harmed(&mut self, name: &str, error: TransportError) -> DriveError {
        if !matches!(
            error,
            TransportError::TimedOut { .. } | TransportError::Failed { .. }
        ) {
            return DriveError::Transport(error);
        }
        let Some(harm) = detect::harm_of(&error, self.clock().rfc3339()) else {
            return DriveError::Transport(error);
        };
        self.harm = Some(harm.clone());
        let key = bridge_key(&self.facts);
        let remembered = detect::remember_harm(&self.options, key.as_ref(), |r| {
            if self.probing {
                r.harmed_by = Some(harm);
            } else {
                r.avoid.insert(name.to_owned(), harm);
            }
        });
        DriveError::Harmed {
            device: self.name.clone(),
            source: error,
            remembered,
        }
    }

    fn refuse_after_harm(&self) -> Result<(), DriveError> {
        match &self.harm {
            Some(harm) => Err(DriveError::HarmedBefore {
                device: self.name.clone(),
                harm: harm.clone(),
            }),
            None => Ok(()),
        }
    }

    /// The time-out of each command.
    pub fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// What to say when there is no way through.
    pub fn require_ata(&self) -> Result<&Identify, DriveError> {
        match (&self.access, &self.identify) {
            (Access::Ata(_), Some(identify)) => Ok(identify),
            (Access::ScsiOnly(why), _) => Err(self.no_pass_through(why.clone())),
            _ => Err(self.no_pass_through(NoPassThrough::AskedForScsi)),
        }
    }

    /// Lets other processes at the device until the next command; a long series must not keep them out.
    pub fn unlock(&mut self) {
        self.lock = None;
    }

    fn relock(&mut self) -> Result<(), DriveError> {
        if self.locks && self.lock.is_none() {
            self.lock = open::lock_device(&self.name, &self.facts, &self.options)?;
        }
        Ok(())
    }

    /// When a report starts, and how many commands were sent before it. The first one answers for opening too.
    fn begin_report(&mut self) -> (Duration, u64) {
        if std::mem::replace(&mut self.reported, true) {
            (self.clock().now(), self.commands_sent())
        } else {
            (self.opened_at, 0)
        }
    }

    fn cost_since(&self, start: Duration, before: u64) -> Cost {
        let elapsed = self.clock().now().saturating_sub(start);
        Cost {
            commands: self.commands_sent().saturating_sub(before),
            elapsed_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// It has just read something from its medium, so it is not asleep.
    fn note_awake(&mut self) {
        if matches!(self.power, PowerState::Unknown | PowerState::Standby) {
            self.power = PowerState::Active;
        }
    }

    fn no_pass_through(&self, why: NoPassThrough) -> DriveError {
        DriveError::NoPassThrough {
            device: self.name.clone(),
            why,
        }
    }

    fn asleep(&self, why: &str) -> DriveError {
        DriveError::Asleep {
            device: self.name.clone(),
            why: why.to_owned(),
            state: self.power,
            media: self.media,
        }
    }

    /// Before each reading by a polling verb: a drive that fell asleep or was suspended since is left alone.
    fn gate_power(&mut self) -> Result<PowerState, DriveError> {
        if self.gate {
            self.facts.runtime_status = self
                .options
                .sysfs
                .runtime_status(&self.facts)
                .or(self.facts.runtime_status.take());
            refuse_suspended(&self.name, &self.facts, &self.options, Care::NoWake)?;
        }
        if self.media == Media::Flash || !self.gate {
            return Ok(
                if self.media == Media::Flash && self.power == PowerState::Unknown {
                    PowerState::Active
                } else {
                    self.power
                },
            );
        }
        let now = self.clock().now();
        if self
            .power_read_at
            .take()
            .is_some_and(|at| now.saturating_sub(at) < POWER_STATE_HOLDS)
        {
            return Ok(self.power);
        }
        self.power = match &self.access {
            Access::Ata(_) => self.ask_power()?,
            Access::ScsiOnly(_) => self.ask_sense_power()?,
        };
        match (self.power, &self.access) {
            (PowerState::Standby, _) => Err(self.asleep("the drive says that it is in standby")),
            (PowerState::Unknown, Access::Ata(_)) => {
                Err(self.asleep("its power state cannot be read any more"))
            }
            // What SCSI shows of such a device (log page 0Dh) is kept by its controller.
            (state, _) => Ok(state),
        }
    }

    /// CHECK POWER MODE, then REQUEST SENSE where that brings nothing.
    fn ask_power(&mut self) -> Result<PowerState, DriveError> {
        let reply = match self.ata_registers(detect::CHECK_POWER_MODE, Taskfile::check_power_mode()) {
            Ok(reply) => reply.registers.count,
            Err(DriveError::Bridge(BridgeError::Failed { .. }) | DriveError::Avoided { .. }) => None,
            Err(error) => return Err(error),
        };
        match reply.map(|count| PowerState::from_power_mode(PowerMode::from_count(count))) {
            Some(state) if state != PowerState::Unknown => Ok(state),
            _ => self.ask_sense_power(),
        }
    }

    /// REQUEST SENSE; unknown where it is left out because it harmed the bridge.
    fn ask_sense_power(&mut self) -> Result<PowerState, DriveError> {
        match self.scsi(detect::ask_sense(self.options.timeout)) {
            Ok(completion) => Ok(detect::power_from_sense(completion)),
            Err(DriveError::Avoided { .. }) => Ok(PowerState::Unknown),
            Err(error) => Err(error),
        }
    }
}

/// A device opened for single commands, without detection; the guard is in front of it all the same.
pub struct Raw {
    transport: Box<dyn Transport>,
    is_disk: Option<bool>,
    timeout: Duration,
    _lock: Option<DeviceLock>,
}

impl Raw {
    /// Opens a device by name and sends nothing.
    ///
    /// # Errors
    /// No such device, no rights, or locked.
    pub fn open(name: &str, options: &OpenOptions) -> Result<Self, DriveError> {
        let target = Target::resolve(name, &options.sysfs)?;
        let opened = open::stack(open::inner(target, options)?, options)?;
        Ok(Self {
            transport: opened.transport,
            is_disk: opened.facts.scsi.peripheral_type.map(open::is_disk),
            timeout: options.timeout,
            _lock: opened.lock,
        })
    }

    /// Sends one command; an answer of any status is `Ok`. Where nobody knows whether this is a disk, INQUIRY goes before an
    /// opcode that means something else on other devices.
    ///
    /// # Errors
    /// The transport failed, or the guard refused it.
    pub fn execute(&mut self, command: Command) -> Result<Completion, DriveError> {
        if matches!(command.cdb.opcode(), 0x85 | 0xa1) && !self.is_disk()? {
            return Err(DriveError::Transport(TransportError::Refused {
                device: self.transport.device().to_owned(),
                command: command.cdb.name(),
                cdb: command.cdb,
                why: "it is not known to be a disk, and this opcode means something else on other devices"
                    .to_owned(),
            }));
        }
        Ok(execute(&mut *self.transport, command)?)
    }

    fn is_disk(&mut self) -> Result<bool, DriveError> {
        if let Some(known) = self.is_disk {
            return Ok(known);
        }
        let inquiry = Command::data_in(cdb::inquiry(36), 36, self.timeout);
        let data = execute(&mut *self.transport, inquiry)?.data.unwrap_or_default();
        let known = Inquiry::parse(&data).is_ok_and(|i| open::is_disk(i.peripheral_device_type));
        self.is_disk = Some(known);
        Ok(known)
    }
}

fn refuse_suspended(
    name: &str,
    facts: &NodeFacts,
    options: &OpenOptions,
    care: Care,
) -> Result<(), DriveError> {
    match facts.runtime_status.as_deref() {
        Some(status @ ("suspended" | "suspending")) if care == Care::NoWake && !options.wake => {
            Err(DriveError::Asleep {
                device: name.to_owned(),
                why: format!("the kernel has it {status} to save power, and opening it would wake it"),
                state: PowerState::Standby,
                media: Media::Unknown,
            })
        }
        _ => Ok(()),
    }
}

/// Bridges are remembered by USB identity and INQUIRY revision; other hosts need no memory.
fn bridge_key(facts: &NodeFacts) -> Option<BridgeKey> {
    let usb = facts.usb.as_ref()?;
    let revision = facts.scsi.revision.as_deref().unwrap_or_default();
    Some(BridgeKey::new(usb.vid, usb.pid, usb.bcd_device, revision))
}

/// General Purpose Logging: READ LOG EXT works.
fn has_gpl(identify: &Identify) -> bool {
    identify.switch(FeatureSets::GPL).supported == Some(true)
}

/// SCT data tables: the temperature history can be asked for.
fn has_sct_tables(identify: &Identify) -> bool {
    identify
        .sct()
        .contains(SctFeatures::SCT | SctFeatures::DATA_TABLES)
}
