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
        let cdb = build_cdb(
            &request.taskfile,
            self.form,
            self.length,
            check_condition && !refused,
        )
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
            dialect: self.clone(),
            phase: Phase::Start,
            attention_retries: 1,
            ready_retries: READY_RETRIES,
        }))
    }
}

/// A drive that is becoming ready is asked so many times, [`READY_PAUSE`] apart.
const READY_RETRIES: u32 = 20;
const READY_PAUSE: Duration = Duration::from_millis(500);

/// The flag byte's fields (CDB byte 2).
const CK_COND: u8 = 0x20;
const T_DIR_IN: u8 = 0x08;
const BYT_BLOK: u8 = 0x04;
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
        self.phase = Phase::Over;
        Ok(Step::Done(Reply { registers, data }))
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
mod tests {
    use super::*;
    use crate::bridge::{BridgeError, run};
    use crate::transport::layer::replay::Replay;
    use crate::transport::layer::xchg;

    fn taskfile(registers: [u8; 7], protocol: Protocol, transfer_sectors: u16) -> Taskfile {
        let [feature, count, low, mid, high, device, command] = registers;
        Taskfile {
            feature: u16::from(feature),
            count: u16::from(count),
            lba: u64::from(low) | u64::from(mid) << 8 | u64::from(high) << 16,
            device,
            command,
            extend: false,
            protocol,
            transfer_sectors,
        }
    }

    fn identify() -> Taskfile {
        taskfile([0, 1, 0, 0, 0, 0, 0xec], Protocol::PioIn, 1)
    }

    fn return_status() -> Taskfile {
        taskfile([0xda, 0, 0, 0x4f, 0xc2, 0, 0xb0], Protocol::NonData, 0)
    }

    fn hex(cdb: Option<Cdb>) -> String {
        cdb.map(|c| c.to_string().to_uppercase()).unwrap_or_default()
    }

    /// The CDBs as they are known from the wire of other tools and from the standard's tables.
    #[test]
    fn cdbs_are_the_golden_ones() {
        let (twelve, sixteen, count) = (Form::Twelve, Form::Sixteen, LengthSource::Count);
        assert_eq!(
            hex(build_cdb(&identify(), twelve, count, false)),
            "A1 08 0E 00 01 00 00 00 00 EC 00 00"
        );
        assert_eq!(
            hex(build_cdb(&identify(), twelve, LengthSource::Transport, false)),
            "A1 08 0F 00 01 00 00 00 00 EC 00 00"
        );
        assert_eq!(
            hex(build_cdb(&identify(), sixteen, count, false)),
            "85 08 0E 00 00 00 01 00 00 00 00 00 00 00 EC 00"
        );
        assert_eq!(
            hex(build_cdb(&return_status(), sixteen, count, true)),
            "85 06 20 00 DA 00 00 00 00 00 4F 00 C2 00 B0 00"
        );
        let write_log = taskfile([0xd6, 1, 0xe0, 0x4f, 0xc2, 0, 0xb0], Protocol::PioOut, 1);
        assert_eq!(
            hex(build_cdb(&write_log, twelve, count, false)),
            "A1 0A 06 D6 01 E0 4F C2 00 B0 00 00"
        );
        let set_max = Taskfile {
            lba: 0x0012_3456_789a,
            extend: true,
            ..taskfile([0, 0, 0, 0, 0, 0x40, 0x37], Protocol::NonData, 0)
        };
        assert_eq!(
            build_cdb(&set_max, twelve, count, true),
            None,
            "48 bits do not fit"
        );
        for form in [Form::Auto, sixteen] {
            assert_eq!(
                hex(build_cdb(&set_max, form, count, true)),
                "85 07 20 00 00 00 00 34 9A 12 78 00 56 40 37 00"
            );
        }
        let too_wide = Taskfile {
            feature: 0x100,
            ..identify()
        };
        assert_eq!(build_cdb(&too_wide, twelve, count, false), None);
    }

    fn play(script: &str, dialect: &Sat, request: Request) -> (Result<Reply, BridgeError>, usize) {
        let mut replay = Replay::new("test".to_owned(), xchg::parse(script).expect("script"));
        let result = run(&mut replay, dialect, request);
        (result, replay.remaining().len())
    }

