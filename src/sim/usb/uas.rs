//! USB Attached SCSI, the device's side (UAS, "Information units"; SAM for task management).

use std::collections::VecDeque;
use std::time::Duration;

use super::Finished;
use super::pipe::{Pipe, PipeEnd, Step};
use crate::sim::bridge::{Fate, Mishap, Want};
use crate::sim::buf::{byte, put_be16, put8};
use crate::sim::profiles::UasEndpoints;
use crate::sim::{Target, Via};
use crate::wire::be16;

/// Information unit identifiers.
const COMMAND: u8 = 0x01;
const SENSE: u8 = 0x03;
const RESPONSE: u8 = 0x04;
const TASK_MANAGEMENT: u8 = 0x05;
const READ_READY: u8 = 0x06;
const WRITE_READY: u8 = 0x07;

/// Response codes.
const TASK_MANAGEMENT_COMPLETE: u8 = 0x00;
const INVALID_INFORMATION_UNIT: u8 = 0x02;
const NOT_SUPPORTED: u8 = 0x04;
const TASK_MANAGEMENT_FAILED: u8 = 0x05;
const TASK_MANAGEMENT_SUCCEEDED: u8 = 0x08;
const INCORRECT_LUN: u8 = 0x09;
const OVERLAPPED_TAG: u8 = 0x0a;

/// Commands that a device keeps at most.
const QUEUE_LIMIT: usize = 256;

/// A command that was accepted and has not been told to be over.
#[derive(Debug)]
struct Task {
    tag: u16,
    cdb: Vec<u8>,
    lun: u64,
}

/// What the task at the head of the queue is about.
#[derive(Debug)]
enum Phase {
    /// It has not begun.
    Waiting,
    /// Its data is awaited from the host.
    Collecting,
    /// Data goes to the host from `due` on, then the status.
    Sending {
        due: Duration,
        data: Vec<u8>,
        status: Vec<u8>,
    },
    /// The status goes from `due` on.
    Telling { due: Duration, status: Vec<u8> },
    /// It never gets an answer.
    Lost,
}

/// The state machine.
#[derive(Debug)]
pub struct Uas {
    pub command: Pipe,
    pub status: Pipe,
    pub data_in: Pipe,
    pub data_out: Pipe,
    /// Streams that each pipe but the command pipe has; 0 where the link has none.
    streams: u32,
    tasks: VecDeque<Task>,
    phase: Phase,
    /// Information units that wait for room on the status pipe, with the stream that they go to.
    to_tell: VecDeque<(u16, Vec<u8>)>,
    silent: bool,
}

impl Uas {
    /// Idle; with so many streams, or 0 where the link has none.
    pub fn new(endpoints: UasEndpoints, streams: u32) -> Self {
        Self {
            command: Pipe::new(endpoints.command),
            status: Pipe::new(endpoints.status),
            data_in: Pipe::new(endpoints.data_in),
            data_out: Pipe::new(endpoints.data_out),
            streams,
            tasks: VecDeque::new(),
            phase: Phase::Waiting,
            to_tell: VecDeque::new(),
            silent: false,
        }
    }

    /// One of its four pipes.
    pub fn pipe(&mut self, endpoint: u8) -> Option<&mut Pipe> {
        self.pipes().into_iter().find(|pipe| pipe.address() == endpoint)
    }

    /// All of them.
    pub fn pipes(&mut self) -> [&mut Pipe; 4] {
        [
            &mut self.command,
            &mut self.status,
            &mut self.data_in,
            &mut self.data_out,
        ]
    }

