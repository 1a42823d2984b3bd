//! The actor that keeps requests in flight: stage after stage, to their depth, with a deadline.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::actor::{Action, Actor, Event, Request};
use super::feed::Feed;
use super::plan::{Pattern, Plan, Stage};
use crate::bench::run::Ending;
use crate::bench::series::Op;

/// Neighbours of a deep sequential queue go as one request, as long as that takes no longer than this.
const BURST_S: f64 = 0.0025;

/// So many errors in a row end a stage.
const ERRORS_IN_A_ROW: u64 = 16;

/// What a stage came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StageResult {
    /// Its start and end on the run's clock; no end while it runs.
    pub start: Duration,
    /// See `start`.
    pub end: Option<Duration>,
    /// Bytes completed.
    pub bytes: u64,
    /// Requests and bytes that count for its row: reads, then writes.
    pub scored: [(u64, u64); 2],
    /// When counting began.
    pub scored_from: Duration,
    /// Latencies that count, in microseconds: reads, then writes. Only of stages that give a row.
    pub latencies_us: [Vec<u32>; 2],
    /// Time of the flush.
    pub flush: Option<Duration>,
    /// Nothing came back within the deadline: when it was given up, and how long after the last completion.
    pub hang: Option<(Duration, Duration)>,
    /// Too many errors.
    pub failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Moving,
    Idle(Duration),
    Flushing(Duration),
    Over,
}

#[derive(Debug, Clone, Copy)]
struct Flying {
    request: Request,
    since: Duration,
}

/// Keeps requests in flight.
#[derive(Debug)]
pub struct Requests {
    plan: Arc<Plan>,
    seed: u64,
    deadline: Duration,
    stage: usize,
    feed: Option<Feed>,
    next_id: u64,
    state: State,
    flying: BTreeMap<u64, Flying>,
    /// Requests of the workload in flight, merged ones counted singly.
    in_flight: u32,
    last_progress: Duration,
    wake_due: Option<Duration>,
    stopping: Option<Ending>,
    errors_in_a_row: u64,
    /// Bytes per second of late, for the size of bursts.
    rate: f64,
    /// Per stage that was begun.
    pub results: Vec<StageResult>,
    /// Requests completed.
    pub completed: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Integral of requests in flight over the time with any, and that time: of the deepest stages.
    depth_time: (f64, f64),
    depth_at: Duration,
    deepest: u32,
}

impl Requests {
    /// Before the first stage.
    pub fn new(plan: Arc<Plan>, seed: u64, deadline: Duration) -> Self {
        Self {
            deepest: plan.stages.iter().map(|s| s.depth).max().unwrap_or_default(),
            plan,
            seed,
            deadline,
            stage: 0,
            feed: None,
            next_id: 0,
            state: State::Before,
            flying: BTreeMap::new(),
            in_flight: 0,
            last_progress: Duration::ZERO,
            wake_due: None,
            stopping: None,
            errors_in_a_row: 0,
            rate: 0.0,
            results: Vec::new(),
            completed: 0,
            errors: 0,
            depth_time: (0.0, 0.0),
            depth_at: Duration::ZERO,
        }
    }

    /// Mean number of requests in flight while there were any, in the stages of the greatest depth.
    pub fn reached_depth(&self) -> Option<f64> {
        let (integral, seconds) = self.depth_time;
        (seconds > 0.0).then(|| integral / seconds)
    }

    fn stage(&self) -> Option<&Stage> {
        self.plan.stages.get(self.stage)
    }

    fn result(&mut self) -> Option<&mut StageResult> {
        self.results.last_mut()
    }

    fn note_depth(&mut self, now: Duration) {
        if self.in_flight > 0 && self.stage().is_some_and(|s| s.depth == self.deepest) {
            let seconds = now.saturating_sub(self.depth_at).as_secs_f64();
            self.depth_time.0 += seconds * f64::from(self.in_flight);
            self.depth_time.1 += seconds;
        }
        self.depth_at = now;
    }