    fn status_request() -> Request {
        Request::new("SMART RETURN STATUS", return_status(), Duration::from_secs(5)).with_registers()
    }

    fn sat(form: Form) -> Sat {
        Sat::new(form, LengthSource::Count, RegisterSource::CkCondThenRri)
    }

    const STATUS_12: &str = "> cdb a1 06 20 da 00 00 4f c2 00 b0 00 00\n";
    const RRI_12: &str = "> cdb a1 1e 0b 00 00 00 00 00 00 00 00 00\n> in 14\n";

    #[test]
    fn success_in_sense_data_is_success() {
        let script = format!(
            "{STATUS_12}< status 02\n< sense 72 01 00 1d 00 00 00 0e 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n"
        );
        let (reply, left) = play(&script, &sat(Form::Twelve), status_request());
        let registers = reply.expect("registers").registers;
        assert_eq!(
            (registers.lba_mid, registers.lba_high, registers.status),
            (Some(0x4f), Some(0xc2), Some(0x50))
        );
        assert_eq!(left, 0);
    }

    #[test]
    fn success_under_a_bad_key_is_success_too() {
        let script = format!(
            "{STATUS_12}< status 02\n< sense 72 0b 00 00 00 00 00 0e 09 0c 00 00 00 00 00 00 00 f4 00 2c 00 50\n"
        );
        let (reply, _) = play(&script, &sat(Form::Twelve), status_request());
        assert_eq!(reply.expect("registers").registers.lba_mid, Some(0xf4));
    }

    #[test]
    fn empty_registers_are_asked_for_once() {
        let empty = format!(
            "{STATUS_12}< status 02\n< sense 70 00 01 00 00 00 00 0a 00 00 00 00 00 1d 00 00 00 00\n"
        );
        let answered =
            format!("{empty}{RRI_12}< status 00\n< in 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n");
        let (reply, left) = play(&answered, &sat(Form::Twelve), status_request());
        assert_eq!(reply.expect("registers").registers.lba_high, Some(0xc2));
        assert_eq!(left, 0);

        const NO: &str = "< status 02\n< sense 70 00 05 00 00 00 00 0a 00 00 00 00 24 00 00 00 00 00\n";
        const RRI_12_PLAIN: &str = "> cdb a1 1e 03 00 00 00 00 00 00 00 00 00\n> in 14\n";
        let second_form = format!(
            "{empty}{RRI_12}{NO}{RRI_12_PLAIN}< status 00\n< in 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n"
        );
        let (reply, left) = play(&second_form, &sat(Form::Twelve), status_request());
        assert_eq!(reply.expect("registers").registers.lba_high, Some(0xc2));
        assert_eq!(left, 0);

        let refused = format!("{empty}{RRI_12}{NO}{RRI_12_PLAIN}{NO}");
        let dialect = sat(Form::Twelve);
        let (reply, left) = play(&refused, &dialect, status_request());
        assert_eq!(
            reply.expect("no registers, no error").registers,
            Registers::default()
        );
        assert_eq!(left, 0);
        let (_, left) = play(&empty, &dialect, status_request());
        assert_eq!(left, 0, "the second time nobody asks again");
    }

    /// The registers that RETURN RESPONSE INFORMATION brings may be those of a command that the drive aborted.
    #[test]
    fn an_aborted_command_is_no_passed_one() {
        let aborted = format!(
            "{STATUS_12}< status 00\n{RRI_12}< status 00\n< in 09 0c 00 04 00 00 00 00 00 4f 00 c2 00 51\n"
        );
        let (reply, _) = play(&aborted, &sat(Form::Twelve), status_request());
        let error = reply.expect_err("the drive aborted it");
        assert_eq!(
            error.failure(),
            Some(&Failure::Aborted {
                status: 0x51,
                error: 0x04
            })
        );
    }

    #[test]
    fn a_bridge_that_refuses_ck_cond_is_asked_without_it() {
        let refused = format!(
            "{STATUS_12}< status 02\n< sense 70 00 05 00 00 00 00 0a 00 00 00 00 24 00 00 00 00 00\n"
        );
        let plain = "> cdb a1 06 00 da 00 00 4f c2 00 b0 00 00\n< status 00\n";
        let script =
            format!("{refused}{plain}{RRI_12}< status 00\n< in 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n");
        let (reply, left) = play(&script, &sat(Form::Twelve), status_request());
        assert_eq!(reply.expect("registers").registers.lba_high, Some(0xc2));
        assert_eq!(left, 0);
    }

