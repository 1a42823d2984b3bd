//! Bridges: how an ATA taskfile or an NVMe admin command travels inside SCSI commands.
//!
//! A dialect translates without I/O: it sees the taskfile and each completion, and says what to send next or that it is
//! done. [`run`] drives any of them over any transport.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod memory;
pub mod quirks;
pub mod sat;
pub mod taskfile;

use std::time::Duration;

use crate::scsi::sense::{AtaRegisters, Sense};
use crate::transport::{Buffer, Command, Completion, Transport, TransportError, execute};
use taskfile::Taskfile;

/// What the bridge handed back of the drive's registers; `None` for each one that it did not return.
pub type Registers = AtaRegisters;

/// One ATA command on its way through a dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The registers.
    pub taskfile: Taskfile,
    /// What to call it in messages: `SMART READ DATA`.
    pub name: &'static str,
    /// Data for the drive, for data-out protocols.
    pub data_out: Option<Buffer>,
    /// The caller needs output registers; only ever asked for on commands without data.
    pub want_registers: bool,
    /// After this the command is given up.
    pub timeout: Duration,
}

impl Request {
    /// A command with neither data-out nor a wish for registers.
    pub fn new(name: &'static str, taskfile: Taskfile, timeout: Duration) -> Self {
        Self {
            taskfile,
            name,
            data_out: None,
            want_registers: false,
            timeout,
        }
    }

    /// The same, asking for the output registers.
    pub fn with_registers(mut self) -> Self {
        self.want_registers = true;
        self
    }
}

/// What an ATA command brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Output registers, as far as the bridge returned them; all `None` when it returned none.
    pub registers: Registers,
    /// Data-in, cut to what arrived.
    pub data: Option<Buffer>,
}

/// What a dialect does next.
#[derive(Debug)]
pub enum Step {
    /// Send this.
    Send(Command),
    /// The device asked for patience: send this after a pause.
    SendAfter {
        /// How long to wait.
        pause: Duration,
        /// What to send then.
        command: Command,
    },
    /// The command is over.
    Done(Reply),
}

/// A translator from taskfiles to CDBs and back. No I/O in here.
pub trait AtaDialect: Send + std::fmt::Debug {
    /// The stable name that users type after `--dialect`.
    fn name(&self) -> &'static str;
    /// Begins one command.
    ///
    /// # Errors
    /// This dialect cannot carry such a command.
    fn start(&self, request: Request) -> Result<Box<dyn Exchange>, Failure>;
}

/// One command being translated.
pub trait Exchange {
    /// `None` at first, then each completion of what was sent.
    ///
    /// # Errors
    /// The command failed in the bridge or in the drive.
    fn step(&mut self, previous: Option<Completion>) -> Result<Step, Failure>;
}

/// Why a command did not do its work, without the device's name; [`BridgeError`] adds it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// The bridge does not know the opcode (05/20/00), or the dialect has no form for this command.
    CannotCarry {
        /// What it said.
        sense: Option<Box<Sense>>,
    },
    /// The bridge knows the opcode and refuses a field (05/24/00).
    FieldRefused {
        /// What it said.
        sense: Box<Sense>,
    },
    /// The drive itself ended the command with an error.
    Aborted {
        /// STATUS register.
        status: u8,
        /// ERROR register.
        error: u8,
    },
    /// The drive or medium is not ready.
    NotReady {
        /// What it said.
        sense: Box<Sense>,
    },
    /// Any other CHECK CONDITION.
    CheckCondition {
        /// What it said; `None` for an empty one.
        sense: Option<Box<Sense>>,
    },
    /// A SCSI status that is neither GOOD nor CHECK CONDITION.
    Status {
        /// The status byte.
        status: u8,
    },
    /// GOOD status, but less data than the command must bring.
    ShortData {
        /// What arrived.
        got_bytes: usize,
        /// What had to.
        want_bytes: usize,
    },
}

impl Failure {
    /// Whether the answer says that the drive never saw the command.
    pub fn never_reached_the_drive(&self) -> bool {
        matches!(self, Self::CannotCarry { .. } | Self::FieldRefused { .. })
    }
}

/// A command failed, with its context.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The bridge or drive answered with a failure.
    #[error("{device}: {command} over {dialect}: {}", describe(.failure))]
    Failed {
        /// The device.
        device: String,
        /// The dialect's name.
        dialect: &'static str,
        /// The ATA command's name.
        command: &'static str,
        /// What happened.
        failure: Failure,
    },
    /// The fate of the command is unknown.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

impl BridgeError {
    /// The failure, when the device answered at all.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure, .. } => Some(failure),
            Self::Transport(_) => None,
        }
    }
}

fn describe(failure: &Failure) -> String {
    let said = |sense: &Sense| match sense.code_text() {
        Some(text) => format!("{} {} ({text})", sense.key_name(), sense.code_triple()),
        None => format!("{} {}", sense.key_name(), sense.code_triple()),
    };
    match failure {
        Failure::CannotCarry { sense: Some(sense) } => {
            format!("the bridge does not carry it: {}", said(sense))
        }
        Failure::CannotCarry { sense: None } => "this dialect has no form for it".to_owned(),
        Failure::FieldRefused { sense } => format!("the bridge refuses a field: {}", said(sense)),
        Failure::Aborted { status, error } => {
            format!("aborted by the drive (status {status:02x}h, error {error:02x}h)")
        }
        Failure::NotReady { sense } => format!("not ready: {}", said(sense)),
        Failure::CheckCondition { sense: Some(sense) } => format!("failed: {}", said(sense)),
        Failure::CheckCondition { sense: None } => "failed without sense data".to_owned(),
        Failure::Status { status } => format!("ended with SCSI status {status:02x}h"),
        Failure::ShortData {
            got_bytes,
            want_bytes,
        } => {
            format!("claims success but brought {got_bytes} of {want_bytes} bytes")
        }
    }
}

/// Carries one ATA command through a dialect and a transport.
///
/// # Errors
/// The device's failure with its context, or the transport's.
pub fn run(
    transport: &mut dyn Transport,
    dialect: &dyn AtaDialect,
    request: Request,
) -> Result<Reply, BridgeError> {
    let command_name = request.name;
    let failed = |device: &str, failure: Failure| BridgeError::Failed {
        device: device.to_owned(),
        dialect: dialect.name(),
        command: command_name,
        failure,
    };
    let mut exchange = dialect
        .start(request)
        .map_err(|f| failed(transport.device(), f))?;
    let mut previous = None;
    loop {
        match exchange
            .step(previous.take())
            .map_err(|f| failed(transport.device(), f))?
        {
            Step::Send(command) => previous = Some(execute(transport, command)?),
            Step::SendAfter { pause, command } => {
                transport.clock().sleep(pause);
                previous = Some(execute(transport, command)?);
            }
            Step::Done(reply) => return Ok(reply),
        }
    }
}
