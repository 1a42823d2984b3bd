//! The driver for simulated devices: one heap of events on the virtual clock.
//!
//! The device takes one command after the other, in the order in which they were handed to it; a temperature reading waits
//! for its turn among them, and everything behind waits for the reading. Nothing depends on real time, so that the same run
//! gives the same samples, and an hour takes seconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::Watch;
use super::actor::{Action, Actor, Event, Request, Taken};
use super::manifest::Checked;
use super::plan::Plan;
use super::recorder::{INTERVAL, Recorder};
use super::requests::Requests;
use super::sampler::Sampler;
use crate::bench::run::Ending;
use crate::bench::series::Op;
use crate::drive::Drive;
use crate::sim::{Load, Reply};
use crate::time::SharedClock;
use crate::transport::sim::SharedSim;
use crate::transport::{Cdb, Transport};

/// What the device is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Job {
    Request(Request, Duration),
    Flush,
    Temperature,
}

/// What happens at a time of the heap.
#[derive(Debug, Clone, PartialEq)]
enum Due {
    /// An interval is over.
    Tick,
    /// Somebody asked to be woken.
    Wake,
    /// The device has done a job.
    Done(Outcome),
}

#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Completed(Request, Duration, bool),
    Flushed,
    Taken(Taken),
    /// No answer ever; the device has been reset meanwhile.
    Silent,
    Gone,
}

/// A place in the heap: time, ticks first, then the order in which it was asked for.
#[derive(Debug)]
struct Entry {
    key: (Duration, bool, u64),
    due: Due,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// The command that the device works on: from, to, and what the meter showed before.
#[derive(Debug, Clone, Copy)]
struct Busy {
    from: Duration,
    to: Duration,
    energy_before_j: Option<f64>,
    /// What it was asked for has been taken back.
    orphan: bool,
    temperature: bool,
}

/// Runs a plan on a simulated device.
pub struct SimDriver<'a> {
    sim: SharedSim,
    drive: Drive,
    block_bytes: u64,
    clock: SharedClock,
    /// The device's time at the start of the run.
    started: Duration,
    plan: Arc<Plan>,
    heap: BinaryHeap<Reverse<Entry>>,
    asked: u64,
    queue: VecDeque<Job>,
    busy: Option<Busy>,
    load: Load,
    deadline: Duration,
    ended: Option<Ending>,
    watch: &'a mut dyn Watch,
    /// The actors, for what they know at the end.
    pub requests: Requests,
    /// See `requests`.
    pub sampler: Sampler,
    /// The samples.
    pub recorder: Recorder,
    /// What the comparison of files that were read back came to.
    pub checked: Checked,
}

impl<'a> SimDriver<'a> {
    /// Takes an open drive and another handle on its target.
    pub fn new(
        sim: SharedSim,
        drive: Drive,
        block_bytes: u64,
        plan: &Arc<Plan>,
        options: &super::Options,
        watch: &'a mut dyn Watch,
    ) -> Self {
        Self {
            clock: sim.clock(),
            sim,
            drive,
            block_bytes: block_bytes.max(1),
            started: Duration::ZERO,
            plan: Arc::clone(plan),
            heap: BinaryHeap::new(),
            asked: 0,
            queue: VecDeque::new(),
            busy: None,
            load: Load::default(),
            deadline: options.deadline,
            ended: None,
            watch,
            requests: Requests::new(Arc::clone(plan), options.seed, options.deadline),
            sampler: Sampler::new(options.temp_interval, options.max_temp_c),
            recorder: Recorder::default(),
            checked: Checked::default(),
        }
    }

    /// The open drive.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Lets the sampler try its readings while the device rests; what is too hot already is over before its first request.
    pub fn prepare(&mut self) {
        let mut actions = self.sampler.on(&Event::Start, Duration::ZERO);
        while actions.contains(&Action::ReadTemperature) {
            let taken = self.read_temperature();
            actions = self.sampler.on(&Event::Temperature(taken), Duration::ZERO);
        }
        self.ended = actions.iter().find_map(|action| match action {
            Action::Stop(ending) => Some(*ending),
            _ => None,
        });
    }

    /// Runs it to its end.
    pub fn run(&mut self) -> Ending {
        if let Some(ending) = self.ended {
            return ending;
        }
        self.started = self.clock.now();
        self.recorder = Recorder::new(self.energy_j());
        self.push(INTERVAL, true, Due::Tick);
        self.tell(&Event::Start, Duration::ZERO);
        let mut now = Duration::ZERO;
        loop {
            self.serve(now);
            let reading = self.busy.is_some_and(|b| b.temperature) || self.queue.contains(&Job::Temperature);
            if let Some(ending) = self.ended.filter(|_| !reading) {
                let energy_j = self.energy_at(now);
                self.recorder.close(now, energy_j);
                return ending;
            }
            let Some(Reverse(entry)) = self.heap.pop() else {
                // Nobody waits for anything any more.
                return self.ended.unwrap_or(Ending::Lost);
            };
            now = entry.key.0;
            match entry.due {
                Due::Tick => self.tick(now),
                Due::Wake => self.tell(&Event::Wake, now),
                Due::Done(outcome) => self.done(outcome, now),
            }
        }
    }

