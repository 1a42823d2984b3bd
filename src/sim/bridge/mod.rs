//! A USB bridge: SCSI commands in, the drive's answers out.

mod block;
mod inquiry;
mod passthrough;
pub mod sense;

use std::time::Duration;

use self::sense::Code;
use super::SpecError;
use super::buf::byte;
use super::drive::transfer::Flash;
use super::drive::{AtaDrive, Registers, speed_model};
use super::media::Media;
use super::profiles::{BridgeProfile, Profile};
use super::spec::{Fault, Options};

/// What is behind the bridge.
#[derive(Debug)]
pub enum Inner {
    Ata(Box<AtaDrive>),
    Flash(Box<Flash>),
}

/// What became of a command on its way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Answered,
    NoAnswer,
    Gone,
}

/// What the bridge sends back.
#[derive(Debug)]
pub struct Answer {
    pub status: u8,
    pub sense: Vec<u8>,
    pub data: Vec<u8>,
    pub fate: Fate,
    /// Time beyond the drive's own.
    pub extra: Duration,
}

impl Answer {
    fn good(data: Vec<u8>) -> Self {
        Self {
            status: 0,
            sense: Vec::new(),
            data,
            fate: Fate::Answered,
            extra: Duration::ZERO,
        }
    }

    /// A sector that cannot be read, with its block in the information field.
    fn unreadable(code: Code, block: u64) -> Self {
        Self {
            status: 0x02,
            sense: sense::fixed_about(code, block),
            ..Self::good(Vec::new())
        }
    }

    fn check(code: Code) -> Self {
        Self {
            status: 0x02,
            sense: sense::fixed(code),
            ..Self::good(Vec::new())
        }
    }

    fn invalid_field(cdb_byte: u8) -> Self {
        Self {
            status: 0x02,
            sense: sense::fixed_at(Code::INVALID_FIELD, cdb_byte),
            ..Self::good(Vec::new())
        }
    }
}

/// The bridge with what is behind it.
#[derive(Debug)]
pub struct Bridge {
    profile: BridgeProfile,
    usb_serial: String,
    physical_sector_bytes: u64,
    inner: Inner,
    fault: Option<Fault>,
    last: Option<(Registers, bool)>,
    stopped: bool,
    unit_attention: bool,
    becoming_ready: u32,
    gone: bool,
    /// Sectors of the drive in one block of the bridge.
    sectors_per_block: u64,
    /// What it claims whatever the drive has.
    claimed_blocks: Option<u64>,
    cache: Cache,
    /// Unit attention and commands until it is ready, as power-on has them.
    at_power_on: (bool, u32),
}

/// What the bridge asks of the drive when it gets power, and never again.
#[derive(Debug, Default)]
struct Cache {
    blocks: u64,
    identify: Vec<u8>,
}

impl Bridge {
    /// Builds bridge and drive.
    ///
    /// # Errors
    /// The file that is to hold the medium cannot.
    pub fn new(profile: &Profile, options: &Options) -> Result<Self, SpecError> {
        let medium = Media::new(options.medium(profile)?);
        let inner = match &profile.drive {
            Some(drive) => Inner::Ata(Box::new(AtaDrive::new(profile, drive.clone(), medium, options))),
            None => Inner::Flash(Box::new(Flash::new(medium, speed_model(profile, options)))),
        };
        let mut bridge = Self {
            profile: profile.bridge.clone(),
            usb_serial: profile.usb.serial.clone(),
            physical_sector_bytes: u64::from(profile.medium.physical_sector_bytes),
            inner,
            fault: options.fault,
            last: None,
            stopped: false,
            unit_attention: options.unit_attention,
            becoming_ready: options.becoming_ready,
            gone: false,
            sectors_per_block: if options.fake_4k { 8 } else { 1 },
            claimed_blocks: options.capacity,
            cache: Cache::default(),
            at_power_on: (options.unit_attention, options.becoming_ready),
        };
        bridge.power_on();
        Ok(bridge)
    }

    fn power_on(&mut self) {
        (self.unit_attention, self.becoming_ready) = self.at_power_on;
        self.last = None;
        self.stopped = false;
        self.gone = false;
        let (sectors, identify) = match &self.inner {
            Inner::Ata(drive) => (drive.sectors(), drive.identify_page()),
            Inner::Flash(flash) => (flash.medium.sectors(), Vec::new()),
        };
        self.cache = Cache {
            blocks: self
                .claimed_blocks
                .unwrap_or(sectors / self.sectors_per_block.max(1)),
            identify,
        };
    }

    /// Power of bridge and drive goes and comes back at `now`; returns how long it takes until both are up.
    pub fn power_cycle(&mut self, now: Duration) -> Duration {
        self.catch_up(now);
        if let Inner::Ata(drive) = &mut self.inner {
            drive.power_cycle();
        }
        self.power_on();
        self.now().saturating_sub(now)
    }

    /// From now on the content of writes is made up, and only their length counts.
    pub fn hold_nothing(&mut self, yes: bool) {
        match &mut self.inner {
            Inner::Ata(drive) => drive.medium_mut().hold_nothing(yes),
            Inner::Flash(flash) => flash.medium.hold_nothing(yes),
        }
    }

    /// What is behind it.
    pub fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Lets time pass behind the bridge.
    pub fn catch_up(&mut self, now: Duration) {
        match &mut self.inner {
            Inner::Ata(drive) => drive.catch_up(now),
            Inner::Flash(flash) => flash.catch_up(now),
        }
    }

