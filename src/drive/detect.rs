//! Finding the way to the drive behind a bridge with the least harm.
//!
//! The order: what the kernel knows, what the tables forbid, what was remembered; then, unless the media is known to be
//! flash, CHECK POWER MODE before anything that could wake a disk; then IDENTIFY DEVICE in the forms of SAT, the one that
//! most bridges take first. A reset, time-out or transport error ends it at once and is remembered.

use std::collections::BTreeMap;
use std::time::Duration;

use super::error::{NoPassThrough, Rejected};
use super::known;
use super::power::{Media, PowerState};
use super::{Access, DriveError, OpenOptions};
use crate::ata::identify::Identify;
use crate::ata::power::PowerMode;
use crate::bridge::memory::{BridgeKey, Harm, Remembered};
use crate::bridge::quirks::{self, Rule};
use crate::bridge::sat::{Form, LengthSource, RegisterSource, Sat};
use crate::bridge::taskfile::Taskfile;
use crate::bridge::{self, AtaDialect, BridgeError, Failure, Request};
use crate::scsi::cdb;
use crate::scsi::inquiry::Inquiry;
use crate::scsi::sense::Sense;
use crate::sys::NodeFacts;
use crate::transport::{Command, Completion, Status, Transport, TransportError, execute};

/// How the dialect was arrived at, for `info`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// The user said so.
    Named,
    /// It worked the last time.
    Remembered,
    /// The bridge tables name it.
    Table {
        /// Source of the fact.
        evidence: String,
    },
    /// It answered.
    Probed,
}

/// What detection found.
pub(super) struct Detected {
    pub access: Access,
    pub identify: Option<Identify>,
    pub inquiry: Option<Inquiry>,
    pub found_by: FoundBy,
    pub tried: Vec<Rejected>,
    pub media: Media,
    pub power: PowerState,
    /// Commands that harmed this bridge before.
    pub avoid: BTreeMap<String, Harm>,
}

/// Everything that the steps share.
pub(super) struct Detection<'a> {
    pub transport: &'a mut dyn Transport,
    pub facts: &'a NodeFacts,
    pub options: &'a OpenOptions,
    pub key: Option<&'a BridgeKey>,
    /// Gate on the power state before anything that might wake a disk.
    pub gate: bool,
}

/// The name that this question is remembered by when it harms a bridge.
pub(super) const CHECK_POWER_MODE: &str = "CHECK POWER MODE";

/// SAT in the forms that are tried, in this order.
const FORMS: [(Form, LengthSource); 4] = [
    (Form::Auto, LengthSource::Count),
    (Form::Auto, LengthSource::Transport),
    (Form::Sixteen, LengthSource::Count),
    (Form::Sixteen, LengthSource::Transport),
];

