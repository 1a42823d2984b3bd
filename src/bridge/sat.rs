//! SAT: ATA PASS-THROUGH (12) and (16) (SAT-4, "ATA PASS-THROUGH commands"), the dialect of most bridges.
//!
//! CK_COND is set only on commands without data: under `uas` Linux drops the data of a command that ends in CHECK
//! CONDITION, and with CK_COND every success does. When registers are wanted and come back empty, RETURN RESPONSE
//! INFORMATION asks for them once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::taskfile::{Protocol, Taskfile};
use super::{AtaDialect, Exchange, Failure, Registers, Reply, Request, Step};
use crate::scsi::sense::{ATA_RETURN_DESCRIPTOR_BYTES, AtaRegisters, Sense};
use crate::transport::{Cdb, Command, Completion, Data, Status};

/// Which CDBs carry the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// ATA PASS-THROUGH (12), opcode A1h, for 28-bit commands, since more bridges take it; (16), 85h, for 48-bit ones.
    Auto,
    /// A1h only: 48-bit commands cannot be carried.
    Twelve,
    /// 85h only, for bridges where A1h is refused or means something else.
    Sixteen,
}

/// Where the CDB says how long the data phase is (T_LENGTH).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthSource {
    /// In COUNT.
    Count,
    /// In the transport (TPSIU).
    Transport,
}

/// What to try for output registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterSource {
    /// CK_COND only.
    CkCond,
    /// CK_COND, then RETURN RESPONSE INFORMATION if it came back empty or was ignored.
    CkCondThenRri,
}

/// The SAT dialect with the habits of one bridge.
#[derive(Debug, Clone)]
pub struct Sat {
    /// CDB for 28-bit commands.
    pub form: Form,
    /// Where the length goes.
    pub length: LengthSource,
    /// How registers are fetched.
    pub registers: RegisterSource,
    learned: Arc<Learned>,
}

/// What was found out while working; asking twice would only cost commands.
#[derive(Debug, Default)]
struct Learned {
    /// Index into [`RRI_FLAGS`] of the form to ask in; its length means that none works.
    rri_form: AtomicUsize,
    /// CK_COND is refused: it need not be tried again.
    ck_cond_refused: AtomicBool,
    /// A length in the transport is taken for IDENTIFY DEVICE only, as ASMedia's ASM105x do.
    transport_for_identify_only: AtomicBool,
}

impl Sat {
    /// A bridge of which nothing more is known.
    pub fn new(form: Form, length: LengthSource, registers: RegisterSource) -> Self {
        Self {
            form,
            length,
            registers,
            learned: Arc::default(),
        }
    }

    /// The opcode that carries 28-bit commands.
    pub fn opcode(&self) -> u8 {
        match self.form {
            Form::Auto | Form::Twelve => 0xa1,
            Form::Sixteen => 0x85,
        }
    }

    /// Where the length of this command goes, by what was learned.
    fn length_for(&self, taskfile: &Taskfile) -> LengthSource {
        let only_identify = self.learned.transport_for_identify_only.load(Ordering::Relaxed);
        if only_identify && taskfile.command != IDENTIFY_DEVICE {
            LengthSource::Count
        } else {
            self.length
        }
    }

    /// By a name that users type: ours (`sat`, `sat12`, `sat16`, with `,tpsiu`) and smartctl's (`sat,12`, `sat,16`, `sat,auto`).
    pub fn by_name(name: &str) -> Option<Self> {
        let (head, length) = match name.strip_suffix(",tpsiu") {
            Some(head) => (head, LengthSource::Transport),
            None => (name, LengthSource::Count),
        };
        let form = match head {
            "sat" | "sat,auto" => Form::Auto,
            "sat12" | "sat,12" => Form::Twelve,
            "sat16" | "sat,16" => Form::Sixteen,
            _ => return None,
        };
        Some(Self::new(form, length, RegisterSource::CkCondThenRri))
    }
}