    fn now(&self) -> Duration {
        match &self.inner {
            Inner::Ata(drive) => drive.now(),
            Inner::Flash(flash) => flash.now(),
        }
    }

    fn medium(&self) -> &Media {
        match &self.inner {
            Inner::Ata(drive) => drive.medium(),
            Inner::Flash(flash) => &flash.medium,
        }
    }

    /// Logical blocks, as the bridge claims them.
    pub fn sectors(&self) -> u64 {
        self.cache.blocks
    }

    /// Bytes per logical block.
    pub fn sector_bytes(&self) -> u64 {
        self.drive_sector_bytes().saturating_mul(self.sectors_per_block)
    }

    /// Bytes per sector of the drive.
    fn drive_sector_bytes(&self) -> u64 {
        self.medium().sector_bytes()
    }

    /// Sectors of the drive that are trimmed at present.
    pub fn trimmed_sectors(&self) -> u64 {
        self.medium().trimmed_sectors()
    }

    /// Logical blocks per physical one.
    fn per_physical(&self) -> u64 {
        (self.physical_sector_bytes / self.sector_bytes().max(1)).max(1)
    }

    /// The largest READ or WRITE: 32 MiB.
    fn max_transfer_blocks(&self) -> u64 {
        (32 << 20) / self.sector_bytes().max(1)
    }

    /// Ranges in the largest DATA SET MANAGEMENT.
    fn unmap_ranges(&self) -> u64 {
        match &self.inner {
            Inner::Ata(drive) => drive
                .profile()
                .trim
                .as_ref()
                .map_or(0, |t| 64 * u64::from(t.max_blocks)),
            Inner::Flash(_) => 0,
        }
    }

    fn trimmed_reads_zero(&self) -> bool {
        match &self.inner {
            Inner::Ata(drive) => drive.profile().trim.as_ref().is_some_and(|t| t.zeroes),
            Inner::Flash(_) => false,
        }
    }

    /// Runs one command at `now`; returns the answer and what it took.
    pub fn execute(
        &mut self,
        cdb: &[u8],
        data_out: &[u8],
        in_len: usize,
        now: Duration,
    ) -> (Answer, Duration) {
        self.catch_up(now);
        if self.gone {
            let answer = Answer {
                fate: Fate::Gone,
                ..Answer::good(Vec::new())
            };
            return (answer, Duration::ZERO);
        }
        let before = self.now();
        let mut answer = self.dispatch(cdb, data_out, in_len);
        if answer.data.len() > in_len {
            // The host expects less than the device has to send: a phase error on BOT, a babble under UAS. Both end in a
            // reset, and the host sees no answer (USB BOT 1.0, "The Thirteen Cases", 2 and 7).
            answer = Answer {
                fate: Fate::NoAnswer,
                ..Answer::good(Vec::new())
            };
        }
        self.gone = answer.fate == Fate::Gone;
        let took = self.now().saturating_sub(before);
        let command = Duration::from_micros(self.profile.command_us);
        // Moving data hides the fixed cost of a command behind the transfer before it.
        let elapsed = took.max(command).saturating_add(answer.extra);
        (answer, elapsed)
    }

    fn dispatch(&mut self, cdb: &[u8], data_out: &[u8], in_len: usize) -> Answer {
        let opcode = byte(cdb, 0);
        // INQUIRY, REQUEST SENSE and REPORT LUNS are answered in every state.
        if !matches!(opcode, 0x12 | 0x03 | 0xa0) {
            if self.unit_attention {
                self.unit_attention = false;
                return Answer::check(Code::POWER_ON);
            }
            if self.becoming_ready > 0 {
                self.becoming_ready -= 1;
                return Answer::check(Code::BECOMING_READY);
            }
        }
        let long = self.profile.sixteen_byte_block_commands;
        match opcode {
            0x00 => self.test_unit_ready(),
            0x03 => self.request_sense(cdb),
            0x12 => self.inquiry(cdb),
            0x15 | 0x55 => self.mode_select(cdb, data_out),
            0x1a | 0x5a => self.mode_sense(cdb),
            0x1b => self.start_stop(cdb),
            0x25 => self.read_capacity_10(),
            0x08 | 0x0a | 0x28 | 0x2a | 0xa8 | 0xaa => self.read_write(cdb, data_out),
            0x88 | 0x8a if long => self.read_write(cdb, data_out),
            0x2f => self.verify(cdb, data_out),
            0x8f if long => self.verify(cdb, data_out),
            0x23 if self.profile.removable => self.read_format_capacities(cdb),
            0x35 => self.synchronize_cache(),
            0x91 if long => self.synchronize_cache(),
            0x42 => self.unmap(cdb, data_out),
            0x93 if long => self.write_same(cdb, data_out),
            0x4d => self.log_sense(cdb),
            0x9e if long && byte(cdb, 1) & 0x1f == 0x10 => self.read_capacity_16(cdb),
            // One logical unit, number 0.
            0xa0 => Answer::good(vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            0x1e => Answer::good(Vec::new()),
            0x85 | 0xa1 if self.takes_pass_through(opcode) => self.pass_through(cdb, data_out, in_len),
            _ => Answer::check(Code::INVALID_OPCODE),
        }
    }
}
