//! Bulk-Only Transport, the device's side (USB Mass Storage Class, Bulk-Only Transport 1.0).

use std::collections::VecDeque;
use std::time::Duration;

use super::Finished;
use super::pipe::{Pipe, PipeEnd, Step};
use crate::sim::bridge::{Answer, Fate, Mishap, Want};
use crate::sim::buf::{byte, put32};
use crate::sim::profiles::EmptyDataIn;
use crate::sim::{Target, Via};
use crate::wire::le32;

/// The longest data phase of a command that does anything: more is taken and thrown away.
const KEPT_BYTES: u64 = 32 << 20;

/// "USBC" and "USBS", least significant byte first.
const CBW_SIGNATURE: u32 = 0x4342_5355;
const CSW_SIGNATURE: u32 = 0x5342_5355;

/// bCSWStatus.
const PASSED: u8 = 0;
const FAILED: u8 = 1;
const PHASE_ERROR: u8 = 2;

/// A command block wrapper that is valid and meaningful.
#[derive(Debug, Clone)]
struct Wrapper {
    tag: u32,
    /// Bytes that the host expects to move.
    length: u64,
    to_host: bool,
    cdb: Vec<u8>,
}

impl Wrapper {
    /// 31 bytes with the signature, LUN 0, a CDB of 1 to 16 bytes, reserved bits zero (clauses 6.2.1 and 6.2.2).
    fn parse(bytes: &[u8]) -> Option<Self> {
        let good = bytes.len() == 31
            && le32(bytes, 0) == Some(CBW_SIGNATURE)
            && byte(bytes, 13) == 0
            && matches!(byte(bytes, 14), 1..=16);
        let cdb = bytes.get(15..15 + usize::from(byte(bytes, 14)))?;
        good.then(|| Self {
            tag: le32(bytes, 4).unwrap_or_default(),
            length: u64::from(le32(bytes, 8).unwrap_or_default()),
            to_host: byte(bytes, 12) & 0x80 != 0,
            cdb: cdb.to_vec(),
        })
    }
}

/// What the device is about.
#[derive(Debug)]
enum State {
    /// A wrapper is awaited.
    Ready,
    /// Data from the host is awaited: all `wrapper.length` of it.
    Collecting {
        wrapper: Wrapper,
        /// Bytes that have come.
        came: u64,
        /// Those that the command may need.
        got: Vec<u8>,
        plan: Plan,
    },
    /// Data goes to the host from `due` on.
    Sending {
        due: Duration,
        data: VecDeque<u8>,
        /// Bytes that are still expected.
        expected: u64,
        /// The last transfer was filled to its end, so that the host does not know yet that there is no more.
        open: bool,
        then: Status,
        stall: bool,
    },
    /// The status goes to the host from `due` on.
    Telling { due: Duration, status: Status },
    /// No answer: to this command, or to anything until a reset of the port.
    Silent { until_port_reset: bool },
    /// Both pipes are halted until Reset Recovery.
    Broken,
}

/// What becomes of data from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// The first so many bytes are the command's.
    Use(u64),
    /// The command wants none.
    Discard,
    /// The command wants more than comes.
    Refuse,
}

/// A command status wrapper to be.
#[derive(Debug, Clone, Copy)]
struct Status {
    tag: u32,
    residue: u32,
    code: u8,
}

impl Status {
    fn bytes(self) -> Vec<u8> {
        let mut out = vec![0; 13];
        put32(&mut out, 0, CSW_SIGNATURE);
        put32(&mut out, 4, self.tag);
        put32(&mut out, 8, self.residue);
        if let Some(last) = out.last_mut() {
            *last = self.code;
        }
        out
    }
}

/// The state machine.
#[derive(Debug)]
pub struct Bot {
    state: State,
    /// From host, to host.
    pub out: Pipe,
    pub input: Pipe,
    /// Kept for REQUEST SENSE until another command comes.
    sense: Vec<u8>,
    packet_bytes: usize,
}