    /// When it will do something by itself.
    pub fn next_due(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Sending { due, .. } if self.has_room() => Some(*due),
            Phase::Telling { due, .. } => Some(*due),
            Phase::Sending { .. } | Phase::Waiting | Phase::Collecting | Phase::Lost => None,
        }
    }

    /// Whether the host waits for the data of the task at the head.
    fn has_room(&self) -> bool {
        let stream = self.tasks.front().map(|task| self.stream(task.tag));
        stream.is_some_and(|stream| self.data_in.peek_stream(stream).is_some())
    }

    /// Whether a command is running, or never ends.
    pub fn is_busy(&self, now: Duration) -> bool {
        match &self.phase {
            Phase::Sending { due, .. } | Phase::Telling { due, .. } => *due > now,
            Phase::Lost => true,
            Phase::Waiting | Phase::Collecting => self.silent,
        }
    }

    fn stream(&self, tag: u16) -> u32 {
        if self.streams > 0 { u32::from(tag) } else { 0 }
    }

    /// Goes on as far as it can. True: the device leaves the bus.
    pub fn advance(&mut self, target: &mut Target, now: Duration, finished: &mut VecDeque<Finished>) -> bool {
        loop {
            for pipe in self.pipes() {
                pipe.refuse_if_halted(finished);
            }
            if self.silent {
                return false;
            }
            if self.tell(finished) {
                continue;
            }
            // A host that takes no answers has to wait with what it sends.
            let may_answer = self.to_tell.len() < 2 * QUEUE_LIMIT;
            if let Some(transfer) = may_answer.then(|| self.command.take()).flatten() {
                finished.push_back(PipeEnd::taken(&transfer));
                self.take_unit(&transfer.out);
                continue;
            }
            match self.step(target, now, finished) {
                Step::On => {}
                Step::Wait => return false,
                Step::Leave => return true,
            }
        }
    }

    /// Sends one information unit that waits, if the host has room for it.
    fn tell(&mut self, finished: &mut VecDeque<Finished>) -> bool {
        for place in 0..self.to_tell.len() {
            let Some((tag, _)) = self.to_tell.get(place) else {
                return false;
            };
            let stream = self.stream(*tag);
            if let Some(transfer) = self.status.take_stream(stream) {
                if let Some((_, unit)) = self.to_tell.remove(place) {
                    finished.push_back(PipeEnd::sent(&transfer, unit));
                }
                return true;
            }
            if self.streams == 0 {
                return false;
            }
        }
        false
    }

    fn take_unit(&mut self, unit: &[u8]) {
        let tag = be16(unit, 2).unwrap_or_default();
        let lun = crate::wire::be64(unit, 8).unwrap_or_default();
        // The tag is the stream that the answer goes to.
        if self.streams > 0 && !(1..=self.streams).contains(&u32::from(tag)) {
            return self.respond(tag.clamp(1, u16::MAX), INVALID_INFORMATION_UNIT);
        }
        match byte(unit, 0) {
            COMMAND if unit.len() >= 32 => {
                let additional = usize::from(byte(unit, 6) >> 2) * 4;
                let Some(cdb) = unit.get(16..32 + additional) else {
                    return self.respond(tag, INVALID_INFORMATION_UNIT);
                };
                if self.tasks.iter().any(|task| task.tag == tag) {
                    self.abort(|_| true);
                    return self.respond(tag, OVERLAPPED_TAG);
                }
                if self.tasks.len() >= QUEUE_LIMIT {
                    // TASK SET FULL.
                    return self.to_tell.push_back((tag, sense_unit(tag, 0x28, &[])));
                }
                self.tasks.push_back(Task {
                    tag,
                    cdb: cdb.to_vec(),
                    lun,
                });
            }
            TASK_MANAGEMENT if unit.len() >= 16 => {
                let of = be16(unit, 6).unwrap_or_default();
                let present = self.tasks.iter().any(|task| task.tag == of);
                let code = match (byte(unit, 4), lun) {
                    (0x10, _) => {
                        self.abort(|_| true);
                        TASK_MANAGEMENT_COMPLETE
                    }
                    (_, 1..) => INCORRECT_LUN,
                    (0x01, _) => {
                        self.abort(|task| task.tag == of);
                        TASK_MANAGEMENT_COMPLETE
                    }
                    (0x02 | 0x04 | 0x08, _) => {
                        self.abort(|_| true);
                        TASK_MANAGEMENT_COMPLETE
                    }
                    (0x80, _) if present => TASK_MANAGEMENT_SUCCEEDED,
                    (0x81, _) if !self.tasks.is_empty() => TASK_MANAGEMENT_SUCCEEDED,
                    (0x80 | 0x81, _) => TASK_MANAGEMENT_COMPLETE,
                    _ => NOT_SUPPORTED,
                };
                self.respond(tag, code);
            }
            _ => self.respond(tag, INVALID_INFORMATION_UNIT),
        }
    }

    fn respond(&mut self, tag: u16, code: u8) {
        let mut unit = vec![0; 8];
        put8(&mut unit, 0, RESPONSE);
        put_be16(&mut unit, 2, tag);
        put8(&mut unit, 7, code);
        self.to_tell.push_back((tag, unit));
    }

    fn abort(&mut self, which: impl Fn(&Task) -> bool) {
        if self.tasks.front().is_some_and(&which) {
            self.phase = Phase::Waiting;
        }
        self.to_tell
            .retain(|(tag, _)| !self.tasks.iter().any(|task| task.tag == *tag && which(task)));
        self.tasks.retain(|task| !which(task));
    }

    fn step(&mut self, target: &mut Target, now: Duration, finished: &mut VecDeque<Finished>) -> Step {
        let Some(task) = self.tasks.front() else {
            return Step::Wait;
        };
        let (tag, lun) = (task.tag, task.lun);
        let stream = self.stream(tag);
        match &mut self.phase {
            Phase::Waiting => {
                let want = if lun == 0 {
                    target.want(&task.cdb)
                } else {
                    Want::Nothing
                };
                if matches!(want, Want::Out(1..) | Want::OutAll) {
                    if self.streams == 0 {
                        self.to_tell.push_back((tag, ready_unit(WRITE_READY, tag)));
                    }
                    self.phase = Phase::Collecting;
                    return Step::On;
                }
                let room = self.data_in.peek_stream(stream).filter(|_| self.streams > 0);
                let room = room.map(|transfer| transfer.in_len);
                let step = self.run(target, &[], room, now);
                // Without streams the host posts its room after it was told to.
                if let (0, Phase::Sending { .. }) = (self.streams, &self.phase) {
                    self.to_tell.push_back((tag, ready_unit(READ_READY, tag)));
                }
                step
            }
            Phase::Collecting => {
                let Some(transfer) = self.data_out.take_stream(stream) else {
                    return Step::Wait;
                };
                finished.push_back(PipeEnd::taken(&transfer));
                self.run(target, &transfer.out, Some(0), now)
            }
            Phase::Sending { due, .. } | Phase::Telling { due, .. } if *due > now => Step::Wait,
            Phase::Sending { data, status, .. } => {
                let Some(transfer) = self.data_in.take_stream(stream) else {
                    return Step::Wait;
                };
                let (data, status) = (std::mem::take(data), std::mem::take(status));
                if data.len() > transfer.in_len {
                    // As sticks do that were seen to overrun: what follows the overrun is silence.
                    finished.push_back(PipeEnd::babble(&transfer));
                    self.phase = Phase::Lost;
                    return Step::On;
                }
                finished.push_back(PipeEnd::sent(&transfer, data));
                self.end(tag, status);
                Step::On
            }
            Phase::Telling { status, .. } => {
                let status = std::mem::take(status);
                self.end(tag, status);
                Step::On
            }
            Phase::Lost => Step::Wait,
        }
    }

    fn end(&mut self, tag: u16, status: Vec<u8>) {
        self.tasks.pop_front();
        self.phase = Phase::Waiting;
        self.to_tell.push_back((tag, status));
    }

    /// Has the task at the head done and gets the answer on its way.
    fn run(&mut self, target: &mut Target, data_out: &[u8], room: Option<usize>, now: Duration) -> Step {
        let Some(task) = self.tasks.front() else {
            return Step::Wait;
        };
        let tag = task.tag;
        let mut answer = if task.lun == 0 {
            target.perform(&task.cdb, data_out, room, now, Via::Uas)
        } else {
            target.no_such_unit(&task.cdb, now, Via::Uas)
        };
        let due = target.now().max(now).saturating_add(answer.extra);
        match answer.fate {
            Fate::Answered => {}
            Fate::NoAnswer => {
                self.phase = Phase::Lost;
                return Step::On;
            }
            Fate::Gone => return Step::Leave,
        }
        let mut status = sense_unit(tag, answer.status, &answer.sense);
        match answer.mishap {
            None | Some(Mishap::WrongResidue | Mishap::RefusedByStall) => {}
            Some(Mishap::Hang) => {
                self.silent = true;
                return Step::On;
            }
            Some(Mishap::Replug) => return Step::Leave,
            Some(Mishap::WrongTag) => put_be16(&mut status, 2, tag ^ 0x4000),
            Some(Mishap::PhaseError) => {
                self.tasks.pop_front();
                self.phase = Phase::Waiting;
                self.respond(tag, TASK_MANAGEMENT_FAILED);
                return Step::On;
            }
            Some(Mishap::Babble) => answer.data.extend(vec![0x5a; 1024]),
            Some(Mishap::Stall) => {
                // The pipe of its data phase; the status pipe would halt every other command too.
                let room_waits = self.data_in.peek_stream(self.stream(tag)).is_some();
                if room_waits {
                    self.data_in.halt();
                }
            }
        }
        // A host that posted room and gets GOOD waits for the data pipe to end, if only with a packet of no length.
        let stream = self.stream(tag);
        let expects = self.streams > 0 && self.data_in.peek_stream(stream).is_some();
        let sends = !answer.data.is_empty() || (answer.status == 0 && expects);
        self.phase = if sends && answer.mishap != Some(Mishap::Stall) {
            Phase::Sending {
                due,
                data: answer.data,
                status,
            }
        } else {
            Phase::Telling { due, status }
        };
        Step::On
    }
}

fn sense_unit(tag: u16, status: u8, sense: &[u8]) -> Vec<u8> {
    let mut unit = vec![0; 16];
    put8(&mut unit, 0, SENSE);
    put_be16(&mut unit, 2, tag);
    put8(&mut unit, 6, status);
    put_be16(&mut unit, 14, sense.len() as u16);
    unit.extend(sense);
    unit
}

fn ready_unit(identifier: u8, tag: u16) -> Vec<u8> {
    let mut unit = vec![identifier, 0, 0, 0];
    put_be16(&mut unit, 2, tag);
    unit
}
