//! A USB bridge: SCSI commands in, the drive's answers out.

mod block;
mod inquiry;
mod passthrough;
pub mod sense;

use std::time::Duration;

use self::sense::Code;
use super::SpecError;
use super::buf::{byte, put8};
use super::drive::transfer::Flash;
use super::drive::{AtaDrive, Registers, speed_model};
use super::heat::Op;
use super::media::{Media, WriteFault};
use super::profiles::{BridgeProfile, HangProfile, Profile, Unknown};
use super::spec::{Fault, Options, Trouble};
use super::speed::Speed;
use crate::wire::{be16, be32};

/// What `fault=late` adds: more than the patience of any usual time-out.
const LATE: Duration = Duration::from_secs(61);

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
    /// What goes wrong on the USB pipes on the way back.
    pub mishap: Option<Mishap>,
}

/// A fault of the USB side, for whoever carries the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// The pipe is halted before the status comes.
    Stall,
    /// The same because the opcode is not known: a habit of BOT; UAS has its status for that.
    RefusedByStall,
    /// The status has the wrong tag.
    WrongTag,
    /// The status claims that nothing was moved.
    WrongResidue,
    /// The status says phase error.
    PhaseError,
    /// The device sends more than was asked for.
    Babble,
    /// The device is silent until a reset.
    Hang,
    /// The device leaves the bus in the middle and comes back.
    Replug,
}

/// What a command makes the device do in the data phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Nothing, or it is not known.
    Nothing,
    /// Send.
    In,
    /// Take so many bytes.
    Out(u64),
    /// Take what the transport announces.
    OutAll,
}

impl Answer {
    fn good(data: Vec<u8>) -> Self {
        Self {
            status: 0,
            sense: Vec::new(),
            data,
            fate: Fate::Answered,
            extra: Duration::ZERO,
            mishap: None,
        }
    }