    fn begin(&mut self, now: Duration, actions: &mut Vec<Action>) {
        // After a hang the other runs of that row would only hang too.
        let hung: Vec<&str> = self
            .plan
            .stages
            .iter()
            .zip(&self.results)
            .filter(|(_, result)| result.hang.is_some())
            .filter_map(|(stage, _)| Some(stage.row.as_ref()?.row.as_str()))
            .collect();
        let mut skipped = Vec::new();
        while let Some(stage) = self.plan.stages.get(self.stage + skipped.len()) {
            let is_hung = stage.row.as_ref().is_some_and(|r| hung.contains(&r.row.as_str()));
            if !is_hung {
                break;
            }
            skipped.push(StageResult {
                start: now,
                end: Some(now),
                ..StageResult::default()
            });
        }
        self.stage += skipped.len();
        self.results.extend(skipped);
        let Some(stage) = self.stage() else {
            self.state = State::Over;
            actions.push(Action::End(Ending::Complete));
            return;
        };
        let (unscored, idle) = (
            stage.unscored,
            matches!(stage.pattern, Pattern::Idle).then_some(stage.time.unwrap_or_default()),
        );
        let seed = self
            .seed
            .wrapping_add((self.stage as u64).wrapping_mul(0x9e37_79b9));
        let feed = Feed::new(stage, seed, self.next_id);
        actions.push(Action::StageBegins(self.stage));
        self.results.push(StageResult {
            start: now,
            scored_from: now.saturating_add(unscored),
            ..StageResult::default()
        });
        self.errors_in_a_row = 0;
        self.rate = 0.0;
        self.last_progress = now;
        match idle {
            Some(time) => {
                let until = now.saturating_add(time);
                self.state = State::Idle(until);
                actions.push(Action::WakeAt(until));
            }
            None => {
                self.feed = Some(feed);
                self.state = State::Moving;
                self.go_on(now, actions);
            }
        }
    }

    /// Sends what has room; ends the stage when nothing is left and nothing in flight.
    fn go_on(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let Some(stage) = self.plan.stages.get(self.stage) else {
            return;
        };
        let start = self.results.last().map_or(now, |r| r.start);
        let timed_out = stage.time.is_some_and(|time| now.saturating_sub(start) >= time);
        let give_up = self.errors_in_a_row >= ERRORS_IN_A_ROW;
        if give_up && let Some(result) = self.results.last_mut() {
            result.failed = true;
        }
        let sequential = matches!(stage.pattern, Pattern::Sequential { .. });
        if !timed_out && !give_up && self.stopping.is_none() {
            while self.in_flight < stage.depth {
                let room = stage.depth - self.in_flight;
                let burst = if sequential {
                    let blocks = self.rate * BURST_S / stage.block_bytes.max(1) as f64;
                    (blocks as u32).min(stage.depth / 2).max(1)
                } else {
                    1
                };
                if room < burst {
                    break;
                }
                let Some(request) = self.feed.as_mut().and_then(|f| f.next(burst)) else {
                    break;
                };
                self.in_flight += request.merged;
                self.flying.insert(request.id, Flying { request, since: now });
                actions.push(Action::Submit(request));
            }
        }
        if !self.flying.is_empty() {
            self.watch(now, actions);
            return;
        }
        if stage.flush && self.state == State::Moving && !give_up {
            self.state = State::Flushing(now);
            actions.push(Action::Flush);
            self.watch(now, actions);
            return;
        }
        self.end_stage(now, actions);
    }

    fn end_stage(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if let Some(result) = self.result() {
            result.end = Some(now);
        }
        if let Some(feed) = self.feed.take() {
            self.next_id = feed.next_id();
        }
        actions.push(Action::StageEnds(self.stage));
        self.stage += 1;
        match self.stopping {
            Some(ending) => {
                self.state = State::Over;
                actions.push(Action::End(ending));
            }
            None => self.begin(now, actions),
        }
    }