impl Bot {
    /// Ready for a wrapper; `packet_bytes` is wMaxPacketSize.
    pub fn new(in_endpoint: u8, out_endpoint: u8, packet_bytes: u16) -> Self {
        Self {
            state: State::Ready,
            out: Pipe::new(out_endpoint),
            input: Pipe::new(in_endpoint),
            sense: Vec::new(),
            packet_bytes: usize::from(packet_bytes.max(1)),
        }
    }

    /// Whether the endpoint is one of its two.
    pub fn pipe(&mut self, endpoint: u8) -> Option<&mut Pipe> {
        if endpoint == self.out.address() {
            Some(&mut self.out)
        } else if endpoint == self.input.address() {
            Some(&mut self.input)
        } else {
            None
        }
    }

    /// Bulk-Only Mass Storage Reset: ready for the next wrapper; halts and data toggles stay (clause 3.1).
    pub fn class_reset(&mut self) {
        let hung = matches!(
            self.state,
            State::Silent {
                until_port_reset: true
            }
        );
        if !hung {
            self.state = State::Ready;
        }
    }

    /// Whether a command is running, or never ends.
    pub fn is_busy(&self, now: Duration) -> bool {
        match &self.state {
            State::Sending { due, .. } | State::Telling { due, .. } => *due > now,
            State::Silent { .. } => true,
            State::Ready | State::Collecting { .. } | State::Broken => false,
        }
    }

    /// When it will do something by itself.
    pub fn next_due(&self) -> Option<Duration> {
        match &self.state {
            State::Sending { due, .. } | State::Telling { due, .. } if self.input.has_waiting() => Some(*due),
            _ => None,
        }
    }

    /// A pipe that was halted is free again: what the clearing of a broken device does is to halt it anew.
    pub fn halt_again_if_broken(&mut self) {
        if matches!(self.state, State::Broken) {
            self.out.halt();
            self.input.halt();
        }
    }

    /// Goes on as far as it can. True: the device leaves the bus.
    pub fn advance(&mut self, target: &mut Target, now: Duration, finished: &mut VecDeque<Finished>) -> bool {
        loop {
            self.out.refuse_if_halted(finished);
            self.input.refuse_if_halted(finished);
            let step = match &mut self.state {
                State::Ready => self.take_wrapper(target, now, finished),
                State::Collecting { .. } => self.collect(target, now, finished),
                State::Sending { due, .. } if *due <= now => self.send(finished),
                State::Telling { due, .. } if *due <= now => self.tell(finished),
                State::Sending { .. } | State::Telling { .. } | State::Silent { .. } | State::Broken => {
                    Step::Wait
                }
            };
            match step {
                Step::On => {}
                Step::Wait => return false,
                Step::Leave => return true,
            }
        }
    }

    fn take_wrapper(
        &mut self,
        target: &mut Target,
        now: Duration,
        finished: &mut VecDeque<Finished>,
    ) -> Step {
        let Some(transfer) = self.out.take() else {
            return Step::Wait;
        };
        finished.push_back(PipeEnd::taken(&transfer));
        let Some(wrapper) = Wrapper::parse(&transfer.out) else {
            self.state = State::Broken;
            self.out.halt();
            self.input.halt();
            return Step::On;
        };
        let wrong_way = |wrapper: &Wrapper| State::Telling {
            due: now,
            status: Status {
                tag: wrapper.tag,
                residue: clamp(wrapper.length),
                code: PHASE_ERROR,
            },
        };
        let want = target.want(&wrapper.cdb);
        if wrapper.length > 0 && !wrapper.to_host {
            if want == Want::In {
                // Case 10.
                self.refuse(target, &wrapper, now);
                self.out.halt();
                self.state = wrong_way(&wrapper);
                return Step::On;
            }
            if want == Want::Nothing && target.stalls_unknown() {
                // Case 9, as bridges do that know at once that they will take nothing.
                self.out.halt();
                let step = self.run(target, &wrapper, &[], now);
                self.input.clear();
                return step;
            }
            let plan = match want {
                Want::Out(0) | Want::Nothing | Want::In => Plan::Discard,
                Want::Out(bytes) if bytes > wrapper.length => Plan::Refuse,
                Want::Out(bytes) if bytes > KEPT_BYTES => Plan::Discard,
                Want::Out(bytes) => Plan::Use(bytes),
                Want::OutAll if wrapper.length > KEPT_BYTES => Plan::Discard,
                Want::OutAll => Plan::Use(wrapper.length),
            };
            self.state = State::Collecting {
                wrapper,
                came: 0,
                got: Vec::new(),
                plan,
            };
            return Step::On;
        }
        if matches!(want, Want::Out(1..) | Want::OutAll) {
            // Cases 3 and 8.
            self.refuse(target, &wrapper, now);
            if wrapper.length > 0 {
                self.input.halt();
            }
            self.state = wrong_way(&wrapper);
            return Step::On;
        }
        self.run(target, &wrapper, &[], now)
    }