impl Detection<'_> {
    pub fn run(mut self) -> Result<Detected, DriveError> {
        let remembered = self.recall();
        let media = known::media(self.facts);
        let named = match self.options.dialect.as_deref() {
            None | Some("auto") => None,
            Some("scsi") => {
                let inquiry = self.inquiry()?;
                return Ok(self.scsi_only(NoPassThrough::AskedForScsi, inquiry, FoundBy::Named, media));
            }
            Some(name) => Some(Sat::by_name(name).ok_or_else(|| {
                DriveError::BadName {
                    name: name.to_owned(),
                    why: "no such dialect; known are auto, sat, sat12, sat16 (each with ,tpsiu) and scsi"
                        .to_owned(),
                }
            })?),
        };
        // Before the first command, INQUIRY included.
        if let (None, Some(harm)) = (&named, &remembered.harmed_by) {
            return Err(DriveError::HarmedBefore {
                device: self.transport.device().to_owned(),
                harm: harm.clone(),
            });
        }
        let inquiry = self.inquiry()?;
        // Whatever the user named: on other devices the opcodes of ATA PASS-THROUGH mean something else.
        if let Some(why) = known::not_a_disk(self.facts, inquiry.as_ref()) {
            return Ok(self.scsi_only(why, inquiry, FoundBy::Probed, media));
        }
        if named.is_none()
            && let Some(why) = known::forbidden(self.facts)
        {
            return Ok(self.scsi_only(why, inquiry, FoundBy::Probed, media));
        }
        let (mut candidates, found_by) = self.candidates(named, &remembered);
        let mut power = PowerState::Unknown;
        let mut media = media;
        let mut tried = Vec::new();
        // What a bridge once said of flash memory excuses nothing where the media is known to turn.
        let lies = remembered.power_mode_lies && media != Media::Rotating;
        let gated = self.gate && media != Media::Flash && !lies;
        // Told to wake it: if IDENTIFY then says flash, a standby answer is remembered as one that means nothing here.
        if gated || self.learns_from_waking(media, &remembered) {
            power = self.power_before_identify(&mut candidates, media, &remembered.avoid)?;
        }
        if gated {
            self.leave_asleep(power, media)?;
        }
        let mut unknown_opcodes = Vec::new();
        let mut any_refused = false;
        for sat in candidates {
            // An opcode that is unknown stays so with the length in another place.
            if unknown_opcodes.contains(&sat.opcode()) {
                continue;
            }
            let answer = bridge::run(self.transport, &sat, identify_request(self.options.timeout));
            let why = match answer {
                Ok(reply) => match known::believe(reply.data.as_deref().unwrap_or_default()) {
                    Ok(identify) => {
                        media = known::media_from_identify(&identify, media);
                        let found_by = match (&found_by, tried.is_empty()) {
                            (FoundBy::Remembered | FoundBy::Table { .. }, false) => FoundBy::Probed,
                            _ => found_by,
                        };
                        self.remember(&remembered, &sat, &found_by, media, power);
                        return Ok(Detected {
                            access: Access::Ata(Box::new(sat)),
                            identify: Some(identify),
                            inquiry,
                            found_by,
                            tried,
                            media,
                            power,
                            avoid: remembered.avoid,
                        });
                    }
                    Err(why) => why,
                },
                Err(BridgeError::Transport(error)) => return Err(self.stop(error)),
                Err(error) => {
                    any_refused = true;
                    let Some(failure) = error.failure() else {
                        return Err(error.into());
                    };
                    match failure {
                        Failure::CannotCarry { .. } => unknown_opcodes.push(sat.opcode()),
                        _ if another_form_may_help(failure) => {}
                        // The drive or the bridge is in trouble, and no other form of CDB will cure that.
                        _ => return Err(error.into()),
                    }
                    short(failure)
                }
            };
            tried.push(Rejected {
                dialect: sat.name().to_owned(),
                why,
            });
        }
        if any_refused {
            self.clear_error_state()?;
        }
        let why = NoPassThrough::Refused { tried };
        Ok(self.scsi_only(why, inquiry, FoundBy::Probed, media))
    }

    fn recall(&self) -> Remembered {
        match (&self.options.memory, self.key) {
            (Some(memory), Some(key)) => {
                if self.options.forget
                    && let Err(error) = memory.forget(key)
                {
                    tracing::warn!("could not forget {}: {error}", key.as_str());
                }
                memory.recall(key)
            }
            _ => Remembered::default(),
        }
    }

    fn scsi_only(
        &self,
        why: NoPassThrough,
        inquiry: Option<Inquiry>,
        found_by: FoundBy,
        media: Media,
    ) -> Detected {
        let tried = match &why {
            NoPassThrough::Refused { tried } => tried.clone(),
            _ => Vec::new(),
        };
        Detected {
            access: Access::ScsiOnly(why),
            identify: None,
            inquiry,
            found_by,
            tried,
            media,
            power: PowerState::Unknown,
            avoid: self.recall().avoid,
        }
    }

    /// The kernel's copy, or one command.
    fn inquiry(&mut self) -> Result<Option<Inquiry>, DriveError> {
        if let Some(bytes) = &self.facts.scsi.inquiry {
            return Ok(Inquiry::parse(bytes).ok());
        }
        let command = Command::data_in(cdb::inquiry(36), 36, self.options.timeout);
        let mut completion = execute(self.transport, command.clone()).map_err(|e| self.stop(e))?;
        if completion.status == Status::CHECK_CONDITION {
            // A unit attention, or a device that is not ready yet: INQUIRY must work the second time.
            completion = execute(self.transport, command).map_err(|e| self.stop(e))?;
        }
        Ok(completion
            .data
            .as_deref()
            .and_then(|bytes| Inquiry::parse(bytes).ok()))
    }

    fn candidates(&self, named: Option<Sat>, remembered: &Remembered) -> (Vec<Sat>, FoundBy) {
        if let Some(sat) = named {
            return (vec![sat], FoundBy::Named);
        }
        let make =
            |&(form, length): &(Form, LengthSource)| Sat::new(form, length, RegisterSource::CkCondThenRri);
        let quirk = self
            .facts
            .usb
            .as_ref()
            .and_then(|usb| quirks::lookup(usb.vid, usb.pid, usb.bcd_device));
        let never_twelve = matches!(quirk.map(|q| q.rule), Some(Rule::Start("sat16" | "sat16,tpsiu")));
        let allowed = |sat: &Sat| !never_twelve || sat.form == Form::Sixteen;
        let mut all: Vec<Sat> = FORMS.iter().map(make).filter(allowed).collect();
        let mut first = None;
        let mut found_by = FoundBy::Probed;
        if let Some(quirk) = quirk
            && let Rule::Start(name) = quirk.rule
        {
            first = Sat::by_name(name);
            found_by = FoundBy::Table {
                evidence: quirk.evidence.to_owned(),
            };
        }
        if let Some(sat) = remembered
            .dialect
            .as_deref()
            .and_then(Sat::by_name)
            .filter(allowed)
        {
            first = Some(sat);
            found_by = FoundBy::Remembered;
        }
        if let Some(first) = first {
            all.retain(|sat| sat.name() != first.name());
            all.insert(0, first);
        }
        (all, found_by)
    }

    /// CHECK POWER MODE in the first form of each opcode, then REQUEST SENSE.
    ///
    /// An answer that does not come leaves the state unknown, for a bridge may refuse commands without data and still carry
    /// others; IDENTIFY then tells whether the media turns.
    fn power_before_identify(
        &mut self,
        candidates: &mut [Sat],
        media: Media,
        avoid: &BTreeMap<String, Harm>,
    ) -> Result<PowerState, DriveError> {
        let mut refused_opcodes = Vec::new();
        let mut order = candidates.to_vec();
        if avoid.contains_key(CHECK_POWER_MODE) {
            order.clear();
        }
        for sat in &order {
            if refused_opcodes.contains(&sat.opcode()) {
                continue;
            }
            let answered = self.check_power_mode(sat, media);
            if answered.is_ok() {
                // IDENTIFY goes by the opcode that works.
                candidates.sort_by_key(|other| other.opcode() != sat.opcode());
            }
            match answered {
                Ok(Some(state)) => return Ok(state),
                Ok(None) => break,
                Err(BridgeError::Transport(error)) => return Err(self.stop(error)),
                Err(error) => match error.failure() {
                    Some(Failure::CannotCarry { .. }) => refused_opcodes.push(sat.opcode()),
                    _ => break,
                },
            }
        }
        if refused_opcodes.len() > 1 {
            // Neither opcode is known: most likely a plain stick, which REQUEST SENSE would tell nothing of either.
            return Ok(PowerState::Unknown);
        }
        let command = ask_sense(self.options.timeout);
        if avoid.contains_key(&command.cdb.name()) {
            return Ok(PowerState::Unknown);
        }
        let completion = execute(self.transport, command).map_err(|e| self.stop(e))?;
        Ok(power_from_sense(completion))
    }

    /// The state, or `None` when the bridge returned no COUNT.
    fn check_power_mode(&mut self, sat: &Sat, media: Media) -> Result<Option<PowerState>, BridgeError> {
        // Of a disk that is known to turn this is the only question that may be asked, so it is asked in every way. Otherwise
        // IDENTIFY comes before RETURN RESPONSE INFORMATION, which few bridges know.
        let registers = match media {
            Media::Rotating => RegisterSource::CkCondThenRri,
            _ => RegisterSource::CkCond,
        };
        let probe = Sat::new(sat.form, sat.length, registers);
        // Linux cuts the first long sense to 18 bytes, and COUNT 0 (standby) then looks like nothing at all; the second
        // answer comes whole.
        for _ in 0..2 {
            let taskfile = Taskfile::check_power_mode();
            let request = Request::new(CHECK_POWER_MODE, taskfile, self.options.timeout).with_registers();
            let reply = bridge::run(self.transport, &probe, request)?;
            if let Some(count) = reply.registers.count {
                let state = PowerState::from_power_mode(PowerMode::from_count(count));
                return Ok((state != PowerState::Unknown).then_some(state));
            }
        }
        Ok(None)
    }

    /// A standby answer leaves the drive alone: of media that is not known to be flash nothing else is asked.
    fn leave_asleep(&self, state: PowerState, media: Media) -> Result<(), DriveError> {
        let asleep = |why: &str| DriveError::Asleep {
            device: self.transport.device().to_owned(),
            why: why.to_owned(),
            state,
            media,
        };
        match (state, media) {
            (PowerState::Standby, _) => Err(asleep("the drive says that it is in standby")),
            (PowerState::Unknown, Media::Rotating) => Err(asleep(
                "a rotating disk whose power state cannot be read through this bridge",
            )),
            _ => Ok(()),
        }
    }

    /// Told to wake a drive of unknown media: what CHECK POWER MODE says before can be held against what IDENTIFY shows.
    fn learns_from_waking(&self, media: Media, remembered: &Remembered) -> bool {
        self.options.wake
            && media == Media::Unknown
            && !remembered.power_mode_lies
            && self.options.memory.is_some()
            && self.key.is_some()
    }

    /// Dozens of bridges answer slowly after a refused command until a good one came by; where a probe succeeds in the end, it
    /// is that good one.
    fn clear_error_state(&mut self) -> Result<(), DriveError> {
        let command = Command::non_data(cdb::test_unit_ready(), self.options.timeout);
        execute(self.transport, command)
            .map(drop)
            .map_err(|e| self.stop(e))
    }

    fn stop(&self, error: TransportError) -> DriveError {
        stop(self.transport, self.options, self.key, error)
    }

    fn remember(&self, before: &Remembered, sat: &Sat, found_by: &FoundBy, media: Media, power: PowerState) {
        let (Some(memory), Some(key)) = (&self.options.memory, self.key) else {
            return;
        };
        let lies = before.power_mode_lies || (media == Media::Flash && power == PowerState::Standby);
        let dialect = match found_by {
            // What the user forces says nothing about what detection would find.
            FoundBy::Named => before.dialect.clone(),
            _ => Some(sat.name().to_owned()),
        };
        let update = memory.update(key, |r| {
            r.dialect = dialect;
            r.power_mode_lies = lies;
        });
        if let Err(error) = update {
            tracing::debug!("could not remember {}: {error}", key.as_str());
        }
    }
}