    /// Asks to be woken when the deadline is over, unless that is due already.
    fn watch(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.wake_due.is_none_or(|due| due <= now) {
            let due = self.last_progress.max(now).saturating_add(self.deadline);
            self.wake_due = Some(due);
            actions.push(Action::WakeAt(due));
        }
    }

    fn completed(&mut self, id: u64, ok: bool, now: Duration, actions: &mut Vec<Action>) {
        self.note_depth(now);
        let Some(Flying { request, since }) = self.flying.remove(&id) else {
            return;
        };
        self.in_flight = self.in_flight.saturating_sub(request.merged);
        let before = std::mem::replace(&mut self.last_progress, now);
        if ok {
            self.errors_in_a_row = 0;
            self.completed += u64::from(request.merged);
            let busy_s = now.saturating_sub(before.max(since)).as_secs_f64();
            if busy_s > 0.0 {
                self.rate = request.len_bytes as f64 / busy_s;
            }
        } else {
            self.errors_in_a_row += 1;
            self.errors += u64::from(request.merged);
        }
        let keeps_latency = self.stage().is_some_and(|s| s.row.is_some());
        if let Some(result) = self.result().filter(|_| ok) {
            result.bytes += request.len_bytes;
            let which = usize::from(request.op == Op::Write);
            if now > result.scored_from
                && let (Some(scored), Some(latencies)) =
                    (result.scored.get_mut(which), result.latencies_us.get_mut(which))
            {
                scored.0 += u64::from(request.merged);
                scored.1 += request.len_bytes;
                if keeps_latency {
                    let us = now.saturating_sub(since).as_micros();
                    latencies.push(u32::try_from(us).unwrap_or(u32::MAX));
                }
            }
        }
        self.go_on(now, actions);
    }

    fn woken(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match self.state {
            State::Idle(until) if now >= until => self.end_stage(now, actions),
            State::Moving | State::Flushing(_) => {
                let waited = now.saturating_sub(self.last_progress);
                if waited >= self.deadline {
                    self.flying.clear();
                    self.in_flight = 0;
                    if let Some(result) = self.result() {
                        result.hang = Some((now, waited));
                    }
                    actions.push(Action::Cancel);
                    self.end_stage(now, actions);
                } else if self.wake_due.is_some_and(|due| due <= now) {
                    let due = self.last_progress.saturating_add(self.deadline);
                    self.wake_due = Some(due);
                    actions.push(Action::WakeAt(due));
                }
            }
            _ => {}
        }
    }
}

impl Actor for Requests {
    fn on(&mut self, event: &Event, now: Duration) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.state == State::Over {
            return actions;
        }
        match event {
            Event::Start => self.begin(now, &mut actions),
            Event::Completed { id, ok } => self.completed(*id, *ok, now, &mut actions),
            Event::Wake => self.woken(now, &mut actions),
            Event::Flushed => {
                if let State::Flushing(since) = self.state {
                    self.last_progress = now;
                    if let Some(result) = self.result() {
                        result.flush = Some(now.saturating_sub(since));
                    }
                    self.state = State::Moving;
                    self.end_stage(now, &mut actions);
                }
            }
            Event::Stop(ending) => {
                self.stopping = self.stopping.or(Some(*ending));
                match self.state {
                    State::Idle(_) => self.end_stage(now, &mut actions),
                    State::Moving => self.go_on(now, &mut actions),
                    _ => {}
                }
            }
            Event::Gone => {
                self.flying.clear();
                self.stopping = Some(Ending::Lost);
                self.end_stage(now, &mut actions);
            }
            Event::StageEdge | Event::Temperature(_) => {}
        }
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::engine::plan::{Amount, Options, Workload, plan};

    fn engine(options: &Options) -> Requests {
        let plan = plan(options, 2_000_000_000).unwrap();
        Requests::new(Arc::new(plan), 1, Duration::from_secs(60))
    }