    fn collect(&mut self, target: &mut Target, now: Duration, finished: &mut VecDeque<Finished>) -> Step {
        let State::Collecting {
            wrapper,
            came,
            got,
            plan,
        } = &mut self.state
        else {
            return Step::Wait;
        };
        let Some(mut transfer) = self.out.take() else {
            return Step::Wait;
        };
        finished.push_back(PipeEnd::taken(&transfer));
        // A packet that is not full ends the data phase.
        let short = transfer.out.is_empty() || !transfer.out.len().is_multiple_of(self.packet_bytes);
        *came = came.saturating_add(transfer.out.len() as u64);
        if let Plan::Use(bytes) = *plan {
            let room = usize::try_from(bytes)
                .unwrap_or(usize::MAX)
                .saturating_sub(got.len());
            transfer.out.truncate(room);
            if got.is_empty() {
                *got = transfer.out;
            } else {
                got.append(&mut transfer.out);
            }
        }
        if *came < wrapper.length && !short {
            return Step::On;
        }
        let (wrapper, got, plan) = (wrapper.clone(), std::mem::take(got), *plan);
        match plan {
            Plan::Use(bytes) if got.len() as u64 >= bytes => self.run(target, &wrapper, &got, now),
            Plan::Discard => self.run(target, &wrapper, &[], now),
            Plan::Use(_) | Plan::Refuse => {
                // Case 13, or a host that does not send what it announced.
                self.refuse(target, &wrapper, now);
                self.state = State::Telling {
                    due: now,
                    status: Status {
                        tag: wrapper.tag,
                        residue: 0,
                        code: PHASE_ERROR,
                    },
                };
                Step::On
            }
        }
    }

    /// The command is not run; its coming ends what is kept of the one before.
    fn refuse(&mut self, target: &mut Target, wrapper: &Wrapper, now: Duration) {
        self.sense.clear();
        target.refuse(&wrapper.cdb, now, Via::Bot);
    }