/// What a transport error did to the device; `None` when the command was never sent, or refused by rights.
pub(super) fn harm_of(error: &TransportError, when: String) -> Option<Harm> {
    let (command, cdb, what) = match error {
        TransportError::TimedOut { command, cdb, .. } => (command, cdb, "got no answer in time"),
        TransportError::Failed { command, cdb, .. } => (command, cdb, "ended in a transport error"),
        TransportError::Gone { command, cdb, .. } => (command, cdb, "made the device drop off the bus"),
        _ => return None,
    };
    Some(Harm {
        command: format!("{command} [{cdb}]"),
        what: what.to_owned(),
        when,
    })
}

/// A transport error while probing: nothing more is sent, and the bridge is remembered.
pub(super) fn stop(
    transport: &dyn Transport,
    options: &OpenOptions,
    key: Option<&BridgeKey>,
    error: TransportError,
) -> DriveError {
    let Some(harm) = harm_of(&error, transport.clock().rfc3339()) else {
        return DriveError::Transport(error);
    };
    let remembered = remember_harm(options, key, |r| r.harmed_by = Some(harm));
    DriveError::Harmed {
        device: transport.device().to_owned(),
        source: error,
        remembered,
    }
}

/// Writes down what happened, if there is a memory; whether it stands there now.
pub(super) fn remember_harm(
    options: &OpenOptions,
    key: Option<&BridgeKey>,
    change: impl FnOnce(&mut Remembered),
) -> bool {
    let (Some(memory), Some(key)) = (&options.memory, key) else {
        return false;
    };
    memory
        .update(key, change)
        .inspect_err(|error| tracing::warn!("could not remember {}: {error}", key.as_str()))
        .is_ok()
}