    fn submitted(actions: &[Action]) -> Vec<Request> {
        actions
            .iter()
            .filter_map(|a| match a {
                Action::Submit(request) => Some(*request),
                _ => None,
            })
            .collect()
    }

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn it_fills_the_queue_flushes_and_ends() {
        let mut engine = engine(&Options {
            amount: Some(Amount::Bytes(40 * 131_072)),
            ..Options::default()
        });
        let actions = engine.on(&Event::Start, Duration::ZERO);
        assert_eq!(actions.first(), Some(&Action::StageBegins(0)));
        let first = submitted(&actions);
        assert_eq!(first.len(), 32);
        let mut queue: Vec<Request> = first;
        let mut flushes = 0;
        let mut now = Duration::ZERO;
        while let Some(request) = (!queue.is_empty()).then(|| queue.remove(0)) {
            now += Duration::from_millis(1);
            let event = Event::Completed {
                id: request.id,
                ok: true,
            };
            let actions = engine.on(&event, now);
            flushes += actions.iter().filter(|a| **a == Action::Flush).count();
            queue.extend(submitted(&actions));
        }
        assert_eq!(flushes, 1);
        let end = engine.on(&Event::Flushed, now + Duration::from_millis(5));
        assert_eq!(end, [Action::StageEnds(0), Action::End(Ending::Complete)]);
        let result = engine.results.first().unwrap();
        assert_eq!(result.bytes, 40 * 131_072);
        assert_eq!(result.flush, Some(Duration::from_millis(5)));
        assert_eq!((engine.completed, engine.errors), (40, 0));
    }

    #[test]
    fn silence_is_a_hang_and_the_next_row_goes_on() {
        let mut engine = engine(&Options {
            workload: Workload::Mix,
            ..Options::default()
        });
        let actions = engine.on(&Event::Start, Duration::ZERO);
        assert!(actions.contains(&Action::WakeAt(seconds(60))));
        let id = submitted(&actions).first().unwrap().id;
        let actions = engine.on(&Event::Completed { id, ok: true }, seconds(10));
        assert_eq!(submitted(&actions).len(), 1);
        assert_eq!(
            engine.on(&Event::Wake, seconds(60)),
            [Action::WakeAt(seconds(70))],
            "only 50 s"
        );
        let actions = engine.on(&Event::Wake, seconds(70));
        assert_eq!(
            actions.get(..3),
            Some(&[Action::Cancel, Action::StageEnds(0), Action::StageBegins(1)][..])
        );
        assert_eq!(
            engine.results.first().and_then(|r| r.hang),
            Some((seconds(70), seconds(60)))
        );
        // What comes too late belongs to nobody.
        assert!(
            engine
                .on(&Event::Completed { id: 1, ok: true }, seconds(71))
                .is_empty()
        );
    }

    #[test]
    fn a_stop_waits_for_what_is_in_flight() {
        let mut engine = engine(&Options {
            workload: Workload::Mix,
            ..Options::default()
        });
        let first = submitted(&engine.on(&Event::Start, Duration::ZERO));
        assert!(engine.on(&Event::Stop(Ending::Aborted), seconds(1)).is_empty());
        let id = first.first().unwrap().id;
        assert_eq!(
            engine.on(&Event::Completed { id, ok: true }, seconds(2)),
            [Action::StageEnds(0), Action::End(Ending::Aborted)]
        );
    }

    #[test]
    fn errors_in_a_row_end_a_stage() {
        let mut engine = engine(&Options::default());
        let mut queue = submitted(&engine.on(&Event::Start, Duration::ZERO));
        let mut ended = false;
        while let Some(request) = (!queue.is_empty()).then(|| queue.remove(0)) {
            let event = Event::Completed {
                id: request.id,
                ok: false,
            };
            let actions = engine.on(&event, seconds(1));
            ended |= actions.contains(&Action::End(Ending::Complete));
            queue.extend(submitted(&actions));
        }
        assert!(ended);
        assert!(engine.results.first().unwrap().failed);
        assert_eq!(engine.errors, 47);
    }
}