    #[test]
    fn a_refused_ck_cond_is_not_tried_again() {
        let dialect = sat(Form::Twelve);
        dialect.learned.ck_cond_refused.store(true, Ordering::Relaxed);
        let plain = "> cdb a1 06 00 da 00 00 4f c2 00 b0 00 00\n< status 00\n";
        let script = format!("{plain}{RRI_12}< status 00\n< in 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n");
        let (reply, left) = play(&script, &dialect, status_request());
        assert_eq!(reply.expect("registers").registers.lba_mid, Some(0x4f));
        assert_eq!(left, 0);
    }

    #[test]
    fn a_bridge_that_ignores_ck_cond_gives_unknown_registers() {
        let dialect = Sat::new(Form::Twelve, LengthSource::Count, RegisterSource::CkCond);
        let (reply, _) = play(&format!("{STATUS_12}< status 00\n"), &dialect, status_request());
        assert_eq!(reply.expect("good status").registers, Registers::default());
    }

    #[test]
    fn failures_keep_their_kind() {
        let head = "> cdb a1 08 0e 00 01 00 00 00 00 ec 00 00\n> in 512\n";
        let request = || Request::new("IDENTIFY DEVICE", identify(), Duration::from_secs(5));
        let fixed = |key: u8, asc: u8, ascq: u8| {
            format!(
                "{head}< status 02\n< sense 70 00 {key:02x} 00 00 00 00 0a 00 00 00 00 {asc:02x} {ascq:02x} 00 00 00 00\n"
            )
        };
        let failure = |script: &str| {
            let (result, _) = play(script, &sat(Form::Twelve), request());
            result
                .expect_err("a failure")
                .failure()
                .expect("answered")
                .clone()
        };
        assert!(matches!(
            failure(&fixed(5, 0x20, 0)),
            Failure::CannotCarry { sense: Some(_) }
        ));
        assert!(matches!(
            failure(&fixed(5, 0x24, 0)),
            Failure::FieldRefused { .. }
        ));
        assert!(matches!(failure(&fixed(2, 0x3a, 0)), Failure::NotReady { .. }));
        assert!(matches!(
            failure(&fixed(3, 0x11, 0)),
            Failure::CheckCondition { sense: Some(_) }
        ));
        assert!(matches!(
            failure(&format!("{head}< status 02\n")),
            Failure::CheckCondition { sense: None }
        ));
        assert!(matches!(
            failure(&format!("{head}< status 08\n")),
            Failure::Status { status: 8 }
        ));
        assert!(matches!(
            failure(&format!("{head}< status 00\n< in 00 01\n")),
            Failure::ShortData {
                got_bytes: 2,
                want_bytes: 512
            }
        ));
        // The drive's own abort, in the fixed layout of older kernels' SATA layer.
        let old_libata =
            format!("{head}< status 02\n< sense 70 00 05 00 00 00 00 0a 04 51 40 01 21 04 00 00 00 00\n");
        assert_eq!(
            failure(&old_libata),
            Failure::Aborted {
                status: 0x51,
                error: 0x04
            }
        );
    }

    #[test]
    fn attention_is_retried_once_and_becoming_ready_with_patience() {
        let head = "> cdb a1 08 0e 00 01 00 00 00 00 ec 00 00\n> in 512\n";
        let attention = "< status 02\n< sense 70 00 06 00 00 00 00 0a 00 00 00 00 29 00 00 00 00 00\n";
        let becoming = "< status 02\n< sense 70 00 02 00 00 00 00 0a 00 00 00 00 04 01 00 00 00 00\n";
        let data: String = (0..16)
            .map(|_| format!("< in {}\n", "11 ".repeat(32).trim()))
            .collect();
        let script = format!("{head}{attention}{head}{becoming}{head}< status 00\n{data}");
        let request = Request::new("IDENTIFY DEVICE", identify(), Duration::from_secs(5));
        let (reply, left) = play(&script, &sat(Form::Twelve), request);
        assert_eq!(reply.expect("data").data.map(|d| d.len()), Some(512));
        assert_eq!(left, 0);
    }
}