    fn push(&mut self, at: Duration, tick: bool, due: Due) {
        self.asked += 1;
        let key = (at, !tick, self.asked);
        self.heap.push(Reverse(Entry { key, due }));
    }

    fn tick(&mut self, now: Duration) {
        let energy_j = self.energy_at(now);
        self.recorder.close(now, energy_j);
        self.push(now.saturating_add(INTERVAL), true, Due::Tick);
        self.watch.sample(&self.recorder.samples);
        if self.ended.is_none() && self.watch.stop() {
            self.tell(&Event::Stop(Ending::Aborted), now);
        }
    }

    /// Tells everybody, and does what they answer.
    fn tell(&mut self, event: &Event, now: Duration) {
        let mut actions = self.requests.on(event, now);
        actions.extend(self.sampler.on(event, now));
        for action in actions {
            self.act(action, now);
        }
    }

    fn act(&mut self, action: Action, now: Duration) {
        match action {
            Action::Submit(request) => self.queue.push_back(Job::Request(request, now)),
            Action::Flush => self.queue.push_back(Job::Flush),
            Action::ReadTemperature => self.queue.push_back(Job::Temperature),
            Action::WakeAt(at) => self.push(at.max(now), false, Due::Wake),
            Action::StageBegins(number) => {
                let plan = Arc::clone(&self.plan);
                if let Some(stage) = plan.stages.get(number) {
                    self.load = Load {
                        files: stage.copies_files(),
                        compressible: stage.content.compressible(),
                        in_flight: stage.depth,
                    };
                    self.sim.with(|sim| sim.target_mut().announce(self.load));
                    self.recorder.op = Some(stage.op);
                    self.watch.stage(&stage.name);
                }
                let actions = self.sampler.on(&Event::StageEdge, now);
                for action in actions {
                    self.act(action, now);
                }
            }
            Action::StageEnds(_) => {
                let actions = self.sampler.on(&Event::StageEdge, now);
                for action in actions {
                    self.act(action, now);
                }
            }
            Action::Cancel => {
                if let Some(busy) = &mut self.busy {
                    busy.orphan = true;
                }
                let reading = self.queue.contains(&Job::Temperature);
                self.queue.clear();
                if reading {
                    let taken = Taken {
                        result: Err("the device did not answer".to_owned()),
                        took: Duration::ZERO,
                        limit_c: None,
                    };
                    for action in self.sampler.on(&Event::Temperature(taken), now) {
                        self.act(action, now);
                    }
                }
            }
            Action::Stop(ending) => self.tell(&Event::Stop(ending), now),
            Action::End(ending) => self.ended = Some(ending),
            Action::Ready => {}
        }
    }

    fn done(&mut self, outcome: Outcome, now: Duration) {
        let orphan = self.busy.take().is_some_and(|b| b.orphan);
        match outcome {
            Outcome::Completed(request, since, ok) if !orphan => {
                if ok {
                    let latency = now.saturating_sub(since);
                    self.recorder
                        .completed(request.op, request.len_bytes, request.merged, latency);
                }
                let event = Event::Completed { id: request.id, ok };
                // The sampler has no use for it, and there are millions.
                for action in self.requests.on(&event, now) {
                    self.act(action, now);
                }
            }
            Outcome::Flushed if !orphan => self.tell(&Event::Flushed, now),
            Outcome::Taken(taken) => {
                let celsius = taken.result.as_ref().ok().map(|(celsius, _)| *celsius);
                self.recorder.temperature(celsius, taken.took);
                self.tell(&Event::Temperature(taken), now);
            }
            Outcome::Gone => {
                self.queue.clear();
                self.tell(&Event::Gone, now);
            }
            Outcome::Completed(..) | Outcome::Flushed | Outcome::Silent => {}
        }
    }

    /// Gives the device its next job if it has none.
    fn serve(&mut self, now: Duration) {
        if self.busy.is_some() {
            return;
        }
        let Some(job) = self.queue.pop_front() else {
            return;
        };
        let at = self.started.saturating_add(now);
        self.clock.sleep(at.saturating_sub(self.clock.now()));
        let energy_before_j = self.energy_j();
        let outcome = match job {
            Job::Request(request, since) => self.transfer(request, since),
            Job::Flush => self.flush(),
            Job::Temperature => Outcome::Taken(self.read_temperature()),
        };
        let to = self.clock.now().saturating_sub(self.started);
        self.busy = Some(Busy {
            from: now,
            to,
            energy_before_j,
            orphan: false,
            temperature: job == Job::Temperature,
        });
        self.push(to, false, Due::Done(outcome));
    }