impl AtaDialect for Sat {
    fn name(&self) -> &'static str {
        match (self.form, self.length) {
            (Form::Auto, LengthSource::Count) => "sat",
            (Form::Auto, LengthSource::Transport) => "sat,tpsiu",
            (Form::Twelve, LengthSource::Count) => "sat12",
            (Form::Twelve, LengthSource::Transport) => "sat12,tpsiu",
            (Form::Sixteen, LengthSource::Count) => "sat16",
            (Form::Sixteen, LengthSource::Transport) => "sat16,tpsiu",
        }
    }

    fn start(&self, request: Request) -> Result<Box<dyn Exchange>, Failure> {
        let check_condition = request.want_registers && request.taskfile.protocol == Protocol::NonData;
        let refused = self.learned.ck_cond_refused.load(Ordering::Relaxed);
        let length = self.length_for(&request.taskfile);
        let cdb = build_cdb(&request.taskfile, self.form, length, check_condition && !refused)
            .ok_or(Failure::CannotCarry { sense: None })?;
        let data = match (request.taskfile.protocol, request.data_out) {
            (p, None) if p.is_in() => Data::In {
                len_bytes: request.taskfile.transfer_bytes(),
            },
            (p, Some(buffer)) if p.is_out() && buffer.len() == request.taskfile.transfer_bytes() => {
                Data::Out(buffer)
            }
            (Protocol::NonData, None) => Data::None,
            _ => return Err(Failure::CannotCarry { sense: None }),
        };
        Ok(Box::new(SatExchange {
            command: Command {
                cdb,
                data,
                timeout: request.timeout,
            },
            check_condition,
            asked_without_ck_cond: refused,
            may_put_length_in_count: length == LengthSource::Transport
                && request.taskfile.protocol != Protocol::NonData
                && request.taskfile.command != IDENTIFY_DEVICE,
            dialect: self.clone(),
            phase: Phase::Start,
            // A reset between two commands that write ends the work; nothing is sent again over it.
            attention_retries: u32::from(request.taskfile.protocol != Protocol::DmaOut),
            ready_retries: if request.taskfile.protocol == Protocol::DmaOut {
                0
            } else {
                READY_RETRIES
            },
        }))
    }
}

/// ATA8-ACS, "IDENTIFY DEVICE".
const IDENTIFY_DEVICE: u8 = 0xec;
/// ATA8-ACS, "READ DMA EXT".
const READ_DMA_EXT: u8 = 0x25;

/// A drive that is becoming ready is asked so many times, [`READY_PAUSE`] apart.
const READY_RETRIES: u32 = 20;
const READY_PAUSE: Duration = Duration::from_millis(500);

/// The flag byte's fields (CDB byte 2).
const CK_COND: u8 = 0x20;
const T_DIR_IN: u8 = 0x08;
const BYT_BLOK: u8 = 0x04;
const T_TYPE_LOGICAL: u8 = 0x10;
const T_LENGTH_COUNT: u8 = 0x02;
const T_LENGTH_TRANSPORT: u8 = 0x03;