    /// Has the command done and gets the answer on its way.
    fn run(&mut self, target: &mut Target, wrapper: &Wrapper, data_out: &[u8], now: Duration) -> Step {
        let room = if wrapper.to_host { wrapper.length } else { 0 };
        let mut answer = self.answer(target, wrapper, data_out, room, now);
        let due = target.now().saturating_add(answer.extra);
        match answer.fate {
            Fate::Answered => {}
            Fate::NoAnswer => {
                self.state = State::Silent {
                    until_port_reset: false,
                };
                return Step::On;
            }
            Fate::Gone => return Step::Leave,
        }
        let mut status = Status {
            tag: wrapper.tag,
            residue: clamp(wrapper.length.saturating_sub(data_out.len() as u64)),
            code: if answer.status == 0 { PASSED } else { FAILED },
        };
        let mut stall = false;
        match answer.mishap {
            None => {}
            Some(Mishap::Hang) => {
                self.state = State::Silent {
                    until_port_reset: true,
                };
                return Step::On;
            }
            Some(Mishap::Replug) => return Step::Leave,
            Some(Mishap::WrongTag) => status.tag ^= 0x0005_a500,
            Some(Mishap::PhaseError) => status.code = PHASE_ERROR,
            Some(Mishap::Babble) => answer.data.extend(vec![0x5a; 1024]),
            Some(Mishap::WrongResidue) => {}
            Some(Mishap::Stall | Mishap::RefusedByStall) => {
                // Data from the host has been taken by now; there is nothing to stall but the status.
                stall = wrapper.to_host || wrapper.length == 0;
            }
        }
        if room == 0 {
            if !answer.data.is_empty() {
                // Case 2.
                status.code = PHASE_ERROR;
            }
            if stall {
                self.input.halt();
            }
            if answer.mishap == Some(Mishap::WrongResidue) {
                status.residue = clamp(wrapper.length);
            }
            self.state = State::Telling { due, status };
            return Step::On;
        }
        let size = answer.data.len() as u64;
        if size > room && answer.mishap != Some(Mishap::Babble) {
            // Case 7.
            answer.data.truncate(usize::try_from(room).unwrap_or(usize::MAX));
            status.code = PHASE_ERROR;
        }
        status.residue = clamp(room.saturating_sub(size));
        if answer.mishap == Some(Mishap::WrongResidue) {
            status.residue = clamp(room);
        }
        let stalls_empty = target.empty_data_in() == EmptyDataIn::Stall;
        stall |= answer.data.is_empty() && stalls_empty;
        self.state = State::Sending {
            due,
            expected: room,
            open: true,
            data: answer.data.into(),
            then: status,
            stall,
        };
        Step::On
    }

    /// REQUEST SENSE gets what is kept; everything else goes to the bridge.
    fn answer(
        &mut self,
        target: &mut Target,
        wrapper: &Wrapper,
        data_out: &[u8],
        room: u64,
        now: Duration,
    ) -> Answer {
        let kept = std::mem::take(&mut self.sense);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let mut answer = target.perform(&wrapper.cdb, data_out, Some(room), now, Via::Bot);
        if byte(&wrapper.cdb, 0) == 0x03 && !kept.is_empty() && answer.status == 0 {
            let mut data = kept;
            data.truncate(usize::from(byte(&wrapper.cdb, 4)));
            answer.data = data;
        } else {
            self.sense.clone_from(&answer.sense);
        }
        answer
    }

    fn send(&mut self, finished: &mut VecDeque<Finished>) -> Step {
        let State::Sending {
            data,
            expected,
            open,
            then,
            stall,
            ..
        } = &mut self.state
        else {
            return Step::Wait;
        };
        let over = data.is_empty() && (*expected == 0 || !*open);
        if !over && *stall && data.is_empty() {
            let status = *then;
            self.input.halt();
            self.state = State::Telling {
                due: Duration::ZERO,
                status,
            };
            return Step::On;
        }
        if over {
            let status = *then;
            self.state = State::Telling {
                due: Duration::ZERO,
                status,
            };
            return Step::On;
        }
        let Some(transfer) = self.input.take() else {
            return Step::Wait;
        };
        if data.len() as u64 > *expected && transfer.in_len as u64 >= *expected {
            finished.push_back(PipeEnd::babble(&transfer));
            data.clear();
            *open = false;
            return Step::On;
        }
        let count = data.len().min(transfer.in_len);
        let piece: Vec<u8> = if count == data.len() {
            std::mem::take(data).into()
        } else {
            data.drain(..count).collect()
        };
        *open = count == transfer.in_len;
        *expected = expected.saturating_sub(count as u64);
        finished.push_back(PipeEnd::sent(&transfer, piece));
        Step::On
    }

    fn tell(&mut self, finished: &mut VecDeque<Finished>) -> Step {
        let State::Telling { status, .. } = &self.state else {
            return Step::Wait;
        };
        let Some(transfer) = self.input.take() else {
            return Step::Wait;
        };
        let status = *status;
        finished.push_back(PipeEnd::sent(&transfer, status.bytes()));
        self.state = if status.code == PHASE_ERROR {
            State::Broken
        } else {
            State::Ready
        };
        if status.code == PHASE_ERROR {
            // Nothing but Reset Recovery helps now; wrappers that come are not taken.
            self.out.halt();
            self.input.halt();
        }
        Step::On
    }
}

fn clamp(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