/// REQUEST SENSE as a question for the power condition.
pub(super) fn ask_sense(timeout: Duration) -> Command {
    Command::data_in(cdb::request_sense(18, false), 18, timeout)
}

/// The answer to [`ask_sense`]; anything else in it leaves the state unknown.
pub(super) fn power_from_sense(completion: Completion) -> PowerState {
    let sense = completion
        .data
        .filter(|_| completion.status == Status::GOOD)
        .and_then(|d| Sense::parse(&d).ok());
    sense.map_or(PowerState::Unknown, |s| {
        PowerState::from_request_sense(s.asc, s.ascq)
    })
}

pub(super) fn identify_request(timeout: Duration) -> Request {
    Request::new("IDENTIFY DEVICE", Taskfile::identify_device(), timeout)
}

/// Whether the bridge may take the same command in another form: it called something about it illegal, cut the data, or
/// failed without a reason or with one that bridges give for what they do not know (0B/00/00, 0B/4E/00).
fn another_form_may_help(failure: &Failure) -> bool {
    match failure {
        Failure::FieldRefused { .. } | Failure::ShortData { .. } | Failure::Aborted { .. } => true,
        Failure::CheckCondition { sense: None } => true,
        Failure::CheckCondition { sense: Some(sense) } => {
            sense.is_empty() || sense.key == 0x05 || (sense.key == 0x0b && matches!(sense.asc, 0x00 | 0x4e))
        }
        _ => false,
    }
}

fn short(failure: &Failure) -> String {
    match failure {
        Failure::CannotCarry { sense: Some(s) }
        | Failure::NotReady { sense: s }
        | Failure::FieldRefused { sense: s }
        | Failure::CheckCondition { sense: Some(s) } => match s.code_text() {
            Some(text) => format!("{} ({})", text, s.code_triple()),
            None => s.code_triple(),
        },
        Failure::CannotCarry { sense: None } => "no form for this command".to_owned(),
        Failure::CheckCondition { sense: None } => "failed without sense data".to_owned(),
        Failure::Aborted { status, error } => format!("aborted by the drive ({status:02x}h/{error:02x}h)"),
        Failure::Status { status } => format!("SCSI status {status:02x}h"),
        Failure::ShortData {
            got_bytes,
            want_bytes,
        } => format!("{got_bytes} of {want_bytes} bytes"),
    }
}