/// The CDB of a taskfile; `None` when a 48-bit command would have to fit 12 bytes or a field does not fit.
pub fn build_cdb(
    taskfile: &Taskfile,
    form: Form,
    length: LengthSource,
    check_condition: bool,
) -> Option<Cdb> {
    let protocol = match taskfile.protocol {
        Protocol::NonData => 3,
        Protocol::PioIn => 4,
        Protocol::PioOut => 5,
        Protocol::DmaIn | Protocol::DmaOut => 6,
    };
    let mut flags = if check_condition { CK_COND } else { 0 };
    if taskfile.protocol != Protocol::NonData {
        flags |= BYT_BLOK;
        if taskfile.transfer_sectors != taskfile.count && taskfile.command == READ_DMA_EXT {
            // COUNT is in logical sectors that are larger than 512 bytes.
            flags |= T_TYPE_LOGICAL;
        }
        flags |= if length == LengthSource::Count {
            T_LENGTH_COUNT
        } else {
            T_LENGTH_TRANSPORT
        };
    }
    if taskfile.protocol.is_in() {
        flags |= T_DIR_IN;
    }
    let [feature_low, feature_high] = taskfile.feature.to_le_bytes();
    let [count_low, count_high] = taskfile.count.to_le_bytes();
    let [l0, l1, l2, l3, l4, l5, _, _] = taskfile.lba.to_le_bytes();
    if taskfile.extend {
        if form == Form::Twelve {
            return None;
        }
        return Some(Cdb::from_array([
            0x85,
            protocol << 1 | 1,
            flags,
            feature_high,
            feature_low,
            count_high,
            count_low,
            l3,
            l0,
            l4,
            l1,
            l5,
            l2,
            taskfile.device,
            taskfile.command,
            0,
        ]));
    }
    if feature_high != 0 || count_high != 0 || taskfile.lba >= 1 << 28 {
        return None;
    }
    // LBA bits 27:24 of a 28-bit command live in DEVICE.
    let device = taskfile.device | l3;
    Some(match form {
        Form::Auto | Form::Twelve => Cdb::from_array([
            0xa1,
            protocol << 1,
            flags,
            feature_low,
            count_low,
            l0,
            l1,
            l2,
            device,
            taskfile.command,
            0,
            0,
        ]),
        Form::Sixteen => Cdb::from_array([
            0x85,
            protocol << 1,
            flags,
            0,
            feature_low,
            0,
            count_low,
            0,
            l0,
            0,
            l1,
            0,
            l2,
            device,
            taskfile.command,
            0,
        ]),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    Sent,
    /// RETURN RESPONSE INFORMATION is out.
    AskedForRegisters,
    Over,
}

struct SatExchange {
    command: Command,
    /// Registers are wanted.
    check_condition: bool,
    asked_without_ck_cond: bool,
    /// If the length in the transport is refused, it may be that it is so for this command.
    may_put_length_in_count: bool,
    dialect: Sat,
    phase: Phase,
    attention_retries: u32,
    ready_retries: u32,
}

impl Exchange for SatExchange {
    fn step(&mut self, previous: Option<Completion>) -> Result<Step, Failure> {
        match (self.phase, previous) {
            (Phase::Start, _) => {
                self.phase = Phase::Sent;
                Ok(Step::Send(self.command.clone()))
            }
            (Phase::Sent, Some(completion)) => self.judge(completion),
            (Phase::AskedForRegisters, Some(completion)) => self.judge_rri(&completion),
            _ => Err(Failure::CannotCarry { sense: None }),
        }
    }
}

impl SatExchange {
    fn judge(&mut self, completion: Completion) -> Result<Step, Failure> {
        match completion.status {
            Status::GOOD => self.ended_well(Registers::default(), completion.data),
            Status::CHECK_CONDITION => self.judge_sense(completion),
            Status(status) => Err(Failure::Status { status }),
        }
    }

    fn judge_sense(&mut self, completion: Completion) -> Result<Step, Failure> {
        let Ok(sense) = Sense::parse(&completion.sense) else {
            return Err(Failure::CheckCondition { sense: None });
        };
        // Registers decide before the sense key does: some bridges report success under key 3 or Bh.
        if let Some(registers) = sense.ata.filter(|_| !sense.deferred) {
            return match (registers.is_success(), registers.status) {
                (Some(true), _) => self.ended_well(registers, completion.data),
                (_, Some(status)) => Err(Failure::Aborted {
                    status,
                    error: registers.error.unwrap_or_default(),
                }),
                // STATUS was cut off (18-byte sense): the sense key tells success from failure.
                _ if sense.key <= 1 => self.ended_well(registers, completion.data),
                _ => Err(Failure::CheckCondition {
                    sense: Some(Box::new(sense)),
                }),
            };
        }
        if sense.ata_empty && sense.key <= 1 && self.check_condition {
            return self.ended_well(Registers::default(), completion.data);
        }
        let boxed = || Box::new(sense.clone());
        match (sense.key, sense.asc, sense.ascq) {
            (0x6, _, _) if self.attention_retries > 0 => {
                self.attention_retries -= 1;
                Ok(Step::Send(self.command.clone()))
            }
            (0x2, 0x04, 0x01) if self.ready_retries > 0 => {
                self.ready_retries -= 1;
                Ok(Step::SendAfter {
                    pause: READY_PAUSE,
                    command: self.command.clone(),
                })
            }
            (0x2, _, _) => Err(Failure::NotReady { sense: boxed() }),
            (0x5, 0x20, _) => Err(Failure::CannotCarry { sense: Some(boxed()) }),
            (0x5, 0x24, _) if self.may_ask_without_ck_cond() => {
                // CK_COND may be the field that is refused: the same without it, and the registers by RRI.
                self.asked_without_ck_cond = true;
                self.dialect
                    .learned
                    .ck_cond_refused
                    .store(true, Ordering::Relaxed);
                self.command.cdb = without_ck_cond(&self.command.cdb);
                Ok(Step::Send(self.command.clone()))
            }
            (0x5, 0x24, _) if self.may_put_length_in_count => {
                self.may_put_length_in_count = false;
                self.command.cdb = with_length_in_count(&self.command.cdb);
                Ok(Step::Send(self.command.clone()))
            }
            (0x5, 0x24, _) => Err(Failure::FieldRefused { sense: boxed() }),
            _ => Err(Failure::CheckCondition { sense: Some(boxed()) }),
        }
    }

    fn ended_well(&mut self, registers: Registers, data: Option<Vec<u8>>) -> Result<Step, Failure> {
        if let Data::In { len_bytes } = self.command.data {
            let got_bytes = data.as_ref().map_or(0, Vec::len);
            if got_bytes < len_bytes {
                return Err(Failure::ShortData {
                    got_bytes,
                    want_bytes: len_bytes,
                });
            }
        }
        if self.check_condition
            && registers == Registers::default()
            && let Some(ask) = self.rri()
        {
            self.phase = Phase::AskedForRegisters;
            return Ok(Step::Send(ask));
        }
        if self.dialect.length == LengthSource::Transport && self.length_is_in_count() {
            // That it works shows that it was the length, and not a field of this one command.
            self.dialect
                .learned
                .transport_for_identify_only
                .store(true, Ordering::Relaxed);
        }
        self.phase = Phase::Over;
        Ok(Step::Done(Reply { registers, data }))
    }

    fn length_is_in_count(&self) -> bool {
        let flags = self.command.cdb.as_bytes().get(2).copied().unwrap_or_default();
        flags & T_LENGTH_TRANSPORT == T_LENGTH_COUNT
    }

    fn may_ask_without_ck_cond(&self) -> bool {
        self.check_condition && !self.asked_without_ck_cond && self.rri().is_some()
    }

    /// RETURN RESPONSE INFORMATION in the form that works or is still to be tried.
    fn rri(&self) -> Option<Command> {
        if self.dialect.registers != RegisterSource::CkCondThenRri {
            return None;
        }
        let flags = *RRI_FLAGS.get(self.dialect.learned.rri_form.load(Ordering::Relaxed))?;
        let cdb = rri_cdb(self.dialect.form, flags);
        Some(Command::data_in(
            cdb,
            ATA_RETURN_DESCRIPTOR_BYTES,
            self.command.timeout,
        ))
    }

    fn judge_rri(&mut self, completion: &Completion) -> Result<Step, Failure> {
        let reply = completion
            .data
            .as_deref()
            .filter(|_| completion.status == Status::GOOD);
        let registers = reply
            .and_then(AtaRegisters::from_descriptor)
            .filter(|r| !r.is_all_zero());
        match registers.map(|r| (r, r.is_success(), r.status)) {
            Some((registers, Some(true), _)) => {
                self.phase = Phase::Over;
                Ok(Step::Done(Reply {
                    registers,
                    data: None,
                }))
            }
            Some((registers, Some(false), Some(status))) if status != 0 => Err(Failure::Aborted {
                status,
                error: registers.error.unwrap_or_default(),
            }),
            // No registers, or such without a STATUS that a drive could have: try the other form, then give it up.
            _ => {
                self.dialect.learned.rri_form.fetch_add(1, Ordering::Relaxed);
                match self.rri() {
                    Some(ask) => Ok(Step::Send(ask)),
                    None => {
                        self.phase = Phase::Over;
                        Ok(Step::Done(Reply {
                            registers: Registers::default(),
                            data: None,
                        }))
                    }
                }
            }
        }
    }
}

/// The flag byte is byte 2 in both forms.
fn without_ck_cond(cdb: &Cdb) -> Cdb {
    let mut bytes = cdb.as_bytes().to_vec();
    if let Some(flags) = bytes.get_mut(2) {
        *flags &= !CK_COND;
    }
    Cdb::new(&bytes).unwrap_or(*cdb)
}

/// The same with T_LENGTH saying COUNT.
fn with_length_in_count(cdb: &Cdb) -> Cdb {
    let mut bytes = cdb.as_bytes().to_vec();
    if let Some(flags) = bytes.get_mut(2) {
        *flags = *flags & !T_LENGTH_TRANSPORT | T_LENGTH_COUNT;
    }
    Cdb::new(&bytes).unwrap_or(*cdb)
}

/// Flag bytes of RETURN RESPONSE INFORMATION: the standard's with T_DIR, then the one without that tools in the field send.
const RRI_FLAGS: [u8; 2] = [T_DIR_IN | T_LENGTH_TRANSPORT, T_LENGTH_TRANSPORT];

/// RETURN RESPONSE INFORMATION: protocol 15, data-in, length in the transport.
fn rri_cdb(form: Form, flags: u8) -> Cdb {
    match form {
        Form::Auto | Form::Twelve => Cdb::from_array([0xa1, 0x1e, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        Form::Sixteen => Cdb::from_array([0x85, 0x1e, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    }
}

#[cfg(test)]
mod tests;