    fn transfer(&mut self, request: Request, since: Duration) -> Outcome {
        let first = request.offset_bytes / self.block_bytes;
        let blocks = request.len_bytes.div_ceil(self.block_bytes);
        let write = request.op == Op::Write;
        let cdb = read_write(write, first, blocks);
        let out_len = if write { blocks * self.block_bytes } else { 0 };
        let out_len = usize::try_from(out_len).unwrap_or_default();
        let (reply, unlike) = self.sim.with(|sim| {
            let target = sim.target_mut();
            target.name_writes(request.content);
            let reply = target.command_unseen(cdb.as_bytes(), out_len, self.deadline);
            let name = request.content.filter(|_| !write);
            (reply, name.map(|name| target.unlike_bytes(first, blocks, name)))
        });
        if let (Some(unlike), Some(content), Reply::Answered { status: 0, .. }) =
            (unlike, request.content, &reply)
        {
            self.checked.add(content, request.len_bytes, unlike);
        }
        match reply {
            Reply::Answered { status, .. } => Outcome::Completed(request, since, status == 0),
            Reply::TimedOut { .. } => Outcome::Silent,
            Reply::Gone => Outcome::Gone,
        }
    }

    /// SYNCHRONIZE CACHE (10) of everything; a device that does not know it has nothing to flush.
    fn flush(&mut self) -> Outcome {
        let cdb = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        match self
            .sim
            .with(|sim| sim.target_mut().command_unseen(&cdb, 0, self.deadline))
        {
            Reply::Answered { .. } => Outcome::Flushed,
            Reply::TimedOut { .. } => Outcome::Silent,
            Reply::Gone => Outcome::Gone,
        }
    }

    fn read_temperature(&mut self) -> Taken {
        let before = self.clock.now();
        let result = self.drive.temperature();
        let took = self.clock.now().saturating_sub(before);
        let limit_c = result
            .as_ref()
            .ok()
            .and_then(|t| t.limits.max_operating_celsius)
            .map(|c| f64::from(c.0));
        let result = match result {
            Ok(temperature) => temperature
                .celsius
                .zip(temperature.source)
                .map(|(celsius, source)| (f64::from(celsius.0), source.word()))
                .ok_or_else(|| "no source is plausible".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        Taken {
            result,
            took,
            limit_c,
        }
    }

    fn energy_j(&self) -> Option<f64> {
        self.sim.with(|sim| {
            let target = sim.target_mut();
            target.catch_up();
            target.energy_joules()
        })
    }

    /// What a meter shows at `now`, in the middle of a command too.
    fn energy_at(&mut self, now: Duration) -> Option<f64> {
        let Some(busy) = self.busy else {
            let at = self.started.saturating_add(now);
            self.clock.sleep(at.saturating_sub(self.clock.now()));
            return self.energy_j();
        };
        let after = self.energy_j()?;
        let before = busy.energy_before_j?;
        let whole = busy.to.saturating_sub(busy.from).as_secs_f64();
        let part = now.saturating_sub(busy.from).as_secs_f64();
        let share = if whole > 0.0 {
            (part / whole).clamp(0.0, 1.0)
        } else {
            1.0
        };
        Some(before + (after - before) * share)
    }
}

/// READ or WRITE in its 10-byte form, and in the 16-byte one where that has no room (SBC-3).
fn read_write(write: bool, first: u64, blocks: u64) -> Cdb {
    match (u32::try_from(first), u16::try_from(blocks)) {
        (Ok(lba), Ok(count)) => {
            let ([a, b, c, d], [e, f]) = (lba.to_be_bytes(), count.to_be_bytes());
            let opcode = if write { 0x2a } else { 0x28 };
            Cdb::from_array([opcode, 0, a, b, c, d, 0, e, f, 0])
        }
        _ => {
            let [a, b, c, d, e, f, g, h] = first.to_be_bytes();
            let [i, j, k, l] = u32::try_from(blocks).unwrap_or(u32::MAX).to_be_bytes();
            let opcode = if write { 0x8a } else { 0x88 };
            Cdb::from_array([opcode, 0, a, b, c, d, e, f, g, h, i, j, k, l, 0, 0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_goes_as_far_as_it_can() {
        assert_eq!(
            read_write(true, 0x0102_0304, 0x0506).to_string(),
            "2a 00 01 02 03 04 00 05 06 00"
        );
        assert_eq!(
            read_write(false, 0x1_0000_0000, 8).to_string(),
            "88 00 00 00 00 01 00 00 00 00 00 00 00 08 00 00"
        );
        assert_eq!(read_write(true, 0, 0x1_0000).as_bytes().len(), 16);
    }
}