    fn without(fate: Fate) -> Self {
        Self {
            fate,
            ..Self::good(Vec::new())
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
    trouble: Trouble,
    /// The fault that strikes the present command.
    struck: Option<Fault>,
    /// What it hangs on, since when that has come, and where the next request would continue the last.
    hang: Option<HangProfile>,
    hang_since: Option<Duration>,
    next_block: u64,
    /// A vendor command has come, and the next read will end it.
    doomed: bool,
    last: Option<(Registers, bool)>,
    stopped: bool,
    unit_attention: bool,
    becoming_ready: u32,
    gone: bool,
    /// Sectors of the drive in one block of the bridge.
    sectors_per_block: u64,
    /// Sector of the drive that is block 0 of the host.
    shift_sectors: u64,
    encrypts: bool,
    /// Commands until another drive is in its place.
    swap_after: Option<u64>,
    /// What it claims whatever the drive has.
    claimed_blocks: Option<u64>,
    cache: Cache,
    /// Unit attention and commands until it is ready, as power-on has them.
    at_power_on: (bool, u32),
}

/// Whether a command discards: UNMAP, WRITE SAME (16), or DATA SET MANAGEMENT in ATA PASS-THROUGH (16).
fn discards(cdb: &[u8]) -> bool {
    match byte(cdb, 0) {
        0x42 | 0x93 => true,
        0x85 => byte(cdb, 14) == 0x06,
        _ => false,
    }
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
            trouble: options.trouble,
            struck: None,
            hang: profile.medium.hang,
            hang_since: None,
            next_block: 0,
            doomed: false,
            last: None,
            stopped: false,
            unit_attention: options.unit_attention,
            becoming_ready: options.becoming_ready,
            gone: false,
            sectors_per_block: if options.fake_4k { 8 } else { 1 },
            shift_sectors: options.shift_blocks * if options.fake_4k { 8 } else { 1 },
            encrypts: options.encrypt,
            swap_after: options.swap_after,
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
        self.doomed = false;
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

    /// From now on nobody looks at what is read or written.
    pub fn look_away(&mut self, yes: bool) {
        self.hold_nothing(yes);
        self.medium_mut().show_nothing(yes);
    }

    /// How many bytes of these blocks do not read as what was made up under a name; `None` where nothing is kept.
    pub fn unlike_bytes(&self, first: u64, blocks: u64, name: u64) -> Option<u64> {
        let per_block = self.sectors_per_block;
        let (first, count) = (first.saturating_mul(per_block), blocks.saturating_mul(per_block));
        let sectors = self.medium().unlike(first, count, name)?;
        Some(sectors.saturating_mul(self.medium().sector_bytes()))
    }

    /// The speed model of what is behind it.
    pub fn speed(&self) -> &Speed {
        match &self.inner {
            Inner::Ata(drive) => drive.speed(),
            Inner::Flash(flash) => flash.speed(),
        }
    }

    /// The speed model, to tell it of the load.
    pub fn speed_mut(&mut self) -> &mut Speed {
        match &mut self.inner {
            Inner::Ata(drive) => drive.speed_mut(),
            Inner::Flash(flash) => flash.speed_mut(),
        }
    }

    /// Whether the firmware is lost in this request.
    fn is_lost(&mut self, cdb: &[u8], now: Duration) -> bool {
        let Some(hang) = self.hang else { return false };
        let op = match byte(cdb, 0) {
            0x28 | 0x88 => Op::Read,
            0x2a | 0x8a => Op::Write,
            _ => return false,
        };
        let (first, count, _) = block::extent(cdb);
        let random = first != std::mem::replace(&mut self.next_block, first.saturating_add(count));
        if op != hang.op || !random || self.speed().load.in_flight < hang.in_flight {
            self.hang_since = None;
            return false;
        }
        let since = *self.hang_since.get_or_insert(now);
        let lost = now.saturating_sub(since).as_secs_f64() >= hang.after_s;
        if lost {
            // The reset that follows brings it back.
            self.hang_since = None;
        }
        lost
    }

    /// What is behind it.
    pub fn inner(&self) -> &Inner {
        &self.inner
    }

    /// What is behind it, to change it.
    pub fn inner_mut(&mut self) -> &mut Inner {
        &mut self.inner
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

    /// What is stored, without a command.
    pub fn medium(&self) -> &Media {
        match &self.inner {
            Inner::Ata(drive) => drive.medium(),
            Inner::Flash(flash) => &flash.medium,
        }
    }

    /// What is stored, to change it without a command.
    pub fn medium_mut(&mut self) -> &mut Media {
        match &mut self.inner {
            Inner::Ata(drive) => drive.medium_mut(),
            Inner::Flash(flash) => &mut flash.medium,
        }
    }

    /// Logical blocks, as the bridge claims them.
    pub fn sectors(&self) -> u64 {
        self.cache.blocks
    }

    /// Sectors of the drive that make one block.
    pub fn sectors_per_block(&self) -> u64 {
        self.sectors_per_block
    }

    /// Blocks that the medium really has.
    pub fn whole_blocks(&self) -> u64 {
        self.medium().sectors() / self.sectors_per_block.max(1)
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
            // What is not there decrypts to noise.
            Inner::Ata(_) if self.encrypts => false,
            Inner::Ata(drive) => drive.profile().trim.as_ref().is_some_and(|t| t.zeroes),
            Inner::Flash(_) => false,
        }
    }

    /// The fault in waiting, to change it.
    pub fn trouble_mut(&mut self) -> &mut Trouble {
        &mut self.trouble
    }

    /// Whether it has left the bus for good.
    pub fn gone(&self) -> bool {
        self.gone
    }

    /// The host has given up the command that is running: the drive gets a reset.
    pub fn give_up(&mut self) {
        if let Inner::Ata(drive) = &mut self.inner {
            drive.hard_reset();
        }
    }

    /// The answer to a command for a logical unit that does not exist.
    pub fn no_such_unit(&mut self, cdb: &[u8]) -> Answer {
        match byte(cdb, 0) {
            0x12 => {
                let mut data = self.standard_inquiry();
                put8(&mut data, 0, 0x7f);
                data.truncate(usize::from(be16(cdb, 3).unwrap_or_default()));
                Answer::good(data)
            }
            0xa0 => self.dispatch(cdb, &[], None),
            _ => Answer::check(Code::NO_SUCH_UNIT),
        }
    }

    /// Runs one command at `now`; returns the answer and what it took. `room` is what the host has room for, where the
    /// transport tells.
    pub fn execute(
        &mut self,
        cdb: &[u8],
        data_out: &[u8],
        room: Option<usize>,
        now: Duration,
    ) -> (Answer, Duration) {
        self.catch_up(now);
        if self.gone {
            return (Answer::without(Fate::Gone), Duration::ZERO);
        }
        if self.is_lost(cdb, now) {
            return (Answer::without(Fate::NoAnswer), Duration::ZERO);
        }
        self.swap_when_due();
        let before = self.now();
        let mut answer = self.struck_or_done(cdb, data_out, room);
        if let Inner::Ata(drive) = &mut self.inner {
            answer.extra = answer.extra.saturating_add(drive.take_held());
        }
        self.gone = answer.fate == Fate::Gone;
        let took = self.now().saturating_sub(before);
        let command = Duration::from_micros(self.profile.command_us);
        // Moving data hides the fixed cost of a command behind the transfer before it.
        let elapsed = took.max(command).saturating_add(answer.extra);
        (answer, elapsed)
    }

    /// Somebody takes the drive out and puts its twin in, without the bridge telling.
    fn swap_when_due(&mut self) {
        match &mut self.swap_after {
            Some(0) => {
                self.swap_after = None;
                if let Inner::Ata(drive) = &mut self.inner {
                    drive.become_a_twin();
                }
            }
            Some(left) => *left -= 1,
            None => {}
        }
    }

    fn struck_or_done(&mut self, cdb: &[u8], data_out: &[u8], room: Option<usize>) -> Answer {
        let opcode = byte(cdb, 0);
        let foreign = matches!(opcode, 0x85 | 0xa1) && !self.takes_pass_through(opcode);
        let wanted = self.want(cdb);
        let writes = matches!(opcode, 0x0a | 0x2a | 0xaa | 0x8a | 0x85 | 0xa1)
            && matches!(wanted, Want::Out(_) | Want::OutAll);
        self.struck = if foreign {
            None
        } else {
            self.trouble.strike(opcode, writes, discards(cdb))
        };
        let write_fault = match self.struck {
            Some(Fault::TornWrite) => Some(WriteFault::Torn),
            Some(Fault::LostWrite) => Some(WriteFault::Lost),
            _ => None,
        };
        self.medium_mut().set_write_fault(write_fault);
        if self.trouble.fault == Some(Fault::DieAfterVendor) {
            self.struck = None;
            if self.doomed && matches!(opcode, 0x08 | 0x28 | 0xa8 | 0x88) {
                self.doomed = false;
                self.struck = Some(Fault::Hang);
            }
            self.doomed |= matches!(opcode, 0x06 | 0x24 | 0xc0..);
        }
        let mishap = match self.struck {
            Some(Fault::Timeout) => return Answer::without(Fate::NoAnswer),
            Some(Fault::Gone) => return Answer::without(Fate::Gone),
            Some(Fault::Error) => return Answer::check(Code::INTERNAL),
            Some(Fault::Hang) => Mishap::Hang,
            Some(Fault::Replug) => Mishap::Replug,
            Some(Fault::Stall) => Mishap::Stall,
            Some(Fault::PhaseError) => Mishap::PhaseError,
            Some(Fault::Babble) => Mishap::Babble,
            Some(Fault::CswTag) => Mishap::WrongTag,
            Some(Fault::CswResidue) => Mishap::WrongResidue,
            _ => {
                let mut answer = self.dispatch(cdb, data_out, room);
                if self.struck == Some(Fault::Late) {
                    answer.extra = answer.extra.saturating_add(LATE);
                }
                return answer;
            }
        };
        let mut answer = match mishap {
            // The command is done; only the word of it goes astray.
            Mishap::WrongTag | Mishap::WrongResidue | Mishap::Babble => self.dispatch(cdb, data_out, room),
            Mishap::Stall | Mishap::RefusedByStall | Mishap::PhaseError | Mishap::Hang | Mishap::Replug => {
                Answer::check(Code::INVALID_OPCODE)
            }
        };
        answer.mishap = Some(mishap);
        answer
    }

    /// What the command wants of the data phase, before it runs.
    pub fn want(&self, cdb: &[u8]) -> Want {
        let opcode = byte(cdb, 0);
        let blocks = |count: u64| Want::Out(count.saturating_mul(self.sector_bytes()));
        let short = |at| u64::from(be16(cdb, at).unwrap_or_default());
        let long = |at| u64::from(be32(cdb, at).unwrap_or_default());
        match opcode {
            0x85 | 0xa1 => self.want_of_pass_through(cdb),
            0x0a => blocks(match byte(cdb, 4) {
                0 => 256,
                n => u64::from(n),
            }),
            0x2a => blocks(short(7)),
            0xaa => blocks(long(6)),
            0x8a => blocks(long(10)),
            0x41 | 0x93 if byte(cdb, 1) & 0x01 == 0 => blocks(1),
            // VERIFY with BYTCHK 01b compares with what comes; 11b with one block.
            0x2f if byte(cdb, 1) >> 1 & 3 == 1 => blocks(short(7)),
            0x8f if byte(cdb, 1) >> 1 & 3 == 1 => blocks(long(10)),
            0x2f | 0x8f if byte(cdb, 1) >> 1 & 3 == 3 => blocks(1),
            0x42 | 0x55 => Want::Out(short(7)),
            0x15 => Want::Out(u64::from(byte(cdb, 4))),
            0x03 | 0x08 | 0x12 | 0x1a | 0x23 | 0x25 | 0x28 | 0x37 | 0x3c | 0x4d | 0x5a | 0x88 | 0x9e
            | 0xa0 | 0xa3 | 0xa8 | 0xab => Want::In,
            _ => Want::Nothing,
        }
    }

    fn dispatch(&mut self, cdb: &[u8], data_out: &[u8], room: Option<usize>) -> Answer {
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
            0xa0 => {
                let mut list = vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                let allocation = be32(cdb, 6).unwrap_or_default();
                list.truncate(usize::try_from(allocation).unwrap_or(usize::MAX));
                Answer::good(list)
            }
            0x1e => Answer::good(Vec::new()),
            0x85 | 0xa1 if self.takes_pass_through(opcode) => self.pass_through(cdb, data_out, room),
            _ => Answer {
                mishap: (self.profile.unknown == Unknown::Stall).then_some(Mishap::RefusedByStall),
                ..Answer::check(Code::INVALID_OPCODE)
            },
        }
    }
}
